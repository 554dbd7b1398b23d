//! The words of a question.

use dp_accountant::{Evaluator, Theorem};
use dp_optim::catalogue::Choice;

use crate::words::Words;

/// Defines a set of words, each with its name and its description.
macro_rules! choices {
    ($(#[$doc:meta])* $kind:ident { $($(#[$default:meta])? $variant:ident $name:literal $about:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum $kind { $(#[doc = $about] $(#[$default])? $variant,)* }

        impl Choice for $kind {
            const ALL: Words<Self> = &[$((Self::$variant, $name, $about)),*];
        }
    };
}

choices! {
    /// The sampling of a step's records.
    Sampling {
        #[default]
        Poisson "poisson"
            "Poisson sampling: each record independently, with the same probability. Under replace-one for sums of clipped vectors",
        WithoutReplacement "without-replacement" "Sampling without replacement: a uniformly random batch of fixed size",
    }
}

choices! {
    /// The accountant.
    Accountant {
        #[default]
        Auto "auto" "The tightest certified answer of all accountants",
        Exact "exact" "The privacy curve itself, between two certified bounds",
        Rdp "rdp" "Renyi DP at the best real order",
        Zcdp "zcdp" "Zero-concentrated DP",
        Gdp "gdp" "Gaussian DP, for events that satisfy it exactly",
    }
}

choices! {
    /// The number to compute from the others.
    Unknown {
        #[default]
        Epsilon "epsilon" "The epsilon of the guarantee",
        Delta "delta" "The delta of the guarantee",
        NoiseMultiplier "noise-multiplier" "The least noise",
        SamplingRate "sampling-rate" "The largest sampling rate",
        Steps "steps" "The most steps",
    }
}

impl Accountant {
    /// Returns the evaluator of events.
    pub fn evaluator(self) -> Evaluator {
        match self {
            Self::Auto => Evaluator::Tightest,
            Self::Exact => Evaluator::Exact,
            Self::Rdp => Evaluator::Renyi,
            Self::Zcdp => Evaluator::Zcdp,
            Self::Gdp => Evaluator::Gdp,
        }
    }
}

/// Returns the name of the accountant that a theorem belongs to.
pub fn accountant_of(theorem: Theorem) -> &'static str {
    match theorem {
        Theorem::Renyi => "rdp",
        Theorem::ZeroConcentrated => "zcdp",
        Theorem::GaussianDp => "gdp",
        Theorem::PureComposition | Theorem::BasicComposition => "composition",
        Theorem::NothingReleased | Theorem::NoGuarantee => "auto",
        _ => "exact",
    }
}
