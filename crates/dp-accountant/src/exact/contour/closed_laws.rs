//! Moment functions in closed form: Gaussian, Gaussian with hidden sensitivity, Laplace.

use super::nodes::{LogMoment, log_moment};
use crate::exact::complex::{Complex, excess_bound};

/// Real part of an exponent beyond which it is factored out of the moment.
const LARGE_EXPONENT: f64 = 40.0;

/// Returns `ln M(z) = z (z + 1) mu^2 / 2` for `square = mu^2`.
pub(super) fn gaussian(square: f64, z: Complex) -> LogMoment {
    let log = (z * (z + Complex::new(1.0, 0.0))).scale(0.5 * square);
    let size = square * (z.norm() * (z.norm() + 1.0));
    LogMoment { log, error: 4.0 * f64::EPSILON * size }
}

/// Returns `M(z) = sum_r w_r e^(z (z + 1) v_r / 2)`, weights summing to 1; `components` are pairs `(v, w)`.
pub(super) fn mixture(components: &[(f64, f64)], z: Complex) -> LogMoment {
    let exponent = z * (z + Complex::new(1.0, 0.0));
    let size = z.norm() * (z.norm() + 1.0);
    let largest = components.iter().map(|&(square, _)| 0.5 * square * exponent.re).fold(0.0, f64::max);
    let scale = if largest > LARGE_EXPONENT { largest } else { 0.0 };
    let (mut sum, mut error) = (Complex::new(0.0, 0.0), 0.0);
    for &(square, weight) in components {
        let s = exponent.scale(0.5 * square);
        // e^(s - scale) - e^-scale, without cancellation where s is small.
        let term = if scale == 0.0 { s.exp_excess() + s } else { (s - Complex::new(scale, 0.0)).exp() };
        sum = sum + term.scale(weight);
        let bound = (square * size).min(2.0) * (s.re.max(0.0) - scale).exp();
        error += weight * bound * (1.0 + square * size + scale);
    }
    // After scaling the terms are full exponentials, so the 1 that `log_moment` adds is subtracted.
    if scale != 0.0 {
        sum = sum - Complex::new((-scale).exp(), 0.0);
    }
    let units = 16.0 + components.len() as f64;
    log_moment(sum, scale, f64::EPSILON * units * error)
}

/// Returns the moment of two Laplace releases at a distance of `x` scales:
///
/// ```text
/// M(z) = [(1 + z) e^(z x) + z e^(-(1+z) x)] / (1 + 2z) = 1 + [(1 + z) g(z x) + z g(-(1+z) x)] / (1 + 2z).
/// ```
pub(super) fn laplace(x: f64, z: Complex) -> LogMoment {
    let one = Complex::new(1.0, 0.0);
    let (next, divisor) = (z + one, one + z.scale(2.0));
    let (rise, fall) = (z.scale(x), next.scale(-x));
    if rise.re > LARGE_EXPONENT {
        // z x + ln([(1 + z) + z e^(-(1+2z) x)] / (1 + 2z))
        let ratio = (next + z * divisor.scale(-x).exp()) / divisor;
        let log = rise + Complex::new(ratio.norm().ln(), ratio.im.atan2(ratio.re));
        return LogMoment { log, error: 16.0 * f64::EPSILON * (2.0 + rise.norm()) };
    }
    let excess = (next * rise.exp_excess() + z * fall.exp_excess()) / divisor;
    let error = (next.norm() * excess_bound(rise.re, rise.norm()) * (1.0 + rise.norm())
        + z.norm() * excess_bound(fall.re, fall.norm()) * (1.0 + fall.norm()))
        / divisor.norm();
    log_moment(excess, 0.0, 24.0 * f64::EPSILON * error)
}

/// Returns `ln M` at a real `c` and its first two derivatives, for a search.
pub(super) fn laplace_cumulant(x: f64, c: f64) -> [f64; 3] {
    let log = laplace(x, Complex::new(c, 0.0)).log.re;
    if (1.0 + c) * x < 1e-2 {
        return [log, (c + 0.5) * x * x, x * x];
    }
    // The bracket and its derivatives, divided by e^(c x).
    let fall = (-(1.0 + 2.0 * c) * x).exp();
    let value = 1.0 + c + c * fall;
    let first = 1.0 + (1.0 + c) * x + fall * (1.0 - c * x);
    let second = 2.0 * x + (1.0 + c) * x * x + fall * (c * x * x - 2.0 * x);
    let (slope, odd) = (first / value, 1.0 + 2.0 * c);
    [log, slope - 2.0 / odd, (second / value - slope * slope + 4.0 / (odd * odd)).max(0.0)]
}

/// Returns the corresponding values for a mixture.
pub(super) fn mixture_cumulant(components: &[(f64, f64)], c: f64) -> [f64; 3] {
    let log = mixture(components, Complex::new(c, 0.0)).log.re;
    let (mut mean, mut square_mean) = (0.0, 0.0);
    let mut curvature = 0.0;
    for &(square, weight) in components {
        let tilted = weight * (0.5 * square * c * (c + 1.0) - log).exp();
        let slope = (c + 0.5) * square;
        mean += tilted * slope;
        square_mean += tilted * slope * slope;
        curvature += tilted * square;
    }
    [log, mean, (curvature + square_mean - mean * mean).max(0.0)]
}

/// The Laplace law's bound on `|M(c + it)| / M(c)` for every imaginary part from `t` on, as a logarithm.
///
/// The loss is `x` with mass 1/2, `-x` with mass `e^-x / 2`, and has the density `e^((l - x)/2) / 4` between. Tilted and
/// relative to `e^(c x)`: the atoms weigh `a = 1/2` and `b = e^(-(1+2c) x)/2`; the continuous part transforms into
/// `(1 - e^(-(1 + 2c + 2it) x)) / (4 (c + 1/2 + it))`, of modulus at most `(1 + 2b) / (4 |c + 1/2 + it|)`, and at most
/// its value at `t = 0`. Up to `t x = pi/2` the atoms' modulus, `|a + b e^(-2itx)|`, decreases; beyond, it is at most
/// `a + b`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaplaceDecay {
    x: f64,
    c: f64,
    atoms: (f64, f64),
    /// The continuous part at t = 0.
    continuous: f64,
}

impl LaplaceDecay {
    pub(super) fn new(x: f64, c: f64) -> Self {
        let fall = (-(1.0 + 2.0 * c) * x).exp();
        let continuous = -(-(1.0 + 2.0 * c) * x).exp_m1() / (4.0 * (c + 0.5));
        Self { x, c, atoms: (0.5, 0.5 * fall), continuous }
    }

    pub(super) fn log_decay(&self, t: f64) -> f64 {
        let (a, b) = self.atoms;
        let continuous = |t: f64| self.continuous.min((1.0 + 2.0 * b) / (4.0 * (self.c + 0.5).hypot(t)));
        // Relative to M(c), the decrease consists of that of the atoms, a + b - |a + b e^(-2itx)|, and that of the rest.
        let total = a + b + self.continuous;
        let quarter = core::f64::consts::FRAC_PI_2 / self.x;
        let far = self.continuous - continuous(t.max(quarter));
        let drop = if t < quarter {
            let sine = (t * self.x).sin();
            let lost = 4.0 * a * b * sine * sine;
            let near = lost / (a + b + ((a + b) * (a + b) - lost).max(0.0).sqrt()) + self.continuous - continuous(t);
            near.min(far)
        } else {
            far
        };
        (-drop / total * (1.0 - 1e-9) + 4.0 * f64::EPSILON).min(0.0).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [(f64, f64); 6] = [(0.3, 0.0), (2.0, 0.7), (1e-3, 5.0), (30.0, 2.0), (7.0, 60.0), (300.0, 0.1)];

    fn check(what: &str, got: LogMoment, expected: Complex, scale: f64) {
        // `expected` is the moment divided by e^scale.
        let back = Complex::new(got.log.re - scale, got.log.im).exp();
        let error = (back - expected).norm();
        assert!(error <= expected.norm() * got.error.exp_m1() + 1e-13, "{what}: {got:?} {expected:?} {error}");
        assert!(got.error < 1e-9, "{what}: {}", got.error);
    }

    #[test]
    fn the_laplace_moment_by_its_law() {
        // Atoms, and the density e^((l - x)/2)/4 integrated in closed form.
        for x in [1e-3, 0.4, 3.0] {
            for (c, t) in POINTS {
                let z = Complex::new(c, t);
                let half = z + Complex::new(0.5, 0.0);
                let scale = c * x;
                let atom = Complex::new(0.0, t * x).exp().scale(0.5);
                let other = Complex::new(-(1.0 + 2.0 * c) * x, -t * x).exp().scale(0.5);
                let rise = Complex::new(0.0, t * x).exp();
                let fall = Complex::new(-(1.0 + 2.0 * c) * x, -t * x).exp();
                let continuous = (rise - fall) / half.scale(4.0);
                check("laplace", laplace(x, z), atom + other + continuous, scale);
                let decay = LaplaceDecay::new(x, c).log_decay(t);
                let at_c = laplace(x, Complex::new(c, 0.0)).log.re;
                let ratio = (atom + other + continuous).norm() / (at_c - scale).exp();
                assert!(ratio <= decay.exp() * (1.0 + 1e-12), "{x} {c} {t}: {ratio} {}", decay.exp());
            }
        }
        let small = laplace(1e-8, Complex::new(3.0, 0.0));
        assert!((small.log.re / 6e-16 - 1.0).abs() < 1e-7, "{small:?}");
    }

    #[test]
    fn laplace_decay_never_rises() {
        for (x, c) in [(0.02, 5.0), (1.0, 0.1), (4.0, 3.0)] {
            let decay = LaplaceDecay::new(x, c);
            let mut before = 0.0;
            for i in 0..20_000 {
                let now = decay.log_decay(f64::from(i) * 0.05);
                assert!(now <= before + 1e-12, "{x} {c} {i}");
                before = now;
            }
            assert!(before < 0.0);
        }
    }

    #[test]
    fn mixtures_and_gaussians_agree() {
        for (c, t) in POINTS {
            let z = Complex::new(c, t);
            let (one, two) = (gaussian(0.01, z), mixture(&[(0.01, 1.0)], z));
            let real = one.log.re - two.log.re;
            let turns = (one.log.im - two.log.im) / core::f64::consts::TAU;
            assert!(
                real.abs() <= one.error + two.error && (turns - turns.round()).abs() <= one.error + two.error,
                "{one:?} {two:?}"
            );
            let components = [(0.04, 0.25), (0.01, 0.5), (0.0, 0.25)];
            let s = z * (z + Complex::new(1.0, 0.0));
            let scale = (0.02 * s.re).max(0.0);
            let mut sum = Complex::new(0.0, 0.0);
            for (square, weight) in components {
                sum = sum + (s.scale(0.5 * square) - Complex::new(scale, 0.0)).exp().scale(weight);
            }
            check("mixture", mixture(&components, z), sum, scale);
        }
    }

    #[test]
    fn search_values_are_derivatives() {
        let components = [(0.04, 0.25), (0.01, 0.75)];
        for c in [0.01, 0.7, 5.0, 40.0] {
            for f in [&|c: f64| laplace_cumulant(0.3, c) as [f64; 3], &|c: f64| mixture_cumulant(&components, c)]
                as [&dyn Fn(f64) -> [f64; 3]; 2]
            {
                let step = 1e-4 * (1.0 + c);
                let [below, at, above] = [f(c - step), f(c), f(c + step)];
                let slope = (above[0] - below[0]) / (2.0 * step);
                let curvature = (above[1] - below[1]) / (2.0 * step);
                assert!((slope / at[1] - 1.0).abs() < 1e-5 && (curvature / at[2] - 1.0).abs() < 1e-4, "{c}: {at:?}");
            }
        }
    }
}
