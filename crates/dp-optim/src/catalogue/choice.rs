//! Settings with a few named values and their help texts.

use crate::growth::OrderPolicy;

/// A setting with a few values, each with a name and a line of help.
///
/// A front end uses [`ALL`](Self::ALL) for its help, and [`named`](Self::named) to parse input.
///
/// # Examples
/// ```
/// use dp_optim::catalogue::{Choice, LineSearch};
/// assert_eq!(LineSearch::named("selection"), Some(LineSearch::Selection));
/// assert_eq!(LineSearch::named("guess"), None);
/// ```
pub trait Choice: Copy + PartialEq + Sized + 'static {
    /// The values, each with its name and its help text.
    const ALL: &'static [(Self, &'static str, &'static str)];

    /// Returns the value of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(value, ..)| *value)
    }

    /// Returns the name.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(value, ..)| *value == self).map_or("", |(_, name, _)| name)
    }
}

/// Defines enumerations whose documentation is also their help text.
macro_rules! choices {
    ($(#[doc = $about:literal] $Choice:ident { $(#[doc = $help:literal] $Variant:ident = $name:literal,)+ })+) => {
        $(
            #[doc = $about]
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $Choice {
                $(#[doc = $help] $Variant,)+
            }

            impl Choice for $Choice {
                const ALL: &'static [(Self, &'static str, &'static str)] =
                    &[$((Self::$Variant, $name, $help.trim_ascii())),+];
            }
        )+
    };
}

choices! {
    /// The change of the step size from step to step.
    Steps {
        /// Constant
        Constant = "constant",
        /// step size / sqrt(step)
        InverseSqrt = "inverse-sqrt",
        /// 2/(smoothness (step + sqrt(n)))
        Decreasing = "decreasing",
        /// 2/(smoothness (sqrt(step) + sqrt(n)))
        SquareRoot = "square-root",
        /// min(1/smoothness, 1/(lambda step)), for strongly convex objectives
        StronglyConvex = "strongly-convex",
        /// Halved in each phase, and each phase is half as long as the previous one; for `snowball-sgd`
        Halving = "halving",
        /// step size / pass; for `rsgd-ar` and `nsgd`
        PerPass = "per-pass",
        /// step size / pass since the last restart; for `rsgd-ar`
        Restart = "restart",
    }

    /// The combination of the iterates that is released.
    Average {
        /// The last iterate
        Last = "last",
        /// The mean of all iterates
        Uniform = "uniform",
        /// The mean of the second half of the iterates
        Suffix = "suffix",
        /// A weighted mean, with weights that grow with the step
        Polynomial = "polynomial",
        /// An exponential moving average, in which about the last 100 iterates count
        Exponential = "exponential",
    }

    /// The clipping of the gradient of a network.
    ClipRule {
        /// Gradients longer than the clipping norm are shortened to it
        Flat = "flat",
        /// The same for the part of each layer, each with an equal share of the norm
        PerLayer = "per-layer",
        /// Every gradient is normalised to about the clipping norm
        Automatic = "automatic",
        /// As flat, with a norm that follows the median of the gradients' norms by a noisy count in each step
        Adaptive = "adaptive",
    }

    /// The order of the records.
    Order {
        /// One secret random order, the same in every pass
        Fixed = "fixed",
        /// A new secret random order for each pass
        Fresh = "fresh",
    }

    /// The stop rule of training.
    Stop {
        /// After the given number of passes
        Passes = "passes",
        /// Once the weights are certified to be near the minimiser, whose sensitivity determines the guarantee
        Certified = "certified",
    }

    /// The sampling of the records of a step.
    BatchSampling {
        /// Poisson sampling: each record independently, with the same probability
        Poisson = "poisson",
        /// A uniformly random batch of fixed size
        Fixed = "fixed",
        /// Passes over all records in a secret order, in batches
        Passes = "passes",
    }

    /// A variant of an algorithm other than the default.
    Variant {
        /// The noise of the paper, where the accountant confirms it; for scs13, bst14 and amp
        Published = "published",
        /// obj-pert with the noise of Chaudhuri, Monteleoni and Sarwate 2011, without delta
        Cms11 = "cms11",
        /// obj-pert with the noise of Kifer, Smith and Thakurta 2012
        Kst12 = "kst12",
        /// obj-pert with the noise of Redberg, Koskela and Wang 2023, by a Renyi bound
        Rdp = "rdp",
    }

    /// The choice of the step length in `dp-blgd` and its variants.
    LineSearch {
        /// Backtracking from the longest step until the loss falls enough
        Backtracking = "backtracking",
        /// The exponential mechanism on the losses of several steps
        Selection = "selection",
    }

    /// The source of the curvature of `dp-newton`.
    CurvatureSource {
        /// The Hessian at each iterate, released with the gradient
        EachStep = "each-step",
        /// An upper bound, released once: faster for many features
        Once = "once",
    }

    /// The distribution of the noise.
    NoiseLaw {
        /// Whichever of the two has the smaller expected norm
        Least = "least",
        /// The Laplace ball: pure epsilon
        LaplaceBall = "laplace-ball",
        /// The Gaussian: needs a delta
        Gaussian = "gaussian",
    }
}

impl From<Order> for OrderPolicy {
    fn from(order: Order) -> Self {
        match order {
            Order::Fixed => Self::Fixed,
            Order::Fresh => Self::Fresh,
        }
    }
}
