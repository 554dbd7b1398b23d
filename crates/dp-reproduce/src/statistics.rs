//! Means with their uncertainty.

/// Statistics of the repetitions of one measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Number of repetitions.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation with divisor `n - 1`; 0 for a single one.
    pub std_dev: f64,
}

impl Sample {
    /// Computes mean and standard deviation; `None` for an empty slice.
    ///
    /// # Examples
    /// ```
    /// let sample = dp_reproduce::Sample::of(&[1.0, 3.0]).unwrap();
    /// assert_eq!((sample.mean, sample.std_dev, sample.std_error()), (2.0, 2f64.sqrt(), 1.0));
    /// ```
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let std_dev = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
        Some(Self { n, mean, std_dev })
    }

    /// Returns the standard error of the mean.
    pub fn std_error(&self) -> f64 {
        self.std_dev / (self.n as f64).sqrt()
    }
}

impl core::fmt::Display for Sample {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ± {}", number(self.mean), number(self.std_error()))
    }
}

/// Formats a number with about four significant digits.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    match value.abs() {
        magnitude if !magnitude.is_finite() => value.to_string(),
        magnitude if !(1e-3..1e5).contains(&magnitude) => format!("{value:.2e}"),
        magnitude => format!("{value:.*}", (3 - magnitude.log10().floor() as i32).clamp(0, 6) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown: Vec<String> =
            [0.0, 0.91234, 12.3456, 123_456.7, 0.000_123_4, -1234.5, f64::NAN].into_iter().map(number).collect();
        assert_eq!(shown, ["0", "0.9123", "12.35", "1.23e5", "1.23e-4", "-1234", "NaN"]);
    }

    #[test]
    fn one_value_has_no_spread_and_none_no_mean() {
        assert_eq!(Sample::of(&[]), None);
        assert_eq!(Sample::of(&[4.0]).unwrap().std_error(), 0.0);
    }
}
