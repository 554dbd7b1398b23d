//! Softmax regression: one linear score per class, with the multinomial logistic loss.

mod model;

pub use model::{SoftmaxModel, SoftmaxPass};

use core::f64::consts::SQRT_2;

use crate::constants::{DataConstants, Domain, LossBounds};
use crate::error::Error;
use crate::gradient_spread::logistic_gradient_difference;
use crate::real::Real;
use crate::rounding::{inflate, product_up};

/// The multinomial logistic loss of `classes` scores `z = W x`, for targets that are class indices `0, 1, ..`.
///
/// The parameters are stored class by class: row `c` of the matrix `W`, `dim` numbers, scores class `c`. [`SoftmaxModel`]
/// computes it. An example whose target is not a class index is invalid.
///
/// # Formula
/// ```text
/// p_c = e^{z_c} / Σ_k e^{z_k}        value  ln Σ_k e^{z_k} - z_y        gradient  (p - e_y) xᵀ
/// ```
/// With two classes it is the logistic loss of the weights `W_1 - W_0`.
///
/// # Examples
/// ```
/// use dp_losses::{Domain, L2, LossKind, Softmax};
/// let loss = LossKind::Softmax(Softmax::new(10)?);
/// assert_eq!((loss.to_string(), loss.parameters(50)), ("softmax:10".to_owned(), 500));
/// let constants = loss.constants(L2::NONE, &Domain::unit_rows());
/// assert!((constants.gradient_difference - 8f64.sqrt()).abs() < 1e-12); // √2 times that of one of two classes
/// # Ok::<(), dp_losses::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Fields", into = "Fields"))]
pub struct Softmax {
    classes: u32,
}

impl Softmax {
    /// Maximum number of classes.
    pub const MOST_CLASSES: u32 = 1 << 16;

    /// Creates the loss of `classes` classes.
    ///
    /// # Errors
    /// Fewer than 2, or more than [`MOST_CLASSES`](Self::MOST_CLASSES).
    pub fn new(classes: u32) -> Result<Self, Error> {
        if !(2..=Self::MOST_CLASSES).contains(&classes) {
            return Err(Error::OutOfRange { name: "classes", value: f64::from(classes), range: "[2, 65536]" });
        }
        Ok(Self { classes })
    }

    /// Returns the number of classes.
    pub const fn classes(self) -> u32 {
        self.classes
    }

    /// Returns the class of a target, if it is one.
    ///
    /// # Examples
    /// ```
    /// let three = dp_losses::Softmax::new(3)?;
    /// assert_eq!(three.class_index(2.0), Some(2));
    /// assert!([3.0, 0.5, -1.0, f64::NAN].iter().all(|&target| three.class_index(target).is_none()));
    /// # Ok::<(), dp_losses::Error>(())
    /// ```
    pub fn class_index<F: Real>(self, target: F) -> Option<usize> {
        let target: f64 = target.to_subset_unchecked();
        // A fraction, a negative number or NaN is not a class.
        let index = target as usize;
        (index as f64 == target && index < self.classes as usize).then_some(index)
    }

    /// Adds the rounding of the residual `p - e_y` in double precision: its largest entry is at most 1 exactly, and the others
    /// add up to at most as much except for a relative error of one unit for each class and a few more.
    fn as_computed(self, value: f64) -> f64 {
        inflate(value * (1.0 + f64::from(self.classes) * f64::EPSILON))
    }
}

impl LossBounds for Softmax {
    /// # Formula
    /// ```text
    /// Lipschitz            √2 X σ(√2 R X + ln(C - 1))        smoothness  X² / 2
    /// gradient difference  two classes: √2 X · G_log(√2 R X), see `logistic_gradient_difference`;  else 2 · Lipschitz
    /// ```
    /// With `s = 1 - p_y` the other classes' probabilities add up to `s`, so that `|p - e_y|² <= 2 s²`, and
    /// `s = σ(ln Σ_{c≠y} e^{z_c - z_y})` where `z_c - z_y = ⟨W_c - W_y, x⟩ <= √2 |W| |x|`. The Hessian in `z` is the covariance
    /// `diag(p) - p pᵀ`: along `v` it is a variance under `p`, at most `(max v - min v)²/4 <= |v|²/2`. Two classes: the gradient
    /// is that of the logistic loss at the weights `W_1 - W_0`, of norm at most `√2 R`, in both rows of the matrix with opposite
    /// signs.
    ///
    /// Without a radius the difference approaches `2√2 X`: for nearly opposite rows and a large `W` along their small common
    /// part, so that both are assigned to the same wrong class.
    fn data_constants(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        let reach = domain.radius().map_or(f64::INFINITY, |radius| product_up(radius, row_norm));
        let margin = reach * SQRT_2 * (1.0 + 4.0 * f64::EPSILON);
        let others = f64::from(self.classes - 1).ln();
        let wrong = inflate(1.0 / (1.0 + (-(margin + others)).exp())).min(1.0);
        let lipschitz = product_up(row_norm, self.as_computed(SQRT_2 * wrong));
        let difference = if self.classes == 2 {
            product_up(row_norm, self.as_computed(SQRT_2 * logistic_gradient_difference(margin)))
        } else {
            2.0 * lipschitz
        };
        DataConstants {
            lipschitz,
            smoothness: product_up(row_norm, row_norm) / 2.0,
            gradient_difference: difference.min(2.0 * lipschitz),
        }
    }

    fn data_constants_of_the_papers(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        let lipschitz = product_up(row_norm, self.as_computed(SQRT_2));
        DataConstants {
            lipschitz,
            smoothness: product_up(row_norm, row_norm) / 2.0,
            gradient_difference: 2.0 * lipschitz,
        }
    }
}

/// The serialised form of the loss.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    classes: u32,
}

#[cfg(feature = "serde")]
impl TryFrom<Fields> for Softmax {
    type Error = Error;
    fn try_from(fields: Fields) -> Result<Self, Error> {
        Self::new(fields.classes)
    }
}

#[cfg(feature = "serde")]
impl From<Softmax> for Fields {
    fn from(loss: Softmax) -> Self {
        Self { classes: loss.classes }
    }
}

#[cfg(test)]
mod tests;
