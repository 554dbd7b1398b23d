//! The grid on which noisy values are released: multiples of a power of two that depends only on public parameters.
//!
//! The gaps between doubles depend on their size, so a plain `value + noise` in floating point can reveal the value by the set of
//! reachable doubles (Mironov 2012) or by the rounding of the sum (Haney et al. 2022). A release is therefore `g` times the
//! integer nearest to `(value + noise) / g`, with a step `g` far below the noise scale. It is a function of the ideal release
//! `value + noise`, hence post-processing, and the same theorem covers it without any loss.
//!
//! # Formula
//! ```text
//! g = 2^k,  k = floor(log2 scale) - bits
//! output = g · (i + round(f + noise / g)),   value / g = i + f,  i an integer,  |f| <= 1/2
//! ```
//! The split of `value / g` is exact, and `i` is added after rounding. So for every `value` the set of reachable outputs is all
//! multiples of `g`, up to where doubles themselves are coarser than `g`; there the sum of two multiples of `g` is rounded once
//! more, which is again post-processing.
//!
//! In [`NoiseMode::Exact`], the default, the integer `round(f + noise / g)` has exactly the law that the formula states for ideal
//! real noise: see [`exact`](crate::exact). Nothing is idealised. `noise / g` is the law at scale 1 times the least integer not
//! below `scale / g`, so that the noise is at least the claimed noise, and larger by at most a factor `1 + 2^-bits`.
//!
//! # Idealisation in `Rounded` mode
//! The noise itself is idealised. [`NoiseMode::Rounded`] takes it from a double-precision sampler: a normal deviate is a function
//! of 64 random bits (more in the tail) computed with rounded multiplications, exponentials and logarithms, and `f + noise / g`
//! is rounded to 53 bits before it is rounded to an integer. The theorems are about ideal real noise, from which each output's
//! probability may differ by relative amounts of the order of `2^-52 · 2^bits`, and by more far in the tail. No attack that uses
//! the difference is known, but a certificate lists it as an assumption.
//!
//! [`NoiseMode::Exact`]: dp_accountant::certificate::NoiseMode::Exact
//! [`NoiseMode::Rounded`]: dp_accountant::certificate::NoiseMode::Rounded
//!
//! # References
//! I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
//! S. Haney, D. Desfontaines, L. Hartman, R. Shrestha, M. Hay, "Precision-based attacks and interval refining",
//! arXiv 2207.13793, 2022.

use crate::error::Error;
use crate::exact::real::Binary;
use crate::rounding::{exponent, power_of_two};

/// The least number of bits of a grid below the noise scale.
pub const MIN_BITS: u32 = 20;
/// The largest number of bits of a grid below the noise scale.
pub const MAX_BITS: u32 = 40;
/// The largest exponent of a step: the largest finite double is a multiple of `2^971`, so that a result that would overflow can
/// saturate at a multiple of the step.
const LARGEST_STEP_EXPONENT: i32 = 970;
const TWO_TO_52: f64 = 4_503_599_627_370_496.0;
/// The largest distance from 0, in steps, that [`Grid::index`] distinguishes from larger ones.
const END: u128 = 1 << 126;

/// A grid: all multiples of a power of two, determined by a noise scale and a number of bits.
///
/// # Examples
/// ```
/// use dp_mechanisms::grid::Grid;
/// let grid = Grid::new(3.0, 30)?; // floor(log2 3) = 1
/// assert_eq!(grid.step(), 2f64.powi(-29));
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    step: f64,
    bits: u32,
}

impl Grid {
    /// Creates the grid with step `2^(floor(log2 scale) - bits)`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `bits` is in `20..=40`; [`Error::ScaleOverflow`] unless the scale and the step are
    /// positive normal doubles and the step is at most `2^970`.
    pub fn new(scale: f64, bits: u32) -> Result<Self, Error> {
        if !(MIN_BITS..=MAX_BITS).contains(&bits) {
            return Err(Error::OutOfRange { name: "grid bits", value: f64::from(bits), range: "20..=40" });
        }
        if !(scale > 0.0 && scale.is_normal()) {
            return Err(Error::ScaleOverflow { scale });
        }
        let step = exponent(scale) - bits as i32;
        if !(-1022..=LARGEST_STEP_EXPONENT).contains(&step) {
            return Err(Error::ScaleOverflow { scale });
        }
        Ok(Self { step: power_of_two(step), bits })
    }

    /// Returns the grid step, a power of two.
    pub const fn step(self) -> f64 {
        self.step
    }

    /// Returns the number of bits by which the step lies below the noise scale.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// Converts a length to units of the step, exactly (the caller's lengths are of the order of the noise scale).
    pub(crate) fn in_steps(self, length: f64) -> f64 {
        length / self.step
    }

    /// Returns a length in steps, rounded up, for a length of the order of the noise scale: below 2^42.
    pub(crate) fn steps_up(self, length: f64) -> u64 {
        self.in_steps(length).ceil() as u64
    }

    /// Splits a value into the nearest point of the grid and a remainder.
    #[inline]
    pub(crate) fn place(self, value: f64) -> Place {
        let position = value * (1.0 / self.step); // exact, as the step and its inverse are normal powers of two
        // From 2^52 steps on, a double is a multiple of the step already (and the product may overflow).
        if position.abs() < TWO_TO_52 {
            let whole = nearest_integer(position);
            Place { on_grid: whole * self.step, fraction: position - whole }
        } else {
            Place { on_grid: value, fraction: 0.0 }
        }
    }

    /// Returns the fraction of [`place`](Self::place) with all its digits, even if it is below the least double.
    pub(crate) fn exact_fraction(self, value: f64, place: &Place) -> Binary {
        if place.on_grid == 0.0 { Binary::of(value).shifted(-exponent(self.step)) } else { Binary::of(place.fraction) }
    }

    /// Returns the point at this many steps from the place; finite.
    #[inline]
    pub(crate) fn join(self, place: &Place, steps: f64) -> f64 {
        (place.on_grid + steps * self.step).clamp(-f64::MAX, f64::MAX)
    }

    /// Returns the double nearest to the point at this many steps from the place, rounded once; finite.
    #[inline]
    pub(crate) fn join_exactly(self, place: &Place, steps: i64) -> f64 {
        if steps.unsigned_abs() <= 1 << 53 {
            return self.join(place, steps as f64);
        }
        // As a double the number of steps would be rounded before the place is added, and the sum would reveal the parity of the
        // place.
        let index = self.index(place);
        if index.unsigned_abs() < END {
            self.point(index + i128::from(steps))
        } else {
            place.on_grid // a double whose neighbours are 2^73 steps away
        }
    }

    /// Returns the distance of a place from 0 in steps, at most `2^126`: places further out have the numbers of the ends.
    pub(crate) fn index(self, place: &Place) -> i128 {
        (place.on_grid * (1.0 / self.step)).clamp(-(END as f64), END as f64) as i128
    }

    /// Returns the double nearest to the point at this many steps from 0; finite.
    pub(crate) fn point(self, index: i128) -> f64 {
        (index as f64 * self.step).clamp(-f64::MAX, f64::MAX)
    }

    /// Returns `value + noise` rounded to the grid, with the noise in units of the step; finite for a finite value.
    #[inline]
    pub(crate) fn round_sum(self, value: f64, noise_in_steps: f64) -> f64 {
        let place = self.place(value);
        self.join(&place, nearest_integer(place.fraction + noise_in_steps))
    }
}

/// Returns the integer part, towards zero, for `|x| <= 2^52`; never `-0.0`.
#[inline(always)]
pub(crate) fn truncated(x: f64) -> f64 {
    // As `nearest_integer`, minus one if that rounded up.
    let magnitude = x.abs();
    let nearest = (magnitude + TWO_TO_52) - TWO_TO_52;
    let above = if nearest > magnitude { 1.0 } else { 0.0 };
    (nearest - above).copysign(x) + 0.0
}

/// The position of a value: `on_grid + fraction · step`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    on_grid: f64,
    /// In `[-1/2, 1/2]`, exact unless it is below the least normal double.
    pub(crate) fraction: f64,
}

/// Returns the nearest integer, ties to even, never `-0.0`.
#[inline]
fn nearest_integer(x: f64) -> f64 {
    // Adding 2^52 leaves no bits below the unit. Without a call or a branch, a loop over it is vectorised even if the target has
    // no rounding instruction; adding 0 maps -0.0 to 0.0, so that the sign of a zero reveals nothing.
    let magnitude = x.abs();
    let rounded = ((magnitude + TWO_TO_52) - TWO_TO_52).copysign(x) + 0.0;
    if magnitude < TWO_TO_52 { rounded } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn limits() {
        assert_eq!(Grid::new(1.0, 19), Err(Error::OutOfRange { name: "grid bits", value: 19.0, range: "20..=40" }));
        assert_eq!(Grid::new(1.0, 41), Err(Error::OutOfRange { name: "grid bits", value: 41.0, range: "20..=40" }));
        for scale in [0.0, -0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324, 1e-300] {
            assert_eq!(Grid::new(scale, 30), Err(Error::ScaleOverflow { scale }));
        }
        assert!(matches!(Grid::new(f64::NAN, 30), Err(Error::ScaleOverflow { .. })));
        assert!(Grid::new(power_of_two(-992), 30).is_ok());
        assert!(Grid::new(power_of_two(-993), 30).is_err());
        assert!(Grid::new(power_of_two(1000), 30).is_ok());
        assert!(Grid::new(power_of_two(1001), 30).is_err());
    }

    #[test]
    fn nearest_integers() {
        for (x, expected) in [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-1.5, -2.0), (1e300, 1e300), (-0.4999, 0.0)] {
            assert_eq!(nearest_integer(x).to_bits(), f64::to_bits(expected), "{x}");
        }
        for x in [TWO_TO_52 - 0.5, TWO_TO_52 - 1.0, TWO_TO_52, TWO_TO_52 + 1.0, 0.5 * TWO_TO_52 + 0.5] {
            assert_eq!(nearest_integer(x), x.round_ties_even());
            assert_eq!(nearest_integer(-x), -x.round_ties_even());
        }
    }

    #[test]
    fn integer_parts() {
        for (x, expected) in
            [(0.5, 0.0), (1.0, 1.0), (-1.5, -1.0), (0.0, 0.0), (-0.0, 0.0), (-0.99, 0.0), (5e-324, 0.0)]
        {
            assert_eq!(truncated(x).to_bits(), f64::to_bits(expected), "{x}");
        }
        for x in [TWO_TO_52, TWO_TO_52 - 0.5, 0.5 * TWO_TO_52 - 0.25, 1e15 + 0.875, 2.5, 3.5] {
            assert_eq!((truncated(x), truncated(-x)), (x.trunc(), -x.trunc()));
        }
    }

    #[test]
    fn values_off_the_grid_are_rounded_with_their_fraction() {
        let grid = Grid::new(1.0, 20).unwrap();
        let step = grid.step();
        assert_eq!(grid.round_sum(0.4 * step, 0.2), step);
        assert_eq!(grid.round_sum(0.4 * step, 0.0), 0.0);
        assert_eq!(grid.round_sum(7.0 * step, -3.0), 4.0 * step);
        assert!(grid.round_sum(-0.0, -0.2).is_sign_positive());
        assert!(grid.round_sum(-3.0 * step, 3.0).is_sign_positive());
        assert_eq!(grid.round_sum(f64::MAX, 1e300), f64::MAX);
        assert_eq!(grid.round_sum(-f64::MAX, f64::NEG_INFINITY), -f64::MAX);
    }

    /// The noise of a ball of many dimensions may have more steps than a double has digits.
    #[test]
    fn many_steps_are_added_before_rounding() {
        let grid = Grid::new(1.0, 40).unwrap();
        let join = |index: i128, steps| grid.join_exactly(&grid.place(grid.point(index)), steps);
        let big = 1i64 << 53;
        for (index, steps) in [
            (-(1i128 << 52) - 1, big + 1),
            (-(1i128 << 52) - 1, big + 2),
            ((1i128 << 52) + 1, -big - 1),
            ((1i128 << 52) - 1, big - 1),
            (0, big + 1),
            (1, big + 2),
            (1, big + 4),
            (-5, i64::MAX),
            (1 << 100, i64::MIN),
        ] {
            assert_eq!(join(index, steps), grid.point(index + i128::from(steps)), "{index} {steps}");
        }
        assert_eq!(join(-(1 << 52), big + 1), ((1i64 << 52) + 1) as f64 * grid.step());
        let far = f64::MAX;
        assert_eq!(grid.join_exactly(&grid.place(far), i64::MAX), far);
        assert_eq!(grid.join_exactly(&grid.place(-far), i64::MAX), -far);
    }

    #[test]
    fn indices_and_points() {
        let grid = Grid::new(1.0, 20).unwrap();
        let index = |value| grid.index(&grid.place(value));
        for (value, expected) in
            [(0.0, 0), (-0.0, 0), (1.0, 1 << 20), (-2.6 * grid.step(), -3), (1e30, 1e30 as i128 * (1 << 20))]
        {
            assert_eq!(index(value), expected, "{value}");
        }
        assert_eq!((index(f64::MAX), index(-f64::MAX)), (1 << 126, -(1 << 126)));
        assert_eq!(grid.point(-3), -3.0 * grid.step());
        assert_eq!(grid.point((1 << 60) + 1), 2f64.powi(40));
        let coarse = Grid::new(power_of_two(1000), 30).unwrap();
        assert_eq!((coarse.point(i128::MAX), coarse.point(i128::MIN)), (f64::MAX, -f64::MAX));
    }

    fn is_multiple(x: f64, step: f64) -> bool {
        x == 0.0 || x.abs() >= TWO_TO_52 * step || (x / step).fract() == 0.0
    }

    proptest! {
        #[test]
        fn every_sum_is_a_finite_multiple_of_the_step(
            value in any::<f64>().prop_filter("finite", |x| x.is_finite()),
            exponent in -900i32..970, bits in MIN_BITS..=MAX_BITS, noise in -1e12f64..1e12,
        ) {
            let grid = Grid::new(power_of_two(exponent) * 1.3, bits).unwrap();
            let sum = grid.round_sum(value, noise);
            prop_assert!(sum.is_finite() && is_multiple(sum, grid.step()), "{sum} {}", grid.step());
        }

        #[test]
        fn shifting_the_value_by_steps_shifts_the_output_by_the_same(
            steps in -(1i64 << 40)..(1i64 << 40), fraction in -0.5f64..0.5, noise in -1e9f64..1e9,
        ) {
            let grid = Grid::new(1.0, 30).unwrap();
            // The fraction is a multiple of 2^-10, so that the shifted value is a double.
            let fraction = (fraction * 1024.0).round() / 1024.0;
            let origin = grid.round_sum(fraction * grid.step(), noise) / grid.step();
            let shifted = grid.round_sum((steps as f64 + fraction) * grid.step(), noise) / grid.step();
            if fraction.abs() < 0.5 {
                prop_assert_eq!(shifted - origin, steps as f64);
            }
        }
    }
}
