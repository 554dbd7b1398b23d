//! The Renyi divergence of one release.

use super::{Pair, Point};
use crate::logspace::{log_add, log_one_minus_exp};
use crate::normal::LN_SQRT_2_PI;
use crate::quadrature::integrate;
use crate::rdp::{mixed_with_nothing, rdp_per_order, sampled_gaussian_divergence};
use crate::rounding::mul_up;
use crate::work;

/// Least rate and `mu`: the divergence grows with both, so smaller ones are raised to these, and squares do not underflow.
const LEAST_RATE: f64 = 1e-60;
const LEAST_MU: f64 = 1e-75;

/// The omitted part at the upper end is below `e^-NEGLIGIBLE` of the whole.
const NEGLIGIBLE: f64 = 50.0;

/// Maximum number of panels; beyond it the bounds by other theorems are used.
const MAX_PANELS: f64 = 4000.0;

/// Number of steps of a value of the integrand.
const STEPS_PER_VALUE: f64 = 250.0;

/// Relative tolerance of the integral.
const TOLERANCE: f64 = 1e-12;

impl Pair {
    /// Returns an upper bound on the divergence of order `order >= 1`, in both directions.
    ///
    /// It is the integral of the [module](super), with its error, or one of two bounds that always hold:
    ///
    /// - convexity: the pair is a mixture of the Gaussian pair and of equal laws;
    /// - `B >= (1-q) N(0, 1)`: the moment beyond `x_0` is at most `(1-q)^(1-a)` times that of A against `N(0, 1)`, and the
    ///   rest at most 1.
    pub(crate) fn rdp(&self, order: f64) -> f64 {
        let pair = Self { rate: self.rate.max(LEAST_RATE), ..*self };
        let (up, down) = (self.up.max(LEAST_MU), if self.is_symmetric() { self.down.max(LEAST_MU) } else { self.down });
        let pair = Self { up, down, ..pair };
        let cap = mixed_with_nothing(order, pair.rate, mul_up(order, rdp_per_order(pair.mu().next_up()).next_up()));
        let excess = order - 1.0;
        let against_base = sampled_gaussian_divergence(order, pair.rate, pair.up) - (-pair.rate).ln_1p().next_down();
        let other = log_add(0.0, excess * against_base) / excess * (1.0 + 8.0 * f64::EPSILON);
        let cap = if other < cap { other } else { cap };
        let own = pair.integral(order).unwrap_or(f64::INFINITY);
        if own < cap { own } else { cap }
    }

    /// Returns the divergence by the integral, rounded up; `None` if its range is too long.
    ///
    /// **Range.** `A^a B^(1-a)` has the logarithmic derivative `-x + a up p_A(x) + (a-1) down p_B(x)`, with the posterior
    /// probabilities p that the record took part, `p_A <= 1` and `p_B` decreasing: so beyond `c = a up + (a-1) down p_B(a up)` it
    /// falls at least like a normal density about c. There the integrand is at most `L A^a B^(1-a)` and the loss's slope at most
    /// `mu`, so that the integral beyond `c + t` is at most `A^a B^(1-a) (L + mu/t)/t` at that end.
    fn integral(&self, order: f64) -> Option<f64> {
        // Once a limit on work is reached, the bounds that always hold are used.
        if work::is_exhausted() {
            work::cut_short();
            return None;
        }
        let excess = order - 1.0;
        let start = self.place(0.0);
        let far = order * self.up;
        let centre = far + excess * self.down * self.ratio(-self.down, far).sampled;
        let smallness = -(self.rate * self.mu().min(1.0)).ln();
        let reach = (2.0 * (NEGLIGIBLE + 2.0 * smallness)).sqrt();
        let end = centre.max(start) + reach;
        let panels = (end - start).ceil();
        if !(panels <= MAX_PANELS) {
            return None;
        }
        let log_at = |x: f64| {
            work::charge(STEPS_PER_VALUE);
            self.log_integrand(order, x)
        };
        // Approximately the largest value.
        let reference = (0..=panels as u32)
            .map(|i| log_at(start + (end - start) * (f64::from(i) + 0.5) / (panels + 1.0)))
            .fold(f64::NEG_INFINITY, f64::max);
        let found = integrate(start, end, panels as u32, TOLERANCE, |x| (log_at(x) - reference).exp());
        let Point { loss, log_above, .. } = self.at(end);
        let log_end = log_above + excess * loss - 0.5 * end * end - LN_SQRT_2_PI;
        let beyond = (log_end - reference).exp() * (loss + self.mu() / reach) / reach;
        // The rounding of the logarithm of the integrand.
        let terms = end * end + order * (self.mu() * (end + self.mu()) - self.rate.ln());
        let rounding = 1.0 + f64::EPSILON * (256.0 + 16.0 * terms);
        let sum = (found.upper() + beyond) * rounding;
        let divergence = if reference.abs() < 600.0 && excess * sum * reference.exp() < 1e280 {
            let integral = sum * reference.exp();
            if excess == 0.0 { integral } else { (excess * integral).ln_1p() / excess }
        } else {
            log_add(0.0, reference + sum.ln() + excess.ln()) / excess
        };
        (divergence > 0.0).then_some(divergence * (1.0 + 8.0 * f64::EPSILON))
    }

    /// Returns the logarithm of `A (e^((a-1) L) - 1)/(a-1) (1 - e^(-a L))`.
    fn log_integrand(&self, order: f64, x: f64) -> f64 {
        let excess = order - 1.0;
        let (log_above, loss) = self.logs(x);
        if !(loss > 0.0) {
            return f64::NEG_INFINITY;
        }
        let exponent = excess * loss;
        // (e^y - 1)/y, y = (a-1) L.
        let growth = if exponent < 1e-8 {
            0.5 * exponent
        } else if exponent < 30.0 {
            (exponent.exp_m1() / exponent).ln()
        } else {
            exponent + (-(-exponent).exp()).ln_1p() - exponent.ln()
        };
        log_above - 0.5 * x * x - LN_SQRT_2_PI + loss.ln() + growth + log_one_minus_exp(-order * loss)
    }
}
