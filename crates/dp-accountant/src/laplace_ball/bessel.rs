//! Modified Bessel functions of order `d/2 - 1` for the ball: ratios and relative growth.

use crate::logspace::CompensatedSum;

/// Number of recurrence steps after which the initial error is negligible, unless the argument is far larger.
const STEPS: u64 = 300;

/// Returns bounds on `K_(v+1)(z)/K_v(z)`, `v = dim/2 - 1 >= 0`, `z > 0`.
///
/// The ratio satisfies `k_v = 2v/z + 1/k_(v-1)`, in which an error shrinks by `k_v k_(v-1) > 1` at each step. It starts from the
/// exact `k_(-1/2) = 1`, from a quadrature of `k_0`, or, a number of steps below a large order, from
/// `max(1, 2v/z) <= k_v <= 2v/z + 1`, since `K` grows with its order.
pub(super) fn k_ratio(dim: u64, z: f64) -> (f64, f64) {
    let power = dim - 2;
    let (mut twice_order, (mut low, mut high)) = if power > 2 * STEPS {
        let twice_order = power - 2 * STEPS;
        let lead = twice_order as f64 / z;
        (twice_order, (lead.max(1.0), lead + 1.0))
    } else if power.is_multiple_of(2) {
        let ratio = zero_order_k_ratio(z);
        (0, (ratio * (1.0 - 1e-14), ratio * (1.0 + 1e-14)))
    } else {
        // k_(1/2) = 1/z + 1.
        (1, (z.recip() + 1.0, z.recip() + 1.0))
    };
    while twice_order < power {
        twice_order += 2;
        let lead = twice_order as f64 / z;
        (low, high) = (lead + high.recip(), lead + low.recip());
    }
    // Each step rounds twice, and earlier roundings shrink.
    (low * (1.0 - 16.0 * f64::EPSILON), high * (1.0 + 16.0 * f64::EPSILON))
}

/// Returns `K_1(z)/K_0(z)` by the trapezoid rule for `K_v(z) = int_0^inf e^(-z cosh t) cosh(v t) dt`, whose error is about
/// `e^(-pi²/step)` for a small argument and `e^(-2 pi²/(z step²))` for a large one: below 1e-17.
fn zero_order_k_ratio(z: f64) -> f64 {
    let step = 0.23f64.min(0.65 / z.sqrt());
    let (mut of_zero, mut of_one) = (CompensatedSum::default(), CompensatedSum::default());
    of_zero.add(0.5);
    of_one.add(0.5);
    for i in 1..4000 {
        let t = step * f64::from(i);
        let half = (0.5 * t).sinh();
        let excess = 2.0 * half * half;
        // e^(-z (cosh t - 1)); the common factor e^-z cancels.
        let exponent = -z * excess;
        if exponent < -60.0 {
            break;
        }
        let weight = exponent.exp();
        of_zero.add(weight);
        of_one.add(weight * (1.0 + excess));
    }
    of_one.value() / of_zero.value()
}

/// `ln( p(z)/p(0) )` and `I_(v+1)(z)/(z I_v(z))`, for `p(z) = z^-v I_v(z)`, `v = power/2`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    pub(super) log: f64,
    pub(super) ratio: f64,
}

/// Logarithm up to which the power series is summed; beyond, Debye's expansion has five terms and an error below `1/mu^6`, `mu² =
/// v² + z² >= 1e4`.
const LARGEST_SERIES: f64 = 100.0;

pub(super) fn growth(power: f64, z: f64) -> Growth {
    let order = 0.5 * power;
    let quarter_square = 0.25 * z * z;
    if z.min(quarter_square / (order + 1.0)) <= LARGEST_SERIES {
        series(order, quarter_square)
    } else {
        debye(order, z)
    }
}

/// Returns `p(z)/p(0) = sum_k (z²/4)^k/(k! (v+1)...(v+k))`, all terms positive; the ratio is half the logarithmic derivative in
/// `z²/2`.
fn series(order: f64, quarter_square: f64) -> Growth {
    let (mut term, mut excess, mut derivative) = (1.0, 0.0, 0.0);
    let mut k = 0.0;
    loop {
        k += 1.0;
        let step = 1.0 / (k + order);
        derivative += term * step;
        term *= quarter_square * step / k;
        excess += term;
        // From here on the terms decrease faster than a geometric series of ratio 1/2.
        if term <= 1e-17 * excess && quarter_square * 2.0 < k * (k + order) || term == 0.0 {
            break;
        }
    }
    Growth { log: excess.ln_1p(), ratio: 0.5 * derivative / (1.0 + excess) }
}

/// Computes Debye's uniform expansion of `I_v` and its derivative (DLMF 10.41.3, 10.41.5), in powers of `1/mu` so that `v = 0` is
/// not a special case.
fn debye(order: f64, z: f64) -> Growth {
    let mu = order.hypot(z);
    let (t, inverse) = ((order / mu).powi(2), mu.recip());
    let u = [
        (3.0 - 5.0 * t) / 24.0,
        (81.0 + t * (-462.0 + t * 385.0)) / 1152.0,
        (30375.0 + t * (-369_603.0 + t * (765_765.0 - t * 425_425.0))) / 414_720.0,
        (4_465_125.0 + t * (-94_121_676.0 + t * (349_922_430.0 + t * (-446_185_740.0 + t * 185_910_725.0))))
            / 39_813_120.0,
        (1_519_035_525.0
            + t * (-49_286_948_607.0
                + t * (284_499_769_554.0
                    + t * (-614_135_872_350.0 + t * (566_098_157_625.0 - t * 188_699_385_875.0)))))
            / 6_688_604_160.0,
    ];
    let v = [
        (-9.0 + 7.0 * t) / 24.0,
        (-135.0 + t * (594.0 - t * 455.0)) / 1152.0,
        (-42525.0 + t * (451_737.0 + t * (-883_575.0 + t * 475_475.0))) / 414_720.0,
    ];
    // v_k = u_k + t (t² - 1)(u_(k-1)/2 + t u_(k-1)') (DLMF 10.41.11, in these powers).
    let slope = (-369_603.0 + t * (1_531_530.0 - t * 1_276_275.0)) / 414_720.0;
    let v = [v[0], v[1], v[2], u[3] + (t - 1.0) * (3.5 * u[2] + 2.0 * t * slope)];
    let series = |coefficients: &[f64]| coefficients.iter().rev().fold(0.0, |sum, c| (sum + c) * inverse);
    let (of_function, of_derivative) = (series(&u), series(&v));
    // I'/I = (mu/z) V/U, and I_(v+1)/I_v = I'/I - v/z; mu - v without cancellation.
    let relative = (of_derivative - series(&u[..4])) / (1.0 + series(&u[..4]));
    let ratio = (z * z / (mu + order) + mu * relative) / (z * z);
    let rise = z * z / (mu + order);
    let log = if order > 20.0 {
        let half = 0.5 * rise / order;
        let inverse_square = (order * order).recip();
        let stirling = (1.0 / 12.0 - inverse_square * (1.0 / 360.0 - inverse_square / 1260.0)) / order;
        rise - order * half.ln_1p() - 0.25 * (z / order).powi(2).ln_1p() + stirling
    } else {
        mu - order * (0.5 * (order + mu)).ln() - 0.5 * (core::f64::consts::TAU * mu).ln() + libm::lgamma(order + 1.0)
    };
    Growth { log: log + of_function.ln_1p(), ratio }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `K_(v+1)/K_v`, 40-digit evaluation.
    #[test]
    fn ratios_of_k() {
        for (dim, z, expected) in K_RATIOS {
            let (low, high) = k_ratio(dim, z);
            assert!(low <= expected * (1.0 + 1e-15) && high >= expected * (1.0 - 1e-15), "{dim} {z}: {low} {high}");
            assert!(high / low - 1.0 < 1e-13, "{dim} {z}: {low} {high}");
        }
    }

    /// `ln p(z)/p(0)` and the ratio, 40-digit evaluation.
    #[test]
    fn growth_of_i() {
        for (dim, z, log, ratio) in GROWTHS {
            let got = growth((dim - 2) as f64, z);
            assert!((got.log / log - 1.0).abs() < 2e-13, "{dim} {z}: {got:?} {log}");
            let tolerance = if z > LARGEST_SERIES { 1e-10 } else { 1e-13 };
            assert!((got.ratio / ratio - 1.0).abs() < tolerance, "{dim} {z}: {got:?} {ratio}");
        }
    }

    include!("bessel_values.rs");
}
