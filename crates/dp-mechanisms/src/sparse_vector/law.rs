//! The law of a transcript, for planning and for tests.

use crate::error::Error;
use crate::law_integral::integrate;

/// Noise with a density.
#[derive(Debug, Clone, Copy)]
pub(super) enum NoiseLaw {
    Laplace { scale: f64 },
    Gaussian { std_dev: f64 },
}

impl NoiseLaw {
    fn scale(self) -> f64 {
        match self {
            Self::Laplace { scale } => scale,
            Self::Gaussian { std_dev } => std_dev,
        }
    }

    /// Returns the number of scales beyond which the density underflows.
    fn reach(self) -> f64 {
        match self {
            Self::Laplace { .. } => 700.0,
            Self::Gaussian { .. } => 37.0,
        }
    }

    /// Returns the density at `x` scales, times the scale.
    fn density(self, x: f64) -> f64 {
        match self {
            Self::Laplace { .. } => 0.5 * (-x.abs()).exp(),
            Self::Gaussian { .. } => normal_density(x),
        }
    }

    /// Returns the probabilities below and above `x` scales.
    fn tails(self, x: f64) -> (f64, f64) {
        let tail = match self {
            Self::Laplace { .. } => 0.5 * (-x.abs()).exp(),
            Self::Gaussian { .. } => normal_tail(x.abs()),
        };
        if x < 0.0 { (tail, 1.0 - tail) } else { (1.0 - tail, tail) }
    }
}

fn normal_density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / core::f64::consts::TAU.sqrt()
}

/// Returns `P(N(0, 1) > x)` for `x >= 0`, to about 14 digits, relatively.
fn normal_tail(x: f64) -> f64 {
    let density = normal_density(x);
    if x < 3.0 {
        // 1/2 - density (x + x³/3 + x⁵/15 + ...): at 3, 60 terms leave below 1e-17.
        let (mut term, mut sum) = (x, x);
        for odd in (3..120).step_by(2) {
            term *= x * x / f64::from(odd);
            sum += term;
        }
        0.5 - density * sum
    } else {
        // Laplace's continued fraction density / (x + 1/(x + 2/(x + 3/...))).
        let mut rest = x;
        for level in (1..=80).rev() {
            rest = x + f64::from(level) / rest;
        }
        density / rest
    }
}

/// Returns the probability that each query is the first that is answered above, and last that of none.
pub(super) fn first_answer(
    threshold_noise: NoiseLaw,
    query_noise: NoiseLaw,
    queries: &[f64],
    threshold: f64,
) -> Result<Vec<f64>, Error> {
    // The noise of an extreme sensitivity or epsilon may not be a double in the units of the queries.
    if let Some(scale) =
        [threshold_noise, query_noise].map(NoiseLaw::scale).into_iter().find(|scale| !scale.is_normal())
    {
        return Err(Error::ScaleOverflow { scale });
    }
    let margins = margins(threshold_noise, queries, threshold)?;
    Ok(over_threshold_noise(threshold_noise, query_noise, &margins, queries.len() + 1, |tails, values| {
        let mut below = 1.0;
        for (i, value) in values.iter_mut().enumerate() {
            let (lower, upper) = tails.get(i).copied().unwrap_or((0.0, 1.0));
            *value = below * upper;
            below *= lower;
        }
    }))
}

/// Returns the probability of exactly these answers, `true` for above.
#[cfg(test)]
pub(super) fn transcript(
    threshold_noise: NoiseLaw,
    query_noise: NoiseLaw,
    queries: &[f64],
    threshold: f64,
    above: &[bool],
) -> Result<f64, Error> {
    let margins = margins(threshold_noise, queries, threshold)?;
    let law = over_threshold_noise(threshold_noise, query_noise, &margins, 1, |tails, values| {
        values[0] =
            tails.iter().zip(above).map(|(&(lower, upper), &above)| if above { upper } else { lower }).product();
    });
    Ok(law[0])
}

/// Returns `query - threshold` in scales of the threshold's noise.
fn margins(threshold_noise: NoiseLaw, queries: &[f64], threshold: f64) -> Result<Vec<f64>, Error> {
    let margins: Vec<f64> =
        queries.iter().map(|query| (0.5 * query - 0.5 * threshold) / threshold_noise.scale() * 2.0).collect();
    if threshold.is_finite() && queries.iter().all(|query| query.is_finite()) {
        Ok(margins)
    } else {
        Err(Error::NonFiniteInput)
    }
}

/// Returns the integral over the threshold's noise of `answers`, evaluated at the probabilities of each query, given this noise,
/// to be below and above.
fn over_threshold_noise(
    threshold_noise: NoiseLaw,
    query_noise: NoiseLaw,
    margins: &[f64],
    components: usize,
    mut answers: impl FnMut(&[(f64, f64)], &mut [f64]),
) -> Vec<f64> {
    let ratio = threshold_noise.scale() / query_noise.scale();
    let breakpoints: Vec<f64> = margins.iter().copied().chain([0.0]).collect();
    let mut tails = vec![(0.0, 0.0); margins.len()];
    let reach = threshold_noise.reach();
    integrate(-reach, reach, &breakpoints, ratio.recip().min(1.0), components, |z, values| {
        for (tails, margin) in tails.iter_mut().zip(margins) {
            *tails = query_noise.tails((z - margin) * ratio);
        }
        answers(&tails, values);
        let density = threshold_noise.density(z);
        for value in values.iter_mut() {
            *value *= density;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_tails() {
        // From 30-digit arithmetic.
        for (x, expected) in [
            (0.0, 0.5),
            (0.1, 0.460_172_162_722_971),
            (0.8, 0.211_855_398_583_396_7),
            (2.9, 0.001_865_813_300_384_038),
            (3.1, 0.000_967_603_213_218_357),
            (10.0, 7.619_853_024_160_526e-24),
            (36.0, 4.182_624_065_797_283e-284),
        ] {
            let found = normal_tail(x);
            assert!((found - expected).abs() <= 2e-12 * expected, "{x}: {found}");
        }
    }
}
