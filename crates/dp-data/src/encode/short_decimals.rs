//! Parsing of short decimals, several cells at once.
//!
//! A cell of up to 16 characters is read as two words that end where the cell ends, and parsed by arithmetic on whole words, which
//! the compiler turns into vector instructions; on machines with AVX2, a cell of up to 8 characters by instructions on bytes. A
//! decimal of digits with at most one point and one minus sign is
//!
//! ```text
//! m / 10^f,   m the integer of all digits, at most 2^53,   f the digits after the point, at most 15
//! ```
//!
//! Both numbers are exact in double precision, so that the quotient is rounded once: it is the double nearest to the decimal, as
//! [`parse_number`](super::parse_number) returns it. Every other cell is marked.

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{__m256, __m256i};

#[cfg(target_arch = "x86_64")]
use pulp::x86::V3;

/// Cells parsed together.
pub(super) const LANES: usize = 8;
/// Longest cell that is parsed.
pub(crate) const LONGEST: usize = 16;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x80 * ONES;
const ZEROS: u64 = b'0' as u64 * ONES;

/// A word of digits 0, in place of a cell.
pub(super) const BLANK: u64 = ZEROS;

/// `10^f` by the number of bytes before the point in a word of 8, or in two words.
const POWERS_8: [f64; 16] = [1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const POWERS_16: [f64; 17] =
    [1e15, 1e14, 1e13, 1e12, 1e11, 1e10, 1e9, 1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1.0, 1.0];

/// Returns a word whose first bytes are removed, so that `length` of 8 are left.
#[inline(always)]
fn last_bytes(word: u64, length: u64) -> u64 {
    word & (u64::MAX << (64u64.wrapping_sub(length.wrapping_mul(8)) & 63))
}

/// Returns a word of ones below the last `length` of 8 bytes.
#[inline(always)]
fn below_last(length: u64) -> u64 {
    (1u64 << (64u64.wrapping_sub(length.wrapping_mul(8)) & 63)).wrapping_sub(1)
}

/// Returns 1 at the first byte that is a point; 0 if there is none.
#[inline(always)]
fn first_point(word: u64) -> u64 {
    let zero_there = word ^ (b'.' as u64 * ONES);
    let found = zero_there.wrapping_sub(ONES) & !zero_there & HIGH_BITS;
    (found & found.wrapping_neg()) >> 7
}

/// Moves the bytes before the point over it; `point` is 1 at its byte.
#[inline(always)]
fn closed_up(word: u64, point: u64) -> u64 {
    (word & !(point << 8).wrapping_sub(1)) | ((word & point.wrapping_sub(1)) << 8)
}

/// Returns 0 if all bytes are digits.
#[inline(always)]
fn not_digits(word: u64) -> u64 {
    let high_halves = word & (0xf0 * ONES);
    let after_nine = (word.wrapping_add(0x06 * ONES) & (0xf0 * ONES)) >> 4;
    (high_halves | after_nine) ^ (0x33 * ONES)
}

/// Returns the integer of eight digits, the first in the lowest byte.
#[inline(always)]
fn integer(digits: u64) -> u64 {
    let ones = digits.wrapping_sub(ZEROS);
    let pairs = (ones << 3).wrapping_add(ones << 1).wrapping_add(ones >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs << 6).wrapping_add(pairs << 5).wrapping_add(pairs << 2).wrapping_add(pairs >> 16);
    (fours & 0xffff) * 10_000 + ((fours >> 32) & 0xffff)
}

#[inline(always)]
fn with_sign(magnitude: f64, is_negative: u64) -> f64 {
    f64::from_bits(magnitude.to_bits() ^ (is_negative << 63))
}

/// Parses cells of up to 8 characters, each at the end of a word; `marks[i]` is not 0 for a cell that is not parsed.
#[inline(always)]
pub(super) fn parse_8(words: &[u64; LANES], lengths: &[u64; LANES], out: &mut [f64; LANES], marks: &mut [u64; LANES]) {
    for i in 0..LANES {
        let first = (words[i] >> (64u64.wrapping_sub(8 * lengths[i]) & 63)) & 0xff;
        let is_negative = u64::from(first == u64::from(b'-'));
        let length = lengths[i].wrapping_sub(is_negative);
        let word = last_bytes(words[i], length);
        let point = first_point(word);
        let has_point = u64::from(point != 0);
        let word = if has_point != 0 { closed_up(word, point) } else { word };
        let digits = length.wrapping_sub(has_point);
        let word = word | (ZEROS & below_last(digits));
        let too_long = u64::from(digits.wrapping_sub(1) > 7) | u64::from(lengths[i].wrapping_sub(1) > 7);
        marks[i] = not_digits(word) | too_long;
        // Without a point 8, by the wrapping subtraction.
        let before_point = (point.wrapping_sub(1) & ONES).count_ones() as usize;
        // Eight digits fit into 32 bits, whose conversion is a vector instruction everywhere.
        out[i] = with_sign(f64::from(integer(word) as u32 as i32) / POWERS_8[before_point & 15], is_negative);
    }
}

/// As [`parse_8`] for four cells, by instructions on bytes: what is no digit becomes 0, the digits before the point move over it, and
/// neighbours are joined to pairs, fours and eights. A cell is parsed if it has as many digits, points and minus signs, at their
/// places, as characters.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn parse_4(simd: V3, words: [u64; 4], lengths: [u64; 4]) -> ([f64; 4], [u64; 4]) {
    let V3 { avx, avx2, .. } = simd;
    let bytes = |byte: u8| avx._mm256_set1_epi8(byte as i8);
    let [ones, zeros] = [bytes(1), bytes(0)];
    let count = |mask| avx2._mm256_sad_epu8(avx2._mm256_and_si256(mask, ones), zeros);
    let word: __m256i = pulp::cast(words);
    let lengths: __m256i = pulp::cast(lengths);
    // A length in each of its bytes, and the number of bytes after each of a word.
    let length = avx2._mm256_shuffle_epi8(lengths, pulp::cast([0u64, 8 * ONES, 0, 8 * ONES]));
    let after: __m256i = pulp::cast([0x0001_0203_0405_0607u64; 4]);
    let inside = avx2._mm256_cmpgt_epi8(length, after);
    let is_first = avx2._mm256_cmpeq_epi8(length, avx2._mm256_add_epi8(after, ones));
    let is = |place, byte| avx2._mm256_and_si256(place, avx2._mm256_cmpeq_epi8(word, bytes(byte)));
    let (minus, point) = (is(is_first, b'-'), is(inside, b'.'));
    let digits = avx2._mm256_sub_epi8(word, bytes(b'0'));
    let is_small = avx2._mm256_cmpeq_epi8(avx2._mm256_min_epu8(digits, bytes(9)), digits);
    let is_digit = avx2._mm256_and_si256(inside, is_small);
    let digits = avx2._mm256_and_si256(digits, is_digit);
    // All bytes below the point; all if there is none, which then do not move.
    let below = avx2._mm256_add_epi64(avx2._mm256_and_si256(point, ones), pulp::cast([u64::MAX; 4]));
    let above = avx2._mm256_andnot_si256(avx2._mm256_or_si256(below, point), pulp::cast([u64::MAX; 4]));
    let points = count(point);
    let moved = avx2._mm256_sllv_epi64(avx2._mm256_and_si256(digits, below), avx2._mm256_slli_epi64::<3>(points));
    let digits = avx2._mm256_or_si256(avx2._mm256_and_si256(digits, above), moved);
    let pairs = avx2._mm256_maddubs_epi16(digits, pulp::cast([[10u8, 1]; 16]));
    let fours = avx2._mm256_madd_epi16(pairs, pulp::cast([[100i16, 1]; 8]));
    let high = avx2._mm256_mul_epu32(fours, pulp::cast([10_000u64; 4]));
    let numbers = avx2._mm256_add_epi64(high, avx2._mm256_srli_epi64::<32>(fours));
    // The lower halves of four words, which hold all of them.
    let lower = |words| avx2._mm256_permutevar8x32_epi32(words, pulp::cast([0u32, 2, 4, 6, 0, 2, 4, 6]));
    let halves: [[i32; 4]; 2] = pulp::cast(lower(numbers));
    // Powers up to 10^7 are exact in single precision.
    let powers: __m256 = pulp::cast([1.0f32, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7]);
    let powers: [[f32; 4]; 2] = pulp::cast(avx2._mm256_permutevar8x32_ps(powers, lower(count(above))));
    let quotients =
        avx._mm256_div_pd(avx._mm256_cvtepi32_pd(pulp::cast(halves[0])), avx._mm256_cvtps_pd(pulp::cast(powers[0])));
    let minuses = count(minus);
    let signs = pulp::cast(avx2._mm256_slli_epi64::<63>(minuses));
    let numbers_of_digits = count(is_digit);
    let characters = avx2._mm256_add_epi64(avx2._mm256_add_epi64(numbers_of_digits, points), minuses);
    let marks = avx2._mm256_or_si256(
        avx2._mm256_xor_si256(characters, lengths),
        // No digit, or two points.
        avx2._mm256_or_si256(avx2._mm256_cmpeq_epi64(numbers_of_digits, zeros), avx2._mm256_srli_epi64::<1>(points)),
    );
    (pulp::cast(avx._mm256_xor_pd(quotients, signs)), pulp::cast(marks))
}

/// As [`parse_8`], with AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn parse_8_by_bytes(
    simd: V3,
    words: &[u64; LANES],
    lengths: &[u64; LANES],
    out: &mut [f64; LANES],
    marks: &mut [u64; LANES],
) {
    let halves = words.as_chunks::<4>().0.iter().zip(lengths.as_chunks().0);
    let results = out.as_chunks_mut().0.iter_mut().zip(marks.as_chunks_mut().0);
    halves.zip(results).for_each(|((words, lengths), (out, marks))| (*out, *marks) = parse_4(simd, *words, *lengths));
}

/// Parses cells of up to 16 characters, each at the end of two words, of which `low` comes first.
#[inline(always)]
pub(super) fn parse_16(
    low: &[u64; LANES],
    high: &[u64; LANES],
    lengths: &[u64; LANES],
    out: &mut [f64; LANES],
    marks: &mut [u64; LANES],
) {
    for i in 0..LANES {
        let shift = |bytes: u64| bytes.wrapping_sub(8 * lengths[i]) & 63;
        let (first_low, first_high) = ((low[i] >> shift(128)) & 0xff, (high[i] >> shift(64)) & 0xff);
        let first = if lengths[i] > 8 { first_low } else { first_high };
        let is_negative = u64::from(first == u64::from(b'-'));
        let length = lengths[i].wrapping_sub(is_negative);
        let high = if length >= 8 { high[i] } else { last_bytes(high[i], length) };
        let low = if length <= 8 { 0 } else { last_bytes(low[i], length - 8) };
        let (in_low, in_high) = (first_point(low), first_point(high));
        let has_point = u64::from((in_low | in_high) != 0);
        // A point in the low word moves bytes of that word only; one in the high word moves the low word as a whole. A second
        // point is left, and is no digit.
        let moves_both = in_low == 0 && in_high != 0;
        let (low, high) = (
            if in_low != 0 {
                closed_up(low, in_low)
            } else if moves_both {
                low << 8
            } else {
                low
            },
            if moves_both { closed_up(high, in_high) | (low >> 56) } else { high },
        );
        let digits = length.wrapping_sub(has_point);
        let high = high | if digits >= 8 { 0 } else { ZEROS & below_last(digits) };
        let low = low | if digits <= 8 { ZEROS } else { ZEROS & below_last(digits - 8) };
        let number = integer(low).wrapping_mul(100_000_000).wrapping_add(integer(high));
        let too_long = u64::from(digits.wrapping_sub(1) > 15) | u64::from(lengths[i].wrapping_sub(1) > 15);
        marks[i] = not_digits(low) | not_digits(high) | too_long | u64::from(number > 1 << 53);
        let before_point = |point: u64| (point.wrapping_sub(1) & ONES).count_ones() as usize;
        let before_point = if in_low != 0 { before_point(in_low) } else { 8 + before_point(in_high) };
        out[i] = with_sign(number as i64 as f64 / POWERS_16[before_point.min(16)], is_negative);
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_number;
    use super::*;

    #[cfg(target_arch = "x86_64")]
    struct ByBytes<'b> {
        simd: V3,
        words: &'b [u64; LANES],
        lengths: &'b [u64; LANES],
        out: &'b mut [f64; LANES],
        marks: &'b mut [u64; LANES],
    }

    #[cfg(target_arch = "x86_64")]
    impl pulp::NullaryFnOnce for ByBytes<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            parse_8_by_bytes(self.simd, self.words, self.lengths, self.out, self.marks);
        }
    }

    /// Parses one cell by all kernels, and asserts that their answers are those of [`parse_number`]; returns how many answered.
    fn answers(cell: &[u8], before: &[u8; 16]) -> u32 {
        let text = [before, cell].concat();
        let windows: [u8; 16] = *text.last_chunk().unwrap();
        let word = |at: usize| u64::from_le_bytes(*windows[at..].first_chunk().unwrap());
        let (mut low, mut high, mut lengths) = ([0; LANES], [BLANK; LANES], [1; LANES]);
        let lane = cell.len() % LANES;
        (low[lane], high[lane], lengths[lane]) = (word(0), word(8), cell.len() as u64);
        let mut answers = 0;
        for kernel in ["8", "8 by bytes", "16"] {
            let (mut out, mut marks) = ([f64::NAN; LANES], [0; LANES]);
            match kernel {
                "8" => parse_8(&high, &lengths, &mut out, &mut marks),
                "16" => parse_16(&low, &high, &lengths, &mut out, &mut marks),
                _ => {
                    #[cfg(target_arch = "x86_64")]
                    if let Some(simd) = V3::try_new() {
                        simd.vectorize(ByBytes {
                            simd,
                            words: &high,
                            lengths: &lengths,
                            out: &mut out,
                            marks: &mut marks,
                        });
                        let (mut others, mut of_words) = ([f64::NAN; LANES], [0; LANES]);
                        parse_8(&high, &lengths, &mut others, &mut of_words);
                        assert_eq!(marks.map(|mark| mark == 0), of_words.map(|mark| mark == 0));
                        assert!((0..LANES).all(|i| marks[i] != 0 || out[i].to_bits() == others[i].to_bits()));
                    }
                    continue;
                }
            }
            assert!((0..LANES).all(|i| i == lane || (marks[i] == 0 && out[i] == 0.0)), "a blank is 0");
            if marks[lane] == 0 {
                let found = Some(out[lane].to_bits());
                let text = String::from_utf8_lossy(cell);
                assert_eq!(found, parse_number(cell).map(f64::to_bits), "`{text}` by words of {kernel}: {}", out[lane]);
                answers += 1;
            }
        }
        answers
    }

    #[test]
    fn all_short_texts_have_the_number_of_the_parser() {
        const LETTERS: &[u8] = b"0159.-+e ,:/";
        let (mut cell, mut answered) = (Vec::new(), 0);
        for length in 0..=5u32 {
            for mut code in 0..LETTERS.len().pow(length) {
                cell.clear();
                for _ in 0..length {
                    cell.push(LETTERS[code % LETTERS.len()]);
                    code /= LETTERS.len();
                }
                answered += answers(&cell, b"-12.5,-.7\n999999");
            }
        }
        // Of n characters after the sign, 4^n texts without a point and n 4^(n - 1) with one, of which `.` alone is no number.
        let texts = |most: u32| (1..=most).map(|n| 4u32.pow(n) + n * 4u32.pow(n - 1)).sum::<u32>() - 1;
        assert_eq!(answered, 2 * (texts(5) + texts(4)));
    }

    #[test]
    fn random_texts_have_the_number_of_the_parser() {
        let mut state = 88_172_645_463_325_252_u64;
        let mut below = |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % n
        };
        let mut answered = [0_u32; 20];
        for round in 0..600_000 {
            let length = below(19) as usize;
            let point = below(length.max(1) as u64 + 2) as usize;
            let sign = below(3) == 0;
            let mut cell: Vec<u8> = (0..length).map(|_| b'0' + below(10) as u8).collect();
            if let Some(place) = cell.get_mut(point) {
                *place = b'.';
            }
            if let (Some(place), true) = (cell.first_mut(), sign) {
                *place = b'-';
            }
            if round % 8 == 0 && length > 0 {
                cell[below(length as u64) as usize] = below(256) as u8;
            }
            let before: [u8; 16] = std::array::from_fn(|_| b"0123456789.-,\n"[below(14) as usize]);
            answered[length] += answers(&cell, &before);
        }
        assert!(answered[1..=15].iter().all(|&count| count > 10_000), "{answered:?}");
        assert_eq!((answered[0], &answered[17..]), (0, &[0; 3][..]), "neither empty cells nor longer ones");
    }

    #[test]
    fn the_last_digits_are_exact() {
        for cell in [
            "9007199254740992",
            "9007199254740993",
            "900719925474099.3",
            "-0.00000000000001",
            "0.1",
            "-0",
            "-.5",
            "5.",
            "99999999",
            "999999.99",
            "4503599627370.497",
            "0.30000000000000004",
        ] {
            answers(cell.as_bytes(), b"0000000000000000");
        }
    }
}
