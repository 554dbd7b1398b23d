//! Processor nanoseconds per coordinate of the OpenDP crate's noise, one JSON object per line.

use opendp::domains::{AtomDomain, VectorDomain};
use opendp::error::Fallible;
use opendp::measurements::{make_gaussian, make_laplace};
use opendp::measures::{MaxDivergence, ZeroConcentratedDivergence};
use opendp::metrics::{L1Distance, L2Distance};

const DIM: usize = 100;

fn processor_seconds() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// Prints the minimum time of `turns` calls.
fn report(job: &str, turns: usize, mut release: impl FnMut() -> Fallible<Vec<f64>>) -> Fallible<()> {
    let mut least = f64::INFINITY;
    for _ in 0..turns {
        let start = processor_seconds();
        assert_eq!(release()?.len(), DIM);
        least = least.min(processor_seconds() - start);
    }
    println!(r#"{{"job":"{job}","nanoseconds":{}}}"#, least * 1e9 / DIM as f64);
    Ok(())
}

fn main() -> Fallible<()> {
    let domain = || VectorDomain::new(AtomDomain::<f64>::new_non_nan()).with_size(DIM);
    let value = vec![0.5; DIM];
    for (name, granularity) in [("default grid", None), ("grid 2^-30", Some(-30))] {
        let gaussian =
            make_gaussian::<_, _, ZeroConcentratedDivergence>(domain(), L2Distance::<f64>::default(), 1.0, granularity)?;
        report(&format!("Gaussian, {name}"), 20, || gaussian.invoke(&value))?;
        let laplace = make_laplace::<_, _, MaxDivergence>(domain(), L1Distance::<f64>::default(), 1.0, granularity)?;
        report(&format!("Laplace, {name}"), 20, || laplace.invoke(&value))?;
    }
    Ok(())
}
