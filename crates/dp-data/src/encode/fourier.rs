//! Random Fourier features: cosines of random directions through all columns, with which a linear model sees interactions.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::draw;
use super::feature_map::sin_half_pi;
use super::project::{Generator, MAX_PROJECTION_ENTRIES, PROJECTION_SEEDS};
use crate::error::{DataError, DataErrorKind};
use crate::memory;

/// Bandwidth of categories and indicators, relative to that of numeric columns.
const OF_CATEGORIES: f64 = 0.5;

/// Maximum bandwidth: beyond it every record is far from all others.
pub const MAX_BANDWIDTH: f64 = 100.0;

/// Random Fourier features of all columns together, beside those of single columns.
///
/// A linear model is a sum of one function for each column. With these features it is that sum and a smooth function of all
/// columns, so that it learns interactions. They pay if there are many records for the budget and the label depends on
/// combinations of columns; measurements are in the project's README.
///
/// # Formula
/// ```text
/// a sqrt(2/D) cos(ω_i · v + ψ_i),   i = 1, ..., D
/// v     2 z - 1 for a numeric column, z its coordinate (see FeatureMap); 0 or 1 for a category or an indicator
/// ω_i   independent normal numbers of standard deviation b for numeric columns, b/2 for the others
/// ψ_i   uniform
/// a²    the mean of the squared norm of all other features, for uniform z, and indicators that are 1 half of the time
/// ```
/// Inner products of these features approximate `a² exp(-(b²/2) ‖v - v'‖²)`, where categories count a quarter. Half of a row's
/// squared norm is theirs, more if indicators are rarely 1.
///
/// # Privacy
/// They depend on the schema, on public numbers and on the seed, which must not depend on the records; the norm of rows is
/// bounded after them.
///
/// # Reproducibility
/// As for a [`Projection`](super::Projection): models store these numbers, and the frequencies are drawn again, with the same
/// bits on every platform.
///
/// # Examples
/// ```
/// use dp_data::encode::{Encoder, Encoding, FourierFeatures, RowBuffer};
/// use dp_data::Schema;
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
///      columns.age = { type = 'numeric', min = 0, max = 120 }\n\
///      columns.sex = { type = 'categorical', categories = ['f', 'm'] }",
/// )?;
/// let encoding = Encoding::UNIT_ROWS.with_fourier(FourierFeatures::new(2));
/// let encoder = Encoder::new(&schema, encoding)?;
/// assert_eq!(encoder.feature_names(), ["age", "sex=f", "sex=m", "<Fourier 1>", "<Fourier 2>", "<intercept>"]);
/// # Ok::<(), dp_data::DataError>(())
/// ```
///
/// # References
/// Rahimi, Recht, "Random features for large-scale kernel machines", NIPS 2007.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FourierFeatures {
    /// D: their number, 1 or more.
    pub features: u32,
    /// b: the standard deviation of frequencies, in `(0, 100]`. The larger it is, the shorter are the distances over which the
    /// function can change.
    pub bandwidth: f64,
    /// The public seed, below [`PROJECTION_SEEDS`].
    pub seed: u64,
    /// The method that draws the frequencies from the seed.
    pub generator: Generator,
}

impl FourierFeatures {
    /// The default of [`bandwidth`](Self::bandwidth).
    pub const BANDWIDTH: f64 = 2.0;

    /// Creates this number of features, with the default bandwidth and seed 0.
    pub const fn new(features: u32) -> Self {
        Self { features, bandwidth: Self::BANDWIDTH, seed: 0, generator: Generator::ChaCha20V1 }
    }
}

/// Fourier features with their drawn frequencies, for rows of some coordinates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FourierPlan {
    /// The frequencies in turns of coordinate 0, those of coordinate 1, and so on.
    frequencies: Arc<[f64]>,
    /// In turns.
    phases: Arc<[f64]>,
    /// `a sqrt(2/D)`
    amplitude: f64,
}

impl FourierPlan {
    /// Draws the frequencies for rows of `coordinates`, of which `is_numeric` says which are of numeric columns; `squared_norm`
    /// is the expected squared norm of all other features.
    pub(super) fn new(
        fourier: &FourierFeatures,
        coordinates: u32,
        is_numeric: impl Fn(u32) -> bool,
        squared_norm: f64,
    ) -> Result<Self, DataError> {
        let FourierFeatures { features, bandwidth, seed, .. } = *fourier;
        let invalid = |message: String, expected: String| {
            Err(DataError::new(DataErrorKind::EncodingMap, message).expected(expected))
        };
        let entries = u64::from(coordinates).saturating_mul(u64::from(features));
        if entries == 0 || entries > MAX_PROJECTION_ENTRIES {
            return invalid(
                format!("{features} Fourier features of {coordinates} columns and categories"),
                format!("1 or more of each, and a product of at most {MAX_PROJECTION_ENTRIES}"),
            );
        }
        if !(bandwidth > 0.0 && bandwidth <= MAX_BANDWIDTH) {
            return invalid(
                format!("the bandwidth of Fourier features is {bandwidth:?}"),
                format!("a number above 0, up to {MAX_BANDWIDTH}"),
            );
        }
        if seed >= PROJECTION_SEEDS {
            return invalid(format!("the seed of Fourier features is {seed}"), "a number below 2^53".to_owned());
        }
        let width = features as usize;
        let amplitude = (2.0 * squared_norm / f64::from(features)).sqrt();
        if !amplitude.is_finite() {
            return invalid(
                "Fourier features beside an intercept whose square is not finite".to_owned(),
                "an intercept below 1e150".to_owned(),
            );
        }
        // Drawn, then shared.
        memory::check(entries as usize * (2 * size_of::<f64>()), "the frequencies of Fourier features")?;
        let (phases, mut frequencies) = draw::fourier(seed, width, entries as usize);
        for (coordinate, of_one) in (0..).zip(frequencies.chunks_exact_mut(width)) {
            let deviation = if is_numeric(coordinate) { bandwidth } else { OF_CATEGORIES * bandwidth };
            let turns = deviation / core::f64::consts::TAU;
            of_one.iter_mut().for_each(|frequency| *frequency *= turns);
        }
        Ok(Self { frequencies: frequencies.into(), phases: phases.into(), amplitude })
    }

    /// Returns D.
    pub(super) fn features(&self) -> u32 {
        // It was created from a `u32`.
        self.phases.len() as u32
    }

    /// Writes the features of the row with these coordinates to `features`.
    pub(super) fn apply(&self, coordinates: &[(u32, f64)], features: &mut Vec<f64>) {
        features.clear();
        features.extend_from_slice(&self.phases);
        let row = Row { plan: self, coordinates, features };
        #[cfg(feature = "files")]
        pulp::Arch::new().dispatch(row);
        #[cfg(not(feature = "files"))]
        row.compute();
    }
}

/// The features of a row, which hold the phases at first.
struct Row<'a> {
    plan: &'a FourierPlan,
    coordinates: &'a [(u32, f64)],
    features: &'a mut [f64],
}

impl Row<'_> {
    /// In additions and multiplications alone, one after the other: the same bits for every instruction set.
    #[inline(always)]
    fn compute(self) {
        /// Adding and subtracting it rounds numbers below 2^51 to integers.
        const ROUND: f64 = 6_755_399_441_055_744.0;
        let Self { plan, coordinates, features } = self;
        let width = features.len();
        for &(coordinate, value) in coordinates {
            let start = coordinate as usize * width;
            // Coordinates are below the number for which the frequencies were drawn.
            let of_one = plan.frequencies.get(start..start + width).unwrap_or_default();
            for (angle, frequency) in features.iter_mut().zip(of_one) {
                *angle += value * frequency;
            }
        }
        for feature in features.iter_mut() {
            // With t turns in [-1/2, 1/2], cos(2 pi t) = sin(pi/2 (1 - 4 |t|)).
            let turns = *feature - ((*feature + ROUND) - ROUND);
            *feature = plan.amplitude * sin_half_pi(1.0 - 4.0 * turns.abs());
        }
    }
}

#[cfg(feature = "files")]
impl pulp::WithSimd for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        self.compute();
    }
}
