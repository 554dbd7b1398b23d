//! Exact samplers of the normal, Laplace, exponential and uniform laws.

use num_bigint::BigUint;

use crate::error::Error;
use crate::exact::certified::{Interval, Uniform, exp_minus};
use crate::exact::integer::uniform_below;
use crate::exact::real::Real;
use crate::exact::source::Source;
use crate::exact::table::{
    ALIAS_BITS, COLUMN_BITS, EXPONENTIAL, FINE_BITS, HALF_NORMAL, Law, MOST_STRIPS, STRIP_BITS, STRIPS_PER_UNIT, TAIL,
    Table,
};

/// Number of rejected points in a row, each of probability below 1/4, after which a generator counts as stuck.
const REJECTIONS: u32 = 256;
/// Number of further suspect words, after a first one, after which a generator counts as stuck.
const CONFIRMATIONS: u32 = 3;
/// Number of consecutive tails of the exponential law, each of probability below 1/2, after which a generator counts as stuck.
const TAILS: u32 = 256;
/// Number of digits of the position in a strip in the first word.
pub(crate) const PLACE_BITS: u32 = 64 - COLUMN_BITS - COARSE_BITS - 1;
/// Number of fractional digits of a number decided by the first word.
pub(crate) const HEAD_BITS: u32 = STRIP_BITS + PLACE_BITS;
/// Number of digits of the alias table's thresholds in the first word.
const COARSE_BITS: u32 = 32 - FINE_BITS;
/// A bound on the size of heads that one word decides.
pub(crate) const HEADS_END: i64 = (MOST_STRIPS as i64) << PLACE_BITS;

/// The first word of a draw, in order from the top: a column, the leading digits of the position in the column, a sign, the
/// position in the strip.
#[derive(Clone, Copy)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    /// Returns whether the word suggests a stuck generator: one in `2^63` does.
    #[inline(always)]
    fn suspect(self) -> bool {
        self.0.wrapping_add(1) <= 1
    }

    /// Refuses a generator that returns only words of zeros or of ones, which would give a number close to 0.
    #[inline]
    fn confirm<S: Source>(self, source: &mut S) -> Result<(), Error> {
        if self.suspect() {
            for _ in 0..CONFIRMATIONS {
                if !Word(source.bits(64)?).suspect() {
                    return Ok(());
                }
            }
            return Err(Error::StuckGenerator);
        }
        Ok(())
    }

    #[inline(always)]
    fn column(self) -> usize {
        (self.0 >> (64 - COLUMN_BITS)) as usize
    }

    #[inline(always)]
    fn coarse(self) -> u32 {
        u32::from((self.0 >> (PLACE_BITS + 1)) as u16)
    }

    #[inline(always)]
    pub(crate) fn negative(self) -> bool {
        (self.0 >> PLACE_BITS) & 1 == 1
    }

    #[inline(always)]
    fn place(self) -> u64 {
        self.0 & ((1 << PLACE_BITS) - 1)
    }
}

/// Returns the head of a number, and whether this word alone decides it, as for most words.
#[inline(always)]
fn head(table: &Table, word: Word) -> (i64, bool) {
    let column = word.column();
    let leading = table.leading[column];
    let (threshold, alias) = (leading >> ALIAS_BITS, leading & ((1 << ALIAS_BITS) - 1));
    let coarse = word.coarse();
    let symbol = if coarse < threshold { column as u32 } else { alias };
    // If the leading digits equal those of the threshold, the next ones decide.
    let certain = (symbol < MOST_STRIPS as u32) & (coarse != threshold) & !word.suspect();
    (i64::from(symbol) << PLACE_BITS | word.place() as i64, certain)
}

/// Returns the head of a signed number, below [`HEADS_END`] in size, and whether this word alone decides it. Without a branch,
/// for loops that are vectorised.
#[inline(always)]
pub(crate) fn signed_head(table: &Table, word: Word) -> (i64, bool) {
    let (head, certain) = head(table, word);
    (head ^ -i64::from(word.negative()), certain)
}

/// Samples a number of the table's law on `[0, inf)`, given the first word. `PLACE` of its digits of the position in the strip
/// are used; fewer than [`PLACE_BITS`] are for tests.
pub(crate) fn magnitude<const PLACE: u32, S: Source>(
    table: &Table,
    beyond: &Table,
    first: Word,
    source: &mut S,
) -> Result<Real, Error> {
    first.confirm(source)?;
    let mut word = first;
    let mut offset = 0i64;
    let mut tails = 0;
    let mut rejections = 0;
    while rejections < REJECTIONS {
        let symbol = symbol(table, word, source)?;
        let place = word.place() >> (PLACE_BITS - PLACE);
        let head_bits = STRIP_BITS + PLACE;
        let head = offset + ((symbol % MOST_STRIPS) as i64) * (1 << PLACE) + place as i64;
        if symbol < MOST_STRIPS {
            return Ok(Real { head, head_bits, known: Vec::new() });
        }
        if symbol < TAIL {
            let strip = symbol - MOST_STRIPS;
            let mut real = Real { head: head - offset, head_bits, known: Vec::new() };
            if wedge::<PLACE, S>(table, strip, place, &mut real, source)? {
                real.head += offset;
                return Ok(real);
            }
        } else if symbol == TAIL {
            let start = (table.strips / STRIPS_PER_UNIT) as u64;
            match table.law {
                Law::Exponential => {
                    if exponential_tail(table, start, source)? {
                        // The exponential law has no memory: beyond the start it is that of the start plus a fresh number.
                        offset += (start as i64) << head_bits;
                        tails += 1;
                        rejections = 0;
                        if tails >= TAILS {
                            break;
                        }
                    }
                }
                Law::HalfNormal => {
                    let first = Word(source.bits(64)?);
                    let mut excess = magnitude::<PLACE, S>(beyond, beyond, first, source)?;
                    if half_normal_tail(table, start, &mut excess, source)? {
                        excess.head += (start as i64) << head_bits;
                        return Ok(excess);
                    }
                }
            }
        }
        rejections += 1;
        word = Word(source.bits(64)?);
    }
    Err(Error::StuckGenerator)
}

/// Returns the symbol of a word, with further digits if the leading ones equal the threshold's.
fn symbol<S: Source>(table: &Table, word: Word, source: &mut S) -> Result<usize, Error> {
    let column = word.column();
    let entry = table.columns[column];
    let fine = if word.coarse() == entry.threshold >> FINE_BITS { source.bits(FINE_BITS)? as u32 } else { 0 };
    let place = word.coarse() << FINE_BITS | fine;
    Ok(if place < entry.threshold { column } else { usize::from(entry.alias) })
}

/// Returns whether a point of a wedge lies under the curve.
fn wedge<const PLACE: u32, S: Source>(
    table: &Table,
    strip: usize,
    place: u64,
    real: &mut Real,
    source: &mut S,
) -> Result<bool, Error> {
    let height = Uniform { base: table.core[strip], width: table.wedge[strip], digits: source.bits(64)? };
    // From the strip's left end to x = left + t, t in units of 2^-42: f(x) = f(left) exp(-t) or f(left) exp(-left t -
    // t²/2), the exponent in units of 2^-63.
    let (near, far) = (place << (PLACE_BITS - PLACE), (place + 1) << (PLACE_BITS - PLACE));
    let (low, high) = match table.law {
        Law::Exponential => (near << (63 - HEAD_BITS), far << (63 - HEAD_BITS)),
        Law::HalfNormal => {
            let slope = (strip as u64) << (63 - HEAD_BITS - STRIP_BITS);
            (slope * near + half_square(near), slope * far + half_square(far) + 1)
        }
    };
    let (left, decay) = (table.left[strip], exp_minus(low, high));
    let product = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 63) as u64;
    let curve = super::table::Bracket { low: product(left.low, decay.low), high: product(left.high, decay.high) + 1 };
    match height.below(table.unit, curve) {
        Some(below) => Ok(below),
        None => {
            let (linear, square) = match table.law {
                Law::Exponential => (2, 0),
                Law::HalfNormal => (0, 1),
            };
            height.below_exp(table.unit, source, |bits, source| exponent(0, linear, square, real, bits, source))
        }
    }
}

/// Returns `t²/2` rounded down, in units of `2^-63`, for `t` in units of `2^-42`.
fn half_square(t: u64) -> u64 {
    ((u128::from(t) * u128::from(t)) >> (2 * HEAD_BITS + 1 - 63)) as u64
}

/// Returns whether a point of the exponential law's tail symbol lies in the tail: the symbol's mass is rounded up.
fn exponential_tail<S: Source>(table: &Table, start: u64, source: &mut S) -> Result<bool, Error> {
    let whole = uniform_below(u128::from(table.tail), source)? as u64;
    let mass = table.unit * STRIPS_PER_UNIT as u64;
    let bracket = table.left[table.strips];
    if u128::from(whole + 1) <= (u128::from(mass) * u128::from(bracket.low)) >> 63 {
        return Ok(true);
    }
    let height = Uniform { base: whole, width: 1, digits: source.bits(64)? };
    height.below_exp(mass, source, |bits, _| {
        let z = BigUint::from(start) << bits;
        Ok(Interval { low: z.clone(), high: z })
    })
}

/// Returns whether `start + excess`, with an exponential excess, is accepted as a tail of the half-normal law: `exp(-(start +
/// excess)²/2)` is below `exp(-start²/2 - excess)`, since `start >= 1`.
fn half_normal_tail<S: Source>(table: &Table, start: u64, excess: &mut Real, source: &mut S) -> Result<bool, Error> {
    let height = Uniform { base: 0, width: table.tail, digits: source.bits(64)? };
    let mass = table.unit * STRIPS_PER_UNIT as u64;
    height.below_exp(mass, source, |bits, source| exponent(start * start, 2 * (start - 1), 1, excess, bits, source))
}

/// Returns `(constant + linear x + square x²) / 2` for a non-negative number, with at least the given number of digits.
fn exponent<S: Source>(
    constant: u64,
    linear: u64,
    square: u64,
    real: &mut Real,
    bits: u32,
    source: &mut S,
) -> Result<Interval, Error> {
    let (digits, places) = real.digits(bits, source)?;
    // Doubled, and with twice the places: constant 2^(2p) + linear x 2^p + square x².
    let twice = |x: &BigUint| (BigUint::from(constant) << (2 * places)) + ((x * linear) << places) + x * x * square;
    let cut = 2 * places + 1 - bits;
    let low = twice(&digits) >> cut;
    let high = (twice(&(digits + 1u32)) >> cut) + 1u32;
    Ok(Interval { low, high })
}

/// Samples a number of the table's law with a sign, given the first word.
#[inline]
pub(crate) fn signed<S: Source>(table: &Table, word: Word, source: &mut S) -> Result<Real, Error> {
    Ok(unsigned(table, word, source)?.negated_if(word.negative()))
}

/// Samples a number of the table's law, given the first word.
#[inline]
pub(crate) fn unsigned<S: Source>(table: &Table, word: Word, source: &mut S) -> Result<Real, Error> {
    match head(table, word) {
        (head, true) => Ok(Real { head, head_bits: HEAD_BITS, known: Vec::new() }),
        _ => magnitude::<PLACE_BITS, S>(table, &EXPONENTIAL, word, source),
    }
}

/// Samples a standard normal number.
#[inline]
pub(crate) fn normal<S: Source>(source: &mut S) -> Result<Real, Error> {
    let word = Word(source.bits(64)?);
    signed(&HALF_NORMAL, word, source)
}

/// Samples a standard Laplace number, of density `exp(-|x|) / 2`.
#[inline]
pub(crate) fn laplace<S: Source>(source: &mut S) -> Result<Real, Error> {
    let word = Word(source.bits(64)?);
    signed(&EXPONENTIAL, word, source)
}

/// Samples a standard exponential number, of density `exp(-x)`.
#[inline]
pub(crate) fn exponential<S: Source>(source: &mut S) -> Result<Real, Error> {
    let word = Word(source.bits(64)?);
    unsigned(&EXPONENTIAL, word, source)
}

/// Samples a uniform number in `[0, 1)`.
pub(crate) fn uniform<S: Source>(source: &mut S) -> Result<Real, Error> {
    Ok(Real { head: source.bits(HEAD_BITS)? as i64, head_bits: HEAD_BITS, known: Vec::new() })
}

#[cfg(test)]
mod tests;
