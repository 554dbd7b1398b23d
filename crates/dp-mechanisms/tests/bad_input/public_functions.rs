//! Accessors, conversions and post-processing on any number: an answer or an error.

use dp_accountant::{Epsilon, ZeroOut};
use dp_mechanisms::clip::{ClippingNorm, clip_coefficient, clip_l2};
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
