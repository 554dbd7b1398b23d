use super::*;
use crate::algorithm::{Algorithm, Outcome};
use crate::cell::Cell;
use crate::dataset::DataSet;
use crate::figure::{Axis, Bars, Measure, Panel, Series};
use crate::setting::{Privacy, Setting};
use crate::store::Store;

fn setting(algorithm: Algorithm, epsilon: f64) -> Setting {
    Setting::new(DataSet::Sphere, algorithm, Privacy::Pure { epsilon })
}

fn figure(claims: Vec<Claim>) -> Figure {
    let xs = [0.1, 1.0];
    let series = |name: &str, algorithm| Series::new(name, &xs, |epsilon| setting(algorithm, epsilon));
    let panel = Panel {
        title: "panel".to_owned(),
        x: Axis { label: "epsilon", log: true },
        log_y: false,
        measure: Measure::Accuracy,
        bars: Bars::StdDev,
        series: vec![series("sound", Algorithm::Ours), series("printed", Algorithm::OursAsPublished)],
    };
    let (id, title, description) = ("test", "test", "test");
    Figure { id, title, description, columns: 1, panels: vec![panel], claims, repetitions: 2 }
}

/// Creates a store with accuracies `mean ± 0.01` over two repetitions: a standard error of 0.01.
fn store(folder: &std::path::Path, accuracies: [[f64; 2]; 2]) -> Store {
    let mut store = Store::open(&folder.join("runs.csv")).unwrap();
    for (algorithm, means) in [Algorithm::Ours, Algorithm::OursAsPublished].into_iter().zip(accuracies) {
        for (epsilon, mean) in [0.1, 1.0].into_iter().zip(means) {
            for (repetition, error) in [(0, 0.01), (1, -0.01)] {
                let outcome = Outcome { accuracy: mean + error, objective: 1.0, seconds: 1.0, ..Outcome::default() };
                store.append(&Cell::new(setting(algorithm, epsilon), repetition), outcome).unwrap();
            }
        }
    }
    store
}

fn judge(accuracies: [[f64; 2]; 2], relation: Relation, quantifier: Quantifier) -> Finding {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), accuracies);
    let figure = figure(Vec::new());
    let claim = Claim::between("printed is better", &figure.panels, "printed", relation, "sound", quantifier);
    assert_eq!(claim.comparisons.len(), 2);
    claim.judge(&Results::collect(&figure, &store, 2))
}

#[test]
fn every_comparison_or_some_or_none() {
    // Two standard errors of a difference are 2 · 0.01 · √2 = 0.0283.
    let cases = [
        ([[0.5, 0.5], [0.6, 0.6]], Quantifier::Every, Verdict::Holds, 2),
        ([[0.5, 0.5], [0.6, 0.52]], Quantifier::Every, Verdict::HoldsInPart, 1),
        ([[0.5, 0.5], [0.6, 0.52]], Quantifier::Some, Verdict::Holds, 1),
        ([[0.5, 0.5], [0.52, 0.4]], Quantifier::Every, Verdict::DoesNotHold, 0),
        ([[0.5, 0.5], [f64::NAN, f64::NAN]], Quantifier::Some, Verdict::DoesNotHold, 0),
    ];
    for (accuracies, quantifier, verdict, confirmed) in cases {
        let finding = judge(accuracies, Relation::MORE, quantifier);
        assert_eq!((finding.verdict, finding.confirmed, finding.compared), (verdict, confirmed, 2));
        assert!(finding.sentence.contains(&verdict.to_string()), "{}", finding.sentence);
    }
    let sentence = judge([[0.5, 0.5], [0.6, 0.52]], Relation::MORE, Quantifier::Every).sentence;
    let expected =
        "Most in favour: panel: printed at epsilon = 0.1000, 0.6000 ± 0.01000 against sound at epsilon = 0.1000";
    assert!(
        sentence.contains(expected) && sentence.contains("Most against: panel: printed at epsilon = 1.000"),
        "{sentence}"
    );
}

#[test]
fn factors_margins_and_tolerances() {
    let accuracies = [[0.2, 0.2], [0.6, 0.35]];
    let confirmed = |relation| judge(accuracies, relation, Quantifier::Every).confirmed;
    // Compared with twice the right side, the noise is 2 · 0.01 · √5 = 0.0447.
    assert_eq!(confirmed(Relation::MoreThan { factor: 2.0, margin: 0.0 }), 1);
    assert_eq!(confirmed(Relation::MoreThan { factor: 1.0, margin: 0.1 }), 2);
    assert_eq!(confirmed(Relation::AtMost { factor: 2.0, margin: 0.0 }), 1);
    assert_eq!(confirmed(Relation::AtMost { factor: 1.0, margin: 0.5 }), 2);
    assert_eq!(confirmed(Relation::CloseTo { tolerance: 0.13 }), 1);
    assert_eq!(confirmed(Relation::CloseTo { tolerance: 0.1 }), 0);
    // The noise, 0.028, exceeds the difference, 0.01: close to within 0.01, but 0.004 cannot be decided.
    let near = |relation| judge([[0.5, 0.5], [0.51, 0.51]], relation, Quantifier::Every).confirmed;
    assert_eq!(near(Relation::CloseTo { tolerance: 0.01 }), 2);
    assert_eq!(near(Relation::CloseTo { tolerance: 0.004 }), 0);
}

#[test]
fn what_was_not_run_is_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("runs.csv")).unwrap();
    let figure = figure(Vec::new());
    let claim = Claim::between("better", &figure.panels, "printed", Relation::MORE, "sound", Quantifier::Every);
    let finding = claim.judge(&Results::collect(&figure, &store, 2));
    assert_eq!((finding.verdict, finding.compared), (Verdict::NotMeasured, 0));
    let nobody = Claim::between("better", &figure.panels, "nobody", Relation::MORE, "sound", Quantifier::Every);
    assert!(nobody.comparisons.is_empty());
}

/// One of two points has no result: every possible comparison confirms the claim, but it holds only in part.
#[test]
fn what_has_no_result_confirms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("runs.csv")).unwrap();
    let runs = [(Algorithm::Ours, 0.1, 0.5), (Algorithm::Ours, 1.0, 0.5), (Algorithm::OursAsPublished, 0.1, 0.9)];
    for (algorithm, epsilon, accuracy) in runs {
        for repetition in [0, 1] {
            let outcome = Outcome { accuracy, objective: 1.0, seconds: 1.0, ..Outcome::default() };
            store.append(&Cell::new(setting(algorithm, epsilon), repetition), outcome).unwrap();
        }
    }
    let figure = figure(Vec::new());
    let judged = |quantifier| {
        let claim = Claim::between("better", &figure.panels, "printed", Relation::MORE, "sound", quantifier);
        claim.judge(&Results::collect(&figure, &store, 2))
    };
    let every = judged(Quantifier::Every);
    assert_eq!((every.verdict, every.confirmed, every.compared), (Verdict::HoldsInPart, 1, 1));
    assert!(every.sentence.ends_with("Comparisons without a result: 1."), "{}", every.sentence);
    assert_eq!(judged(Quantifier::Some).verdict, Verdict::Holds);
    let text = crate::report::markdown(&Results::collect(&figure, &store, 2));
    assert!(text.contains("| no result |"), "{text}");
}

/// Half of the way from 0.2 to 0.6 is 0.4; its noise at two standard errors of 0.01 each is 2 · 0.01 · √(1 + 1/4 + 1/4),
/// which is 0.0245.
#[test]
fn a_share_of_the_way_between_two_points() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), [[0.2, 0.6], [0.42, 0.43]]);
    let figure = figure(Vec::new());
    let judged = |point: usize, share: f64, start: Place| {
        let (left, right) = (Place { panel: 0, series: 1, point }, Place { panel: 0, series: 0, point: 1 });
        let comparisons = vec![Comparison { left, relation: Relation::PartOfTheWay { share, start }, right }];
        let claim = Claim { statement: "half-way".to_owned(), quantifier: Quantifier::Every, comparisons };
        claim.judge(&Results::collect(&figure, &store, 2))
    };
    let start = Place { panel: 0, series: 0, point: 0 };
    assert_eq!(judged(0, 0.5, start).verdict, Verdict::DoesNotHold);
    let finding = judged(1, 0.5, start);
    assert_eq!(finding.verdict, Verdict::Holds);
    let three =
        "0.4300 ± 0.01000 against sound at epsilon = 0.1000, 0.2000 ± 0.01000, and sound at epsilon = 1.000, 0.6000";
    assert!(finding.sentence.contains(three), "{}", finding.sentence);
    assert_eq!(judged(1, 0.6, start).verdict, Verdict::DoesNotHold);
    assert_eq!(judged(1, 0.5, Place { point: 9, ..start }).verdict, Verdict::NotMeasured);
}
