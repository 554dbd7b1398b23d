//! The coordinate of a numeric column: a monotone map of its public range to `[0, 1]`.

use crate::schema::Scale;

/// `c` of the logarithmic scale. Between 10 and 1000 accuracy is nearly the same.
pub(super) const STEEPNESS: f64 = 100.0;

/// A range spans orders of magnitude if its end nearer to 0, or its shorter side of 0, is below this share of the other.
const SPANS: f64 = 0.1;

/// The place of a value in its column's public range, with all precomputed values.
///
/// # Formula
/// ```text
/// u = (g(x) - g(min))/(g(max) - g(min)),   g = log1p for columns that say so, else the identity
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share {
    log1p: bool,
    /// Half of the transformed minimum and half of the transformed width: halves, so that no finite range overflows.
    half_low: f64,
    half_width: f64,
}

impl Share {
    /// Creates the share of values in `[min, max]`; `None` if this range has no width.
    pub(super) fn new((min, max): (f64, f64), log1p: bool) -> Option<Self> {
        let half = |value: f64| 0.5 * if log1p { value.ln_1p() } else { value };
        let (half_low, half_width) = (half(min), half(max) - half(min));
        (half_width > 0.0).then_some(Self { log1p, half_low, half_width })
    }

    /// Returns u in `[0, 1]`, for a value within the range.
    #[inline]
    pub(super) fn of(&self, value: f64) -> f64 {
        let transformed = if self.log1p { value.ln_1p() } else { value };
        ((0.5 * transformed - self.half_low) / self.half_width).clamp(0.0, 1.0)
    }

    /// Returns whether values are transformed by log1p, half the transformed minimum and half the transformed width.
    pub(super) fn parts(&self) -> (bool, f64, f64) {
        (self.log1p, self.half_low, self.half_width)
    }

    /// Returns a value with this share, up to rounding.
    pub(super) fn inverse(&self, share: f64) -> f64 {
        let transformed = 2.0 * (self.half_low + share * self.half_width);
        if self.log1p { transformed.exp_m1() } else { transformed }
    }
}

/// The scale of a column's coordinate z, as a map of its share u.
///
/// # Formula
/// With `l(u) = ln(1 + c u)/ln(1 + c)`, c = 100 and r the share of 0,
/// ```text
/// linear           z = u
/// log,  r <= 0     z = l(u)
/// log,  r >= 1     z = 1 - l(1 - u)
/// log,  0 < r < 1  z = (s(u) - s(0))/(s(1) - s(0)),   s(u) = sign(u - r) l(|u - r|/max(r, 1 - r))
/// ```
/// By range it is logarithmic if the range spans orders of magnitude: of `|min|` and `|max|`, one is below a tenth of the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Coordinate {
    Linear,
    /// The logarithmic scale with small steps at the minimum.
    FromMinimum,
    /// The same at the maximum.
    FromMaximum,
    /// The same at 0.
    FromZero {
        /// r
        zero: f64,
        /// s(0)
        low: f64,
        /// s(1) - s(0)
        width: f64,
    },
}

impl Coordinate {
    /// Creates the coordinate of values in `[min, max]`.
    pub(super) fn new((min, max): (f64, f64), scale: Scale) -> Self {
        let (near, far) = (min.abs().min(max.abs()), min.abs().max(max.abs()));
        let scale = match scale {
            Scale::ByRange if near < SPANS * far => Scale::Log,
            Scale::ByRange => Scale::Linear,
            stated => stated,
        };
        match scale {
            Scale::Log if min >= 0.0 => Self::FromMinimum,
            Scale::Log if max <= 0.0 => Self::FromMaximum,
            Scale::Log => {
                let zero = -0.5 * min / (0.5 * max - 0.5 * min);
                let low = signed(0.0, zero);
                Self::FromZero { zero, low, width: signed(1.0, zero) - low }
            }
            _ => Self::Linear,
        }
    }

    /// Returns z in `[0, 1]`.
    #[inline]
    pub(super) fn of(&self, share: f64) -> f64 {
        let mut z = [share];
        self.replace(&mut z);
        z[0]
    }

    /// Replaces shares by their z.
    #[inline(always)]
    pub(super) fn replace(&self, shares: &mut [f64]) {
        match *self {
            Self::Linear => {}
            Self::FromMinimum => {
                for z in shares {
                    *z = log(*z).min(1.0);
                }
            }
            Self::FromMaximum => {
                for z in shares {
                    *z = (1.0 - log(1.0 - *z)).max(0.0);
                }
            }
            Self::FromZero { zero, low, width } => {
                for z in shares {
                    *z = ((signed(*z, zero) - low) / width).clamp(0.0, 1.0);
                }
            }
        }
    }

    /// Returns the share with this z, up to rounding.
    pub(super) fn inverse(&self, z: f64) -> f64 {
        match *self {
            Self::Linear => z,
            Self::FromMinimum => unlog(z),
            Self::FromMaximum => 1.0 - unlog(1.0 - z),
            Self::FromZero { zero, low, width } => {
                let s = low + z * width;
                zero + (zero.max(1.0 - zero) * unlog(s.abs())).copysign(s)
            }
        }
    }
}

/// Returns l(u), for u in `[0, 1]`.
#[inline(always)]
fn log(share: f64) -> f64 {
    logarithm(1.0 + STEEPNESS * share) / OF_END
}

/// ln(1 + c)
pub(super) const OF_END: f64 = logarithm(1.0 + STEEPNESS);

/// Returns the natural logarithm of a number from 1 to `2^51`.
///
/// `ln(2^k m) = k ln 2 + 2 artanh(s)`, with `s = (m - 1)/(m + 1)` and `m` in `[√½, √2)`. The series of artanh ends with
/// `s^21/21`: its remainder is below `s^23/23 < 2e-19`. As in [`sin_half_pi`](super::feature_map::sin_half_pi), a loop over it
/// vectorises, and its bits are the same on every machine; it is within 2 units in the last place of libm's logarithm (tested).
#[inline(always)]
const fn logarithm(number: f64) -> f64 {
    const ONE: u64 = 1f64.to_bits();
    const LEAST: u64 = core::f64::consts::FRAC_1_SQRT_2.to_bits();
    const TWO_TO_52: f64 = 4_503_599_627_370_496.0;
    const MANTISSA: u64 = (1 << 52) - 1;
    let shifted = number.to_bits() + (ONE - LEAST);
    // A small whole number in the last places of 2^52.
    let exponent = f64::from_bits(TWO_TO_52.to_bits() | ((shifted >> 52) - (ONE >> 52))) - TWO_TO_52;
    let rest = f64::from_bits((shifted & MANTISSA) + LEAST) - 1.0;
    let s = rest / (rest + 2.0);
    let square = s * s;
    let (mut sum, mut k) = (0.0, 21);
    while k > 1 {
        sum = (sum + 2.0 / k as f64) * square;
        k -= 2;
    }
    // The first product is exact: the last places of LN_2_HIGH are 0.
    exponent * LN_2_HIGH + (2.0 * s + (s * sum + exponent * LN_2_LOW))
}

/// ln 2 in two parts.
const LN_2_HIGH: f64 = f64::from_bits(core::f64::consts::LN_2.to_bits() & !0xffff_ffff);
const LN_2_LOW: f64 = core::f64::consts::LN_2 - LN_2_HIGH;

/// Returns the share u with `l(u) = z`.
fn unlog(z: f64) -> f64 {
    (OF_END * z).exp_m1() / STEEPNESS
}

/// Returns s(u).
#[inline(always)]
fn signed(share: f64, zero: f64) -> f64 {
    log((share - zero).abs() / zero.max(1.0 - zero)).copysign(share - zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(range: (f64, f64), scale: Scale, value: f64) -> f64 {
        Coordinate::new(range, scale).of(Share::new(range, false).unwrap().of(value))
    }

    #[test]
    fn the_logarithm_is_that_of_libm() {
        let numbers = (0..1_000_000).map(|i| 1.0 + 1e-4 * f64::from(i)).chain((0..51).map(|k| 2f64.powi(k)));
        for number in numbers.chain((0..1000).map(|i| 1.0 + f64::from(i) * f64::EPSILON)) {
            let (found, expected) = (logarithm(number), number.ln());
            assert!((found - expected).abs() <= 2.0 * f64::EPSILON * expected, "{number:?}: {found:e} {expected:e}");
        }
        // From one number to the next it never decreases by more than a rounding.
        let at = |i: u32| log(f64::from(i) / f64::from(u32::MAX));
        assert!((0..100_000).all(|i| at(40_000 * i) <= at(40_000 * i + 1) + f64::EPSILON));
        assert_eq!([log(0.0), log(1.0)], [0.0, 1.0]);
    }

    #[test]
    fn the_logarithmic_scale_by_hand() {
        let l = |u: f64| (1.0 + 100.0 * u).ln() / 101f64.ln();
        for (range, value, expected) in [
            ((0.0, 10.0), 0.1, l(0.01)),
            ((5.0, 15.0), 6.0, l(0.1)),
            ((-10.0, 0.0), -0.1, 1.0 - l(0.01)),
            ((-1.0, 1.0), 0.0, 0.5),
            ((-1.0, 1.0), 0.3, 0.5 + 0.5 * l(0.3)),
            ((-1.0, 3.0), -0.5, (l(1.0 / 3.0) - l(0.5 / 3.0)) / (l(1.0 / 3.0) + 1.0)),
        ] {
            let found = at(range, Scale::Log, value);
            assert!((found - expected).abs() < 1e-14, "{range:?} {value}: {found} {expected}");
        }
    }

    #[test]
    fn ranges_that_span_orders_of_magnitude_are_logarithmic() {
        for (range, log) in [
            ((0.0, 1.0), true),
            ((1859.0, 3858.0), false),
            ((326.0, 18823.0), true),
            ((-8019.0, 102_127.0), true),
            ((-7.0, 6.8), false),
            ((-3.0, -0.1), true),
            ((-3.0, -1.0), false),
            ((-f64::MAX, f64::MAX), false),
        ] {
            let expected = if log { Scale::Log } else { Scale::Linear };
            assert_eq!(Coordinate::new(range, Scale::ByRange), Coordinate::new(range, expected), "{range:?}");
        }
    }

    #[test]
    fn every_scale_increases_from_0_to_1() {
        for range in
            [(0.0, 1.0), (-3.0, 0.0), (-2.0, 7.0), (-f64::MAX, f64::MAX), (0.0, f64::MIN_POSITIVE), (1e300, 2e300)]
        {
            for scale in [Scale::Linear, Scale::Log, Scale::ByRange] {
                let steps = (0..=1000).map(|i| {
                    let share = f64::from(i) / 1000.0;
                    at(range, scale, (range.0 * (1.0 - share) + range.1 * share).clamp(range.0, range.1))
                });
                let values: Vec<f64> = steps.collect();
                assert_eq!((values[0], values[1000]), (0.0, 1.0), "{range:?} {scale:?}");
                assert!(values.windows(2).all(|pair| pair[0] <= pair[1]), "{range:?} {scale:?}");
            }
        }
    }

    #[test]
    fn inverses_lead_back() {
        for range in [(0.0, 1.0), (3.0, 7.0), (-3.0, 0.0), (-2.0, 7.0), (-1e9, 3.0)] {
            for scale in [Scale::Linear, Scale::Log] {
                let coordinate = Coordinate::new(range, scale);
                for log1p in [false, true] {
                    if log1p && range.0 < 0.0 {
                        continue;
                    }
                    let share = Share::new(range, log1p).unwrap();
                    for z in (0..=20).map(|i| f64::from(i) / 20.0) {
                        let found = coordinate.of(share.of(share.inverse(coordinate.inverse(z))));
                        assert!((found - z).abs() < 1e-6, "{range:?} {scale:?} {log1p} {z} {found}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_range_without_width_has_no_share() {
        for range in [(1.0, 1.0), (0.0, 0.0), (0.0, 5e-324), (-0.0, 0.0)] {
            let share = Share::new(range, false);
            assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share.of(range.1))), "{range:?}");
        }
    }
}
