//! The joint sensitivity of a sum of gradients and a sum of Hessians.

use dp_accountant::AdjacencyKind;
use dp_losses::LossKind;

use super::RECIPE;
use crate::error::Error;

/// Generous allowance for the rounding of a record's slope, its root and their products, and of its row's norm.
const ROUNDING: f64 = 1e-9;

/// A loss of a margin whose curvature is a function of its slope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Margin {
    /// Slope `a = 1/(1 + e^s)`, curvature `a (1 - a)`.
    Logistic,
    /// Curvature `β = 1/(2h)` where `0 < a < 1`.
    Kinked { curvature: f64 },
}

impl Margin {
    pub(super) fn of(loss: LossKind) -> Result<Self, Error> {
        match loss {
            LossKind::Logistic => Ok(Self::Logistic),
            LossKind::HuberSvm(loss) => Ok(Self::Kinked { curvature: 0.5 / loss.h() }),
            _ => Err(Error::NotProved {
                recipe: RECIPE,
                why: "it takes losses of a margin that are smooth, with slopes of at most 1: logistic, huber-svm",
            }),
        }
    }

    /// Returns the curvature where the slope has absolute value `a` in [0, 1].
    #[inline]
    pub(super) fn curvature(self, a: f64) -> f64 {
        match self {
            Self::Logistic => a * (1.0 - a),
            Self::Kinked { curvature } if a > 0.0 && a < 1.0 => curvature,
            Self::Kinked { .. } => 0.0,
        }
    }

    /// Returns β, the largest curvature.
    pub(super) fn largest(self) -> f64 {
        match self {
            Self::Logistic => 0.25,
            Self::Kinked { curvature } => curvature,
        }
    }
}

/// Bound on a record's contribution to the vector `(Σ a x, ω Σ a' x xᵀ)`, with the matrix's entries scaled such that their
/// Euclidean norm is the Frobenius norm.
///
/// # Formula
/// With rows of norm at most X, slopes `a` in [0, 1], curvatures `a'` of at most β and `ω = (f/(1 - f))^{1/2} / (β X)`, a
/// record's presence moves the vector by at most
/// ```text
/// S² = max over a of  a² X² + ω² a'² X⁴ = X² max(1, s² (1 + κ (1 - s)²)),   κ = 16 f/(1 - f),  s = (3 - √(1 - 8/κ))/4
///                                                           logistic: a' = a (1 - a); the second term for κ > 8 only
///    = X²/(1 - f)                                           otherwise
/// ```
/// and `S = X` for the logistic loss up to `κ = (11 + 5√5)/2`, `f = 0.409`. A replaced record moves it by at most
/// ```text
/// min( 4S²,  max( 4X² + b²,  2X² + 2b² + X⁴/(2b²)  where 2b² > X² ) ),   b = ω β X².
/// ```
///
/// # Privacy
/// Presence: `a² ‖x‖² + ω² a'² ‖x‖⁴` increases in `‖x‖`. For the logistic loss its maximum is `X² f(a)` with
/// `f = a² (1 + κ (1 - a)²)`, and `f'/2a = 1 + κ (1 - a)(1 - 2a)` vanishes at `(3 ± √(1 - 8/κ))/4`: f is largest at the
/// smaller root or at the end 1.
///
/// Replacement: `4S²` is the triangle inequality. Let `t = |cos|` of the angle of the two rows, `g ≤ X` and `β' ≤ b` the norms
/// of a record's two parts. The inner product of two matrices `x xᵀ` and `z zᵀ` is `⟨x, z⟩²`, never negative, so
/// that the squared distance is at most
/// ```text
/// g₁² + g₂² + 2 g₁ g₂ t + β₁² + β₂² - 2 β₁ β₂ t².
/// ```
/// It increases in the `g`, and is convex in `β₁` and in `β₂`, hence largest where each is 0 or b: `2X²(1 + t) + b²` with its
/// maximum at `t = 1`, or `2X²(1 + t) + 2b²(1 - t²)` with its maximum at `t = X²/(2b²)`, if that is less than 1.
///
/// The summands are truncated: a gradient to one within `e = h √d`, the scaled row `p = (ω a')^{1/2} x` to `q` within `e'`.
/// Norms only decrease, but the inner products move by at most `2eX` and, for matrices,
/// `|⟨q₁, q₂⟩² - ⟨p₁, p₂⟩²| <= 2e' b^{1/2} · 2b`: the recipe adds `4eX + 8e' b^{3/2}` to the second bound.
///
/// # Examples
/// ```
/// use dp_accountant::AdjacencyKind;
/// use dp_optim::recipes::DpNewton;
/// let free = DpNewton::new("logistic".parse()?).joint()?;
/// assert!((free.sensitivity(AdjacencyKind::ZeroOut)? - 1.0).abs() < 1e-8); // the gradient's alone
/// assert!((free.sensitivity(AdjacencyKind::ReplaceOne)? - 2.0).abs() < 1e-8);
/// # Ok::<(), dp_optim::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Joint {
    pub(super) margin: Margin,
    pub(super) row_norm: f64,
    share: f64,
}

impl Joint {
    pub(super) fn new(margin: Margin, row_norm: f64, share: f64) -> Self {
        Self { margin, row_norm, share }
    }

    /// Returns `f/(1 - f)`: the squared norm of a record's largest Hessian, relative to that of its largest gradient.
    fn ratio(self) -> f64 {
        self.share / (1.0 - self.share)
    }

    /// Returns ω, the weight of the Hessians.
    pub fn weight(self) -> f64 {
        self.ratio().sqrt() / (self.margin.largest() * self.row_norm)
    }

    /// Returns the L2 sensitivity of the vector.
    ///
    /// # Errors
    /// [`Error::Adjacency`] unless the number of records is public under the relation.
    pub fn sensitivity(self, relation: AdjacencyKind) -> Result<f64, Error> {
        self.truncated(relation, 0.0)
    }

    /// As [`sensitivity`](Self::sensitivity), with both parts truncated to grids. Truncation changes the angles of rows, so
    /// that the squared distance of a pair may exceed that of the exact parts by `slack`. Norms only decrease.
    pub(super) fn truncated(self, relation: AdjacencyKind, slack: f64) -> Result<f64, Error> {
        let ratio = self.ratio();
        // In units of X².
        let presence = match self.margin {
            Margin::Logistic => {
                let kappa = 16.0 * ratio;
                let inner = if kappa > 8.0 {
                    let s = 0.25 * (3.0 - (1.0 - 8.0 / kappa).sqrt());
                    s * s * (1.0 + kappa * (1.0 - s) * (1.0 - s))
                } else {
                    0.0
                };
                inner.max(1.0)
            }
            Margin::Kinked { .. } => 1.0 + ratio,
        };
        let square = match relation {
            AdjacencyKind::ZeroOut => presence,
            AdjacencyKind::ReplaceOne => {
                let across = if ratio > 0.5 { 2.0 + 2.0 * ratio + 0.5 / ratio } else { 0.0 };
                (4.0 * presence).min((4.0 + ratio).max(across) + slack / (self.row_norm * self.row_norm))
            }
            adjacency => return Err(Error::Adjacency { recipe: RECIPE, adjacency }),
        };
        Ok(self.row_norm * square.sqrt() * (1.0 + ROUNDING))
    }
}
