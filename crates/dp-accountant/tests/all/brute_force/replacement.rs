//! One record of a Poisson sample replaced, with Gaussian noise, by sums over the plane of outputs.

use dp_accountant::exact::PrivacyCurve;
use dp_accountant::rdp::RdpCurve;
use dp_accountant::{DpEvent, RdpOrder};

use super::finite::Random;

const EPSILONS: [f64; 4] = [0.0, 0.05, 0.4, 1.5];
const ORDERS: [f64; 4] = [1.2, 2.0, 3.7, 9.0];

/// A point of the plane.
type Point = [f64; 2];

/// The laws with the record, in either data set, in the plane.
struct Releases {
    rate: f64,
    std_dev: f64,
    contributions: [Point; 2],
}

/// Step of the sums, in standard deviations.
const STEP: f64 = 0.04;

impl Releases {
    /// Returns hockey-stick divergences and `ln E (dP/dQ)^(order - 1)` over `order - 1`, in one direction; the latter to many
    /// digits, because it is a sum of a smooth function over a grid.
    fn divergences(&self) -> (Vec<f64>, Vec<f64>) {
        let Self { rate, std_dev, contributions } = self;
        let scaled = contributions.map(|point| point.map(|coordinate| coordinate / std_dev));
        // The tilted law of the largest order extends that far.
        let reach = 8.0 + 10.0 * scaled.iter().flatten().fold(0.0f64, |most, coordinate| most.max(coordinate.abs()));
        let count = (reach / STEP).ceil() as i64;
        let (mut sticks, mut moments) = (vec![0.0; EPSILONS.len()], vec![0.0; ORDERS.len()]);
        let odds = EPSILONS.map(f64::exp);
        for (i, j) in (-count..=count).flat_map(|i| (-count..=count).map(move |j| (i, j))) {
            let (x, y) = (i as f64 * STEP, j as f64 * STEP);
            let base = (-0.5 * (x * x + y * y)).exp() * STEP * STEP / (2.0 * core::f64::consts::PI);
            let ratio = |[a, b]: Point| 1.0 - rate + rate * (x * a + y * b - 0.5 * (a * a + b * b)).exp();
            let (p, q) = (ratio(scaled[0]), ratio(scaled[1]));
            sticks.iter_mut().zip(odds).for_each(|(sum, odds)| *sum += base * (p - odds * q).max(0.0));
            let loss = (p / q).ln();
            moments.iter_mut().zip(ORDERS).for_each(|(sum, order)| *sum += base * p * ((order - 1.0) * loss).exp());
        }
        let renyi = moments.into_iter().zip(ORDERS).map(|(moment, order)| moment.ln() / (order - 1.0)).collect();
        (sticks, renyi)
    }

    fn event(&self, distance: f64, radius: f64) -> DpEvent {
        DpEvent::PoissonSampledReplacement { sampling_rate: self.rate, std_dev: self.std_dev, distance, radius }
    }
}

/// Two points of norm at most `radius`, at most 1 apart.
fn two_points(random: &mut Random, radius: f64) -> [Point; 2] {
    loop {
        let mut point = || [random.between(-radius, radius), random.between(-radius, radius)];
        let points = [point(), point()];
        let [[a, b], [c, d]] = points;
        if a.hypot(b) <= radius && c.hypot(d) <= radius && (a - c).hypot(b - d) <= 1.0 {
            return points;
        }
    }
}

/// Tolerance for hockey-stick divergences, whose integrand has a kink; relative and absolute.
const STICK: (f64, f64) = (1e-3, 1e-6);

#[test]
fn no_two_contributions_are_above_the_curve() {
    let mut random = Random::new(8);
    for round in 0..48 {
        let radius = [0.5, 0.607, 0.8, 1.0][round % 4];
        let rate = [0.01, 0.2, 0.6, 0.95][round / 4 % 4];
        let contributions = two_points(&mut random, radius);
        let releases = Releases { rate, std_dev: random.between(0.3, 2.0), contributions };
        let event = releases.event(1.0, radius);
        let (curve, renyi) = (PrivacyCurve::new(&event).unwrap(), RdpCurve::new(&event).unwrap());
        let (sticks, divergences) = releases.divergences();
        for (epsilon, stick) in EPSILONS.into_iter().zip(sticks) {
            let bound = curve.delta(epsilon).unwrap().upper;
            assert!(stick <= bound * (1.0 + STICK.0) + STICK.1, "{contributions:?} {radius}: {stick} > {bound}");
        }
        for (order, divergence) in ORDERS.into_iter().zip(divergences) {
            let bound = renyi.at(RdpOrder::new(order).unwrap());
            assert!(divergence <= bound * (1.0 + 1e-9) + 1e-12, "{contributions:?}: {divergence} > {bound} at {order}");
        }
    }
}

#[test]
fn the_farthest_points_on_one_line_attain_it() {
    for (round, radius) in [0.5, 0.607, 0.8, 1.0, 0.5, 0.75].into_iter().enumerate() {
        let (rate, std_dev) = ([0.01, 0.3, 0.9][round % 3], [0.6, 1.7][round % 2]);
        let direction: f64 = 0.7;
        let along = |length: f64| [length * direction.cos(), length * direction.sin()];
        let releases = Releases { rate, std_dev, contributions: [along(radius), along(radius - 1.0)] };
        let event = releases.event(1.0, radius);
        let curve = PrivacyCurve::new(&event).unwrap();
        let (sticks, divergences) = releases.divergences();
        for (epsilon, stick) in EPSILONS.into_iter().zip(sticks) {
            let bound = curve.delta(epsilon).unwrap();
            assert!(bound.upper - bound.lower <= 1e-9 * bound.upper, "{bound:?}");
            assert!((stick - bound.upper).abs() <= STICK.0 * bound.upper + STICK.1, "{radius}: {stick} {bound:?}");
        }
        for (order, divergence) in ORDERS.into_iter().zip(divergences) {
            let bound = RdpCurve::new(&event).unwrap().at(RdpOrder::new(order).unwrap());
            assert!(divergence <= bound * (1.0 + 1e-9), "{radius}: {divergence} {bound}");
            // The curve of a larger radius is not attained by one pair, but is near one.
            let ratio = if radius == 0.5 { 1.0 + 1e-8 } else { 1.5 };
            assert!(bound <= divergence * ratio, "{radius} {rate}: {divergence} {bound} at {order}");
        }
    }
}

/// The radius matters: for contributions as far from zero as from each other the curve of clipped ones is no bound.
#[test]
fn the_curve_of_clipped_contributions_does_not_hold_for_others() {
    let releases = Releases { rate: 0.05, std_dev: 0.5, contributions: [[1.0, 0.0], [0.0, 0.0]] };
    let curve = PrivacyCurve::new(&releases.event(1.0, 0.5)).unwrap();
    let (sticks, _) = releases.divergences();
    assert!(sticks[2] > 5.0 * curve.delta(EPSILONS[2]).unwrap().upper);
}

/// The record's second contribution depends on the first outcome: which of its versions is farther away.
#[test]
fn two_steps_of_which_the_second_sees_the_first() {
    let (rate, sigma, h) = (0.3, 0.8, 0.02);
    let density = |x: f64, mean: f64| {
        (-0.5 * ((x - mean) / sigma).powi(2)).exp() / (sigma * (2.0 * core::f64::consts::PI).sqrt())
    };
    let law = |x: f64, mean: f64| rate * density(x, mean) + (1.0 - rate) * density(x, 0.0);
    for radius in [0.5, 0.8, 1.0] {
        let step = DpEvent::PoissonSampledReplacement { sampling_rate: rate, std_dev: sigma, distance: 1.0, radius };
        let curve = PrivacyCurve::new(&DpEvent::SelfComposed { event: Box::new(step), count: 2 }).unwrap();
        let pairs = [(radius, radius - 1.0), (1.0 - radius, -radius)];
        for (threshold, epsilon) in [(-1.0, 0.05), (0.3, 0.05), (0.8, 0.4), (2.0, 0.4)] {
            let mut stick = 0.0;
            for i in -300..=300 {
                let x = f64::from(i) * h;
                let (p, q) = (law(x, radius), law(x, radius - 1.0));
                let (a, b) = pairs[usize::from(x > threshold)];
                for j in -300..=300 {
                    let y = f64::from(j) * h;
                    stick += (p * law(y, a) - f64::exp(epsilon) * q * law(y, b)).max(0.0) * h * h;
                }
            }
            let bound = curve.delta(epsilon).unwrap().upper;
            assert!(stick <= bound * (1.0 + 1e-3), "{radius} at {epsilon}: {stick} > {bound}");
            assert!(stick > 0.7 * bound, "{radius} at {epsilon}: {stick} against {bound}");
        }
    }
}
