//! A custom figure: accuracy against epsilon on points of a sphere, drawn into the folder for temporary files.
//!
//! ```text
//! cargo run --release -p dp-reproduce --example own_figure
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::atomic::AtomicBool;

use dp_reproduce::claim::{Quantifier, Relation};
use dp_reproduce::figure::{Axis, Bars, Figure, Measure, Panel, Series};
use dp_reproduce::{Algorithm, Claim, DataSet, Privacy, Results, Runner, Setting, Store, report};

fn main() -> Result<(), Box<dyn Error>> {
    let curve = |algorithm: Algorithm| {
        Series::new(algorithm.title(), &[0.05, 0.1, 0.2, 0.5, 1.0], |epsilon| {
            Setting::new(DataSet::Sphere, algorithm, Privacy::Approximate { epsilon })
        })
    };
    let panels = vec![Panel {
        title: "Sphere".to_owned(),
        x: Axis { label: "ε", log: true },
        log_y: false,
        measure: Measure::Accuracy,
        bars: Bars::StdDev,
        series: [Algorithm::Noiseless, Algorithm::Ours, Algorithm::Scs13].map(curve).to_vec(),
    }];
    let (ours, other) = (Algorithm::Ours.title(), Algorithm::Scs13.title());
    let claim = Claim::between("Ours is more accurate", &panels, ours, Relation::MORE, other, Quantifier::Every);
    let figure = Figure {
        id: "own-figure",
        title: "Bolt-on against noise on every step",
        description: "Test accuracy against ε.",
        columns: 1,
        panels,
        claims: vec![claim],
        repetitions: 5,
    };

    let folder = std::env::temp_dir().join("dp-own-figure");
    std::fs::create_dir_all(&folder)?;
    let mut store = Store::open(&folder.join("runs.csv"))?;
    let mut runner = Runner { folder: &folder, threads: 2, cancelled: &AtomicBool::new(false), progress: &mut |_| () };
    runner.run(&figure.cells(figure.repetitions), &mut store)?;
    let results = Results::collect(&figure, &store, figure.repetitions);
    for finding in report::findings(&results) {
        println!("{}", finding.sentence);
    }
    for document in report::documents(&results, &store, figure.repetitions)? {
        let path = folder.join(document.name);
        std::fs::write(&path, document.content)?;
        println!("{}", path.display());
    }
    Ok(())
}
