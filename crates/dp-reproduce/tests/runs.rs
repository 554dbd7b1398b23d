//! Runs from end to end on generated data: determinism, resuming, cancelling, the files of a figure.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use dp_reproduce::claim::{Quantifier, Relation};
use dp_reproduce::figure::{Axis, Bars, Figure, Measure, Panel, Series};
use dp_reproduce::{
    Algorithm, Cell, Claim, DataSet, Error, Knobs, Neighbours, Privacy, Results, Runner, Setting, Step, Store, Tuning,
    report,
};

fn settings() -> Vec<Setting> {
    let sphere = |algorithm, privacy| Setting { passes: 2, ..Setting::new(DataSet::Sphere, algorithm, privacy) };
    let pure = Privacy::Pure { epsilon: 0.5 };
    let with_delta = Privacy::WithDelta { epsilon: 2.0, delta: 1e-6 };
    let suited =
        |algorithm| Setting { lambda: 0.001, step: Step::Suited, batch_size: 1000, ..sphere(algorithm, with_delta) };
    vec![
        sphere(Algorithm::Noiseless, pure),
        sphere(Algorithm::Ours, pure),
        sphere(Algorithm::Ours, Privacy::Approximate { epsilon: 0.5 }),
        Setting { lambda: 0.01, ..sphere(Algorithm::Ours, pure) },
        Setting { lambda: 0.01, ..sphere(Algorithm::OursAsPublished, pure) },
        Setting { lambda: 0.01, ..sphere(Algorithm::OursAsPublished, Privacy::Approximate { epsilon: 0.5 }) },
        sphere(Algorithm::Scs13, pure),
        sphere(Algorithm::Scs13AsPublished, Privacy::Approximate { epsilon: 0.5 }),
        sphere(Algorithm::Bst14, Privacy::Approximate { epsilon: 0.5 }),
        Setting { lambda: 0.1, ..sphere(Algorithm::Bst14, Privacy::Approximate { epsilon: 1.0 }) },
        sphere(Algorithm::DpSgd, Privacy::Approximate { epsilon: 0.5 }),
        suited(Algorithm::RsgdAr),
        Setting { knobs: Knobs { restart_every: Some(0), ..Knobs::default() }, ..suited(Algorithm::RsgdAr) },
        suited(Algorithm::Nsgd),
        suited(Algorithm::OutPertGd),
        suited(Algorithm::ObjPert),
        suited(Algorithm::ObjPertKst12),
        suited(Algorithm::Amp),
        suited(Algorithm::DpNewton),
        suited(Algorithm::DpFtrl),
        suited(Algorithm::DpSvrg),
        Setting { lambda: 0.0, l1: 1e-3, ..suited(Algorithm::DpAdmm) },
        Setting { lambda: 0.0, l1: 1e-3, ..suited(Algorithm::AdmmObjPert) },
        suited(Algorithm::DpGd),
        Setting { neighbours: Neighbours::AddRemove, passes: 20, ..suited(Algorithm::DpBlsgd) },
        Setting { neighbours: Neighbours::AddRemove, passes: 20, ..suited(Algorithm::DpAgd) },
        Setting { neighbours: Neighbours::AddRemove, ..suited(Algorithm::DpAdamBc) },
        suited(Algorithm::PrivGene),
        suited(Algorithm::Minimiser),
        Setting { lambda: 0.0, l1: 1e-3, ..suited(Algorithm::SsAdmm) },
        Setting { lambda: 0.0, l1: 1e-3, ..suited(Algorithm::MpAdmm) },
        Setting { lambda: 0.0, l1: 1e-3, passes: 20, ..suited(Algorithm::SparseMinimiser) },
        Setting { lambda: 0.0, l1: 1e-3, ..suited(Algorithm::DpSgd) },
        Setting { rows: Some(500), passes: 1, step: Step::InverseSqrt(2.0), ..sphere(Algorithm::Scs13, pure) },
        Setting { lambda: 0.1, step: Step::InverseStrongConvexity, ..sphere(Algorithm::Noiseless, pure) },
        Setting { tuning: Tuning::Portions, ..sphere(Algorithm::Ours, pure) },
        Setting { tuning: Tuning::Portions, lambda: 0.01, ..sphere(Algorithm::OursAsPublished, pure) },
        Setting { on_disk: true, timed: true, lambda: 0.01, ..sphere(Algorithm::Noiseless, pure) },
        Setting { on_disk: true, timed: true, lambda: 0.01, ..sphere(Algorithm::Ours, pure) },
        Setting { on_disk: true, timed: true, lambda: 0.01, ..sphere(Algorithm::Scs13, pure) },
    ]
}

fn cells() -> Vec<Cell> {
    settings().into_iter().flat_map(|setting| (0..2).map(move |repetition| Cell::new(setting, repetition))).collect()
}

fn run(folder: &Path, cells: &[Cell], threads: usize) -> Result<(Store, u64), Error> {
    let mut store = Store::open(&folder.join("runs.csv"))?;
    let (cancelled, mut finished) = (AtomicBool::new(false), 0);
    let progress = &mut |progress: dp_reproduce::runner::Progress| finished = progress.finished;
    Runner { folder, threads, cancelled: &cancelled, progress }.run(cells, &mut store)?;
    Ok((store, finished))
}

fn measured(store: &Store, cells: &[Cell]) -> Vec<(u64, u64)> {
    let outcomes = cells.iter().map(|cell| store.get(cell).unwrap());
    outcomes.map(|outcome| (outcome.accuracy.to_bits(), outcome.objective.to_bits())).collect()
}

#[test]
fn threads_and_order_change_nothing() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let cells = cells();
    let mut turned = cells.clone();
    turned.reverse();
    let (serial, count) = run(folders[0].path(), &cells, 1).unwrap();
    let (parallel, _) = run(folders[1].path(), &turned, 4).unwrap();
    assert_eq!(count, cells.len() as u64);
    assert_eq!(measured(&serial, &cells), measured(&parallel, &cells));
    // Repetitions differ: each has its own order of the rows, on disk too, and its own noise.
    let objective = |cell: &Cell| serial.get(cell).unwrap().objective;
    let setting = |cell: &Cell| *cell.experiment.model().unwrap();
    for pair in cells.chunks_exact(2).filter(|pair| setting(&pair[0]).algorithm != Algorithm::Minimiser) {
        assert_ne!(objective(&pair[0]), objective(&pair[1]), "{}", pair[0]);
    }
    for cell in &cells {
        let outcome = serial.get(cell).unwrap();
        assert!((0.0..=1.0).contains(&outcome.accuracy) && outcome.objective > 0.0 && outcome.seconds > 0.0);
        assert!(outcome.accuracy > 0.55, "{cell}: {}", outcome.accuracy);
        // Batches are drawn, passes are read whole.
        assert_eq!(outcome.reads > 0.0, !setting(cell).timed, "{cell}");
        assert!(setting(cell).algorithm != Algorithm::MpAdmm || outcome.reads == 2.0, "{}", outcome.reads);
    }
}

#[test]
fn what_was_interrupted_goes_on_where_it_stopped() {
    let (whole, torn) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let cells = cells();
    let (expected, _) = run(whole.path(), &cells, 2).unwrap();
    run(torn.path(), &cells[..5], 2).unwrap();
    let path = torn.path().join("runs.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 7]).unwrap();
    let (resumed, done) = run(torn.path(), &cells, 2).unwrap();
    assert_eq!(done, cells.len() as u64 - 4, "four whole lines were kept");
    assert_eq!(measured(&expected, &cells), measured(&resumed, &cells));
    assert_eq!(run(torn.path(), &cells, 2).unwrap().1, 0, "nothing is left to do");
}

#[test]
fn a_cancelled_call_keeps_what_had_finished() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("runs.csv")).unwrap();
    let cancelled = AtomicBool::new(false);
    let progress = &mut |progress: dp_reproduce::runner::Progress| {
        if progress.finished == 3 {
            cancelled.store(true, Ordering::Relaxed);
        }
    };
    let mut runner = Runner { folder: folder.path(), threads: 1, cancelled: &cancelled, progress };
    assert!(matches!(runner.run(&cells(), &mut store), Err(Error::Interrupted)));
    drop(store);
    let kept = Store::open(&folder.path().join("runs.csv")).unwrap().len();
    assert!((3..=5).contains(&kept), "{kept}");
}

#[test]
fn a_failing_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let setting = Setting::new(DataSet::Sphere, Algorithm::Ours, Privacy::Pure { epsilon: -1.0 });
    let error = run(folder.path(), &[Cell::new(setting, 0)], 2).unwrap_err();
    assert!(matches!(&error, Error::Training { run, .. } if run.contains("epsilon -1")), "{error}");
    let missing = Setting::new(DataSet::Higgs, Algorithm::Noiseless, Privacy::None);
    let error = run(folder.path(), &[Cell::new(missing, 0)], 2).unwrap_err();
    assert!(matches!(error, Error::MissingFile { .. }));
}

#[test]
fn a_figure_has_all_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let curve = |algorithm: Algorithm| {
        Series::new(algorithm.title(), &[0.1, 1.0], |epsilon| {
            Setting::new(DataSet::Sphere, algorithm, Privacy::Pure { epsilon })
        })
    };
    let panel = Panel {
        title: "sphere, \"convex\"".to_owned(),
        x: Axis { label: "ε", log: true },
        log_y: false,
        measure: Measure::Accuracy,
        bars: Bars::StdDev,
        series: vec![curve(Algorithm::Noiseless), curve(Algorithm::Ours)],
    };
    let panels = vec![panel];
    let names = [Algorithm::Ours, Algorithm::Noiseless].map(Algorithm::title);
    let relation = Relation::CloseTo { tolerance: 0.5 };
    let claims = vec![Claim::between("not far", &panels, names[0], relation, names[1], Quantifier::Every)];
    let (id, title, description) = ("sphere", "Sphere", "A test.");
    let figure = Figure { id, title, description, columns: 1, panels, claims, repetitions: 3 };
    let (store, _) = run(folder.path(), &figure.cells(3), 2).unwrap();
    let documents = report::documents(&Results::collect(&figure, &store, 3), &store, 3).unwrap();
    let names: Vec<&str> = documents.iter().map(|document| document.name.as_str()).collect();
    assert_eq!(names, ["sphere-runs.csv", "sphere-summary.csv", "sphere.md", "sphere.svg", "sphere.png"]);
    let text = |i: usize| String::from_utf8(documents[i].content.clone()).unwrap();
    assert_eq!((text(0).lines().count(), text(1).lines().count()), (1 + 12, 1 + 4));
    assert!(text(0).contains("\"sphere, \"\"convex\"\"\""));
    assert!(
        text(2).contains("**holds** (2 of 2 comparisons") && text(2).contains("| ε | Noiseless | Ours |"),
        "{}",
        text(2)
    );
}

/// What an algorithm refuses is no result and no failure: the other runs go on.
#[test]
fn what_an_algorithm_refuses_has_no_result() {
    let setting = |algorithm| Setting {
        rows: Some(500),
        passes: 1,
        ..Setting::new(DataSet::Sphere, algorithm, Privacy::Pure { epsilon: 1.0 })
    };
    // Gaussian noise is not pure; with hardly a regulariser no noise in the objective suffices.
    let cells = [
        setting(Algorithm::SnowballSgd),
        setting(Algorithm::Ours),
        Setting { lambda: 1e-6, privacy: Privacy::Pure { epsilon: 0.05 }, ..setting(Algorithm::ObjPert) },
    ];
    let cells = cells.map(|setting| Cell::new(setting, 0));
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("runs.csv")).unwrap();
    let (cancelled, mut finished) = (AtomicBool::new(false), 0);
    let progress = &mut |progress: dp_reproduce::runner::Progress| finished = progress.finished;
    let mut runner = Runner { folder: folder.path(), threads: 1, cancelled: &cancelled, progress };
    let found = runner.run(&cells, &mut store).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    let reasons =
        |name: &str| found.iter().find(|refused| refused.run.contains(name)).map(|refused| &refused.reason[..]);
    assert!(reasons("snowball-sgd").is_some_and(|reason| reason.contains("delta")), "{found:?}");
    assert!(reasons("obj-pert").is_some_and(|reason| reason.contains("noise")), "{found:?}");
    assert_eq!(cells.map(|cell| store.get(&cell).is_some()), [false, true, false]);
    assert_eq!(finished, 3);
}
