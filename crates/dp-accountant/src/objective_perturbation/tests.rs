use super::*;
use crate::exact::{Engine, PrivacyCurve};
use crate::{DpEvent, gaussian};

const LOSSES: [MarginLoss; 5] = [
    MarginLoss::Logistic,
    MarginLoss::HuberSvm { width: 0.5 },
    MarginLoss::BoundedSlope { slope: 1.0, curvature: 0.25 },
    MarginLoss::LogCosh { width: 0.5 },
    MarginLoss::LogCosh { width: 4.0 },
];

/// All losses, including softmax, which has no single prediction.
const ALL: [MarginLoss; 7] = [
    LOSSES[0],
    LOSSES[1],
    LOSSES[2],
    LOSSES[3],
    LOSSES[4],
    MarginLoss::Softmax { classes: 3 },
    MarginLoss::Softmax { classes: 100 },
];

/// First and second derivative of a loss with respect to the margin or the residual.
fn derivatives(loss: MarginLoss, margin: f64) -> (f64, f64) {
    match loss {
        MarginLoss::Logistic => {
            let slope = 1.0 / (1.0 + margin.exp());
            (-slope, slope * (1.0 - slope))
        }
        MarginLoss::HuberSvm { width } => {
            let position = (1.0 + width - margin) / (2.0 * width);
            if (0.0..1.0).contains(&position) { (-position, 0.5 / width) } else { (-position.clamp(0.0, 1.0), 0.0) }
        }
        // ln cosh, scaled to the curvature.
        MarginLoss::BoundedSlope { slope, curvature } => {
            let t = (margin * curvature / slope).tanh();
            (slope * t, curvature * (1.0 - t * t))
        }
        MarginLoss::LogCosh { width } => {
            let slope = (margin / width).tanh();
            (slope, (1.0 - slope * slope) / width)
        }
        MarginLoss::Softmax { .. } => unreachable!(),
    }
}

/// Returns whether the loss is a function of a residual and not of a margin.
fn two_sided(loss: MarginLoss) -> bool {
    matches!(loss, MarginLoss::BoundedSlope { .. } | MarginLoss::LogCosh { .. })
}

/// Density of the minimiser in one dimension at `w`; rows with label and multiplicity.
fn density(loss: MarginLoss, rows: &[(f64, f64, f64)], lambda: f64, s: f64, w: f64) -> f64 {
    let (mut gradient, mut hessian) = (lambda * w, lambda);
    for &(x, y, count) in rows {
        let (scale, margin) = if two_sided(loss) { (x, x * w - y) } else { (x * y, x * y * w) };
        let (first, second) = derivatives(loss, margin);
        gradient += count * scale * first;
        hessian += count * x * x * second;
    }
    crate::normal::density(gradient / s) / s * hessian
}

/// Returns delta of both directions in one dimension, by the exact densities.
fn exact(loss: MarginLoss, rows: &[(f64, f64, f64)], lambda: f64, s: f64, epsilon: f64) -> (f64, f64) {
    let reach = (rows.len() as f64 + 9.0 * s) / lambda;
    let steps = 20_000;
    let step = 2.0 * reach / f64::from(steps);
    let (mut removal, mut addition) = (0.0, 0.0);
    for i in 0..steps {
        let w = -reach + (f64::from(i) + 0.5) * step;
        let with = density(loss, rows, lambda, s, w);
        let without = density(loss, &rows[1..], lambda, s, w);
        removal += (with - epsilon.exp() * without).max(0.0) * step;
        addition += (without - epsilon.exp() * with).max(0.0) * step;
    }
    (removal, addition)
}

struct Uniform(u64);

impl Uniform {
    fn next(&mut self, low: f64, high: f64) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (high - low) * (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[test]
fn no_data_set_in_one_dimension_exceeds_the_bound_and_one_attains_it() {
    let mut random = Uniform(7);
    for loss in LOSSES {
        let mut largest: f64 = 0.0;
        for case in 0..60 {
            let (lambda, s) = (random.next(-2.0, 3.0).exp(), random.next(-0.7, 2.0).exp());
            let epsilon = random.next(-3.0, 1.5).exp();
            let others = if case < 20 { 0 } else { (random.next(0.0, 4.0)) as usize };
            let rows: Vec<(f64, f64, f64)> = (0..=others)
                .map(|i| {
                    let x = if i == 0 && case % 2 == 0 { 1.0 } else { random.next(-1.0, 1.0) };
                    (x, if random.next(0.0, 1.0) < 0.5 { -1.0 } else { 1.0 }, 1.0)
                })
                .collect();
            let (removal, addition) = exact(loss, &rows, lambda, s, epsilon);
            let bound = Pair::new(s, lambda, loss).delta(epsilon);
            let truth = removal.max(addition);
            assert!(truth <= bound * (1.0 + 1e-5) + 1e-9, "{loss:?} {lambda} {s} {epsilon}: {truth} above {bound}");
            if bound > 1e-4 {
                largest = largest.max(truth / bound);
            }
        }
        // Records of the other class pull the minimiser to where the record's slope is 1.
        let rows = [(1.0, 1.0, 1.0), (1.0, -1.0, 1e6)];
        let (removal, addition) = exact(loss, &rows, 0.2, 0.33, 5.0);
        largest = largest.max(removal.max(addition) / Pair::new(0.33, 0.2, loss).delta(5.0));
        if loss == MarginLoss::Logistic {
            assert!(largest > 1.0 - 1e-3, "{loss:?}: at most {largest} of the bound");
        }
    }
}

/// For related slope and curvature, `M` by search over the slope is at most the composed one and close to it; from twice the
/// curvature over the regulariser on, only the Gaussian mechanism remains.
#[test]
fn a_curvature_that_is_tied_to_the_slope_costs_little() {
    for (s, lambda, width) in [(1.0, 0.5, 0.5), (3.0, 1.0, 4.0), (0.7, 0.9, 1.0), (5.0, 0.2, 2.0), (0.4, 0.3, 3.0)] {
        let (mu, kappa) = (1.0f64 / s, 1.0 / (width * lambda));
        let Pair::Sided(pair) = Pair::new(s, lambda, MarginLoss::LogCosh { width }) else { unreachable!() };
        let (steps, reach) = (4000, 12.0);
        let width_of = reach / f64::from(steps);
        let grid: Vec<(f64, f64)> = (0..steps)
            .map(|i| {
                let z = reach * (f64::from(i) + 0.5) / f64::from(steps);
                let truth = (0..=400)
                    .map(|j| f64::from(j) / 400.0)
                    .map(|a| a * mu * z + 0.5 * (a * mu).powi(2) + ((1.0 - a * a) * kappa).ln_1p())
                    .fold(f64::NEG_INFINITY, f64::max);
                (truth, 2.0 * crate::normal::density(z) * width_of)
            })
            .collect();
        let untied = Pair::new(s, lambda, MarginLoss::BoundedSlope { slope: 1.0, curvature: 1.0 / width });
        for epsilon in [0.1, 0.5, 1.0, 2.0, 4.0] {
            let truth: f64 = grid.iter().map(|(loss, p)| p * -(epsilon - loss).min(0.0).exp_m1()).sum();
            // The envelope of both directions may be below the removal curve alone.
            let bound = pair.delta(epsilon);
            if epsilon >= pair.touching_loss() {
                assert!(bound >= truth * (1.0 - 1e-4) - 1e-9, "{s} {lambda} {width} {epsilon}: {bound} below {truth}");
            }
            assert!(bound <= untied.delta(epsilon) * (1.0 + 1e-12), "{s} {lambda} {width} {epsilon}");
            if epsilon >= 2.0 * kappa {
                let twice = 2.0 * gaussian::delta(mu, epsilon).unwrap();
                assert!((bound / twice - 1.0).abs() < 1e-9, "{s} {lambda} {width} {epsilon}: {bound} {twice}");
            }
        }
        for order in [1.5, 4.0, 30.0] {
            assert!(pair.rdp(order) <= untied.rdp(order) * (1.0 + 1e-9), "{s} {lambda} {width} {order}");
        }
    }
}

/// Moments and tails of a pair with related slope and curvature, by a plain sum over its loss.
#[test]
fn the_tied_pair_by_a_plain_sum() {
    for (s, lambda, width) in [(1.0, 0.5, 0.5), (3.0, 1.0, 4.0), (0.7, 0.9, 1.0), (5.0, 0.2, 2.0), (0.4, 0.3, 3.0)] {
        let mu = 1.0f64 / s;
        let Pair::Sided(pair) = Pair::new(s, lambda, MarginLoss::LogCosh { width }) else { unreachable!() };
        let steps = 40_000;
        let cell = 12.0 / f64::from(steps);
        // Under P beyond l; under Q beyond k, where the loss is that of addition's mirror image.
        let (mut p_mass, mut q_mass) = (0.0, 0.0);
        let (mut removal, mut addition) = (0.0, 0.0);
        let order = 3.0f64;
        for i in 0..steps {
            let z = cell * (f64::from(i) + 0.5);
            let weight = 2.0 * crate::normal::density(z) * cell;
            let loss = pair.loss_at(z);
            if z > pair.high() {
                (p_mass, q_mass) = (p_mass + weight, q_mass + weight * (-loss).exp());
                removal += weight * ((order - 1.0) * loss).exp();
                addition += weight * (-order * loss).exp();
            }
            if z > pair.low() {
                let loss = -(mu * z + 0.5 * mu * mu);
                (p_mass, q_mass) = (p_mass + weight * loss.exp(), q_mass + weight);
                removal += weight * (order * loss).exp();
                addition += weight * (-(order - 1.0) * loss).exp();
            }
        }
        assert!((p_mass - 1.0).abs() < 2e-3 && (q_mass - 1.0).abs() < 2e-3, "{s} {lambda} {width}: {p_mass} {q_mass}");
        let expected = removal.max(addition).ln() / (order - 1.0);
        let got = pair.rdp(order);
        assert!((got - expected).abs() < 1e-2 * expected + 3e-3, "{s} {lambda} {width}: {got} {expected}");
    }
}

/// Returns the loss and probability of a plain grid of `y` for the logistic loss, its maximum by search over the slope.
fn logistic_grid(s: f64, lambda: f64, start: f64) -> Vec<(f64, f64)> {
    let mu = 1.0 / s;
    let steps = 8000;
    (0..steps)
        .map(|i| {
            let z = -10.0 + 20.0 * (f64::from(i) + 0.5) / f64::from(steps);
            let y = mu * (0.5 * mu + z);
            let largest = (0..=400)
                .map(|j| f64::from(j) / 400.0)
                .map(|a| a * y + (a * (1.0 - a) / lambda).ln_1p() - 0.5 * a * (1.0 - a) * mu * mu)
                .fold(f64::NEG_INFINITY, f64::max);
            let loss = if y <= 0.0 {
                y
            } else if y <= start {
                0.0
            } else {
                largest
            };
            (loss, crate::normal::density(z) * 20.0 / f64::from(steps))
        })
        .collect()
}

#[test]
fn the_logistic_pair_by_a_plain_sum() {
    for (s, lambda) in [(1.0, 0.5), (3.0, 1.0), (0.7, 0.9), (2.0, 0.1), (5.0, 0.02), (1.2, 2.0)] {
        let Pair::Monotone(pair) = Pair::new(s, lambda, MarginLoss::Logistic) else { unreachable!() };
        let start = pair.start();
        let grid = logistic_grid(s, lambda, start);
        let q: f64 = grid.iter().map(|(loss, p)| p * (-loss).exp()).sum();
        assert!((q - 1.0).abs() < 1e-3, "{s} {lambda}: mass {q}");
        for epsilon in [0.0, 0.05, 0.3, 1.0, 2.5] {
            let expected: f64 = grid.iter().map(|(loss, p)| p * -(epsilon - loss).min(0.0).exp_m1()).sum();
            let got = pair.delta(epsilon);
            assert!((got - expected).abs() < 2e-3 * expected + 1e-6, "{s} {lambda} {epsilon}: {got} {expected}");
        }
        for order in [1.1f64, 2.0, 5.0] {
            let moment = |t: f64| grid.iter().map(|(loss, p)| p * (t * loss).exp()).sum::<f64>().ln() / (order - 1.0);
            let expected = moment(order - 1.0).max(moment(-order));
            let got = pair.rdp(order);
            assert!((got / expected - 1.0).abs() < 1e-2, "{s} {lambda} {order}: {got} {expected}");
        }
    }
}

/// Returns the Gaussian mechanism's hockey-stick curve at any real `t`.
fn gaussian_curve(mu: f64, t: f64) -> f64 {
    let at = gaussian::delta(mu, t.abs()).unwrap();
    if t >= 0.0 { at } else { 1.0 - t.exp() + t.exp() * at }
}

/// Returns `int f` by Simpson's rule.
fn simpson(from: f64, to: f64, f: impl Fn(f64) -> f64) -> f64 {
    let steps = 20_000;
    let step = (to - from) / f64::from(steps);
    let weight = |i| if i == 0 || i == steps { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    (0..=steps).map(|i| weight(i) * f(from + step * f64::from(i))).sum::<f64>() * step / 3.0
}

/// Returns delta of removal and of addition beside Gaussian releases, by the densities of the pair's pieces.
fn by_densities(pair: Pair, g: f64, epsilon: f64) -> [f64; 2] {
    const FAR: f64 = 20.0;
    let curve = |loss: f64| gaussian_curve(g, epsilon - loss);
    match pair {
        Pair::Monotone(pair) => {
            let mu = pair.mu();
            let place = |y: f64| (y / mu - 0.5 * mu).clamp(-FAR, FAR);
            let positive = |y: f64| match pair.parameter(y) {
                Some(w) if y < pair.end() => pair.loss_at(w).0,
                _ => y + pair.shift().unwrap_or(0.0),
            };
            let loss = |z: f64| {
                let y = mu * (z + 0.5 * mu);
                if y <= 0.0 {
                    y
                } else if y <= pair.start() {
                    0.0
                } else {
                    positive(y)
                }
            };
            let cuts = [-FAR, place(0.0), place(pair.start()), place(pair.end().min(1e9)), FAR];
            let over = |f: &dyn Fn(f64) -> f64| -> f64 {
                // A hair inside, so that each piece has its own formula.
                let pieces = cuts.windows(2).filter(|piece| piece[0] < piece[1]);
                pieces.map(|piece| simpson(piece[0] + 1e-14, piece[1] - 1e-14, f)).sum()
            };
            [
                over(&|z| crate::normal::density(z) * curve(loss(z))),
                over(&|z| crate::normal::density(z) * (-loss(z)).exp() * curve(-loss(z))),
            ]
        }
        Pair::Sided(pair) => {
            let (mu, sides) = (pair.mu(), pair.outside(0.0) * 2.0);
            let density = |z: f64| sides * crate::normal::density(z);
            // Under Q the loss is negative beyond k, under P positive beyond l.
            let negative = |z: f64| -mu * (z + 0.5 * mu);
            let kinks = [pair.high(), pair.beyond(pair.loss_at(pair.high())), FAR];
            let mut kinks = kinks.to_vec();
            kinks.extend(pair.level_kinks());
            kinks.sort_by(f64::total_cmp);
            let beyond = |f: &dyn Fn(f64) -> f64| -> f64 {
                let pieces = kinks.windows(2).filter(|piece| piece[0] >= pair.high() && piece[0] < piece[1]);
                pieces.map(|piece| simpson(piece[0] + 1e-14, piece[1] - 1e-14, f)).sum()
            };
            [
                simpson(pair.low(), FAR + pair.low(), |z| density(z) * negative(z).exp() * curve(negative(z)))
                    + beyond(&|z| density(z) * curve(pair.loss_at(z))),
                simpson(pair.low(), FAR + pair.low(), |z| density(z) * curve(-negative(z)))
                    + beyond(&|z| density(z) * (-pair.loss_at(z)).exp() * curve(-pair.loss_at(z))),
            ]
        }
    }
}

/// Removal is as computed, and addition costs no more.
#[test]
fn beside_gaussians_by_densities() {
    for loss in ALL {
        for (s, lambda, g) in [(3.0, 1.0, 0.1), (1.0, 0.5, 0.4), (5.0, 0.02, 0.1), (1.0, 86.0, 4.5), (2.0, 3.0, 0.01)] {
            let pair = Pair::new(s, lambda, loss);
            let Some(releases) = BesideGaussians::new(pair, g) else {
                assert!(matches!(loss, MarginLoss::Softmax { .. }), "{loss:?} {s} {lambda}");
                continue;
            };
            for z in [0.0, 0.5, 2.0, 4.0] {
                let epsilon = z * g.hypot(1.0 / s);
                let [removal, addition] = by_densities(pair, g, epsilon);
                let got = releases.delta(epsilon);
                assert!(
                    got >= removal * (1.0 - 1e-9) && got <= removal * (1.0 + 1e-8),
                    "{loss:?} {s} {lambda} {g} {epsilon}: {got} {removal}"
                );
                assert!(
                    addition <= removal * (1.0 + 1e-8),
                    "{loss:?} {s} {lambda} {g} {epsilon}: {addition} {removal}"
                );
            }
        }
    }
}

/// With much regularisation the pair is the Gaussian mechanism's, whose composition has a closed form.
#[test]
fn beside_gaussians_a_gaussian_is_one_of_them() {
    for (mu, ratio) in
        [(0.3, 0.01), (0.01, 1.0), (2.0, 0.3), (1.0, 1e-3), (1e-3, 30.0), (20.0, 0.2), (70.0, 0.1), (1e-9, 1e7)]
    {
        let pair = Pair::new(1.0 / mu, 2.1 / (mu * mu), MarginLoss::Logistic);
        let g = mu * ratio;
        let releases = BesideGaussians::new(pair, g).unwrap();
        for z in [0.0, 1.0, 4.0, 10.0, 30.0] {
            let epsilon = (z * mu.hypot(g) + 0.25 * mu * mu) * if z == 0.0 { 0.0 } else { 1.0 };
            let exact = gaussian::delta(mu.hypot(g), epsilon).unwrap();
            let got = releases.delta(epsilon);
            assert!(got >= exact * (1.0 - 1e-14), "{mu} {ratio} {epsilon}: {got} below {exact}");
            assert!(got <= exact * (1.0 + 1e-9) + 1e-299, "{mu} {ratio} {epsilon}: {got} above {exact}");
        }
    }
}

/// Returns both ends of delta by discretised loss distributions: a pure guarantee that costs nearly nothing excludes the integral.
fn by_distributions(release: DpEvent, g: f64, epsilon: f64) -> (f64, f64) {
    let noise = DpEvent::Gaussian { std_dev: 1.0, sensitivity: g };
    let events = vec![release, noise, DpEvent::PureDp { epsilon: 1e-13 }];
    let bracket = PrivacyCurve::new(&DpEvent::Composed { events }).unwrap().delta(epsilon).unwrap();
    assert_eq!(bracket.engine, Engine::LossDistribution);
    (bracket.lower, bracket.upper)
}

#[test]
fn beside_gaussians_costs_what_the_loss_distributions_say() {
    for loss in ALL {
        for (s, lambda, ratio) in
            [(3.0, 1.0, 0.3), (8.0, 0.3, 0.05), (0.8, 20.0, 1.0), (40.0, 5.0, 3.0), (5.0, 0.02, 0.3), (1.0, 86.0, 4.5)]
        {
            let g = ratio / s;
            let release = DpEvent::ObjectivePerturbation { std_dev: s, regularization: lambda, loss };
            let Some(releases) = BesideGaussians::new(Pair::new(s, lambda, loss), g) else {
                assert!(matches!(loss, MarginLoss::Softmax { .. }), "{loss:?} {s} {lambda}");
                continue;
            };
            for z in [0.0, 1.0, 3.0, 6.0] {
                let epsilon = z * g.hypot(1.0 / s);
                let got = releases.delta(epsilon);
                let (lower, upper) = by_distributions(release.clone(), g, epsilon);
                assert!(
                    got <= upper * (1.0 + 1e-9) && got >= lower && got >= upper * (1.0 - 3e-3),
                    "{loss:?} {s} {lambda} {ratio} {epsilon}: {got} {lower} {upper}"
                );
                let found = releases.epsilon(got);
                assert!(releases.delta(found) <= got && found <= epsilon * (1.0 + 1e-9) + 1e-9, "{epsilon} {found}");
            }
        }
    }
}

#[test]
fn is_the_gaussian_mechanism_beyond_one_over_the_regularisation_and_never_below_it() {
    for loss in ALL {
        for (s, lambda) in [(0.5, 0.3), (2.0, 1.0), (10.0, 5.0), (100.0, 0.5), (1e4, 3.0)] {
            let pair = Pair::new(s, lambda, loss);
            for epsilon in [0.0, 0.1, 1.0 / lambda, 3.0 / lambda] {
                let exact = gaussian::delta(1.0 / s, epsilon).unwrap();
                let got = pair.delta(epsilon);
                assert!(got >= exact, "{loss:?} {s} {lambda} {epsilon}: {got} {exact}");
                if loss == MarginLoss::Logistic && epsilon * lambda >= 1.0 {
                    assert!(got <= exact * (1.0 + 1e-10) + 1e-300);
                }
            }
            let rho = pair.rho();
            for order in [1.0, 1.5, 8.0, 100.0, 1e5] {
                let got = pair.rdp(order);
                assert!(got >= 0.5 * order / (s * s) * (1.0 - 1e-9), "{loss:?} {s} {lambda} {order}: {got}");
                assert!(got.is_finite() && got <= rho * order, "{loss:?} {s} {lambda} {order}: {got}");
            }
        }
    }
}

#[test]
fn delta_is_convex_in_the_ratio_and_epsilon_inverts_it() {
    for loss in ALL {
        for (s, lambda) in [(1.0, 0.3), (4.0, 0.2), (30.0, 0.05)] {
            let pair = Pair::new(s, lambda, loss);
            let points: Vec<(f64, f64)> =
                (0..60).map(|i| 1.0 + 0.05 * f64::from(i)).map(|x| (x, pair.delta(x.ln()))).collect();
            for three in points.windows(3) {
                let middle = 0.5 * (three[0].1 + three[2].1);
                assert!(
                    three[1].1 <= middle * (1.0 + 1e-9) + 1e-14 && three[1].1 <= three[0].1 + 1e-14,
                    "{loss:?} {three:?}"
                );
            }
            for delta in [1e-3, 1e-8, 1e-15] {
                let epsilon = epsilon_of(delta, pair.mu(), |epsilon| pair.delta(epsilon));
                assert!(pair.delta(epsilon) <= delta && pair.delta(epsilon * (1.0 - 1e-6)) > delta, "{loss:?} {delta}");
            }
        }
    }
}

#[test]
fn composing_the_law_of_the_bound_would_cost_far_more() {
    // The mean of M, which k releases would cost k times, compared with the divergence at order 1 of the envelope.
    let (s, lambda) = (10.0, 1.0);
    let pair = Pair::new(s, lambda, MarginLoss::Logistic);
    let mean: f64 = logistic_grid(s, lambda, 0.0).iter().map(|(loss, p)| p * loss.max(0.0)).sum();
    assert!(mean > 3.0 * pair.rdp(1.0), "{mean} {}", pair.rdp(1.0));
}

#[test]
fn rho_approaches_the_gaussian_mechanism_as_the_regularisation_grows() {
    for epsilon in [0.1, 1.0, 3.0] {
        let target = crate::params::Epsilon::new(epsilon).unwrap();
        let s = gaussian::noise_multiplier(target, Delta::new(1e-8).unwrap()).unwrap().get();
        for (times, largest) in [(0.7, 1.95), (1.0, 1.48), (3.0, 1.037), (10.0, 1.003)] {
            let ratio = rho(s, times / epsilon, MarginLoss::Logistic).unwrap() * 2.0 * s * s;
            assert!((1.0..largest).contains(&ratio), "{epsilon} {times}: {ratio}");
        }
    }
}

#[test]
fn absurd_arguments_are_finite_or_infinite_and_never_nan() {
    for loss in ALL {
        for (s, lambda) in [(1e-3, 1.0), (1e-3, 1e-6), (1e8, 1e-8), (1e8, 1e8), (1.0, 1e-12)] {
            let pair = Pair::new(s, lambda, loss);
            for epsilon in [0.0, 1.0, 100.0] {
                let delta = pair.delta(epsilon);
                assert!((0.0..=1.0).contains(&delta), "{loss:?} {s} {lambda} {epsilon}: {delta}");
            }
            for order in [1.0, 2.0, 1e6] {
                assert!(pair.rdp(order) > 0.0, "{loss:?} {s} {lambda} {order}");
            }
        }
    }
}

/// If one direction's moment overflows, the other's is not used for both.
#[test]
fn the_moments_logarithm_is_convex_in_the_order_also_where_moments_overflow() {
    for loss in ALL {
        for (s, lambda) in [(200.0, 0.1), (1.0, 1e-3), (30.0, 1.0), (1e3, 1e-6)] {
            let pair = Pair::new(s, lambda, loss);
            let mut before = (0.0, 0.0);
            for step in 0..160 {
                let order = 1.0 + (-6.0 + 0.15 * f64::from(step)).exp();
                let divergence = pair.rdp(order);
                assert!(
                    divergence >= before.1 * (1.0 - 1e-2),
                    "{loss:?} {s} {lambda} {order}: {divergence} {before:?}"
                );
                before = (order, divergence);
            }
        }
    }
}

/// Returns the density of a softmax's minimiser over three classes and one feature, along the plane in which it varies: the mean
/// of the three weights is pure noise.
fn softmax_density(rows: &[(f64, usize, f64)], lambda: f64, s: f64, place: [f64; 2]) -> f64 {
    let axes = [
        [core::f64::consts::FRAC_1_SQRT_2, -core::f64::consts::FRAC_1_SQRT_2, 0.0],
        [1.0 / 6f64.sqrt(), 1.0 / 6f64.sqrt(), -2.0 / 6f64.sqrt()],
    ];
    let mut gradient = [lambda * place[0], lambda * place[1]];
    let mut curvature = [[lambda, 0.0], [0.0, lambda]];
    for &(x, class, count) in rows {
        let power = |j: usize| (x * (axes[0][j] * place[0] + axes[1][j] * place[1])).exp();
        let total = power(0) + power(1) + power(2);
        let p = [power(0) / total, power(1) / total, power(2) / total];
        let along = |axis: usize| (0..3).map(|j| axes[axis][j] * p[j]).sum::<f64>();
        for a in 0..2 {
            gradient[a] += count * x * (along(a) - axes[a][class]);
            for b in 0..2 {
                let second: f64 = (0..3).map(|j| axes[a][j] * axes[b][j] * p[j]).sum();
                curvature[a][b] += count * x * x * (second - along(a) * along(b));
            }
        }
    }
    let determinant = curvature[0][0] * curvature[1][1] - curvature[0][1] * curvature[1][0];
    crate::normal::density(gradient[0] / s) * crate::normal::density(gradient[1] / s) / (s * s) * determinant
}

#[test]
fn no_softmax_of_three_classes_exceeds_the_bound() {
    let mut random = Uniform(11);
    let mut largest: f64 = 0.0;
    for case in 0..14 {
        let (lambda, s) = (random.next(-1.0, 1.5).exp(), random.next(0.0, 1.5).exp());
        let epsilon = random.next(-1.5, 1.2).exp();
        let mut rows = vec![(1.0, 0, 1.0)];
        let others = if case % 3 == 0 { 0 } else { 3 };
        // Records of another class, many of them if the differing record is to keep a steep slope.
        let count = if case % 2 == 0 { 40.0 } else { 1.0 };
        rows.extend((0..others).map(|i| (random.next(0.2, 1.0), i % 3, if i % 3 == 1 { count } else { 1.0 })));
        let reach = (rows.iter().map(|row| row.2).sum::<f64>() + 8.0 * s) / lambda;
        let steps = 500;
        let step = 2.0 * reach / f64::from(steps);
        let (mut removal, mut addition, mut mass) = (0.0, 0.0, 0.0);
        for i in 0..steps {
            for j in 0..steps {
                let at = |i: i32| -reach + (f64::from(i) + 0.5) * step;
                let place = [at(i), at(j)];
                let with = softmax_density(&rows, lambda, s, place);
                let without = softmax_density(&rows[1..], lambda, s, place);
                mass += with * step * step;
                removal += (with - epsilon.exp() * without).max(0.0) * step * step;
                addition += (without - epsilon.exp() * with).max(0.0) * step * step;
            }
        }
        assert!((mass - 1.0).abs() < 1e-3, "{mass}");
        let bound = Pair::new(s, lambda, MarginLoss::Softmax { classes: 3 }).delta(epsilon);
        let truth = removal.max(addition);
        assert!(truth <= bound + 2e-4, "{lambda} {s} {epsilon}: {truth} above {bound}");
        if bound > 1e-2 && bound < 1.0 {
            largest = largest.max(truth / bound);
        }
    }
    assert!(largest > 0.3, "at most {largest} of the bound");
}

/// Without delta: the ratio of densities in one dimension, on a grid, compared with the bound, which is attained.
#[test]
fn pure_epsilon_bounds_every_ratio_of_densities() {
    let mut random = Uniform(3);
    for loss in LOSSES {
        let mut largest: f64 = 0.0;
        for case in 0..60 {
            let (lambda, scale) = (random.next(-2.0, 2.0).exp(), random.next(-0.7, 2.0).exp());
            let bound = pure_epsilon(scale, lambda, loss).unwrap();
            let mut rows = vec![(1.0, if case % 2 == 0 { 1.0 } else { -1.0 }, 1.0)];
            if case % 3 > 0 {
                rows.push((random.next(0.3, 1.0), random.next(-1.0, 1.0).signum(), random.next(0.0, 5.0).exp()));
            }
            let log_density = |rows: &[(f64, f64, f64)], w: f64| {
                let (mut gradient, mut hessian) = (lambda * w, lambda);
                for &(x, y, count) in rows {
                    let (by, margin) = if two_sided(loss) { (x, x * w - y) } else { (x * y, x * y * w) };
                    let (first, second) = derivatives(loss, margin);
                    gradient += count * by * first;
                    hessian += count * x * x * second;
                }
                hessian.ln() - gradient.abs() / scale
            };
            let reach = (rows.iter().map(|row| row.2).sum::<f64>() + 5.0) / lambda;
            for i in -4000..=4000 {
                let w = reach * f64::from(i) / 4000.0;
                let ratio = (log_density(&rows, w) - log_density(&rows[1..], w)).abs();
                assert!(ratio <= bound * (1.0 + 1e-9), "{loss:?} {lambda} {scale} {w}: {ratio} above {bound}");
                largest = largest.max(ratio / bound);
            }
        }
        // This one has its largest slope and curvature at different places.
        let attained = if matches!(loss, MarginLoss::BoundedSlope { .. }) { 0.85 } else { 0.99 };
        assert!(largest > attained, "{loss:?}: at most {largest} of the bound");
    }
    assert!(pure_epsilon(1.0, 1.0, MarginLoss::Softmax { classes: 1 }).is_err());
    let two = pure_epsilon(2.0, 3.0, MarginLoss::Softmax { classes: 2 }).unwrap();
    assert!((two - (0.5f64.sqrt() + (1.0f64 / 6.0).ln_1p())).abs() < 1e-12, "{two}");
}
