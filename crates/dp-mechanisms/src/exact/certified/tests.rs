use proptest::prelude::*;

use super::*;
use crate::exact::table::tests::reference;

const PLACES: u32 = 512;

fn units(value: u64, places: u32) -> BigUint {
    BigUint::from(value) << (PLACES - places)
}

/// Given bits, then zeros.
struct Script(Vec<u64>);

impl Source for Script {
    fn bits(&mut self, count: u32) -> Result<u64, Error> {
        let word = if self.0.is_empty() { 0 } else { self.0.remove(0) };
        Ok(if count == 0 { 0 } else { word >> (64 - count) })
    }
}

proptest! {
    #[test]
    fn fixed_point_brackets_hold_the_exponential(low in 0u64..=ONE / 2, width in 0u64..1 << 40) {
        let high = (low + width).min(ONE / 2);
        let bracket = exp_minus(low, high);
        prop_assert!(units(bracket.low, 63) <= reference(high, ONE));
        prop_assert!(reference(low, ONE) <= units(bracket.high, 63));
        prop_assert!(bracket.high - bracket.low <= 16 + (high - low));
    }

    #[test]
    fn brackets_of_any_length_hold_the_exponential(
        numerator in 0u64..1 << 40, denominator in 1u64..1 << 34, bits in 64u32..400,
    ) {
        prop_assume!(numerator / denominator < 200);
        let low = (BigUint::from(numerator) << bits) / denominator;
        let bracket = exp_minus_interval(&Interval { high: &low + 1u32, low }, u64::from(bits));
        let exact = reference(numerator, denominator);
        let up = PLACES - bits;
        prop_assert!(&bracket.low << up <= exact && exact <= &bracket.high << up);
        prop_assert!(bracket.high - bracket.low <= BigUint::from(8u32));
    }

    #[test]
    fn approximate_exponents_hold_the_exponential(numerator in 1u64.., denominator in 1u64.., shift in 0u32..60) {
        let numerator = numerator >> shift;
        prop_assume!(numerator > 0 && numerator / denominator < 64);
        let of = |x: u64| Approximate::of(u128::from(x));
        // A detour of eight factors that cancel.
        let mut z = of(numerator).over(of(denominator));
        for factor in [3, 7, 1 << 63, 12345] {
            z = z.times(of(factor)).over(of(factor));
        }
        let bracket = exp_minus_approximate(z);
        let exact = reference(numerator, denominator);
        prop_assert!(units(bracket.low, 63) <= exact && exact <= units(bracket.high, 63));
        prop_assert!(bracket.high - bracket.low <= 1 << 14);
    }

    /// Machine words and long integers both compare the digits with the curve.
    #[test]
    fn comparisons_are_those_of_the_exact_numbers(
        base in 0u64..1 << 37, width in 1u64..1 << 32, unit in 1u64..1 << 37, numerator in 0u64..1 << 33, digits: u64, more: u64,
    ) {
        // z = numerator / 2^30; the uniform number is base + width · 0.digits more 000...
        let uniform = Uniform { base, width, digits };
        let curve = reference(numerator, 1 << 30) * unit;
        let drawn = (BigUint::from(digits) << 64u32) + more;
        let place = (BigUint::from(base) << PLACES) + ((drawn * width) << (PLACES - 128));
        let expected = place < curve;
        let exact = |bits: u32, _: &mut Script| {
            let z = BigUint::from(numerator) << (bits - 30);
            Ok(Interval { low: z.clone(), high: z })
        };
        prop_assert_eq!(uniform.below_exp(unit, &mut Script(vec![more]), exact), Ok(expected));
        let z = Approximate::of(u128::from(numerator.max(1))).over(Approximate::of(1 << 30));
        if numerator > 0 && let Some(below) = uniform.below(unit, exp_minus_approximate(z)) {
            prop_assert_eq!(below, expected);
        }
    }
}

/// A tie of the first 64 digits is decided by the digits that follow: `exp(-1)` itself, cut after 128 digits.
#[test]
fn ties_are_decided_by_further_digits() {
    let exact = |bits: u32, _: &mut Script| {
        Ok(Interval { low: BigUint::from(1u32) << bits, high: BigUint::from(1u32) << bits })
    };
    let digits = (reference(1, 1) >> (PLACES - 128)).to_u64_digits();
    let uniform = || Uniform { base: 0, width: 1, digits: digits[1] };
    assert_eq!(uniform().below_exp(1, &mut Script(vec![digits[0], 0]), exact), Ok(true));
    assert_eq!(uniform().below_exp(1, &mut Script(vec![digits[0] + 1, 0]), exact), Ok(false));
    let bracket = exp_minus_approximate(Approximate::of(1));
    assert_eq!(uniform().below(1, bracket), None);
}

/// A large exponent needs no long integers unless the first digits are all zeros.
#[test]
fn large_exponents_are_decided_by_the_first_digits() {
    let coin = |numerator: u128, words: &[u64]| {
        let exact = || -> (BigUint, BigUint) { panic!("long integers for exp(-{numerator})") };
        bernoulli_exp(Some(Approximate::of(numerator)), exact, &mut Script(words.to_vec()))
    };
    for numerator in [63, 64, 65, 5000, u128::MAX] {
        assert_eq!(coin(numerator, &[2]), Ok(false), "{numerator}");
    }
    let bracket = exp_minus_approximate(Approximate::of(64));
    assert!(bracket.low == 0 && bracket.high == 1);
    // 2^64 exp(-45) is 0.528: the digits after 64 zeros decide.
    let exact = || (BigUint::from(45u32), BigUint::from(1u32));
    assert_eq!(bernoulli_exp(Some(Approximate::of(45)), exact, &mut Script(vec![0, 1 << 63])), Ok(true));
    assert_eq!(bernoulli_exp(Some(Approximate::of(45)), exact, &mut Script(vec![0, 9 << 60])), Ok(false));
}

/// An exponent whose interval never shrinks is an error and ends in one.
#[test]
fn comparisons_end() {
    let vague = |bits: u32, _: &mut Script| Ok(Interval { low: BigUint::ZERO, high: BigUint::from(9u32) << bits });
    let uniform = Uniform { base: 0, width: 1, digits: 1 << 63 };
    assert_eq!(uniform.below_exp(1, &mut Script(Vec::new()), vague), Err(Error::StuckGenerator));
}

/// Integers of any length are compared exactly at both ends of a certified bracket: a uniform number that may reach the lower end
/// is not yet below it, and one that starts at the upper end is not below.
#[test]
fn comparisons_are_exact_at_the_ends_of_brackets() {
    let below =
        |base, width, digits, unit, low, high| Uniform { base, width, digits }.below(unit, Bracket { low, high });
    // 1/4 to 1/2 of 8 units are 2 to 4; a width of 1 beyond the base's digits.
    let of = |base, digits| below(base, 1, digits, 8, ONE / 4, ONE / 2);
    assert_eq!(
        [of(1, 0), of(1, u64::MAX), of(2, 0), of(3, u64::MAX), of(4, 0)],
        [Some(true), Some(true), None, None, Some(false)]
    );
    // The digits count in units of the width: 3/2 of them from 1 on are 5/2 to slightly above 5/2.
    let half = 1u64 << 63;
    assert_eq!(below(1, 3, half, 10, ONE / 4 + 10, ONE / 2), Some(true));
    assert_eq!(below(1, 3, half, 10, ONE / 4 - 10, ONE / 2), None);
    assert_eq!(below(1, 3, half, 10, ONE / 8, ONE / 4), Some(false));
}

/// A quotient's interval brackets it: for a coin that ties with the first 64 digits of `exp(-1/3)`, the next digits decide.
#[test]
fn quotients_are_decided_by_further_digits() {
    let exact = || (BigUint::from(1u32), BigUint::from(3u32));
    let digits = (reference(1, 3) >> (PLACES - 192)).to_u64_digits();
    for (last, expected) in [(digits[0] - 9, true), (digits[0] + 9, false)] {
        let words = vec![digits[2], digits[1], last, 0];
        assert_eq!(bernoulli_exp(None, exact, &mut Script(words)), Ok(expected));
    }
}

/// Brackets of narrow intervals, whose width does not hide the remainder of the series.
#[test]
fn narrow_brackets_hold_the_exponential() {
    for k in 0..=256u64 {
        for (off, width) in [(0, 0), (12_345, 1), (99, 100)] {
            let low = (k * (ONE / 512) + off).min(ONE / 2 - width);
            let bracket = exp_minus(low, low + width);
            assert!(units(bracket.low, 63) <= reference(low + width, ONE), "{k}");
            assert!(reference(low, ONE) <= units(bracket.high, 63), "{k}");
        }
    }
}

/// The bracket of an approximate exponent covers the errors of 16 operations, `16 · 2^-62` of it to either side.
#[test]
fn approximate_exponents_have_room_for_their_errors() {
    const PARTS: u64 = 1 << 58;
    for (numerator, denominator) in [(1, 1), (1, 2), (2, 3), (3, 2), (5, 3), (2, 1), (3, 1), (5, 1)] {
        let of = |x: u64| Approximate::of(u128::from(x));
        let bracket = exp_minus_approximate(of(numerator).over(of(denominator)));
        let exact = |parts: u64| reference(numerator * parts, denominator * PARTS);
        assert!(units(bracket.low, 63) <= exact(PARTS + 1), "{numerator}/{denominator}");
        assert!(exact(PARTS - 1) <= units(bracket.high, 63), "{numerator}/{denominator}");
    }
}
