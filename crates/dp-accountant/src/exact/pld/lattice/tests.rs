use std::sync::Arc;

use super::*;
use crate::exact::leaf_law::law_of;
use crate::finite_pair::FinitePair;
use crate::leaves::Leaf;
use crate::loss_law::Direction;

/// Returns the hockey-stick curve of a law on a grid with its losses shifted by `shift`.
fn curve(law: &Masses, step: f64, shift: f64, epsilon: f64) -> f64 {
    let part = |(k, mass): (i64, &f64)| mass * -(epsilon - shift - k as f64 * step).min(0.0).exp_m1();
    law.infinite + (law.first..).zip(&law.finite).map(part).sum::<f64>()
}

/// Returns the law's own curve.
fn true_curve(law: &dyn LossLaw, epsilon: f64) -> f64 {
    let tails = law.tails(epsilon);
    tails.p_above - epsilon.exp() * tails.q_above
}

fn known(leaf: &Leaf, direction: Direction) -> Arc<dyn LossLaw> {
    match law_of(leaf).map(|law| law.directed(direction)) {
        Some(Law::Known(law)) => law,
        other => panic!("{leaf:?}: {other:?}"),
    }
}

fn leaves() -> Vec<Leaf> {
    let sampled = |rate, base| Leaf::Poisson { rate, base: vec![(base, 1)] };
    let pair = FinitePair::new(&[0.5, 0.25, 0.125, 0.125, 0.0], &[0.125, 0.25, 0.25, 0.25, 0.125]).unwrap();
    vec![
        Leaf::Gaussian { mu: 0.7 },
        Leaf::Laplace { x: 0.9 },
        Leaf::Pure { epsilon: 0.8 },
        Leaf::Approximate { epsilon: 0.5, delta: 1e-3 },
        Leaf::RandomizedResponse { buckets: 6, noise: 0.5 },
        Leaf::DiscreteLaplace { scale: 3.0, sensitivity: 4 },
        Leaf::DiscreteGaussian { scale: 2.5, sensitivity: 2.0, dim: 1 },
        Leaf::PoissonGaussian { rate: 0.2, mu: 1.5 },
        sampled(0.3, Leaf::Laplace { x: 1.2 }),
        sampled(0.05, Leaf::Pair(pair.clone())),
        sampled(0.5, Leaf::DiscreteLaplace { scale: 2.0, sensitivity: 3 }),
        Leaf::Pair(pair),
    ]
}

/// Each law lies between its two discretisations, and close to them, at every threshold, on the grid or not.
#[test]
fn laws_lie_between() {
    for leaf in leaves() {
        for direction in [Direction::Remove, Direction::Add] {
            let law = known(&leaf, direction);
            for (step, keeps_rare) in [(0.1, false), (0.1, true), (0.01, false), (0.003_7, false), (0.003_7, true)] {
                let reach = (6.0 / step) as i64;
                let grid = Grid { offset: 0.0, step, least: -reach, largest: reach, keeps_rare };
                let found = Discretised::new(&Law::Known(law.clone()), &grid);
                let lower = found.lower.unwrap();
                assert!(found.shift < 1e-12);
                for i in -400..400 {
                    let epsilon = f64::from(i) * 0.010_7;
                    let truth = true_curve(law.as_ref(), epsilon);
                    let above = curve(&found.upper, step, found.shift, epsilon);
                    let below = curve(&lower, step, -found.shift, epsilon);
                    // The sums here have their own rounding.
                    assert!(above >= truth - 1e-14, "{leaf:?} {direction:?} {step} {epsilon}: {above} < {truth}");
                    assert!(below <= truth + 1e-14, "{leaf:?} {direction:?} {step} {epsilon}: {below} > {truth}");
                    let width = step + 1e-6;
                    assert!(above - below < width, "{leaf:?} {direction:?} {step} {epsilon}: {above} - {below}");
                }
            }
        }
    }
}

/// The two curves of a smooth law differ by the order of the square of the step.
#[test]
fn smooth_laws_converge_quadratically() {
    for leaf in [Leaf::Gaussian { mu: 1.0 }, Leaf::PoissonGaussian { rate: 0.3, mu: 1.0 }] {
        let law = Law::Known(known(&leaf, Direction::Remove));
        let width = |step: f64| {
            let reach = (8.0 / step) as i64;
            let grid = Grid { offset: 0.0, step, least: -reach, largest: reach, keeps_rare: false };
            let found = Discretised::new(&law, &grid);
            let lower = found.lower.unwrap();
            let at =
                |i| curve(&found.upper, step, 0.0, 0.3 * f64::from(i)) - curve(&lower, step, 0.0, 0.3 * f64::from(i));
            (0..10).map(at).fold(0.0, f64::max)
        };
        let (coarse, fine) = (width(0.02), width(0.01));
        assert!(fine < 0.35 * coarse && fine < 3e-5, "{leaf:?}: {coarse} {fine}");
    }
}

/// Nearly all mass lies just below a point of the grid: its bin reaches the point only together with all rare large losses.
#[test]
fn rare_losses_are_kept() {
    for leaf in [Leaf::PoissonGaussian { rate: 1e-3, mu: 2.0 }, Leaf::PoissonGaussian { rate: 1e-6, mu: 3.0 }] {
        let law = known(&leaf, Direction::Remove);
        let step = 0.05;
        let below = |keeps_rare: bool, offset: f64, epsilon: f64| {
            let grid = Grid { offset, step, least: -20, largest: 400, keeps_rare };
            let found = Discretised::new(&Law::Known(law.clone()), &grid);
            curve(&found.lower.unwrap(), step, offset - found.shift, epsilon)
        };
        let offset = super::super::range::bulk(&Law::Known(law.clone()), step);
        assert!(offset < 0.0 && offset >= law.support().0, "{leaf:?}: {offset}");
        for epsilon in [0.5, 1.0, 2.0, 4.0] {
            let truth = true_curve(law.as_ref(), epsilon);
            let (usual, kept) = (below(false, 0.0, epsilon), below(true, offset, epsilon));
            assert!(
                usual < 0.1 * truth && (0.99 * truth..=truth).contains(&kept),
                "{leaf:?} {epsilon}: {usual} {kept} {truth}"
            );
        }
    }
}

/// Mass outside of the grid is charged: to infinity above, to nothing below.
#[test]
fn truncation_is_charged() {
    let law = known(&Leaf::Gaussian { mu: 1.0 }, Direction::Remove);
    let grid = Grid { offset: 0.0, step: 0.05, least: -20, largest: 30, keeps_rare: false };
    let found = Discretised::new(&Law::Known(law.clone()), &grid);
    let lower = found.lower.unwrap();
    assert!(found.upper.infinite >= law.tails(1.5).p_above && lower.infinite == 0.0);
    for i in -60..60 {
        let epsilon = 0.05 * f64::from(i) + 0.012;
        let truth = true_curve(law.as_ref(), epsilon);
        assert!(curve(&found.upper, 0.05, found.shift, epsilon) >= truth, "{epsilon}");
        assert!(curve(&lower, 0.05, -found.shift, epsilon) <= truth, "{epsilon}");
    }
}

/// A Gaussian's curve, given as a bound: its upper law is that of the tails.
#[derive(Debug)]
struct GaussianCurve(f64);

impl DominatingCurve for GaussianCurve {
    fn delta(&self, loss: f64) -> f64 {
        let (centre, half) = (loss / self.0, 0.5 * self.0);
        crate::normal::upper_tail(centre - half) - loss.exp() * crate::normal::upper_tail(centre + half)
    }

    fn shortfall(&self, loss: f64) -> f64 {
        loss.exp() * self.delta(-loss)
    }

    fn support(&self) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }

    fn relative_error(&self) -> f64 {
        1e-13
    }
}

#[test]
fn curves_become_laws() {
    let grid = Grid { offset: 0.0, step: 0.02, least: -150, largest: 150, keeps_rare: false };
    let by_curve = Discretised::new(&Law::Bounded(Arc::new(GaussianCurve(0.5))), &grid);
    assert!(by_curve.lower.is_none());
    let law = known(&Leaf::Gaussian { mu: 0.5 }, Direction::Remove);
    for i in -140..140 {
        let epsilon = 0.02 * f64::from(i) + 0.003;
        let truth = true_curve(law.as_ref(), epsilon);
        let above = curve(&by_curve.upper, 0.02, by_curve.shift, epsilon);
        assert!(above >= truth && above < truth + 1e-4, "{epsilon}: {above} {truth}");
    }
    let reversed = Discretised::new(&Law::Bounded(Arc::new(GaussianCurve(0.5))).directed(Direction::Add), &grid);
    for (one, other) in by_curve.upper.finite.iter().zip(&reversed.upper.finite) {
        assert!((one - other).abs() < 1e-9);
    }
}

proptest::proptest! {
    /// Arbitrary pairs on arbitrary grids, sampled or not, in both directions.
    #[test]
    fn arbitrary_pairs_lie_between(
        weights in proptest::collection::vec((0.0f64..1.0, 0.0f64..1.0), 2..7),
        step in 0.001f64..0.5,
        rate in 0.01f64..1.0,
        add in proptest::bool::ANY,
        offset in -1.0f64..1.0,
        keeps_rare in proptest::bool::ANY,
    ) {
        // Masses that are multiples of 2^-40 sum to 1 exactly.
        let unit = (1u64 << 40) as f64;
        let law = |which: fn(&(f64, f64)) -> f64| -> Vec<f64> {
            let total: f64 = weights.iter().map(which).sum::<f64>() + 1.0;
            let mut masses: Vec<f64> = weights.iter().map(|w| (which(w) / total * unit).floor() / unit).collect();
            masses.push(1.0 - masses.iter().sum::<f64>());
            masses
        };
        let pair = FinitePair::new(&law(|w| w.0), &law(|w| w.1)).unwrap();
        let leaf = Leaf::Poisson { rate: rate.min(0.999), base: vec![(Leaf::Pair(pair), 1)] };
        let law = known(&leaf, if add { Direction::Add } else { Direction::Remove });
        let (least, largest) = law.support();
        let index = |loss: f64| (loss - offset) / step;
        let (least, largest) = (index(least).floor() as i64 - 1, index(largest).ceil() as i64 + 1);
        let grid = Grid { offset, step, least, largest, keeps_rare };
        let found = Discretised::new(&Law::Known(law.clone()), &grid);
        let lower = found.lower.unwrap();
        for i in -30..30 {
            let epsilon = f64::from(i) * 0.1;
            let truth = true_curve(law.as_ref(), epsilon);
            let above = curve(&found.upper, step, found.shift + offset, epsilon);
            let below = curve(&lower, step, offset - found.shift, epsilon);
            proptest::prop_assert!(above >= truth - 1e-14 && below <= truth + 1e-14, "{epsilon}: {below} {truth} {above}");
        }
    }
}
