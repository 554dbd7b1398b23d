//! A loss of one prediction, chosen at run time.

use crate::absolute::Absolute;
use crate::custom::RegisteredLoss;
use crate::hinge::Hinge;
use crate::huber_regression::HuberRegression;
use crate::huber_svm::HuberSvm;
use crate::kernels::LossKernel;
use crate::log_cosh::LogCosh;
use crate::logistic::Logistic;
use crate::loss::Loss;
use crate::real::Real;
use crate::squared::Squared;

/// Any loss of one prediction, as one type: a program that selects its loss by name compiles its training once, not once for each
/// loss.
///
/// The choice is repeated for every call; a [`LinearModel`](crate::LinearModel) makes it once per batch.
///
/// # Examples
/// ```
/// use dp_losses::{Logistic, Loss, LossKind, ScalarLoss};
///
/// let loss: ScalarLoss = "logistic".parse::<LossKind>()?.scalar().ok_or("it has several predictions")?;
/// assert_eq!(loss.derivative(0.5_f64, 1.0), Logistic.derivative(0.5, 1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ScalarLoss {
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
    /// A loss of another crate.
    Custom(RegisteredLoss),
}

impl<F: Real> Loss<F> for ScalarLoss {
    fn value(&self, prediction: F, target: F) -> F {
        match self {
            Self::Logistic => Logistic.value(prediction, target),
            Self::HuberSvm(loss) => loss.value(prediction, target),
            Self::Hinge => Hinge.value(prediction, target),
            Self::Squared => Squared.value(prediction, target),
            Self::HuberRegression(loss) => loss.value(prediction, target),
            Self::LogCosh(loss) => loss.value(prediction, target),
            Self::Absolute => Absolute.value(prediction, target),
            Self::Custom(loss) => loss.value(prediction, target),
        }
    }

    fn derivative(&self, prediction: F, target: F) -> F {
        match self {
            Self::Logistic => Logistic.derivative(prediction, target),
            Self::HuberSvm(loss) => loss.derivative(prediction, target),
            Self::Hinge => Hinge.derivative(prediction, target),
            Self::Squared => Squared.derivative(prediction, target),
            Self::HuberRegression(loss) => loss.derivative(prediction, target),
            Self::LogCosh(loss) => loss.derivative(prediction, target),
            Self::Absolute => Absolute.derivative(prediction, target),
            Self::Custom(loss) => loss.derivative(prediction, target),
        }
    }

    fn is_of_residual(&self) -> bool {
        match self {
            Self::Logistic | Self::HuberSvm(_) | Self::Hinge => false,
            Self::Squared | Self::HuberRegression(_) | Self::LogCosh(_) | Self::Absolute => true,
            Self::Custom(loss) => !loss.is_classification(),
        }
    }

    fn curvature_bound(&self) -> F {
        match self {
            Self::Logistic => Logistic.curvature_bound(),
            Self::HuberSvm(loss) => loss.curvature_bound(),
            Self::Hinge => Hinge.curvature_bound(),
            Self::Squared => Squared.curvature_bound(),
            Self::HuberRegression(loss) => loss.curvature_bound(),
            Self::LogCosh(loss) => loss.curvature_bound(),
            Self::Absolute => Absolute.curvature_bound(),
            Self::Custom(loss) => Loss::<F>::curvature_bound(loss),
        }
    }

    fn compute(self, kernel: LossKernel<'_, F>) {
        F::compute(kernel, self);
    }
}

#[cfg(test)]
mod tests {
    use dp_data::Examples;

    use super::*;
    use crate::linear::LinearModel;
    use crate::loss_kind::LossKind;
    use crate::model::Model;
    use crate::scaled_steps::ScaledSteps;

    /// The results of a model with this loss, in bits: losses, gradients, and a step.
    fn computed<L: Loss<f64>>(loss: L) -> Vec<u64> {
        let rows = (0..60).map(|i| f64::from(i * 37 % 11 - 5) / 9.0).collect();
        let targets: Vec<f64> = (0..20).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let data = Examples::dense(rows, targets, 3).unwrap();
        let model = LinearModel::new(3, loss);
        let (w, mut pass) = ([0.7, -1.9, 3.1], model.pass(20));
        let (mut losses, mut gradient, mut stepped) = (vec![0.0; 20], vec![0.0; 3], w);
        model.forward(&w, data.block(), &mut pass);
        model.losses(data.block(), &pass, &mut losses);
        model.backward(&w, data.block(), &mut pass);
        model.add_weighted(data.block(), &mut pass, &[1.0; 20], &mut gradient);
        model.step_scaled(0.9, -0.1, data.block(), &mut pass, &mut stepped);
        let direct = [loss.value(0.3, 1.0), loss.derivative(0.3, 1.0), loss.curvature_bound()];
        losses.iter().chain(&gradient).chain(&stepped).chain(&direct).map(|value| value.to_bits()).collect()
    }

    #[test]
    fn a_chosen_loss_is_the_loss_itself() {
        let (svm, huber, log_cosh) =
            (HuberSvm::new(0.3).unwrap(), HuberRegression::new(0.2).unwrap(), LogCosh::new(0.2).unwrap());
        assert_eq!(computed(ScalarLoss::Logistic), computed(Logistic));
        assert_eq!(computed(ScalarLoss::HuberSvm(svm)), computed(svm));
        assert_eq!(computed(ScalarLoss::Hinge), computed(Hinge));
        assert_eq!(computed(ScalarLoss::Squared), computed(Squared));
        assert_eq!(computed(ScalarLoss::HuberRegression(huber)), computed(huber));
        assert_eq!(computed(ScalarLoss::LogCosh(log_cosh)), computed(log_cosh));
        assert_eq!(computed(ScalarLoss::Absolute), computed(Absolute));
        assert_eq!("softmax:3".parse::<LossKind>().unwrap().scalar(), None);
    }

    /// A classification loss is a function of the margin, the product with the target, even if the target is not ±1.
    #[test]
    fn a_margin_is_the_product_with_the_target() {
        for name in ["logistic", "huber-svm:0.3", "hinge"] {
            let loss = name.parse::<LossKind>().unwrap().scalar().unwrap();
            for target in [1.0, 0.5, -0.25, -1.0] {
                for prediction in [-9.0, -2.5, -0.7, 0.0, 0.3, 0.8, 1.9, 3.0, 11.0] {
                    let margin = prediction * target;
                    let (value, slope): (f64, f64) = (loss.value(margin, 1.0), loss.derivative(margin, 1.0));
                    let (found, derivative) = (loss.value(prediction, target), loss.derivative(prediction, target));
                    assert!((found - value).abs() <= 1e-15 * value, "{name}: {prediction} {target}");
                    assert!(
                        (derivative - target * slope).abs() <= 1e-15 * slope.abs(),
                        "{name}: {prediction} {target}"
                    );
                }
            }
        }
    }
}
