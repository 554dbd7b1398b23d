use proptest::prelude::*;

use super::*;

/// Given groups of 32 digits, then the same group forever.
struct Script {
    groups: Vec<u32>,
    then: u32,
}

impl Source for Script {
    fn bits(&mut self, count: u32) -> Result<u64, Error> {
        assert_eq!(count, 32);
        Ok(u64::from(if self.groups.is_empty() { self.then } else { self.groups.remove(0) }))
    }
}

const GROUPS_GIVEN: usize = 5;
/// More places than the head, the groups and the fractions of these tests have.
const PLACES: u32 = 400;

/// Returns the integer part of `multiplier (head + 0.groups) / 2^head_bits + fraction (+ 1/2)`, and whether it is an integer.
fn reference(multiplier: u64, head: i64, head_bits: u32, groups: &[u32], fraction: f64, half: bool) -> (BigInt, bool) {
    let number = groups.iter().fold(BigInt::from(head), |sum, &group| (sum << 32u32) + group);
    let number = (number * multiplier) << (PLACES - head_bits - 32 * groups.len() as u32);
    // Fractions are multiples of 2^-50 here.
    let offset = BigInt::from((fraction * 2f64.powi(50)) as i64) << (PLACES - 50);
    let sum = number + offset + if half { BigInt::from(1) << (PLACES - 1) } else { BigInt::ZERO };
    let floor: BigInt = &sum >> PLACES;
    let whole = (&floor << PLACES) == sum;
    (floor, whole)
}

/// Returns a multiple of `2^-50` of size at most 1/2.
fn fraction() -> impl Strategy<Value = f64> {
    (-(1i64 << 49)..=1 << 49).prop_map(|units| units as f64 / (1u64 << 50) as f64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn integer_parts_are_those_of_all_digits(
        multiplier_bits in 0u32..64, multiplier: u64, head in -(1i64 << 45)..1 << 45, head_bits in 1u32..=42,
        groups in prop::collection::vec(prop_oneof![any::<u32>(), Just(0), Just(u32::MAX)], GROUPS_GIVEN),
        known in 0usize..=GROUPS_GIVEN, fraction in fraction(), half: bool,
    ) {
        let multiplier = (multiplier >> multiplier_bits).max(1);
        let (expected, _) = reference(multiplier, head, head_bits, &groups, fraction, half);
        let real = Real { head, head_bits, known: groups[..known].to_vec() };
        let mut source = Script { groups: groups[known..].to_vec(), then: 0 };
        let offset = Offset { fraction: Binary::of(fraction), half };
        let found = real.floor_affine(multiplier, offset, &mut source);
        prop_assert_eq!(found.map(BigInt::from), Ok(expected));
    }

    /// `-x` has the mirrored rounding, unless `x` is a tie.
    #[test]
    fn negation_mirrors(
        multiplier in 1u64..1 << 41, head in 0i64..1 << 45, groups in prop::collection::vec(any::<u32>(), GROUPS_GIVEN),
        known in 0usize..=GROUPS_GIVEN, fraction in fraction(),
    ) {
        let (expected, tie) = reference(multiplier, head, 42, &groups, fraction, true);
        prop_assume!(!tie);
        let mirrored = groups.iter().map(|group| !group).collect::<Vec<_>>();
        let real = Real { head, head_bits: 42, known: groups[..known].to_vec() }.negated_if(true);
        let mut source = Script { groups: mirrored[known..].to_vec(), then: u32::MAX };
        let found = real.floor_affine(multiplier, Offset::half_above(Binary::of(-fraction)), &mut source);
        prop_assert_eq!(found.map(|found| -BigInt::from(found)), Ok(expected));
    }

    /// With any error up to the slack, the result holds for all of them, or there is none.
    #[test]
    fn slack_is_respected(
        multiplier in 1u64..1 << 62, scale_bits in 1u32..60, head in -(1i64 << 45)..1 << 45, slack in 0u64..1 << 46,
        groups in prop::collection::vec(any::<u32>(), GROUPS_GIVEN), fraction in fraction(),
    ) {
        let mut real = Real { head, head_bits: 42, known: Vec::new() };
        let mut source = Script { groups: groups.clone(), then: 0 };
        let offset = Offset::half_above(Binary::of(fraction));
        if let Some(found) = real.floor_scaled(multiplier, scale_bits, slack, offset, &mut source).unwrap() {
            let bits = 42 + scale_bits;
            let number = groups.iter().fold(BigInt::from(head), |sum, &group| (sum << 32u32) + group) * multiplier;
            let (half_unit, places) = (BigInt::from((fraction * 2f64.powi(50)) as i64), bits + 160);
            let middle = number + (half_unit << (places - 50)) + (BigInt::from(1) << (places - 1));
            for error in [-BigInt::from(slack), BigInt::from(slack)] {
                let sum: BigInt = &middle + (error << 160);
                prop_assert_eq!(BigInt::from(found), sum >> places);
            }
        }
    }

    #[test]
    fn doubles_are_taken_apart_exactly(negative: bool, exponent in 0u64..1023, mantissa in 0u64..1 << 52) {
        let x = f64::from_bits(u64::from(negative) << 63 | exponent << 52 | mantissa);
        let binary = Binary::of(x);
        prop_assert_eq!(binary.mantissa as f64 * 2f64.powi(binary.exponent + 1000) * 2f64.powi(-1000), x);
        // The fractional digits, group by group, are those of the whole.
        let (whole, exact) = binary.floor_big(42 + 32 * 70);
        prop_assert!(exact);
        let mut sum = BigInt::from(binary.floor(42));
        for group in 1..=70 {
            sum = (sum << 32u32) + binary.digits(42 + 32 * group);
        }
        prop_assert_eq!(sum, whole);
    }
}

/// A generator that equals a boundary in every digit ends in an error: `x = 1/2` forever, rounded half up or down.
#[test]
fn endless_ties_end() {
    let real = Real { head: 1 << 40, head_bits: 42, known: Vec::new() };
    // 2 x + 1/2 converges to 1 for a head of 1/4 whose further digits are all ones.
    let mut source = Script { groups: Vec::new(), then: u32::MAX };
    let below = Real { head: (1 << 40) - 1, ..real };
    assert_eq!(below.floor_affine(2, Offset::half_above(Binary::ZERO), &mut source), Err(Error::StuckGenerator));
}

#[test]
fn refused_parameters() {
    let mut rng = crate::rng::SeededRng::new(1);
    for multiplier in [0, (1 << 53) + 1, u64::MAX] {
        let real = crate::exact::standard_normal(&mut rng).unwrap();
        let refused = real.round(multiplier, 0.0, &mut rng);
        assert!(matches!(refused, Err(Error::OutOfRange { name: "multiplier", .. })));
    }
    for fraction in [f64::NAN, 1.5, -1.0 - f64::EPSILON, f64::INFINITY] {
        let real = crate::exact::standard_normal(&mut rng).unwrap();
        assert!(matches!(real.round(1, fraction, &mut rng), Err(Error::OutOfRange { name: "fraction", .. })));
    }
}
