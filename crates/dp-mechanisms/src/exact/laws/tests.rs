//! Statistical tests with small tables and few digits, so that wedges, tails and long comparisons are common. Each test's
//! false-alarm rate is 1e-9, by inequalities that hold for every sample size.

use super::*;
use crate::exact::real::Offset;
use crate::exact::source::Words;
use crate::rng::SeededRng;
use crate::testing::{ks_distance, ks_threshold};

fn normal_tail(x: f64) -> f64 {
    0.5 * statrs::function::erf::erfc(x / core::f64::consts::SQRT_2)
}

fn value<S: Source>(real: Real, source: &mut S) -> f64 {
    real.floor_affine(1 << 40, Offset::ZERO, source).unwrap() as f64 / (1u64 << 40) as f64
}

fn draw<const PLACE: u32>(table: &Table, beyond: &Table, seed: u64, count: usize) -> Vec<f64> {
    let mut rng = SeededRng::new(seed);
    let source = &mut Words(&mut rng);
    (0..count)
        .map(|_| {
            let word = Word(source.bits(64).unwrap());
            let real = magnitude::<PLACE, _>(table, beyond, word, source).unwrap();
            assert_eq!(real.head_bits, STRIP_BITS + PLACE);
            value(real, source)
        })
        .collect()
}

fn cdf(law: Law) -> impl Fn(f64) -> f64 {
    move |x| match law {
        Law::HalfNormal => 1.0 - 2.0 * normal_tail(x),
        Law::Exponential => 1.0 - (-x).exp(),
    }
}

fn follows<const PLACE: u32>(law: Law, strips: usize, seed: u64, count: usize) {
    let (table, beyond) = (Table::new(law, strips), Table::new(Law::Exponential, strips));
    let mut sample = draw::<PLACE>(&table, &beyond, seed, count);
    let distance = ks_distance(&mut sample, cdf(law));
    assert!(distance < ks_threshold(count, 1e-9), "{law:?} {strips} {PLACE}: {distance}");
}

/// Kolmogorov-Smirnov, threshold of Dvoretzky, Kiefer, Wolfowitz and Massart.
#[test]
fn small_tables_have_the_same_laws() {
    for law in [Law::HalfNormal, Law::Exponential] {
        follows::<PLACE_BITS>(law, 32, 1, 300_000);
        follows::<PLACE_BITS>(law, 64, 2, 300_000);
        follows::<0>(law, 32, 3, 40_000);
        follows::<1>(law, 64, 4, 60_000);
        follows::<5>(law, 256, 5, 100_000);
    }
}

/// Returns the largest deviation of a count of `n` independent events of this probability, by Bernstein's inequality, at 1e-9:
/// `P(|count - n p| >= t) <= 2 exp(-t² / (2 n p (1 - p) + 2 t / 3))`.
fn allowance(n: usize, probability: f64) -> f64 {
    let log = (2.0 / 1e-9f64).ln();
    log / 3.0 + (log * log / 9.0 + 2.0 * n as f64 * probability * (1.0 - probability) * log).sqrt()
}

/// Within a strip the density falls by up to a fifth: the left half of the strips is drawn more often, which would not be so if
/// each wedge were accepted, or none.
#[test]
fn strips_are_not_flat() {
    const COUNT: usize = 3_000_000;
    for table in [&HALF_NORMAL, &EXPONENTIAL] {
        let sample = draw::<PLACE_BITS>(table, &EXPONENTIAL, 6, COUNT);
        let left = sample.iter().filter(|&&x| ((x * 64.0) as u64).is_multiple_of(2)).count() as f64;
        let cdf = cdf(table.law);
        let probability: f64 = (0..1280).map(|i| f64::from(i) / 32.0).map(|x| cdf(x + 1.0 / 64.0) - cdf(x)).sum();
        assert!((left - COUNT as f64 * probability).abs() < allowance(COUNT, probability), "{left} {probability}");
        // The flat density fails the same test.
        assert!(COUNT as f64 * (probability - 0.5) > 1.5 * allowance(COUNT, probability));
    }
}

/// The mass beyond the strips, and beyond twice as many.
#[test]
fn tails_have_their_probability() {
    const COUNT: usize = 3_000_000;
    let sample = draw::<PLACE_BITS>(&EXPONENTIAL, &EXPONENTIAL, 7, COUNT);
    let beyond = sample.iter().filter(|&&x| x >= 8.0).count() as f64;
    let probability = (-8.0f64).exp();
    assert!((beyond - COUNT as f64 * probability).abs() < allowance(COUNT, probability), "{beyond}");
    let (table, other) = (Table::new(Law::HalfNormal, 32), Table::new(Law::Exponential, 32));
    for (law, table) in [(Law::HalfNormal, &table), (Law::Exponential, &other)] {
        let sample = draw::<PLACE_BITS>(table, &other, 8, 200_000);
        for x in [1.0, 2.0, 3.0] {
            let beyond = sample.iter().filter(|&&y| y >= x).count() as f64;
            let probability = 1.0 - cdf(law)(x);
            assert!((beyond - 2e5 * probability).abs() < allowance(200_000, probability), "{law:?} {x} {beyond}");
        }
    }
}

/// Given words; the sampler fails if it needs more.
struct Script<'a>(&'a [u64]);

impl Source for Script<'_> {
    fn bits(&mut self, count: u32) -> Result<u64, Error> {
        let (&first, rest) = self.0.split_first().ok_or(Error::StuckGenerator)?;
        self.0 = rest;
        Ok(first >> (64 - count))
    }
}

fn word(column: usize, coarse: u64, negative: bool, place: u64) -> Word {
    Word((column as u64) << 54 | coarse << 38 | u64::from(negative) << 37 | place)
}

/// Symbols change exactly at the thresholds, of which the first word contains 16 digits and the next draw the others.
#[test]
fn thresholds_are_met_exactly() {
    for table in [&HALF_NORMAL, &EXPONENTIAL] {
        for (column, entry) in table.columns.iter().enumerate() {
            let alias = usize::from(entry.alias);
            let (coarse, fine) = (u64::from(entry.threshold >> 16), u64::from(entry.threshold & 0xffff));
            let found = |coarse, more: &[u64]| symbol(table, word(column, coarse, false, 0), &mut Script(more));
            assert_eq!(found(coarse, &[]), Err(Error::StuckGenerator));
            assert_eq!(found(coarse, &[fine << 48]), Ok(alias));
            if fine > 0 {
                assert_eq!(found(coarse, &[(fine - 1) << 48]), Ok(column));
            }
            if coarse > 0 {
                assert_eq!(found(coarse - 1, &[]), Ok(column));
            }
            if coarse < 0xffff {
                assert_eq!(found(coarse + 1, &[]), Ok(alias));
            }
        }
    }
}

/// The fast path for most words and the path for all words agree wherever the former gives a result.
#[test]
fn heads_are_those_of_the_whole_sampler() {
    let mut rng = SeededRng::new(9);
    let mut short = 0;
    for _ in 0..100_000 {
        let drawn = Word(Words(&mut rng).bits(64).unwrap());
        for table in [&HALF_NORMAL, &EXPONENTIAL] {
            if let (head, true) = signed_head(table, drawn) {
                assert!((-HEADS_END..HEADS_END).contains(&head));
                short += 1;
                let real = magnitude::<PLACE_BITS, _>(table, &EXPONENTIAL, drawn, &mut Script(&[])).unwrap();
                let real = real.negated_if(drawn.negative());
                assert_eq!((real.head, real.head_bits, real.known.len()), (head, HEAD_BITS, 0));
            }
        }
    }
    assert!(short > 190_000, "{short}");
}

/// A generator of zeros or of ones is refused; a single word of zeros or of ones is a number like any other.
#[test]
fn suspect_words() {
    for table in [&HALF_NORMAL, &EXPONENTIAL] {
        for suspect in [0, u64::MAX] {
            assert!(!signed_head(table, Word(suspect)).1);
            let stuck = signed(table, Word(suspect), &mut Script(&[suspect; 8])).map(|real| real.head);
            assert_eq!(stuck, Err(Error::StuckGenerator));
            let alternating = [!suspect, suspect, !suspect, suspect, !suspect];
            let stuck = signed(table, Word(suspect), &mut Script(&alternating)).map(|real| real.head);
            assert_eq!(stuck, Err(Error::StuckGenerator));
        }
        let real = signed(table, Word(0), &mut Script(&[0, 0, 5, 0])).unwrap();
        assert_eq!(real.head, 0);
    }
}

#[test]
fn signs_are_fair() {
    const COUNT: usize = 1_000_000;
    let mut rng = SeededRng::new(10);
    let source = &mut Words(&mut rng);
    for draw in [normal, laplace] {
        let negative = (0..COUNT).filter(|_| draw(source).unwrap().head < 0).count() as f64;
        assert!((negative - 0.5 * COUNT as f64).abs() < allowance(COUNT, 0.5), "{negative}");
    }
}

/// Comparisons in a wedge are those of the exact numbers, down to the digits after the position in the first word: a point
/// between the curve's heights at both ends of that position is decided by the number's further digits.
#[test]
fn points_of_a_wedge_are_compared_with_the_curve() {
    let mut through_the_sampler = 0;
    for table in [&HALF_NORMAL, &EXPONENTIAL] {
        for strip in (4..table.strips).step_by(9) {
            for place in [3u64 << 30, (1 << 37) - 1, 12_345_678_901] {
                let height = |place_behind: f64| {
                    let x = (strip as f64 + (place as f64 + place_behind) / (1u64 << 37) as f64) / 32.0;
                    let f = match table.law {
                        Law::HalfNormal => (-0.5 * x * x).exp(),
                        Law::Exponential => (-x).exp(),
                    };
                    let share = (table.unit as f64 * f - table.core[strip] as f64) / table.wedge[strip] as f64;
                    (share.clamp(0.0, 1.0) * 2f64.powi(64)) as u64
                };
                // The number's digits after its position, and the point at which the curve has this height.
                for behind in [0.1, 0.9] {
                    for crossing in [-1e9, -1e3, -4.0, 0.5, 5.0, 1e3, 1e9] {
                        let mut real = Real {
                            head: ((strip as i64) << PLACE_BITS) + place as i64,
                            head_bits: HEAD_BITS,
                            known: Vec::new(),
                        };
                        let digits = [height(crossing), (behind * 2f64.powi(64)) as u64];
                        // Where the curve is low the next digits, all 0, are needed.
                        let words = [&digits[..], &[0; 16]].concat();
                        let below =
                            wedge::<PLACE_BITS, _>(table, strip, place, &mut real, &mut Script(&words)).unwrap();
                        assert_eq!(below, crossing > behind, "{:?} {strip} {place} {behind} {crossing}", table.law);
                        // The sampler requests the wedge of the symbol's strip.
                        let first = word(MOST_STRIPS + strip, 0, false, place);
                        let is_column = table.columns[MOST_STRIPS + strip].threshold >> COARSE_BITS > 0;
                        if is_column && table.left[strip].low > 1 << 55 {
                            let found = magnitude::<PLACE_BITS, _>(table, &EXPONENTIAL, first, &mut Script(&digits));
                            let head = ((strip as i64) << PLACE_BITS) + place as i64;
                            assert_eq!(found.is_ok_and(|real| real.head == head), below, "{strip} {place} {crossing}");
                            through_the_sampler += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(through_the_sampler > 300, "{through_the_sampler}");
}

/// An exponent's interval contains `(constant + linear x + square x²)/2` for both ends of the known interval of the number, and
/// is rounded by two units at most.
#[test]
fn exponents_are_enclosed() {
    let mut rng = SeededRng::new(12);
    let source = &mut Words(&mut rng);
    for (constant, linear, square) in [(0, 2, 0), (0, 0, 1), (1, 0, 1), (9, 4, 1)] {
        for bits in [64u32, 74, 106, 128, 320] {
            for head in [0i64, 1, (1 << 42) - 1, (7 << 42) + 12_345] {
                let mut real = Real { head, head_bits: HEAD_BITS, known: Vec::new() };
                let found = exponent(constant, linear, square, &mut real, bits, source).unwrap();
                let (digits, places) = real.digits(bits, &mut Script(&[])).unwrap();
                // The exact value in units of 2^-(2 places + 1).
                let exact =
                    |x: &BigUint| (BigUint::from(constant) << (2 * places)) + ((x * linear) << places) + x * x * square;
                let up = 2 * places + 1 - bits;
                let (low, high) = (exact(&digits), exact(&(digits + 1u32)));
                assert!(
                    &found.low << up <= low && high <= &found.high << up,
                    "{constant} {linear} {square} {bits} {head}"
                );
                assert!((found.high - found.low) << up <= (high - low) + (BigUint::from(2u32) << up));
            }
        }
    }
    for t in [0u64, 1, (1 << 11) - 1, 1 << 11, 1 << 36, (1 << 37) - 1] {
        assert_eq!(u128::from(half_square(t)), (u128::from(t) * u128::from(t)) >> 22);
    }
}

/// A point of the tail's mass counts if all of its unit lies below the curve; in the unit that the curve crosses, the digits
/// decide.
#[test]
fn the_tail_ends_at_the_curve() {
    let table = &EXPONENTIAL;
    let start = (table.strips / STRIPS_PER_UNIT) as u64;
    let mass = table.unit * STRIPS_PER_UNIT as u64;
    let below = (crate::exact::table::tests::reference(start, 1) * mass) >> 512u32;
    let crossed = below.to_u64_digits()[0];
    assert!(crossed > 1 && crossed < table.tail);
    let bits = u64::BITS - (table.tail - 1).leading_zeros();
    let tail = |whole: u64, more: &[u64]| {
        exponential_tail(table, start, &mut Script(&[&[whole << (64 - bits)], more].concat()))
    };
    assert_eq!((tail(0, &[]), tail(crossed - 1, &[])), (Ok(true), Ok(true)));
    assert_eq!((tail(crossed, &[0]), tail(crossed, &[u64::MAX])), (Ok(true), Ok(false)));
    if crossed + 1 < table.tail {
        assert_eq!(tail(crossed + 1, &[0]), Ok(false));
    }
}
