//! Exact arithmetic for streams: inputs as whole numbers of a fine step, noise on the release's grid.

use dp_accountant::Adjacency;
use dp_accountant::certificate::NoiseMode;
use nalgebra::RealField;

use crate::error::Error;
use crate::gaussian::Gaussian;
use crate::rng::ReleaseRng;
use crate::rounding::{power_of_two, product_up, sqrt_up, sum_up};
use crate::sensitivity::L2Sensitivity;

/// Maximum number of bits between the unit of a sum and the release's grid: a fraction of a step is then a double.
const FRACTION_BITS: u32 = 52;
/// Base-2 logarithm of the bound on sums of inputs.
const SUM_BITS: u32 = 125;
/// Inputs are clamped at no less than two to this power of steps of the release's grid: 2^30 noise scales.
const LEAST_RANGE_BITS: u32 = 60;

/// The grids of a stream's values.
///
/// # Formula
/// ```text
/// input:  x ↦ trunc(clamp(x / f)),   f = g 2^-bits,   g the step of the noise's grid
/// noise:  v ↦ round((v + N(0, s²)) / g) · g
/// ```
///
/// # Privacy
/// Clamping increases no distance, and truncation increases it by less than `f` per coordinate, so that vectors at distance `D`
/// become vectors at a distance of at most `D + f √d`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StreamGrid<A: Adjacency> {
    noise: Gaussian<A>,
    bits: u32,
    /// The largest input, in steps of the release's grid.
    limit: f64,
}

impl<A: Adjacency> StreamGrid<A> {
    /// Creates the grid for inputs of sensitivity `each` and `dim` coordinates. Their sensitive combinations have `spread` times
    /// the sensitivity of one input, and are at most `2^growth_bits` times as large in units of the fine step.
    ///
    /// # Errors
    /// [`Error::ScaleOverflow`]; [`Error::NotFinite`] for a sensitivity that overflows; [`Error::OutOfRange`] if sums could
    /// overflow.
    pub(super) fn new(
        each: L2Sensitivity<A>,
        dim: u64,
        spread: f64,
        std_dev: f64,
        bits: u32,
        growth_bits: u32,
    ) -> Result<Self, Error> {
        let grid = Gaussian::from_std_dev(each, std_dev)?.grid();
        // If the fine step is not a normal number, the least normal number is used, which is larger.
        let fine = (grid.step() * power_of_two(-(bits as i32))).max(f64::MIN_POSITIVE);
        let moved = L2Sensitivity::<A>::new(sum_up(each.get(), product_up(fine, sqrt_up(dim as f64))))?;
        let noise = Gaussian::from_std_dev(L2Sensitivity::new(product_up(moved.get(), spread))?, std_dev)?;
        let range_bits = SUM_BITS.saturating_sub(growth_bits + bits);
        if range_bits < LEAST_RANGE_BITS {
            let value = f64::from(growth_bits);
            return Err(Error::OutOfRange {
                name: "bits of growth of sums",
                value,
                range: "at most 65 less the fine bits",
            });
        }
        Ok(Self { noise, bits, limit: power_of_two(range_bits as i32) })
    }

    /// Creates the grid with the least noise for which `std_dev >= noise_multiplier · sensitivity`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn from_noise_multiplier(
        each: L2Sensitivity<A>,
        dim: u64,
        spread: f64,
        noise_multiplier: f64,
        bits: u32,
        growth_bits: u32,
    ) -> Result<Self, Error> {
        let times = |scale: f64, factor: f64| match product_up(scale, factor) {
            product if product.is_normal() => Ok(product),
            scale => Err(Error::ScaleOverflow { scale }),
        };
        // The sensitivity depends on the grid, and thus, in its last digits, on the noise.
        let mut std_dev = times(times(each.get(), spread)?, noise_multiplier)?;
        for _ in 0..8 {
            let grid = Self::new(each, dim, spread, std_dev, bits, growth_bits)?;
            let needed = times(grid.noise.sensitivity().get(), noise_multiplier)?;
            if std_dev >= needed {
                return Ok(grid);
            }
            std_dev = needed;
        }
        Err(Error::ScaleOverflow { scale: std_dev })
    }

    /// Sets the noise mode.
    pub(super) fn with_noise_mode(self, mode: NoiseMode) -> Result<Self, Error> {
        Ok(Self { noise: self.noise.with_noise_mode(mode)?, ..self })
    }

    /// Converts an input to fine steps.
    pub(super) fn input<F: RealField + Copy>(&self, value: &[F]) -> Vec<i128> {
        let (in_steps, fine) = (1.0 / self.noise.grid().step(), power_of_two(self.bits as i32));
        let position = |entry: F| {
            let entry: f64 = entry.to_subset_unchecked();
            ((entry * in_steps).clamp(-self.limit, self.limit) * fine) as i128
        };
        value.iter().map(|&entry| position(entry)).collect()
    }

    /// Adds noise to a sum, of which `2^bits` units make a step of the release's grid; the result is in steps of that grid.
    pub(super) fn add_noise<R: ReleaseRng + ?Sized>(
        &self,
        sum: &[i128],
        bits: u32,
        rng: &mut R,
    ) -> Result<Vec<i128>, Error> {
        debug_assert!((1..=FRACTION_BITS).contains(&bits));
        let step = self.noise.grid().step();
        // |fraction| <= 2^(bits - 1) units, at most 2^51: a double, and so is its multiple of the step.
        let whole = |v: i128| (v + (1i128 << (bits - 1))) >> bits;
        let unit = power_of_two(-(bits as i32));
        let mut noisy: Vec<f64> = sum.iter().map(|&v| (v - (whole(v) << bits)) as f64 * unit * step).collect();
        self.noise.add_noise(&mut noisy, rng)?;
        let in_steps = 1.0 / step;
        Ok(sum.iter().zip(noisy).map(|(&v, noisy)| whole(v) + (noisy * in_steps) as i128).collect())
    }

    /// Returns the position of a number of steps.
    pub(super) fn position(&self, steps: i128) -> f64 {
        steps as f64 * self.noise.grid().step()
    }

    /// Returns the noise of one coordinate of one sum, with the sensitivity of all sums together.
    pub(super) fn noise(&self) -> &Gaussian<A> {
        &self.noise
    }

    pub(super) fn noise_mode(&self) -> NoiseMode {
        self.noise.noise_mode()
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::ZeroOut;

    use super::*;
    use crate::rng::SeededRng;

    /// The part of a sum below one step moves a proportional number of outputs by one step. With equal seeds the noise of a block
    /// is the same, so that the difference is that part alone. Its mean over 2^14 coordinates is within 0.04 of it, except with a
    /// probability of 2 exp(-2 · 2^14 · 0.04²) < 1e-22 (Hoeffding).
    #[test]
    fn fractions_of_a_step_are_added_before_rounding() {
        let each = L2Sensitivity::<ZeroOut>::new(1.0).unwrap();
        let grid = StreamGrid::new(each, 256, 1.0, 1.0, 12, 0).unwrap();
        for (units, expected) in [(1i128 << 10, 0.25), (-(1 << 10), -0.25), (3 << 10, 0.75), ((7 << 12) + 512, 7.125)] {
            let mut total = 0;
            for seed in 0..64 {
                let noisy = |sum: i128| grid.add_noise(&[sum; 256], 12, &mut SeededRng::new(seed)).unwrap();
                total += noisy(units).iter().zip(noisy(0)).map(|(with, without)| with - without).sum::<i128>();
            }
            let mean = total as f64 / (64.0 * 256.0);
            assert!((mean - expected).abs() < 0.04, "{mean} {expected}");
        }
    }
}
