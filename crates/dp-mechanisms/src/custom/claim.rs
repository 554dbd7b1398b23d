//! The claimed cost of one release.

use dp_accountant::{Delta, DpEvent, Epsilon, Rho};

use super::{FinitePair, RdpCurve};
use crate::error::{Error, positive_normal};

/// The cost of one release of a mechanism, for every pair of neighbours and in both orders of each pair.
///
/// A claim is converted to an [event](Self::event), which every accountant reads. State the strongest proved claim: `Gdp` or a
/// dominating pair gives tighter composition than the `ApproxDp` that they imply.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, DpEvent, Rho, bound};
/// use dp_mechanisms::custom::Claim;
/// let claim = Claim::ApproxZcdp { rho: Rho::new(0.02)?, delta: Delta::new(1e-8)? };
/// let once = claim.event()?;
/// let ten_times = DpEvent::SelfComposed { event: Box::new(once), count: 10 };
/// let epsilon = bound::epsilon(&ten_times, Delta::new(1e-6)?)?.value;
/// assert!(epsilon > 2.0 && epsilon < 3.5, "{epsilon}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Claim {
    /// Pure epsilon-DP: no outcome is more than `exp(epsilon)` times as likely for one neighbour as for the other.
    PureEps(Epsilon),
    /// (epsilon, delta)-DP, without any stronger known guarantee.
    ApproxDp {
        /// Epsilon.
        epsilon: Epsilon,
        /// Delta.
        delta: Delta,
    },
    /// For each pair of neighbours the privacy loss lies in some interval of this length, as for the exponential mechanism (Dong,
    /// Durfee and Rogers 2020, Definition 1.3, arXiv 1909.13830).
    BoundedRange(Epsilon),
    /// rho-zCDP: the Renyi divergence of every order `alpha > 1` is at most `rho · alpha`.
    Zcdp(Rho),
    /// delta-approximate rho-zCDP (Bun and Steinke 2016, Definition 8.1, arXiv 1605.02065): for each pair of neighbours
    /// there are events of probability at least `1 - delta`, one under each law, given which the Renyi divergences of
    /// every order `alpha > 1`, both ways, are at most `rho · alpha`.
    ApproxZcdp {
        /// Rho.
        rho: Rho,
        /// Delta.
        delta: Delta,
    },
    /// mu-Gaussian-DP: no easier to test than `N(0, 1)` against `N(mu, 1)`; mu is finite and positive.
    Gdp(f64),
    /// Renyi divergences at some orders.
    Rdp(RdpCurve),
    /// A dominating pair of laws. A [`LossCcdf`](super::LossCcdf) turns into one.
    DominatingPair(FinitePair),
}

impl From<RdpCurve> for Claim {
    fn from(curve: RdpCurve) -> Self {
        Self::Rdp(curve)
    }
}

impl From<FinitePair> for Claim {
    fn from(pair: FinitePair) -> Self {
        Self::DominatingPair(pair)
    }
}

impl From<super::LossCcdf> for Claim {
    fn from(losses: super::LossCcdf) -> Self {
        Self::DominatingPair(losses.dominating_pair())
    }
}

impl Claim {
    /// Converts the claim to an event.
    ///
    /// # Privacy
    /// Approximate zCDP has no event of its own: it is recorded as the composition of a release that fails with probability
    /// `delta` and reveals nothing otherwise ((0, delta)-DP) and a rho-zCDP release. The mechanism is a post-processing of the
    /// two. Proof: let `P`, `Q` be the laws of the output for two neighbours and `E`, `E'` the events of the
    /// definition. As `P(E) >= 1 - delta`,
    ///
    /// ```text
    /// P = (1 - delta) P(·|E) + delta P1,   P1 = [ (P(E) - 1 + delta) P(·|E) + P(not E) P(·|not E) ] / delta
    /// ```
    ///
    /// with `P1` a probability law, and likewise for `Q` with `E'` and `Q1`. Let the first release reveal the true neighbour with
    /// probability `delta`, and otherwise nothing; let the second draw from `P(·|E)` or `Q(·|E')`, which is rho-zCDP for this
    /// pair. Publish the second if the first revealed nothing, otherwise a draw from `P1` or `Q1`. This is `P` for the one
    /// neighbour and `Q` for the other. Nothing is lost except what the definition does not determine. `E` and `E'` depend on
    /// this pair, so the two releases cannot be read for a group of records: accountants refuse this.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::NotPositive`] or [`Error::TooSmall`] for mu, and the errors of the accountant.
    pub fn event(&self) -> Result<DpEvent, Error> {
        let event = match self {
            Self::PureEps(epsilon) => DpEvent::PureDp { epsilon: epsilon.get() },
            Self::ApproxDp { epsilon, delta } => approximate(epsilon.get(), *delta),
            Self::BoundedRange(eta) => DpEvent::BoundedRange { epsilon: eta.get() },
            Self::Zcdp(rho) => DpEvent::Zcdp { rho: rho.get() },
            Self::ApproxZcdp { rho, delta } if delta.get() > 0.0 => {
                DpEvent::Composed { events: vec![approximate(0.0, *delta), DpEvent::Zcdp { rho: rho.get() }] }
            }
            Self::ApproxZcdp { rho, .. } => DpEvent::Zcdp { rho: rho.get() },
            Self::Gdp(mu) => DpEvent::Gdp { mu: positive_normal("mu", *mu)? },
            Self::Rdp(curve) => curve.event(),
            Self::DominatingPair(pair) => pair.event(),
        };
        // The accountant's own checks: an event that it refuses is not a valid claim.
        event.relations()?;
        Ok(event)
    }
}

fn approximate(epsilon: f64, delta: Delta) -> DpEvent {
    if delta.get() > 0.0 { DpEvent::ApproximateDp { epsilon, delta: delta.get() } } else { DpEvent::PureDp { epsilon } }
}
