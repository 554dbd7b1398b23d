//! A linear map of the features to fewer ones, drawn from a public seed without reading any record.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{RowBuffer, draw};
use crate::error::{DataError, DataErrorKind};
use crate::memory;

/// Maximum number of entries of a Gaussian projection, which take 512 MiB.
pub const MAX_PROJECTION_ENTRIES: u64 = 1 << 26;

/// Bound on seeds, so that every JSON reader reads them exactly.
pub const PROJECTION_SEEDS: u64 = 1 << 53;

/// Rows are scaled to at most this size before a Gaussian projection sums their features, which then cannot overflow. An
/// intercept next to such a row is far below the rounding of the others in any case.
const LARGEST_VALUE: f64 = 1e100;

/// A random projection of the features: with fewer features, noise is added to fewer coordinates.
///
/// The map is applied to the features without the intercept; intercept and norm bound come after it, so that **every projected
/// row has norm at most 1**, for every map.
///
/// # Formula
/// ```text
/// Gaussian      y = T x,   T of p rows and d columns, entries drawn from N(0, 1/p): E|y|^2 = |x|^2
/// Coordinates   y = (x_j), j in p coordinates drawn without replacement: |y| <= |x|
/// ```
///
/// # Privacy
/// The map depends only on the seed, and the seed must not depend on the records; so neighbouring data sets remain neighbours. A
/// Gaussian projection makes about half of all rows *longer* (47 in 100 rows of norm 1 exceed it for p = 50): a sensitivity
/// computed for rows of norm 1 holds only because rows are bounded afterwards.
///
/// # Reproducibility
/// Models store kind, size, seed and the [generator's version](Generator), not the matrix. It is drawn again from the key stream
/// of ChaCha20 by integer arithmetic and the operations that IEEE 754 rounds correctly, so that its bits are the same on every
/// platform.
///
/// # Examples
/// ```
/// use dp_data::encode::{Encoder, Encoding, Projection, RowBuffer};
/// use dp_data::schema::Schema;
///
/// let schema = Schema::parse(
///     "toy.toml",
///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
///      columns.a = { type = 'numeric', min = 0, max = 1 }\n\
///      columns.b = { type = 'numeric', min = 0, max = 1 }\n\
///      columns.c = { type = 'numeric', min = 0, max = 1 }",
/// )?;
/// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS)?.projected(Projection::gaussian(2, 42))?;
/// assert_eq!(encoder.feature_names(), ["<projection 1>", "<projection 2>", "<intercept>"]);
/// let mut row = RowBuffer::new(&encoder);
/// encoder.encode_row(|_| b"1".as_slice(), Some(b"yes".as_slice()), &mut row)?;
/// assert!(row.values().iter().map(|v| v * v).sum::<f64>() <= 1.0);
/// # Ok::<(), dp_data::DataError>(())
/// ```
///
/// # References
/// Johnson & Lindenstrauss 1984; Dasgupta & Gupta 2003 (the Gaussian map). Wu et al. 2017, "Bolt-on", section 4 (MNIST from 784
/// to 50 features), without the bound after the projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Projection {
    /// The kind of map.
    pub kind: ProjectionKind,
    /// p: the number of features after the projection, excluding the intercept.
    pub features: u32,
    /// The public seed, below [`PROJECTION_SEEDS`].
    pub seed: u64,
    /// The method that draws the map from the seed.
    pub generator: Generator,
}

/// The kind of a random map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProjectionKind {
    /// Independent normal entries: preserves distances, up to a factor near 1.
    Gaussian,
    /// A subset of the coordinates: preserves names and sparsity, but not distances.
    Coordinates,
}

/// The method that draws a map from a seed. A model names the version with which it was trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Generator {
    /// ChaCha20; normal numbers by Marsaglia's polar method, coordinates by a shuffle.
    #[default]
    #[serde(rename = "chacha20/1")]
    ChaCha20V1,
}

impl Projection {
    /// Creates a Gaussian projection to `features` features.
    pub fn gaussian(features: u32, seed: u64) -> Self {
        Self { kind: ProjectionKind::Gaussian, features, seed, generator: Generator::ChaCha20V1 }
    }

    /// Creates a projection to `features` of the coordinates.
    pub fn coordinates(features: u32, seed: u64) -> Self {
        Self { kind: ProjectionKind::Coordinates, ..Self::gaussian(features, seed) }
    }
}

/// A projection with its drawn map.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProjectionPlan {
    projection: Projection,
    map: Map,
}

#[derive(Debug, Clone, PartialEq)]
enum Map {
    /// The p entries that multiply feature 0, those of feature 1, and so on.
    Gaussian(Arc<[f64]>),
    /// The coordinates, increasing.
    Coordinates(Arc<[u32]>),
}

impl ProjectionPlan {
    /// Draws the map for `inputs` features.
    pub(super) fn new(projection: Projection, inputs: u64) -> Result<Self, DataError> {
        let Projection { kind, features, seed, .. } = projection;
        let invalid = |message: String| DataError::new(DataErrorKind::ProjectionInvalid, message);
        if features == 0 || u64::from(features) > inputs {
            return Err(invalid(format!("a projection of {inputs} features to {features}"))
                .expected(format!("between 1 and {inputs} features, the intercept not counted")));
        }
        if seed >= PROJECTION_SEEDS {
            return Err(invalid(format!("the seed of the projection is {seed}")).expected("a number below 2^53"));
        }
        let map = match kind {
            ProjectionKind::Gaussian => {
                let entries = inputs.saturating_mul(u64::from(features));
                if entries > MAX_PROJECTION_ENTRIES {
                    return Err(invalid(format!("a Gaussian projection of {inputs} features to {features}"))
                        .expected(format!("at most {MAX_PROJECTION_ENTRIES} entries"))
                        .help("project to fewer features, or to some of the coordinates"));
                }
                // Drawn, then shared.
                memory::check(entries as usize * (2 * size_of::<f64>()), "a Gaussian projection")?;
                Map::Gaussian(draw::gaussian(seed, features, entries as usize).into())
            }
            ProjectionKind::Coordinates => {
                Map::Coordinates(draw::coordinates(seed, features as usize, inputs as u32).into())
            }
        };
        Ok(Self { projection, map })
    }

    pub(super) fn projection(&self) -> Projection {
        self.projection
    }

    /// Returns whether sparse rows remain sparse.
    pub(super) fn keeps_sparsity(&self) -> bool {
        matches!(self.map, Map::Coordinates(_))
    }

    /// Returns the names of the features, from those before the projection.
    pub(super) fn feature_names(&self, names: Vec<String>) -> Vec<String> {
        match &self.map {
            Map::Gaussian(_) => (1..=self.projection.features).map(|i| format!("<projection {i}>")).collect(),
            Map::Coordinates(kept) => {
                kept.iter().filter_map(|&coordinate| names.get(coordinate as usize).cloned()).collect()
            }
        }
    }

    /// Maps the features collected so far. Values must be finite.
    pub(super) fn apply(&self, row: &mut RowBuffer) {
        match &self.map {
            Map::Gaussian(entries) => {
                let (indices, values, sums) = row.parts_mut();
                let features = self.projection.features as usize;
                sums.clear();
                sums.resize(features, 0.0);
                let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
                let scale = if largest > LARGEST_VALUE { LARGEST_VALUE / largest } else { 1.0 };
                for (&index, &value) in indices.iter().zip(values.iter()) {
                    let start = index as usize * features;
                    // Indices are below the number of inputs, for which the entries were drawn.
                    let column = entries.get(start..start + features).unwrap_or_default();
                    let value = scale * value;
                    sums.iter_mut().zip(column).for_each(|(sum, entry)| *sum += value * entry);
                }
                indices.clear();
                values.clear();
                for (index, &sum) in (0..).zip(sums.iter()).filter(|(_, sum)| **sum != 0.0) {
                    indices.push(index);
                    values.push(sum);
                }
            }
            Map::Coordinates(kept) => {
                let (indices, values, _) = row.parts_mut();
                let mut length = 0;
                for at in 0..indices.len() {
                    if let Ok(place) = kept.binary_search(&indices[at]) {
                        indices[length] = place as u32;
                        values[length] = values[at];
                        length += 1;
                    }
                }
                indices.truncate(length);
                values.truncate(length);
            }
        }
    }
}
