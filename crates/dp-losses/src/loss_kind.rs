//! The choice of a loss in files and on a command line, and the one place where it becomes a type.

use core::fmt;
use core::str::FromStr;

use crate::constants::{Constants, DataConstants, Domain, LossBounds};
use crate::error::Error;
use crate::huber_svm::HuberSvm;
use crate::logistic::Logistic;
use crate::loss::Loss;
use crate::real::Real;
use crate::regulariser::L2;
use crate::squared::Squared;

/// A loss by name.
///
/// In files: `{"name": "logistic"}`, `{"name": "huber-svm", "h": 0.1}`, `{"name": "squared"}`. On a command line:
/// `logistic`, `huber-svm` (half width 0.1), `huber-svm:0.5`, `squared`.
///
/// # Examples
/// ```
/// use dp_losses::{Domain, L2, LossKind};
/// let loss: LossKind = "huber-svm:0.5".parse()?;
/// assert_eq!(loss.to_string(), "huber-svm:0.5");
/// let constants = loss.constants(L2::NONE, &Domain::unit_rows());
/// assert!((constants.smoothness - 1.0).abs() < 1e-15);
/// # Ok::<(), dp_losses::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "name", rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum LossKind {
    /// [`Logistic`].
    Logistic,
    /// [`HuberSvm`].
    HuberSvm(HuberSvm),
    /// [`Squared`].
    Squared,
}

/// What is to be done with a loss once its type is known: the `match` on the name happens here, outside every loop.
///
/// # Examples
/// ```
/// use dp_losses::{Loss, LossKind, LossVisitor};
///
/// struct DerivativeAtZero;
/// impl LossVisitor<f64> for DerivativeAtZero {
///     type Output = f64;
///     fn visit<L: Loss<f64> + 'static>(self, loss: L) -> f64 {
///         loss.derivative(0.0, 1.0)
///     }
/// }
/// assert_eq!(LossKind::Logistic.visit(DerivativeAtZero), -0.5);
/// ```
pub trait LossVisitor<F> {
    /// What comes back.
    type Output;
    /// Called once with the loss.
    fn visit<L: Loss<F> + 'static>(self, loss: L) -> Self::Output;
}

impl LossKind {
    /// The name without parameters.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Logistic => "logistic",
            Self::HuberSvm(_) => "huber-svm",
            Self::Squared => "squared",
        }
    }

    /// Whether targets are the two classes -1 and +1, rather than real numbers.
    pub const fn is_classification(&self) -> bool {
        match self {
            Self::Logistic | Self::HuberSvm(_) => true,
            Self::Squared => false,
        }
    }

    /// Calls the visitor with the loss as its own type.
    pub fn visit<F: Real, V: LossVisitor<F>>(self, visitor: V) -> V::Output {
        match self {
            Self::Logistic => visitor.visit(Logistic),
            Self::HuberSvm(loss) => visitor.visit(loss),
            Self::Squared => visitor.visit(Squared),
        }
    }

    /// [`Constants::new`] of this loss.
    pub fn constants(&self, regulariser: L2, domain: &Domain) -> Constants {
        Constants::new(self, regulariser, domain)
    }

    fn bounds(&self) -> &dyn LossBounds {
        match self {
            Self::Logistic => &Logistic,
            Self::HuberSvm(loss) => loss,
            Self::Squared => &Squared,
        }
    }
}

impl LossBounds for LossKind {
    fn data_constants(&self, domain: &Domain) -> DataConstants {
        self.bounds().data_constants(domain)
    }

    fn data_constants_of_the_papers(&self, domain: &Domain) -> DataConstants {
        self.bounds().data_constants_of_the_papers(domain)
    }
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HuberSvm(loss) => write!(f, "huber-svm:{}", loss.h()),
            other => f.write_str(other.name()),
        }
    }
}

impl FromStr for LossKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownLoss { text: text.to_owned() };
        match text {
            "logistic" => Ok(Self::Logistic),
            "huber-svm" => Ok(Self::HuberSvm(HuberSvm::USUAL)),
            "squared" => Ok(Self::Squared),
            _ => {
                let h = text.strip_prefix("huber-svm:").ok_or_else(unknown)?;
                Ok(Self::HuberSvm(HuberSvm::new(h.parse().map_err(|_| unknown())?)?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for text in ["logistic", "huber-svm:0.1", "huber-svm:2", "squared"] {
            let kind: LossKind = text.parse().unwrap();
            assert_eq!(kind.to_string(), text);
            assert_eq!(text.split(':').next(), Some(kind.name()));
        }
        assert_eq!("huber-svm".parse::<LossKind>().unwrap(), LossKind::HuberSvm(HuberSvm::USUAL));
    }

    #[test]
    fn bad_names_and_parameters_are_refused() {
        for text in ["", "hinge", "huber-svm:", "huber-svm:0", "huber-svm:nan", "huber-svm:-1", "huber-svm:inf"] {
            assert!(text.parse::<LossKind>().is_err(), "{text}");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn files_round_trip_and_are_checked() {
        for (kind, json) in [
            (LossKind::Logistic, r#"{"name":"logistic"}"#),
            (LossKind::HuberSvm(HuberSvm::USUAL), r#"{"name":"huber-svm","h":0.1}"#),
            (LossKind::Squared, r#"{"name":"squared"}"#),
        ] {
            assert_eq!(serde_json::to_string(&kind).unwrap(), json);
            assert_eq!(serde_json::from_str::<LossKind>(json).unwrap(), kind);
        }
        assert!(serde_json::from_str::<LossKind>(r#"{"name":"huber-svm","h":0.0}"#).is_err());
        assert!(serde_json::from_str::<L2>("-1").is_err());
        assert_eq!(serde_json::from_str::<L2>("0.25").unwrap().lambda(), 0.25);
    }
}
