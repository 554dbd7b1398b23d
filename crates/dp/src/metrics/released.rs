//! Metrics of private records, released with noise and a certificate of their own.
//!
//! ```text
//! counts[true class][bin of the score] + K,   K two-sided geometric of scale t       two classes
//! counts[true class][predicted class] + K                                             several classes
//! ```
//! All metrics are functions of these counts: they cost no more than the counts.
//!
//! # Privacy
//! A record is in one cell. Replacing it by a null record changes the counts by 1 in L1 norm, replacing it by another by 2. The
//! release is therefore pure differentially private for the evaluated records, with epsilon `1/t` or `2/t`. The model must
//! carry its own guarantee for its training records; for people in both files the two guarantees compose.
//!
//! # References
//! Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009, for the noise.

use dp_accountant::certificate::{Assumption, Certificate, Derivation, EpsilonDelta, Figures, NoiseMode};
use dp_accountant::guarantee::Unit;
use dp_accountant::{Adjacency, AdjacencyKind, DpEvent, Epsilon, EventLog, ReplaceOne, ZeroOut};
use dp_mechanisms::{Bounded, DiscreteLaplace, L1Sensitivity, Mechanism as _, PrivacyEvent as _, ReleaseRng};
use serde::{Deserialize, Serialize};

use super::winner;
use crate::canonical;
use crate::error::{Error, ErrorKind};
use crate::model::{Model, ModelKind};
use crate::sealed::{self, Content, to_value};
use crate::training::{TrainError, versions};

/// The format of the released counts.
pub const SCHEMA: &str = "dp.metrics/1";
/// The name of the derivation.
const RECIPE: &str = "noisy-counts";
/// Number of bins of scores on each side of 0.
const HALF: i32 = 24;
/// Largest width of a bin of logits, and of other scores.
const WIDTHS: (f64, f64) = (0.25, 0.125);
/// The largest `n ε` at which pairs of bins are merged: up to there, the noise of narrow bins costs the AUC more than ties
/// within wide bins do.
const FEW: f64 = 5000.0;
/// Largest number of classes.
pub const MOST_CLASSES: usize = 1000;

/// Counts of the evaluated records with noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoisyCounts {
    /// [`SCHEMA`].
    pub schema: String,
    /// SHA-256 of the evaluated model.
    pub model_sha256: String,
    /// The classes; of two classes, the positive one comes first.
    pub classes: Vec<String>,
    /// The edges of the bins of scores, for two classes: bin i holds scores above edge i - 1, up to edge i.
    pub edges: Vec<f64>,
    /// The index among the edges of the decision threshold, above which the positive class is predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<usize>,
    /// For each true class the noisy counts by bin, or by predicted class.
    pub counts: Vec<Vec<i64>>,
}

/// The derivation of the release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountsDerivation {
    /// `noisy-counts`.
    pub recipe: String,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of evaluated records, public.
    pub n: u64,
    /// Number of counts.
    pub cells: u64,
    /// t: scale of the noise on each count.
    pub scale: f64,
}

impl CountsDerivation {
    /// Returns the L1 sensitivity of the counts.
    fn sensitivity(&self) -> Result<f64, Error> {
        match self.relation {
            AdjacencyKind::ZeroOut => Ok(1.0),
            AdjacencyKind::ReplaceOne => Ok(2.0),
            _ => Err(unproved("counts have no proof under this neighbouring relation")),
        }
    }
}

fn unproved(message: &str) -> Error {
    Error::new(ErrorKind::Guarantee, message).at("certificate.derivation")
}

impl Derivation for CountsDerivation {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        if self.recipe != RECIPE {
            return Err(unproved("the recipe of metrics is `noisy-counts`"));
        }
        let invalid = |error: dp_mechanisms::Error| unproved(&error.to_string());
        // The event is the same under any relation.
        let sensitivity = L1Sensitivity::<ReplaceOne>::new(self.sensitivity()?).map_err(invalid)?;
        Ok(DiscreteLaplace::from_scale(sensitivity, self.scale).map_err(invalid)?.event())
    }

    fn adjacency(&self) -> AdjacencyKind {
        self.relation
    }

    fn assumptions(&self) -> Vec<Assumption> {
        vec![Assumption::PublicN]
    }
}

/// The file of released metrics.
pub type MetricsFile = sealed::File<NoisyCounts, CountsDerivation>;

impl Content for NoisyCounts {
    const SCHEMA: &'static str = SCHEMA;

    fn checked(&self) -> Result<(), Error> {
        self.check().map_err(|why| sealed::malformed(why, SCHEMA).at("model"))
    }
}

/// A metric with the standard deviation of its noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The metric, in [0, 1].
    pub value: f64,
    /// The standard error due to the noise, to first order.
    pub standard_error: f64,
}

/// The metrics that follow from the counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoisyMetrics {
    /// Share of records that are classified correctly; absent if the noise is larger than the counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Estimate>,
    /// For each class the share of its records that are classified correctly. Of two classes the first is the positive one, whose
    /// share is the true-positive rate.
    pub recalls: Vec<Option<Estimate>>,
    /// Area under the ROC curve, for two classes; scores of one bin count as tied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auc: Option<Estimate>,
}

/// Exact counts of the evaluated records, as confidential as the records.
#[derive(Debug, Clone)]
pub struct Counted {
    model_sha256: String,
    assumptions: Vec<Assumption>,
    classes: Vec<String>,
    edges: Vec<f64>,
    /// Width of a narrow bin.
    width: f64,
    threshold: Option<usize>,
    counts: Vec<Vec<i64>>,
}

impl Counted {
    /// Creates empty counts; `None` for a model that does not predict classes, or too many. The hash is that of the published model,
    /// from which the evaluated one differs in the threshold only.
    pub fn new(model: &Model, model_sha256: String) -> Option<Self> {
        let assumptions = model.implied_assumptions();
        match &model.kind {
            ModelKind::LinearClassifier { classes } => {
                let (edges, threshold) = edges(model);
                Some(Self {
                    model_sha256,
                    assumptions,
                    classes: vec![classes.positive.clone(), classes.negative.clone()],
                    counts: vec![vec![0; edges.len() + 1]; 2],
                    edges,
                    width: width(model),
                    threshold: Some(threshold),
                })
            }
            ModelKind::MultiClassLinear { classes } => Self::of_classes(classes.clone(), model_sha256, assumptions),
            ModelKind::LinearRegression { .. } => None,
        }
    }

    /// Creates empty counts by predicted class, under the assumptions of the evaluated model; `None` for too many classes.
    pub fn of_classes(classes: Vec<String>, model_sha256: String, assumptions: Vec<Assumption>) -> Option<Self> {
        let counts = (classes.len() <= MOST_CLASSES).then(|| vec![vec![0; classes.len()]; classes.len()])?;
        Some(Self { model_sha256, assumptions, classes, edges: Vec::new(), width: 0.0, threshold: None, counts })
    }

    /// Adds a record by its scores.
    pub fn push(&mut self, scores: &[f64], target: f64) {
        let (class, bin) = if self.threshold.is_some() {
            let score = scores.first().copied().unwrap_or_default();
            (usize::from(target <= 0.0), self.edges.iter().filter(|edge| score > **edge).count())
        } else {
            (target as usize, winner(scores))
        };
        if let Some(count) = self.counts.get_mut(class).and_then(|bins| bins.get_mut(bin)) {
            *count += 1;
        }
    }

    /// Merges pairs of bins, except pairs that the threshold separates.
    fn with_wide_bins(mut self) -> Self {
        let Some(threshold) = self.threshold else { return self };
        let decides = self.edges.get(threshold).copied();
        let width = self.width;
        let is_kept = |edge: f64| Some(edge) == decides || (edge / width).rem_euclid(2.0) == 0.0;
        let kept: Vec<bool> = self.edges.iter().map(|edge| is_kept(*edge)).collect();
        for counts in &mut self.counts {
            let mut joined = vec![counts.first().copied().unwrap_or_default()];
            for (count, kept) in counts.iter().skip(1).zip(&kept) {
                match joined.last_mut() {
                    Some(last) if !kept => *last += count,
                    _ => joined.push(*count),
                }
            }
            *counts = joined;
        }
        self.edges.retain(|edge| is_kept(*edge));
        self.threshold = decides.and_then(|decides| self.edges.iter().position(|edge| *edge == decides));
        self
    }

    /// Releases the counts of `n` records, null records included.
    ///
    /// # Privacy
    /// See the [module](self). With a generator that is not secret there is no guarantee, and the certificate says so.
    ///
    /// # Errors
    /// A relation without a public number of records, and an epsilon for which the noise is out of range.
    pub fn release(
        self,
        n: u64,
        epsilon: Epsilon,
        relation: AdjacencyKind,
        rng: &mut (impl ReleaseRng + ?Sized),
    ) -> Result<MetricsFile, TrainError> {
        match relation {
            AdjacencyKind::ReplaceOne => self.release_under::<ReplaceOne>(n, epsilon, rng),
            AdjacencyKind::ZeroOut => self.release_under::<ZeroOut>(n, epsilon, rng),
            relation => Err(TrainError::Relation { algorithm: RECIPE, relation }),
        }
    }

    fn release_under<A: Adjacency>(
        self,
        n: u64,
        epsilon: Epsilon,
        rng: &mut (impl ReleaseRng + ?Sized),
    ) -> Result<MetricsFile, TrainError> {
        let counted = if n as f64 * epsilon.get() <= FEW { self.with_wide_bins() } else { self };
        let Self { model_sha256, assumptions, classes, edges, threshold, counts, .. } = counted;
        let bins = counts.first().map_or(0, Vec::len);
        let cells = (bins * classes.len()) as u64;
        let mut derivation = CountsDerivation { recipe: RECIPE.to_owned(), relation: A::KIND, n, cells, scale: 1.0 };
        let sensitivity = L1Sensitivity::<A>::new(derivation.sensitivity()?)?;
        let noise = DiscreteLaplace::new(sensitivity, epsilon)?;
        derivation.scale = noise.scale();
        let mut log = EventLog::<A>::new();
        let flat = Bounded::with_proven_sensitivity(counts.concat(), sensitivity);
        let noisy = noise.release(flat, &mut log, rng)?.into_inner();
        let counts = NoisyCounts {
            schema: SCHEMA.to_owned(),
            model_sha256,
            classes,
            edges,
            threshold,
            counts: noisy.chunks(bins.max(1)).map(<[i64]>::to_vec).collect(),
        };
        let budget = EpsilonDelta { epsilon: epsilon.get(), delta: 0.0 };
        let reached = dp_accountant::bound::epsilon(&log.to_event(), dp_accountant::Delta::ZERO)?.value;
        let figures = Figures { requested: budget, reached: EpsilonDelta { epsilon: reached, delta: 0.0 } };
        // Of the records that are counted, whatever the model was trained on.
        let one_row = Some(Assumption::OneRowPerUnit).filter(|one| !assumptions.contains(one));
        let certificate = Certificate::of_log(&log, Unit::Record, derivation, NoiseMode::Exact, figures)
            .assuming(assumptions)
            .assuming(one_row)
            .of_model(canonical::sha256(&to_value(&counts)?), versions());
        Ok(MetricsFile::seal(counts, certificate)?)
    }
}

/// Returns the width of a narrow bin. No score is larger than the norm of the weights times that of rows, so that the bins of a
/// model of small weights are narrower.
fn width(model: &Model) -> f64 {
    let most = if model.has_probabilities() { WIDTHS.0 } else { WIDTHS.1 };
    let norm = model.weights.iter().fold(0.0f64, |norm, weight| norm.hypot(*weight));
    let largest = norm * model.encoder.row_bound();
    if largest > 0.0 { most.min(largest / f64::from(HALF)) } else { most }
}

/// Returns the edges of the bins of scores, and the position of the model's threshold among them.
fn edges(model: &Model) -> (Vec<f64>, usize) {
    let threshold = model.threshold.unwrap_or_default();
    let width = width(model);
    let mut edges: Vec<f64> = (-HALF..=HALF).map(|edge| f64::from(edge) * width).collect();
    let position = edges.iter().filter(|edge| **edge < threshold).count();
    if edges.get(position) != Some(&threshold) {
        edges.insert(position, threshold);
    }
    (edges, position)
}

impl NoisyCounts {
    /// Returns the metrics; `scale` is that of the noise on each count.
    pub fn metrics(&self, scale: f64) -> NoisyMetrics {
        // The variance of two-sided geometric noise: 2 q / (1 - q)² with q = e^(-1/t).
        let ratio = (-1.0 / scale).exp();
        let variance = 2.0 * ratio / (1.0 - ratio).powi(2);
        let is_right = |class: usize, bin: usize| match self.threshold {
            Some(threshold) => (bin > threshold) == (class == 0),
            None => bin == class,
        };
        let of_classes = |classes: &[usize]| {
            let cells = classes.iter().flat_map(|&class| {
                self.counts
                    .get(class)
                    .into_iter()
                    .flatten()
                    .enumerate()
                    .map(move |(bin, count)| (class, bin, *count as f64))
            });
            let (mut right, mut all, mut right_cells, mut cells_of_all) = (0.0, 0.0, 0.0, 0.0);
            for (class, bin, count) in cells {
                let is_right = is_right(class, bin);
                all += count;
                cells_of_all += 1.0;
                if is_right {
                    right += count;
                    right_cells += 1.0;
                }
            }
            share(right, all, right_cells, cells_of_all, variance)
        };
        let classes: Vec<usize> = (0..self.counts.len()).collect();
        NoisyMetrics {
            accuracy: of_classes(&classes),
            recalls: classes.iter().map(|&class| of_classes(&[class])).collect(),
            auc: self.threshold.and_then(|_| self.auc(variance)),
        }
    }

    fn auc(&self, variance: f64) -> Option<Estimate> {
        let [positive, negative] = self.counts.as_slice() else { return None };
        let sum = |counts: &[i64]| counts.iter().map(|count| *count as f64).sum::<f64>();
        let (positives, negatives) = (sum(positive), sum(negative));
        if !(positives > 0.0 && negatives > 0.0) {
            return None;
        }
        // The shares of the other class below each bin, half of the bin included.
        let below = |counts: &[i64], all: f64| {
            let mut seen = 0.0;
            let of = counts.iter().map(move |count| {
                let count = *count as f64;
                seen += count;
                (seen - 0.5 * count) / all
            });
            of.collect::<Vec<f64>>()
        };
        let (of_positives, of_negatives) = (below(positive, positives), below(negative, negatives));
        let auc: f64 =
            positive.iter().zip(&of_negatives).map(|(count, below)| *count as f64 * below).sum::<f64>() / positives;
        // The derivatives with respect to the counts: (below - auc) / P for a positive, (1 - below - auc) / N for a negative.
        let of_positive: f64 = of_negatives.iter().map(|below| ((below - auc) / positives).powi(2)).sum();
        let of_negative: f64 = of_positives.iter().map(|below| ((1.0 - below - auc) / negatives).powi(2)).sum();
        let standard_error = (variance * (of_positive + of_negative)).sqrt();
        Some(Estimate { value: auc.clamp(0.0, 1.0), standard_error })
    }

    /// Checks that the parts are consistent.
    fn check(&self) -> Result<(), &'static str> {
        if self.schema != SCHEMA {
            return Err("the metrics are of another format");
        }
        let bins = match self.threshold {
            Some(threshold) if threshold < self.edges.len() && self.classes.len() == 2 => self.edges.len() + 1,
            None if self.edges.is_empty() => self.classes.len(),
            _ => return Err("classes, edges and threshold do not fit each other"),
        };
        if !(2..=MOST_CLASSES).contains(&self.classes.len()) || self.counts.len() != self.classes.len() {
            return Err("classes and counts do not fit each other");
        }
        if !self.edges.is_sorted_by(|a, b| a < b) || self.counts.iter().any(|counts| counts.len() != bins) {
            return Err("edges and counts do not fit each other");
        }
        Ok(())
    }
}

/// Returns a share of noisy counts; `None` unless their sum is positive.
fn share(right: f64, all: f64, right_cells: f64, cells: f64, variance: f64) -> Option<Estimate> {
    (all > 0.0).then(|| {
        let value = right / all;
        // The derivatives with respect to the counts: (1 - value) / all where right, else -value / all.
        let squares = right_cells * (1.0 - value).powi(2) + (cells - right_cells) * value * value;
        Estimate { value: value.clamp(0.0, 1.0), standard_error: (variance * squares).sqrt() / all }
    })
}

impl MetricsFile {
    /// Returns the metrics.
    pub fn metrics(&self) -> NoisyMetrics {
        self.model.metrics(self.certificate.derivation.scale)
    }
}

#[cfg(test)]
mod tests {
    use core::f64::consts::SQRT_2;

    use dp_data::encode::{Encoder, Encoding};
    use dp_data::schema::Schema;
    use dp_losses::LossKind;
    use dp_mechanisms::SeededRng;
    use dp_mechanisms::rng::OsSeeded;
    use rand::RngExt as _;

    use super::*;
    use crate::metrics::{ScoredLabels, TwoByTwo};
    use crate::verify;

    fn model(label: &str, loss: LossKind, threshold: Option<f64>) -> Model {
        let schema =
            format!("label = {{ column = 'y', {label} }}\ncolumns.x = {{ type = 'numeric', min = 0, max = 1 }}");
        let encoder = Encoder::new(&Schema::parse("s", &schema).unwrap(), Encoding::UNIT_ROWS).unwrap();
        let weights = vec![8.0; encoder.dim() * loss.outputs() as usize];
        Model { threshold, ..Model::new(encoder, loss, weights).unwrap() }
    }

    fn two_classes(threshold: Option<f64>) -> Model {
        model("positive = '1', negative = '0'", LossKind::Logistic, threshold)
    }

    /// Scores with labels that they predict.
    fn drawn(n: usize, seed: u64) -> Vec<(f64, f64)> {
        let mut rng = SeededRng::new(seed);
        let mut one = || {
            let score: f64 = rng.random_range(-4.0..4.0);
            let positive = rng.random_range(0.0..1.0) < 1.0 / (1.0 + (-score).exp());
            (score, if positive { 1.0 } else { -1.0 })
        };
        (0..n).map(|_| one()).collect()
    }

    fn counted(model: &Model, records: &[(f64, f64)]) -> Counted {
        let mut counted = Counted::new(model, model.sha256().unwrap()).unwrap();
        records.iter().for_each(|&(score, target)| counted.push(&[score], target));
        counted
    }

    fn noisy(counted: &Counted) -> NoisyCounts {
        let Counted { classes, edges, threshold, counts, .. } = counted.clone();
        let (schema, model_sha256) = (SCHEMA.to_owned(), String::new());
        NoisyCounts { schema, model_sha256, classes, edges, threshold, counts }
    }

    /// Every record of a table is replaced by a null record, and by every kind of record: the counts change by at most 1 and 2.
    #[test]
    fn a_record_changes_the_counts_by_its_sensitivity() {
        let model = two_classes(Some(0.3));
        let records = drawn(40, 1);
        let base = counted(&model, &records).counts.concat();
        let distance = |other: &[(f64, f64)]| {
            let other = counted(&model, other).counts.concat();
            base.iter().zip(other).map(|(a, b)| a.abs_diff(b)).sum::<u64>()
        };
        let mut largest = [0, 0];
        for i in 0..records.len() {
            let mut removed = records.clone();
            removed.remove(i);
            largest[0] = largest[0].max(distance(&removed));
            for score in [-1e9, -0.2, 0.3, 0.31, 1e9] {
                for target in [1.0, -1.0] {
                    let mut replaced = records.clone();
                    replaced[i] = (score, target);
                    largest[1] = largest[1].max(distance(&replaced));
                }
            }
        }
        // The sensitivities of the certificate are these: neither less nor more.
        let derivation =
            |relation| CountsDerivation { recipe: RECIPE.to_owned(), relation, n: 40, cells: 1, scale: 1.0 };
        let stated =
            [AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne].map(|relation| derivation(relation).sensitivity());
        assert_eq!(stated, largest.map(|change| Ok(change as f64)));
    }

    #[test]
    fn wide_bins_keep_all_records_and_the_threshold() {
        for threshold in [None, Some(0.3), Some(0.25), Some(9.0), Some(-20.0)] {
            let model = two_classes(threshold);
            let narrow = counted(&model, &drawn(2000, 5));
            let wide = narrow.clone().with_wide_bins();
            assert!(wide.edges.len() <= narrow.edges.len() / 2 + 2, "{:?}", wide.edges);
            assert_eq!(noisy(&wide).check(), Ok(()));
            let value = |estimate: Option<Estimate>| estimate.unwrap().value;
            let (of_wide, of_narrow) = (noisy(&wide).metrics(1e-3), noisy(&narrow).metrics(1e-3));
            assert_eq!(value(of_wide.accuracy), value(of_narrow.accuracy));
            let recalls =
                |metrics: &NoisyMetrics| metrics.recalls.iter().map(|recall| value(*recall)).collect::<Vec<f64>>();
            assert_eq!(recalls(&of_wide), recalls(&of_narrow));
            assert!((value(of_wide.auc) - value(of_narrow.auc)).abs() < 5e-3);
            let sum = |counted: &Counted| counted.counts.concat().iter().sum::<i64>();
            assert_eq!((sum(&wide), sum(&narrow)), (2000, 2000));
        }
    }

    /// No score is larger than the norm of the weights, here 0.02: bins of the usual width would tie all scores of a sign.
    #[test]
    fn a_model_of_small_weights_has_narrow_bins() {
        let small = Model { weights: vec![0.02 / SQRT_2; 2], ..two_classes(None) };
        let records: Vec<_> = drawn(3000, 3).into_iter().map(|(score, target)| (0.005 * score, target)).collect();
        let mut exact = ScoredLabels::at(0.0);
        records.iter().for_each(|&(score, target)| exact.push(score, target > 0.0).unwrap());
        let auc = noisy(&counted(&small, &records)).metrics(1e-3).auc.unwrap().value;
        assert!((auc - exact.metrics().unwrap().auc.unwrap()).abs() < 2e-3, "{auc}");
    }

    #[test]
    fn without_noise_the_metrics_are_the_exact_ones() {
        for threshold in [None, Some(0.5), Some(0.77), Some(9.0), Some(-20.0)] {
            let model = two_classes(threshold);
            let mut records = drawn(3000, 2);
            // A score at the threshold is that of the negative class.
            records[0].0 = threshold.unwrap_or_default();
            let counted = counted(&model, &records);
            let metrics = noisy(&counted).metrics(1e-3);
            let mut exact = ScoredLabels::at(threshold.unwrap_or_default());
            // The scores of a bin are tied.
            let mut tied = ScoredLabels::at(0.0);
            for &(score, target) in &records {
                exact.push(score, target > 0.0).unwrap();
                let bin = counted.edges.iter().filter(|edge| score > **edge).count();
                tied.push(bin as f64, target > 0.0).unwrap();
            }
            let confusion: TwoByTwo = exact.metrics().unwrap().confusion;
            let value = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.value);
            assert_eq!(value(metrics.accuracy), confusion.accuracy());
            assert_eq!(value(metrics.recalls[0]), confusion.true_positive_rate());
            assert_eq!(value(metrics.recalls[1]), confusion.true_negative_rate());
            let auc = tied.metrics().unwrap().auc.unwrap();
            assert!((value(metrics.auc).unwrap() - auc).abs() < 1e-12);
            assert!((auc - exact.metrics().unwrap().auc.unwrap()).abs() < 2e-3);
            assert!(metrics.accuracy.unwrap().standard_error < 1e-9);
        }
        let several = model("classes = ['a', 'b', 'c']", "softmax:3".parse().unwrap(), None);
        let mut counted = Counted::new(&several, several.sha256().unwrap()).unwrap();
        for (winner, class) in [(0, 0), (0, 0), (1, 0), (1, 1), (2, 2), (0, 2)] {
            let mut scores = [0.0; 3];
            scores[winner] = 1.0;
            counted.push(&scores, f64::from(class));
        }
        assert_eq!(counted.counts, [[2, 1, 0], [0, 1, 0], [1, 0, 1]]);
        let metrics = noisy(&counted).metrics(1e-3);
        assert_eq!(metrics.accuracy.unwrap().value, 4.0 / 6.0);
        let recalls: Vec<f64> = metrics.recalls.iter().map(|recall| recall.unwrap().value).collect();
        assert_eq!((recalls, metrics.auc), (vec![2.0 / 3.0, 1.0, 0.5], None));
        let number = model("type = 'numeric', min = 0, max = 1", LossKind::Squared, None);
        assert!(Counted::new(&number, String::new()).is_none());
    }

    /// 2,000 releases: a sample standard deviation has a relative standard error of 0.016 to 0.025; seeds are fixed.
    #[test]
    fn standard_errors_are_those_of_repeated_releases() {
        let model = two_classes(None);
        let counted = counted(&model, &drawn(4000, 3));
        let epsilon = Epsilon::new(0.5).unwrap();
        let exact = noisy(&counted).metrics(1e-3);
        let of = |metrics: &NoisyMetrics| [metrics.accuracy, metrics.recalls[0], metrics.recalls[1], metrics.auc];
        let (mut sums, mut errors) = ([0.0; 4], [0.0; 4]);
        for seed in 0..2000 {
            let file =
                counted.clone().release(4000, epsilon, AdjacencyKind::ReplaceOne, &mut SeededRng::new(seed)).unwrap();
            let metrics = file.metrics();
            for (i, (found, exact)) in of(&metrics).into_iter().zip(of(&exact)).enumerate() {
                sums[i] += (found.unwrap().value - exact.unwrap().value).powi(2);
                errors[i] += found.unwrap().standard_error;
            }
        }
        for (sum, error) in sums.iter().zip(&errors) {
            let (found, stated) = ((sum / 2000.0).sqrt(), error / 2000.0);
            assert!((found / stated - 1.0).abs() < 0.1, "{found} {stated}");
        }
    }

    #[test]
    fn a_file_verifies_and_an_edited_one_does_not() {
        let model = two_classes(Some(-0.1));
        let epsilon = Epsilon::new(0.5).unwrap();
        for relation in [AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne] {
            let mut rng = OsSeeded::new().unwrap();
            let file = counted(&model, &drawn(500, 4)).release(500, epsilon, relation, &mut rng).unwrap();
            let reread = MetricsFile::parse(file.to_text().unwrap().as_bytes()).unwrap();
            assert_eq!(reread, file);
            let verified = verify::metrics(&file).unwrap();
            assert!(verified.epsilon <= 0.5 && verified.epsilon > 0.499 && verified.delta == 0.0);
            let edited = |edit: &dyn Fn(&mut MetricsFile)| {
                let mut file = file.clone();
                edit(&mut file);
                verify::metrics(&file).map_err(|error| error.code())
            };
            let guarantee = Err("verify.guarantee");
            assert_eq!(edited(&|file| file.certificate.derivation.scale *= 2.0).map(drop), guarantee);
            assert_eq!(edited(&|file| file.certificate.derivation.scale *= 0.5).map(drop), guarantee);
            assert_eq!(edited(&|file| file.certificate.derivation.cells = 4).map(drop), guarantee);
            assert_eq!(edited(&|file| file.certificate.derivation.recipe = "none".to_owned()).map(drop), guarantee);
            assert_eq!(
                edited(&|file| file.certificate.derivation.relation = AdjacencyKind::AddRemoveOne).map(drop),
                guarantee
            );
            assert_eq!(edited(&|file| file.certificate.unit = Unit::Column("patient".to_owned())).map(drop), guarantee);
            assert!(edited(&|file| file.certificate.noise = NoiseMode::Rounded).is_err());
            assert_eq!(edited(&|file| file.certificate.assumptions.clear()).map(drop), Err("verify.assumption"));
            // The counts are of rows.
            assert!(file.certificate.assumptions.contains(&Assumption::OneRowPerUnit));
            if let Some(reached) = &mut file.clone().certificate.reached {
                reached.epsilon *= 0.9;
                let reached = *reached;
                assert_eq!(edited(&|file| file.certificate.reached = Some(reached)).map(drop), guarantee);
            }
        }
        // Noise from a seed can be drawn again.
        let seeded =
            counted(&model, &drawn(500, 4)).release(500, epsilon, AdjacencyKind::ZeroOut, &mut SeededRng::new(1));
        assert_eq!(verify::metrics(&seeded.unwrap()).unwrap_err().code(), "verify.not_private");
        assert!(counted(&model, &[]).release(1, epsilon, AdjacencyKind::AddRemoveOne, &mut SeededRng::new(1)).is_err());
    }

    #[test]
    fn inconsistent_counts_are_refused() {
        let model = two_classes(None);
        let mut rng = SeededRng::new(1);
        let file =
            counted(&model, &drawn(50, 4)).release(50, Epsilon::new(1.0).unwrap(), AdjacencyKind::ZeroOut, &mut rng);
        let counts = file.unwrap().model;
        assert_eq!(counts.check(), Ok(()));
        for bad in [
            NoisyCounts { threshold: Some(99), ..counts.clone() },
            NoisyCounts { threshold: None, ..counts.clone() },
            NoisyCounts { edges: vec![1.0, 0.0], ..counts.clone() },
            NoisyCounts { counts: vec![vec![1; 3]; 2], ..counts.clone() },
            NoisyCounts { classes: vec!["a".to_owned()], ..counts.clone() },
            NoisyCounts { schema: "dp.model/1".to_owned(), ..counts.clone() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        // Noise larger than the counts leaves no metrics.
        let negative = NoisyCounts { counts: vec![vec![-1; counts.edges.len() + 1]; 2], ..counts };
        assert_eq!((negative.metrics(1.0).accuracy, negative.metrics(1.0).auc), (None, None));
    }
}
