//! The constants of a regularised loss under stated bounds, for computing step sizes and sensitivities.

use crate::error::{Error, non_negative, positive};
use crate::regulariser::L2;
use crate::rounding::{product_up, sum_up};

/// Bounds on parameters and data, enforced elsewhere (projection, row clipping, target clipping).
///
/// # Examples
/// ```
/// use dp_losses::Domain;
/// let domain = Domain::unit_rows().with_radius(10.0)?;
/// assert_eq!((domain.row_norm(), domain.radius(), domain.target_bound()), (1.0, Some(10.0), 1.0));
/// # Ok::<(), dp_losses::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Domain {
    row_norm: f64,
    radius: Option<f64>,
    target_bound: f64,
}

impl Domain {
    /// Rows of L2 norm at most 1, targets of size at most 1, unbounded parameters.
    pub const fn unit_rows() -> Self {
        Self { row_norm: 1.0, radius: None, target_bound: 1.0 }
    }

    /// Sets the bound on the rows' L2 norm.
    ///
    /// # Errors
    /// Outside `[1e-100, 1e100]`, or NaN.
    pub fn with_row_norm(self, row_norm: f64) -> Result<Self, Error> {
        Ok(Self { row_norm: positive("row norm", row_norm)?, ..self })
    }

    /// Restricts the parameters to the L2 ball of `radius` around 0, including the start and every point at which a gradient is
    /// computed.
    ///
    /// # Errors
    /// Outside `[0, 1e100]`, or NaN.
    pub fn with_radius(self, radius: f64) -> Result<Self, Error> {
        Ok(Self { radius: Some(non_negative("radius", radius)?), ..self })
    }

    /// Sets the bound on the size of targets (used by losses with real targets).
    ///
    /// # Errors
    /// Outside `[0, 1e100]`, or NaN.
    pub fn with_target_bound(self, target_bound: f64) -> Result<Self, Error> {
        Ok(Self { target_bound: non_negative("target bound", target_bound)?, ..self })
    }

    /// Returns the bound `X` on the L2 norm of a row.
    pub const fn row_norm(&self) -> f64 {
        self.row_norm
    }

    /// Returns the bound `R` on the L2 norm of the parameters, if there is one.
    pub const fn radius(&self) -> Option<f64> {
        self.radius
    }

    /// Returns the bound `Y` on the size of a target.
    pub const fn target_bound(&self) -> f64 {
        self.target_bound
    }
}

/// Constants of a loss without its regulariser, over every `w`, row and target of a [`Domain`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataConstants {
    /// `sup |∇ℓ|`, rounded up.
    pub lipschitz: f64,
    /// `sup ‖∇²ℓ‖`, rounded up.
    pub smoothness: f64,
    /// `sup |∇ℓ(w, z) - ∇ℓ(w, z')|` over two examples at the same `w`, rounded up.
    pub gradient_difference: f64,
}

/// A loss with known constants.
pub trait LossBounds {
    /// Returns the least known constants, rounded up.
    fn data_constants(&self, domain: &Domain) -> DataConstants;

    /// Returns the constants as tabulated in papers: valid, but the Lipschitz constant of a classification loss ignores the
    /// radius, and the gradient difference is twice that constant.
    fn data_constants_of_the_papers(&self, domain: &Domain) -> DataConstants;
}

/// Constants of `ℓ(w, z) + λ/2 |w|²` over a [`Domain`].
///
/// All are rounded up, except strong convexity, which is exact. A constant without a finite bound is infinite.
///
/// # Formula
/// ```text
/// lipschitz            L = L_data + λR     (infinite if λ > 0 and there is no radius)
/// smoothness           β = β_data + λ
/// strong convexity     γ = λ
/// gradient difference  G = G_data          (the regulariser is the same for both examples)
/// ```
///
/// # Privacy
/// The sensitivity of a training run under replace-one adjacency is proportional to `gradient_difference`. If a record is
/// replaced by a null record (`x = 0`, data gradient 0), it is proportional to `data_lipschitz`. Both hold for real arithmetic;
/// the training engine accounts for the rounding of the run itself.
///
/// # Examples
/// ```
/// use dp_losses::{Constants, Domain, L2, Logistic};
/// let domain = Domain::unit_rows().with_radius(2.0)?;
/// let constants = Constants::new(&Logistic, L2::new(0.1)?, &domain);
/// assert!((constants.smoothness - 0.35).abs() < 1e-15);
/// assert!((constants.gradient_difference - 1.2698411).abs() < 1e-7); // not 2
/// assert!((constants.data_lipschitz - 0.8807970).abs() < 1e-7); // not 1
/// # Ok::<(), dp_losses::Error>(())
/// ```
///
/// # References
/// Wu et al. (2017), section 2, for the definitions; the gradient-difference bounds are derived in
/// [`logistic_gradient_difference`](crate::logistic_gradient_difference) and
/// [`squared_gradient_difference`](crate::squared_gradient_difference).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Constants {
    /// `L = sup |∇|` of loss and regulariser.
    pub lipschitz: f64,
    /// `β`: the gradient is `β`-Lipschitz in `w`.
    pub smoothness: f64,
    /// `γ`: the largest known `γ` such that the function minus `γ/2 |w|²` is convex.
    pub strong_convexity: f64,
    /// `G = sup |∇(w, z) - ∇(w, z')|` over two examples at the same `w`.
    pub gradient_difference: f64,
    /// `sup |∇|` of the loss alone.
    pub data_lipschitz: f64,
}

impl Constants {
    /// Returns the least known constants.
    pub fn new<L: LossBounds + ?Sized>(loss: &L, regulariser: L2, domain: &Domain) -> Self {
        Self::of_data(loss.data_constants(domain), regulariser, domain)
    }

    /// Returns the constants as tabulated in papers, for comparison: valid, not tight.
    pub fn of_the_papers<L: LossBounds + ?Sized>(loss: &L, regulariser: L2, domain: &Domain) -> Self {
        Self::of_data(loss.data_constants_of_the_papers(domain), regulariser, domain)
    }

    fn of_data(data: DataConstants, regulariser: L2, domain: &Domain) -> Self {
        let lambda = regulariser.lambda();
        let pull = product_up(lambda, domain.radius().unwrap_or(f64::INFINITY));
        Self {
            lipschitz: sum_up(data.lipschitz, pull),
            smoothness: sum_up(data.smoothness, lambda),
            strong_convexity: lambda,
            gradient_difference: data.gradient_difference,
            data_lipschitz: data.lipschitz,
        }
    }
}

#[cfg(test)]
mod tests;
