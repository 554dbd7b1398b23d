//! For tests: enumeration of every outcome of an integer sampler, by following both values of every random bit.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::exact::source::Source;

/// The first bits of a stream; the sampler fails if it needs more.
pub(crate) struct Path {
    bits: u32,
    len: u32,
    used: u32,
    exhausted: bool,
}

impl Source for Path {
    fn bits(&mut self, count: u32) -> Result<u64, Error> {
        if self.used + count > self.len {
            self.exhausted = true;
            return Err(Error::StuckGenerator);
        }
        self.used += count;
        Ok(u64::from(self.bits >> (self.len - self.used)) & ((1 << count) - 1))
    }
}

/// Returns the probability of each outcome that is decided within `depth` bits, and the probability that none is. Both are exact
/// multiples of `2^-depth`.
pub(crate) fn enumerate<T: Ord>(
    depth: u32,
    sampler: impl Fn(&mut Path) -> Result<T, Error>,
) -> (BTreeMap<T, f64>, f64) {
    let mut decided = BTreeMap::new();
    let mut undecided = 0.0;
    let mut waiting = vec![(0u32, 0u32)];
    while let Some((bits, len)) = waiting.pop() {
        let mut path = Path { bits, len, used: 0, exhausted: false };
        let weight = 0.5f64.powi(len as i32);
        match sampler(&mut path) {
            Ok(outcome) => *decided.entry(outcome).or_insert(0.0) += weight,
            Err(_) if path.exhausted && len < depth => waiting.extend([(bits << 1, len + 1), (bits << 1 | 1, len + 1)]),
            Err(error) => {
                assert!(path.exhausted, "{error} with bits to spare");
                undecided += weight;
            }
        }
    }
    (decided, undecided)
}
