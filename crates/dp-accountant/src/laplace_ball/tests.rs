use super::*;
use crate::loss_law::{LossLaw, Tails};

/// Returns the density over the angle, on a plain grid: its sum is exact to rounding, as the integrand is smooth and periodic.
fn grid(x: f64, dim: u64, points: u32) -> Vec<(f64, f64)> {
    let ball = Ball::new(x, dim);
    let weight = 0.5 * (ball.weight.0 + ball.weight.1);
    let step = core::f64::consts::PI / f64::from(points);
    let raw: Vec<(f64, f64)> = (0..points)
        .map(|i| -core::f64::consts::FRAC_PI_2 + (f64::from(i) + 0.5) * step)
        .map(|h| {
            let cosine = h.cos();
            let power = (dim - 2) as f64;
            (x * h.sin(), (0.5 * x * (h.sin() - 1.0)).exp() * cosine.powf(power) * (1.0 + weight * cosine * cosine))
        })
        .collect();
    let sum: f64 = raw.iter().map(|(_, w)| w).sum();
    raw.into_iter().map(|(loss, w)| (loss, w / sum)).collect()
}

#[test]
fn the_law_is_that_of_noise_on_a_fine_grid_in_the_plane() {
    // Two dimensions, polar coordinates around the first centre; no elliptic coordinates, no Bessel functions.
    let (x, epsilon) = (1.3f64, 0.2f64);
    let (radii, angles) = (4000, 800);
    let (mut delta, mut moment, mut total) = (0.0, 0.0, 0.0);
    for i in 0..radii {
        let r = (f64::from(i) + 0.5) * 40.0 / f64::from(radii);
        let weight = r * (-r).exp();
        for j in 0..angles {
            let angle = (f64::from(j) + 0.5) * core::f64::consts::PI / f64::from(angles);
            let loss = (r * r - 2.0 * r * x * angle.cos() + x * x).sqrt() - r;
            total += weight;
            delta += weight * (1.0 - (epsilon - loss).exp()).max(0.0);
            moment += weight * (1.5 * loss).exp();
        }
    }
    let bracket = Ball::new(x, 2).delta(epsilon);
    assert!((bracket.upper / (delta / total) - 1.0).abs() < 1e-4, "{bracket:?} {}", delta / total);
    let divergence = Ball::new(x, 2).rdp(2.5);
    assert!((divergence / ((moment / total).ln() / 1.5) - 1.0).abs() < 1e-4, "{divergence}");
}

#[test]
fn delta_and_moments_agree_with_a_plain_sum() {
    for (x, dim) in [(0.3, 2), (5.0, 2), (1.0, 3), (20.0, 3), (2.0, 7), (0.01, 50), (40.0, 50), (3.0, 1000)] {
        let law = grid(x, dim, 20_000);
        let ball = Ball::new(x, dim);
        assert!((law.iter().map(|(loss, w)| w * (-loss).exp()).sum::<f64>() - 1.0).abs() < 1e-9, "{x} {dim}");
        for order in [1.001f64, 1.04, 1.06, 2.0, 9.0] {
            let moment: f64 = law.iter().map(|(loss, w)| w * ((order - 1.0) * loss).exp_m1()).sum();
            let expected = moment.ln_1p() / (order - 1.0);
            let got = ball.rdp(order);
            assert!((got / expected - 1.0).abs() < 1e-7, "{x} {dim} {order}: {got} {expected}");
        }
        let mean: f64 = law.iter().map(|(loss, w)| w * loss).sum();
        assert!((ball.rdp(1.0) / mean - 1.0).abs() < 1e-7, "{x} {dim}: {} {mean}", ball.rdp(1.0));
        for fraction in [0.0, 0.05, 0.4, 0.9] {
            let epsilon = fraction * x;
            let expected: f64 = law.iter().map(|(loss, w)| w * -(epsilon - loss).min(0.0).exp_m1()).sum();
            let got = ball.delta(epsilon);
            assert!((got.upper - expected).abs() < 2e-5 * expected + 1e-9, "{x} {dim} {epsilon}: {got:?} {expected}");
        }
    }
}

#[test]
fn brackets_are_tight_and_orders_meet() {
    for (x, dim) in [(1e-9, 2), (1e-3, 5), (1.0, 100), (30.0, 10), (1.0, 1 << 32), (100.0, 100_000), (900.0, 4)] {
        let ball = Ball::new(x, dim);
        for fraction in [0.0, 1e-3 * x.min(1.0), 0.3] {
            let bracket = ball.delta(fraction * x);
            let gap = bracket.upper - bracket.lower;
            assert!(bracket.lower <= bracket.upper && gap <= 1e-10 * bracket.upper + 1e-300, "{x} {dim}: {bracket:?}");
        }
        let mut before = 0.0;
        for step in 0..120 {
            let order = 1.0 + (-12.0 + 0.25 * f64::from(step)).exp();
            let value = ball.rdp(order);
            assert!(value >= before * (1.0 - 1e-11), "{x} {dim} {order}: {value} {before}");
            before = value;
        }
        assert!(ball.rdp(1e12) <= x && ball.rdp(1e12) > 0.99 * x.min(1e12 * x * x / (3.0 * dim as f64)) * 0.1);
        for order in [1.05, 1.5, 30.0, 1e5] {
            assert!(ball.rdp(order) / order <= ball.rdp(1.0) * (1.0 + 1e-9), "{x} {dim} {order}");
        }
    }
}

#[test]
fn epsilon_inverts_delta() {
    for (x, dim) in [(1.0, 1), (1.0, 2), (0.5, 40), (8.0, 300), (0.1, 1_000_000)] {
        let ball = Ball::new(x, dim);
        for delta in [1e-3, 1e-6, 1e-12, 1e-40] {
            let epsilon = ball.epsilon(delta);
            assert!(ball.delta(epsilon.upper).upper <= delta, "{x} {dim} {delta}: {epsilon:?}");
            assert!(epsilon.lower <= epsilon.upper && epsilon.upper - epsilon.lower <= 1e-9 * x, "{epsilon:?}");
        }
    }
}

#[test]
fn costs_less_in_more_dimensions_and_never_more_than_on_a_line() {
    for x in [0.2, 1.0, 6.0] {
        let mut before = Ball::new(x, 1);
        for dim in [2, 3, 4, 10, 11, 600, 601, 602, 603, 5000] {
            let ball = Ball::new(x, dim);
            assert!(ball.delta(0.1 * x).upper <= before.delta(0.1 * x).upper, "{x} {dim}");
            for order in [1.0, 1.02, 3.0, 100.0] {
                assert!(ball.rdp(order) <= before.rdp(order) * (1.0 + 1e-12), "{x} {dim} {order}");
            }
            before = ball;
        }
    }
}

#[test]
fn absurd_arguments_have_the_bound_of_the_line() {
    for (x, dim) in [(1e7, 3), (1e100, 5), (1e-150, 2), (1e-150, u64::MAX), (1.0, u64::MAX)] {
        let ball = Ball::new(x, dim);
        let bracket = ball.delta(0.0);
        assert!(bracket.upper <= laplace::delta(x, 0.0) && bracket.upper > 0.0, "{x} {dim}: {bracket:?}");
        for order in [1.0, 1.5, 1e9] {
            let value = ball.rdp(order);
            assert!(value > 0.0 && value <= crate::rdp::laplace::rdp(order, x), "{x} {dim} {order}: {value}");
        }
    }
}

#[test]
fn tails_agree_with_a_plain_sum_and_with_delta() {
    for (x, dim) in [(0.3, 2), (5.0, 2), (1.0, 3), (60.0, 3), (2.0, 40), (40.0, 50)] {
        let law = BallLaw::new(x, dim).unwrap();
        assert!(law.relative_error() < 1e-11, "{x} {dim} {}", law.relative_error());
        let grid = grid(x, dim, 40_000);
        let ball = Ball::new(x, dim);
        for fraction in [-0.99, -0.5, -0.01, 0.0, 0.2, 0.8] {
            let loss = fraction * x;
            let Tails { p_above, p_below, q_above, q_below } = law.tails(loss);
            let expected: f64 = grid.iter().filter(|(l, _)| *l > loss).map(|(_, w)| w).sum();
            assert!((p_above - expected).abs() < 2e-4 && (q_below + q_above - 1.0).abs() < 1e-12, "{x} {dim} {loss}");
            assert!((p_above + p_below - 1.0).abs() < 1e-12);
            if loss >= 0.0 {
                let delta = p_above - loss.exp() * q_above;
                let bracket = ball.delta(loss);
                assert!((delta - bracket.upper).abs() < 1e-11 * p_above, "{x} {dim} {loss}: {delta} {bracket:?}");
            }
        }
    }
}

#[test]
fn composed_it_costs_less_in_more_dimensions_and_no_more_than_by_its_renyi_curve() {
    use crate::{DpEvent, bound};
    for (dim, expected) in [(10, 8.3), (100, 2.3), (1000, 0.65)] {
        let release = DpEvent::LaplaceBall { scale: 2.0, sensitivity: 1.0, dim };
        let event = DpEvent::SelfComposed { event: Box::new(release), count: 100 };
        let delta = Delta::new(1e-6).unwrap();
        let got = bound::epsilon(&event, delta).unwrap().value;
        assert!((got / expected - 1.0).abs() < 0.03, "{dim}: {got}");
        assert!(got <= crate::rdp::RdpCurve::new(&event).unwrap().epsilon(delta), "{dim}: {got}");
    }
}

/// Expected values from 50-digit evaluation of the integrals over the loss; near the largest loss all but a thousandth of the cosine cancels.
#[test]
fn the_truth_lies_in_the_bracket_next_to_the_largest_loss() {
    for (x, dim, epsilon, truth) in [
        (0.135826, 3, 0.13569, 3.635_313_603_462_993_7e-8),
        (1.25939e-6, 3, 1.25813e-6, 3.151_527_721_164_992_4e-13),
        (17.7434, 8, 17.7257, 2.511_840_555_813_575_7e-11),
    ] {
        let bracket = Ball::new(x, dim).delta(epsilon);
        assert!(bracket.lower <= truth && truth <= bracket.upper, "{x} {dim}: {bracket:?} {truth}");
        assert!(bracket.upper - bracket.lower < 2e-10 * truth, "{x} {dim}: {bracket:?}");
    }
}
