//! Delta of a composition on a grid, from the Fourier transforms of its parts.
//!
//! **The identity.** Let `K` be the total loss in steps of `h`, `c > 0`, `z = c - i t` and `g(y) = (1 - e^-y)+`. For a
//! transform of length N with frequencies `t_f = 2 pi f/(N h)`,
//!
//! ```text
//! 1/N sum_f E e^(z_f h K) sum_(k >= k0) e^(-z_f h k) g(k h - epsilon) = sum_r e^(c r W) delta(epsilon + r W),    W = N h,
//! ```
//!
//! over all integers r, with `k0` the first point of the grid not below epsilon. The inner sum is a difference of two geometric
//! series. All terms on the right are non-negative, so that the left-hand side is an upper bound on delta. For a lower bound, the
//! terms with `r > 0` are bounded by Chernoff's inequality and those with `r < 0` by `delta <= 1`. Because the transform is that
//! of a law on a grid, nothing is truncated in frequency; frequencies with a negligible power are omitted and charged.
//!
//! **Rounding** is bounded at each step, relative to the tilted laws, whose total is 1 (hence relative to `E e^(cL) e^(-c
//! epsilon)`, which for the right c is about delta and not 1): of the tilted masses, of the transform ([`Fft::transform`]), of
//! the powers (a relative error e of a factor becomes `(1 + e)^n - 1`), and of the sums.

use super::fft::Fft;
use super::lattice::Masses;
use super::tilt::{Cumulants, Tilted};
use crate::exact::complex::Complex;
use crate::logspace::{CompensatedSum, log_add};
use crate::work;

/// Frequencies whose power is below the exponential of this are omitted.
const NEGLIGIBLE: f64 = -60.0;

/// The laws of the composition's parts with their counts, on one side of the true laws.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartSide<'a> {
    pub(super) masses: &'a Masses,
    pub(super) count: u64,
}

/// One frequency's contribution.
#[derive(Debug, Clone, Copy)]
struct Term {
    frequency: usize,
    /// The power times the difference of the two geometric series, for epsilon on the grid.
    curve: Complex,
    /// The power times the second series: the contribution of an epsilon below the grid's point, relative to the distance.
    above: Complex,
}

/// A composition on one side of the true one, prepared for any epsilon near the one for which the tilt was chosen.
#[derive(Debug, Clone)]
pub(super) struct Side {
    tilt: f64,
    step: f64,
    length: usize,
    /// `sum_j n_j reference_j`.
    reference: i128,
    /// `sum_j n_j ln total_j`.
    log_total: f64,
    /// Bound on the relative error of the exponential of `log_total`.
    total_error: f64,
    /// Mass of an infinite total loss.
    infinite: f64,
    terms: Vec<Term>,
    /// Bounds on the errors of the sums of `curve` and of `above`.
    curve_error: f64,
    above_error: f64,
}

/// Powers of the tilted transforms at the frequencies from 0 to half the length, with bounds.
struct Powers {
    values: Vec<Complex>,
    /// Upper bounds on the value's modulus plus its error.
    bounds: Vec<f64>,
}

impl Powers {
    fn new(length: usize) -> Self {
        let count = length / 2 + 1;
        Self { values: vec![Complex::new(1.0, 0.0); count], bounds: vec![1.0; count] }
    }

    /// Multiplies the value at `frequency` by `transform^count`, where the transform is known to within `error`.
    fn multiply(&mut self, frequency: usize, transform: Complex, error: f64, count: u64, small: &Small) {
        let (value, bound) = (&mut self.values[frequency], &mut self.bounds[frequency]);
        if *bound <= 1.0 && small.holds(transform) {
            (*value, *bound) = (Complex::default(), small.bound);
            return;
        }
        let modulus = transform.norm();
        let times = count as f64;
        let log_bound = times * (modulus * (1.0 + 2.0 * f64::EPSILON) + error).ln();
        if log_bound + bound.ln() < NEGLIGIBLE {
            (*value, *bound) = (Complex::default(), small.bound);
            return;
        }
        let (power, rounding) = power(transform, modulus, count);
        *value = *value * power;
        // Twice the power's rounding: once for the value, and once for the bound, whose rounding is no larger.
        *bound *= log_bound.exp() * (1.0 + 2.0 * times * rounding);
    }
}

/// A test for transforms with a negligible power, without roots and logarithms.
struct Small {
    /// Square of the modulus below which the power is negligible.
    square: f64,
    /// Bound on a negligible power.
    bound: f64,
}

impl Small {
    /// Creates the test for transforms known to within `error`, to the power of `count`.
    fn new(error: f64, count: u64) -> Self {
        // Far enough below the limit that no rounding of either comparison matters.
        let modulus = ((NEGLIGIBLE - 1.0) / count as f64).exp() * (1.0 - 1e-9) - error;
        let square = if modulus > 0.0 { modulus * modulus } else { 0.0 };
        Self { square, bound: NEGLIGIBLE.exp() }
    }

    #[inline]
    fn holds(&self, transform: Complex) -> bool {
        transform.re * transform.re + transform.im * transform.im < self.square
    }
}

/// Returns `value^count`, and a bound on its relative rounding error for each factor.
fn power(value: Complex, modulus: f64, count: u64) -> (Complex, f64) {
    if count <= 64 {
        let (mut power, mut square, mut rest) = (Complex::new(1.0, 0.0), value, count);
        while rest > 0 {
            if rest & 1 == 1 {
                power = power * square;
            }
            square = square * square;
            rest >>= 1;
        }
        // A product rounds by sqrt(5) 2^-53, and a power of n is at most 2n of them.
        return (power, 4.0 * f64::EPSILON);
    }
    let times = count as f64;
    let (log_modulus, angle) = (modulus.ln(), value.im.atan2(value.re));
    let scale = (times * log_modulus).exp();
    // Logarithm and angle have errors of a few units, relatively, and the logarithm another one from the modulus.
    let rounding = 2.0 * f64::EPSILON * (1.0 + log_modulus.abs() + angle.abs());
    (Complex::unit(times * angle).scale(scale), rounding + 8.0 * f64::EPSILON / times)
}

/// Composes both sides with one transform for each part; there is no lower side if no part has one.
pub(super) fn compose(
    fft: &Fft,
    step: f64,
    tilt: f64,
    parts: &[(PartSide<'_>, Option<&Masses>)],
) -> Option<(Side, Option<Side>)> {
    let length = fft.length();
    let (mut upper, mut lower) = (Assembly::new(length), Assembly::new(length));
    let mut buffer = vec![Complex::default(); length];
    for (PartSide { masses, count }, lower_masses) in parts {
        let above = Tilted::new(masses, tilt * step)?;
        let below = lower_masses.and_then(|masses| Some((masses, Tilted::new(masses, tilt * step)?)));
        buffer.fill(Complex::default());
        // The length is a power of two.
        let slot = |k: i64| (k & (length as i64 - 1)) as usize;
        for (k, mass) in (masses.first..).zip(&above.masses) {
            buffer[slot(k)].re += mass;
        }
        if let Some((masses, below)) = &below {
            for (k, mass) in (masses.first..).zip(&below.masses) {
                buffer[slot(k)].im += mass;
            }
        }
        work::charge(length as f64 * (100.0 + 3.0 * (length as f64).log2()));
        fft.transform(&mut buffer);
        // Two real sequences in one complex one: their transforms are its even and odd parts, each of which takes half
        // of both outputs' errors.
        let norm = if below.is_some() { 2.0 } else { 1.0 };
        let rounding = norm * fft.error() + 4.0 * f64::EPSILON;
        upper.add_part(masses, &above, *count);
        if let Some((masses, below)) = &below {
            lower.add_part(masses, below, *count);
        }
        let small = Small::new(above.error + rounding, *count);
        let small_below = Small::new(below.as_ref().map_or(0.0, |(_, below)| below.error) + rounding, *count);
        for frequency in 0..=length / 2 {
            let here = buffer[fft.position(frequency)];
            let mirrored = buffer[fft.position((length - frequency) % length)].conjugate();
            let real = (here + mirrored).scale(0.5);
            upper.powers.multiply(frequency, real, above.error + rounding, *count, &small);
            if let Some((_, below)) = &below {
                let difference = (here - mirrored).scale(0.5);
                let imaginary = Complex::new(difference.im, -difference.re);
                lower.powers.multiply(frequency, imaginary, below.error + rounding, *count, &small_below);
            }
        }
    }
    let has_lower = lower.parts > 0;
    let lower = has_lower.then(|| lower.finish(fft, step, tilt, false));
    Some((upper.finish(fft, step, tilt, true), lower))
}

/// A side under construction.
struct Assembly {
    powers: Powers,
    parts: usize,
    reference: i128,
    log_total: f64,
    total_error: f64,
    /// `sum_j n_j ln(finite_j + infinite_j)` and `sum_j n_j ln(finite_j / (finite_j + infinite_j))`.
    log_mass: f64,
    log_finite: f64,
}

impl Assembly {
    fn new(length: usize) -> Self {
        let powers = Powers::new(length);
        Self { powers, parts: 0, reference: 0, log_total: 0.0, total_error: 0.0, log_mass: 0.0, log_finite: 0.0 }
    }

    fn add_part(&mut self, masses: &Masses, tilted: &Tilted, count: u64) {
        let times = count as f64;
        self.parts += 1;
        self.reference += i128::from(count) * i128::from(tilted.reference);
        self.log_total += times * tilted.log_total;
        self.total_error += times * (2.0 * tilted.error + 2.0 * f64::EPSILON * (1.0 + tilted.log_total.abs()));
        if masses.infinite > 0.0 {
            let mut mass = CompensatedSum::default();
            masses.finite.iter().for_each(|finite| mass.add(*finite));
            let total = mass.value() + masses.infinite;
            self.log_mass += times * total.ln();
            self.log_finite += times * (-masses.infinite / total).max(-1.0).ln_1p();
        }
    }

    fn finish(self, fft: &Fft, step: f64, tilt: f64, is_upper: bool) -> Side {
        let Powers { values, bounds } = self.powers;
        let length = fft.length();
        let gamma = tilt * step;
        let (decay, shrink) = (-gamma, -(-step).exp_m1());
        work::charge(60.0 * length as f64);
        let mut terms = Vec::new();
        let (mut curve_error, mut above_error) = (CompensatedSum::default(), CompensatedSum::default());
        // The moduli of both factors are largest at zero frequency.
        let (largest_first, largest_second) = (-(-gamma).exp_m1(), -(-(gamma + step)).exp_m1());
        let largest_above = 1.0 / largest_second;
        let largest_curve = shrink * decay.exp() / (largest_first * largest_second);
        let (scale_first, scale_second) = ((-gamma).exp(), (-(gamma + step)).exp());
        let mut left_out = 0.0;
        for (frequency, (value, bound)) in values.into_iter().zip(bounds).enumerate() {
            // Frequencies other than 0 and half the length also represent their mirror images.
            let weight = if frequency == 0 || 2 * frequency == length { 1.0 } else { 2.0 };
            if value == Complex::default() {
                left_out += weight * bound;
                continue;
            }
            let turn = frequency as f64 / length as f64;
            let half_sine = (core::f64::consts::PI * turn).sin();
            let root = fft.roots().get(frequency).conjugate();
            // 1 - e^-(x - i theta) without cancellation, from 1 - e^-x and e^-x.
            let one_minus = |at_zero: f64, scale: f64| {
                Complex::new(at_zero + 2.0 * scale * half_sine * half_sine, -scale * root.im)
            };
            let (first, second) = (one_minus(largest_first, scale_first), one_minus(largest_second, scale_second));
            let above = second.inverse();
            let curve = (root * above * first.inverse()).scale(shrink * decay.exp());
            let modulus = value.norm();
            let error = weight * ((bound - modulus).max(0.0) + 40.0 * f64::EPSILON * bound);
            curve_error.add(error * curve.norm());
            above_error.add(error * above.norm());
            let value = value.scale(weight);
            terms.push(Term { frequency, curve: value * curve, above: value * above });
        }
        curve_error.add(left_out * largest_curve * (1.0 + 1e-9));
        above_error.add(left_out * largest_above * (1.0 + 1e-9));
        let infinite = if is_upper {
            -self.log_finite.exp_m1() * self.log_mass.max(0.0).exp() * (1.0 + 1e-12)
        } else {
            -self.log_finite.exp_m1() * self.log_mass.min(0.0).exp() * (1.0 - 1e-12)
        };
        Side {
            tilt: gamma,
            step,
            length,
            reference: self.reference,
            log_total: self.log_total,
            total_error: self.total_error,
            infinite,
            terms,
            curve_error: curve_error.value() * (1.0 + 1e-12),
            above_error: above_error.value() * (1.0 + 1e-12),
        }
    }
}

/// A sum with a bound on its error.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Evaluation {
    /// The logarithm of the factor of the sum, excluding its error.
    log_scale: f64,
    scale_error: f64,
    sum: f64,
    error: f64,
}

impl Side {
    /// Returns the approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.terms.len() * size_of::<Term>()
    }

    /// Mass of an infinite total loss.
    pub(super) fn infinite(&self) -> f64 {
        self.infinite
    }

    fn evaluate(&self, fft: &Fft, epsilon: f64) -> Evaluation {
        let mut point = (epsilon / self.step).ceil();
        // The quotient may have been rounded to the other side of an integer.
        let mut below = point.mul_add(self.step, -epsilon);
        if below < 0.0 {
            point += 1.0;
            below = point.mul_add(self.step, -epsilon);
        } else if below >= self.step {
            point -= 1.0;
            below = point.mul_add(self.step, -epsilon).max(0.0);
        }
        work::charge(8.0 * self.terms.len() as f64);
        let distance = -(-below).exp_m1();
        let point = point as i64;
        // The length is a power of two, and products of two numbers below it fit.
        let slot = point.rem_euclid(self.length as i64) as u64;
        let mask = self.length as u64 - 1;
        let (mut curve, mut above) = (CompensatedSum::default(), CompensatedSum::default());
        for term in &self.terms {
            let phase = ((term.frequency as u64 * slot) & mask) as usize;
            let root = fft.roots().get(phase);
            curve.add(term.curve.re * root.re + term.curve.im * root.im);
            above.add(term.above.re * root.re + term.above.im * root.im);
        }
        let shift = self.tilt * (self.reference - i128::from(point)) as f64;
        Evaluation {
            log_scale: self.log_total + shift - (self.length as f64).ln(),
            scale_error: self.total_error + 4.0 * f64::EPSILON * (2.0 + self.log_total.abs() + shift.abs()),
            sum: curve.value() + distance * above.value(),
            error: self.curve_error + distance * self.above_error,
        }
    }

    /// Returns the logarithm of an upper bound on delta.
    pub(super) fn log_upper(&self, fft: &Fft, epsilon: f64) -> f64 {
        let Evaluation { log_scale, scale_error, sum, error } = self.evaluate(fft, epsilon);
        let finite = log_scale + scale_error + (sum.max(0.0) + error).ln();
        // NaN becomes 0: a delta of 1.
        log_add(finite, self.infinite.ln()).min(0.0)
    }

    /// Returns the logarithm of a lower bound on delta; `log_alias` is that of a bound on the terms with `r` other than 0.
    pub(super) fn log_lower(&self, fft: &Fft, epsilon: f64, log_alias: f64) -> f64 {
        let Evaluation { log_scale, scale_error, sum, error } = self.evaluate(fft, epsilon);
        let sum = sum - error - (log_alias + scale_error - log_scale).exp() * (1.0 + 1e-12);
        let finite = if sum > 0.0 { log_scale - scale_error + sum.ln() } else { f64::NEG_INFINITY };
        let finite = if finite.is_nan() { f64::NEG_INFINITY } else { finite };
        log_add(finite, self.infinite.ln()).min(0.0)
    }
}

/// Bounds on the terms with `r` other than 0, for a composition whose moments are known at a few tilts beyond its own.
#[derive(Debug, Clone)]
pub(super) struct Aliases {
    tilt: f64,
    window: f64,
    /// Larger tilts, with the logarithm of the moment.
    moments: Vec<(f64, f64)>,
}

/// Larger tilts at which the Chernoff bound is tried, relative to the tilt.
const LARGER_TILTS: [f64; 8] = [1.02, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0];

impl Aliases {
    /// Prepares the bounds for a window whose length is set later.
    pub(super) fn new(cumulants: impl Fn(f64) -> Option<Cumulants>, step: f64, tilt: f64) -> Self {
        let moments = LARGER_TILTS
            .iter()
            .filter_map(|factor| Some((tilt * factor, cumulants(tilt * factor * step)?.log_moment)))
            .collect();
        Self { tilt, window: f64::INFINITY, moments }
    }

    /// Returns the least window for which the terms are below `e^log_target`, at `epsilon`.
    pub(super) fn least_window(&self, epsilon: f64, log_target: f64) -> f64 {
        let above = self
            .moments
            .iter()
            .map(|(tilt, log_moment)| (log_moment - tilt * epsilon - log_target) / (tilt - self.tilt))
            .fold(f64::INFINITY, f64::min);
        let below = -log_target / self.tilt;
        above.max(below)
    }

    pub(super) fn with_window(self, window: f64) -> Self {
        Self { window, ..self }
    }

    /// Returns the logarithm of the bound.
    pub(super) fn log_bound(&self, epsilon: f64) -> f64 {
        let geometric = |log_ratio: f64| log_ratio - (-log_ratio.min(-1e-300).exp_m1()).ln();
        let above = self
            .moments
            .iter()
            .map(|(tilt, log_moment)| {
                let slack = 1e-12 * (1.0 + log_moment.abs() + tilt * epsilon.abs());
                log_moment - tilt * epsilon + slack + geometric(-(tilt - self.tilt) * self.window)
            })
            .fold(f64::INFINITY, f64::min);
        log_add(above, geometric(-self.tilt * self.window))
    }
}

#[cfg(test)]
mod tests;
