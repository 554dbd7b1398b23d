//! Automatic clipping: normalised contributions.

use nalgebra::RealField;

use super::shortening::Shortening;
use super::{ClippingNorm, shrunk};
use crate::error::{Error, positive_normal};
use crate::rounding::power_of_two;

/// Automatic clipping: scales every contribution to a norm just below the bound, short ones somewhat less.
///
/// The rule has no kink, and the clipping norm need not be tuned: like a step size, it only scales the sum. `gamma` prevents much
/// shorter vectors from being scaled up to full length.
///
/// # Formula
/// ```text
/// C (1 - k) v / (‖v‖ + gamma),   k = (d + 8) 2^-53
/// ```
///
/// # Privacy
/// The norm of the stored result, in exact arithmetic, is at most `C` for every input, and never NaN: a vector with a NaN or an
/// infinity becomes zero. The computed denominator is at least `‖v‖ (1 - (d/2 + 3) 2^-53)`: as for [`clip_l2`](super::clip_l2)
/// with one more rounding; if all squares underflow, `gamma >= 2^-500` is above the lost norm. `C (1 - k)`, the quotient, which
/// is a normal number, and each product add one rounding each.
///
/// # Examples
/// ```
/// use dp_mechanisms::clip::{AutomaticClipping, ClippingNorm};
/// let rule = AutomaticClipping::new(ClippingNorm::new(1.0)?, 0.01)?;
/// let mut long = [30.0, -40.0];
/// rule.clip(&mut long);
/// assert!((long[0] - 30.0f64 / 50.01).abs() < 1e-14);
/// let mut zero = [0.0; 2];
/// rule.clip(&mut zero);
/// assert_eq!(zero, [0.0; 2]);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// Z. Bu, Y.-X. Wang, S. Zha, G. Karypis, "Automatic clipping: differentially private deep learning made easier and
/// stronger", NeurIPS 2023, equation (AUTO-S), arXiv 2206.07136.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::clip::AutomaticClippingRecord",
        into = "crate::record::clip::AutomaticClippingRecord"
    )
)]
pub struct AutomaticClipping {
    norm: ClippingNorm,
    gamma: f64,
}

impl AutomaticClipping {
    /// The value of `gamma` proposed by the authors.
    pub const GAMMA: f64 = 0.01;

    /// Creates the rule with this bound and this `gamma`, in the units of the vectors.
    ///
    /// # Errors
    /// As [`ClippingNorm::new`] for `gamma`; [`Error::OutOfRange`] unless `C / gamma` is in `[2^-1000, 2^1000]`.
    pub fn new(norm: ClippingNorm, gamma: f64) -> Result<Self, Error> {
        if !(positive_normal("gamma", gamma)? >= ClippingNorm::LEAST) {
            return Err(Error::TooSmall { name: "gamma", value: gamma, least: ClippingNorm::LEAST });
        }
        let ratio = norm.get() / gamma;
        if !(power_of_two(-1000)..=power_of_two(1000)).contains(&ratio) {
            let range = "[2^-1000, 2^1000]";
            return Err(Error::OutOfRange { name: "clipping norm / gamma", value: ratio, range });
        }
        Ok(Self { norm, gamma })
    }

    /// Normalises a vector in place.
    pub fn clip<F: RealField + Copy>(&self, v: &mut [F]) {
        self.shortening(v).apply(v);
    }

    /// Returns the factor for a vector that is never stored, given its squared norm; conditions as for
    /// [`clip_coefficient`](super::clip_coefficient), and 0 for NaN or infinity.
    pub fn coefficient(&self, squared_norm: f64, dim: usize) -> f64 {
        if !(squared_norm >= 0.0 && squared_norm.is_finite()) {
            return 0.0;
        }
        shrunk(self.norm.get(), dim) / (squared_norm.sqrt() + self.gamma)
    }

    /// Returns the bound.
    pub fn norm(&self) -> ClippingNorm {
        self.norm
    }

    /// Returns the constant added to the norm.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    #[inline(always)]
    pub(super) fn shortening<F: RealField + Copy>(&self, v: &[F]) -> Shortening {
        Shortening::automatic(v, shrunk(self.norm.get(), v.len()), self.gamma)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::exactly_within;
    use super::*;
    use proptest::prelude::*;

    fn rule(bound: f64, gamma: f64) -> AutomaticClipping {
        AutomaticClipping::new(ClippingNorm::new(bound).unwrap(), gamma).unwrap()
    }

    #[test]
    fn refused_parameters() {
        let new = |gamma| AutomaticClipping::new(ClippingNorm::new(1.0).unwrap(), gamma).err();
        assert!(matches!(new(f64::NAN), Some(Error::NotFinite { name: "gamma", .. })));
        assert_eq!(new(0.0), Some(Error::NotPositive { name: "gamma", value: 0.0 }));
        assert!(matches!(new(1e-200), Some(Error::TooSmall { name: "gamma", .. })));
        assert_eq!(new(1e-100), None);
        let apart = AutomaticClipping::new(ClippingNorm::new(1e300).unwrap(), 1e-100);
        assert!(matches!(apart, Err(Error::OutOfRange { .. })));
    }

    #[test]
    fn what_is_not_finite_becomes_zero() {
        for broken in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut v = [1.0, broken, 1e300];
            rule(1.0, 0.01).clip(&mut v);
            assert_eq!(v, [0.0; 3]);
        }
        for squared_norm in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(rule(1.0, 0.01).coefficient(squared_norm, 3), 0.0);
        }
    }

    /// Both ends of the range of doubles: no intermediate result over- or underflows.
    #[test]
    fn extreme_vectors_have_the_length_of_the_formula() {
        for (entry, gamma) in [(1e308, 0.01), (1e-308, 1e-5), (5e-324, 1.0), (1e200, 1e200), (1e-170, 1e-150)] {
            let mut v = [entry];
            rule(1.0, gamma).clip(&mut v);
            let expected = entry / (entry + gamma);
            assert!((v[0] - expected).abs() <= expected * 1e-14 + 5e-324, "{entry:e}: {} {expected}", v[0]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn stored_norm_is_within_for_all_finite_input(
            v in prop::collection::vec(any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite()), 0..30),
            power in -450i32..450, gamma_power in -450i32..450,
        ) {
            let bound = power_of_two(power) * 1.3;
            let mut v = v;
            rule(bound, power_of_two(gamma_power)).clip(&mut v);
            prop_assert!(exactly_within(&v, bound));
        }

        /// With a small gamma the norm is close to the bound, so an error of one unit in the last place would show.
        #[test]
        fn stored_norm_is_within_near_the_bound(v in prop::collection::vec(-1.0f64..1.0, 1..200), gamma in -60i32..0) {
            let mut clipped = v.clone();
            rule(1.0, power_of_two(gamma)).clip(&mut clipped);
            prop_assert!(exactly_within(&clipped, 1.0));
            let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            prop_assume!(norm > 1e-3);
            let (factor, expected) = (clipped[0] / v[0], 1.0 / (norm + power_of_two(gamma)));
            prop_assert!(v[0] == 0.0 || (factor / expected - 1.0).abs() < 1e-12);
            let coefficient = rule(1.0, power_of_two(gamma)).coefficient(norm * norm, v.len());
            prop_assert!((coefficient / expected - 1.0).abs() < 1e-12);
        }
    }
}
