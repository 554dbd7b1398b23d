use std::collections::BTreeSet;

use super::*;
use crate::algorithm::{self, Algorithm};
use crate::cell::Experiment;
use crate::claim::Comparison;
use crate::figure::Measure;
use crate::setting::{Neighbours, Setting};

#[test]
fn every_figure_is_drawn_and_compared_from_points_that_exist() {
    for effort in [Effort::Full, Effort::Quick] {
        let figures = all(effort);
        let ids: BTreeSet<&str> = figures.iter().map(|figure| figure.id).collect();
        assert_eq!(ids.len(), figures.len());
        for figure in &figures {
            assert!(!figure.panels.is_empty() && figure.columns > 0 && figure.repetitions >= 3, "{}", figure.id);
            for panel in &figure.panels {
                let names: BTreeSet<&str> = panel.series.iter().map(|series| series.name.as_str()).collect();
                assert_eq!(names.len(), panel.series.len(), "{}: {}", figure.id, panel.title);
                for point in panel.series.iter().flat_map(|series| &series.points) {
                    assert!(point.x.is_finite() && !point.settings.is_empty());
                    assert!(!panel.x.log || point.x > 0.0);
                    for experiment in &point.settings {
                        let counts = match experiment {
                            Experiment::Model(setting) => [setting.passes, setting.batch_size],
                            Experiment::Ranker(setting) => [setting.updates, setting.batch_size],
                            Experiment::Network(setting) => [setting.iterations, setting.batches],
                        };
                        assert!(counts.iter().all(|&count| count > 0), "{}: {experiment}", figure.id);
                    }
                }
            }
            for claim in &figure.claims {
                for Comparison { left, right, .. } in &claim.comparisons {
                    for place in [left, right] {
                        let series = &figure.panels[place.panel].series[place.series];
                        assert!(place.point < series.points.len(), "{}: {}", figure.id, claim.statement);
                    }
                }
            }
        }
    }
}

/// Returns the figures of linear models.
fn of_the_dissertation() -> Vec<Figure> {
    let others = ["renyi-5-5", "renyi-5-6", "renyi-6"];
    let of_models =
        |figure: &Figure| figure.id.starts_with("renyi") && !others.iter().any(|other| figure.id.starts_with(other));
    all(Effort::Quick).into_iter().filter(of_models).collect()
}

fn settings(figure: &Figure) -> Vec<Setting> {
    figure.cells(1).iter().map(|cell| *cell.experiment.model().unwrap()).collect()
}

/// Each figure states its single neighbouring relation; delta is that of the chapters.
#[test]
fn a_figure_of_the_dissertation_compares_under_one_relation() {
    let figures = of_the_dissertation();
    let ids: Vec<&str> = figures.iter().map(|figure| figure.id).collect();
    let expected =
        ["renyi-table", "renyi-3-1", "renyi-3-2", "renyi-3-3", "renyi-3-4", "renyi-3-5", "renyi-4-1", "renyi-4-2"];
    assert_eq!(ids[..8], expected);
    assert_eq!(ids[8..], ["renyi-4-3", "renyi-4-4", "renyi-4-5", "renyi-5-1", "renyi-5-2", "renyi-5-3", "renyi-5-4"]);
    for figure in &figures {
        let cells = settings(figure);
        let replaced = |setting: &Setting| setting.neighbours == Neighbours::ReplaceOne;
        let all_replaced = cells.iter().all(replaced);
        assert!(all_replaced || !cells.iter().any(replaced), "{}", figure.id);
        let said = match (figure.description.contains("eplaced records"), all_replaced) {
            (true, true) => true,
            (false, false) => figure.description.contains("add-remove"),
            // The same runs as those of the previous figure.
            _ => figure.description.contains("runs of figure") || figure.description.contains("for replaced records"),
        };
        assert!(said, "{}: {}", figure.id, figure.description);
        for privacy in cells.iter().map(|setting| setting.privacy) {
            let delta = if figure.data_sets() == [crate::DataSet::KddCup] { 1e-12 } else { 1e-8 };
            assert!(privacy.epsilon().is_none() || privacy.delta(1000) == delta, "{}: {privacy}", figure.id);
        }
        assert!(!figure.claims.is_empty() && figure.claims.iter().all(|claim| !claim.comparisons.is_empty()));
    }
}

/// Every training in the dissertation's figures is planned for its budget and reaches most of it.
#[test]
fn settings_of_the_dissertation_are_planned_and_calibrated() {
    let mut seen = BTreeSet::new();
    for setting in of_the_dissertation().iter().flat_map(settings) {
        let Setting { algorithm, neighbours, l1, knobs, .. } = setting;
        let epsilon = setting.privacy.epsilon();
        if epsilon.is_some_and(|epsilon| epsilon != 0.4)
            || !seen.insert(format!("{algorithm} {neighbours:?} {l1} {knobs}"))
        {
            continue;
        }
        let setting = Setting { batch_size: setting.batch_size.min(1000), ..setting };
        let reached = algorithm::reached(&setting, 10_000, 10).unwrap_or_else(|error| panic!("{setting}: {error}"));
        match (reached, epsilon) {
            (Some((reached, delta)), Some(epsilon)) => {
                // Published noise may be far more than needed.
                let least = if algorithm.is_as_published() { 0.0 } else { 0.9 };
                assert!(reached <= epsilon && reached > least * epsilon, "{setting}: {reached}");
                assert!(delta <= setting.privacy.delta(10_000), "{setting}: {delta}");
            }
            (reached, None) => assert_eq!(reached.is_some(), algorithm == Algorithm::SparseMinimiser, "{setting}"),
            (None, Some(_)) => panic!("{setting} has no plan"),
        }
    }
    assert!(seen.len() > 40, "{}", seen.len());
}

/// Coverage is measured where the relevant attributes are known, on the runs of the figure of accuracies.
#[test]
fn selection_is_measured_on_the_runs_of_the_simulated_data() {
    let figures = all(Effort::Full);
    let keys = |id: &str| {
        let figure = figures.iter().find(|figure| figure.id == id).unwrap();
        let private = |cell: &crate::Cell| cell.experiment.model().unwrap().algorithm != Algorithm::TrueModel;
        figure.cells(2).iter().filter(|cell| private(cell)).map(crate::Cell::key).collect::<BTreeSet<_>>()
    };
    assert_eq!(keys("renyi-4-3"), keys("renyi-4-4"));
    let selection = figures.iter().find(|figure| figure.id == "renyi-4-4").unwrap();
    let measures: Vec<Measure> = selection.panels.iter().map(|panel| panel.measure).collect();
    assert_eq!(measures, [0, 1, 2, 3, 0, 1, 2, 3].map(|index| Measure::Coverage { index }));
    for (panel, top) in selection.panels.iter().zip([20, 25, 30, 40]) {
        assert!(panel.title.starts_with(&format!("K = {top},")), "{}", panel.title);
    }
}

#[test]
fn quick_runs_are_among_the_full_ones_or_smaller() {
    let cells = |effort| all(effort).iter().map(|figure| figure.cells(figure.repetitions).len()).sum::<usize>();
    assert!(5 * cells(Effort::Quick) < cells(Effort::Full), "{} {}", cells(Effort::Quick), cells(Effort::Full));
}

#[test]
fn figures_are_found_by_name() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let found = named(&names(&["bolt-on-5", "bolt-on-3"]), Effort::Quick).unwrap();
    assert_eq!(found.iter().map(|figure| figure.id).collect::<Vec<_>>(), ["bolt-on-3", "bolt-on-5"]);
    assert_eq!(named(&names(&["all"]), Effort::Quick).unwrap().len(), all(Effort::Quick).len());
    assert!(matches!(named(&names(&["bolt-on-99"]), Effort::Quick), Err(Error::UnknownFigure { .. })));
}
