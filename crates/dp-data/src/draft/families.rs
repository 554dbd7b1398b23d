//! Evidence for the format of a column: what each candidate reads of its cells.

/// Maximum number of families of a column. One with more holds text.
const MOST: usize = 8;

/// Larger numbers count as this one in a sum, which then cannot overflow: `2^62`.
const LARGEST: f64 = 4_611_686_018_427_387_904.0;

/// The numbers that a candidate has read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Numbers {
    pub(super) count: u64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// The sum of their integer parts, which is the same in any order.
    pub(super) sum: i128,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { count: 0, min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0 }
    }
}

impl Numbers {
    pub(super) fn see(&mut self, number: f64) {
        // One of the two zeros.
        let number = number + 0.0;
        self.count += 1;
        self.min = self.min.min(number);
        self.max = self.max.max(number);
        self.sum += i128::from(number.clamp(-LARGEST, LARGEST) as i64);
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }
}

/// A candidate's numbers, and the line of the first cell of its family that it cannot read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Candidate {
    pub(super) numbers: Numbers,
    pub(super) refused: Option<u64>,
}

/// Cells that look alike: numbers with the same unit, dates of the same shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Family {
    /// The unit or the shape.
    pub(super) key: Box<str>,
    pub(super) count: u64,
    /// Line of the first cell.
    pub(super) first: u64,
    pub(super) candidates: Vec<Candidate>,
    /// True if two candidates have read different numbers of the same cell.
    pub(super) differs: bool,
}

impl Family {
    /// Adds another family of the same cells, whose line numbers do not count the `lines` lines before it.
    fn merge(&mut self, other: &Self, lines: u64) {
        self.count += other.count;
        self.first = self.first.min(other.first + lines);
        self.differs |= other.differs;
        for (candidate, other) in self.candidates.iter_mut().zip(&other.candidates) {
            candidate.numbers.append(&other.numbers);
            let refused = other.refused.map(|line| line + lines);
            candidate.refused = candidate.refused.into_iter().chain(refused).min();
        }
    }
}

/// The families of a column, in the order of their first cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Families {
    list: Vec<Family>,
    /// True if there are more.
    overflowed: bool,
    /// All cells.
    count: u64,
    first: Option<u64>,
}

impl Families {
    /// Adds a cell with what each candidate reads of it; returns false, and adds nothing, if none reads it.
    pub(super) fn see(&mut self, key: &str, line: u64, read: &[Option<f64>]) -> bool {
        if read.iter().all(Option::is_none) {
            return false;
        }
        self.count += 1;
        self.first.get_or_insert(line);
        let Some(family) = self.family(key, line, read.len()) else { return true };
        family.count += 1;
        let mut numbers = read.iter().flatten();
        let one = numbers.next();
        family.differs |= numbers.any(|other| Some(other) != one);
        for (candidate, number) in family.candidates.iter_mut().zip(read) {
            match number {
                Some(number) => candidate.numbers.see(*number),
                None => {
                    candidate.refused.get_or_insert(line);
                }
            }
        }
        true
    }

    fn family(&mut self, key: &str, line: u64, candidates: usize) -> Option<&mut Family> {
        let place = match self.list.iter().position(|family| *family.key == *key) {
            Some(place) => place,
            None if self.list.len() == MOST => {
                self.overflowed = true;
                return None;
            }
            None => {
                let candidates = vec![Candidate::default(); candidates];
                self.list.push(Family { key: key.into(), count: 0, first: line, candidates, differs: false });
                self.list.len() - 1
            }
        };
        self.list.get_mut(place)
    }

    /// Adds those of the next cells, whose line numbers do not count the `lines` lines before them.
    pub(super) fn append(&mut self, next: &Self, lines: u64) {
        self.count += next.count;
        self.first = self.first.or(next.first.map(|line| line + lines));
        self.overflowed |= next.overflowed;
        for other in &next.list {
            if let Some(family) = self.family(&other.key, other.first + lines, other.candidates.len()) {
                family.merge(other, lines);
            }
        }
    }

    /// Returns the families with other keys; those with the same key become one.
    pub(super) fn renamed(&self, key: impl Fn(&str) -> String) -> Self {
        let mut renamed = Self { list: Vec::new(), ..self.clone() };
        for family in &self.list {
            let key = key(&family.key);
            match renamed.list.iter_mut().find(|other| *other.key == *key) {
                Some(same) => same.merge(family, 0),
                None => renamed.list.push(Family { key: key.into(), ..family.clone() }),
            }
        }
        renamed
    }

    /// Returns the number of cells.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the line of the first cell.
    pub(super) fn first(&self) -> Option<u64> {
        self.first
    }

    /// Returns the families; none if there are too many.
    pub(super) fn list(&self) -> &[Family] {
        if self.overflowed { &[] } else { &self.list }
    }
}
