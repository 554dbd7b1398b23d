//! The best of a random number of repetitions: private hyperparameter tuning.
//!
//! A mechanism is repeated `K` times, with `K` drawn from a public law, and only the best outcome is published, by a total order
//! of outcomes. The privacy loss is that of one repetition plus a cost for the law of `K`. This is small if the law has heavy
//! tails, so that the published outcome reveals little about the number of repetitions.
//!
//! Every bound holds at every order, and divergences grow with the order, so a bound at a larger order holds at a smaller one;
//! the least is taken.

use super::leaf::check;
use super::order::{minimise, minimiser};
use super::prepared::Base;
use super::{conversion, pure};
use crate::error::{Error, non_negative, positive};
use crate::event::Repetitions;
use crate::gaussian::exp_up;
use crate::leaves::Leaves;
use crate::leaves::pure::pure_epsilon_of_all;
use crate::params::RdpOrder;
use crate::rounding::mul_up;

/// Covers the rounding of a few elementary functions of numbers of any sign, relative to their absolute values.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// Returns the mean of the truncated negative binomial law of [`Repetitions::TruncatedNegativeBinomial`].
///
/// # Formula
/// ```text
/// eta (1 - gamma) / (gamma (1 - gamma^eta)),    (1/gamma - 1)/ln(1/gamma) at eta = 0
/// ```
///
/// # Errors
/// `eta` not above -1 or not finite; `gamma` outside (0, 1).
///
/// # Examples
/// ```
/// use dp_accountant::rdp::random_stopping;
/// assert!((random_stopping::mean_repetitions(1.0, 0.1)? - 10.0).abs() < 1e-13);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
pub fn mean_repetitions(eta: f64, gamma: f64) -> Result<f64, Error> {
    check_law(eta, gamma)?;
    Ok(log_mean(eta, gamma).exp())
}

/// Returns the Renyi divergence of the best of `K` repetitions, `K` truncated negative binomial, from that of one repetition at
/// two orders: `rdp` at `order`, `auxiliary_rdp` at `auxiliary_order`.
///
/// An event tree with [`DpEvent::RandomStopping`](crate::DpEvent::RandomStopping) takes the best auxiliary order.
///
/// # Formula
/// ```text
/// rdp + (1 + eta) ( (1 - 1/b) auxiliary_rdp + ln(1/gamma)/b ) + ln(E K)/(order - 1),    b = auxiliary_order
/// ```
///
/// # Errors
/// `eta` not above -1 or not finite; `gamma` outside (0, 1); a divergence negative, NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, rdp::random_stopping};
/// // One repetition is 0.01-zCDP; ten on average, the number geometric.
/// let order = RdpOrder::new(4.0)?;
/// let cost = random_stopping::truncated_negative_binomial(1.0, 0.1, order, 0.04, order, 0.04)?;
/// assert!((cost - 2.0188209108283712).abs() < 1e-13);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Papernot and Steinke 2022, "Hyperparameter tuning with Renyi differential privacy", Theorem 2, arXiv:2110.03620.
pub fn truncated_negative_binomial(
    eta: f64,
    gamma: f64,
    order: RdpOrder,
    rdp: f64,
    auxiliary_order: RdpOrder,
    auxiliary_rdp: f64,
) -> Result<f64, Error> {
    check_law(eta, gamma)?;
    let (rdp, auxiliary) = (non_negative("rdp", rdp)?, non_negative("auxiliary_rdp", auxiliary_rdp)?);
    let law = (1.0 + eta) * auxiliary_term(auxiliary_order.get(), auxiliary, gamma);
    Ok((rdp + law + log_mean(eta, gamma) / (order.get() - 1.0)) * (1.0 + ROUNDING))
}

/// Returns the pure guarantee of the best of `K` repetitions of an `epsilon`-DP mechanism, `K` truncated negative binomial: `(2 +
/// eta) epsilon`, for every `gamma`.
///
/// # Errors
/// `eta` not above -1 or not finite; `epsilon` negative, NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::rdp::random_stopping;
/// // A geometric number of repetitions (Liu and Talwar 2019).
/// assert_eq!(random_stopping::pure_truncated_negative_binomial(1.0, 0.5)?, 1.5);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Papernot and Steinke 2022, Corollary 3, arXiv:2110.03620.
pub fn pure_truncated_negative_binomial(eta: f64, epsilon: f64) -> Result<f64, Error> {
    check_law(eta, 0.5)?;
    let epsilon = non_negative("epsilon", epsilon)?;
    Ok(if eta.fract() == 0.0 { mul_up(2.0 + eta, epsilon) } else { mul_up((2.0 + eta).next_up(), epsilon) })
}

/// Returns the Renyi divergence of the best of `K` repetitions, `K` Poisson, from that of one repetition at the same order,
/// `rdp`, and its `delta` at the epsilon of [`poisson_epsilon`] for the order.
///
/// # Formula
/// ```text
/// 1/(order - 1) ln( e^-mean + mean exp((order - 1)(rdp + mean delta)) )
/// ```
///
/// The published form, `rdp + mean delta + ln(mean)/(order - 1)`, omits the first term, which is the probability of no
/// repetition, a separate outcome. With few repetitions on average that form is not a bound (it can be negative); with many the
/// two agree.
///
/// # Errors
/// `mean` not positive; `rdp` or `delta` negative, NaN or infinite.
///
/// # Examples
/// ```
/// use dp_accountant::{RdpOrder, rdp::random_stopping};
/// let order = RdpOrder::new(4.0)?;
/// assert!(0.2 <= random_stopping::poisson_epsilon(order));
/// let cost = random_stopping::poisson(10.0, order, 0.05, 1e-6)?;
/// assert!((cost - 0.8175383643313485).abs() < 2e-6);
/// # Ok::<(), dp_accountant::Error>(())
/// ```
///
/// # References
/// Papernot and Steinke 2022, Theorem 6, arXiv:2110.03620. The law of the best outcome has distribution function `f(F)`
/// with `f(x) = e^(mean (x - 1))` and `F` that of one repetition, so its moment is `f(0)` and an integral of the
/// base's moment times `f'(q)^a f'(q')^(1-a)`, `a` the order. With `p = 1 - q` the latter factor is `mean exp(mean ((a-1)
/// p' - a p))`, and `p' - a/(a-1) p <= delta` as one repetition is `(ln(a/(a-1)), delta)`-DP.
pub fn poisson(mean: f64, order: RdpOrder, rdp: f64, delta: f64) -> Result<f64, Error> {
    let mean = positive("mean", mean)?;
    let (rdp, delta) = (non_negative("rdp", rdp)?, non_negative("delta", delta)?);
    Ok(poisson_at(mean, order.get(), rdp, delta))
}

/// Returns the epsilon at which [`poisson`] needs the delta of one repetition: `ln(order/(order - 1))`, rounded down.
pub fn poisson_epsilon(order: RdpOrder) -> f64 {
    (order.get() - 1.0).recip().ln_1p() * (1.0 - ROUNDING)
}

/// The tuning of one base mechanism, with the values that do not depend on the order.
#[derive(Debug, Clone)]
pub(crate) struct Stopping<'a> {
    base: Base<'a>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Unbounded,
    TruncatedNegativeBinomial {
        /// The cost of the law of repetitions at the best auxiliary order.
        auxiliary: f64,
        log_mean: f64,
        /// Least order whose bound is computed; it is used for smaller orders too.
        least_order: f64,
        pure_epsilon: f64,
    },
    Poisson {
        mean: f64,
        /// Logarithm of delta of one repetition at epsilon 0, which bounds that at any other epsilon.
        log_total_variation: f64,
    },
}

impl<'a> Stopping<'a> {
    pub(crate) fn new(repetitions: Repetitions, base: &'a Leaves) -> Self {
        let (leaves, base) = (base, Base::new(base));
        if leaves.iter().any(|(leaf, _)| check(leaf).is_err()) {
            return Self { base, kind: Kind::Unbounded };
        }
        let kind = match repetitions {
            Repetitions::TruncatedNegativeBinomial { eta, gamma } => {
                let log_mean = log_mean(eta, gamma);
                let of_order = |order: f64| auxiliary_term(order, base.at(order), gamma);
                // At auxiliary order 1 the divergence does not contribute.
                let least = minimiser(of_order).1.min(-gamma.ln());
                let stated = |order: f64| base.at(order) + log_mean / (order - 1.0);
                let pure = pure_epsilon_of_all(leaves);
                Kind::TruncatedNegativeBinomial {
                    auxiliary: (1.0 + eta) * least,
                    log_mean,
                    least_order: minimiser(stated).0,
                    pure_epsilon: mul_up((2.0 + eta).next_up(), pure),
                }
            }
            Repetitions::Poisson { mean } => {
                Kind::Poisson { mean, log_total_variation: conversion::log_total_variation(base.at(1.0)) }
            }
        };
        Self { base, kind }
    }

    /// Returns an upper bound on the Renyi divergence of order `order >= 1`.
    pub(crate) fn rdp(&self, order: f64) -> f64 {
        match &self.kind {
            Kind::Unbounded => f64::INFINITY,
            Kind::TruncatedNegativeBinomial { auxiliary, log_mean, least_order, pure_epsilon } => {
                let raised = order.max(*least_order);
                let renyi = self.base.at(raised) + auxiliary + log_mean / (raised - 1.0);
                let renyi = if renyi.is_nan() { f64::INFINITY } else { renyi * (1.0 + ROUNDING) };
                if pure_epsilon.is_finite() { renyi.min(pure::rdp(order, *pure_epsilon)) } else { renyi }
            }
            Kind::Poisson { mean, log_total_variation } => {
                // At order 1 the condition on epsilon is void; any larger order may be used.
                let order = order.max(1.0 + f64::EPSILON.sqrt());
                let epsilon = (order - 1.0).recip().ln_1p() * (1.0 - ROUNDING);
                let log_delta = minimise(|order| conversion::best_log_delta(order, self.base.at(order), epsilon));
                poisson_at(*mean, order, self.base.at(order), exp_up(log_delta.min(*log_total_variation).min(0.0)))
            }
        }
    }
}

fn poisson_at(mean: f64, order: f64, rdp: f64, delta: f64) -> f64 {
    let excess_order = order - 1.0;
    let log_factor = excess_order * (rdp + mean * delta);
    // ln(e^-m + m e^f) = f + ln(m + e^(-m - f)): relative to the larger part, which f >= 0 keeps finite.
    let log_moment = log_factor + (mean + (-mean - log_factor).exp()).ln();
    let magnitude = log_factor + mean.ln().abs() + 1.0;
    let bound = (log_moment.max(0.0) + ROUNDING * magnitude) / excess_order;
    if bound.is_nan() { f64::INFINITY } else { bound }
}

/// Returns `(1 - 1/b) D_b + ln(1/gamma)/b`.
fn auxiliary_term(order: f64, rdp: f64, gamma: f64) -> f64 {
    let share = (order - 1.0) / order;
    let of_base = if share == 0.0 { 0.0 } else { share * rdp };
    of_base - gamma.ln() / order
}

/// Returns `ln E K`, by `expm1` so that only `eta` = 0 is a special case.
fn log_mean(eta: f64, gamma: f64) -> f64 {
    let log_inverse = -gamma.ln();
    // (1 - gamma^eta)/eta, which is ln(1/gamma) at 0 and positive for either sign.
    let denominator = if eta == 0.0 { log_inverse } else { -(-eta * log_inverse).exp_m1() / eta };
    (-gamma).ln_1p() + log_inverse - denominator.ln()
}

fn check_law(eta: f64, gamma: f64) -> Result<(), Error> {
    if !(eta > -1.0 && eta.is_finite()) {
        return Err(Error::OutOfRange { name: "eta", value: eta, range: "(-1, inf)" });
    }
    if !(gamma > 0.0 && gamma < 1.0) {
        return Err(Error::OutOfRange { name: "gamma", value: gamma, range: "(0, 1)" });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
