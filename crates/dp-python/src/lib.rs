//! The extension module of the Python package `dp`. It converts values, releases the GIL and handles signals; the crates beneath it
//! do the rest.

mod accounting;
mod failure;
mod interrupt;
mod model;
mod options;
mod ranking;
mod steps;
mod table;
mod training;

use pyo3::prelude::*;

/// The compiled part of the package `dp`.
#[pymodule]
fn _dp(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interrupt::keep_panics_quiet();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(accounting::canonical_event, module)?)?;
    module.add_function(wrap_pyfunction!(accounting::certificate, module)?)?;
    module.add_function(wrap_pyfunction!(training::train, module)?)?;
    module.add_function(wrap_pyfunction!(training::label_of_schema, module)?)?;
    module.add_function(wrap_pyfunction!(training::algorithms, module)?)?;
    module.add_function(wrap_pyfunction!(ranking::train_ranker, module)?)?;
    module.add_function(wrap_pyfunction!(model::load, module)?)?;
    module.add_class::<accounting::Questions>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<ranking::Ranker>()?;
    module.add_class::<steps::NoisySteps>()?;
    module.add_class::<steps::Release>()
}
