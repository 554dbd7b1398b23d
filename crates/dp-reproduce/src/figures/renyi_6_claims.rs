//! Claims of chapter 6 of the dissertation about its figures, as comparisons of points.

use super::renyi_6::{MEASURES, PRIV_BR, RANDOM, SHAPES, beside, clipped, plain, priv_br_free};
use crate::claim::{Claim, Comparison, Quantifier, Relation};
use crate::dataset::DataSet;
use crate::figure::{Measure, Panel};
use crate::ranker::Loss;
use crate::results::Place;

/// The iteration after which rankers without privacy have converged, and the last iteration.
const EARLY: f64 = 100.0;
const LAST: f64 = 400.0;
/// Values this close count as converged.
const CONVERGED: f64 = 0.01;
/// Values this close look equal in the figures.
const CLOSE: f64 = 0.02;

/// Returns the place of a curve's point, by name and x.
fn place(panels: &[Panel], panel: usize, name: &str, x: f64) -> Option<Place> {
    let series = panels.get(panel)?.series.iter().position(|series| series.name == name)?;
    let point = panels[panel].series[series].points.iter().position(|point| point.x == x)?;
    Some(Place { panel, series, point })
}

/// Panels of figures 6.1 and 6.2: for each measure a row for networks and one for linear rankers; a column per noise level.
struct Courses<'p> {
    panels: &'p [Panel],
    columns: usize,
}

/// A name and an iteration.
type At<'n> = (&'n str, f64);

impl Courses<'_> {
    /// Returns the number of a panel.
    fn panel(&self, measure: usize, linear: bool, column: usize) -> usize {
        (2 * measure + usize::from(linear)) * self.columns + column
    }

    /// Returns the numbers of all panels of networks or of linear rankers.
    fn all(&self, linear: bool) -> Vec<usize> {
        let columns = 0..self.columns;
        columns
            .flat_map(|column| (0..MEASURES.len()).map(move |measure| (measure, column)))
            .map(|(measure, column)| self.panel(measure, linear, column))
            .collect()
    }

    /// Returns comparisons of points of two curves in each of some panels.
    fn compare(&self, panels: &[usize], left: At<'_>, relation: Relation, right: At<'_>) -> Vec<Comparison> {
        let comparison = |&panel: &usize| {
            let (left, right) =
                (place(self.panels, panel, left.0, left.1)?, place(self.panels, panel, right.0, right.1)?);
            Some(Comparison { left, relation, right })
        };
        panels.iter().filter_map(comparison).collect()
    }

    /// Claims that after all iterations `left` is better than each of `others`.
    fn better(&self, panels: &[usize], left: &str, others: &[String]) -> Vec<Comparison> {
        let against = |other: &String| self.compare(panels, (left, LAST), Relation::MORE, (other, LAST));
        others.iter().flat_map(against).collect()
    }

    /// Claims that after all iterations each of `names` has come half of the way from a random order to `goal`.
    fn half_way(&self, panels: &[usize], names: &[String], goal: &str) -> Vec<Comparison> {
        let comparison = |name: &String, panel: usize| {
            let at = |name: &str| place(self.panels, panel, name, LAST);
            let relation = Relation::PartOfTheWay { share: 0.5, start: at(RANDOM)? };
            Some(Comparison { left: at(name)?, relation, right: at(goal)? })
        };
        names.iter().flat_map(|name| panels.iter().filter_map(move |&panel| comparison(name, panel))).collect()
    }
}

fn every(statement: impl Into<String>, comparisons: Vec<Comparison>) -> Claim {
    Claim { statement: statement.into(), quantifier: Quantifier::Every, comparisons }
}

/// Returns the claims of figures 6.1 and 6.2.
pub(super) fn of_courses(panels: &[Panel], columns: usize, data: DataSet) -> Vec<Claim> {
    let courses = Courses { panels, columns };
    let networks = courses.all(false);
    let bayes_rank = plain(Loss::BayesRank);
    let first_column: Vec<usize> = (0..MEASURES.len()).map(|measure| courses.panel(measure, false, 0)).collect();
    let last_column: Vec<usize> = (0..MEASURES.len()).map(|m| courses.panel(m, false, columns - 1)).collect();
    let settled = |name: &String| {
        let relation = Relation::CloseTo { tolerance: CONVERGED };
        courses.compare(&first_column, (name, EARLY), relation, (name, LAST))
    };
    let rising = |name: &String| courses.compare(&networks, (name, LAST), Relation::MORE, (name, EARLY));
    let [plain_names, clipped_names] = [Loss::ALL.map(plain), Loss::ALL.map(|loss| clipped(loss)[0].clone())];
    let private: Vec<String> = [PRIV_BR.to_owned()].into_iter().chain(clipped_names).collect();
    let less_noise = (0..MEASURES.len()).flat_map(|measure| (1..columns).map(move |column| (measure, column)));
    let less_noise = less_noise.filter_map(|(measure, column)| {
        let at = |column| place(panels, courses.panel(measure, false, column), PRIV_BR, LAST);
        Some(Comparison { left: at(column - 1)?, relation: Relation::MORE, right: at(column)? })
    });
    // The panel with the most noise, at NDCG@8.
    let high_privacy = &last_column[MEASURES.len() - 1..];
    let drop = [Relation::MoreThan { factor: 1.0, margin: 0.05 }, Relation::AtMost { factor: 1.0, margin: 0.15 }];
    let drop = drop.map(|relation| courses.compare(high_privacy, (&bayes_rank, LAST), relation, (PRIV_BR, LAST)));
    let mut claims = vec![
        every(
            "Non-private algorithms converge in about 100 iterations (within 0.01 of iteration 400)",
            plain_names.iter().flat_map(settled).collect(),
        ),
        every(
            "Private algorithms converge at a lower speed (better after 400 iterations than after 100)",
            private.iter().flat_map(rising).collect(),
        ),
        every(
            "Smaller noise is closer to the non-private algorithms: PrivBR is better with less",
            less_noise.collect(),
        ),
        every(
            "There is still a gap between PrivBR and the non-private BayesRank",
            courses.compare(&networks, (&bayes_rank, LAST), Relation::MORE, (PRIV_BR, LAST)),
        ),
        every(
            "At high privacy the drop in NDCG@8 is about 0.1 (with the most noise between 0.05 and 0.15)",
            drop.concat(),
        ),
    ];
    for loss in Loss::ALL {
        let title = loss.title();
        claims.push(every(
            format!("PrivBR is better than {title} with clipped gradients"),
            courses.better(&networks, PRIV_BR, &clipped(loss)),
        ));
        claims.push(every(
            format!("The same of linear rankers: PrivBR is better than {title} with clipped gradients"),
            courses.better(&courses.all(true), PRIV_BR, &clipped(loss)),
        ));
    }
    for loss in Loss::ALL {
        let statement = format!(
            "{} with clipped gradients is still reasonable (half-way from a random order to the same without privacy)",
            loss.title()
        );
        claims.push(every(statement, courses.half_way(&networks, &clipped(loss), &plain(loss))));
    }
    claims.push(every(
        "Spectral normalisation makes PrivBR better",
        courses.better(&networks, PRIV_BR, &[priv_br_free()]),
    ));
    let of_clipped = Loss::ALL.iter().flat_map(|&loss| {
        let [normalised, free] = clipped(loss);
        courses.better(&networks, &normalised, &[free])
    });
    claims.push(every("Spectral normalisation makes rankers with clipped gradients better", of_clipped.collect()));
    if data == DataSet::Mq2008 {
        let close = Relation::CloseTo { tolerance: CLOSE };
        // NDCG@1 and @2.
        let panels = &first_column[1..3];
        claims.push(every(
            "With the smallest noise PrivBR is close to the non-private BayesRank at NDCG@1 and @2 (within 0.02)",
            courses.compare(panels, (PRIV_BR, LAST), close, (&bayes_rank, LAST)),
        ));
    }
    claims
}

/// Returns the chapter's claims on losses and on the decrease, at equal budgets.
pub(super) fn of_budgets(panels: &[Panel]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for shape in SHAPES {
        let name = |loss| beside(shape, loss);
        for other in [Loss::ListNet, Loss::ListMle] {
            let statement = format!("{} is better than {} at the same ε", name(Loss::BayesRank), name(other));
            let (left, right) = (name(Loss::BayesRank), name(other));
            claims.push(Claim::between(&statement, panels, &left, Relation::MORE, &right, Quantifier::Every));
        }
        let (private, public) = (name(Loss::BayesRank), format!("{}, not private", name(Loss::BayesRank)));
        let statement = format!("{private} loses about 0.1 in NDCG@8 at ε below 1 (more than 0.05)");
        let relation = Relation::MoreThan { factor: 1.0, margin: 0.05 };
        let mut drop = Claim::between(&statement, panels, &public, relation, &private, Quantifier::Every);
        drop.comparisons.retain(|Comparison { left, .. }| {
            let panel = &panels[left.panel];
            panel.measure == Measure::Ndcg { index: 3 } && panel.series[left.series].points[left.point].x < 1.0
        });
        claims.push(drop);
    }
    claims
}
