//! Pairs of neighbouring data sets, and the search for the pair whose models are farthest apart.

use dp_accountant::AdjacencyKind;
use dp_audit::Side;
use dp_data::Examples;
use dp_mechanisms::SeededRng;
use rand::RngExt;

use dp_optim::Error;

/// A row and its target.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The features.
    pub features: Vec<f64>,
    /// The target.
    pub target: f64,
}

impl Record {
    /// Returns the record that contributes nothing.
    pub fn null(dim: usize) -> Self {
        Self { features: vec![0.0; dim], target: 0.0 }
    }

    /// Returns a record of norm `length` along coordinate `axis`.
    fn along(axis: usize, length: f64, target: f64, dim: usize) -> Self {
        let mut record = Self { target, ..Self::null(dim) };
        if let Some(feature) = record.features.get_mut(axis) {
            *feature = length;
        }
        record
    }
}

/// Two neighbouring data sets whose other rows all hold the same record.
///
/// The order of the equal rows does not matter, so that the attacker's observation has a likelihood in closed form. They move
/// the iterates to where the canary's gradient is longest.
#[derive(Debug, Clone, PartialEq)]
pub struct Canary {
    /// The record in all other rows.
    pub common: Record,
    /// The differing record, in the first data set.
    pub base: Record,
    /// The differing record, in the second data set.
    pub neighbour: Record,
}

impl Canary {
    /// Returns the data set of one side, with `n` rows and the differing record in row `at`.
    ///
    /// # Errors
    /// More numbers than memory can address.
    pub fn examples(&self, side: Side, n: usize, at: usize) -> Result<Examples<f64>, Error> {
        let dim = self.common.features.len();
        let differing = match side {
            Side::Base => &self.base,
            Side::Neighbour => &self.neighbour,
        };
        let length = n.checked_mul(dim).ok_or(Error::Count {
            name: "rows",
            value: n as u64,
            range: "what memory can address",
        })?;
        let (mut values, mut targets) = (Vec::with_capacity(length), Vec::with_capacity(n));
        for row in 0..n {
            let record = if row == at { differing } else { &self.common };
            values.extend_from_slice(&record.features);
            targets.push(record.target);
        }
        Examples::dense(values, targets, dim).map_err(|_| Error::Count {
            name: "dimension",
            value: dim as u64,
            range: "1 or more",
        })
    }

    /// Describes the pair in words.
    pub fn describe(&self) -> String {
        let shown = |record: &Record| {
            let features: Vec<String> = record.features.iter().take(4).map(|x| format!("{x:.4}")).collect();
            let more = if record.features.len() > 4 { ", …" } else { "" };
            format!("({}{more}; {:.4})", features.join(", "), record.target)
        };
        format!(
            "one record {} against {}, all others {}",
            shown(&self.base),
            shown(&self.neighbour),
            shown(&self.common)
        )
    }
}

/// Returns the Euclidean distance of two vectors.
pub(super) fn distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// The search for the farthest pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Number of features.
    pub dim: usize,
    /// Bound on the rows' norm, attained by canaries.
    pub row_norm: f64,
    /// Bound on the targets.
    pub target_bound: f64,
    /// True if targets are two classes.
    pub classes: bool,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
    /// Number of pairs to try.
    pub pairs: u32,
}

impl Search {
    /// Returns the pair with the largest `distance`, which trains on both data sets without noise; also that distance and the
    /// number of pairs tried.
    ///
    /// Tries constructed extremes, random pairs, then shrinking steps from the best one. Deterministic for given parameters.
    ///
    /// # Errors
    /// Those of `distance`.
    pub fn farthest(&self, distance: impl Fn(&Canary) -> Result<f64, Error>) -> Result<(Canary, f64, u32), Error> {
        let mut rng = SeededRng::new(0x6361_6e61_7279);
        let extremes = self.extremes();
        let (mut best, mut most) = (extremes[0].clone(), f64::NEG_INFINITY);
        let mut tried = 0u32;
        for canary in &extremes {
            let reached = distance(canary)?;
            tried += 1;
            if reached > most {
                (best, most) = (canary.clone(), reached);
            }
        }
        let left = self.pairs.saturating_sub(tried);
        let mut width = 0.5;
        for i in 0..left {
            let candidate = if i < left / 3 { self.random(&mut rng) } else { self.beside(&best, width, &mut rng) };
            let reached = distance(&candidate)?;
            if reached > most {
                (best, most) = (candidate, reached);
            } else if i >= left / 3 {
                width = (width * 0.99).max(1e-3);
            }
        }
        Ok((best, most, tried + left))
    }

    /// Returns pairs of a record and its opposite label, or the null record, along one direction; the other records are null,
    /// push along the same direction, or across it.
    fn extremes(&self) -> Vec<Canary> {
        let (dim, length, bound) = (self.dim, self.row_norm, self.target_bound);
        let record = |axis, target: f64| Record::along(axis, length, target * bound, dim);
        let mut commons = vec![Record::null(dim), record(0, 1.0), record(0, -1.0)];
        if dim > 1 {
            commons.push(record(1, 1.0));
        }
        let mut pairs = Vec::new();
        for common in commons {
            for sign in [1.0, -1.0] {
                let base = record(0, sign);
                let neighbour = if self.replaces() { record(0, -sign) } else { Record::null(dim) };
                pairs.push(Canary { common: common.clone(), base, neighbour });
            }
        }
        pairs
    }

    fn replaces(&self) -> bool {
        self.relation == AdjacencyKind::ReplaceOne
    }

    fn random(&self, rng: &mut SeededRng) -> Canary {
        let common = self.beside_record(&Record::null(self.dim), 1.0, rng);
        let base = self.beside_record(&Record::null(self.dim), 1.0, rng);
        let neighbour = if self.replaces() {
            self.beside_record(&Record::null(self.dim), 1.0, rng)
        } else {
            Record::null(self.dim)
        };
        Canary { common, base, neighbour }
    }

    fn beside(&self, canary: &Canary, width: f64, rng: &mut SeededRng) -> Canary {
        Canary {
            common: self.beside_record(&canary.common, width, rng),
            base: self.beside_record(&canary.base, width, rng),
            neighbour: if self.replaces() {
                self.beside_record(&canary.neighbour, width, rng)
            } else {
                canary.neighbour.clone()
            },
        }
    }

    /// Returns a record near `record`, on the boundary of the allowed set.
    fn beside_record(&self, record: &Record, width: f64, rng: &mut SeededRng) -> Record {
        let mut features: Vec<f64> =
            record.features.iter().map(|x| x + self.row_norm * width * rng.random_range(-1.0..1.0)).collect();
        let norm = features.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm > 0.0 {
            features.iter_mut().for_each(|x| *x *= self.row_norm / norm);
        }
        let mut target = record.target;
        if self.classes {
            if target == 0.0 || rng.random_bool(0.1 * width) {
                target = if rng.random_bool(0.5) { self.target_bound } else { -self.target_bound };
            }
        } else {
            let near = target + self.target_bound * width * rng.random_range(-2.0..2.0);
            target = near.clamp(-self.target_bound, self.target_bound);
        }
        Record { features, target }
    }
}
