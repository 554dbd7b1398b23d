//! The sparse vector technique with one positive answer.
//!
//! Whether query `i` of a stream is the first whose noisy value reaches a noisy threshold. Each query moves by at most
//! one sensitivity between neighbours. Shift the threshold's noise by one sensitivity, in the direction that makes
//! the negative answers at least as likely as they were: then only the one positive answer's noise has to make up for a
//! shift of two. Let `threshold` be the sensitivity over the scale (standard deviation) of the threshold's noise,
//! `query` *twice* the sensitivity over that of the queries'.
//!
//! **Laplace.** Given the shifted threshold, every outcome's ratio is at most `e^query`; by joint convexity over the
//! threshold, the divergence is at most that of the threshold's noise plus `query`. The whole is also
//! `(threshold + query)`-DP (Lyu, Su and Li 2017), for any number of queries.
//!
//! **Gaussian.** The ratio of the one positive answer has no bound, but its moments have: the sum over the at most
//! `k + 1` outcomes, each below `e^((a-1) D_query)`, gives
//!
//! ```text
//! D <= a (threshold² + query²)/2 + ln(k + 1)/(a - 1).
//! ```
//!
//! It needs the number of queries: without one there are streams whose outcome reveals the threshold comparisons
//! nearly without the queries' noise. (Zhu and Wang 2020, Theorem 8, sums over the stopping times with a bound on the
//! expected number of them, which Gaussian noise has not.) Also, the outcome is a function of the vector of all
//! `query - threshold` differences, a Gaussian with covariance `s2² I + s1² 11'`, whose shift is worst where half of
//! the queries move up and half down, if their number is even:
//!
//! ```text
//! D <= a/2 (query/2)² (k - c (k mod 2)),    c = s1²/(s2² + k s1²) = 1/(k + (2 threshold/query)²).
//! ```
//!
//! This is smaller for few queries, and proportional to the order.

use super::{laplace, pure};
use crate::error::{Error, non_negative};
use crate::params::RdpOrder;
use crate::rounding::{add_up, count_up};

/// Covers the rounding of a dozen operations on positive numbers.
const ROUND_UP: f64 = 1.0 + 16.0 * f64::EPSILON;

/// The Renyi divergence of the sparse vector technique with Laplace noise and one positive answer, bounded for any
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

/// The Renyi divergence of the sparse vector technique with Gaussian noise, one positive answer, and at most
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
    Ok(rdp_gaussian(order.get(), threshold, 2.0 * query, max_queries))
}

/// An upper bound of the Renyi divergence of order `order >= 1` with Laplace noise.
pub(crate) fn rdp_laplace(order: f64, threshold: f64, query: f64) -> f64 {
    add_up(laplace::rdp(order, threshold), query).min(pure::rdp(order, pure_epsilon(threshold, query)))
}

/// The pure guarantee with Laplace noise.
pub(crate) fn pure_epsilon(threshold: f64, query: f64) -> f64 {
    add_up(threshold, query)
}

/// An upper bound of the Renyi divergence of order `order >= 1` with Gaussian noise.
pub(crate) fn rdp_gaussian(order: f64, threshold: f64, query: f64, max_queries: u64) -> f64 {
    (order * gaussian_per_order(threshold, query, max_queries)).min(gaussian_by_stopping_time(
        order,
        threshold,
        query,
        max_queries,
    )) * ROUND_UP
}

/// The slope of the bound for the whole vector of differences.
fn gaussian_per_order(threshold: f64, query: f64, max_queries: u64) -> f64 {
    let queries = count_up(max_queries);
    let odd = if max_queries % 2 == 1 {
        // c = s1²/(s2² + k s1²) with s1 = 1/threshold, s2 = 2/query.
        let ratio = 2.0 * threshold / query;
        (queries + ratio * ratio).recip()
    } else {
        0.0
    };
    0.125 * query * query * (queries - odd)
}

/// The bound by stopping times, at the best order that is not below `order`: divergences grow with the order.
fn gaussian_by_stopping_time(order: f64, threshold: f64, query: f64, max_queries: u64) -> f64 {
    let slope = 0.5 * (threshold * threshold + query * query);
    let log_outcomes = count_up(max_queries).ln_1p();
    let order = order.max(1.0 + (log_outcomes / slope).sqrt());
    order * slope + log_outcomes / (order - 1.0)
}

/// `rho` of zero-concentrated differential privacy with Laplace noise.
///
/// Both bounds fall with the order when divided by it (see [`crate::zcdp`]), so the supremum is at order 1.
pub(crate) fn rho_laplace(threshold: f64, query: f64) -> f64 {
    rdp_laplace(1.0, threshold, query) * ROUND_UP
}

/// `rho` of zero-concentrated differential privacy with Gaussian noise.
///
/// One bound is proportional to the order; the other falls with the order when divided by it.
pub(crate) fn rho_gaussian(threshold: f64, query: f64, max_queries: u64) -> f64 {
    rdp_gaussian(1.0, threshold, query, max_queries)
}

#[cfg(test)]
mod tests;
