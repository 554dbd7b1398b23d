//! How the iterate follows the gradients: straight, with momentum, with steps that adapt, or in two copies.

use dp_losses::Penalty;

use crate::engine::AdmmOutput;
use crate::error::Error;
use crate::float::FloatKind;
use crate::schedule::StepSizes;

/// The update of a run, given the gradients; public.
///
/// # Formula
/// With `g` the batch's sum of gradients, taken at `y_{t-1}`, over the divisor, and `x_0 = y_0` the start:
/// ```text
/// x_t = Π_R( (1 - η_t λ) y_{t-1} - η_t g )
/// Plain         y_t = x_t
/// Accelerated   y_t = Π_R( x_t + m (x_t - x_{t-1}) )
/// Adam          x_t by moments of the gradients        see Adam
/// AdamBc        the same without the noise's part      see Adam
/// Consensus     each party's x_t drawn to all's  see ConsensusAdmm
/// Admm          x_t drawn to a sparse copy z_t         see LinearisedAdmm
/// ```
/// ([`Adam`](crate::engine::Adam), [`LinearisedAdmm`](crate::engine::LinearisedAdmm)). With a
/// [penalty](dp_losses::Penalty) plain and accelerated steps go through its map before the projection.
///
/// The output is `Σ_t α_t x_t`, of z where that is ADMM's output. Without noise, for a constant step `η <= 1/β` and a strongly convex objective of modulus
/// `γ`, momentum `m = (1 - √(ηγ)) / (1 + √(ηγ))` brings `x_t` within a factor `(1 - √(ηγ))^t` of the minimum: `√κ` steps
/// do what takes plain descent `κ`. Where each step is paid for by noise, fewer steps are less noise.
///
/// # Privacy
/// Where the gradients are noisy sums that were paid for, everything here is arithmetic on what is released and on public
/// numbers: `y_t` is a function of `x_0` and of the noisy sums `1..t`, as it is in plain descent, so that the next sum is
/// chosen from released values alone (adaptive composition) and the event is the same for every momentum. Gradients that
/// are bounded within a ball only are bounded here too, since `y_t` is projected. So are moments, copies and dual variables:
/// no step looks at records but through its noisy sum.
///
/// # Examples
/// ```
/// use dp_optim::Descent;
/// assert!((Descent::suited_to(0.04).momentum() - 2.0 / 3.0).abs() < 1e-15); // (1 - 0.2)/(1 + 0.2)
/// assert_eq!(Descent::suited_to(1.0), Descent::Plain); // one step is enough
/// ```
///
/// # References
/// Nesterov, "Introductory lectures on convex optimization", 2004, scheme (2.2.11) with constant momentum, Theorem 2.2.3.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum Descent {
    /// Each gradient is taken at the last iterate.
    #[default]
    Plain,
    /// Nesterov's accelerated descent: each gradient is taken ahead of the last iterate, in the direction of the last move.
    Accelerated {
        /// m in [0, 1): how far ahead, in moves.
        momentum: f64,
    },
    /// Adam: each weight's step is divided by the root of its gradients' mean square.
    Adam {
        /// β₁ in [0, 1), with β₁² < β₂.
        first_decay: f64,
        /// β₂ in (0, 1).
        second_decay: f64,
        /// ε: what is added to the root.
        epsilon: f64,
    },
    /// Adam without the noise's part of that mean square, which would else be nearly all of it.
    AdamBc {
        /// β₁ in [0, 1).
        first_decay: f64,
        /// β₂ in (0, 1).
        second_decay: f64,
        /// φ: what is left is at least this share of the noise's part.
        floor: f64,
    },
    /// Consensus ADMM: parties with records of their own take turns, and agree after each round; see
    /// [`ConsensusAdmm`](crate::engine::ConsensusAdmm).
    Consensus {
        /// ρ > 0: how strongly what was agreed on draws each party.
        rho: f64,
        /// N: number of parties, at least one.
        parties: u64,
    },
    /// Linearised ADMM: the penalty acts on a copy of the model.
    Admm {
        /// ρ > 0: how strongly the copies draw each other.
        rho: f64,
        /// Which copy is released. A serialised recipe that does not say means the sparse one.
        #[cfg_attr(feature = "serde", serde(default))]
        output: AdmmOutput,
    },
}

/// The most parties: each keeps two copies of the model.
const MOST_PARTIES: u64 = 1 << 16;

impl Descent {
    /// Accelerated descent with the momentum that suits a constant step `η` and strong convexity `γ`, of which it takes the
    /// product `ηγ`, clamped to [0, 1]. A product of 0 gives the largest momentum below 1.
    pub fn suited_to(step_times_convexity: f64) -> Self {
        let root = step_times_convexity.clamp(0.0, 1.0).sqrt();
        let momentum = ((1.0 - root) / (1.0 + root)).min(1.0 - f64::EPSILON);
        if momentum > 0.0 { Self::Accelerated { momentum } } else { Self::Plain }
    }

    /// m: 0 for all but accelerated descent.
    pub fn momentum(&self) -> f64 {
        match self {
            Self::Accelerated { momentum } => *momentum,
            _ => 0.0,
        }
    }

    /// What a summary adds to the batches: nothing for plain descent.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Accelerated { momentum } => format!(", momentum {momentum:.3}"),
            Self::Adam { first_decay, second_decay, .. } => format!(", Adam {first_decay} {second_decay}"),
            Self::AdamBc { first_decay, second_decay, .. } => {
                format!(", Adam {first_decay} {second_decay} without the noise's part")
            }
            Self::Admm { rho, .. } | Self::Consensus { rho, .. } => format!(", rho {rho}"),
        }
    }

    /// Whether it is plain or accelerated: what recipes take that are about such steps alone.
    pub(crate) fn is_straight(&self) -> bool {
        matches!(self, Self::Plain | Self::Accelerated { .. })
    }

    /// Refuses numbers with which the iterate may run away.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let within = |name, value: f64, low: f64, high: f64, range| {
            if value >= low && value <= high { Ok(()) } else { Err(Error::OutOfRange { name, value, range }) }
        };
        let below_one = |name, value: f64| within(name, value, 0.0, 1.0 - f64::EPSILON, "[0, 1)");
        match *self {
            Self::Plain => Ok(()),
            Self::Accelerated { momentum } => below_one("momentum", momentum),
            Self::Adam { first_decay, second_decay, epsilon } => {
                below_one("first decay", first_decay)?;
                below_one("second decay", second_decay)?;
                let least = first_decay * first_decay;
                if !(second_decay > least) {
                    let range = "(first decay², 1)";
                    return Err(Error::OutOfRange { name: "second decay", value: second_decay, range });
                }
                within("epsilon of adam", epsilon, 1e-12, 1e12, "[1e-12, 1e12]")
            }
            Self::AdamBc { first_decay, second_decay, floor } => {
                below_one("first decay", first_decay)?;
                below_one("second decay", second_decay)?;
                within("floor", floor, 1e-6, 1e6, "[1e-6, 1e6]")
            }
            Self::Admm { rho, .. } => within("rho", rho, 1e-6, 1e6, "[1e-6, 1e6]"),
            Self::Consensus { rho, parties } => {
                if !(1..=MOST_PARTIES).contains(&parties) {
                    return Err(Error::Count { name: "parties", value: parties, range: "1 to 65536" });
                }
                within("rho", rho, 1e-6, 1e6, "[1e-6, 1e6]")
            }
        }
    }

    /// Refuses runs whose iterates could leave the range of the float type, where something might fail for some data and
    /// not for other.
    ///
    /// # Formula
    /// A step moves the iterate by at most `D = η_t sum / divisor`; the regulariser alone moves it towards the origin where
    /// `ηλ <= 2`, and so does every penalty's map. With a radius one step counts, else all `T`: `‖x_T‖ <= D T`.
    ///
    /// With momentum `m` and no radius, `x_{t+1} = a (x_t + m (x_t - x_{t-1})) - d_t` with `‖d_t‖ <= D` and `a = 1 - ηλ`. For
    /// a constant `a` in [0, 1] what is left of `d_t` after k steps has the coefficient `Σ_i r^i s^(k-i)`, with r and s the
    /// roots of `z² - a (1 + m) z + am`, which lie in the closed unit disc; it is at most `k + 1`. So `‖x_T‖ <= D T²`, and
    /// the point ahead is at most three times as far. Steps that change are refused where λ > 0: there `a` may change in
    /// such a way that the moves add up. A penalty's map adds its pull, `ηY`, to D, and a ridge divides a by `1 + η ridge`.
    ///
    /// Adam moves a weight by at most `η / √((1 - β₂)(1 - β₁²/β₂))` (Cauchy-Schwarz on the two moments). Without the noise's
    /// part it moves all of them by `η G/(√φ σ/divisor)` at most, with `G = sum/divisor + λ max ‖x‖` the longest gradient.
    ///
    /// ADMM adds at most `η (2Y + sum/divisor)/(1 + ηρ)` to the largest `‖x‖` so far where a ridge is at most `2ρ`: then
    /// `‖ρz - y‖ <= ρ max ‖x‖ + 2Y`, since y is a subgradient of the penalty at z; and `‖z‖ <= max ‖x‖ + Y/ρ`.
    ///
    /// Consensus ADMM without gradients is proximal ADMM on the penalty alone, of which the origin is a fixed point: it does
    /// not raise `V = (1/η - λ) Σ‖w_i‖² + ρN ‖w‖² + Σ‖γ_i‖²/ρ` (Deng and Yin, 2016, Theorem 2.1; the regulariser is quadratic,
    /// so that its linearisation with `1/η` is its exact step with `1/η - λ`). Gradients move each w_i by
    /// `D = η (sum/divisor)/(1 + ηρ)` at most, so w by D and γ_i/ρ by 2D, and `√V` by `D √(N (1/η + 5ρ))`. After K rounds
    /// `‖w‖ + ‖γ_i‖/ρ <= 2√V/√ρ`, and `‖w_i‖` is at most K D more. Within a ball of radius R, `‖w‖ <= R + Y/ρ`, and each round
    /// adds `2R + Y/ρ` to `‖γ_i‖/ρ` at most: the mean of the γ_i is a subgradient at w, whose ridge shrinks w by as much as it
    /// had pulled before.
    pub(crate) fn check_range(&self, run: &Range<'_>) -> Result<(), Error> {
        let farthest = match run.float {
            FloatKind::F64 => 1e140,
            FloatKind::F32 => 1e15,
        };
        let reach = self.reach(run)?;
        let longest_gradient = run.sum / run.divisor + run.lambda * reach;
        if !(reach <= farthest) || !(run.sum <= farthest) || !(longest_gradient <= farthest) {
            let why = "steps so long could overflow: shorten them, or set a radius";
            return Err(Error::NotProved { recipe: run.recipe, why });
        }
        Ok(())
    }

    /// A bound on the iterates, of all copies.
    fn reach(&self, run: &Range<'_>) -> Result<f64, Error> {
        let not_proved = |why| Err(Error::NotProved { recipe: run.recipe, why });
        let (longest, total) = (run.steps.largest(), run.updates as f64);
        let gradient = run.sum / run.divisor;
        let (pull, ridge) = run.penalty.map_or((0.0, 0.0), |penalty| {
            (penalty.pull(usize::try_from(run.parameters).unwrap_or(usize::MAX)), penalty.ridge())
        });
        let shrinks = longest * run.lambda <= 2.0;
        Ok(match (*self, run.radius) {
            // The point ahead is within three radii before it is projected.
            (Self::Plain | Self::Accelerated { .. }, Some(radius)) => {
                3.0 * ((longest * run.lambda + 1.0) * radius + longest * gradient)
            }
            (Self::Accelerated { momentum }, None) if momentum > 0.0 => {
                if (run.lambda > 0.0 || ridge > 0.0) && run.steps.constant().is_none() {
                    return not_proved("momentum with a regulariser needs a constant step, or a radius");
                }
                if !(longest * run.lambda <= 1.0) {
                    return not_proved("momentum needs steps of at most 1/lambda, or a radius");
                }
                3.0 * total * total * longest * (gradient + pull)
            }
            (Self::Plain | Self::Accelerated { .. }, None) if shrinks => total * longest * gradient,
            (Self::Adam { first_decay, second_decay, .. }, radius) => {
                let bound = 1.0 / ((1.0 - second_decay) * (1.0 - first_decay * first_decay / second_decay)).sqrt();
                let move_by = longest * bound * (run.parameters as f64).sqrt();
                radius.map_or(total * move_by, |radius| radius + move_by)
            }
            (Self::AdamBc { floor, .. }, radius) => {
                // Moves over gradients.
                let ratio = longest / (floor.sqrt() * run.std_dev / run.divisor);
                match radius {
                    Some(radius) => radius + ratio * (gradient + run.lambda * radius),
                    None if run.lambda == 0.0 => total * ratio * gradient,
                    // x grows by `ratio (gradient + λx)` at most: a geometric sum.
                    None => gradient / run.lambda * (total * (ratio * run.lambda).ln_1p()).exp_m1(),
                }
            }
            (Self::Admm { rho, .. }, radius) => {
                if !(ridge <= 2.0 * rho) {
                    return not_proved("a ridge of the elastic net needs rho of at least half of it");
                }
                if !shrinks {
                    return not_proved("steps of at most 2/lambda are needed");
                }
                let move_by = longest * (2.0 * pull + gradient) / (1.0 + longest * rho);
                let all = radius.map_or(total * move_by, |radius| radius + move_by);
                // z, y/ρ and what is between them.
                3.0 * (all + pull / rho + ridge / rho * all)
            }
            (Self::Consensus { rho, parties }, radius) => {
                if run.penalty.is_some_and(|penalty| !penalty.is_convex()) {
                    return not_proved("parties agree under convex penalties only: l1, elastic-net, group, nuclear");
                }
                if radius.is_none() && !(longest * run.lambda <= 1.0 && run.steps.constant().is_some()) {
                    return not_proved("parties need a constant step of at most 1/lambda, or a radius");
                }
                let parties = parties as f64;
                let rounds = (total / parties).ceil();
                3.0 * consensus_reach(rho, parties, rounds, longest, gradient, radius, pull)
            }
            (Self::Plain | Self::Accelerated { .. }, None) => f64::INFINITY,
        })
    }

    /// Whether this is plain descent: what a serialised recipe that does not say means.
    #[cfg(feature = "serde")]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }
}

/// How far copies and duals over ρ may be from the origin: the formula of [`Descent::check_range`].
pub(crate) fn consensus_reach(
    rho: f64,
    parties: f64,
    rounds: f64,
    step: f64,
    gradient: f64,
    radius: Option<f64>,
    pull: f64,
) -> f64 {
    match radius {
        Some(radius) => (rounds + 1.0) * (2.0 * radius + pull / rho),
        None => {
            let move_by = step * gradient / (1.0 + step * rho);
            let root = rounds * move_by * (parties * (1.0 / step + 5.0 * rho)).sqrt();
            2.0 * root / rho.sqrt() + rounds * move_by
        }
    }
}

/// What bounds how far a run with bounded sums can stray; public.
pub(crate) struct Range<'r> {
    pub(crate) recipe: &'static str,
    pub(crate) steps: &'r StepSizes,
    pub(crate) updates: u64,
    /// Bound on the norm of a step's sum, its noise included.
    pub(crate) sum: f64,
    /// The least that it is divided by.
    pub(crate) divisor: f64,
    pub(crate) lambda: f64,
    pub(crate) radius: Option<f64>,
    pub(crate) penalty: Option<&'r Penalty>,
    /// Number of parameters.
    pub(crate) parameters: u64,
    /// Standard deviation of the noise on each coordinate of a sum.
    pub(crate) std_dev: f64,
    pub(crate) float: FloatKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn momentum_lies_below_one() {
        for product in [0.0, 1e-300, 1e-6, 0.3, 1.0, 2.0, f64::INFINITY] {
            let descent = Descent::suited_to(product);
            assert!(descent.check().is_ok() && (0.0..1.0).contains(&descent.momentum()), "{product}: {descent:?}");
        }
        for momentum in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Descent::Accelerated { momentum }.check(), Err(Error::OutOfRange { .. })), "{momentum}");
        }
        for bad in [-0.1, 1.0, f64::NAN] {
            assert!(Descent::Adam { first_decay: bad, second_decay: 0.999, epsilon: 1e-8 }.check().is_err(), "{bad}");
            assert!(Descent::AdamBc { first_decay: 0.9, second_decay: bad, floor: 0.1 }.check().is_err(), "{bad}");
        }
        for bad in [-0.1, 0.0, f64::NAN, f64::INFINITY] {
            assert!(Descent::Adam { first_decay: 0.9, second_decay: 0.999, epsilon: bad }.check().is_err(), "{bad}");
            assert!(Descent::AdamBc { first_decay: 0.9, second_decay: 0.999, floor: bad }.check().is_err(), "{bad}");
            assert!(Descent::Admm { rho: bad, output: AdmmOutput::Sparse }.check().is_err(), "{bad}");
        }
        // Its moves have no bound.
        assert!(Descent::Adam { first_decay: 0.9, second_decay: 0.81, epsilon: 1e-8 }.check().is_err());
        // A product that is no number.
        assert!(Descent::suited_to(f64::NAN).check().is_ok());
    }

    /// What ADMM computes on the way is three times what bounds its iterates: `z`, `y/ρ` and `ρz - y`. At that much the range of
    /// the type is checked, not later.
    #[test]
    fn the_range_of_admm_holds_all_that_it_computes() {
        let admm = Descent::Admm { rho: 0.5, output: AdmmOutput::Sparse };
        let steps = crate::schedule::Schedule::Constant { step: 2.0 }.prepare(10).unwrap();
        let penalty = Penalty::L1 { lambda: 0.1 };
        let check = |sum: f64| {
            admm.check_range(&Range {
                recipe: "test",
                steps: &steps,
                updates: 10,
                sum,
                divisor: 5.0,
                lambda: 0.0,
                radius: None,
                penalty: Some(&penalty),
                parameters: 4,
                std_dev: 1.0,
                float: FloatKind::F64,
            })
        };
        // Ten steps of 2 (sum/5)/(1 + 2·0.5), three times.
        let largest = 1e140 / (3.0 * 10.0 * 2.0 / 5.0 / 2.0);
        assert!(check(0.99 * largest).is_ok());
        assert!(matches!(check(1.01 * largest), Err(Error::NotProved { .. })));
    }
}
