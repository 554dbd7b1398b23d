//! The contour engine compared with other computations.

use super::*;
use crate::exact::complex::Complex;
use crate::exact::pld::Composed;
use crate::exact::{Engine, PrivacyCurve};
use crate::gaussian;
use crate::normal::upper_tail;
use crate::params::Delta;

fn curve(leaves: Leaves) -> Contour {
    Contour::new(&leaves).unwrap()
}

fn sampled(rate: f64, sigma: f64, count: u64) -> Leaves {
    vec![(Leaf::PoissonGaussian { rate, mu: sigma.recip() }, count)]
}

#[test]
fn dp_sgd() {
    let target = 1e-5f64.ln();
    let ends = curve(sampled(0.01, 1.0, 10_000)).epsilon(target, target).unwrap();
    let truth = 6.187_712_389_97;
    assert!(ends.lower <= truth + 1e-11 && ends.upper >= truth - 1e-11, "{ends:?}");
    assert!((ends.upper - ends.lower) / ends.upper < 1e-9, "{ends:?}");
}

/// Returns delta of one step at any real epsilon, by normal tails.
fn single(rate: f64, sigma: f64, direction: Direction, epsilon: f64) -> f64 {
    let (ratio, tail) = (epsilon.exp(), |x: f64| upper_tail(x / sigma));
    match direction {
        Direction::Remove if ratio <= 1.0 - rate => 1.0 - ratio,
        Direction::Remove => {
            let x = 0.5 + sigma * sigma * ((ratio - 1.0 + rate) / rate).ln();
            (1.0 - rate) * tail(x) + rate * tail(x - 1.0) - ratio * tail(x)
        }
        Direction::Add if ratio * (1.0 - rate) >= 1.0 => 0.0,
        Direction::Add => {
            let x = 0.5 + sigma * sigma * ((1.0 / ratio - 1.0 + rate) / rate).ln();
            tail(-x) - ratio * ((1.0 - rate) * tail(-x) + rate * tail(1.0 - x))
        }
    }
}

/// Returns delta of `count` steps: the mean of that of one step, over the losses of the others, by the trapezoid rule in each
/// output.
fn convolved(rate: f64, sigma: f64, direction: Direction, epsilon: f64, count: u32) -> f64 {
    if count == 1 {
        return single(rate, sigma, direction, epsilon);
    }
    let step = 0.02 * sigma;
    let (from, to) = ((-9.0 * sigma / step) as i32, ((1.0 + 9.0 * sigma) / step) as i32);
    (from..=to)
        .map(|k| {
            let x = f64::from(k) * step;
            let ratio = 1.0 - rate + rate * ((x - 0.5) / (sigma * sigma)).exp();
            let density = gaussian_density(x, sigma);
            let (weight, loss) = match direction {
                Direction::Remove => (density * ratio, ratio.ln()),
                Direction::Add => (density, -ratio.ln()),
            };
            step * weight * convolved(rate, sigma, direction, epsilon - loss, count - 1)
        })
        .sum()
}

fn gaussian_density(x: f64, sigma: f64) -> f64 {
    crate::normal::density(x / sigma) / sigma
}

/// With few steps the integrand falls slowly, but the sum must agree with direct convolution, in each direction.
#[test]
fn two_and_three_steps_by_convolution() {
    for (rate, sigma, epsilon, count) in
        [(0.5, 1.0, 0.3, 2), (0.9, 2.0, 0.5, 2), (0.3, 0.7, 1.0, 2), (0.6, 1.5, 0.4, 3), (0.95, 0.8, 2.0, 3)]
    {
        let contour = curve(sampled(rate, sigma, count));
        for (direction, laws) in [Direction::Remove, Direction::Add].into_iter().zip(&contour.directions) {
            let exact = convolved(rate, sigma, direction, epsilon, count as u32);
            let Some(ends) = log_delta_of(&laws.laws, epsilon).0 else {
                continue;
            };
            let (low, high) = (ends.lower.exp(), ends.upper.exp());
            let case = format!("{rate} {sigma} {epsilon} {count} {direction:?}: {low} {exact} {high}");
            assert!(low <= exact * (1.0 + 1e-9) + 1e-13 && high >= exact * (1.0 - 1e-9) - 1e-13, "{case}");
        }
        let (lower, upper) = contour.log_delta(epsilon).map(|ends| (ends.lower.exp(), ends.upper.exp())).unwrap();
        let worst = [Direction::Remove, Direction::Add].map(|way| convolved(rate, sigma, way, epsilon, count as u32));
        let exact = worst[0].max(worst[1]);
        assert!(lower <= exact + 1e-12 && exact <= upper + 1e-12, "{lower} {exact} {upper}");
    }
}

/// Two Laplace releases: the loss of each has atoms and a density, integrated explicitly.
#[test]
fn two_laplace_releases_by_convolution() {
    let (x, epsilon) = (0.8f64, 0.5f64);
    let one = |epsilon: f64| {
        if epsilon >= x {
            0.0
        } else if epsilon <= -x {
            1.0 - epsilon.exp()
        } else {
            1.0 - (0.5 * (epsilon - x)).exp()
        }
    };
    let cells = 200_000;
    let width = 2.0 * x / f64::from(cells);
    let middle: f64 = (0..cells)
        .map(|k| -x + (f64::from(k) + 0.5) * width)
        .map(|loss| 0.25 * (0.5 * (loss - x)).exp() * one(epsilon - loss) * width)
        .sum();
    let exact = 0.5 * one(epsilon - x) + 0.5 * (-x).exp() * one(epsilon + x) + middle;
    let ends = curve(vec![(Leaf::Laplace { x }, 2)]).log_delta(epsilon).unwrap();
    assert!(ends.lower.exp() <= exact + 1e-9 && ends.upper.exp() >= exact - 1e-9, "{ends:?} {exact}");
}

/// The step for a real exponent, or that of `theta = pi` when adding, would be wrong here; the certified errors of two very
/// different step sizes must cover their difference.
#[test]
fn moments_agree_between_steps_within_their_errors() {
    for direction in [Direction::Remove, Direction::Add] {
        for (rate, sigma, c, t) in [
            (0.9, 2.0, 200.0, 1.0),
            (0.9, 2.0, 50.0, 6.0),
            (0.01, 1.0, 3.0, 100.0),
            (1e-4, 0.5, 8.0, 1.0),
            (0.3, 20.0, 1e3, 40.0),
        ] {
            let law = PoissonGaussian { rate, sigma, direction };
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
}

/// No point on the line may be above the certified decay.
#[test]
fn the_modulus_is_below_the_certified_decay() {
    for direction in [Direction::Remove, Direction::Add] {
        for (rate, sigma, c) in [(0.01, 1.0, 3.0), (0.5, 0.6, 0.7), (0.2, 5.0, 60.0), (1e-3, 0.7, 5.0)] {
            let law = PoissonGaussian { rate, sigma, direction };
            let log_moment = law.search_nodes(c, 50.0, USUAL.nodes).unwrap().cumulant(c)[0];
            let layers = law.layers(c, log_moment);
            let mass: f64 = layers.iter().map(|layer| layer.mass).sum();
            assert!(mass > 0.7 && mass <= 1.0, "{law:?}: {mass}");
            let mut walk = law.nodes(c, 200.0, 35.0, log_moment, USUAL.nodes).unwrap().walk(c, 0.5, 400);
            for j in 0..400 {
                let moment = walk.next();
                let decay = decay::log_decay(&layers, 0.5 * f64::from(j));
                assert!(moment.log.re - log_moment <= decay + moment.error + 1e-12, "{law:?} {j}: {moment:?} {decay}");
            }
        }
    }
}

/// A sum that is too coarse, cut short, or of rough moments gives wider bounds, which remain valid.
#[test]
fn a_poor_sum_keeps_its_word() {
    let gaussian = vec![(Leaf::Gaussian { mu: 0.7 }, 3), (Leaf::Pure { epsilon: 1e-300 }, 1)];
    let laplace = vec![(Leaf::Laplace { x: 0.3 }, 200), (Leaf::Gaussian { mu: 0.2 }, 1)];
    let mut poor = 0;
    for leaves in [
        gaussian,
        laplace,
        sampled(0.01, 1.0, 10_000),
        sampled(1e-4, 0.8, 1_000_000),
        sampled(0.3, 1.5, 300),
        sampled(0.9, 4.0, 400),
    ] {
        for laws in &curve(leaves).directions {
            let mut search = Search::new(&laws.laws);
            for target in [-1.5, -8.0, -40.0] {
                let saddle = search.for_delta(target).unwrap();
                for factor in [0.0, 0.9, 1.0, 1.07] {
                    let epsilon = factor * saddle.epsilon.max(0.0);
                    let log_delta = saddle.log_delta_at(epsilon).min(0.0);
                    let mut ends = |margin: f64| {
                        let line = Line::new(&mut search, &saddle, epsilon, log_delta, Effort { margin, ..USUAL })?;
                        Some(line.log_delta(epsilon))
                    };
                    let Some(good) = ends(28.0).filter(|good| good.upper - good.lower < 1e-9) else {
                        continue;
                    };
                    for margin in [0.3, 0.8, 1.5, 2.5, 4.0, 6.0, 9.0, 14.0] {
                        let Some(ends) = ends(margin) else { continue };
                        let case = format!("{laws:?} at {epsilon}, margin {margin}: {ends:?} {good:?}");
                        assert!(ends.lower <= good.upper && good.lower <= ends.upper, "{case}");
                        poor += u32::from(ends.upper - ends.lower > 1e-3);
                    }
                }
            }
        }
    }
    assert!(poor > 100, "{poor}");
}

/// A step chosen from the variance alone would miss the rare large losses of a small sampling rate.
#[test]
fn rare_losses_are_not_overlooked() {
    let target = 1e-12f64.ln();
    let ends = curve(sampled(0.01, 2.0, 1000)).epsilon(target, target).unwrap();
    assert!(ends.upper - ends.lower < 1e-10 && (ends.upper - 1.178_303_597_427_3).abs() < 2e-9, "{ends:?}");
}

/// The worse direction of every step gives no bound, nor is it needed: each direction is composed with itself, and the larger
/// delta is the result.
#[test]
fn each_direction_is_composed_with_itself() {
    let target = 1e-6f64.ln();
    let contour = curve(sampled(0.3, 1.0, 200));
    let [remove, add] = [0, 1].map(|way| epsilon_of(&contour.directions[way].laws, target, target).0.unwrap());
    assert!(remove.lower > add.upper);
    assert_eq!(contour.epsilon(target, target).unwrap(), remove.larger(add));
}

#[test]
fn what_has_no_density_or_no_moments_is_left_to_others() {
    assert!(Contour::new(&vec![(Leaf::Pure { epsilon: 0.1 }, 5), (Leaf::Pure { epsilon: 0.2 }, 5)]).is_none());
    assert!(Contour::new(&vec![(Leaf::Zcdp { rho: 0.1 }, 1)]).is_none());
}

/// Returns the closed-form Gaussian curve, from a tree that is not recognised as Gaussian.
fn almost_gaussian(mu: f64, count: u64) -> Contour {
    curve(vec![(Leaf::Gaussian { mu }, count), (Leaf::Pure { epsilon: 1e-300 }, 1)])
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn gaussians_are_the_closed_curve(log_mu in -6.0f64..2.0, log_delta in -690.0f64..-0.2, count in 1u64..1_000_000) {
        let (mu, total) = (log_mu.exp() / (count as f64).sqrt(), log_mu.exp());
        let ends = almost_gaussian(mu, count).epsilon(log_delta, log_delta).unwrap();
        let exact = gaussian::epsilon_at(total, log_delta);
        proptest::prop_assert!(ends.lower <= exact * (1.0 + 1e-11) + 1e-14, "{:?} {}", ends, exact);
        proptest::prop_assert!(ends.upper >= exact * (1.0 - 1e-11) - 1e-14, "{:?} {}", ends, exact);
        proptest::prop_assert!(ends.upper - ends.lower <= 1e-9 * exact.max(1e-9), "{:?}", ends);
        let back = almost_gaussian(mu, count).log_delta(exact).unwrap();
        let truth = gaussian::curve_point(total, exact).log_delta;
        proptest::prop_assert!(back.lower <= truth + 1e-9 * (1.0 + truth.abs()));
        proptest::prop_assert!(back.upper >= truth - 1e-9 * (1.0 + truth.abs()));
    }

    #[test]
    fn ends_are_ordered_and_monotone(
        log_rate in -9.0f64..-0.01, log_sigma in -0.9f64..3.0, count in 50u64..1_000_000, log_delta in -200.0f64..-1.0,
    ) {
        let (rate, sigma) = (log_rate.exp(), log_sigma.exp());
        let at = |rate: f64, sigma: f64, count: u64, log_delta: f64| {
            let found = curve(sampled(rate, sigma, count)).epsilon(log_delta, log_delta);
            found.unwrap_or(Ends { lower: 0.0, upper: f64::INFINITY })
        };
        let here = at(rate, sigma, count, log_delta);
        proptest::prop_assert!(here.lower <= here.upper && here.lower >= 0.0, "{:?}", here);
        for more in [
            at(rate, sigma, 2 * count, log_delta),
            at(rate, 0.9 * sigma, count, log_delta),
            at(rate, sigma, count, 1.1 * log_delta),
        ] {
            proptest::prop_assert!(here.lower <= more.upper, "{:?} {:?}", here, more);
        }
        // Converts to epsilon and back.
        if here.upper > 0.0
            && here.upper.is_finite()
            && let Some(delta) = curve(sampled(rate, sigma, count)).log_delta(here.upper)
        {
            proptest::prop_assert!(delta.lower <= log_delta + 1e-9 * log_delta.abs(), "{:?} {:?}", here, delta);
        }
    }
}

/// A million steps at a rate of one in a million, with little noise: rare large losses. The deltas are those of a plain sum over
/// another grid, on two other lines, which agree to twelve digits.
#[test]
fn rare_large_losses() {
    let leaves = sampled(1e-6, 0.4, 1_000_000);
    let usual = curve(leaves.clone()).log_delta(0.2).unwrap();
    assert!(usual.upper - usual.lower > 1.0, "the usual lines suffice: {usual:?}");
    let curve = PrivacyCurve::from_leaves(leaves).unwrap();
    for (epsilon, delta) in [
        (0.2, 4.718_398_995_832e-5),
        (0.436_386_8, 1.000_000_296_577e-5),
        (1.0, 1.204_124_416_291e-6),
        (3.0, 7.409_135_565_387e-9),
    ] {
        let found = curve.delta(epsilon).unwrap();
        assert_eq!(found.engine, Engine::Contour);
        assert!(found.lower <= delta && delta <= found.upper, "{epsilon}: {found:?}");
        assert!(found.upper - found.lower <= 1e-5 * delta, "{epsilon}: {found:?}");
        let back = curve.epsilon(Delta::new(delta).unwrap()).unwrap();
        let margin = 1e-6 * epsilon;
        assert!(back.lower <= epsilon + margin && back.upper >= epsilon - margin, "{epsilon}: {back:?}");
        assert!(back.upper - back.lower <= 1e-5 * epsilon, "{epsilon}: {back:?}");
    }
}

/// Where both are close, lines to the left of the sharp rise and loss distributions agree.
#[test]
fn lines_before_the_leap_agree_with_loss_distributions() {
    for (rate, sigma, count, target) in
        [(1e-3, 0.3, 1000, 1e-5f64), (1e-4, 0.5, 10_000, 1e-5), (1e-5, 0.7, 99_999, 1e-8)]
    {
        let leaves = sampled(rate, sigma, count);
        let log_delta = target.ln();
        let lines = curve(leaves.clone()).epsilon_eased(log_delta, log_delta, PATIENT);
        let (lower, upper) = Composed::new(&leaves).unwrap().epsilon(log_delta);
        assert!(upper - lower <= 0.01 * upper, "{rate}: {lower} {upper}");
        assert!(lines.lower >= lower && lines.upper <= upper, "{rate}: {lines:?} within {lower} {upper}");
        let epsilon = 0.5 * (lines.lower + lines.upper);
        let lines = curve(leaves).log_delta_eased(epsilon, PATIENT);
        assert!((lines.upper - log_delta).abs() < 1e-3 && lines.lower <= lines.upper, "{rate}: {lines:?}");
    }
}

/// Small batches of many records: the saddle point misjudges epsilon by a factor of two, and the sum has lost delta there. At every
/// noise the lines give close ends, which agree with those of the loss distributions, and a curve that falls.
#[test]
fn no_noise_is_left_to_another_engine() {
    let log_delta = 1e-8f64.ln();
    for (rate, count, low, high) in
        [(100.0 / 450_000.0, 90_000, 0.85, 1.05), (10.0 / 450_000.0, 900_000, 0.59, 0.7), (3.2e-4, 316_000, 0.8, 0.9)]
    {
        let mut before = f64::INFINITY;
        for i in 0..=40 {
            let sigma = low + (high - low) * f64::from(i) / 40.0;
            let leaves = sampled(rate, sigma, count);
            let found = PrivacyCurve::from_leaves(leaves.clone()).unwrap().epsilon(Delta::new(1e-8).unwrap()).unwrap();
            assert_eq!(found.engine, Engine::Contour, "{rate} {sigma}");
            assert!(found.upper - found.lower <= 2e-6 * found.upper, "{rate} {sigma}: {found:?}");
            assert!(found.upper < before, "{rate} {sigma}");
            before = found.lower;
            if i % 20 == 10 {
                let (lower, upper) = Composed::new(&leaves).unwrap().epsilon(log_delta);
                assert!(lower <= found.upper && found.lower <= upper, "{rate} {sigma}: {found:?} {lower} {upper}");
            }
        }
    }
}

/// Wherever the search starts, it ends at the same epsilon, which the estimate meets.
#[test]
fn roots_do_not_depend_on_the_start() {
    let leaves = sampled(100.0 / 450_000.0, 0.95, 90_000);
    let laws = &curve(leaves).directions[0].laws.clone();
    let mut search = Search::new(laws);
    for log_delta in [1e-4f64, 1e-8, 1e-10].map(f64::ln) {
        let saddle = search.for_delta(log_delta).unwrap();
        let line = Line::new(&mut search, &saddle, saddle.epsilon.max(0.0), log_delta, USUAL).unwrap();
        let found = root(&line, saddle.epsilon, 1.0, log_delta).unwrap();
        assert!((line.log_delta(found).estimate - log_delta).abs() < 1e-9, "{log_delta}: {found}");
        for start in [0.0, 1e-3, 0.3, 0.5, 0.6, 1.0, 2.0, 5.0, 50.0] {
            for scale in [1e-2, 1.0, 10.0] {
                let again = root(&line, start, scale, log_delta).unwrap();
                assert!((again - found).abs() <= 1e-12 * found, "{log_delta} from {start} by {scale}: {again} {found}");
            }
        }
    }
    // An epsilon of 0 has a smaller delta already.
    let saddle = search.for_epsilon(0.0).unwrap();
    let line = Line::new(&mut search, &saddle, 0.0, 0.99f64.ln(), USUAL).unwrap();
    assert_eq!(root(&line, 0.3, 1.0, 0.99f64.ln()), Some(0.0));
}

/// A window that reaches beyond the largest loss at the line's own epsilon may not at a smaller one, to which the search leads. The
/// aliases there were once omitted: the lower end of the first case was 7.7 for 4.115.
#[test]
fn lines_of_bounded_losses_count_their_aliases() {
    for (releases, x, buckets, noise, target) in [
        (20, 0.3, 1_000_000_000_000, 0.9999, 1e-3),
        (30, 0.1, 1_000_000_000_000, 0.9999, 1e-2),
        (20, 0.2, 1_000_000_000, 0.999, 1e-2),
        (50, 0.1, 1_000_000, 0.99, 1e-3f64),
    ] {
        let leaves = vec![(Leaf::Laplace { x }, releases), (Leaf::RandomizedResponse { buckets, noise }, 2)];
        let composed = Composed::new(&leaves).unwrap();
        let contour = curve(leaves.clone());
        let (lower, upper) = composed.epsilon(target.ln());
        let found = contour.epsilon(target.ln(), target.ln()).unwrap();
        assert!(found.lower <= upper && lower <= found.upper, "{releases} {x}: {found:?}, {lower} to {upper}");
        let all = PrivacyCurve::from_leaves(leaves).unwrap().epsilon(Delta::new(target).unwrap()).unwrap();
        assert!(all.upper - all.lower <= 2e-3 * all.upper, "{releases} {x}: {all:?}");

        // Each line, far from the epsilon for which it was made.
        let laws = &contour.directions[0].laws;
        let mut search = Search::new(laws);
        for own in [0.2, 0.5, 0.8, 0.95].map(|part| part * supremum(laws)) {
            let Some(saddle) = search.for_epsilon(own) else { continue };
            let log_delta = saddle.log_delta_at(own).min(0.0);
            let Some(line) = Line::new(&mut search, &saddle, own, log_delta, USUAL) else { continue };
            for epsilon in [0.0, 0.1, 0.3, 0.6, 0.9, 1.0, 1.2].map(|part| part * own) {
                let (line, truth) = (line.log_delta(epsilon), composed.log_delta(epsilon));
                assert!(line.lower <= truth.1 + 1e-9, "{releases} {x}, line of {own} at {epsilon}: {line:?} {truth:?}");
                assert!(line.upper >= truth.0 - 1e-9, "{releases} {x}, line of {own} at {epsilon}: {line:?} {truth:?}");
            }
        }
    }
}

/// Whatever centre a search gives, the ends are points at which the bounds show what they claim.
#[test]
fn ends_hold_from_any_centre() {
    let leaves = sampled(100.0 / 450_000.0, 0.95, 90_000);
    let contour = curve(leaves);
    for direction in &contour.directions {
        let mut search = Search::new(&direction.laws);
        for log_delta in [1e-3f64, 1e-8, 1e-14].map(f64::ln) {
            let saddle = search.for_delta(log_delta).unwrap();
            let line = Line::new(&mut search, &saddle, saddle.epsilon.max(0.0), log_delta, USUAL).unwrap();
            for center in [0.0, 1e-9, 0.1, 0.4, 0.48, 0.55, 0.9, 1.05, 1.3, 3.0, 100.0, 1e6] {
                let (lower, upper) = (lower_end(&line, center, log_delta), upper_end(&line, center, log_delta));
                assert!(lower <= center && upper >= center, "{log_delta} {center}: {lower} {upper}");
                assert!(
                    upper.is_infinite() || line.log_delta(upper).upper <= log_delta,
                    "{log_delta} {center}: {upper}"
                );
                assert!(lower == 0.0 || line.log_delta(lower).lower >= log_delta, "{log_delta} {center}: {lower}");
            }
        }
    }
}

/// Tiny samples over which the usual line is too long: eased lines answer before loss distributions are tried, within their ends.
#[test]
fn eased_lines_come_before_loss_distributions() {
    for (rate, sigma, count, target) in [(3.2e-5, 0.85, 95_000, 1e-5f64), (1e-4, 1.0, 30_000, 1e-8)] {
        let leaves = sampled(rate, sigma, count);
        let usual = curve(leaves.clone()).epsilon(target.ln(), target.ln()).unwrap();
        assert!(usual.upper - usual.lower > 1e-3 * usual.upper, "the usual lines suffice: {usual:?}");
        let (lower, upper) = Composed::new(&leaves).unwrap().epsilon(target.ln());
        let found = PrivacyCurve::from_leaves(leaves).unwrap().epsilon(Delta::new(target).unwrap()).unwrap();
        assert_eq!(found.engine, Engine::Contour);
        assert!(found.upper - found.lower <= 1e-4 * found.upper, "{found:?}");
        assert!(found.lower <= upper && lower <= found.upper, "{found:?}, {lower} to {upper}");
    }
}
