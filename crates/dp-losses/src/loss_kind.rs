//! The choice of a loss in files and on a command line, and its conversion to a type.

use core::fmt;
use core::str::FromStr;

use dp_data::Block;

use crate::absolute::Absolute;
use crate::constants::{Constants, DataConstants, Domain, LossBounds};
use crate::custom::RegisteredLoss;
use crate::error::Error;
use crate::hinge::Hinge;
use crate::huber_regression::HuberRegression;
use crate::huber_svm::HuberSvm;
use crate::linear::LinearModel;
use crate::log_cosh::LogCosh;
use crate::logistic::Logistic;
use crate::model::Model;
use crate::real::Real;
use crate::regulariser::L2;
use crate::scalar_loss::ScalarLoss;
use crate::scaled_steps::ScaledSteps;
use crate::softmax::{Softmax, SoftmaxModel};
use crate::squared::Squared;

/// A loss by name.
///
/// | on a command line | in files | targets | smooth |
/// |---|---|---|---|
/// | `logistic` | `{"name": "logistic"}` | -1, +1 | yes |
/// | `huber-svm` (half width 0.1), `huber-svm:0.5` | `{"name": "huber-svm", "h": 0.5}` | -1, +1 | yes |
/// | `hinge` | `{"name": "hinge"}` | -1, +1 | no |
/// | `squared` | `{"name": "squared"}` | numbers | yes |
/// | `huber-regression` (half width 0.1), `huber-regression:0.5` | `{"name": "huber-regression", "h": 0.5}` | numbers | yes |
/// | `log-cosh` (size 0.1), `log-cosh:0.5` | `{"name": "log-cosh", "h": 0.5}` | numbers | yes |
/// | `absolute` | `{"name": "absolute"}` | numbers | no |
/// | `softmax:10` | `{"name": "softmax", "classes": 10}` | 0, 1, .. 9 | yes |
/// | `custom:x` | `{"name": "custom", "loss": "x"}` | as its [`CustomLoss`](crate::CustomLoss) states | as it states |
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
    /// [`Hinge`].
    Hinge,
    /// [`Squared`].
    Squared,
    /// [`HuberRegression`].
    HuberRegression(HuberRegression),
    /// [`LogCosh`].
    LogCosh(LogCosh),
    /// [`Absolute`].
    Absolute,
    /// [`Softmax`].
    Softmax(Softmax),
    /// A loss of another crate.
    Custom(RegisteredLoss),
}

/// An operation on a model of rows once its type is known: a linear model under a loss of one prediction, or softmax regression.
/// An optimiser written for any `M` works for every loss.
///
/// # Examples
/// ```
/// use dp_data::{Block, Examples};
/// use dp_losses::{LossKind, Model, ModelVisitor, ScaledSteps};
///
/// /// The mean loss of some examples at zero.
/// struct LossAtZero<'a>(Block<'a, f64>);
/// impl ModelVisitor<f64> for LossAtZero<'_> {
///     type Output = f64;
///     fn visit<M>(self, model: M) -> f64
///     where
///         M: ScaledSteps<f64> + for<'a> Model<f64, Batch<'a> = Block<'a, f64>>,
///     {
///         let (mut pass, mut losses) = (model.pass(self.0.len()), vec![0.0; self.0.len()]);
///         model.forward(&vec![0.0; model.parameters()], self.0, &mut pass);
///         model.losses(self.0, &pass, &mut losses);
///         losses.iter().sum::<f64>() / losses.len() as f64
///     }
/// }
/// let data = Examples::dense(vec![0.6, 0.8, 1.0, 0.0], vec![1.0, 0.0], 2)?;
/// let loss: LossKind = "softmax:3".parse()?;
/// assert!((loss.visit_model(2, LossAtZero(data.block())) - 3f64.ln()).abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ModelVisitor<F> {
    /// The result.
    type Output;
    /// Called once with the model.
    fn visit<M>(self, model: M) -> Self::Output
    where
        M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>;
}

impl LossKind {
    /// Returns the name without parameters.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Logistic => "logistic",
            Self::HuberSvm(_) => "huber-svm",
            Self::Hinge => "hinge",
            Self::Squared => "squared",
            Self::HuberRegression(_) => "huber-regression",
            Self::LogCosh(_) => "log-cosh",
            Self::Absolute => "absolute",
            Self::Softmax(_) => "softmax",
            Self::Custom(_) => "custom",
        }
    }

    /// Returns whether targets are the two classes -1 and +1, and not real numbers or class indices.
    pub const fn is_classification(&self) -> bool {
        match self {
            Self::Logistic | Self::HuberSvm(_) | Self::Hinge => true,
            Self::Squared | Self::HuberRegression(_) | Self::LogCosh(_) | Self::Absolute | Self::Softmax(_) => false,
            Self::Custom(loss) => loss.is_classification(),
        }
    }

    /// Returns the number of classes: two as -1 and +1, or those of softmax as 0, 1, ..; `None` for numbers.
    pub const fn classes(&self) -> Option<u32> {
        match self {
            Self::Logistic | Self::HuberSvm(_) | Self::Hinge => Some(2),
            Self::Softmax(loss) => Some(loss.classes()),
            Self::Squared | Self::HuberRegression(_) | Self::LogCosh(_) | Self::Absolute => None,
            Self::Custom(loss) if loss.is_classification() => Some(2),
            Self::Custom(_) => None,
        }
    }

    /// Returns whether the gradient is Lipschitz in the parameters: [`Constants::smoothness`] is finite.
    pub const fn is_smooth(&self) -> bool {
        match self {
            Self::Hinge | Self::Absolute => false,
            Self::Logistic
            | Self::HuberSvm(_)
            | Self::Squared
            | Self::HuberRegression(_)
            | Self::LogCosh(_)
            | Self::Softmax(_) => true,
            Self::Custom(loss) => loss.is_smooth(),
        }
    }

    /// Returns the number of predictions per example: one for each class of softmax, otherwise 1.
    pub const fn outputs(&self) -> u32 {
        match self {
            Self::Softmax(loss) => loss.classes(),
            _ => 1,
        }
    }

    /// Returns the number of parameters of a model of rows with `dim` features, which is the dimension of the noise: `dim` for
    /// each output. Saturates.
    pub const fn parameters(&self, dim: u64) -> u64 {
        dim.saturating_mul(self.outputs() as u64)
    }

    /// Returns the usual bound on the size of a target: the largest class index for softmax; otherwise 1, for classes -1 and +1
    /// and for numbers scaled to [-1, 1].
    pub const fn usual_target_bound(&self) -> f64 {
        match self {
            Self::Softmax(loss) => (loss.classes() - 1) as f64,
            _ => 1.0,
        }
    }

    /// Returns the loss as one type for all losses of one prediction; `None` for softmax, which has several predictions.
    pub const fn scalar(&self) -> Option<ScalarLoss> {
        match self.one_or_several() {
            Ok(loss) => Some(loss),
            Err(_) => None,
        }
    }

    const fn one_or_several(&self) -> Result<ScalarLoss, Softmax> {
        Ok(match *self {
            Self::Logistic => ScalarLoss::Logistic,
            Self::HuberSvm(loss) => ScalarLoss::HuberSvm(loss),
            Self::Hinge => ScalarLoss::Hinge,
            Self::Squared => ScalarLoss::Squared,
            Self::HuberRegression(loss) => ScalarLoss::HuberRegression(loss),
            Self::LogCosh(loss) => ScalarLoss::LogCosh(loss),
            Self::Absolute => ScalarLoss::Absolute,
            Self::Custom(loss) => ScalarLoss::Custom(loss),
            Self::Softmax(loss) => return Err(loss),
        })
    }

    /// Calls the visitor with the model of rows with `dim` features under this loss: one type for all losses of one prediction,
    /// so that code for any model is compiled for two types.
    pub fn visit_model<F: Real, V: ModelVisitor<F>>(self, dim: usize, visitor: V) -> V::Output {
        match self.one_or_several() {
            Ok(loss) => visitor.visit(LinearModel::new(dim, loss)),
            Err(loss) => visitor.visit(SoftmaxModel::new(dim, loss)),
        }
    }

    /// Returns [`Constants::new`] of this loss.
    pub fn constants(&self, regulariser: L2, domain: &Domain) -> Constants {
        Constants::new(self, regulariser, domain)
    }

    /// Returns a bound on the change of a gradient by a relative error of the derivative's argument: a margin for classification,
    /// a residual for numbers, and the scores' distances from the largest for softmax.
    ///
    /// # Formula
    /// ```text
    /// X sup |r| ℓ''(r)     logistic 0.224 X;   huber-svm:h (1 + h)/(2h) X;   huber-regression X;   log-cosh 0.448 X
    ///                      softmax with C classes 2 ln(C) X;   squared: the Lipschitz constant;   with a kink: infinite
    /// ```
    /// Logistic: `m σ'(m)` is largest at `m tanh(m/2) = 1`. Softmax: residuals change by `(diag(p) - p pᵀ) Δ`, of norm at most
    /// `2 Σ p_c |Δ_c|`, and with `Δ_c` a fraction of `z_max - z_c` that sum is at most `Σ p_c ln(p_max/p_c) <= ln C`.
    ///
    /// # Examples
    /// ```
    /// use dp_losses::{Domain, LossKind};
    /// assert!((LossKind::Logistic.condition(&Domain::unit_rows()) - 0.224).abs() < 1e-9);
    /// assert_eq!(LossKind::Hinge.condition(&Domain::unit_rows()), f64::INFINITY);
    /// ```
    pub fn condition(&self, domain: &Domain) -> f64 {
        let of_slope = match self {
            Self::Logistic => 0.224,
            Self::HuberSvm(loss) => 0.5 + 0.5 / loss.h(),
            Self::HuberRegression(_) => 1.0,
            Self::LogCosh(_) => 0.448,
            Self::Softmax(loss) => 2.0 * f64::from(loss.classes()).ln(),
            Self::Squared => return self.data_constants(domain).lipschitz,
            Self::Custom(loss) => loss.relative_curvature(),
            Self::Hinge | Self::Absolute => f64::INFINITY,
        };
        of_slope * domain.row_norm() * (1.0 + 1e-12)
    }

    fn bounds(&self) -> &dyn LossBounds {
        match self {
            Self::Logistic => &Logistic,
            Self::HuberSvm(loss) => loss,
            Self::Hinge => &Hinge,
            Self::Squared => &Squared,
            Self::HuberRegression(loss) => loss,
            Self::LogCosh(loss) => loss,
            Self::Absolute => &Absolute,
            Self::Softmax(loss) => loss,
            Self::Custom(loss) => loss,
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
            Self::HuberSvm(loss) => write!(f, "{}:{}", self.name(), loss.h()),
            Self::HuberRegression(loss) => write!(f, "{}:{}", self.name(), loss.h()),
            Self::LogCosh(loss) => write!(f, "{}:{}", self.name(), loss.h()),
            Self::Softmax(loss) => write!(f, "{}:{}", self.name(), loss.classes()),
            Self::Custom(loss) => write!(f, "{}:{}", self.name(), loss.name()),
            other => f.write_str(other.name()),
        }
    }
}

impl FromStr for LossKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownLoss { text: text.to_owned() };
        let (name, parameter) = text.split_once(':').map_or((text, None), |(name, text)| (name, Some(text)));
        let width = |text: &str| text.parse::<f64>().map_err(|_| unknown());
        match (name, parameter) {
            ("logistic", None) => Ok(Self::Logistic),
            ("huber-svm", None) => Ok(Self::HuberSvm(HuberSvm::USUAL)),
            ("huber-svm", Some(h)) => Ok(Self::HuberSvm(HuberSvm::new(width(h)?)?)),
            ("hinge", None) => Ok(Self::Hinge),
            ("squared", None) => Ok(Self::Squared),
            ("huber-regression", None) => Ok(Self::HuberRegression(HuberRegression::USUAL)),
            ("huber-regression", Some(h)) => Ok(Self::HuberRegression(HuberRegression::new(width(h)?)?)),
            ("log-cosh", None) => Ok(Self::LogCosh(LogCosh::USUAL)),
            ("log-cosh", Some(h)) => Ok(Self::LogCosh(LogCosh::new(width(h)?)?)),
            ("absolute", None) => Ok(Self::Absolute),
            ("softmax", Some(classes)) => Ok(Self::Softmax(Softmax::new(classes.parse().map_err(|_| unknown())?)?)),
            ("custom", Some(name)) => {
                RegisteredLoss::named(name).map(Self::Custom).ok_or_else(|| Error::not_registered(name))
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 9] = [
        "logistic",
        "huber-svm:0.1",
        "huber-svm:2",
        "hinge",
        "squared",
        "huber-regression:0.25",
        "log-cosh:0.25",
        "absolute",
        "softmax:3",
    ];

    #[test]
    fn names_round_trip() {
        for text in NAMES {
            let kind: LossKind = text.parse().unwrap();
            assert_eq!(kind.to_string(), text);
            assert_eq!(text.split(':').next(), Some(kind.name()));
        }
        assert_eq!("huber-svm".parse::<LossKind>().unwrap(), LossKind::HuberSvm(HuberSvm::USUAL));
        assert_eq!("log-cosh".parse::<LossKind>().unwrap(), LossKind::LogCosh(LogCosh::USUAL));
        let usual = LossKind::HuberRegression(HuberRegression::USUAL);
        assert_eq!("huber-regression".parse::<LossKind>().unwrap(), usual);
    }

    #[test]
    fn bad_names_and_parameters_are_refused() {
        for text in [
            "",
            "Hinge",
            "hinge:1",
            "logistic:",
            "huber-svm:",
            "huber-svm:0",
            "huber-svm:nan",
            "huber-svm:-1",
            "huber-svm:inf",
            "huber-regression:0",
            "log-cosh:-1",
            "softmax",
            "softmax:1",
            "softmax:2.5",
            "softmax:65537",
        ] {
            assert!(text.parse::<LossKind>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_said_of_a_loss_agrees_with_its_constants_and_its_model() {
        struct Parameters;
        impl ModelVisitor<f64> for Parameters {
            type Output = usize;
            fn visit<M>(self, model: M) -> usize
            where
                M: ScaledSteps<f64> + for<'a> Model<f64, Batch<'a> = Block<'a, f64>>,
            {
                model.parameters()
            }
        }
        for text in NAMES {
            let kind: LossKind = text.parse().unwrap();
            assert_eq!(kind.is_smooth(), kind.constants(L2::NONE, &Domain::unit_rows()).smoothness.is_finite());
            assert_eq!(kind.visit_model(7, Parameters) as u64, kind.parameters(7), "{text}");
            assert_eq!(kind.is_classification(), kind.classes() == Some(2) && kind.outputs() == 1);
        }
        let softmax = LossKind::Softmax(Softmax::new(2).unwrap());
        assert_eq!((softmax.is_classification(), softmax.classes(), softmax.outputs()), (false, Some(2), 2));
        assert_eq!((softmax.usual_target_bound(), softmax.parameters(u64::MAX)), (1.0, u64::MAX));
    }

    #[cfg(feature = "serde")]
    #[test]
    fn files_round_trip_and_are_checked() {
        for (kind, json) in [
            (LossKind::Logistic, r#"{"name":"logistic"}"#),
            (LossKind::HuberSvm(HuberSvm::USUAL), r#"{"name":"huber-svm","h":0.1}"#),
            (LossKind::Hinge, r#"{"name":"hinge"}"#),
            (LossKind::Squared, r#"{"name":"squared"}"#),
            (LossKind::HuberRegression(HuberRegression::USUAL), r#"{"name":"huber-regression","h":0.1}"#),
            (LossKind::LogCosh(LogCosh::USUAL), r#"{"name":"log-cosh","h":0.1}"#),
            (LossKind::Absolute, r#"{"name":"absolute"}"#),
            (LossKind::Softmax(Softmax::new(10).unwrap()), r#"{"name":"softmax","classes":10}"#),
        ] {
            assert_eq!(serde_json::to_string(&kind).unwrap(), json);
            assert_eq!(serde_json::from_str::<LossKind>(json).unwrap(), kind);
        }
        for json in [
            r#"{"name":"huber-svm","h":0.0}"#,
            r#"{"name":"huber-regression","h":-1.0}"#,
            r#"{"name":"softmax","classes":1}"#,
            r#"{"name":"softmax"}"#,
        ] {
            assert!(serde_json::from_str::<LossKind>(json).is_err(), "{json}");
        }
        assert!(serde_json::from_str::<L2>("-1").is_err());
        assert_eq!(serde_json::from_str::<L2>("0.25").unwrap().lambda(), 0.25);
    }
}
