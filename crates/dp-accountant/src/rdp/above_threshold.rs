//! The sparse vector technique with one positive answer.
//!
//! The outcome is the index of the first query of a stream whose noisy value reaches a noisy threshold. Each query moves by at
//! most one sensitivity between neighbours. Shift the threshold's noise by one sensitivity, in the direction that makes the
//! negative answers at least as likely as before: then only the noise of the one positive answer has to compensate for a shift of
//! two. Let `threshold` be the sensitivity over the scale (standard deviation) of the threshold's noise, and `query` *twice* the
//! sensitivity over that of the queries' noise.
//!
//! **Laplace.** Given the shifted threshold, every outcome's ratio is at most `e^query`; by joint convexity over the
//! threshold, the divergence is at most that of the threshold's noise plus `query`. The whole is also
//! `(threshold + query)`-DP (Lyu, Su and Li 2017), for any number of queries.
//!
//! **Gaussian.** The ratio of the one positive answer is unbounded, but its moments are bounded: the sum over the at most `k + 1`
//! outcomes, each below `e^((a-1) D_query)`, gives
//!
//! ```text
//! D <= a (threshold² + query²)/2 + ln(k + 1)/(a - 1).
//! ```
//!
//! It needs the number of queries: without a bound on it there are streams whose outcome reveals the threshold comparisons almost
//! without the queries' noise. (Zhu and Wang 2020, Theorem 8, sums over the stopping times with a bound on their expected number,
//! which does not exist for Gaussian noise.) Moreover, the outcome is a function of the vector of all `query - threshold`
//! differences, a Gaussian with covariance `s2² I + s1² 11'`, whose shift is worst if half of the queries move up and half down,
//! for an even number:
//! ```text
//! D <= a/2 (query/2)² (k - c (k mod 2)),    c = s1²/(s2² + k s1²) = 1/(k + (2 threshold/query)²).
//! ```
//!
//! This is smaller for few queries, and proportional to the order.
//!
//! **Queries in one interval**, which holds 0 and has the length of one sensitivity: shift the threshold by the interval's upper
//! end, or lower; the remaining shift of the positive answer is one sensitivity, not two. The vector is worst if `j` of the
//! queries move by a whole sensitivity, all in one direction, and the others not at all: the quadratic form of a shift with `j`
//! entries of `1 - x` and `k - j` of `-x` is convex in `x`, and is equal at both ends up to exchanging `j` and `k - j`.
//!
//! ```text
//! D <= a/2 query'² max_j (j - c j²),    query' = sensitivity/s2,  c = 1/(k + (threshold/query')²)
//! ```

use super::{laplace, pure};
use crate::error::{Error, non_negative};
use crate::params::RdpOrder;
use crate::rounding::{add_up, count_up};

/// Factor that covers the rounding of a dozen operations on positive numbers.
const ROUND_UP: f64 = 1.0 + 16.0 * f64::EPSILON;

/// Returns a bound on the Renyi divergence of the sparse vector technique with Laplace noise and one positive answer, for any
/// number of queries.
///
/// `threshold_epsilon` = sensitivity / scale of the threshold's noise, `query_epsilon` = sensitivity / scale of each
/// query's noise.
///
/// # Formula
/// ```text
/// min( D_Laplace(order, threshold_epsilon) + 2 query_epsilon,  D_pure(order, threshold_epsilon + 2 query_epsilon) )
/// ```
///
/// # Errors
/// An argument negative, NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, rdp};
/// let cost = rdp::above_threshold_laplace(RdpOrder::new(32.0)?, 0.5, 0.25)?;
/// assert!((cost - 0.9781484250454262).abs() < 1e-12);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Lyu, Su and Li 2017, "Understanding the sparse vector technique for differential privacy", Theorem 2,
/// arXiv:1603.01699; Zhu and Wang 2020, "Improving sparse vector technique with Renyi differential privacy".
pub fn above_threshold_laplace(order: RdpOrder, threshold_epsilon: f64, query_epsilon: f64) -> Result<f64, Error> {
    let threshold = non_negative("threshold_epsilon", threshold_epsilon)?;
    let query = non_negative("query_epsilon", query_epsilon)?;
    Ok(rdp_laplace(order.get(), threshold, 2.0 * query))
}

/// Returns a bound on the Renyi divergence of the sparse vector technique with Gaussian noise, one positive answer, and at most
/// `max_queries` queries.
///
/// `threshold_mu` = sensitivity / standard deviation of the threshold's noise, `query_mu` = sensitivity / standard
/// deviation of each query's noise.
///
/// # Formula
/// With `t = threshold_mu`, `q = 2 query_mu`, `k = max_queries`, `b >= order` free,
/// ```text
/// min( b (t² + q²)/2 + ln(k + 1)/(b - 1),  order/2 (q/2)² (k - c (k mod 2)) ),    c = 1/(k + (2 t/q)²)
/// ```
///
/// # Errors
/// An argument negative, NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, rdp};
/// let cost = rdp::above_threshold_gaussian(RdpOrder::new(16.0)?, 1.0 / 3.0, 1.0 / 6.0, 10)?;
/// assert!((cost - 1.9376374626310024).abs() < 1e-12);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn above_threshold_gaussian(
    order: RdpOrder,
    threshold_mu: f64,
    query_mu: f64,
    max_queries: u64,
) -> Result<f64, Error> {
    let threshold = non_negative("threshold_mu", threshold_mu)?;
    let query = non_negative("query_mu", query_mu)?;
    Ok(Gaussian { threshold, query, max_queries, range_bounded: false }.rdp(order.get()))
}

/// As [`above_threshold_gaussian`], for queries that all move within one interval, which holds 0 and has the length of one
/// sensitivity: differences of sums of clamped losses with a common minuend.
///
/// # Formula
/// With `t = threshold_mu`, `q = query_mu`, `k = max_queries`, `b >= order` free,
/// ```text
/// min( b (t² + q²)/2 + ln(k + 1)/(b - 1),  order/2 q² max over j in 0..=k of (j - c j²) ),    c = 1/(k + (t/q)²)
/// ```
///
/// # Errors
/// An argument negative, NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, rdp};
/// let order = RdpOrder::new(8.0)?;
/// // The published claim, 0.2, holds for such queries up to 22 of them.
/// let (threshold, query) = ((2.0f64 * 0.025 / 3.0).sqrt(), (0.025f64 / 3.0).sqrt());
/// assert!(rdp::above_threshold_gaussian_range_bounded(order, threshold, query, 22)? < 0.2 * (1.0 + 1e-12));
/// assert!(rdp::above_threshold_gaussian_range_bounded(order, threshold, query, 23)? > 0.2);
/// assert!(rdp::above_threshold_gaussian(order, threshold, query, 7)? > 0.2);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn above_threshold_gaussian_range_bounded(
    order: RdpOrder,
    threshold_mu: f64,
    query_mu: f64,
    max_queries: u64,
) -> Result<f64, Error> {
    let threshold = non_negative("threshold_mu", threshold_mu)?;
    let query = non_negative("query_mu", query_mu)?;
    Ok(Gaussian { threshold, query, max_queries, range_bounded: true }.rdp(order.get()))
}

/// Returns an upper bound on the Renyi divergence of order `order >= 1` with Laplace noise.
pub(crate) fn rdp_laplace(order: f64, threshold: f64, query: f64) -> f64 {
    add_up(laplace::rdp(order, threshold), query).min(pure::rdp(order, pure_epsilon(threshold, query)))
}

/// Returns the pure guarantee with Laplace noise.
pub(crate) fn pure_epsilon(threshold: f64, query: f64) -> f64 {
    add_up(threshold, query)
}

/// Gaussian noise: sensitivities over standard deviations, and the directions in which the queries move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gaussian {
    /// Sensitivity / standard deviation of the threshold's noise.
    pub(crate) threshold: f64,
    /// Sensitivity / standard deviation of each query's noise.
    pub(crate) query: f64,
    pub(crate) max_queries: u64,
    /// True if all queries move within one interval that holds 0.
    pub(crate) range_bounded: bool,
}

impl Gaussian {
    /// Returns an upper bound on the Renyi divergence of order `order >= 1`.
    pub(crate) fn rdp(&self, order: f64) -> f64 {
        (order * self.per_order()).min(self.by_stopping_time(order)) * ROUND_UP
    }

    /// Returns `rho` of zero-concentrated differential privacy: one bound is proportional to the order; the other decreases with
    /// the order when divided by it.
    pub(crate) fn rho(&self) -> f64 {
        self.rdp(1.0)
    }

    /// Returns the slope of the bound for the whole vector of differences.
    fn per_order(&self) -> f64 {
        let queries = count_up(self.max_queries);
        let ratio = self.threshold / self.query;
        // c = s1²/(s2² + k s1²) with s1 = 1/threshold, s2 = 1/query.
        let c = (queries + ratio * ratio).recip();
        let largest = if self.range_bounded {
            // Up to rounding the middle of the parabola is (k + ratio²)/2; the two integers around it, within 0..=k.
            let middle = (0.5 / c).min(queries).floor();
            [middle - 1.0, middle, middle + 1.0]
                .into_iter()
                .map(|moved| moved.clamp(0.0, queries))
                .map(|moved| moved - c * moved * moved)
                .fold(0.0, f64::max)
        } else if self.max_queries % 2 == 1 {
            queries - c
        } else {
            queries
        };
        0.5 * self.query * self.query * largest
    }

    /// Returns the bound by stopping times, at the best order that is at least `order`: divergences grow with the order.
    fn by_stopping_time(&self, order: f64) -> f64 {
        let shift = if self.range_bounded { self.query } else { 2.0 * self.query };
        let slope = 0.5 * (self.threshold * self.threshold + shift * shift);
        let log_outcomes = count_up(self.max_queries).ln_1p();
        let order = order.max(1.0 + (log_outcomes / slope).sqrt());
        order * slope + log_outcomes / (order - 1.0)
    }
}

/// Returns `rho` of zero-concentrated differential privacy with Laplace noise.
///
/// Both bounds decrease with the order when divided by it (see [`crate::zcdp`]), so the supremum is at order 1.
pub(crate) fn rho_laplace(threshold: f64, query: f64) -> f64 {
    rdp_laplace(1.0, threshold, query) * ROUND_UP
}

#[cfg(test)]
mod tests;
