use dp_accountant::ReplaceOne;
use dp_mechanisms::{Bounded, L2Sensitivity, LaplaceBall, Mechanism, SeededRng};
use proptest::prelude::*;

use super::*;

#[test]
fn between_grid_points() {
    let grid = ReleaseLattice::on_grid(0.25);
    assert_eq!(grid.check(&[0.0, -0.0, 1.5, -1e300]), Ok(()));
    let (index, weight, step) = (1, 0.3, 0.25);
    assert_eq!(grid.check(&[0.5, 0.3]), Err(OffLattice::BetweenGridPoints { index, weight, step }));
    let two = grid.clone().stacked(2);
    assert_eq!(two.check(&[0.5, 0.5, 0.75, 0.3]).unwrap_err().to_string().split(' ').nth(1), Some("3"));
    assert!(matches!(two.check(&[0.5]), Err(OffLattice::Models { weights: 1, models: 2 })));
    assert!(ReleaseLattice::on_grid(1e-300).in_precision(FloatKind::F32).step().unwrap() > 1e-46);
    assert_eq!(ReleaseLattice::on_grid(1e-300).step(), Some(1e-300));
    assert!(ReleaseLattice::on_grid(0.25).is_checked() && ReleaseLattice::ANYWHERE.within(Some(1.0)).is_checked());
    assert!(
        ReleaseLattice::ORIGIN.check(&[0.0, -0.0]).is_ok() && ReleaseLattice::ORIGIN.check(&[0.0, 1e-300]).is_err()
    );
}

#[test]
fn a_projection_leaves_the_grid_for_the_sphere() {
    let ball = ReleaseLattice::on_grid(0.25).within(Some(2.0));
    for inside in [[0.5, 0.25], [2.0, 0.0], [1.2, 1.6]] {
        assert_eq!(ball.check(&inside), Ok(()), "{inside:?}");
    }
    for outside in [[0.3, 0.25], [1.5, 1.5], [1.2, 1.6000001]] {
        assert!(ball.check(&outside).is_err(), "{outside:?}");
    }
    // A projection rounds slightly: not by a tenth or a billionth of the radius.
    let (long, short) = (2.0 * (1.0 + 4.0 * f64::EPSILON), 2.0 * (1.0 - 4.0 * f64::EPSILON));
    for (norm, fits) in [(long, true), (short, true), (2.2, false), (2.0 + 1e-9, false), (2.0 - 1e-9, false)] {
        assert_eq!(ball.check(&[0.6 * norm, 0.8 * norm]).is_ok(), fits, "{norm}");
    }
    // A mean of points in the ball, with unknown rounding.
    let mean = ReleaseLattice::ANYWHERE.within(Some(1.0));
    assert!(mean.check(&[1.0 + 1e-7]).is_ok() && mean.check(&[1.1]).is_err() && mean.check(&[0.3]).is_ok());
    assert_eq!((mean.radius(), ReleaseLattice::ANYWHERE.radius()), (Some(1.0), None));
    // Each model is projected separately.
    assert_eq!(ball.stacked(2).check(&[1.5, 0.0, 0.0, 1.5]), Ok(()));
}

#[test]
fn singles() {
    let single = ReleaseLattice::ANYWHERE.in_precision(FloatKind::F32);
    assert!(single.is_checked() && !ReleaseLattice::ANYWHERE.is_checked());
    assert_eq!(single.check(&[f64::from(0.1f32), -3.0]), Ok(()));
    assert_eq!(single.check(&[0.1]), Err(OffLattice::NotSingle { index: 0, weight: 0.1 }));
}

#[test]
fn steps_along_axes() {
    let decaying = ReleaseLattice::steps(vec![0.5, 0.475, 0.45125]);
    for reached in [[0.5 - 0.475, 0.45125], [0.0, -0.5 + 0.475 + 0.45125], [0.475, -0.5]] {
        assert_eq!(decaying.check(&reached), Ok(()), "{reached:?}");
    }
    for missed in [[0.3, 0.0], [0.5, 0.46], [1.0, 1.0]] {
        assert!(decaying.check(&missed).is_err(), "{missed:?}");
    }
    assert!(decaying.check(&[0.1, 0.1, 0.1, 0.1]).is_err(), "more weights moved than rounds");
    // Refused for one reason each: three weights by two steps; twice the longer step; an error above the rounding of doubles.
    let two = ReleaseLattice::steps(vec![1.0, 3.0]);
    for reached in [[1.0, 3.0, 0.0], [0.0, -2.0, 0.0], [0.0, 0.0, 4.0]] {
        assert_eq!(two.check(&reached), Ok(()), "{reached:?}");
    }
    for missed in [[1.0, 1.0, 1.0], [3.0, 2.0, 0.0], [3.0, 3.0, 0.0]] {
        assert!(two.check(&missed).is_err(), "{missed:?}");
    }
    let doubles = ReleaseLattice::steps(vec![0.1, 0.3]);
    assert!(doubles.check(&[0.1 + 0.3]).is_ok() && doubles.check(&[0.1 + 0.3 - 1e-9]).is_err());
    let equal = ReleaseLattice::steps(vec![0.1; 30]);
    assert_eq!(equal.check(&[0.1 + 0.1 + 0.1, -0.1]), Ok(()));
    assert!(equal.check(&[0.1, 0.1, 0.1]).is_err(), "an odd number of steps");
    assert!(equal.check(&[0.25, 0.05]).is_err());
}

proptest! {
    /// The releases of a mechanism are on its recipe's grid, in either precision.
    #[test]
    fn releases_are_where_they_are_said_to_be(seed: u64, scale in 1e-12..1e6f64, value in -3.0..3.0f64) {
        let sensitivity = L2Sensitivity::<ReplaceOne>::new(1.0).unwrap();
        let ball = LaplaceBall::from_scale(sensitivity, scale, 1).unwrap();
        let grid = ReleaseLattice::on_grid(ball.grid().step());
        let mut rng = SeededRng::new(seed);
        let mut release = |value| {
            let input = Bounded::with_proven_sensitivity(vec![value], sensitivity);
            ball.release(input, &mut dp_accountant::EventLog::new(), &mut rng).unwrap().into_inner()
        };
        let wide = release(value);
        prop_assert_eq!(grid.check(&wide), Ok(()));
        let singles: Vec<f64> = wide.iter().map(|weight| f64::from(*weight as f32)).collect();
        prop_assert_eq!(grid.in_precision(FloatKind::F32).check(&singles), Ok(()));
    }
}

#[test]
fn a_constant_prediction_has_an_intercept_alone() {
    assert_eq!(ReleaseLattice::CONSTANT.check(&[0.0, 0.0, -1.3]), Ok(()));
    assert_eq!(
        ReleaseLattice::CONSTANT.check(&[0.0, 1e-9, 1.3]),
        Err(OffLattice::OutOfReach { index: 1, weight: 1e-9 })
    );
}
