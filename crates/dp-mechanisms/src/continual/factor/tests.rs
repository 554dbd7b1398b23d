use super::*;
use crate::testing::golden_cases;
use num_bigint::BigInt;
use proptest::prelude::*;

#[test]
fn golden() {
    let cases = golden_cases("mechanisms.json", "matrix_sqrt");
    for case in cases {
        let steps = case.input("steps") as usize;
        let factor = Factor::square_root(steps).unwrap();
        for (j, expected) in case.out["coefficients"].as_array().unwrap().iter().enumerate() {
            case.check_number("coefficient", factor.coefficient(j, 0), expected.as_f64().unwrap());
        }
        let sensitivity = factor.sensitivity(Participation::once()).unwrap();
        assert!(sensitivity.attained);
        case.check("sensitivity", sensitivity.value);
        case.check("max_error_per_sigma", factor.largest_error());
        case.check("max_error_product", sensitivity.value * factor.largest_error());
        case.check("rms_error_product", sensitivity.value * factor.rms_error());
    }
}

#[test]
fn refused_factors() {
    assert!(matches!(Factor::square_root(0), Err(Error::OutOfRange { name: "steps", .. })));
    assert!(matches!(Factor::square_root(1 << 21), Err(Error::OutOfRange { name: "steps", .. })));
    assert!(matches!(Factor::toeplitz(3, &[]), Err(Error::Length { name: "coefficients", .. })));
    assert!(matches!(Factor::toeplitz(1, &[1.0, 1.0]), Err(Error::Length { name: "coefficients", .. })));
    for bad in [0.0, 1e-13, -0.0] {
        let refused = Factor::toeplitz(3, &[bad, 1.0]);
        assert!(matches!(refused, Err(Error::OutOfRange { name: "diagonal coefficient", .. })));
    }
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(matches!(Factor::toeplitz(3, &[1.0, bad]), Err(Error::NotFinite { name: "coefficient", .. })));
    }
    assert!(matches!(Factor::toeplitz(3, &[2000.0, -49.0]), Err(Error::OutOfRange { .. })));
    let rows = |rows: &[&[f64]]| Factor::lower_triangular(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>());
    assert!(matches!(rows(&[]), Err(Error::OutOfRange { name: "steps", .. })));
    assert!(matches!(rows(&[&[1.0], &[1.0]]), Err(Error::Length { name: "row of the factor", .. })));
    assert!(matches!(rows(&[&[1.0], &[1.0, 0.0]]), Err(Error::OutOfRange { name: "diagonal coefficient", .. })));
    assert!(matches!(rows(&[&[f64::NAN]]), Err(Error::NotFinite { .. })));
    // Increasing coefficients, and too many steps for anything but the closed form.
    let long = Factor::toeplitz(5000, &[0.5, 1.0]).unwrap();
    assert!(long.sensitivity(Participation::once()).is_ok());
    let twice = Participation::repeated(2, 3).unwrap();
    assert!(matches!(long.sensitivity(twice), Err(Error::OutOfRange { name: "steps", .. })));
}

#[test]
fn bands_are_counted() {
    assert_eq!(Factor::square_root(10).unwrap().bands(), 10);
    assert_eq!(Factor::banded_square_root(10, 4).unwrap().bands(), 4);
    assert_eq!(Factor::toeplitz(10, &[1.0, 0.5, 0.0, 1e-14]).unwrap().bands(), 2);
    let factor = Factor::lower_triangular(&[vec![1.0], vec![0.5, 1.0], vec![0.0, 0.5, 1.0]]).unwrap();
    assert_eq!(factor.bands(), 2);
    assert_eq!(factor.coefficient(0, 1), 0.0);
    assert_eq!(factor.coefficient(3, 1), 0.0);
}

/// Noise on each increment, and noise on each prefix: the errors known without a factor.
#[test]
fn errors_of_the_two_trivial_factors() {
    let identity = Factor::toeplitz(100, &[1.0]).unwrap();
    assert!((identity.largest_error() - 10.0).abs() < 1e-12 && (identity.rms_error() - 50.5f64.sqrt()).abs() < 1e-12);
    let prefixes = Factor::toeplitz(100, &[1.0; 100]).unwrap();
    assert!((prefixes.largest_error() - 1.0).abs() < 1e-12);
    assert!((prefixes.sensitivity(Participation::once()).unwrap().value - 10.0).abs() < 1e-12);
    // All of the record's steps, one after the other: Σ_t (t + 1)².
    let all = Participation::repeated(100, 1).unwrap();
    let expected = (100.0f64 * 101.0 * 201.0 / 6.0).sqrt();
    assert!((prefixes.sensitivity(all).unwrap().value / expected - 1.0).abs() < 1e-12);
}

/// Returns a Toeplitz factor given entry by entry.
fn spelled_out(factor: &Factor) -> Factor {
    let rows: Vec<Vec<f64>> =
        (0..factor.steps()).map(|t| (0..=t).map(|i| factor.coefficient(t, i)).collect()).collect();
    Factor::lower_triangular(&rows).unwrap()
}

#[test]
fn both_kinds_of_factor_agree() {
    for factor in [Factor::square_root(12).unwrap(), Factor::toeplitz(9, &[1.0, -0.5, 0.25]).unwrap()] {
        let rows = spelled_out(&factor);
        assert_eq!(rows.bands(), factor.bands());
        assert!((rows.largest_error() / factor.largest_error() - 1.0).abs() < 1e-12);
        assert!((rows.rms_error() / factor.rms_error() - 1.0).abs() < 1e-12);
        for participation in [Participation::once(), Participation::repeated(3, 2).unwrap()] {
            let [one, other] = [&rows, &factor].map(|factor| factor.sensitivity(participation).unwrap());
            assert!((one.value / other.value - 1.0).abs() < 1e-12 && one.attained == other.attained);
        }
    }
}

/// Bands that do not overlap: attained without trying all sets, which are far too many.
#[test]
fn orthogonal_columns_add_up() {
    let falling = Factor::banded_square_root(400, 10).unwrap();
    let participation = Participation::repeated(20, 20).unwrap();
    let expected = falling.sensitivity(participation).unwrap();
    let found = spelled_out(&falling).sensitivity(participation).unwrap();
    assert!(found.attained && (found.value / expected.value - 1.0).abs() < 1e-11, "{found:?} {expected:?}");
}

/// Returns `‖Cf u‖²` for contributions of dimension 3.
fn squared_distance(factor: &Factor, contributions: &[(usize, [f64; 3])]) -> f64 {
    (0..factor.steps())
        .map(|t| {
            let mut row = [0.0; 3];
            for &(step, u) in contributions {
                row.iter_mut().zip(u).for_each(|(row, u)| *row += factor.coefficient(t, step) * u);
            }
            row.iter().map(|x| x * x).sum::<f64>()
        })
        .sum()
}

fn any_factor() -> impl Strategy<Value = Factor> {
    let rows = (2usize..8).prop_flat_map(|steps| {
        let row = prop::collection::vec(-1.0f64..1.0, steps);
        (prop::collection::vec(row, steps), any::<bool>(), 1usize..8)
    });
    rows.prop_map(|(rows, positive, bands)| {
        let entry = |t: usize, i: usize, x: f64| match t - i {
            0 => 0.5 + x.abs(),
            distance if distance >= bands => 0.0,
            _ if positive => x.abs(),
            _ => x,
        };
        let rows = rows.iter().enumerate();
        let rows: Vec<Vec<f64>> = rows.map(|(t, row)| (0..=t).map(|i| entry(t, i, row[i])).collect()).collect();
        Factor::lower_triangular(&rows).unwrap()
    })
}

proptest! {
    /// Neighbouring streams by brute force: random and aligned contributions in every allowed set of steps stay within the
    /// sensitivity, which the aligned ones attain if claimed; the bound by rows is never below it.
    #[test]
    fn no_contributions_move_the_release_farther(
        factor in any_factor(), most in 1u64..5, separation in 1u64..4,
        directions in prop::collection::vec(prop::array::uniform3(-1.0f64..1.0), 8),
    ) {
        let participation = Participation::repeated(most, separation).unwrap();
        let exact = factor.sensitivity(participation).unwrap();
        let length = participation.most_among(factor.steps() as u64) as usize;
        let bound = sensitivity::general(&factor, participation, length, 1);
        let tried = sensitivity::general(&factor, participation, length, usize::MAX);
        prop_assert!(bound.value >= exact.value * (1.0 - 1e-12));
        prop_assert!((tried.value / exact.value - 1.0).abs() < 1e-12);
        if separation as usize >= factor.bands() {
            prop_assert!(bound.value <= exact.value * (1.0 + 1e-12));
        }
        let unit = |v: [f64; 3]| {
            let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-9);
            v.map(|x| x / norm)
        };
        let mut largest = 0.0f64;
        participation.each_pattern(factor.steps(), length, usize::MAX, &mut |pattern| {
            let random: Vec<_> = pattern.iter().map(|&step| (step, unit(directions[step]))).collect();
            let aligned: Vec<_> = pattern.iter().map(|&step| (step, [1.0, 0.0, 0.0])).collect();
            largest = largest.max(squared_distance(&factor, &random)).max(squared_distance(&factor, &aligned));
        });
        prop_assert!(largest.sqrt() <= exact.value * (1.0 + 1e-12));
        if exact.attained {
            prop_assert!(largest.sqrt() >= exact.value * (1.0 - 1e-12));
        }
    }

    /// The closed form for decreasing coefficients is the maximum over all sets.
    #[test]
    fn the_first_steps_are_worst_for_falling_coefficients(
        falls in prop::collection::vec(0.0f64..1.0, 0..9), steps in 1usize..10, most in 1u64..5, separation in 1u64..5,
    ) {
        let mut coefficients = vec![1.0];
        for fall in falls.into_iter().take(steps - 1) {
            coefficients.push(coefficients[coefficients.len() - 1] * fall);
        }
        let factor = Factor::toeplitz(steps, &coefficients).unwrap();
        let participation = Participation::repeated(most, separation).unwrap();
        let closed = factor.sensitivity(participation).unwrap();
        let length = participation.most_among(steps as u64) as usize;
        let tried = sensitivity::general(&factor, participation, length, usize::MAX);
        prop_assert!(closed.attained && (closed.value / tried.value - 1.0).abs() < 1e-12, "{closed:?} {tried:?}");
    }

    /// In integers: all sets of steps, each with the products of its columns, are within the square of the bound.
    #[test]
    fn bounds_are_rounded_upwards(
        entries in prop::collection::vec(-(1i64 << 20)..1 << 20, 21), steps in 1usize..7, toeplitz in any::<bool>(),
        large in any::<bool>(), most in 1u64..4, separation in 1u64..4,
    ) {
        // Entries up to 2^51, whose sums are not doubles.
        let number = |i: usize| match entries[i] {
            entry if large => (1i64 << 50) + entry,
            entry => entry,
        };
        let coefficient = |i: usize| number(i) as f64 * UNIT.recip();
        let factor = if toeplitz {
            let mut coefficients: Vec<f64> = (0..steps.min(2)).map(coefficient).collect();
            coefficients.sort_by(|a, b| b.total_cmp(a));
            Factor::toeplitz(steps, &coefficients)
        } else {
            Factor::lower_triangular(&(0..steps).map(|t| (0..=t).map(|i| coefficient(t * (t + 1) / 2 + i)).collect()).collect::<Vec<_>>())
        };
        prop_assume!(factor.is_ok());
        let factor = factor.unwrap();
        let participation = Participation::repeated(most, separation).unwrap();
        let length = participation.most_among(steps as u64) as usize;
        let product = |i: usize, j: usize| -> BigInt {
            (0..steps).map(|t| BigInt::from(factor.numerator(t, i)) * factor.numerator(t, j)).sum()
        };
        let mut largest = BigInt::ZERO;
        participation.each_pattern(steps, length, usize::MAX, &mut |pattern| {
            let sum = pattern.iter().flat_map(|&i| pattern.iter().map(move |&j| (i, j)));
            let sum: BigInt = sum.map(|(i, j)| BigInt::from(product(i, j).magnitude().clone())).sum();
            largest = largest.clone().max(sum);
        });
        for limit in [0, usize::MAX] {
            for found in [factor.sensitivity(participation).unwrap(), sensitivity::general(&factor, participation, length, limit)] {
                // In units of 2^-80 the value is above 1, and a double of at most 53 bits.
                let value = found.value * UNIT;
                let (bits, shift) = ((value.to_bits() & ((1 << 52) - 1)) | 1 << 52, (value.to_bits() >> 52) as i32 - 1075);
                let value = if shift < 0 { BigInt::from(bits) } else { BigInt::from(bits) << shift };
                let largest = if shift < 0 { largest.clone() << (-2 * shift) } else { largest.clone() };
                prop_assert!(value.pow(2) >= largest, "{limit} {found:?} {largest}");
            }
        }
    }

    /// `B Cf = A`, entry by entry.
    #[test]
    fn errors_are_those_of_the_recovery(factor in any_factor()) {
        let steps = factor.steps();
        // The columns of Cf^-1 by substitution, then their prefix sums.
        let mut recovery = vec![vec![0.0; steps]; steps];
        for column in 0..steps {
            let mut inverse = vec![0.0; steps];
            for row in column..steps {
                let earlier: f64 = (column..row).map(|i| factor.coefficient(row, i) * inverse[i]).sum();
                inverse[row] = (f64::from(u8::from(row == column)) - earlier) / factor.coefficient(row, row);
                recovery[row][column] = inverse[column..=row].iter().sum();
            }
        }
        let squares: Vec<f64> = recovery.iter().map(|row| row.iter().map(|x| x * x).sum()).collect();
        let largest = squares.iter().copied().fold(0.0, f64::max).sqrt();
        prop_assert!((factor.largest_error() / largest - 1.0).abs() < 1e-6);
        let rms = (squares.iter().sum::<f64>() / steps as f64).sqrt();
        prop_assert!((factor.rms_error() / rms - 1.0).abs() < 1e-6);
    }
}

/// Coefficients that decrease below zero: contributions of opposite signs move the release farther than equal ones, so that the
/// formula for decreasing coefficients does not apply.
#[test]
fn coefficients_that_fall_below_zero_are_not_taken_for_falling_ones() {
    let factor = Factor::toeplitz(4, &[1.0, -0.5]).unwrap();
    let found = factor.sensitivity(Participation::repeated(2, 1).unwrap()).unwrap().value;
    // x = (1, -1): C x = (1, -3/2, 1/2, 0).
    assert!((found - 3.5f64.sqrt()).abs() < 1e-9, "{found}");
}
