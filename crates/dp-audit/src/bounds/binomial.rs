//! Confidence limits of a binomial rate, for any confidence and any number of trials.
//!
//! The lower limit of a rate after `k` hits in `n` trials is the largest `p` at which `k` or more hits have probability at
//! most `a`. Any smaller `p` is a valid limit too, so an upper bound on the tail suffices:
//!
//! ```text
//! P(X >= k) = pmf(k) (1 + r_0 + r_0 r_1 + ...),   r_j = (n - k - j) / (k + 1 + j) · p / (1 - p)
//! ```
//!
//! The `r_j` decrease and are below 1 for `p < k/n`, so the rest after any term is at most a geometric series. All terms are
//! positive, so nothing cancels. Rates are parametrised by their log-odds, which keeps a rate and its complement equally
//! accurate: confidences such as 1e-300 and rates such as 1 - 1e-300 need no special treatment. (The usual inversion of the
//! incomplete beta function loses its root or does not terminate in general-purpose libraries there.)
//!
//! # References
//! C. Clopper, E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", 1934. C.
//! Loader, "Fast and accurate computation of binomial probabilities", 2000 (the mass function).

/// A rate with its complement, both to full relative accuracy.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Rate {
    /// The rate.
    pub value: f64,
    /// One minus the rate.
    pub complement: f64,
}

impl Rate {
    /// The rate 0.
    pub const ZERO: Self = Self { value: 0.0, complement: 1.0 };
    /// The rate 1.
    pub const ONE: Self = Self { value: 1.0, complement: 0.0 };

    /// Returns the rate of misses.
    pub fn flipped(self) -> Self {
        Self { value: self.complement, complement: self.value }
    }

    /// Returns the largest rate below which `hits` or more of `trials` have probability at most `failure`, rounded down.
    pub(super) fn lower_limit(hits: u64, trials: u64, failure: f64) -> Self {
        if hits == 0 || hits > trials || !(failure > 0.0) {
            return Self::ZERO;
        }
        let log_odds = lower_log_odds(hits, trials, failure.ln());
        // Rounded outwards: the exponential and two operations.
        let margin = 8.0 * f64::EPSILON;
        Self { value: sigmoid(log_odds) * (1.0 - margin), complement: (sigmoid(-log_odds) * (1.0 + margin)).min(1.0) }
    }

    /// Returns the smallest rate above which `hits` or fewer of `trials` have probability at most `failure`, rounded up.
    pub(super) fn upper_limit(hits: u64, trials: u64, failure: f64) -> Self {
        if hits > trials {
            return Self::ONE;
        }
        Self::lower_limit(trials - hits, trials, failure).flipped()
    }
}

/// Relative tolerance of a limit's tail probability.
const TIGHT: f64 = 1e-10;

/// Smallest log-odds: a rate below 1e-304, the limit of doubles, counts as 0.
const LEAST_LOG_ODDS: f64 = -700.0;

/// Upper bound on the steps of a search.
const MAX_STEPS: u32 = 200;

/// Returns log-odds at which the logarithm of the tail is at most `log_failure`, and close to it.
fn lower_log_odds(hits: u64, trials: u64, log_failure: f64) -> f64 {
    if hits == trials {
        // p^n = a: 1/p - 1 = exp(-ln a / n) - 1.
        let odds_against = (-log_failure / trials as f64).exp_m1();
        return -(odds_against * (1.0 + 8.0 * f64::EPSILON)).ln().next_up();
    }
    let excess = |log_odds: f64| log_upper_tail(hits, trials, log_odds) - log_failure;
    // Invariant: `low` is a valid limit, `high` is not known to be one.
    let mut high = (hits as f64 / (trials - hits) as f64).ln();
    let mut low = likely_lower(hits, trials, -log_failure).max(LEAST_LOG_ODDS);
    let mut step = 1e-6 + 1e-3 * (high - low).abs();
    let mut at_low = excess(low);
    while !(at_low <= 0.0) {
        if !(low > LEAST_LOG_ODDS) {
            return f64::NEG_INFINITY;
        }
        high = low;
        low = (low - step).max(LEAST_LOG_ODDS);
        step *= 2.0;
        at_low = excess(low);
    }
    let mut at_high = excess(high);
    // Regula falsi with halving of the retained end (Illinois), aimed at the middle of the tolerance.
    let aim = -0.5 * TIGHT;
    for _ in 0..MAX_STEPS {
        if at_low >= -TIGHT || !(high - low > f64::EPSILON * low.abs()) {
            break;
        }
        let fraction = (aim - at_low) / (at_high - at_low);
        let fraction = if fraction > 0.0 && fraction < 1.0 { fraction } else { 0.5 };
        let middle = low + fraction * (high - low);
        if !(middle > low && middle < high) {
            break;
        }
        let at_middle = excess(middle);
        if at_middle <= 0.0 {
            (low, at_low) = (middle, at_middle);
            at_high = aim + 0.5 * (at_high - aim);
        } else {
            (high, at_high) = (middle, at_middle);
        }
    }
    low
}

/// Returns approximate log-odds at which the Chernoff bound of the tail is `e^-nats`: close enough to the limit to start a
/// search or compare thresholds.
///
/// Uses Newton's method on `n KL(k/n, p)`, which is convex in the log-odds and decreasing up to `k/n`.
pub(crate) fn likely_lower(hits: u64, trials: u64, nats: f64) -> f64 {
    let (k, n) = (hits as f64, trials as f64);
    if hits == 0 || !(nats > 0.0) {
        return f64::NEG_INFINITY;
    }
    if hits >= trials {
        return -(nats / n).exp_m1().ln();
    }
    // Wilson's limit.
    let z = (2.0 * nats).sqrt();
    let centre = k + 0.5 * z * z;
    let spread = z * (k * (1.0 - k / n) + 0.25 * z * z).sqrt();
    let start = (centre - spread).max(k * 1e-9) / (n + z * z);
    let mut log_odds = (start / (1.0 - start)).ln();
    for _ in 0..8 {
        let (p, q) = (sigmoid(log_odds), sigmoid(-log_odds));
        let distance = -k * log_of_ratio(n * p, k) - (n - k) * log_of_ratio(n * q, n - k);
        let slope = k - n * p;
        let change = (distance - nats) / slope;
        if !(slope > 0.0) || !change.is_finite() {
            break;
        }
        log_odds = (log_odds + change.min(2.0)).max(LEAST_LOG_ODDS);
        if change.abs() < 1e-9 {
            break;
        }
    }
    log_odds
}

fn sigmoid(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// Computes `ln(mean / count) - (mean / count - 1)`: in a binomial, the first-order terms of two of them cancel exactly.
fn log_of_ratio(mean: f64, count: f64) -> f64 {
    let u = (mean - count) / count;
    if u.abs() > 0.2 {
        return (mean / count).ln() - u;
    }
    // ln(1 + u) = 2 (r + r³/3 + r⁵/5 + ...) with r = u / (2 + u), and 2 r - u = -u r.
    let r = u / (2.0 + u);
    let square = r * r;
    let (mut power, mut sum) = (r * square, 0.0);
    let mut odd = 3.0;
    while power.abs() > f64::EPSILON * 0.01 * u.abs() * r.abs() && odd < 60.0 {
        sum += power / odd;
        power *= square;
        odd += 2.0;
    }
    2.0 * sum - u * r
}

/// Computes `ln n! - ln(sqrt(2 pi n) (n/e)^n)`.
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        let mut factorial = 1.0;
        let mut factor = 2.0;
        while factor <= n {
            factorial *= factor;
            factor += 1.0;
        }
        return f64::ln(factorial) - ((n + 0.5) * n.ln() - n + 0.5 * core::f64::consts::TAU.ln());
    }
    let square = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * square)) / square) / square) / square)
        / n
}

/// Number of terms of the tail before the rest is bounded: all relevant ones up to 2^42 trials. With more trials the limits
/// are valid, but wider.
const MAX_TERMS: u64 = 1 << 20;

/// Returns the logarithm of an upper bound on `P(X >= hits)`, tight to about 1e-12 in the tail (`p < hits/trials`), and 0
/// elsewhere.
pub(super) fn log_upper_tail(hits: u64, trials: u64, log_odds: f64) -> f64 {
    let (k, n) = (hits as f64, trials as f64);
    let odds = log_odds.exp();
    let (p, q) = (sigmoid(log_odds), sigmoid(-log_odds));
    if hits == 0 || !(n * p < k) {
        return 0.0;
    }
    if hits >= trials {
        return (-n * (-log_odds).exp().ln_1p() * (1.0 - 4.0 * f64::EPSILON)).min(0.0);
    }
    let misses = n - k;
    let log_mass = stirling_error(n) - stirling_error(k) - stirling_error(misses)
        + k * log_of_ratio(n * p, k)
        + misses * log_of_ratio(n * q, misses)
        + 0.5 * (n / (core::f64::consts::TAU * k * misses)).ln();
    let (mut sum, mut term, mut added) = (1.0f64, 1.0f64, 0u64);
    loop {
        let j = added as f64;
        let ratio = ((misses - j) / (k + 1.0 + j)) * odds;
        if !(ratio > 0.0) {
            break;
        }
        let rest = if ratio < 1.0 { term * ratio / (1.0 - ratio) } else { f64::INFINITY };
        if rest <= 1e-13 * sum || added == MAX_TERMS {
            sum += rest;
            break;
        }
        term *= ratio;
        sum += term;
        added += 1;
    }
    // Rounding of the arguments of both logarithms (their derivatives are the deviations n p - k and n q - (n - k)), of their
    // values, and of every term of the sum.
    let deviation = (k - n * p).abs();
    let margin = 1e-13 + f64::EPSILON * (16.0 * (2.0 * deviation + log_mass.abs()) + 8.0 * added as f64);
    (log_mass + sum.ln() + margin).min(0.0)
}

#[cfg(test)]
mod tests;
