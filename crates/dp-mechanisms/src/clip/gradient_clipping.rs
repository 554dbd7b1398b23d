//! The clipping of gradients that are never stored, by coefficients computed from the squared norms of their blocks.

use nalgebra::{RealField, convert};

use super::sum::{LARGEST_SLACK, unit_roundoff};
use super::{AutomaticClipping, ClippingNorm, coefficient};
use crate::error::Error;
use crate::float_range::holds;

/// The rule by which a [`ClippedSum`](super::ClippedSum) clips gradients. Under each rule a contribution has norm at most `C`.
///
/// # Formula
/// With `n_k` the norm of block `k` of `K`, and `n² = Σ_k n_k²`, the coefficient of block `k` is, up to rounding,
/// ```text
/// Flat         min(1, C / n)
/// PerBlock     min(1, C / (√K n_k))
/// Automatic    C / (n + gamma)
/// ```
/// A gradient of which any block's squared norm is NaN or infinite has coefficients 0.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum GradientClipping {
    /// The gradient is clipped to the norm.
    Flat(ClippingNorm),
    /// Each block is clipped to an equal share `C/√K` of the norm.
    PerBlock(ClippingNorm),
    /// The gradient is normalised.
    Automatic(AutomaticClipping),
}

impl From<ClippingNorm> for GradientClipping {
    fn from(norm: ClippingNorm) -> Self {
        Self::Flat(norm)
    }
}

impl From<AutomaticClipping> for GradientClipping {
    fn from(rule: AutomaticClipping) -> Self {
        Self::Automatic(rule)
    }
}

impl GradientClipping {
    /// Returns C.
    pub fn norm(&self) -> ClippingNorm {
        match self {
            Self::Flat(norm) | Self::PerBlock(norm) => *norm,
            Self::Automatic(rule) => rule.norm(),
        }
    }
}

/// A rule with its reserve for rounding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clipping {
    pub(super) rule: GradientClipping,
    /// The norm minus the reserve.
    target: f64,
}

impl Clipping {
    /// Creates the rule for gradients of `blocks` blocks, the squared norm of each of which is too small by at most
    /// `norm_roundings` unit roundoffs of `F`, relatively.
    pub(super) fn new<F: RealField + Copy>(
        rule: GradientClipping,
        blocks: usize,
        norm_roundings: f64,
    ) -> Result<Self, Error> {
        let norm = rule.norm().get();
        let out_of_range = |name, value, range| Err(Error::OutOfRange { name, value, range });
        if !(holds::<F>(norm * norm) && holds::<F>(norm * norm * 2f64.powi(-24))) {
            let range = "the range in which its square is well inside the float type";
            return out_of_range("clipping norm", norm, range);
        }
        if let GradientClipping::Automatic(rule) = rule {
            // Where all squares underflow, the norm is far below gamma.
            let gamma = rule.gamma();
            if !(holds::<F>(gamma * gamma * 2f64.powi(-24)) && holds::<F>(norm / gamma)) {
                return out_of_range("gamma", gamma, "the range in which its square is well inside the float type");
            }
        }
        // The norms of blocks are added up.
        let slack = (norm_roundings + blocks as f64 + 7.0) * unit_roundoff::<F>();
        if !(norm_roundings >= 0.0 && slack <= LARGEST_SLACK) {
            return out_of_range("slack for the rounding of norms", slack, "[0, 1/8]");
        }
        let share = match rule {
            GradientClipping::PerBlock(_) => (blocks as f64).sqrt(),
            _ => 1.0,
        };
        Ok(Self { rule, target: norm * (1.0 - slack) / share })
    }

    /// Writes the coefficients of an example's blocks.
    pub(super) fn set_coefficients<F: RealField + Copy>(&self, squared_norms: &[F], coefficients: &mut Vec<F>) {
        let wide = |norm: F| -> f64 { norm.to_subset_unchecked() };
        let total: f64 = squared_norms.iter().map(|&norm| wide(norm)).sum();
        let of_total = match self.rule {
            GradientClipping::Flat(_) => coefficient(total, self.target),
            GradientClipping::Automatic(rule) if total >= 0.0 && total.is_finite() => {
                self.target / (total.sqrt() + rule.gamma())
            }
            GradientClipping::PerBlock(_) if total >= 0.0 && total.is_finite() => {
                let each = |&norm: &F| -> F { convert(coefficient(wide(norm), self.target)) };
                return coefficients.extend(squared_norms.iter().map(each));
            }
            GradientClipping::Automatic(_) | GradientClipping::PerBlock(_) => 0.0,
        };
        coefficients.extend(core::iter::repeat_n(convert::<f64, F>(of_total), squared_norms.len()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clip::tests::exactly_within;

    fn rules(norm: f64) -> [GradientClipping; 3] {
        let norm = ClippingNorm::new(norm).unwrap();
        let automatic = AutomaticClipping::new(norm, 0.01).unwrap();
        [norm.into(), GradientClipping::PerBlock(norm), automatic.into()]
    }

    /// Returns the coefficients of a gradient's blocks, with squared norms that are too small by as much as declared.
    fn coefficients<F: RealField + Copy>(rule: GradientClipping, blocks: &[Vec<f64>], roundings: f64) -> Vec<F> {
        let clipping = Clipping::new::<F>(rule, blocks.len(), roundings).unwrap();
        let too_small = 1.0 - roundings * unit_roundoff::<F>();
        let squared_norms: Vec<F> =
            blocks.iter().map(|block| convert(too_small * block.iter().map(|x| x * x).sum::<f64>())).collect();
        let mut coefficients = Vec::new();
        clipping.set_coefficients(&squared_norms, &mut coefficients);
        coefficients
    }

    fn contribution<F: RealField + Copy>(rule: GradientClipping, blocks: &[Vec<f64>], roundings: f64) -> Vec<f64> {
        let coefficients = coefficients::<F>(rule, blocks, roundings);
        let scaled = coefficients.iter().zip(blocks).map(|(&c, block)| {
            let c: f64 = c.to_subset_unchecked();
            block.iter().map(move |x| c * x)
        });
        scaled.flatten().collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Every contribution is within the norm, for norms of blocks that are too small by as much as declared and one rounding more.
        #[test]
        fn contributions_are_within_the_norm(
            blocks in prop::collection::vec(prop::collection::vec(-1.0f64..1.0, 1..6), 1..5),
            powers in prop::collection::vec(-20i32..20, 5),
            norm in 0.1f64..10.0,
            roundings in 0.0f64..100.0,
        ) {
            let blocks: Vec<Vec<f64>> = blocks.iter().zip(powers).map(|(block, power)| {
                let scale = 2f64.powi(power);
                // Numbers of both float types.
                block.iter().map(|x| f64::from((x * scale) as f32)).collect()
            }).collect();
            for rule in rules(norm) {
                prop_assert!(exactly_within(&contribution::<f64>(rule, &blocks, roundings), norm));
                prop_assert!(exactly_within(&contribution::<f32>(rule, &blocks, roundings), norm));
            }
        }
    }

    #[test]
    fn each_rule_has_its_coefficients() {
        let blocks = [vec![3.0, 4.0], vec![0.1]];
        let [flat, per_block, automatic] = rules(2f64.sqrt()).map(|rule| coefficients::<f64>(rule, &blocks, 2.0));
        let norm = 25.01f64.sqrt();
        let near = |found: &[f64], expected: [f64; 2]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-13), "{found:?}, not {expected:?}");
        };
        near(&flat, [2f64.sqrt() / norm; 2]);
        near(&per_block, [0.2, 1.0]);
        near(&automatic, [2f64.sqrt() / (norm + 0.01); 2]);
        // Short gradients are left alone, or lengthened.
        let short = [vec![0.3], vec![0.4]];
        let [flat, per_block, automatic] = rules(1.0).map(|rule| coefficients::<f32>(rule, &short, 2.0));
        assert_eq!((flat, per_block), (vec![1.0; 2], vec![1.0; 2]));
        assert!(automatic[0] > 1.95 && automatic[0] == automatic[1]);
        let lost = [vec![1e-30], vec![0.0]];
        for rule in rules(1.0) {
            let found = contribution::<f32>(rule, &lost, 2.0);
            assert!(found[0] >= 1e-30 && found[0] < 1.1e-28, "{found:?}");
        }
    }

    #[test]
    fn one_block_that_is_not_finite_drops_the_gradient() {
        for broken in [f64::NAN, f64::INFINITY, 1e200] {
            for rule in rules(1.0) {
                assert_eq!(coefficients::<f64>(rule, &[vec![0.1], vec![broken], vec![3.0]], 2.0), [0.0; 3]);
            }
        }
    }

    #[test]
    fn rules_that_the_float_type_cannot_hold_are_refused() {
        let norm = |norm| ClippingNorm::new(norm).unwrap();
        let automatic = |norm_of: f64, gamma| AutomaticClipping::new(norm(norm_of), gamma).unwrap().into();
        let single = |rule: GradientClipping| Clipping::new::<f32>(rule, 2, 8.0).err();
        assert_eq!(single(automatic(1.0, 0.01)), None);
        for rule in
            [norm(1e-20).into(), GradientClipping::PerBlock(norm(1e20)), automatic(1.0, 1e-20), automatic(1e10, 1e-30)]
        {
            assert!(matches!(single(rule), Some(Error::OutOfRange { .. })), "{rule:?}");
        }
        assert!(Clipping::new::<f64>(automatic(1.0, 1e-20), 2, 8.0).is_ok());
    }
}
