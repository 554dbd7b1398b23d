//! The effect of floating-point arithmetic on the distance between two runs.

use super::Checked;
use crate::error::{Error, non_negative, positive};

/// The representation of the iterate, which determines the number of roundings in an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Arithmetic {
    /// The batch's gradient is summed in a buffer, then subtracted from the iterate.
    #[default]
    Buffered,
    /// The iterate is a scalar times a vector, and each example is added directly to the vector.
    Scaled,
    /// The iterate is a scalar times a vector, in two parts each: for many records, where the rounding of so many updates
    /// would be significant. See [`TwoParts`](crate::engine::TwoParts).
    TwoParts,
}

/// Fraction of the sensitivity above which the rounding justifies a second part of the iterate.
const WORTH_A_SECOND_PART: f64 = 0.01;

impl Arithmetic {
    /// All representations.
    pub const ALL: [Self; 3] = [Self::Buffered, Self::Scaled, Self::TwoParts];

    /// Returns this one, or [`TwoParts`](Self::TwoParts) if the rounding of so many updates exceeds a hundredth of one
    /// record's effect on the last iterate among `n` records. Depends on public numbers alone; `projected` is the number of
    /// parameters if every iterate is projected onto a ball.
    ///
    /// # Formula
    /// `a` roundings of the iterate in each of `T` updates have the allowance `2 υ a R T`, `R = L/λ`, relative to at least
    /// `L/(λn)`: a fraction `2 υ a T n`. Without a regulariser the fraction is the same up to a factor of 2.
    ///
    /// # Examples
    /// ```
    /// use dp_optim::growth::Arithmetic;
    /// let suited = |n| Arithmetic::Buffered.for_records(n, 10, 50, None);
    /// assert_eq!(suited(1_000_000), Arithmetic::Buffered);
    /// assert_eq!(suited(100_000_000), Arithmetic::TwoParts);
    /// ```
    pub fn for_records(self, n: u64, passes: u64, batch_size: u64, projected: Option<u64>) -> Self {
        let batch = batch_size.clamp(1, n.max(1)) as f64;
        let of_iterate = if self == Self::Scaled { batch + 8.0 } else { 4.0 };
        let of_norm = projected.map_or(0.0, |parameters| parameters as f64 / 2.0 + 8.0);
        let updates = n as f64 / batch * passes as f64;
        let share = f64::EPSILON * (of_iterate + of_norm) * updates * n as f64;
        if share > WORTH_A_SECOND_PART { Self::TwoParts } else { self }
    }

    /// Returns the faster one: scaled for sparse rows and for batches of a few rows, where a buffer as long as the model would
    /// cost more than the rows. Long batches are summed in a buffer, which takes them in pieces. Whether rows are sparse must
    /// follow from the schema, not from the records.
    ///
    /// # Examples
    /// ```
    /// use dp_optim::growth::Arithmetic;
    /// assert_eq!(Arithmetic::suited_to(true, 50), Arithmetic::Scaled);
    /// assert_eq!(Arithmetic::suited_to(true, 100_000), Arithmetic::Buffered);
    /// assert_eq!(Arithmetic::suited_to(false, 50), Arithmetic::Buffered);
    /// assert_eq!(Arithmetic::suited_to(false, 1), Arithmetic::Scaled);
    /// ```
    pub const fn suited_to(sparse: bool, batch_size: u64) -> Self {
        if batch_size < 8 || sparse && batch_size <= 8192 { Self::Scaled } else { Self::Buffered }
    }
}

/// Bounds on one run's rounding errors: the run in floats is the exact one plus a small error at every update. The errors of
/// two neighbouring runs differ, so twice their propagated sum is added to the sensitivity.
///
/// # Formula
/// Let `υ` be the unit roundoff, `d` the dimension, `b` the batch size, `R` a bound on the iterates' norm, `L` the data loss's
/// Lipschitz constant, `β` its smoothness with the regulariser, `λ` the regularisation, rows of norm at most one,
/// `S = max(1, η_max λ - 1)` the maximum factor by which a step can stretch an iterate, and `N = S R + η_max L` a bound on the
/// norm before a projection. To first order in `υ`, an update's result is off in norm by at most
/// ```text
/// e_t = υ [ a R + P + 4 η λ R + η β (d + 2) R + η (b + 24) L ]
/// ```
/// and for a model with `C` scores per example (softmax) by `υ η [4 β R + 2 (C + 8) L]` more. The terms are, in this order:
/// rounding the shrunken iterate; the norm that decides about the projection, if there is a radius; the products `1 - ηλ`; the
/// margin's dot product in any order, multiplied by the Lipschitz constant β of the loss's derivative; the derivative itself
/// (8 ulp), its products with the rows, the sum of `b` of them in any order, and the scaled difference. For softmax, `d`
/// counts all parameters, and `R` bounds the norm of all weights together: the errors `(d + 2) υ |w_c|` of the scores have
/// norm `(d + 2) υ R`. Subtracting the largest score rounds by at most `√2 υ R`, which the Jacobian `diag(p) - p pᵀ` does not
/// enlarge from the largest entry to the norm; that is below `4 β υ R`, as `β >= 1/2` on unit rows. An exponential is off by
/// 4υ, a sum of `C` of them by `(C + 4) υ`, so that a residual has relative error `(2C + 9) υ`.
///
/// | | `a` | `P` with a radius |
/// |---|---|---|
/// | [`Buffered`](Arithmetic::Buffered) | 4 | (d/2 + 8) R |
/// | [`Scaled`](Arithmetic::Scaled) | (b + 8) S | 8 R + q [(d + K + b) N² / 2 + (d + 2) N η_max L (2K/b + 3)] / R' |
/// | [`TwoParts`](Arithmetic::TwoParts) | υ (4b + 16) N / R | υ (d + 20)² N + 8 η (λR + L) |
///
/// *Two parts*: `w = s v` again, where `s` and `v` are sums of two floats, the second below a unit in the last place of the
/// first. An addition to such a sum is off by `2υ²` times the larger of the sums before and after it, so that a batch's
/// additions and the changes of `s` cost at most `υ² (4b + 16) N`. All other roundings are relative to the update: the
/// products `s ηλ` and `-η/(b s)`; the omission of the second parts in the gradient, and the rounding of `s` to a float,
/// `3 υ η β R`; the omitted part of `s ηλ`, `υ η λ R`. The excess `‖w‖² - R'²` is off by `((d + 20) υ)² ‖w‖²` before it is
/// rounded, which moves the projected iterate by `((d + 20) υ)² N`; a projection moves a point by `‖w‖ - R' ≤ η (λR + L)`, of
/// which 8 units are rounded off.
///
/// *Scaled*: the iterate is `w = s v` with `s` in [1/2, 2]. Each of the `b` additions to `v` rounds every coordinate, `υ ‖v‖`
/// in norm, which is `υ (S R + ηL)` in terms of `w`, and a change of `s` or a renormalisation costs a few `υ R`.
///
/// With a radius, `‖v‖²` is updated for at most [`K`](Self::norm_interval) examples and one batch after it is recomputed. In
/// terms of `w` the recomputed one is off by `d υ N²`. An example that changes `v` by `Δ` adds `Σ_j (v_j' - v_j)(v_j' + v_j)`:
/// that sum is off by at most `(d + 2) υ ‖Δ‖ ‖v' + v‖` (Cauchy-Schwarz), where the `‖Δ‖` of a batch add up to `η_max L` and at
/// most `2K/b + 3` batches, short ones included, pass between two computations; adding it costs `υ N²`. (With `C` scores the
/// changes of a batch's `bC` rows of weights are summed before they are added: `d + 2 + bC` in place of `d + 2`.) An error `E`
/// of the square moves the projected iterate by at most `E/(2R')`, `R'` the radius, whether it projects a point inside or
/// omits to project one outside. `N` and not `R` counts: in a batch long gradients may cancel. The errors are relative to the
/// scale `s` at which they were made, which has only decreased since, unless a step stretches: `q` is 1 if no step exceeds
/// `2/λ`, otherwise 16.
///
/// The average `Σ α_t w_t` is off by at most `υ R Σ|α_t| (T + 4)` when summed from whole iterates, by `υ R Σ|α_t| (8 + 4υT)`
/// when summed in two parts. Formed lazily beside a scaled iterate, as `c_T v - z` with `c_t = Σ_{τ≤t} α_τ s_τ`, it is off by
/// at most
/// ```text
/// υ Σ|α_t| [ 16 (bT + 2) R + (8b + 28) L Σ η_t ]
/// ```
/// Within a batch `‖v‖ ≤ 2(R + ηL)`, `|c| ≤ 2Σ|α_t|` and `‖z‖ ≤ (5R + 4ηL) Σ|α_t|`. Each of `bT` additions rounds `z`, and
/// rounds `v` in a way that `z` does not repeat; the products of an example agree between the two up to `28υ` of the change in
/// an update; the sum `c` rounds `T` times, and parts are merged at most three times an update.
///
/// If the run restarts from averages, each costs as much, with `T` and the sums over its stretch, times the final effect of a
/// difference of it (`a` of the [recursion](super)). An average lies within `R` as the iterates do.
///
/// The allowance is `2 · 1.01 · (Σ_t e_t A_t + average)`, `A_t` as in the [recursion](super); the hundredth covers the second
/// order (d υ below 1/1000 is checked) and iterates that exceed the bound `R` by rounding.
///
/// `R` is the radius if there is one. Otherwise, from the origin, `‖w_t‖ ≤ (1 - η_tλ) ‖w_{t-1}‖ + η_t L`, so that `R = L/λ`
/// when no step exceeds `1/λ` (by induction: `(1 - ηλ) L/λ + ηL = L/λ`), and `R = L Σ η_t` when no step exceeds `2/λ`; the
/// smaller of the two. From a start of norm `s`, `max(s, L/λ)` and `s + L Σ η_t`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounding {
    /// Unit roundoff: 2^-53 for f64, 2^-24 for f32.
    pub unit_roundoff: f64,
    /// Number of parameters.
    pub dim: u64,
    /// Predictions per example: 1, or the number of classes of softmax.
    pub outputs: u64,
    /// L: bound on the norm of one record's data gradient.
    pub data_lipschitz: f64,
    /// The representation of the iterate.
    pub arithmetic: Arithmetic,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    /// `Σ A_t`.
    pub(super) reach: f64,
    /// `Σ η_t A_t`.
    pub(super) step_times_reach: f64,
    /// `Σ η_t`.
    pub(super) steps: f64,
    /// `Σ a` over the averages from which the run restarted.
    pub(super) handed_on: f64,
}

impl Sums {
    pub(super) fn scale(&mut self, factor: f64) {
        self.reach *= factor;
        self.step_times_reach *= factor;
        self.steps *= factor;
        self.handed_on *= factor;
    }

    pub(super) fn scaled(mut self, factor: f64) -> Self {
        self.scale(factor);
        self
    }
}

impl Rounding {
    /// Returns the number of examples after which the scaled iterate's norm is recomputed (with a radius): small enough for a
    /// small error, large enough for a negligible cost per example.
    pub const fn norm_interval(dim: u64) -> u64 {
        let quarter = dim / 4;
        if quarter > 64 { quarter } else { 64 }
    }

    /// Returns the additional terms for several predictions per example: units of `L` and of `β R`.
    pub(crate) fn of_classes(outputs: u64) -> (f64, f64) {
        if outputs > 1 { (2.0 * (outputs as f64 + 8.0), 4.0) } else { (0.0, 0.0) }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        positive("unit roundoff", self.unit_roundoff)?;
        non_negative("data Lipschitz constant", self.data_lipschitz)?;
        if self.dim == 0 || !(self.dim as f64 * self.unit_roundoff < 1e-3) {
            return Err(Error::Count { name: "dimension", value: self.dim, range: "1 to a thousandth of 1/roundoff" });
        }
        Ok(())
    }
}

/// Returns the allowance for the rounding of a run from a point of this norm; 0 if none is requested.
pub(super) fn term(checked: &Checked<'_>, sums: &Sums, start_norm: f64) -> Result<f64, Error> {
    let growth = checked.growth;
    let Some(rounding) = growth.rounding else { return Ok(0.0) };
    if checked.updates == 0 {
        return Ok(0.0);
    }
    let (lambda, lipschitz) = (growth.strong_convexity, rounding.data_lipschitz);
    let radius = iterate_bound(checked, sums, lipschitz, start_norm)?;
    let batch = growth.batch_size.min(growth.n) as f64;
    let dim = rounding.dim as f64;
    let interval = Rounding::norm_interval(rounding.dim) as f64;
    let longest = checked.steps.largest();
    let stretch = (longest * lambda - 1.0).max(1.0);
    let moved = longest * lipschitz;
    let unprojected = stretch * radius + moved;
    let unit = rounding.unit_roundoff;
    let rounding_of_iterate = match rounding.arithmetic {
        Arithmetic::Buffered => 4.0 * radius,
        Arithmetic::Scaled => (batch + 8.0) * stretch * radius,
        Arithmetic::TwoParts => unit * (4.0 * batch + 16.0) * unprojected,
    };
    let projection = match (rounding.arithmetic, growth.radius) {
        (_, None) => 0.0,
        (Arithmetic::Buffered, Some(_)) => (dim / 2.0 + 8.0) * radius,
        (Arithmetic::TwoParts, Some(_)) => unit * (dim + 20.0).powi(2) * unprojected,
        (Arithmetic::Scaled, Some(ball)) => {
            let batches = 2.0 * interval / batch + 3.0;
            let summed = if rounding.outputs > 1 { batch * rounding.outputs as f64 } else { 0.0 };
            let square = (dim + interval + batch) / 2.0 * unprojected + (dim + 2.0 + summed) * moved * batches;
            let since_scaled = if longest * lambda <= 2.0 { 1.0 } else { 16.0 };
            8.0 * radius + since_scaled * square * (unprojected / ball)
        }
    };
    let per_update = rounding_of_iterate + projection;
    let (of_derivative, of_margins) = Rounding::of_classes(rounding.outputs);
    let (of_second_parts, of_projection) = match (rounding.arithmetic, growth.radius) {
        (Arithmetic::TwoParts, Some(_)) => (3.0, 8.0),
        (Arithmetic::TwoParts, None) => (3.0, 0.0),
        _ => (0.0, 0.0),
    };
    let per_step = (4.0 + of_projection) * lambda * radius
        + growth.smoothness * (dim + 2.0 + of_second_parts + of_margins) * radius
        + (batch + 24.0 + of_projection + of_derivative) * lipschitz;
    let averaged = checked.weights.longest_stretch() as f64;
    let averaging = match (checked.weights.is_last(), rounding.arithmetic) {
        (true, _) => 4.0 * radius,
        (false, Arithmetic::TwoParts) => (8.0 + unit * 4.0 * averaged) * radius,
        (false, Arithmetic::Buffered) => (averaged + 4.0) * radius,
        (false, Arithmetic::Scaled) => {
            16.0 * (batch * averaged + 2.0) * radius + (8.0 * batch + 28.0) * lipschitz * sums.steps
        }
    };
    let error = per_update * sums.reach
        + per_step * sums.step_times_reach
        + averaging * checked.weights.total() * (1.0 + sums.handed_on);
    let term = 2.0 * 1.01 * rounding.unit_roundoff * error;
    if term.is_finite() { Ok(term) } else { Err(unbounded(term)) }
}

/// Bounds the norm of every iterate of a run that starts at a point of this norm.
fn iterate_bound(checked: &Checked<'_>, sums: &Sums, lipschitz: f64, start_norm: f64) -> Result<f64, Error> {
    let growth = checked.growth;
    let longest = checked.steps.largest() * growth.strong_convexity;
    let mut bound = growth.radius.unwrap_or(f64::INFINITY);
    if longest <= 2.0 {
        bound = bound.min(start_norm + lipschitz * sums.steps);
    }
    if growth.strong_convexity > 0.0 && longest <= 1.0 {
        bound = bound.min(start_norm.max(lipschitz / growth.strong_convexity));
    }
    if bound.is_finite() { Ok(bound) } else { Err(unbounded(bound)) }
}

fn unbounded(value: f64) -> Error {
    Error::Sensitivity {
        value,
        why: "the iterates are not bounded, so neither is their rounding; shorten the steps or set a radius",
    }
}
