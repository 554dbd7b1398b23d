//! Disjoint parts of the data, each with its own mechanism.
//!
//! **One part differs** (a record added or removed, or one replaced if the parts do not depend on records' values): given the
//! other parts' records, which are the same, the laws of the outputs are products that differ in one factor, so the divergence is
//! that part's own, at most the largest.
//!
//! **Two parts differ** (a record replaced whose own values choose its part: one part loses it, another gains it): the divergence
//! of a product of independent laws is the sum of the factors' divergences, at most that of the two largest. If the record stays in
//! its part, that part alone differs, by one record removed and one added.

/// Returns the divergence if one part differs.
pub(super) fn largest(divergences: impl Iterator<Item = f64>) -> f64 {
    divergences.fold(0.0, f64::max)
}

/// Returns the divergence if two parts differ.
pub(super) fn two_largest(divergences: impl Iterator<Item = f64>) -> f64 {
    let (mut largest, mut second) = (0.0f64, 0.0f64);
    for divergence in divergences {
        (largest, second) =
            if divergence > largest { (divergence, largest) } else { (largest, second.max(divergence)) };
    }
    crate::rounding::add_up(largest, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_and_the_two_largest() {
        let parts = [0.5, 3.0, 1.0, 2.0];
        assert_eq!(largest(parts.into_iter()), 3.0);
        assert_eq!(two_largest(parts.into_iter()), 5.0);
        assert_eq!(two_largest([2.0, 2.0].into_iter()), 4.0);
        assert_eq!(two_largest([f64::INFINITY, 1.0].into_iter()), f64::INFINITY);
        assert_eq!(largest(core::iter::empty()), 0.0);
    }
}
