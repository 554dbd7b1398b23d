//! Sums of numbers, rounded once: the same in any order.

/// An exact sum of finite numbers, as numbers that do not overlap, in increasing magnitude.
///
/// # References
/// Shewchuk 1997, Adaptive precision floating-point arithmetic, on growing expansions.
#[derive(Default)]
pub(super) struct ExactSum {
    parts: Vec<f64>,
}

impl ExactSum {
    /// Adds a number. No sum may overflow.
    pub(super) fn add(&mut self, number: f64) {
        let (mut carried, mut kept) = (number, 0);
        for i in 0..self.parts.len() {
            let (larger, smaller) =
                if carried.abs() < self.parts[i].abs() { (self.parts[i], carried) } else { (carried, self.parts[i]) };
            carried = larger + smaller;
            let lost = smaller - (carried - larger);
            if lost != 0.0 {
                self.parts[kept] = lost;
                kept += 1;
            }
        }
        self.parts.truncate(kept);
        self.parts.push(carried);
    }

    /// Adds another sum.
    pub(super) fn append(&mut self, other: &Self) {
        other.parts.iter().for_each(|&part| self.add(part));
    }

    /// Returns the double nearest to the sum.
    pub(super) fn value(&self) -> f64 {
        let mut parts = self.parts.iter().rev().copied();
        let (mut sum, mut lost) = (parts.next().unwrap_or(0.0), 0.0);
        for part in parts.by_ref() {
            let before = sum;
            sum = before + part;
            lost = part - (sum - before);
            if lost != 0.0 {
                break;
            }
        }
        // If the sum was rounded from half way, the sign of the next part says to which side it belongs.
        if let Some(next) = parts.next()
            && ((lost < 0.0 && next < 0.0) || (lost > 0.0 && next > 0.0))
        {
            let twice = lost * 2.0;
            let other = sum + twice;
            if other - sum == twice {
                return other;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(numbers: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        numbers.iter().for_each(|&number| sum.add(number));
        sum.value()
    }

    #[test]
    fn sums_are_rounded_once() {
        let (half, tiny) = (f64::EPSILON / 2.0, f64::EPSILON.powi(3));
        for (numbers, expected) in [
            (vec![], 0.0),
            (vec![0.1; 10], 1.0),
            (vec![1e100, 1.0, -1e100], 1.0),
            (vec![1.0, half], 1.0),
            (vec![1.0, half, tiny], 1.0 + f64::EPSILON),
            (vec![1.0, half, -tiny], 1.0),
            (vec![1.0 + f64::EPSILON, half, -tiny], 1.0 + f64::EPSILON),
        ] {
            assert_eq!(sum(&numbers), expected, "{numbers:?}");
        }
    }

    proptest! {
        #[test]
        fn neither_order_nor_grouping_matters(
            numbers in prop::collection::vec((-1e3..1e3_f64, -60..60_i32).prop_map(|(x, e)| x * 2f64.powi(e)), 0..60),
            cut in 0..60_usize,
        ) {
            let reversed: Vec<f64> = numbers.iter().rev().copied().collect();
            prop_assert_eq!(sum(&numbers).to_bits(), sum(&reversed).to_bits());
            let (mut first, mut second) = (ExactSum::default(), ExactSum::default());
            let cut = cut.min(numbers.len());
            numbers[..cut].iter().for_each(|&number| first.add(number));
            numbers[cut..].iter().for_each(|&number| second.add(number));
            first.append(&second);
            prop_assert_eq!(first.value().to_bits(), sum(&numbers).to_bits());
        }
    }
}
