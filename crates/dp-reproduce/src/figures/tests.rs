use std::collections::BTreeSet;

use super::*;
use crate::claim::Comparison;

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
                    assert!(point.settings.iter().all(|setting| setting.passes > 0 && setting.batch_size > 0));
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
