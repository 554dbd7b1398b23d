//! A perturbed objective around a released centre: the certificate of its minimiser, the cost of its release, and the release.

use dp_accountant::{DpEvent, EventLog, MarginLoss, ZeroOut, objective_perturbation};
use dp_data::{Block, Order, RowSource};
use dp_losses::{L2, Model, ModelVisitor, Real, ScaledSteps};
use dp_mechanisms::grid::{Grid, MAX_BITS};
use dp_mechanisms::{Bounded, L2Sensitivity, ReleaseRng, Released};
use nalgebra::convert;

use super::{ObjPert, RECIPE};
use crate::engine::minimise::{CHUNK, Certificate, Risk};
use crate::engine::{Control, RowBatches, minimise};
use crate::error::{Error, positive};
use crate::growth::Rounding;
use crate::recipes::linear::size;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::problem::Problem;

/// Minimum and maximum of the release's noise multiplier over that of the objective, for Gaussian noise. The minimum leaves
/// the objective five sixths of its noise multiplier; the maximum costs a thousandth of ε.
const RELEASE_MULTIPLIERS: [f64; 2] = [1.5, 30.0];

/// The same for noise without delta, whose costs add up: half of ε at the minimum, a thousandth at the maximum.
const PURE_RELEASE_MULTIPLIERS: [f64; 2] = [2.0, 1000.0];

/// The standard deviation, in a prediction, of negligible noise on the minimiser: the multiplier is at most the one with this
/// value. For regression it is relative to the targets' bound; for classification a prediction is a margin or a score of order
/// one.
pub(crate) const UNSEEN: f64 = 0.02;

/// Ratio of the noise on the minimiser, at the largest multiplier, to the least effect of the objective's noise on a weight,
/// `σ/(βn)`. No smaller tolerance is used, since it takes longer to reach and changes nothing.
const FINE_ENOUGH: f64 = 0.01;

/// Radius of the ball onto which the centre is projected, for rows of norm 1: noisy least squares has no bound.
const CENTRE_RADIUS: f64 = 1000.0;

/// Ratio of the tolerance to the least that can be certified for the expected noise: a margin for larger noise.
const ROOM: f64 = 8.0;

/// Releases of one [`Objective::release`]: the linear term and the minimiser.
pub(in crate::recipes) const RELEASES: u64 = 2;

/// The public numbers of `Σ ℓ(⟨w, x_i⟩, y_i) + (Λ/2) ‖w - c‖² + ⟨b, w⟩`.
#[derive(Debug, Clone, Copy)]
pub(in crate::recipes) struct Objective<'o> {
    pub(in crate::recipes) recipe: &'o ObjPert,
    pub(in crate::recipes) problem: &'o Problem,
    /// Λ.
    pub(in crate::recipes) regularization: f64,
    /// The law and scale of `b`.
    pub(in crate::recipes) noise: NoiseScale,
    /// True if there is a centre other than 0.
    pub(in crate::recipes) centred: bool,
    pub(in crate::recipes) certification: Certification,
}

/// The method that certifies a point near the minimiser, which determines the tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Certification {
    /// A plainly summed gradient, whose error grows with the number of records: the meaning of certificates without this
    /// field.
    #[default]
    Plain,
    /// A [`CompensatedGradient`](dp_losses::CompensatedGradient).
    Compensated,
}

#[cfg(feature = "serde")]
impl Certification {
    /// Returns whether a certificate may omit this field.
    pub(in crate::recipes) fn is_plain(&self) -> bool {
        *self == Self::Plain
    }
}

impl Objective<'_> {
    /// Returns the risk: the numbers that certify the minimiser of the mean objective with a linear term of this norm.
    fn risk(&self, linear_norm: f64) -> Result<Risk, Error> {
        let Self { recipe, problem, .. } = *self;
        let n = problem.n as f64;
        let strong_convexity = positive("regularization", self.regularization)? / n;
        let domain = problem.domain(None)?;
        let constants = recipe.loss.constants(L2::new(strong_convexity)?, &domain);
        let value_at_zero = match recipe.margin_loss()? {
            MarginLoss::Logistic => core::f64::consts::LN_2,
            // At margin 0 the hinge is 1 and its smooth form at most 1 + h/4.
            MarginLoss::HuberSvm { width } => 1.0 + width,
            MarginLoss::Softmax { classes } => f64::from(classes).ln(),
            _ => recipe.target_bound,
        };
        self.noise.check()?;
        let grid = Grid::new(self.noise.scale(), MAX_BITS)?;
        let parameters = problem.parameters();
        // Half a step for each coordinate; the second term is the rounding of the quotient by n and of the centre.
        let drawn = 0.5 * grid.step() * (parameters as f64).sqrt() / n;
        Ok(Risk {
            n: problem.n,
            parameters,
            outputs: recipe.loss.outputs().into(),
            smoothness: constants.smoothness,
            strong_convexity,
            data_lipschitz: constants.data_lipschitz,
            value_at_zero: value_at_zero * (1.0 + 1e-12),
            condition: recipe.loss.condition(&domain),
            linear_norm,
            linear_error: drawn + 4.0 * f64::EPSILON * linear_norm,
        })
    }

    /// Returns R, the bound on the centre's norm.
    pub(in crate::recipes) fn centre_radius(&self) -> f64 {
        if self.centred { CENTRE_RADIUS / self.recipe.row_norm } else { 0.0 }
    }

    /// Bounds the norm of the linear term of the *mean* objective for any centre, `(‖b‖ + ΛR)/n`, which fails with probability
    /// below `e^-32`.
    pub(in crate::recipes) fn largest_linear_norm(&self) -> f64 {
        let noise = self.noise.largest_norm(self.problem.parameters());
        (noise + self.regularization * self.centre_radius()) / self.problem.n as f64
    }

    /// Returns τ, the certified distance from the minimiser.
    pub(in crate::recipes) fn tolerance(&self) -> Result<f64, Error> {
        // Longer noise has no certificate and is refused before any record is read.
        self.tolerance_of(&self.risk(self.largest_linear_norm())?)
    }

    fn tolerance_of(&self, risk: &Risk) -> Result<f64, Error> {
        let least = match self.certification {
            Certification::Plain => ROOM * least_tolerance_of_plain_sums(risk),
            Certification::Compensated => {
                let [_, most] = self.release_multipliers();
                let fine_enough = FINE_ENOUGH / (2.0 * most * risk.smoothness * self.problem.n as f64);
                (ROOM * Certificate::least_tolerance(risk)?).max(fine_enough)
            }
        };
        // A gradient of norm γ in the mean is nγ in the sum, whose curvature is at least Λ.
        let asked = self.recipe.gradient_tolerance.map(|gamma| gamma * self.problem.n as f64 / self.regularization);
        Ok(asked.map_or(least, |asked| asked.max(least)))
    }

    /// Returns the event of releasing the exact minimiser, for a record's presence.
    fn minimiser_event(&self) -> Result<DpEvent, Error> {
        let recipe = self.recipe;
        // Rows of norm X with weights w are equivalent to rows of norm 1 with weights X w.
        let inverse = recipe.row_norm.recip();
        let down = 1.0 - 4.0 * f64::EPSILON;
        let scale = self.noise.scale() * inverse * down;
        let regularization = positive("regularization", self.regularization)? * inverse * inverse * down;
        let loss = recipe.margin_loss()?;
        Ok(if self.noise.is_pure() {
            DpEvent::PureDp { epsilon: objective_perturbation::pure_epsilon(scale, regularization, loss)? }
        } else {
            DpEvent::ObjectivePerturbation { std_dev: scale, regularization, loss }
        })
    }

    /// Returns the events of a release for a record's presence: of the exact minimiser, and of the noise that hides the
    /// solver's error.
    pub(in crate::recipes) fn events(&self, release: NoiseScale) -> Result<[DpEvent; 2], Error> {
        self.noise.check()?;
        release.check()?;
        if release.is_pure() != self.noise.is_pure() {
            let why = "the noise on the minimiser has the law of that in the objective";
            return Err(Error::NotProved { recipe: RECIPE, why });
        }
        let parameters = self.problem.parameters();
        Ok([self.minimiser_event()?, release.plain_event(2.0 * self.tolerance()?, parameters)])
    }

    /// Returns the minimum and maximum of the release's noise multiplier over that of the objective.
    fn release_multipliers(&self) -> [f64; 2] {
        if self.noise.is_pure() { PURE_RELEASE_MULTIPLIERS } else { RELEASE_MULTIPLIERS }
    }

    /// Returns the unit of noise on a prediction: the targets' bound for regression, 1 for margins and scores.
    fn unit_of_predictions(&self) -> f64 {
        if self.recipe.loss.classes().is_some() { 1.0 } else { self.recipe.target_bound }
    }

    /// Returns the standard deviation of the release's noise in a prediction, at multiplier 1 and this tolerance, on a row of
    /// the largest norm, which cancels.
    fn in_a_prediction(&self, tolerance: f64) -> f64 {
        self.noise.coordinate_std_dev(self.problem.parameters()) * 2.0 * tolerance
    }

    /// Returns the multiplier for this tolerance: the one that minimises the error of a weight, if its noise is then
    /// negligible.
    ///
    /// # Formula
    /// ```text
    /// m = (p/(2τ β n))^{2/3} without delta,   (p/(2τ β n))^{1/2} with it,   between least and most
    /// ```
    /// The noise in the objective moves a weight by at least `A = σ p/(β n)`, in root mean square over the directions, whose
    /// curvatures add up to at most `β n`. A release at `m` raises that by a fraction `1/m` (pure) or `1/(2m²)`, and adds
    /// noise of `2τ σ m`: the sum of squares is least at `m³`, or `m⁴`, `= (A/(2τ σ))²`.
    fn release_multiplier(&self, tolerance: f64, smoothness: f64) -> f64 {
        let [least, most] = self.release_multipliers();
        let parameters = self.problem.parameters() as f64;
        let apart = parameters / (2.0 * tolerance * smoothness * self.problem.n as f64);
        let balanced = if self.noise.is_pure() { apart.powf(2.0 / 3.0) } else { apart.sqrt() };
        let unseen = UNSEEN * self.unit_of_predictions() / self.in_a_prediction(tolerance);
        balanced.min(unseen).clamp(least, most)
    }

    fn release_terms(&self) -> Result<(f64, f64), Error> {
        let risk = self.risk(self.largest_linear_norm())?;
        let tolerance = self.tolerance_of(&risk)?;
        Ok((tolerance, self.release_multiplier(tolerance, risk.smoothness)))
    }

    /// Returns the standard deviation of the noise on the minimiser in a prediction, in its unit: above [`UNSEEN`] only if
    /// rounding prevents the certification of a nearer point.
    pub(in crate::recipes) fn release_in_a_prediction(&self) -> Result<f64, Error> {
        let (tolerance, multiplier) = self.release_terms()?;
        Ok(multiplier * self.in_a_prediction(tolerance) / self.unit_of_predictions())
    }

    /// Returns the noise on the minimiser for sensitivity 1: a multiple of the objective's noise divided by the row norm.
    fn release_in_units(&self) -> NoiseScale {
        let [_, most] = self.release_multipliers();
        // An unattainable tolerance is refused where the plan computes it.
        let times = self.release_terms().map_or(most, |(_, multiplier)| multiplier);
        self.noise.with_scale(times * self.noise.scale() / self.recipe.row_norm)
    }

    /// Returns the events with noise on the minimiser in units of its sensitivity, for calibration.
    pub(in crate::recipes) fn events_in_units(&self) -> Result<[DpEvent; 2], Error> {
        let release = self.release_in_units().plain_event(1.0, self.problem.parameters());
        Ok([self.minimiser_event()?, release])
    }

    pub(in crate::recipes) fn release_noise(&self) -> Result<NoiseScale, Error> {
        let in_units = self.release_in_units();
        Ok(in_units.with_scale(in_units.scale() * 2.0 * self.tolerance()? * (1.0 + 8.0 * f64::EPSILON)))
    }

    /// Draws the linear term, computes the minimiser around a released centre of norm at most
    /// [`centre_radius`](Self::centre_radius), and releases it.
    ///
    /// # Errors
    /// A failing source, [`Error::Interrupted`], single precision, and noise too long to certify rounding errors, which is
    /// independent of the records and has probability below `e^-32`. Nothing has been released then.
    pub(in crate::recipes) fn release<F: Real, R: ReleaseRng + ?Sized>(
        &self,
        release: NoiseScale,
        source: &mut dyn RowSource<F>,
        centre: &[f64],
        log: &mut EventLog<ZeroOut>,
        rng: &mut R,
        control: &mut Control<'_>,
    ) -> Result<Released<Vec<F>>, Error> {
        let (parameters, mode) = (self.problem.parameters(), self.recipe.noise_mode);
        // The linear term is a release of zeros with noise.
        let of_gradient = L2Sensitivity::<ZeroOut>::new(self.recipe.row_norm)?;
        let zeros = Bounded::with_proven_sensitivity(vec![0.0f64; size("dimension", parameters)?], of_gradient);
        let noise = self.noise.release(zeros, parameters, mode, Some(MAX_BITS), log, rng)?;
        let tolerance = self.tolerance()?;
        let weights = self.minimiser::<F>(tolerance, source, noise.get(), centre, control)?;
        let apart = L2Sensitivity::<ZeroOut>::new(2.0 * tolerance)?;
        release.release(Bounded::with_proven_sensitivity(weights, apart), parameters, mode, None, log, rng)
    }

    /// Returns a point within the tolerance of the minimiser of the objective with the linear term `⟨noise - Λ centre, w⟩` in
    /// the sum over records. The search starts from the centre; the result is as private as the data.
    pub(in crate::recipes) fn minimiser<F: Real>(
        &self,
        tolerance: f64,
        source: &mut dyn RowSource<F>,
        noise: &[f64],
        centre: &[f64],
        control: &mut Control<'_>,
    ) -> Result<Vec<F>, Error> {
        let Self { recipe, problem, regularization, .. } = *self;
        let n = problem.n as f64;
        // The sum of the terms' norms, since each term is rounded.
        let largest = (norm_above(noise) + regularization * norm_above(centre)) / n;
        let certificate = Certificate::new(&self.risk(largest)?, tolerance)?;
        let linear: Vec<F> = noise.iter().zip(centre).map(|(b, c)| convert((b - regularization * c) / n)).collect();
        let start = centre.iter().map(|&weight| convert(weight)).collect();
        let visitor = Minimise { source, linear: &linear, start, certificate: &certificate, control };
        recipe.loss.visit_model(size("dimension", problem.dim)?, visitor)
    }
}

/// Returns a vector's norm, rounded up.
fn norm_above(vector: &[f64]) -> f64 {
    vector.iter().fold(0.0f64, |norm, entry| norm.hypot(*entry)) * (1.0 + 1e-12)
}

/// Returns the least tolerance for a plainly summed gradient, in two levels: the basis of certificates that predate
/// [compensated](dp_losses::CompensatedGradient) gradients. No training uses it.
fn least_tolerance_of_plain_sums(risk: &Risk) -> f64 {
    let Risk { n, smoothness, strong_convexity, data_lipschitz, outputs, .. } = *risk;
    let reach = 3.0 * risk.radius();
    let (of_derivative, of_margins) = Rounding::of_classes(outputs);
    let levels = CHUNK as f64 + (n as f64 / CHUNK as f64) + 40.0 + of_derivative;
    let margins = (risk.parameters as f64 + 8.0 + of_margins) * reach;
    let others = 4.0 * (reach * strong_convexity + risk.linear_norm);
    let sums = 1.01 * f64::EPSILON / 2.0 * (levels * data_lipschitz + smoothness * margins + others);
    4.01 * (sums + risk.linear_error) / strong_convexity
}

struct Minimise<'t, 'c, 'd, F> {
    source: &'t mut dyn RowSource<F>,
    linear: &'t [F],
    start: Vec<F>,
    certificate: &'t Certificate,
    control: &'c mut Control<'d>,
}

impl<F: Real> ModelVisitor<F> for Minimise<'_, '_, '_, F> {
    type Output = Result<Vec<F>, Error>;

    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
    {
        let mut batches = RowBatches::new(self.source, Order::Declared);
        minimise::certified(&model, &mut batches, self.start, self.linear, self.certificate, self.control)
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::AdjacencyKind;
    use dp_data::Examples;
    use dp_losses::{HuberRegression, LossKind};
    use dp_mechanisms::SeededRng;

    use super::*;
    use crate::MemorySource;

    fn problem(recipe: &ObjPert, n: u64, dim: u64) -> Problem {
        Problem::new(recipe, n, dim, AdjacencyKind::ZeroOut).unwrap()
    }

    /// Each rounding of a plain gradient alone, in its unit, is within the allowance, which is not much larger. A gradient's
    /// error is doubled for the test, and doubled again for the fallback.
    #[test]
    fn every_rounding_of_a_plain_sum_is_allowed_for() {
        let unit = f64::EPSILON / 2.0;
        let risk = Risk {
            n: 1,
            parameters: 1,
            outputs: 1,
            smoothness: 1e-9,
            strong_convexity: 0.125,
            data_lipschitz: 1e-9,
            value_at_zero: f64::INFINITY,
            condition: 0.0,
            linear_norm: 0.0,
            linear_error: 0.0,
        };
        let near = |risk: Risk, needed: f64, most: f64| {
            let found = least_tolerance_of_plain_sums(&risk) * risk.strong_convexity / (4.0 * unit);
            assert!(found >= needed && found <= most * needed, "{found} {needed}");
        };
        // Sums of gradients of length 2: over many chunks, and over one.
        let long = Risk { data_lipschitz: 2.0, ..risk };
        near(Risk { n: 1 << 40, ..long }, 2f64.powi(40) / CHUNK as f64 * 2.0, 1.02);
        near(long, (CHUNK as f64 + 24.0) * 2.0, 1.1);
        // For softmax, an exponential for each class and their sum.
        near(Risk { outputs: 100_000, ..long }, 2.0 * 100_000.0 * 2.0, 1.02);
        // Margins at three times the radius, `L/γ`: for many features, and for one.
        let curved = Risk { smoothness: 1e6, ..long };
        let reach = 3.0 * 2.0 / 0.125;
        near(Risk { parameters: 10_000, ..curved }, 10_000.0 * reach * 1e6, 1.02);
        near(curved, (1.0 + 2.0) * reach * 1e6, 3.1);
        // Subtracting the largest of several scores, and the errors of all of them.
        let one_more = |outputs| least_tolerance_of_plain_sums(&Risk { outputs, ..curved });
        assert!(one_more(2) - one_more(1) >= 2.0 * unit * reach * 1e6 * 4.0 / 0.125);
        // The linear term, and the regulariser at three times the radius that the linear term gives.
        near(Risk { linear_norm: 5.0, smoothness: 1e-12, ..risk }, 4.0 * (3.0 * 5.0 + 5.0), 1.03);
        // The rounding error of the linear term, in full.
        near(Risk { linear_error: 1e-3, smoothness: 1e-12, ..risk }, 1e-3 / unit, 1.01);
        // A loss that is small at 0 gives a smaller radius: from values, `√(2ℓ₀/γ)`.
        let by_value = Risk { value_at_zero: 1e-4, parameters: 10_000, ..curved };
        near(by_value, 10_000.0 * 3.0 * (2.0 * 1e-4 / 0.125f64).sqrt() * 1e6, 1.02);
    }

    /// A risk's bound on the loss at prediction 0 is no less than the loss there, and its error of the linear term allows for
    /// half a grid step in each coordinate.
    #[test]
    fn a_risk_knows_the_value_at_zero_and_the_grid() {
        use dp_losses::{HuberSvm, Logistic, Loss as _, Softmax};
        let wide = HuberSvm::new(2.0).unwrap();
        let narrow = HuberSvm::new(0.25).unwrap();
        let softmax = Softmax::new(10).unwrap();
        for (loss, at_zero) in [
            (LossKind::Logistic, Logistic.value(0.0f64, 1.0)),
            (LossKind::HuberSvm(narrow), narrow.value(0.0, 1.0)),
            (LossKind::HuberSvm(wide), wide.value(0.0, 1.0)),
            // With ten equal scores each class has probability 1/10.
            (LossKind::Softmax(softmax), -(0.1f64.ln())),
        ] {
            // Whatever the bound on the targets is.
            let recipe = ObjPert { target_bound: 0.5, ..ObjPert::new(loss) };
            let noise = NoiseScale::Gaussian { std_dev: 3.0 };
            let certification = Certification::Compensated;
            let regularization = 50.0;
            let problem = problem(&recipe, 1000, 400);
            let objective =
                Objective { recipe: &recipe, problem: &problem, regularization, noise, centred: false, certification };
            let risk = objective.risk(0.0).unwrap();
            assert!(risk.value_at_zero >= at_zero, "{loss}: {} {at_zero}", risk.value_at_zero);
            let half = 0.5 * Grid::new(3.0, MAX_BITS).unwrap().step() / 1000.0;
            let corner = (0..risk.parameters).fold(0.0f64, |norm, _| norm.hypot(half));
            assert!(risk.linear_error >= corner * (1.0 - 1e-12), "{} {corner}", risk.linear_error);
            // The rounding of the quotient and of the difference is proportional to the linear term.
            assert!(objective.risk(7.0).unwrap().linear_error >= corner + 2.0 * f64::EPSILON * 7.0);
        }
    }

    /// Every number of an objective by its formula, for rows and targets whose bounds are not 1, with and without a centre.
    #[test]
    fn every_figure_follows_its_formula() {
        let close = |found: f64, expected: f64, what: &str| {
            assert!((found - expected).abs() <= 1e-14 * expected.abs(), "{what}: {found} {expected}");
        };
        let (n, dim) = (1000u64, 40u64);
        let loss = LossKind::HuberRegression(HuberRegression::new(0.5).unwrap());
        let of_margin = MarginLoss::BoundedSlope { slope: 1.0, curvature: 2.0 };
        let recipe = ObjPert { row_norm: 0.5, target_bound: 3.0, ..ObjPert::new(loss) };
        let (mut by_rounding, mut inner) = (0, 0);
        for (noise, least, most) in [
            (NoiseScale::Gaussian { std_dev: 3.0 }, 1.5, 30.0),
            (NoiseScale::Gaussian { std_dev: 300.0 }, 1.5, 30.0),
            (NoiseScale::LaplaceBall { scale: 2.0 }, 2.0, 1000.0),
            (NoiseScale::LaplaceBall { scale: 0.02 }, 2.0, 1000.0),
        ] {
            for (regularization, gradient_tolerance) in [
                (50.0, None),
                (1e-6, None),
                (50.0, Some(1e-9)),
                (50.0, Some(2e-6)),
                (50.0, Some(6e-5)),
                (50.0, Some(1e-3)),
            ] {
                for centred in [false, true] {
                    let recipe = ObjPert { gradient_tolerance, ..recipe.clone() };
                    let certification = Certification::Compensated;
                    let problem = &problem(&recipe, n, dim);
                    let objective =
                        Objective { recipe: &recipe, problem, regularization, noise, centred, certification };
                    let radius = if centred { 2000.0 } else { 0.0 };
                    close(objective.centre_radius(), radius, "radius of the centre");
                    let linear = (noise.largest_norm(dim) + regularization * radius) / n as f64;
                    close(objective.largest_linear_norm(), linear, "norm of the linear term");
                    let risk = objective.risk(linear).unwrap();
                    let smoothness = 2.0 * 0.25 + regularization / n as f64;
                    close(risk.smoothness, smoothness, "smoothness");
                    let fine = 0.01 / (2.0 * most * smoothness * n as f64);
                    let rounding = 8.0 * Certificate::least_tolerance(&risk).unwrap();
                    by_rounding += u32::from(rounding > fine);
                    let asked = gradient_tolerance.map_or(0.0, |gamma| gamma * n as f64 / regularization);
                    let tolerance = fine.max(rounding).max(asked);
                    close(objective.tolerance().unwrap(), tolerance, "tolerance");
                    let in_a_prediction = noise.coordinate_std_dev(dim) * 2.0 * tolerance;
                    close(objective.in_a_prediction(tolerance), in_a_prediction, "noise in a prediction");
                    close(objective.unit_of_predictions(), 3.0, "unit");
                    let apart = dim as f64 / (2.0 * tolerance * smoothness * n as f64);
                    let balanced = if noise.is_pure() { apart.powf(2.0 / 3.0) } else { apart.sqrt() };
                    let multiplier = balanced.min(0.02 * 3.0 / in_a_prediction).max(least).min(most);
                    inner += u32::from(multiplier > least && multiplier < most);
                    close(
                        objective.release_in_a_prediction().unwrap(),
                        multiplier * in_a_prediction / 3.0,
                        "noise of the release in a prediction",
                    );
                    let release = objective.release_noise().unwrap();
                    assert_eq!(release.is_pure(), noise.is_pure());
                    let scale = multiplier * noise.scale() / 0.5 * 2.0 * tolerance;
                    close(release.scale(), scale, "noise on the minimiser");
                    // Never below the multiple of the sensitivity for which it was calibrated.
                    assert!(release.scale() > objective.release_in_units().scale() * 2.0 * tolerance);
                    // Rows of norm 1/2 with weights w are equivalent to rows of norm 1 with weights w/2.
                    let [minimiser, hidden] = objective.events(release).unwrap();
                    assert_eq!(hidden, release.plain_event(2.0 * objective.tolerance().unwrap(), dim));
                    let down = 1.0 - 4.0 * f64::EPSILON;
                    let (std_dev, regularization) = (noise.scale() * 2.0 * down, regularization * 4.0 * down);
                    match minimiser {
                        DpEvent::PureDp { epsilon } => {
                            let expected =
                                objective_perturbation::pure_epsilon(std_dev, regularization, of_margin).unwrap();
                            assert_eq!(epsilon, expected);
                        }
                        event => {
                            let loss = of_margin;
                            assert_eq!(event, DpEvent::ObjectivePerturbation { std_dev, regularization, loss });
                        }
                    }
                }
            }
        }
        assert!(by_rounding >= 6 && inner >= 4, "{by_rounding} {inner}");
        let classes = ObjPert::new("softmax:3".parse().unwrap());
        let (noise, certification) = (NoiseScale::Gaussian { std_dev: 3.0 }, Certification::Plain);
        let problem = &problem(&classes, n, dim);
        let of_classes =
            Objective { recipe: &classes, problem, regularization: 50.0, noise, centred: false, certification };
        assert_eq!(of_classes.unit_of_predictions(), 1.0);
        // The basis of earlier certificates.
        let risk = of_classes.risk(of_classes.largest_linear_norm()).unwrap();
        assert_eq!(of_classes.tolerance().unwrap(), 8.0 * least_tolerance_of_plain_sums(&risk));
    }

    /// A release logs two noises: that of the linear term against a row's norm, and that of the minimiser against twice the
    /// tolerance, as the plan charges.
    #[test]
    fn a_release_logs_both_of_its_noises() {
        let (n, dim) = (20u64, 2u64);
        let rows: Vec<f64> = (0..n).flat_map(|i| [0.02 * i as f64, 0.3]).collect();
        let labels = (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let examples = Examples::dense(rows, labels, 2).unwrap();
        let recipe = ObjPert { row_norm: 0.5, ..ObjPert::new(LossKind::Logistic) };
        for noise in [NoiseScale::Gaussian { std_dev: 3.0 }, NoiseScale::LaplaceBall { scale: 2.0 }] {
            let certification = Certification::Compensated;
            let problem = &problem(&recipe, n, dim);
            let objective =
                Objective { recipe: &recipe, problem, regularization: 5.0, noise, centred: false, certification };
            let release = objective.release_noise().unwrap();
            let mut source = MemorySource::new(examples.clone(), 0.5, 1.0);
            let (mut log, mut rng) = (EventLog::new(), SeededRng::new(7));
            let mut control = Control::default();
            objective.release::<f64, _>(release, &mut source, &[0.0; 2], &mut log, &mut rng, &mut control).unwrap();
            let apart = 2.0 * objective.tolerance().unwrap();
            let events = vec![noise.event(0.5, dim), release.event(apart, dim)];
            assert_eq!(log.to_event(), DpEvent::Composed { events });
            assert_eq!(objective.events(release).unwrap()[1], release.plain_event(apart, dim));
        }
    }

    #[test]
    fn norms_are_rounded_up() {
        assert_eq!(norm_above(&[]), 0.0);
        for (vector, norm) in [(vec![3.0, -4.0], 5.0), (vec![2.0; 4], 4.0), (vec![0.1; 10_000], 10.0)] {
            let above = norm_above(&vector);
            assert!(above > norm && above < norm * (1.0 + 2e-12), "{above} {norm}");
        }
    }
}
