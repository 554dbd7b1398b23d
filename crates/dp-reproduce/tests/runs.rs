//! End-to-end runs on generated data: determinism, resuming, cancelling, the files of a figure.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use dp_reproduce::claim::{Quantifier, Relation};
use dp_reproduce::figure::{Axis, Bars, Figure, Measure, Panel, Series};
use dp_reproduce::ranker::{Clipping, Loss, Method, Noise, Shape};
use dp_reproduce::{
    Algorithm, Cell, Claim, DataSet, Error, Knobs, Neighbours, Privacy, RankerSetting, Results, Runner, Setting, Step,
    Store, Tuning, report,
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
        // Batches are sampled, passes are read completely.
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
    drop(resumed);
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
    assert_eq!(names[..4], ["sphere-runs.csv", "sphere-summary.csv", "sphere.md", "sphere.svg"]);
    assert_eq!(names[4..], if cfg!(feature = "png") { vec!["sphere.png"] } else { vec![] });
    let text = |i: usize| String::from_utf8(documents[i].content.clone()).unwrap();
    assert_eq!((text(0).lines().count(), text(1).lines().count()), (1 + 12, 1 + 4));
    assert!(text(0).contains("\"sphere, \"\"convex\"\"\""));
    assert!(
        text(2).contains("**holds** (2 of 2 comparisons") && text(2).contains("| ε | Noiseless | Ours |"),
        "{}",
        text(2)
    );
}

/// A refusal by an algorithm is neither a result nor a failure: the other runs continue.
#[test]
fn what_an_algorithm_refuses_has_no_result() {
    let setting = |algorithm| Setting {
        rows: Some(500),
        passes: 1,
        ..Setting::new(DataSet::Sphere, algorithm, Privacy::Pure { epsilon: 1.0 })
    };
    // Gaussian noise is not pure; with almost no regulariser, no noise in the objective suffices.
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

/// Returns rankers of synthetic lists: every kind of training, at small size.
fn rankers() -> Vec<RankerSetting> {
    let data = DataSet::MadeUpLists { lists: 100 };
    let small = Shape::Network { hidden: 6 };
    let noisy = |loss, noise, clipping| Method::Private { loss, noise, clipping };
    let of = |shape, method| RankerSetting { updates: 60, after: 60, ..RankerSetting::new(data, shape, method) };
    let mut settings = vec![of(Shape::Linear, Method::RandomOrder), of(Shape::Linear, Method::LambdaRank)];
    for shape in [Shape::Linear, small] {
        for loss in Loss::ALL {
            settings.push(of(shape, Method::NonPrivate(loss)));
            settings.push(of(shape, noisy(loss, Noise::Multiplier(2.0), Clipping::At(0.1))));
        }
        settings.push(of(shape, noisy(Loss::BayesRank, Noise::Multiplier(1.0), Clipping::HalfSensitivity)));
        settings.push(of(shape, noisy(Loss::BayesRank, Noise::Epsilon(2.0), Clipping::At(0.1))));
    }
    settings.push(RankerSetting { normalised: true, ..settings[settings.len() - 2] });
    settings
}

/// Returns each ranker after 10, 30 and 60 of its updates, twice.
fn points() -> Vec<Cell> {
    let after = |setting: RankerSetting| [10, 30, 60].map(|after| RankerSetting { after, ..setting });
    rankers().into_iter().flat_map(after).flat_map(|setting| [0, 1].map(|r| Cell::new(setting, r))).collect()
}

fn ranked(store: &Store, cell: &Cell) -> [f64; 5] {
    let ranked = store.get(cell).unwrap().ranked.unwrap();
    [ranked.map, ranked.ndcg[0], ranked.ndcg[1], ranked.ndcg[2], ranked.ndcg[3]]
}

#[test]
fn points_of_a_course_are_measured_together_and_the_same_as_alone() {
    let (together, alone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let cells = points();
    let (all, count) = run(together.path(), &cells, 3).unwrap();
    assert_eq!(count, cells.len() as u64);
    // A point does not depend on the other measurements of the course or their order.
    let mut last: Vec<Cell> =
        cells.iter().filter(|cell| cell.experiment.ranker().unwrap().after != 10).copied().collect();
    last.reverse();
    let (some, count) = run(alone.path(), &last, 1).unwrap();
    assert_eq!(count, last.len() as u64);
    for cell in &last {
        assert_eq!(ranked(&all, cell), ranked(&some, cell), "{cell}");
    }
    for cell in &cells {
        let (outcome, ranked) = (all.get(cell).unwrap(), ranked(&all, cell));
        assert!(ranked.iter().all(|value| (0.0..=1.0).contains(value)) && ranked[0] > 0.1, "{cell}: {ranked:?}");
        assert!(outcome.accuracy.is_nan() && outcome.coverage.is_none() && outcome.seconds >= 0.0);
    }
    // Measurements change along a course, except for a random order; repetitions differ.
    for course in cells.chunks_exact(6) {
        let values: Vec<[f64; 5]> = course.iter().map(|cell| ranked(&all, cell)).collect();
        let random = course[0].experiment.ranker().unwrap().method == Method::RandomOrder;
        assert_eq!(values[0] == values[4] && values[1] == values[5], random, "{}", course[0]);
        assert_ne!(values[4], values[5], "{}", course[0]);
    }
    // Training without privacy is far better than a random order.
    let map = |at: usize| ranked(&all, &cells[6 * at + 4])[0];
    assert!(map(1) > map(0) + 0.1 && map(2) > map(0) + 0.1, "{} {} {}", map(0), map(1), map(2));
}

#[test]
fn a_course_that_was_torn_is_trained_again_for_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let cells: Vec<Cell> = points().into_iter().skip(6).take(6).collect();
    let (whole, _) = run(folder.path(), &cells, 1).unwrap();
    let expected: Vec<[f64; 5]> = cells.iter().map(|cell| ranked(&whole, cell)).collect();
    drop(whole);
    let path = folder.path().join("runs.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 9]).unwrap();
    let (resumed, done) = run(folder.path(), &cells, 1).unwrap();
    assert_eq!(done, 1);
    for (cell, expected) in cells.iter().zip(expected) {
        assert_eq!(expected, ranked(&resumed, cell));
    }
}

#[test]
fn rankers_that_fail_are_named_and_those_that_no_noise_allows_have_no_result() {
    let base = rankers()[3];
    let noisy = |noise| Method::Private { loss: Loss::ListNet, noise, clipping: Clipping::At(0.1) };
    let folder = tempfile::tempdir().unwrap();
    let broken = [
        RankerSetting { after: 61, ..base },
        RankerSetting { updates: 0, after: 0, ..base },
        RankerSetting { data: DataSet::Sphere, ..base },
        RankerSetting { method: noisy(Noise::Epsilon(-1.0)), ..base },
        RankerSetting { shape: Shape::Network { hidden: 0 }, ..base },
    ];
    for setting in broken {
        let error = run(folder.path(), &[Cell::new(setting, 0)], 1).unwrap_err();
        assert!(matches!(error, Error::Ranking { .. } | Error::Data { .. }), "{setting}: {error}");
    }
    let model = Setting::new(DataSet::MadeUpLists { lists: 10 }, Algorithm::Ours, Privacy::Pure { epsilon: 1.0 });
    assert!(matches!(run(folder.path(), &[Cell::new(model, 0)], 1), Err(Error::Data { .. })));
    // A step of 0 is rejected before any grade is read.
    let refused = Cell::new(RankerSetting { step: 0.0, ..base }, 0);
    let (store, finished) = run(folder.path(), &[refused], 1).unwrap();
    assert_eq!((store.get(&refused), finished), (None, 1));
}
