use super::*;
use crate::exact::complex::Complex;
use crate::exact::contour::Contour;
use crate::exact::contour::decay::log_decay;
use crate::exact::contour::line::USUAL;
use crate::exact::pld::Composed;
use crate::leaves::{Leaf, Leaves};
use crate::normal::{density, upper_tail};
use crate::sampled_replacement::Pair;

fn leaves(rate: f64, mean: f64, count: u64) -> Leaves {
    vec![(Leaf::PoissonReplacement(Pair::new(rate, 2.0 * mean, 0.5)), count)]
}

/// Returns delta of `count` steps and a Gaussian release at any real epsilon: the mean of the Gaussian's delta over the losses of
/// the steps.
fn convolved(law: Replacement, mu: f64, epsilon: f64, count: u32) -> f64 {
    if count == 0 {
        return upper_tail(epsilon / mu - 0.5 * mu) - epsilon.exp() * upper_tail(epsilon / mu + 0.5 * mu);
    }
    let step = 0.2;
    let reach = ((9.0 + law.mean) / step) as i32;
    (-reach..=reach)
        .map(|k| {
            let x = f64::from(k) * step;
            let (ahead, behind) = (law.log_ratio(x), law.log_ratio(-x));
            step * density(x) * ahead.exp() * convolved(law, mu, epsilon - (ahead - behind), count - 1)
        })
        .sum()
}

/// Few steps, together with a Gaussian release, without which the sum decays too slowly.
#[test]
fn one_to_three_steps_by_convolution() {
    for (rate, mean, epsilon, count) in [
        (0.3, 1.0, 0.7, 1),
        (0.5, 0.5, 0.3, 2),
        (0.9, 0.25, 0.5, 2),
        (0.05, 1.5, 0.7, 2),
        (0.6, 0.4, 0.0, 3),
        (0.3, 1.0, 2.0, 3),
    ] {
        let (mu, law) = (0.6, Replacement { rate, mean });
        let exact = convolved(law, mu, epsilon, count).ln();
        let mut leaves = leaves(rate, mean, u64::from(count));
        leaves.push((Leaf::Gaussian { mu }, 1));
        let ends = Contour::new(&leaves).unwrap().log_delta(epsilon).unwrap();
        let case = format!("{law:?} {epsilon} {count}: {ends:?} {exact}");
        assert!(ends.lower <= exact + 1e-9 && ends.upper >= exact - 1e-9, "{case}");
        assert!(ends.upper - ends.lower < 1e-9, "{case}");
    }
}

/// Two engines that share nothing but the pair.
#[test]
fn many_steps_as_by_composed_loss_distributions() {
    for (rate, mean, count) in [(0.01, 0.5, 1000), (0.2, 0.25, 50), (1e-3, 1.0, 10_000), (0.5, 0.02, 20_000)] {
        let leaves = leaves(rate, mean, count);
        for log_delta in [1e-3f64.ln(), 1e-8f64.ln()] {
            let ends = Contour::new(&leaves).unwrap().epsilon(log_delta, log_delta).unwrap();
            let (lower, upper) = Composed::new(&leaves).unwrap().epsilon(log_delta);
            assert!(ends.lower <= upper && lower <= ends.upper, "{rate} {mean} {count}: {ends:?} {lower} {upper}");
            assert!(ends.upper - ends.lower <= 1e-8 * ends.upper, "{rate} {mean} {count}: {ends:?}");
        }
    }
}

/// The certified errors of two very different step sizes must cover their difference.
#[test]
fn moments_agree_between_steps_within_their_errors() {
    for (rate, mean, c, t) in [
        (0.9, 0.25, 200.0, 1.0),
        (0.9, 0.5, 50.0, 6.0),
        (0.01, 1.0, 3.0, 100.0),
        (1e-4, 2.0, 8.0, 1.0),
        (0.3, 0.02, 1e3, 40.0),
    ] {
        let law = Replacement { rate, mean };
        let log_moment = law.search_nodes(c, 50.0, USUAL.nodes).unwrap().cumulant(c)[0];
        let at = |exponent: f64| {
            let mut walk = law.nodes(c, t, exponent, log_moment, USUAL.nodes).unwrap().walk(c, t, 1);
            walk.next();
            walk.next()
        };
        let [rough, fine] = [8.0, 38.0].map(at);
        let relative = Complex::new(rough.log.re - fine.log.re, rough.log.im - fine.log.im).exp();
        let difference = (relative - Complex::new(1.0, 0.0)).norm();
        assert!(difference <= rough.error.exp_m1() + fine.error.exp_m1(), "{law:?}: {rough:?} {fine:?}");
        assert!(fine.error < 1e-6, "{law:?} {fine:?}");
    }
}

#[test]
fn the_modulus_is_below_the_certified_decay() {
    for (rate, mean, c) in [(0.01, 0.5, 3.0), (0.5, 1.2, 0.7), (0.2, 0.1, 60.0), (1e-3, 0.7, 5.0)] {
        let law = Replacement { rate, mean };
        let log_moment = law.search_nodes(c, 50.0, USUAL.nodes).unwrap().cumulant(c)[0];
        let layers = law.layers(c, log_moment);
        let mass: f64 = layers.iter().map(|layer| layer.mass).sum();
        assert!(mass > 0.5 && mass <= 1.0 + 1e-9, "{law:?}: {mass}");
        let step = 0.5 / (mean * rate.sqrt());
        let mut walk = law.nodes(c, 60.0 * step, 38.0, log_moment, USUAL.nodes).unwrap().walk(c, step, 60);
        for j in 0..60 {
            let modulus = walk.next();
            let bound = log_decay(&layers, f64::from(j) * step);
            assert!(modulus.log.re - modulus.error - log_moment <= bound + 1e-9, "{law:?} at {j}: {modulus:?} {bound}");
        }
    }
}

#[test]
fn the_loss_is_odd_and_what_both_ratios_say() {
    for (rate, mean) in [(0.01, 0.5), (0.999, 3.0), (1e-9, 0.1), (0.5, 40.0)] {
        let law = Replacement { rate, mean };
        for x in [0.0, 1e-8, 0.3, 2.0, 9.0, 30.0] {
            let expected = law.log_ratio(x) - law.log_ratio(-x);
            let allowed = 1e-12 * (1.0 + expected);
            assert!((law.loss(x) - expected).abs() <= allowed, "{law:?} at {x}: {} {expected}", law.loss(x));
            assert_eq!(law.loss(-x), -law.loss(x));
        }
    }
}
