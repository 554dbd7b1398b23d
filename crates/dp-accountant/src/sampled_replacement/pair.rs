//! The pair of laws.

mod curve;
mod law;
mod moments;

pub(crate) use moments::Moments;

use crate::logspace::log_mixed;
use crate::rounding::mul_up;

/// The two laws `A = q N(up, 1) + (1-q) N(0, 1)` and `B = q N(-down, 1) + (1-q) N(0, 1)`, in standard deviations of the
/// noise, whose curve at `u >= 1` is [`F`](super).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    /// q, strictly between 0 and 1.
    rate: f64,
    /// `r mu`.
    up: f64,
    /// `(1-r) mu`, at most `up`.
    down: f64,
}

/// Both laws at one point.
#[derive(Debug, Clone, Copy)]
struct Point {
    /// `ln dA/dB`.
    loss: f64,
    /// The derivative of the loss.
    slope: f64,
    /// `ln dA/dN(0, 1)`.
    log_above: f64,
    /// Bound on the rounding error of the loss.
    error: f64,
}

/// One law's ratio to `N(0, 1)`.
struct Ratio {
    log: f64,
    /// The posterior probability that the record took part.
    sampled: f64,
    error: f64,
}

/// Number of standard deviations from its mean beyond which a normal law has no mass above 1e-300.
const REACH: f64 = 40.0;

/// Exponents beyond this are factored out of the logarithm.
const LARGE: f64 = 600.0;

/// Maximum number of steps of the search for a loss; each halves the bracket or is a Newton step.
const MAX_STEPS: u32 = 300;

impl Pair {
    /// Returns the sampling rate.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Creates the pair for `0 < rate < 1`, `mu` = distance / standard deviation, `radius` in units of the distance. The
    /// covariances of the proof, `mu²`, `up mu` and `up²`, are rounded up.
    pub(crate) fn new(rate: f64, mu: f64, radius: f64) -> Self {
        let up = mul_up(radius, mu);
        let down = mu - up;
        Self { rate, up, down: if down > 0.0 && down + up < mu { down.next_up() } else { down.max(0.0) } }
    }

    /// Returns whether B is the mirror image of A.
    fn is_symmetric(&self) -> bool {
        self.up == self.down
    }

    /// Returns the sampling rate and the mean of the sampled part, in standard deviations, if B is the mirror image of A.
    pub(crate) fn symmetric(&self) -> Option<(f64, f64)> {
        self.is_symmetric().then_some((self.rate, self.up))
    }

    fn mu(&self) -> f64 {
        self.up + self.down
    }

    /// Returns the ratio at `x` of the law whose sampled part has mean `shift`.
    fn ratio(&self, shift: f64, x: f64) -> Ratio {
        let Self { rate, .. } = *self;
        let y = shift * (x - 0.5 * shift);
        // The rounding of y; the difference is exact if it is small.
        let own = f64::EPSILON * shift.abs() * (x - 0.5 * shift).abs();
        if y > LARGE {
            let sampled = (1.0 + (1.0 - rate) * (-y - rate.ln()).exp()).recip();
            let log = log_mixed(rate, y);
            return Ratio { log, sampled, error: 2.0 * (sampled * own + f64::EPSILON * (log.abs() - rate.ln())) };
        }
        let excess = rate * y.exp_m1();
        let log = self.log_one_plus(excess, y);
        if excess < -0.5 {
            // Sums of positive terms.
            let part = rate * y.exp();
            let sampled = part / ((1.0 - rate) + part);
            return Ratio { log, sampled, error: 2.0 * (sampled * own + f64::EPSILON * (4.0 + log.abs())) };
        }
        let sampled = rate * y.exp() / (1.0 + excess);
        // The product has an error of a few units, the logarithm a relative one.
        let of_excess = 3.0 * f64::EPSILON * excess.abs() / (1.0 + excess);
        Ratio { log, sampled, error: 2.0 * (sampled * own + of_excess + f64::EPSILON * log.abs()) }
    }

    /// Returns `ln(1 + excess)`, `excess = q (e^y - 1)`.
    #[inline]
    fn log_one_plus(&self, excess: f64, y: f64) -> f64 {
        // The first is of a sum of positive terms.
        if excess < -0.5 { ((1.0 - self.rate) + self.rate * y.exp()).ln() } else { excess.ln_1p() }
    }

    /// Returns the logarithms of A over the base law at `x`, and of A over B: [`at`](Self::at) without the rest.
    fn logs(&self, x: f64) -> (f64, f64) {
        let log = |shift: f64| {
            let y = shift * (x - 0.5 * shift);
            if y > LARGE { log_mixed(self.rate, y) } else { self.log_one_plus(self.rate * y.exp_m1(), y) }
        };
        let above = log(self.up);
        (above, above - log(-self.down))
    }

    fn at(&self, x: f64) -> Point {
        let (above, below) = (self.ratio(self.up, x), self.ratio(-self.down, x));
        let loss = above.log - below.log;
        Point {
            loss,
            slope: self.up * above.sampled + self.down * below.sampled,
            log_above: above.log,
            error: above.error + below.error + f64::EPSILON * loss.abs(),
        }
    }

    /// Returns the ends beyond which both laws have no mass.
    fn reach(&self) -> (f64, f64) {
        (-REACH - self.down, REACH + self.up)
    }

    /// Returns the `x` at which the loss, which grows with x, is about `loss`, or the end of the [`reach`](Self::reach) on that
    /// side.
    ///
    /// At `r = 1/2` it has a closed form: with `m = up`,
    ///
    /// ```text
    /// m x = loss/2 + arsinh( (1-q)/q e^(m²/2) sinh(loss/2) ).
    /// ```
    fn place(&self, loss: f64) -> f64 {
        let Self { rate, up, .. } = *self;
        let (mut low, mut high) = self.reach();
        if self.is_symmetric() {
            let half = 0.5 * loss;
            let log = ((1.0 - rate) / rate).ln() + 0.5 * up * up + log_sinh(half.abs());
            let arsinh = if log > 40.0 { log + core::f64::consts::LN_2 } else { log.exp().asinh() };
            return ((half + arsinh.copysign(half)) / up).clamp(low, high);
        }
        // The place if B were N(0, 1), which is farther out.
        let own = (loss.exp_m1() / rate).ln_1p();
        let guess = if loss > 40.0 { (loss - rate.ln()) / up + 0.5 * up } else { own / up + 0.5 * up };
        let mut x = guess;
        if !(guess > low && guess < high) {
            if self.at(low).loss >= loss {
                return low;
            }
            if self.at(high).loss <= loss {
                return high;
            }
            x = 0.5 * (low + high);
        }
        for _ in 0..MAX_STEPS {
            let Point { loss: value, slope, .. } = self.at(x);
            if value <= loss {
                low = x;
            } else {
                high = x;
            }
            let newton = x - (value - loss) / slope;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            if !((next - x).abs() > 2.0 * f64::EPSILON * x.abs().max(f64::EPSILON)) {
                break;
            }
            x = next;
        }
        x
    }

    /// Returns a bound on the difference between `loss` and the loss at `x`, the [`place`](Self::place) for it.
    fn place_error(&self, x: f64, loss: f64) -> f64 {
        let (low, high) = self.reach();
        let point = self.at(x);
        // Beyond the reach all tails are as at its end.
        if x <= low || x >= high { 0.0 } else { (point.loss - loss).abs() + point.error }
    }
}

/// Returns `ln sinh x` for `x >= 0`.
fn log_sinh(x: f64) -> f64 {
    if x > LARGE { x - core::f64::consts::LN_2 } else { x.sinh().ln() }
}

#[cfg(test)]
mod tests;
