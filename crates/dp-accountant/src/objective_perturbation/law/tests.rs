use super::*;
use crate::exact::PrivacyCurve;
use crate::rdp::RdpCurve;
use crate::{Delta, DpEvent, gaussian};

const LOSSES: [MarginLoss; 7] = [
    MarginLoss::Logistic,
    MarginLoss::HuberSvm { width: 0.5 },
    MarginLoss::BoundedSlope { slope: 1.0, curvature: 0.25 },
    MarginLoss::LogCosh { width: 0.5 },
    MarginLoss::LogCosh { width: 4.0 },
    MarginLoss::Softmax { classes: 3 },
    MarginLoss::Softmax { classes: 10 },
];

const CASES: [(f64, f64); 8] =
    [(1.0, 0.5), (3.0, 1.0), (0.7, 0.9), (2.0, 0.1), (5.0, 0.02), (1.2, 2.0), (40.0, 5.0), (0.2, 1e-6)];

fn above(std_dev: f64, regularization: f64, loss: MarginLoss) -> Option<Arc<dyn LossLaw>> {
    match law(std_dev, regularization, loss) {
        Some(Law::Between { above, .. }) => Some(above),
        // Cases in which rounding would exceed 1 minus a tail of many sides.
        _ => {
            assert!(matches!(loss, MarginLoss::Softmax { .. }) && std_dev < 0.5, "{loss:?} {std_dev} {regularization}");
            None
        }
    }
}

fn composed(std_dev: f64, regularization: f64, loss: MarginLoss, count: u64) -> DpEvent {
    let event = Box::new(DpEvent::ObjectivePerturbation { std_dev, regularization, loss });
    DpEvent::SelfComposed { event, count }
}

#[test]
fn tails_give_the_curve_of_one_release_and_its_mirror_image() {
    for loss in LOSSES {
        for (s, lambda) in CASES {
            let Some(law) = above(s, lambda, loss) else { continue };
            let pair = Pair::new(s, lambda, loss);
            for step in -40..=40 {
                let at = f64::from(step) * 0.15 / s + 1e-3 * f64::from(step).signum();
                let Tails { p_above, p_below, q_above, q_below } = law.tails(at);
                let rounding = 4.0 * law.relative_error_at(at);
                assert!((p_above + p_below - 1.0).abs() <= rounding && (q_above + q_below - 1.0).abs() <= rounding);
                if at >= 0.0 {
                    let (delta, direct) = (p_above - at.exp() * q_above, pair.delta(at));
                    assert!(
                        (delta - direct).abs() <= (rounding + 1e-12 + 4e-14 * at.exp()) * p_above,
                        "{loss:?} {s} {lambda} {at}: {delta} {direct} {p_above} {rounding}"
                    );
                } else if matches!(loss, MarginLoss::Logistic | MarginLoss::HuberSvm { .. }) {
                    let shortfall = at.exp() * q_below - p_below;
                    let direct = at.exp() * gaussian::delta(1.0 / s, -at).unwrap();
                    assert!((shortfall - direct).abs() <= rounding * q_below + 1e-15, "{loss:?} {s} {lambda} {at}");
                }
            }
            let mut before = law.tails(-100.0 / s);
            for step in -400..400 {
                let tails = law.tails(f64::from(step) * 0.25 / s);
                assert!(
                    tails.p_above <= before.p_above && tails.q_above <= before.q_above * (1.0 + 1e-12),
                    "{tails:?}"
                );
                before = tails;
            }
        }
    }
}

/// Returns the largest loss at `y`, by search over the slope.
fn largest_loss(loss: MarginLoss, s: f64, lambda: f64, y: f64) -> f64 {
    let v = 1.0 / (s * s);
    match loss {
        MarginLoss::Logistic => (0..=4000)
            .map(|j| f64::from(j) / 4000.0)
            .map(|a| a * y + (a * (1.0 - a) / lambda).ln_1p() - 0.5 * a * (1.0 - a) * v)
            .fold(f64::NEG_INFINITY, f64::max),
        MarginLoss::HuberSvm { width } => y.max(0.0) + (0.5 / (width * lambda)).ln_1p(),
        MarginLoss::BoundedSlope { .. } | MarginLoss::LogCosh { .. } | MarginLoss::Softmax { .. } => unreachable!(),
    }
}

/// Loss and masses under both laws of a monotone loss's envelope on a plain grid of `y`, at the middles of its cells.
fn plain(loss: MarginLoss, s: f64, lambda: f64) -> Vec<(f64, f64, f64)> {
    let (mu, steps) = (1.0 / s, 6000);
    let Pair::Monotone(pair) = Pair::new(s, lambda, loss) else { unreachable!() };
    let step = 18.0 / f64::from(steps);
    (0..steps)
        .map(|i| -9.0 + step * (f64::from(i) + 0.5))
        .map(|z| {
            let y = mu * (0.5 * mu + z);
            let positive = if y <= pair.start() { 0.0 } else { largest_loss(loss, s, lambda, y) };
            let at = if y <= 0.0 { y } else { positive };
            let p = crate::normal::density(z) * step;
            (at, p, p * (-at).exp())
        })
        .collect()
}

/// Returns delta of `count` releases of losses rounded to a grid, by plain convolution.
fn convolved(law: &[(f64, f64)], step: f64, count: u32, epsilon: f64, round: fn(f64) -> f64) -> f64 {
    let index = |loss: f64| round(loss / step) as i64;
    let first = law.iter().map(|(loss, _)| index(*loss)).min().unwrap();
    let last = law.iter().map(|(loss, _)| index(*loss)).max().unwrap();
    let mut masses = vec![0.0; (last - first) as usize + 1];
    law.iter().for_each(|(loss, mass)| masses[(index(*loss) - first) as usize] += mass);
    let mut sum = vec![1.0];
    for _ in 0..count {
        let mut next = vec![0.0; sum.len() + masses.len() - 1];
        for (i, left) in sum.iter().enumerate() {
            masses.iter().enumerate().for_each(|(j, right)| next[i + j] += left * right);
        }
        sum = next;
    }
    let least = i64::from(count) * first;
    let delta = |(k, mass): (i64, &f64)| mass * -(epsilon - k as f64 * step).min(0.0).exp_m1();
    (least..).zip(&sum).map(delta).sum()
}

#[test]
fn several_releases_by_plain_convolution() {
    for (loss, s, lambda, count) in [
        (MarginLoss::Logistic, 2.0, 1.0, 4),
        (MarginLoss::Logistic, 6.0, 0.2, 8),
        (MarginLoss::HuberSvm { width: 0.5 }, 3.0, 20.0, 4),
    ] {
        let curve = PrivacyCurve::new(&composed(s, lambda, loss, count)).unwrap();
        let plain = plain(loss, s, lambda);
        let removal: Vec<(f64, f64)> = plain.iter().map(|(at, p, _)| (*at, *p)).collect();
        let addition: Vec<(f64, f64)> = plain.iter().map(|(at, _, q)| (-at, *q)).collect();
        let step = 0.01 / s;
        for epsilon in [0.0, 0.7 / s, 3.0 / s, 6.0 / s] {
            let got = curve.delta(epsilon).unwrap().upper;
            let either = |round: fn(f64) -> f64| {
                let of = |law: &[(f64, f64)]| convolved(law, step, count as u32, epsilon, round);
                of(&removal).max(of(&addition))
            };
            let (low, high) = (either(f64::floor), either(f64::ceil));
            // The grid of y is a midpoint rule with an error far below the step of the grid of losses.
            assert!(low <= got * (1.0 + 1e-5) && got <= high * (1.0 + 1e-5), "{loss:?} {epsilon}: {low} {got} {high}");
            assert!(high < 1.2 * low, "{loss:?} {epsilon}: {low} {high}");
        }
    }
}

#[test]
fn costs_like_the_root_of_the_number_of_releases() {
    let delta = Delta::new(1e-8).unwrap();
    let epsilon = |count| {
        let event = composed(40.0, 40.0, MarginLoss::Logistic, count);
        let bracket = PrivacyCurve::new(&event).unwrap().epsilon(delta).unwrap();
        let renyi = RdpCurve::new(&event).unwrap().epsilon(delta);
        assert!(bracket.lower <= bracket.upper && bracket.upper <= renyi, "{count}: {bracket:?} {renyi}");
        bracket
    };
    let (few, many) = (epsilon(10), epsilon(1000));
    assert!(many.upper < 14.0 * few.upper, "{few:?} {many:?}");
    assert!(many.upper < 1.2 * many.lower, "{many:?}");
}

#[test]
fn lies_between_the_gaussian_mechanism_and_the_renyi_curve() {
    let delta = Delta::new(1e-6).unwrap();
    for loss in LOSSES {
        for (s, lambda) in [(3.0, 1.0), (10.0, 0.3), (10.0, 30.0), (200.0, 1.0)] {
            for count in [2, 30] {
                let event = composed(s, lambda, loss, count);
                let bracket = PrivacyCurve::new(&event).unwrap().epsilon(delta).unwrap();
                let gaussian = gaussian::epsilon((count as f64).sqrt() * least_mu(s, loss), delta).unwrap();
                let renyi = RdpCurve::new(&event).unwrap().epsilon(delta);
                assert!(
                    bracket.upper >= gaussian * (1.0 - 1e-9) && bracket.upper <= renyi,
                    "{loss:?} {s} {lambda} {count} {bracket:?} {gaussian} {renyi}"
                );
                // The grid is chosen for the upper curve, which for many classes is far above.
                let close = if matches!(loss, MarginLoss::Softmax { .. }) { 0.2 } else { 3e-3 };
                assert!(
                    bracket.lower <= gaussian * (1.0 + 1e-9) && bracket.lower >= gaussian * (1.0 - close),
                    "{loss:?} {s} {lambda} {count}: {bracket:?} {gaussian}"
                );
            }
        }
    }
}

#[test]
fn composed_with_a_gaussian_and_about_a_sample() {
    let delta = Delta::new(1e-6).unwrap();
    let release = DpEvent::ObjectivePerturbation { std_dev: 8.0, regularization: 2.0, loss: MarginLoss::Logistic };
    let curve = |event: &DpEvent| PrivacyCurve::new(event).unwrap().epsilon(delta).unwrap();
    let noise = DpEvent::Gaussian { std_dev: 20.0, sensitivity: 1.0 };
    let both = curve(&DpEvent::Composed { events: vec![noise, release.clone()] });
    let together = gaussian::epsilon((1.0f64 / 64.0 + 1.0 / 400.0).sqrt(), delta).unwrap();
    assert!(both.upper >= together * (1.0 - 1e-9) && both.upper < 1.05 * together, "{both:?} {together}");
    let sampled = DpEvent::PoissonSampled { sampling_rate: 0.1, event: Box::new(release.clone()) };
    let of_sample = curve(&DpEvent::SelfComposed { event: Box::new(sampled), count: 10 });
    let of_all = curve(&DpEvent::SelfComposed { event: Box::new(release), count: 10 });
    assert!(of_sample.upper < 0.3 * of_all.upper, "{of_sample:?} {of_all:?}");
}

#[test]
fn extreme_numbers_have_no_law_or_one_that_does_not_fail() {
    for loss in LOSSES {
        for (s, lambda) in
            [(1e-3, 1.0), (1e-3, 1e-6), (1e8, 1e-8), (1e8, 1e8), (1.0, 1e-12), (1e300, 1.0), (1e-300, 1.0)]
        {
            let Some(Law::Between { above, .. }) = law(s, lambda, loss) else { continue };
            for at in [-1e3, -1.0, -1e-9, 0.0, 1e-9, 1.0, 1e3] {
                let Tails { p_above, p_below, q_above, q_below } = above.tails(at);
                for tail in [p_above, p_below, q_above, q_below] {
                    assert!((0.0..=1.0 + 1e-9).contains(&tail), "{loss:?} {s} {lambda} {at}");
                }
            }
        }
    }
}
