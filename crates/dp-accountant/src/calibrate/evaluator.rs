//! The choice of the accountant that evaluates a cost.

use crate::bound;
use crate::error::Error;
use crate::event::DpEvent;
use crate::exact;
use crate::gaussian;
use crate::gdp;
use crate::params::Delta;
use crate::rdp::RdpCurve;
use crate::zcdp;

/// The bound that a calibration evaluates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Evaluator {
    /// The tightest bound of this crate: [`bound`].
    #[default]
    Tightest,
    /// The Renyi curve at its best order: [`RdpCurve`].
    Renyi,
    /// Zero-concentrated differential privacy: [`zcdp`].
    Zcdp,
    /// Gaussian differential privacy: [`gdp`]. Refuses events that are not known to be Gaussian-DP.
    Gdp,
    /// The upper bound of the exact curve: [`exact`]. Refuses events without one.
    Exact,
}

impl Evaluator {
    /// Returns an upper bound on epsilon at `delta`; infinite if there is none.
    ///
    /// # Errors
    /// A number in the tree that is out of range, or an event for which the evaluator has no theorem.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::{Delta, DpEvent, calibrate::Evaluator};
    /// let event = DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 };
    /// let delta = Delta::new(1e-6)?;
    /// assert!((Evaluator::Tightest.epsilon(&event, delta)? - 4.886554117462212).abs() < 1e-11);
    /// assert!(Evaluator::Renyi.epsilon(&event, delta)? > 4.9);
    /// # Ok::<(), dp_accountant::Error>(())
    /// ```
    pub fn epsilon(self, event: &DpEvent, delta: Delta) -> Result<f64, Error> {
        Ok(match self {
            Self::Tightest => bound::epsilon(event, delta)?.value,
            Self::Renyi => RdpCurve::new(event)?.epsilon(delta),
            Self::Zcdp => match zcdp::rho(event)? {
                rho if rho.is_finite() => zcdp::epsilon(rho, delta)?,
                _ => f64::INFINITY,
            },
            Self::Gdp => match gdp::mu(event)? {
                mu if mu.is_finite() => gaussian::epsilon(mu, delta)?,
                _ => f64::INFINITY,
            },
            Self::Exact => exact::epsilon(event, delta)?.upper,
        })
    }

    /// Returns an upper bound on delta at `epsilon`; 1 if there is none.
    ///
    /// # Errors
    /// `epsilon` negative, NaN or infinite, and those of [`epsilon`](Self::epsilon).
    pub fn delta(self, event: &DpEvent, epsilon: f64) -> Result<f64, Error> {
        Ok(match self {
            Self::Tightest => bound::delta(event, epsilon)?.value,
            Self::Renyi => RdpCurve::new(event)?.delta(epsilon)?,
            Self::Zcdp => match zcdp::rho(event)? {
                rho if rho.is_finite() => zcdp::delta(rho, epsilon)?,
                _ => 1.0,
            },
            Self::Gdp => match gdp::mu(event)? {
                mu if mu.is_finite() => gaussian::delta(mu, epsilon)?,
                _ => 1.0,
            },
            Self::Exact => exact::delta(event, epsilon)?.upper.min(1.0),
        })
    }
}
