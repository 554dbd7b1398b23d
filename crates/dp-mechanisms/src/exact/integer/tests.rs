use num_bigint::BigUint;
use proptest::prelude::*;

use super::*;
use crate::exact::enumeration::enumerate;

/// Given words; the sampler fails if it needs more.
struct Script<'a>(&'a [u64]);

impl Source for Script<'_> {
    fn bits(&mut self, count: u32) -> Result<u64, Error> {
        let (&first, rest) = self.0.split_first().ok_or(Error::StuckGenerator)?;
        self.0 = rest;
        Ok(if count == 0 { 0 } else { first >> (64 - count) })
    }
}

const DEPTH: u32 = 21;

/// Checks that the probability of `true` lies between the decided part and that plus the undecided part.
fn brackets(
    probability: f64,
    most_undecided: f64,
    sampler: impl Fn(&mut crate::exact::enumeration::Path) -> Result<bool, Error>,
) {
    let (decided, undecided) = enumerate(DEPTH, sampler);
    let [no, yes] = [false, true].map(|outcome| decided.get(&outcome).copied().unwrap_or(0.0));
    assert!(yes <= probability + 1e-12 && no <= 1.0 - probability + 1e-12, "{yes} {no} {probability}");
    assert!((yes + no + undecided - 1.0).abs() < 1e-15 && undecided <= most_undecided, "{undecided}");
}

#[test]
fn all_outcomes_of_uniform_numbers() {
    for n in (1..=33).chain([100, 1000, 4097]) {
        let (decided, undecided) = enumerate(DEPTH, |path| uniform_below(n, path));
        assert_eq!(decided.keys().copied().collect::<Vec<_>>(), (0..n).collect::<Vec<_>>());
        // All outcomes are equally likely, exactly.
        let each = decided[&0];
        assert!(decided.values().all(|&weight| weight == each), "{n}");
        assert!(undecided < 0.5 && (each * n as f64 + undecided - 1.0).abs() < 1e-15);
    }
}

#[test]
fn all_outcomes_of_coins() {
    for (numerator, denominator) in [(0, 1), (1, 1), (1, 2), (1, 3), (2, 3), (5, 7), (3, 8), (99, 100), (1, 1000)] {
        brackets(numerator as f64 / denominator as f64, 0.13, |path| bernoulli(numerator, denominator, path));
    }
}

#[test]
fn all_outcomes_of_exponential_coins() {
    for (numerator, denominator) in
        [(0, 5), (1, 2), (1, 3), (2, 3), (1, 8), (7, 8), (1, 1), (3, 2), (2, 1), (7, 3), (4, 1)]
    {
        let probability = (-(numerator as f64) / denominator as f64).exp();
        brackets(probability, 0.05, |path| bernoulli_exp(numerator, denominator, path));
    }
}

#[test]
fn wide_numbers_use_all_their_bits() {
    let n = (3u128 << 100) + 7;
    assert_eq!(uniform_below(n, &mut Script(&[1 << 26, 5])), Ok(1 << 64 | 5));
    // 102 bits: the top 38 of the first word, then a whole word. Too large at first.
    assert_eq!(uniform_below(n, &mut Script(&[u64::MAX, u64::MAX, 0, 9])), Ok(9));
    assert_eq!(uniform_below(n, &mut Script(&[3 << 62, 6])), Ok(n - 1));
    assert_eq!(uniform_below(n, &mut Script(&[3 << 62, 7])), Err(Error::StuckGenerator));
    assert_eq!(uniform_below(u128::MAX, &mut Script(&[u64::MAX, u64::MAX - 1])), Ok(u128::MAX - 1));
}

#[test]
fn refused_parameters() {
    let words = &[0u64; 4];
    assert!(matches!(uniform_below(0, &mut Script(words)), Err(Error::OutOfRange { .. })));
    assert!(matches!(bernoulli(0, 0, &mut Script(words)), Err(Error::OutOfRange { name: "denominator", .. })));
    assert!(matches!(bernoulli(2, 1, &mut Script(words)), Err(Error::OutOfRange { name: "probability", .. })));
    assert!(matches!(bernoulli_exp(1, 0, &mut Script(words)), Err(Error::OutOfRange { name: "denominator", .. })));
    for bad in [f64::NAN, -1e-300, 1.0 + f64::EPSILON, f64::INFINITY] {
        assert!(matches!(bernoulli_f64(bad, &mut Script(words)), Err(Error::OutOfRange { name: "probability", .. })));
    }
    assert_eq!(bernoulli_f64(0.0, &mut Script(&[])), Ok(false));
    assert_eq!(bernoulli_f64(-0.0, &mut Script(&[])), Ok(false));
    assert_eq!(bernoulli_f64(1.0, &mut Script(&[])), Ok(true));
}

proptest! {
    /// The coin is a comparison of the words, read as binary digits, with the exact value of the double.
    #[test]
    fn coins_of_doubles_compare_all_digits(
        mantissa in 0u64..1 << 52, exponent in 1u64..1023, words in prop::collection::vec(any::<u64>(), 18), copied in 0usize..18,
    ) {
        let probability = f64::from_bits(exponent << 52 | mantissa);
        // The value times 2^1152, exactly; its digits as words, some of which are copied to cause ties.
        let value = BigUint::from(mantissa | 1 << 52) << (exponent as u32 + 1152 - 1075);
        let mut digits = value.to_u64_digits();
        digits.resize(18, 0);
        digits.reverse();
        let mut words = words;
        words[..copied].copy_from_slice(&digits[..copied]);
        let drawn = words.iter().fold(BigUint::ZERO, |sum, &word| (sum << 64u32) + word);
        prop_assert_eq!(bernoulli_f64(probability, &mut Script(&words)), Ok(drawn < value));
    }
}
