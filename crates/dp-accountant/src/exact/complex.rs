//! Complex arithmetic for the engines.

use core::ops::{Add, Div, Mul, Sub};

/// Modulus below which `e^s - 1 - s` and `ln(1 + e)` are computed without cancellation.
const SERIES_BELOW: f64 = 0.5;

/// Squares of moduli that are accurate.
const SQUARES: core::ops::Range<f64> = 1e-280..1e280;

/// Angles that are reduced here, since the library's reduction of large ones is slow.
const LARGE_ANGLES: core::ops::Range<f64> = 1e5..1e15;

/// A complex number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::exact) struct Complex {
    pub(in crate::exact) re: f64,
    pub(in crate::exact) im: f64,
}

impl Complex {
    pub(in crate::exact) const fn new(re: f64, im: f64) -> Self {
        Self { re, im }
    }

    pub(in crate::exact) fn norm(self) -> f64 {
        let square = self.re * self.re + self.im * self.im;
        // Elsewhere the squares overflow or lose digits.
        if SQUARES.contains(&square) { square.sqrt() } else { self.re.hypot(self.im) }
    }

    pub(in crate::exact) fn scale(self, factor: f64) -> Self {
        Self::new(self.re * factor, self.im * factor)
    }

    pub(in crate::exact) const fn conjugate(self) -> Self {
        Self::new(self.re, -self.im)
    }

    pub(in crate::exact) fn inverse(self) -> Self {
        let square = self.re * self.re + self.im * self.im;
        Self::new(self.re / square, -self.im / square)
    }

    /// Returns `e^(i angle)`.
    pub(in crate::exact) fn unit(angle: f64) -> Self {
        let (sin, cos) = within_a_turn(angle).sin_cos();
        Self::new(cos, sin)
    }

    pub(in crate::exact) fn exp(self) -> Self {
        Self::unit(self.im).scale(self.re.exp())
    }

    /// Returns `e^s - 1 - s`, to a few units in the last place of `min(|s|^2, 4) (1 + |s|) max(1, e^Re s)`.
    ///
    /// The series stops after `s^16 / 16!`: the rest is below 1e-19 of the sum.
    pub(in crate::exact) fn exp_excess(self) -> Self {
        if self.norm() < SERIES_BELOW {
            let mut sum = Self::new(1.0, 0.0);
            for n in (3..=16).rev() {
                sum = Self::new(1.0, 0.0) + (self * sum).scale(f64::from(n).recip());
            }
            (self * self * sum).scale(0.5)
        } else {
            self.exp() - Self::new(1.0, 0.0) - self
        }
    }

    /// Returns the principal `ln(1 + e)`, to a few units in the last place of `min(2|e|, 1 + |ln(1 + e)|)`.
    pub(in crate::exact) fn ln_one_plus(self) -> Self {
        let modulus = if self.norm() < SERIES_BELOW {
            0.5 * (2.0 * self.re + (self.re * self.re + self.im * self.im)).ln_1p()
        } else {
            Self::new(1.0 + self.re, self.im).norm().ln()
        };
        Self::new(modulus, self.im.atan2(1.0 + self.re))
    }
}

/// Returns an angle minus turns, to a unit in the last place of a turn.
fn within_a_turn(angle: f64) -> f64 {
    if !LARGE_ANGLES.contains(&angle.abs()) {
        return angle;
    }
    // 2π in two parts. The fused operation rounds only the difference, which is at most 3.3.
    let turns = (angle / core::f64::consts::TAU).round();
    turns.mul_add(-TAU_REST, turns.mul_add(-core::f64::consts::TAU, angle))
}

/// `2π` minus the double nearest to it.
const TAU_REST: f64 = 2.449_293_598_294_706_4e-16;

impl Add for Complex {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }
}

impl Sub for Complex {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }
}

impl Mul for Complex {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }
}

impl Div for Complex {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let square = other.re * other.re + other.im * other.im;
        Self::new(
            (self.re * other.re + self.im * other.im) / square,
            (self.im * other.re - self.re * other.im) / square,
        )
    }
}

/// Returns `e^s - 1 - s` for a real `s`, to a few units in the last place.
pub(in crate::exact) fn exp_excess(s: f64) -> f64 {
    if s.abs() < SERIES_BELOW {
        let mut sum = 1.0;
        for n in (3..=16).rev() {
            sum = 1.0 + s * sum / f64::from(n);
        }
        0.5 * s * s * sum
    } else {
        s.exp_m1() - s
    }
}

/// Returns `min(|s|^2, 4) max(1, e^Re s)`; times `1 + |s|` it bounds `|e^s - 1 - s|` and `|s (e^s - 1)|`.
pub(in crate::exact) fn excess_bound(real: f64, norm: f64) -> f64 {
    (norm * norm).min(4.0) * real.max(0.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_keep_their_sine_within_a_turn() {
        let mut angle = 0.9e5;
        while angle < 2e15 {
            for angle in [angle, -angle] {
                let reduced = within_a_turn(angle);
                assert!(reduced.abs() < 3.5 || angle.abs() < 1e5 || angle.abs() > 1e15, "{angle}: {reduced}");
                assert!((reduced.sin() - angle.sin()).abs() < 2e-15, "{angle}");
                assert!((reduced.cos() - angle.cos()).abs() < 2e-15, "{angle}");
            }
            angle *= 1.000_917;
        }
    }

    #[test]
    fn moduli_neither_overflow_nor_vanish() {
        for size in [1e-300, 1e-150, 1e-20, 1.0, 1e150, 1e300] {
            let norm = Complex::new(3.0 * size, -4.0 * size).norm();
            assert!((norm / (5.0 * size) - 1.0).abs() < 1e-15, "{size}: {norm}");
        }
        assert_eq!(Complex::default().norm(), 0.0);
    }

    #[test]
    fn the_excess_of_the_exponential_meets_its_series() {
        for (re, im) in [(1e-9, 2e-9), (0.3, -0.3), (0.49, 0.05), (-0.1, 0.6), (2.0, 9.0), (-30.0, 1.0)] {
            let s = Complex::new(re, im);
            let got = s.exp_excess();
            // 60 terms of the series, or the plain formula where it does not cancel.
            let expected = if s.norm() < 3.0 {
                let (mut term, mut sum) = (s, Complex::new(0.0, 0.0));
                for n in 2..60 {
                    term = (term * s).scale(1.0 / f64::from(n));
                    sum = sum + term;
                }
                sum
            } else {
                s.exp() - Complex::new(1.0, 0.0) - s
            };
            assert!((got - expected).norm() <= 4e-15 * expected.norm(), "{s:?}: {got:?} {expected:?}");
            assert!(got.norm() <= excess_bound(re, s.norm()) * (1.0 + s.norm()));
            if im == 0.0 {
                assert!((exp_excess(re) - got.re).abs() <= 4e-15 * got.re.abs());
            }
        }
        assert!(
            (exp_excess(1e-8) / 5e-17 - 1.0).abs() < 1e-7 && (exp_excess(-2.0) - ((-2f64).exp() + 1.0)).abs() < 1e-15
        );
    }

    #[test]
    fn the_logarithm_of_almost_one_keeps_its_digits() {
        let small = Complex::new(3e-20, -4e-20).ln_one_plus();
        assert_eq!((small.re, small.im), (3e-20, -4e-20));
        for (re, im) in [(0.2, 0.4), (-0.3, 0.1), (5.0, -7.0), (-1.5, 0.2)] {
            let back = Complex::new(re, im).ln_one_plus().exp();
            assert!((back.re - 1.0 - re).abs() < 1e-14 && (back.im - im).abs() < 1e-14);
        }
        let quotient = Complex::new(1.0, 2.0) / Complex::new(3.0, -1.0);
        assert!((quotient * Complex::new(3.0, -1.0) - Complex::new(1.0, 2.0)).norm() < 1e-15);
    }
}
