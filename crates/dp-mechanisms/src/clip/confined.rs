//! Microbatches that begin at fixed positions of the records, so that one record changes the rounding of few examples.

use core::ops::Range;

use nalgebra::RealField;

use super::UNIT_ROUNDOFF;
use super::sum::{LARGEST_SLACK, unit_roundoff};
use crate::error::Error;

/// Cuts the positions of a batch's records, in ascending order, into microbatches of at most `most`; returns the range of each
/// in `positions`, in order. None is empty.
///
/// # Formula
/// Of the intervals `[k 2^b, (k + 1) 2^b)`, those are microbatches that hold at most `most` of the positions and do not lie in
/// a larger one of these.
///
/// # Privacy
/// Let one position be added, and let `I` be the interval that is, or would be, the microbatch of that position before. The larger
/// intervals around `I` hold more than `most` positions without it, so they are cut with it too. So both batches are cut alike
/// outside of `I`, which holds at most `most` positions before and one more afterwards: the sums of all other microbatches have the
/// same bits. Cut every `most` positions, one record would move all that follow.
///
/// # Examples
/// ```
/// use dp_mechanisms::clip::microbatches;
///
/// // [0, 4) and [4, 8) hold three positions each, [0, 8) holds six.
/// assert_eq!(microbatches(&[0, 1, 3, 4, 6, 7], 4), [0..3, 3..6]);
/// // With a position more, [0, 4) is still a microbatch. [4, 8) is too if it holds no more than four.
/// assert_eq!(microbatches(&[0, 1, 3, 4, 5, 6, 7], 4), [0..3, 3..7]);
/// assert_eq!(microbatches(&[0, 1, 3, 4, 5, 6, 7], 3), [0..3, 3..5, 5..7]);
/// ```
pub fn microbatches(positions: &[u32], most: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    cut(positions, 0, u32::BITS, most.max(1), &mut ranges);
    ranges
}

/// Cuts positions within one interval of length `2^bits`, the first of which has index `start`.
fn cut(positions: &[u32], start: usize, bits: u32, most: usize, ranges: &mut Vec<Range<usize>>) {
    if positions.is_empty() {
        return;
    }
    if positions.len() <= most || bits == 0 {
        ranges.push(start..start + positions.len());
        return;
    }
    let bit = bits - 1;
    let (low, high) = positions.split_at(positions.partition_point(|position| (position >> bit) & 1 == 0));
    cut(low, start, bit, most, ranges);
    cut(high, start + low.len(), bit, most, ranges);
}

/// Returns the sensitivity of a sum of at most `examples` contributions of norm at most `bound`, of which a neighbour adds or
/// removes `moved` (1, or 2 for a replacement), in [`microbatches`] of at most `microbatch` that are summed in `F`.
///
/// # Formula
/// ```text
/// a B + a (2m + 1) (γ B + 2^20 η) + 2 δ n (1 + γ) B     γ = r/(1 - r),   r = (m + 3) υ
///                                                     δ = s/(1 - s),   s = k 2^-53,   k = min(n, 1 + 32 ⌊n/(m + 1)⌋)
/// ```
/// with `υ` the unit roundoff of `F` and `η` its smallest normal number. In single precision the second term is 0.2% of `B` for
/// `m` = 128, 0.8% for 256 and 3% for 512.
///
/// # Privacy
/// An added contribution changes the rounding within microbatches of at most `m` examples before and `m + 1` afterwards. For each of
/// them, a coordinate of a microbatch's sum has one product and at most `m` additions that round, in any order, fused or not: an
/// error of at most `γ` times the sum of the sizes, and `η` where a product underflows, in at most 2^40 coordinates. A replacement
/// is a removal and an addition.
///
/// The total of `k` microbatches has at most `k` additions in double precision, whose error is at most `δ` times the sum of the sizes
/// of all contributions as rounded, for both neighbours. An interval that is cut holds more than `m` positions: there are at most
/// `n/(m + 1)` of each of the 32 lengths, and one microbatch more than intervals that are cut.
///
/// # Errors
/// [`Error::OutOfRange`] if rounding would take more than an eighth of the bound for each contribution that moves.
///
/// # Examples
/// ```
/// use dp_mechanisms::clip::sensitivity_of_sum_in_float;
/// assert!(sensitivity_of_sum_in_float::<f32>(1.0, 1.0, 60_000, 256)? < 1.008);
/// assert!(sensitivity_of_sum_in_float::<f32>(1.0, 1.0, 60_000, 2048).is_err());
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
pub fn sensitivity_of_sum_in_float<F: RealField + Copy>(
    moved: f64,
    bound: f64,
    examples: u64,
    microbatch: u64,
) -> Result<f64, Error> {
    let roundoff = unit_roundoff::<F>();
    let smallest = if roundoff > UNIT_ROUNDOFF { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE };
    let (most, count) = (microbatch.max(1) as f64, examples as f64);
    let parts = count.min(1.0 + 32.0 * (count / (most + 1.0)).floor());
    let (share, across) = ((most + 3.0) * roundoff, parts * UNIT_ROUNDOFF);
    let (within, across) = (share / (1.0 - share), across / (1.0 - across));
    let underflow = f64::from(1 << 20) * smallest / bound;
    let slack = moved * (2.0 * most + 1.0) * (within + underflow) + 2.0 * across * count * (1.0 + within);
    if !(share < 0.01 && across < 0.01 && slack <= moved * LARGEST_SLACK) {
        return Err(Error::OutOfRange { name: "slack for the rounding of a sum", value: slack, range: "[0, 1/8]" });
    }
    // Above any rounding error of the few operations here.
    Ok((moved + slack) * bound * (1.0 + 1e-15))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_set(set: u32) -> Vec<u32> {
        (0..16).filter(|position| set >> position & 1 == 1).collect()
    }

    /// Returns the microbatches as lists of positions.
    fn lists(positions: &[u32], most: usize) -> Vec<Vec<u32>> {
        microbatches(positions, most).into_iter().map(|range| positions[range].to_vec()).collect()
    }

    /// Every batch of 12 records with every record added, for microbatches of 1 to 5: at most `most` examples of the smaller batch,
    /// and one more of the larger one, lie in microbatches that the other does not have.
    #[test]
    fn one_record_changes_few_microbatches() {
        for most in 1..=5 {
            let mut largest = 0;
            for set in 0..1u32 << 12 {
                let before = lists(&of_set(set), most);
                assert!(before.iter().all(|list| (1..=most).contains(&list.len())));
                assert_eq!(before.concat(), of_set(set));
                for added in (0..12).filter(|added| set >> added & 1 == 0) {
                    let after = lists(&of_set(set | 1 << added), most);
                    let changed = |lists: &[Vec<u32>], others: &[Vec<u32>]| -> usize {
                        lists.iter().filter(|list| !others.contains(list)).map(Vec::len).sum()
                    };
                    let (old, new) = (changed(&before, &after), changed(&after, &before));
                    assert!(old <= most && new <= most + 1, "{set:b} {added} {most}: {old} {new}");
                    largest = largest.max(new);
                }
            }
            // Of two microbatches of one example, one was there before.
            assert_eq!(largest, if most == 1 { 1 } else { most + 1 });
        }
    }

    #[test]
    fn no_more_microbatches_than_stated() {
        for most in 1..=4 {
            for set in 0..1u32 << 16 {
                let positions = of_set(set);
                let parts = microbatches(&positions, most).len();
                let bound = positions.len().min(1 + 32 * (positions.len() / (most + 1)));
                assert!(parts <= bound, "{set:b} {most}: {parts}");
            }
        }
        // Far apart and close together: all lengths of intervals are cut.
        let close: Vec<u32> = (0..5).chain([u32::MAX]).collect();
        assert_eq!(microbatches(&close, 4).len(), 3);
        assert_eq!(microbatches(&[], 3), []);
        assert_eq!(microbatches(&[7, u32::MAX], 0), [0..1, 1..2]);
    }
}
