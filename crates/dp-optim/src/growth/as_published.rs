//! Published formulas that are wrong. No guarantee follows from them, and no recipe uses them. Each has a test in which two
//! runs on neighbouring data end further apart than it allows.
//!
//! The common error is to divide a sensitivity by the batch size `b` although a pass then has fewer updates by a factor `b`.
//! All are from Wu et al. 2017 (Bolt-on); `2L` is written `G`.

/// Section 3.2.3: Lemma 8 "divided by b". Correct: `G/(γ m)`, since the last batch alone moves the output by
/// `η_T G/b = G/(γ T b)` and each of the `k` passes moves it by as much.
pub fn strongly_convex_decreasing_with_batches(n: u64, batch_size: u64, gamma: f64, g: f64) -> f64 {
    g / (gamma * n as f64) / batch_size as f64
}

/// Lemma 7 "divided by b": contraction over `m` updates per pass, of which there are only `m/b`.
pub fn strongly_convex_constant_with_batches(n: u64, batch_size: u64, step: f64, gamma: f64, g: f64) -> f64 {
    let log_factor = (-step * gamma).ln_1p();
    step * g / -(log_factor * n as f64).exp_m1() / batch_size as f64
}

/// Corollary 2 "divided by b": steps counted in examples, `j m` instead of `j m/b`.
pub fn convex_decreasing_with_batches(
    n: u64,
    batch_size: u64,
    passes: u64,
    power: f64,
    smoothness: f64,
    g: f64,
) -> f64 {
    let m = n as f64;
    let sum: f64 = (0..passes).map(|j| 1.0 / (m.powf(power) + j as f64 * m + 1.0)).sum();
    2.0 * g / smoothness * sum / batch_size as f64
}

/// Corollary 3 "divided by b": steps counted in examples.
pub fn convex_square_root_with_batches(
    n: u64,
    batch_size: u64,
    passes: u64,
    power: f64,
    smoothness: f64,
    g: f64,
) -> f64 {
    let m = n as f64;
    let sum: f64 = (0..passes).map(|j| 1.0 / (m.powf(power) + (j as f64 * m + 1.0).sqrt())).sum();
    2.0 * g / smoothness * sum / batch_size as f64
}

/// "Divided by b" with a constant step although `b` does not divide `m`: the records of the short last batch, each weighted by
/// one over its actual size, move the output by more.
pub fn convex_constant_with_partial_batch(passes: u64, step: f64, batch_size: u64, g: f64) -> f64 {
    passes as f64 * g * step / batch_size as f64
}

/// Lemma 10 read as "averaging never raises the sensitivity": the last iterate's value for a uniform average. False under
/// contraction, where the early iterates are further apart than the last.
pub fn averaged_strongly_convex_decreasing(n: u64, gamma: f64, g: f64) -> f64 {
    g / (gamma * n as f64)
}

/// Section 4.3: the value for a fixed number of passes, applied to a run that stops when the training error improves by less
/// than a threshold, after a number of passes that depends on the data.
pub fn stopped_on_training_error(n: u64, gamma: f64, lipschitz: f64) -> f64 {
    2.0 * lipschitz / (gamma * n as f64)
}

/// Appendix E read literally: `log` of the noise density at norm `norm`, up to a constant, if the direction is drawn from the
/// unit *ball* and the length from `Gamma(d, θ)`. It is `ln E₁(‖z‖/θ)` in every dimension, infinite at the origin, so that no
/// epsilon holds for any shift.
pub fn log_density_of_ball_direction(norm: f64, scale: f64) -> f64 {
    exponential_integral(norm / scale).ln()
}

/// `E₁(x) = ∫_x^∞ e^{-t}/t dt` for `x > 0`: the series up to 1, the continued fraction, evaluated backwards, beyond.
fn exponential_integral(x: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if x <= 1.0 {
        let mut sum = -EULER - x.ln();
        let mut term = 1.0;
        for k in 1..=40 {
            let k = f64::from(k);
            term *= -x / k;
            sum -= term / k;
        }
        return sum;
    }
    let mut fraction = 0.0;
    for k in (1..=200).rev() {
        let k = f64::from(k);
        fraction = k / (1.0 + k / (x + fraction));
    }
    (-x).exp() / (x + fraction)
}
