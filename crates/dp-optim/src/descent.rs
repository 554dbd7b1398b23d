//! Descent methods: plain, with momentum, with adaptive steps, or with two copies of the model.

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
/// HeavyBall     y_t = x_t, which continues the last move   see HeavyBall
/// Adam          x_t by moments of the gradients        see Adam
/// AdamBc        the same without the noise's part      see Adam
/// Consensus     each party's x_t drawn to all's  see ConsensusAdmm
/// Admm          x_t drawn to a sparse copy z_t         see LinearisedAdmm
/// ```
/// ([`HeavyBall`](crate::engine::HeavyBall), [`Adam`](crate::engine::Adam), [`LinearisedAdmm`](crate::engine::LinearisedAdmm)). With a [penalty](dp_losses::Penalty),
/// plain and accelerated steps apply its proximal map before the projection.
///
/// The output is `Σ_t α_t x_t`, or of `z_t` if that is ADMM's output. Without noise, for a constant step `η <= 1/β` and a
/// strongly convex objective of modulus `γ`, momentum `m = (1 - √(ηγ)) / (1 + √(ηγ))` brings `x_t` within a factor
/// `(1 - √(ηγ))^t` of the minimum: it takes `√κ` steps where plain descent takes `κ`. If each step has a privacy cost, fewer
/// steps need less noise.
///
/// # Privacy
/// If the gradients are noisy sums that were paid for, all further computation is post-processing: `y_t` is a function of
/// `x_0` and of the noisy sums `1..t`, as in plain descent, so that the next sum depends on released values alone (adaptive
/// composition) and the event is the same for every momentum. Gradients that are bounded only within a ball are bounded here
/// too, since `y_t` is projected. The same holds for moments, copies and dual variables: a step accesses records only through
/// its noisy sum.
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
    /// Nesterov's accelerated descent: each gradient is taken at a point extrapolated from the last iterate along the last
    /// move.
    Accelerated {
        /// m in [0, 1): length of the extrapolation, in multiples of the last move.
        momentum: f64,
    },
    /// Polyak's heavy ball: each step continues the last move.
    HeavyBall {
        /// m in [0, 1): length of the continued move, in multiples of the last one.
        momentum: f64,
    },
    /// Adam: each weight's step is divided by the root mean square of its gradients.
    Adam {
        /// β₁ in [0, 1), with β₁² < β₂.
        first_decay: f64,
        /// β₂ in (0, 1).
        second_decay: f64,
        /// ε: added to the root.
        epsilon: f64,
    },
    /// Adam with the noise's variance, which would otherwise dominate, subtracted from the mean square.
    AdamBc {
        /// β₁ in [0, 1).
        first_decay: f64,
        /// β₂ in (0, 1).
        second_decay: f64,
        /// φ: lower bound on the difference, as a fraction of the noise's variance.
        floor: f64,
    },
    /// Consensus ADMM: parties with separate records take turns, and agree after each round; see
    /// [`ConsensusAdmm`](crate::engine::ConsensusAdmm).
    Consensus {
        /// ρ > 0: strength of the coupling between each party and the consensus model.
        rho: f64,
        /// N: number of parties, at least one.
        parties: u64,
    },
    /// Linearised ADMM: the penalty acts on a copy of the model.
    Admm {
        /// ρ > 0: strength of the coupling between the copies.
        rho: f64,
        /// The released copy; the sparse one if a serialised recipe omits it.
        #[cfg_attr(feature = "serde", serde(default))]
        output: AdmmOutput,
    },
}

/// Maximum number of parties: each keeps two copies of the model.
const MOST_PARTIES: u64 = 1 << 16;

impl Descent {
    /// Returns accelerated descent with the momentum that suits a constant step `η` and strong convexity `γ`; the argument is
    /// their product `ηγ`, clamped to [0, 1]. A product of 0 gives the largest momentum below 1.
    pub fn suited_to(step_times_convexity: f64) -> Self {
        let root = step_times_convexity.clamp(0.0, 1.0).sqrt();
        let momentum = ((1.0 - root) / (1.0 + root)).min(1.0 - f64::EPSILON);
        if momentum > 0.0 { Self::Accelerated { momentum } } else { Self::Plain }
    }

    /// Returns m, which is 0 except for accelerated descent.
    pub fn momentum(&self) -> f64 {
        match self {
            Self::Accelerated { momentum } => *momentum,
            _ => 0.0,
        }
    }

    /// Returns the part of a summary about the descent, empty for plain descent.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Accelerated { momentum } => format!(", momentum {momentum:.3}"),
            Self::HeavyBall { momentum } => format!(", heavy-ball momentum {momentum:.3}"),
            Self::Adam { first_decay, second_decay, .. } => format!(", Adam {first_decay} {second_decay}"),
            Self::AdamBc { first_decay, second_decay, .. } => {
                format!(", Adam {first_decay} {second_decay} without the noise's part")
            }
            Self::Admm { rho, .. } | Self::Consensus { rho, .. } => format!(", rho {rho}"),
        }
    }

    /// Returns whether it is plain or accelerated, the only methods that some recipes support.
    pub(crate) fn is_straight(&self) -> bool {
        matches!(self, Self::Plain | Self::Accelerated { .. })
    }

    /// Rejects parameters with which the iterate may diverge.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let within = |name, value: f64, low: f64, high: f64, range| {
            if value >= low && value <= high { Ok(()) } else { Err(Error::OutOfRange { name, value, range }) }
        };
        let below_one = |name, value: f64| within(name, value, 0.0, 1.0 - f64::EPSILON, "[0, 1)");
        match *self {
            Self::Plain => Ok(()),
            Self::Accelerated { momentum } | Self::HeavyBall { momentum } => below_one("momentum", momentum),
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

    /// Rejects runs whose iterates could exceed the range of the float type, where they might fail depending on the data.
    ///
    /// # Formula
    /// A step moves the iterate by at most `D = η_t sum / divisor`; the regulariser alone moves it towards the origin if
    /// `ηλ <= 2`, and so does every penalty's map. With a radius one step counts, otherwise all `T`: `‖x_T‖ <= D T`.
    ///
    /// With momentum `m` and no radius, `x_{t+1} = a (x_t + m (x_t - x_{t-1})) - d_t` with `‖d_t‖ <= D` and `a = 1 - ηλ`. For
    /// a constant `a` in [0, 1] the effect of `d_t` after k steps has the coefficient `Σ_i r^i s^(k-i)`, with r and s the
    /// roots of `z² - a (1 + m) z + am`, which lie in the closed unit disc; it is at most `k + 1`. So `‖x_T‖ <= D T²`, and the
    /// extrapolated point is at most three times as far. For the heavy ball the roots are those of `z² - (a + m) z + m`, which lie in
    /// the closed unit disc too, as the polynomial is `1 - a >= 0` at 1. Variable steps are refused for λ > 0: there `a` may change in such a
    /// way that the moves add up. A penalty's map adds the bound on its subgradients, `ηY`, to D, and a ridge divides a by
    /// `1 + η ridge`.
    ///
    /// Adam moves a weight by at most `η / √((1 - β₂)(1 - β₁²/β₂))` (Cauchy-Schwarz on the two moments). With the noise's
    /// variance subtracted it moves all of them together by at most `η G/(√φ σ/divisor)`, with `G = sum/divisor + λ max ‖x‖`
    /// the longest gradient.
    ///
    /// ADMM adds at most `η (2Y + sum/divisor)/(1 + ηρ)` to the largest `‖x‖` so far if the penalty's ridge is at most `2ρ`:
    /// then `‖ρz - y‖ <= ρ max ‖x‖ + 2Y`, since y is a subgradient of the penalty at z; and `‖z‖ <= max ‖x‖ + Y/ρ`.
    ///
    /// Consensus ADMM without gradients is proximal ADMM on the penalty alone, with the origin as a fixed point: it does not
    /// increase `V = (1/η - λ) Σ‖w_i‖² + ρN ‖w‖² + Σ‖γ_i‖²/ρ` (Deng and Yin, 2016, Theorem 2.1; the regulariser is quadratic,
    /// so that its linearisation with `1/η` is its exact step with `1/η - λ`). Gradients move each w_i by at most
    /// `D = η (sum/divisor)/(1 + ηρ)`, so w by D and γ_i/ρ by 2D, and `√V` by `D √(N (1/η + 5ρ))`. After K rounds
    /// `‖w‖ + ‖γ_i‖/ρ <= 2√V/√ρ`, and `‖w_i‖` is at most K D more. Within a ball of radius R, `‖w‖ <= R + Y/ρ`, and each round
    /// adds at most `2R + Y/ρ` to `‖γ_i‖/ρ`: the mean of the γ_i is a subgradient at w, whose ridge shrinks w by as much as it
    /// had pulled before.
    pub(crate) fn check_range(&self, run: &Range<'_>) -> Result<(), Error> {
        let farthest = match run.float {
            FloatKind::F64 => 1e140,
            FloatKind::F32 => 1e15,
        };
        let reach = self.reach(run)?;
        let longest_gradient = run.sum / run.divisor + run.lambda * reach;
        if !(reach <= farthest) || !(run.sum <= farthest) || !(longest_gradient <= farthest) {
            let why = "steps so long could overflow: shorten them, or set a radius if the algorithm takes one";
            return Err(Error::NotProved { recipe: run.recipe, why });
        }
        Ok(())
    }

    /// Bounds the iterates, for all copies.
    fn reach(&self, run: &Range<'_>) -> Result<f64, Error> {
        let not_proved = |why| Err(Error::NotProved { recipe: run.recipe, why });
        let (longest, total) = (run.steps.largest(), run.updates as f64);
        let gradient = run.sum / run.divisor;
        let (pull, ridge) = run.penalty.map_or((0.0, 0.0), |penalty| {
            (penalty.pull(usize::try_from(run.parameters).unwrap_or(usize::MAX)), penalty.ridge())
        });
        let shrinks = longest * run.lambda <= 2.0;
        Ok(match (*self, run.radius) {
            // Before it is projected, the extrapolated point is within three radii, and so is the last move of the heavy ball.
            (Self::Plain | Self::Accelerated { .. } | Self::HeavyBall { .. }, Some(radius)) => {
                3.0 * ((longest * run.lambda + 1.0) * radius + longest * gradient)
            }
            (Self::Accelerated { momentum } | Self::HeavyBall { momentum }, None) if momentum > 0.0 => {
                if (run.lambda > 0.0 || ridge > 0.0) && run.steps.constant().is_none() {
                    return not_proved("momentum with a regulariser needs a constant step, or a radius");
                }
                if !(longest * run.lambda <= 1.0) {
                    return not_proved("momentum needs steps of at most 1/lambda, or a radius");
                }
                3.0 * total * total * longest * (gradient + pull)
            }
            (Self::Plain | Self::Accelerated { .. } | Self::HeavyBall { .. }, None) if shrinks => {
                total * longest * gradient
            }
            (Self::Adam { first_decay, second_decay, .. }, radius) => {
                let bound = 1.0 / ((1.0 - second_decay) * (1.0 - first_decay * first_decay / second_decay)).sqrt();
                let move_by = longest * bound * (run.parameters as f64).sqrt();
                radius.map_or(total * move_by, |radius| radius + move_by)
            }
            (Self::AdamBc { floor, .. }, radius) => {
                // Ratio of moves to gradients.
                let ratio = longest / (floor.sqrt() * run.std_dev / run.divisor);
                match radius {
                    Some(radius) => radius + ratio * (gradient + run.lambda * radius),
                    None if run.lambda == 0.0 => total * ratio * gradient,
                    // x grows by at most `ratio (gradient + λx)`: a geometric sum.
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
                // z, y/ρ and the values in between.
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
            (Self::Plain | Self::Accelerated { .. } | Self::HeavyBall { .. }, None) => f64::INFINITY,
        })
    }

    /// Returns whether this is plain descent, which a serialised recipe may omit.
    #[cfg(feature = "serde")]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }
}

/// Bounds the distance of copies, and of duals over ρ, from the origin: the formula of [`Descent::check_range`].
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

/// The numbers that bound the iterates of a run with bounded sums; public.
pub(crate) struct Range<'r> {
    pub(crate) recipe: &'static str,
    pub(crate) steps: &'r StepSizes,
    pub(crate) updates: u64,
    /// Bound on the norm of a step's sum, noise included.
    pub(crate) sum: f64,
    /// The minimum divisor of a sum.
    pub(crate) divisor: f64,
    pub(crate) lambda: f64,
    pub(crate) radius: Option<f64>,
    pub(crate) penalty: Option<&'r Penalty>,
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
        // Its moves are unbounded.
        assert!(Descent::Adam { first_decay: 0.9, second_decay: 0.81, epsilon: 1e-8 }.check().is_err());
        // A NaN product.
        assert!(Descent::suited_to(f64::NAN).check().is_ok());
    }

    /// The intermediate values of ADMM (`z`, `y/ρ` and `ρz - y`) may reach three times the bound on its iterates, and the
    /// range of the float type is checked at that value.
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
