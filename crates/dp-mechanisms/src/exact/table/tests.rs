use num_bigint::BigUint;

use super::*;

const PLACES: u32 = 512;

/// Returns `exp(-numerator / denominator)` to within a unit of `2^-500`, by the series of its inverse: all terms positive, no
/// halving, and no code in common with the tested code.
pub(crate) fn reference(numerator: u64, denominator: u64) -> BigUint {
    let one = BigUint::from(1u32) << PLACES;
    let (mut sum, mut term, mut index) = (one.clone(), one.clone(), 0u64);
    while term > BigUint::ZERO {
        index += 1;
        term = term * numerator / (BigUint::from(denominator) * index);
        sum += &term;
    }
    (BigUint::from(1u32) << (2 * PLACES)) / sum
}

fn in_units(value: u64, places: u32) -> BigUint {
    BigUint::from(value) << (PLACES - places)
}

fn tables() -> Vec<Table> {
    let laws = [Law::HalfNormal, Law::Exponential];
    laws.into_iter().flat_map(|law| [32, 64, 256].map(|strips| Table::new(law, strips))).collect()
}

/// Returns `f` at the left end of a strip.
fn height(law: Law, strip: usize) -> BigUint {
    let strip = strip as u64;
    match law {
        Law::HalfNormal => reference(strip * strip, 2048),
        Law::Exponential => reference(strip, 32),
    }
}

#[test]
fn reference_is_the_exponential_function() {
    for (numerator, denominator) in [(0u64, 1u64), (1, 1), (1, 3), (31, 1), (9, 7)] {
        let found = (reference(numerator, denominator) >> (PLACES - 100)).to_string().parse::<f64>().unwrap();
        let expected = (-(numerator as f64) / denominator as f64).exp();
        assert!((found / 2f64.powi(100) - expected).abs() <= 1e-15 * expected);
    }
}

#[test]
fn brackets_hold_the_density_and_are_narrow() {
    for table in [&HALF_NORMAL, &EXPONENTIAL] {
        for strip in 0..=MOST_STRIPS {
            let (exact, bracket) = (height(table.law, strip), table.left[strip]);
            assert!(in_units(bracket.low, 63) <= exact && exact <= in_units(bracket.high, 63), "{strip}");
            assert!(bracket.high - bracket.low <= 1024, "{strip}");
        }
    }
}

#[test]
fn masses_hold_the_curve() {
    for table in tables() {
        for strip in 0..table.strips {
            // Cores below the right end, cores and wedges above the left end, in units of 2^-512 of a mass unit.
            let right = height(table.law, strip + 1) * table.unit;
            let left = height(table.law, strip) * table.unit;
            assert!(
                in_units(table.core[strip], 0) <= right && left <= in_units(table.core[strip] + table.wedge[strip], 0)
            );
            // The margins are at most a unit plus the width of the brackets.
            let spare = BigUint::from(2u32) << PLACES;
            assert!(in_units(table.core[strip], 0) + &spare > right);
            assert!(left + spare > in_units(table.core[strip] + table.wedge[strip], 0));
        }
        let tail = height(table.law, table.strips) * table.unit * 32u32;
        assert!(tail <= in_units(table.tail, 0) && in_units(table.tail, 0) < tail + (BigUint::from(2u32) << PLACES));
        assert!(table.core[table.strips..].iter().chain(&table.wedge[table.strips..]).all(|&mass| mass == 0));
    }
}

/// The columns give each symbol exactly its mass, and otherwise only padding, which is negligible.
#[test]
fn columns_hold_exactly_the_masses() {
    for table in tables() {
        let mut found = vec![0u64; COLUMNS];
        for (symbol, column) in table.columns.iter().enumerate() {
            found[symbol] += u64::from(column.threshold);
            found[usize::from(column.alias)] += CAPACITY - u64::from(column.threshold);
        }
        for strip in 0..MOST_STRIPS {
            assert_eq!((found[strip], found[MOST_STRIPS + strip]), (table.core[strip], table.wedge[strip]), "{strip}");
        }
        assert_eq!(found[TAIL], table.tail);
        assert!(found[PADDING] <= 2 * SYMBOLS as u64 + 64, "{}", found[PADDING]);
        assert!(found[SYMBOLS..].iter().all(|&mass| mass == 0));
        assert_eq!(found.iter().sum::<u64>(), CAPACITY * COLUMNS as u64);
    }
}
