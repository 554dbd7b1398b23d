//! Losses of other crates, as members of [`LossKind`](crate::LossKind).

use core::any::Any;
use core::fmt;
use std::sync::{PoisonError, RwLock};

use nalgebra::convert;

use crate::constants::{DataConstants, Domain, LossBounds};
use crate::error::Error;
use crate::loss::Loss;
use crate::real::Real;
use crate::rounding::product_up;

/// A convex function of the margin or of the residual, written outside of this crate.
///
/// [`RegisteredLoss::new`] makes it a [`LossKind`](crate::LossKind), which certificates store by name and programs that registered
/// it verify. Training evaluates it in double precision, one call per example; a loss with kernels of its own
/// implements [`Loss`] instead, for the engine.
///
/// # Formula
/// ```text
/// two classes, targets -1 and +1     ℓ(p, y) = φ(y p)         numbers     ℓ(p, y) = φ(p - y)
/// |φ'| <= slope <= 1,     φ' does not decrease,     φ'(b) - φ'(a) <= curvature (b - a)
/// ```
///
/// # Examples
/// Regression of the 90% quantile, smoothed over residuals of size `1/10`:
/// ```
/// use dp_losses::{CustomLoss, LossKind, RegisteredLoss};
///
/// #[derive(Debug)]
/// struct Quantile90;
/// impl CustomLoss for Quantile90 {
///     fn name(&self) -> &'static str {
///         "quantile-90"
///     }
///     fn is_classification(&self) -> bool {
///         false
///     }
///     fn value(&self, residual: f64) -> f64 {
///         0.5 * (0.01 + residual * residual).sqrt() - 0.4 * residual
///     }
///     fn derivative(&self, residual: f64) -> f64 {
///         0.5 * residual / (0.01 + residual * residual).sqrt() - 0.4
///     }
///     fn slope(&self) -> f64 {
///         0.9
///     }
///     fn curvature(&self) -> f64 {
///         5.0
///     }
/// }
/// let loss = LossKind::Custom(RegisteredLoss::new(&Quantile90)?);
/// assert_eq!(loss.to_string(), "custom:quantile-90");
/// assert_eq!("custom:quantile-90".parse::<LossKind>()?, loss);
/// # Ok::<(), dp_losses::Error>(())
/// ```
pub trait CustomLoss: Any + fmt::Debug + Send + Sync {
    /// Returns the name in files and in [`LossKind`](crate::LossKind)'s text form: lower-case letters, digits and hyphens.
    fn name(&self) -> &'static str;

    /// Returns whether targets are -1 and +1, and the argument of `φ` is the margin `y p`; otherwise it is the residual `p - y`.
    fn is_classification(&self) -> bool;

    /// Returns `φ(t)`.
    fn value(&self, t: f64) -> f64;

    /// Returns `φ'(t)`, accurate to 8 roundings of double precision relative to the slope; at a kink any slope between the
    /// one-sided ones.
    fn derivative(&self, t: f64) -> f64;

    /// Returns a bound on `|φ'|`, at most 1. A steeper loss is divided by its slope.
    fn slope(&self) -> f64;

    /// Returns a bound on `φ''`; infinity for a loss with kinks.
    fn curvature(&self) -> f64;

    /// Returns a bound on `|t| φ''(t)`, with which a relative error of the argument changes the slope. Without one no minimiser is
    /// certified: the non-private baseline and objective perturbation refuse the loss.
    fn relative_curvature(&self) -> f64 {
        f64::INFINITY
    }
}

/// A [`CustomLoss`] that this process knows by name.
///
/// Training does not rely on the code for the size of a gradient: derivatives outside `±slope` and values outside
/// `φ(0) ± slope |t|` are clamped, and NaN counts as 0 and `φ(0)`. Convexity and curvature remain the author's claim, which
/// [`new`](Self::new) checks on a grid and certificates state as an assumption.
#[derive(Clone, Copy)]
pub struct RegisteredLoss {
    loss: &'static dyn CustomLoss,
    name: &'static str,
    classes: bool,
    /// Rounded up to single precision, so that it is exact in either floating-point type.
    slope: f64,
    curvature: f64,
    relative_curvature: f64,
    /// `φ(0)`.
    origin: f64,
}

static REGISTERED: RwLock<Vec<RegisteredLoss>> = RwLock::new(Vec::new());

impl RegisteredLoss {
    /// Registers a loss under its name, for the rest of the process. Registering the same loss again returns it with its first
    /// claims. For a loss with parameters chosen at run time, leak a box, and include the parameters in the name.
    ///
    /// # Errors
    /// [`Error::CustomLoss`] for a name that is taken or has other characters, a slope outside `[1e-30, 1]`, curvatures outside
    /// `[1e-30, 1e30]` that are not infinite, and a function that contradicts its claims on a grid of arguments up to `±1e6`:
    /// convexity, slope, curvature, and derivatives that match the values.
    pub fn new(loss: &'static dyn CustomLoss) -> Result<Self, Error> {
        let new = Self {
            loss,
            name: loss.name(),
            classes: loss.is_classification(),
            slope: up_to_single(loss.slope()),
            curvature: loss.curvature(),
            relative_curvature: loss.relative_curvature(),
            origin: loss.value(0.0),
        };
        new.check().map_err(|problem| Error::CustomLoss { name: new.name.to_owned(), problem })?;
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        match registered.iter().find(|known| known.name == new.name) {
            None => {
                registered.push(new);
                Ok(new)
            }
            Some(known) if known.is(loss) => Ok(*known),
            Some(_) => {
                let problem = "has the name of another registered loss".to_owned();
                Err(Error::CustomLoss { name: new.name.to_owned(), problem })
            }
        }
    }

    /// Returns the registered loss of this name.
    pub fn named(name: &str) -> Option<Self> {
        REGISTERED.read().unwrap_or_else(PoisonError::into_inner).iter().find(|known| known.name == name).copied()
    }

    /// Returns the name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether targets are -1 and +1.
    pub const fn is_classification(&self) -> bool {
        self.classes
    }

    /// Returns the bound on `|φ'|`.
    pub const fn slope(&self) -> f64 {
        self.slope
    }

    /// Returns the bound on `φ''`.
    pub const fn curvature(&self) -> f64 {
        self.curvature
    }

    /// Returns the bound on `|t| φ''(t)`.
    pub const fn relative_curvature(&self) -> f64 {
        self.relative_curvature
    }

    /// Returns whether the curvature is bounded.
    pub const fn is_smooth(&self) -> bool {
        self.curvature < f64::INFINITY
    }

    fn is(&self, loss: &'static dyn CustomLoss) -> bool {
        // Two types without fields can share an address.
        core::ptr::addr_eq(self.loss, loss) && (self.loss as &dyn Any).type_id() == (loss as &dyn Any).type_id()
    }

    fn check(&self) -> Result<(), String> {
        let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(named) {
            return Err("needs a name of lower-case letters, digits and hyphens".to_owned());
        }
        let Self { slope, curvature, relative_curvature, .. } = *self;
        if !(1e-30..=1.0).contains(&slope) {
            return Err(format!("has slope {slope:?}, which must lie in [1e-30, 1]"));
        }
        for (what, value) in [("curvature", curvature), ("relative curvature", relative_curvature)] {
            if !((1e-30..=1e30).contains(&value) || value == f64::INFINITY) {
                return Err(format!("has {what} {value:?}, which must lie in [1e-30, 1e30] or be infinite"));
            }
        }
        if !self.origin.is_finite() {
            return Err(format!("has value {:?} at 0", self.origin));
        }
        let grid = grid();
        let at = |t| (t, self.loss.value(t), self.loss.derivative(t));
        let mut last: Option<(f64, f64, f64)> = None;
        for (t, value, derivative) in grid.into_iter().map(at) {
            let room = 1e-9 * slope;
            if !value.is_finite() || !derivative.is_finite() {
                return Err(format!("has value {value:?} and derivative {derivative:?} at {t:?}"));
            }
            if derivative.abs() > slope + room {
                return Err(format!("has derivative {derivative:?} at {t:?}, beyond its slope {slope:?}"));
            }
            if let Some((before, value_before, derivative_before)) = last {
                let width = t - before;
                if derivative < derivative_before - room {
                    return Err(format!("is not convex between {before:?} and {t:?}"));
                }
                // The mean of φ'' is at most either bound at the argument that is nearer to 0.
                let nearest = if before < 0.0 && t > 0.0 { 0.0 } else { before.abs().min(t.abs()) };
                if derivative - derivative_before > curvature.min(relative_curvature / nearest) * width + room {
                    return Err(format!("bends more than its curvature allows between {before:?} and {t:?}"));
                }
                let mean = (value - value_before) / width;
                let room = room + 4.0 * f64::EPSILON * (value.abs() + value_before.abs()) / width;
                if !(derivative_before - room..=derivative + room).contains(&mean) {
                    return Err(format!("has a derivative that is not that of its value between {before:?} and {t:?}"));
                }
            }
            last = Some((t, value, derivative));
        }
        Ok(())
    }
}

/// Returns the arguments at which claims are checked, in increasing order: a fine grid around the origin, powers beyond.
fn grid() -> Vec<f64> {
    let fine = (-2048..=2048).map(|i| f64::from(i) / 128.0);
    let powers = (0..200).map(|i| 17.0 * 10f64.powf(f64::from(i) * 0.024));
    let mut grid: Vec<f64> = powers.clone().map(|t| -t).chain(fine).chain(powers).collect();
    grid.sort_by(f64::total_cmp);
    grid
}

/// Returns the least number in single precision that is not below `x`, as a double.
fn up_to_single(x: f64) -> f64 {
    let nearest = x as f32;
    f64::from(if f64::from(nearest) < x { nearest.next_up() } else { nearest })
}

/// Returns the argument of `φ` in double precision.
fn argument<F: Real>(classes: bool, prediction: F, target: F) -> f64 {
    let (p, y) = (prediction.to_subset().unwrap_or(0.0), target.to_subset().unwrap_or(0.0));
    if classes { y * p } else { p - y }
}

impl<F: Real> Loss<F> for RegisteredLoss {
    fn value(&self, prediction: F, target: F) -> F {
        let t = argument(self.classes, prediction, target);
        let (value, reach) = (self.loss.value(t), self.slope * t.abs());
        let value = if value.is_nan() { self.origin } else { value };
        // Infinite arguments have an infinite reach.
        convert(value.max(self.origin - reach).min(self.origin + reach))
    }

    fn derivative(&self, prediction: F, target: F) -> F {
        let derivative = self.loss.derivative(argument(self.classes, prediction, target));
        let derivative = if derivative.is_nan() { 0.0 } else { derivative.clamp(-self.slope, self.slope) };
        if self.classes { target * convert::<f64, F>(derivative) } else { convert(derivative) }
    }

    fn is_of_residual(&self) -> bool {
        !self.classes
    }

    fn curvature_bound(&self) -> F {
        convert(self.curvature)
    }
}

impl LossBounds for RegisteredLoss {
    /// # Formula
    /// ```text
    /// Lipschitz   X · slope        smoothness  X² · curvature        gradient difference  2 · Lipschitz
    /// ```
    fn data_constants(&self, domain: &Domain) -> DataConstants {
        let row_norm = domain.row_norm();
        let lipschitz = product_up(row_norm, self.slope);
        DataConstants {
            lipschitz,
            smoothness: product_up(product_up(row_norm, row_norm), self.curvature),
            gradient_difference: 2.0 * lipschitz,
        }
    }

    fn data_constants_of_the_papers(&self, domain: &Domain) -> DataConstants {
        self.data_constants(domain)
    }
}

impl fmt::Debug for RegisteredLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.loss.fmt(f)
    }
}

impl PartialEq for RegisteredLoss {
    fn eq(&self, other: &Self) -> bool {
        // Names are unique.
        self.name == other.name
    }
}

/// The serialised form: the name.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    loss: String,
}

#[cfg(feature = "serde")]
impl serde::Serialize for RegisteredLoss {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Fields { loss: self.name.to_owned() }.serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for RegisteredLoss {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Fields { loss } = Fields::deserialize(deserializer)?;
        Self::named(&loss).ok_or_else(|| serde::de::Error::custom(Error::not_registered(&loss)))
    }
}

#[cfg(test)]
mod tests;
