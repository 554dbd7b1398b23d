//! The steps of a stream in which one record may take part.

use crate::error::Error;

/// The maximum number of steps in which one record takes part, and their least distance.
///
/// # Examples
/// ```
/// use dp_mechanisms::continual::Participation;
/// let epochs = Participation::repeated(3, 100)?; // three passes over 100 batches in a fixed order
/// assert_eq!(epochs.most_among(250), 3);
/// assert_eq!(epochs.most_among(101), 2);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::continual::ParticipationRecord",
        into = "crate::record::continual::ParticipationRecord"
    )
)]
pub struct Participation {
    most: u64,
    separation: u64,
}

impl Participation {
    /// Participation in one step of the stream.
    pub const fn once() -> Self {
        Self { most: 1, separation: 1 }
    }

    /// Participation in at most `most` steps, any two of which are at least `separation` apart (1: any steps).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless both are at least 1.
    pub fn repeated(most: u64, separation: u64) -> Result<Self, Error> {
        for (name, value) in [("participations", most), ("separation", separation)] {
            if value == 0 {
                return Err(Error::OutOfRange { name, value: 0.0, range: "[1, 2^64)" });
            }
        }
        Ok(Self { most, separation })
    }

    /// Returns the maximum number of steps in which a record may take part.
    pub const fn most(self) -> u64 {
        self.most
    }

    /// Returns the least distance of two of them.
    pub const fn separation(self) -> u64 {
        self.separation
    }

    /// Returns the maximum number of steps in which a record can take part among this many consecutive ones.
    pub fn most_among(self, steps: u64) -> u64 {
        self.most.min(steps.div_ceil(self.separation))
    }

    /// Returns the largest total weight of an allowed set of at most 0, 1, 2, ... steps; row `k` of rows `0..=n` is for sets
    /// within the first `k` positions. Weights must be non-negative.
    ///
    /// ```text
    /// best[p][a] = max(best[p-1][a], best[p - separation][a-1] + weight[p-1])
    /// ```
    pub(super) fn heaviest(self, weights: impl ExactSizeIterator<Item = f64>, most: usize) -> Vec<Vec<f64>> {
        let separation = usize::try_from(self.separation).unwrap_or(usize::MAX);
        let mut best = Vec::with_capacity(weights.len() + 1);
        best.push(vec![0.0; most + 1]);
        for (position, weight) in (1usize..).zip(weights) {
            let mut row: Vec<f64> = best[position - 1].clone();
            let earlier = &best[position.saturating_sub(separation)];
            for (value, before) in row[1..].iter_mut().zip(earlier) {
                *value = value.max(before + weight);
            }
            best.push(row);
        }
        best
    }

    /// Calls `visit` with each allowed set of at most `most` steps among `0..steps`, as a sequence of additions and removals of
    /// its last step; stops after `limit` sets and then returns `false`.
    pub(super) fn each_pattern(
        self,
        steps: usize,
        most: usize,
        limit: usize,
        visit: &mut impl FnMut(&[usize]),
    ) -> bool {
        let separation = usize::try_from(self.separation).unwrap_or(usize::MAX);
        let mut pattern: Vec<usize> = Vec::with_capacity(most);
        let mut seen = 0;
        let mut next = 0;
        loop {
            if next < steps && pattern.len() < most {
                pattern.push(next);
                visit(&pattern);
                seen += 1;
                if seen >= limit {
                    return false;
                }
                next = next.saturating_add(separation);
            } else {
                match pattern.pop() {
                    Some(last) => next = last + 1,
                    None => return true,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn patterns(participation: Participation, steps: usize, most: usize) -> Vec<Vec<usize>> {
        let mut all = Vec::new();
        assert!(participation.each_pattern(steps, most, usize::MAX, &mut |pattern| all.push(pattern.to_vec())));
        all
    }

    #[test]
    fn refused_numbers() {
        assert!(matches!(Participation::repeated(0, 1), Err(Error::OutOfRange { name: "participations", .. })));
        assert!(matches!(Participation::repeated(1, 0), Err(Error::OutOfRange { name: "separation", .. })));
        assert_eq!(Participation::repeated(u64::MAX, u64::MAX).map(|p| p.most_among(5)), Ok(1));
    }

    #[test]
    fn patterns_are_those_that_are_allowed() {
        let two = Participation::repeated(2, 2).unwrap();
        let expected: [&[usize]; 9] = [&[0], &[0, 2], &[0, 3], &[0, 4], &[1], &[1, 3], &[1, 4], &[2], &[2, 4]];
        let mut found = patterns(two, 5, 2);
        found.retain(|pattern| pattern[0] < 3);
        assert_eq!(found, expected);
        assert!(!two.each_pattern(5, 2, 3, &mut |_| ()));
    }

    proptest! {
        #[test]
        fn the_heaviest_pattern_is_found(
            weights in prop::collection::vec(0.0f64..1.0, 1..10), most in 1u64..5, separation in 1u64..5,
        ) {
            let participation = Participation::repeated(most, separation).unwrap();
            let most = most as usize;
            let table = participation.heaviest(weights.iter().copied(), most);
            let brute = patterns(participation, weights.len(), most)
                .iter()
                .map(|pattern| pattern.iter().map(|&step| weights[step]).sum::<f64>())
                .fold(0.0, f64::max);
            prop_assert!((table[weights.len()][most] - brute).abs() < 1e-12);
            let longest = patterns(participation, weights.len(), most).iter().map(Vec::len).max().unwrap();
            prop_assert_eq!(longest as u64, participation.most_among(weights.len() as u64));
        }
    }
}
