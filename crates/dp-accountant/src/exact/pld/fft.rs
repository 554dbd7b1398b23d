//! The discrete Fourier transform, with a proved bound on its rounding.

use core::f64::consts::PI;

use crate::exact::complex::Complex;

/// Bound on the rounding of one level of the transform, relative to each of the products that it sums.
///
/// One rounding for the addition, `sqrt(5)` for the complex product (Brent, Percival and Zimmermann 2007), 7 for the
/// twiddle factor ([`Roots::get`]), in units of `2^-53`; together 10.3.
const LEVEL_ERROR: f64 = 10.5 * 0.5 * f64::EPSILON;

/// The roots of unity `e^(-2 pi i j / n)` for one power of two `n`.
#[derive(Debug, Clone)]
pub(super) struct Roots {
    log_length: u32,
    low_bits: u32,
    coarse: Vec<Complex>,
    fine: Vec<Complex>,
}

impl Roots {
    /// Returns the roots for a length of `2^log_length`.
    pub(super) fn new(log_length: u32) -> Self {
        let low_bits = log_length / 2;
        let length = (1u64 << log_length) as f64;
        let root = |j: u64| {
            let (sin, cos) = unit(j as f64 / length);
            Complex::new(cos, -sin)
        };
        let fine = (0..1u64 << low_bits).map(root).collect();
        let coarse = (0..1u64 << (log_length - low_bits)).map(|j| root(j << low_bits)).collect();
        Self { log_length, low_bits, coarse, fine }
    }

    pub(super) fn length(&self) -> usize {
        1 << self.log_length
    }

    /// Returns `e^(-2 pi i j / n)`, to within `7 * 2^-53`: a product of two entries, each within `2 * 2^-53`.
    #[inline]
    pub(super) fn get(&self, j: usize) -> Complex {
        let j = j & (self.length() - 1);
        self.coarse[j >> self.low_bits] * self.fine[j & ((1 << self.low_bits) - 1)]
    }
}

/// Sine and cosine of a `turn` in [0, 1), to within `2 * 2^-53` each: reduced exactly to an eighth of a turn.
fn unit(turn: f64) -> (f64, f64) {
    let eighth = (turn * 8.0).floor();
    let rest = turn - eighth / 8.0;
    let (sin, cos) = (2.0 * PI * rest).sin_cos();
    let (sin_back, cos_back) = (2.0 * PI * (0.125 - rest)).sin_cos();
    match eighth as u32 {
        0 => (sin, cos),
        1 => (cos_back, sin_back),
        2 => (cos, -sin),
        3 => (sin_back, -cos_back),
        4 => (-sin, -cos),
        5 => (-cos_back, -sin_back),
        6 => (-cos, sin),
        _ => (-sin_back, cos_back),
    }
}

/// A transform of one length.
#[derive(Debug, Clone)]
pub(super) struct Fft {
    roots: Roots,
    /// For each level, the twiddle factors in the order of use, longest level first.
    twiddles: Vec<Vec<Complex>>,
}

impl Fft {
    /// Prepares transforms of length `2^log_length`.
    pub(super) fn new(log_length: u32) -> Self {
        let roots = Roots::new(log_length);
        let longest: Vec<Complex> = (0..roots.length() / 2).map(|j| roots.get(j)).collect();
        let mut twiddles = vec![longest];
        for level in 1..log_length as usize {
            let shorter = twiddles[level - 1].iter().step_by(2).copied().collect();
            twiddles.push(shorter);
        }
        Self { roots, twiddles }
    }

    pub(super) fn roots(&self) -> &Roots {
        &self.roots
    }

    pub(super) fn length(&self) -> usize {
        self.roots.length()
    }

    /// Replaces `values` by its transform `sum_k values[k] e^(-2 pi i f k / n)`, with the value for frequency `f` at
    /// [`position`](Self::position)`(f)`.
    ///
    /// **Rounding.** Each level replaces pairs by sums and by differences times a twiddle factor, so that a computed
    /// output is `sum_k values[k] e^(-2 pi i f k / n) (1 + r_k)`, where `r_k` collects one relative error of at most
    /// [`LEVEL_ERROR`] for each of the `log2 n` levels (a complex sum is rounded in both parts, hence to `2^-53` of its
    /// modulus). The error of *every* output is thus at most [`error`](Self::error) times `sum_k |values[k]|`: no
    /// factor of the length is lost, which general bounds in the Euclidean norm (Higham 2002, Theorem 24.2) would cost.
    pub(super) fn transform(&self, values: &mut [Complex]) {
        self.level(values, 0);
    }

    /// Recurses depth first, so that a part that fits into a cache is finished there.
    fn level(&self, values: &mut [Complex], level: usize) {
        let Some(twiddles) = self.twiddles.get(level) else { return };
        let half = values.len() / 2;
        if half == 0 {
            return;
        }
        let (left, right) = values.split_at_mut(half);
        for ((a, b), twiddle) in left.iter_mut().zip(right.iter_mut()).zip(twiddles) {
            let difference = *a - *b;
            *a = *a + *b;
            *b = difference * *twiddle;
        }
        self.level(left, level + 1);
        self.level(right, level + 1);
    }

    /// Returns the position of the value for a frequency.
    pub(super) fn position(&self, frequency: usize) -> usize {
        let log_length = self.roots.log_length;
        if log_length == 0 { 0 } else { frequency.reverse_bits() >> (usize::BITS - log_length) }
    }

    /// Returns the bound on an output's rounding error, relative to the sum of the inputs' moduli.
    pub(super) fn error(&self) -> f64 {
        1.01 * LEVEL_ERROR * f64::from(self.roots.log_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logspace::CompensatedSum;

    /// Computes a product of doubles with its error (two-product), and compensated sums of both: about 100 bits.
    fn exact_transform(values: &[Complex], frequency: usize) -> Complex {
        let n = values.len();
        let mut re = CompensatedSum::default();
        let mut im = CompensatedSum::default();
        for (k, value) in values.iter().enumerate() {
            let (sin, cos) = unit(((frequency * k) % n) as f64 / n as f64);
            let add = |sum: &mut CompensatedSum, a: f64, b: f64| {
                let product = a * b;
                sum.add(product);
                sum.add(a.mul_add(b, -product));
            };
            add(&mut re, value.re, cos);
            add(&mut re, value.im, sin);
            add(&mut im, value.im, cos);
            add(&mut im, value.re, -sin);
        }
        Complex::new(re.value(), im.value())
    }

    #[test]
    fn rounding_stays_below_its_bound() {
        for log_length in [0, 1, 2, 5, 10] {
            let fft = Fft::new(log_length);
            let mut state = 17u64;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Magnitudes from 1e-8 to 1, like the masses of a law.
                (-(18.0 * (state >> 11) as f64 / (1u64 << 53) as f64)).exp()
            };
            let values: Vec<Complex> = (0..fft.length()).map(|_| Complex::new(next(), next())).collect();
            let mut transformed = values.clone();
            fft.transform(&mut transformed);
            let norm: f64 = values.iter().map(|value| value.norm()).sum();
            for frequency in 0..fft.length() {
                let expected = exact_transform(&values, frequency);
                let error = (transformed[fft.position(frequency)] - expected).norm();
                // The reference's own roots are within 2 * 2^-53.
                let bound = (fft.error() + 3.0 * f64::EPSILON) * norm;
                assert!(error <= bound, "2^{log_length}, {frequency}: {error} > {bound}");
            }
        }
    }

    #[test]
    fn roots_are_where_they_should_be() {
        let roots = Roots::new(6);
        for j in 0..64 {
            let angle = 2.0 * PI * j as f64 / 64.0;
            let root = roots.get(j);
            assert!((root.re - angle.cos()).abs() < 1e-15 && (root.im + angle.sin()).abs() < 1e-15);
        }
        assert_eq!(roots.get(16), Complex::new(0.0, -1.0));
    }
}
