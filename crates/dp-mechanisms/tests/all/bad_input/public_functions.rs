//! Accessors, conversions and post-processing on any number: a result or an error.

use dp_accountant::{Epsilon, NoiseMultiplier, ZeroOut};
use dp_mechanisms::clip::{
    AdaptiveClipping, AutomaticClipping, ClippingNorm, ClippingRule, ExactSum, LayeredClipping, RankOneSum, RowGrid,
    clip_coefficient, clip_l2,
};
use dp_mechanisms::continual::{Factor, Participation, TreeAggregation};
use dp_mechanisms::grid::Grid;
use dp_mechanisms::{Gaussian, L2Sensitivity, LInfSensitivity, LaplaceBall};

use super::{COUNTS, EXTREME, numbers};

#[test]
fn dimensions() {
    for dim in COUNTS {
        let fits = (1..=1 << 32).contains(&dim);
        for x in EXTREME {
            let (l2, largest) =
                (L2Sensitivity::<ZeroOut>::new(x).unwrap(), LInfSensitivity::<ZeroOut>::new(x).unwrap());
            for converted in [l2.to_l1(dim).map(|l1| l1.get()), largest.to_l2(dim).map(|l2| l2.get())] {
                assert!(converted.is_err() || (fits && converted.is_ok_and(|converted| converted >= x)), "{x} {dim}");
            }
            assert!(largest.to_l1(dim).is_err() || fits, "{x} {dim}");
        }
        let one = L2Sensitivity::<ZeroOut>::new(1.0).unwrap();
        let ball = LaplaceBall::new(one, Epsilon::new(1.0).unwrap(), dim);
        assert_eq!(ball.is_ok(), fits, "{dim}");
        if let Ok(ball) = ball {
            assert!(ball.log_density_at_0().is_finite() && ball.mean_squared_norm().is_finite());
            for x in numbers() {
                let probability = ball.norm_cdf(x);
                assert!(x.is_nan() || (0.0..=1.0).contains(&probability), "dim {dim}: cdf({x}) = {probability}");
                let quantile = ball.norm_quantile(x);
                assert_eq!(quantile.is_ok(), x > 0.0 && x < 1.0, "dim {dim}: quantile({x}) = {quantile:?}");
                assert!(quantile.is_err() || quantile.is_ok_and(|norm| norm >= 0.0), "dim {dim}: quantile({x})");
            }
        }
    }
}

#[test]
fn grids() {
    for x in numbers() {
        for bits in [0, 19, 20, 30, 40, 41, u32::MAX] {
            if let Ok(grid) = Grid::new(x, bits) {
                assert!((20..=40).contains(&bits) && grid.step() > 0.0 && grid.step() < x, "{x} {bits}");
            }
            let gaussian = Gaussian::from_std_dev(L2Sensitivity::<ZeroOut>::new(1.0).unwrap(), x)
                .and_then(|gaussian| gaussian.with_grid_bits(bits));
            assert!(gaussian.is_err() || Grid::new(x, bits).is_ok(), "{x} {bits}");
        }
    }
}

#[test]
fn clipping() {
    for bound in EXTREME.into_iter().filter_map(|x| ClippingNorm::new(x).ok()) {
        for x in numbers() {
            for dim in [0, 1, 2, usize::MAX] {
                let coefficient = clip_coefficient(x, bound, dim);
                assert!((0.0..=1.0).contains(&coefficient), "{bound:?} {x} {dim}: {coefficient}");
            }
            for y in numbers() {
                let mut v = [x, y, -x, 0.0];
                clip_l2(&mut v, bound);
                let largest = v.iter().fold(0.0f64, |largest, entry| largest.max(entry.abs()));
                let norm = if largest > 0.0 {
                    largest * v.iter().map(|entry| (entry / largest).powi(2)).sum::<f64>().sqrt()
                } else {
                    0.0
                };
                assert!(norm <= bound.get() * (1.0 + 1e-15), "{bound:?} {x} {y}: {v:?}");
            }
        }
    }
}

/// Returns the norm of three stored numbers, without over- or underflow.
fn norm(v: [f64; 3]) -> f64 {
    let largest = v.iter().fold(0.0f64, |largest, entry| largest.max(entry.abs()));
    if largest == 0.0 { 0.0 } else { largest * v.iter().map(|entry| (entry / largest).powi(2)).sum::<f64>().sqrt() }
}

#[test]
fn clipping_by_other_rules() {
    for bound in EXTREME.into_iter().filter_map(|x| ClippingNorm::new(x).ok()) {
        let layers = LayeredClipping::new(vec![(1, bound), (2, bound)]);
        for x in numbers() {
            let automatic = AutomaticClipping::new(bound, x);
            for y in numbers() {
                if let Ok(automatic) = automatic {
                    let mut v = [y, -y, 1.0];
                    automatic.clip(&mut v);
                    assert!(norm(v) <= bound.get() * (1.0 + 1e-15), "{automatic:?} {y}: {v:?}");
                    let coefficient = automatic.coefficient(y, 3);
                    assert!(coefficient >= 0.0 && coefficient.is_finite(), "{automatic:?} {y}: {coefficient}");
                }
            }
            if let Ok(layers) = &layers {
                let mut v = [x, -x, 1.0];
                layers.clip(&mut v).unwrap();
                assert!(norm(v) <= layers.joint_norm() * (1.0 + 1e-15), "{bound:?} {x}: {v:?}");
                assert!(layers.clip(&mut [x; 2]).is_err() && layers.clip(&mut [x; 4]).is_err());
            }
        }
    }
    assert!(LayeredClipping::new(vec![]).is_err());
    let one = ClippingNorm::new(1.0).unwrap();
    assert!(LayeredClipping::new(vec![(0, one)]).is_err() && LayeredClipping::new(vec![(usize::MAX, one)]).is_err());
}

#[test]
fn adaptive_clipping() {
    let build = |x: [f64; 5]| {
        AdaptiveClipping::<ZeroOut>::new(x[0], x[1], x[2], NoiseMultiplier::new(x[3])?, x[4])
            .and_then(|clipping| clipping.start(ClippingNorm::new(1.0)?).map(|_| clipping))
    };
    let good = [0.5, 0.2, 100.0, 1.0, 10.0];
    assert!(build(good).is_ok());
    for (i, name) in
        ["quantile", "rate", "expected number of records", "noise multiplier", "standard deviation of the count"]
            .into_iter()
            .enumerate()
    {
        for x in numbers() {
            let mut changed = good;
            changed[i] = x;
            match build(changed) {
                Ok(clipping) => {
                    assert!(x > 0.0 && x.is_finite(), "{changed:?}");
                    assert!(clipping.gradient_multiplier() >= changed[3], "{changed:?}");
                    for fraction in numbers() {
                        let next = clipping.next_norm(ClippingNorm::new(1.0).unwrap(), fraction).get();
                        assert!(next > 0.0 && next.is_finite(), "{changed:?} {fraction}: {next}");
                    }
                }
                Err(error) if x.is_nan() => assert!(error.to_string().contains(name), "{changed:?}: {error}"),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

/// Sums on grids of any step and any number of records: each refuses, or accepts the extremes and stays finite.
#[test]
fn exact_sums() {
    for bound in EXTREME.into_iter().filter_map(|x| ClippingNorm::new(x).ok()) {
        for step in numbers().chain([0.5, 2f64.powi(-30), 2f64.powi(-1000), 2f64.powi(900)]) {
            for records in COUNTS {
                let Ok(mut sum) = ExactSum::<ZeroOut>::new(3, ClippingRule::from(bound), step, records) else {
                    continue;
                };
                for x in numbers() {
                    let _ = sum.add(&[x, -x, 1.0]);
                }
                assert!(sum.sensitivity().get() >= bound.get(), "{bound:?} {step} {records}");
                let _ = sum.finish();
            }
        }
        for bits in [0, 1, 16, 52, 53, u32::MAX] {
            let Ok(grid) = RowGrid::new(bound, bits) else { continue };
            for records in COUNTS {
                let Ok(mut sum) = RankOneSum::<ZeroOut>::finest(3, grid, bound, records) else { continue };
                for x in numbers() {
                    let mut row = [x, -x, 1.0];
                    if let Ok(row) = grid.truncate(&mut row) {
                        let _ = sum.add(x, row);
                    }
                }
                assert!(sum.sensitivity().get() >= bound.get(), "{bound:?} {bits} {records}");
                let _ = sum.finish();
            }
        }
    }
    let one = ClippingNorm::new(1.0).unwrap();
    for dim in [0, (1 << 32) + 1, usize::MAX] {
        assert!(ExactSum::<ZeroOut>::new(dim, ClippingRule::from(one), 2f64.powi(-30), 10).is_err(), "{dim}");
    }
}

#[test]
fn streams() {
    let one = L2Sensitivity::<ZeroOut>::new(1.0).unwrap();
    for steps in COUNTS.into_iter().chain([1 << 40, (1 << 40) + 1]) {
        for (most, separation) in [(1, 1), (0, 1), (1, 0), (3, 2), (u64::MAX, 1), (u64::MAX, u64::MAX)] {
            let Ok(participation) = Participation::repeated(most, separation) else {
                assert!(most == 0 || separation == 0);
                continue;
            };
            if let Ok(tree) = TreeAggregation::from_std_dev(one, 1, steps, participation, 1.0) {
                assert!((1..=1 << 40).contains(&steps), "{steps}");
                assert!(tree.levels() >= 1 && tree.sensitivity().get() >= 1.0, "{steps} {participation:?}");
                for t in COUNTS {
                    assert!(tree.error(t) >= 0.0, "{steps} {t}");
                }
            }
        }
    }
    for dim in [0, (1 << 32) + 1, usize::MAX] {
        assert!(TreeAggregation::from_std_dev(one, dim, 4, Participation::once(), 1.0).is_err(), "{dim}");
    }
    for steps in [0, usize::MAX] {
        assert!(Factor::square_root(steps).is_err() && Factor::banded_square_root(steps, 3).is_err());
    }
    for x in numbers() {
        for coefficients in [vec![x], vec![1.0, x], vec![x, x, x]] {
            if let Ok(factor) = Factor::toeplitz(4, &coefficients) {
                let bound = factor.sensitivity(Participation::once()).unwrap();
                assert!(bound.value > 0.0 && bound.value.is_finite(), "{coefficients:?}");
            }
        }
        if let Ok(factor) = Factor::lower_triangular(&[vec![x], vec![x, 1.0]]) {
            assert!(factor.sensitivity(Participation::once()).unwrap().value.is_finite(), "{x}");
        }
    }
}
