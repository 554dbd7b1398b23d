use proptest::prelude::*;

use super::*;
use crate::rng::SeededRng;

/// Returns `S` from as many digits as wanted, in steps.
fn root(radius: &mut Radius, rng: &mut SeededRng) -> (BigUint, BigUint, u32) {
    radius.bounds(400, &mut Words(rng)).unwrap()
}

proptest! {
    /// Machine words and long integers give multipliers that contain the same `S`.
    #[test]
    fn multipliers_hold_the_radius(
        seed: u64, dim in prop_oneof![1u64..40, Just(1000), Just(1001)], scale in prop_oneof![1u64 << 20..1 << 41, Just(1 << 20)],
    ) {
        let mut rng = SeededRng::new(seed);
        let mut radius = Radius::draw(dim, scale, &mut Words(&mut rng)).unwrap();
        let in_words = radius.multiplier_in_words(&mut Words(&mut rng)).unwrap();
        prop_assert!(in_words.is_some());
        let known = radius.normal.as_ref().map(|normal| Real { known: normal.known.clone(), ..*normal });
        let mut again =
            Radius { first: radius.first, sum: BigUint::ZERO, places: 0, known: radius.known.clone(), normal: known, ..radius };
        again.first.0 += 1 << 70;
        prop_assert!(again.multiplier_in_words(&mut Words(&mut rng)).unwrap().is_none());
        again.first.0 -= 1 << 70;
        let multipliers = [in_words.unwrap(), radius.multiplier(&mut Words(&mut rng)).unwrap()];
        let (low, high, places) = root(&mut radius, &mut rng);
        for multiplier in multipliers {
            prop_assert!((40..=60).contains(&(64 - multiplier.whole.leading_zeros())));
            prop_assert!(BigUint::from(multiplier.whole) << (places - multiplier.bits) <= low);
            prop_assert!(high <= BigUint::from(multiplier.whole + 2) << (places - multiplier.bits));
        }
    }

    /// The first digits, if decisive, and all the digits give the same integer, also at fractions close to a boundary.
    #[test]
    fn all_digits_agree_with_the_first(
        seed: u64, dim in 1u64..12, scale in 1u64 << 20..1 << 41, close in -3i32..=3, exponent in -70i32..-1, tie: bool,
    ) {
        let mut rng = SeededRng::new(seed);
        let mut radius = Radius::draw(dim, scale, &mut Words(&mut rng)).unwrap();
        let shared = radius.multiplier(&mut Words(&mut rng)).unwrap();
        let drawn = laws::normal(&mut Words(&mut rng)).unwrap();
        let mut number = Real { known: vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], ..drawn };
        let fraction = if tie {
            // The fraction that brings the sum close to a boundary: 1/2 minus the fraction of S N, in doubles.
            let (digits, places) = number.signed_digits(106, &mut Words(&mut rng)).unwrap();
            let (low, _, root_places) = root(&mut radius, &mut rng);
            let bits = places + root_places;
            let product: BigInt = digits * BigInt::from(low);
            let part: BigInt = &product - ((&product >> bits) << bits);
            let part: f64 = (part >> (bits - 60)).to_string().parse::<f64>().unwrap() / 2f64.powi(60);
            ((0.5 - part) + f64::from(close) * 2f64.powi(exponent)).clamp(-0.5, 0.5)
        } else {
            f64::from(close) * 2f64.powi(exponent)
        };
        let offset = Binary::of(fraction);
        let copy = || Real { known: number.known.clone(), ..number };
        let first = nearest(copy(), &shared, &mut radius, offset, &mut Words(&mut rng)).unwrap();
        let all = nearest_with_all_digits(&mut copy(), &mut radius, offset, &mut Words(&mut rng)).unwrap();
        prop_assert_eq!(first, all);
        // The result agrees with that in doubles, up to their rounding.
        let (low, _, places) = root(&mut radius, &mut rng);
        let size = low.to_string().parse::<f64>().unwrap() / 2f64.powi(places as i32 - 200) / 2f64.powi(200);
        let expected = size * (number.head as f64 / (1u64 << 42) as f64) + fraction;
        prop_assert!((all as f64 - expected).abs() <= 0.5 + 1e-9 * size + 1e-9);
    }
}

/// The sum of the exponential numbers keeps the digits drawn before.
#[test]
fn further_digits_refine_the_sum() {
    let mut rng = SeededRng::new(5);
    let mut radius = Radius::draw(7, 1 << 20, &mut Words(&mut rng)).unwrap();
    // The greatest digits of all four: any further drawn digits would exceed the bound.
    radius.known = vec![(4, 4 * u128::from(u32::MAX)), (2, 17)];
    let (mut low, mut high, mut places) = radius.bounds(FIRST_PLACES, &mut Words(&mut rng)).unwrap();
    for wanted in [107, 138, 171, 500] {
        let (next_low, next_high, next_places) = radius.bounds(wanted, &mut Words(&mut rng)).unwrap();
        assert!(next_places >= wanted && next_places > places - 1);
        let up = next_places - places;
        assert!(next_low >= &low << up && next_high <= &high << up);
        (low, high, places) = (next_low, next_high, next_places);
    }
    assert_eq!(radius.places, FIRST_PLACES + 32 * 13);
}

/// A sum whose first digits are all zeros: more are drawn until there is a radius.
#[test]
fn tiny_radii() {
    let mut rng = SeededRng::new(6);
    for first in [(0, 0), (0, 1), (1, 0), (0, 1 << 40)] {
        let mut radius =
            Radius { scale: 1 << 20, count: 1, first, sum: BigUint::ZERO, places: 0, known: Vec::new(), normal: None };
        let multiplier = radius.multiplier(&mut Words(&mut rng)).unwrap();
        let (low, high, places) = root(&mut radius, &mut rng);
        assert!(BigUint::from(multiplier.whole) << (places - multiplier.bits) <= low, "{first:?}");
        assert!(high <= BigUint::from(multiplier.whole + 2) << (places - multiplier.bits), "{first:?}");
    }
}
