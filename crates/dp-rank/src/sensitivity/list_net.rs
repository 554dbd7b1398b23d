//! The image of ListNet.

use super::ImageBounds;
use super::gram::{Gram, diameter};
use crate::certified::UNIT;

/// Returns bounds for top-one [`ListNet`](crate::loss::ListNet), with the radius about the public centre `Σ_i (p_i - 1/n) φ_i`.
///
/// # Formula
/// ```text
/// g(y) - g(y') = Σ_i (q'_i - q_i) φ_i,  ‖g(y) - g(y')‖ <= TV(q, q') max_{a,b} ‖φ_a - φ_b‖
/// diameter = tanh(Y/2) max ‖φ_a - φ_b‖,   radius = tanh(Y/4) max ‖φ_a - φ_b‖
/// ```
/// `Y` is the largest grade; for `Y = 2` the factors are .7616 and .4621. The ratio `q_i / q'_i` has a range of `e^(2Y)`, that of
/// `q_i` to the uniform distribution a range of `e^Y`; a ratio of range `e^r` implies a total variation distance of at most
/// `tanh(r/4)`. The radius exceeds half the diameter: the image is not symmetric about the centre.
///
/// # Examples
/// ```
/// use dp_rank::sensitivity::{Gram, list_net};
/// let gram = Gram::new(&[0.0, 0.0, 0.0, 1.0], 2, 1)?;
/// let image = list_net(&gram, 2);
/// assert!((image.diameter - 0.7615942).abs() < 1e-7 && (image.radius - 0.4621172).abs() < 1e-7);
/// # Ok::<(), dp_rank::Error>(())
/// ```
pub fn list_net(gram: &Gram<'_>, largest_grade: u32) -> ImageBounds {
    let (largest_grade, diameter) = (f64::from(largest_grade), diameter(gram));
    // Avoids `inf * 0`: the factors are positive. The gradient of a single document is 0, rounding included.
    let rounding = if gram.documents() == 1 { 0.0 } else { gram.gradient_rounding() };
    let bound = |factor: f64| factor.tanh() * diameter * (1.0 + 16.0 * UNIT) + rounding;
    ImageBounds { diameter: bound(largest_grade / 2.0), radius: bound(largest_grade / 4.0) }
}
