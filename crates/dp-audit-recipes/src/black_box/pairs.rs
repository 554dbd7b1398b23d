//! All pairs of neighbouring data sets of few extreme records, up to symmetries without effect on the audit.
//!
//! # Which pairs
//! ```text
//! records           a unit vector along an axis, of either sign, or zeros, each of any class; null under ZeroOut
//! number            n = 2..7
//! the others        all equal, or half of one kind and then half of another
//! the one           the first, the middle or the last; replaced by any other, under ZeroOut by null
//! ```
//!
//! # Omitted pairs
//! Two pairs are equivalent if one of these maps, applied to all records of both data sets, turns one into the other:
//! - **Reflected axes.** Losses depend on rows through inner products with weights that start at 0. Norms, projections onto
//!   balls, penalties and coordinate-wise operations (Adam's scales, soft thresholds, coordinate steps) commute with a change
//!   of a coordinate's sign, and noise has the same law with either sign, on the same grid. So the release has the law of the
//!   other pair's release with signs changed; if it depends on the classes alone (`majority`), it is the same. An exchange of
//!   the axes is no symmetry: penalties exclude the last feature, the intercept.
//! - **Permuted classes.** For two classes, targets and weights change sign; for several, models are permuted.
//! - **Exchanged data sets.** Both directions of a pair are attacked.
//!
//! An attacker who inverts the map on the release has the same error rates on both pairs. A regression inverts it too, since
//! its features are scaled separately. The order of the records is no symmetry: many algorithms process them in order.

use dp_accountant::AdjacencyKind;
use dp_audit::Side;
use dp_data::Examples;

use super::super::Record;
use dp_optim::Error;

/// Number of features: a direction along which a pair differs, and one across it.
pub const DIM: u64 = 2;

/// Minimum and maximum number of records of a data set.
pub const FEWEST_RECORDS: u64 = 2;
/// See [`FEWEST_RECORDS`].
pub const MOST_RECORDS: u64 = 7;

/// Maximum number of classes: the number of their permutations grows fast.
const MOST_CLASSES: u32 = 5;

/// A record chosen by the attacker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extreme {
    /// The unit vector along an axis, with a sign and a class.
    Unit {
        /// The axis.
        axis: u8,
        /// True if the vector points in the negative direction.
        negative: bool,
        /// The class, from 0.
        class: u8,
    },
    /// A row of zeros with a class: a record like any other.
    Zeros {
        /// The class, from 0.
        class: u8,
    },
    /// The null record of [`ZeroOut`](dp_accountant::ZeroOut), which contributes nothing.
    Null,
}

impl Extreme {
    /// Returns all records of this many classes, except the null record.
    fn all(classes: u32) -> Vec<Self> {
        let classes = || 0..classes as u8;
        let along = |axis| {
            let signs = move |negative| classes().map(move |class| Self::Unit { axis, negative, class });
            [false, true].into_iter().flat_map(signs)
        };
        (0..DIM as u8).flat_map(along).chain(classes().map(|class| Self::Zeros { class })).collect()
    }

    fn class(self) -> Option<u8> {
        match self {
            Self::Unit { class, .. } | Self::Zeros { class } => Some(class),
            Self::Null => None,
        }
    }

    fn record(self, classes: u32) -> Record {
        let mut record = Record::null(DIM as usize);
        if let Self::Unit { axis, negative, .. } = self {
            record.features[usize::from(axis)] = if negative { -1.0 } else { 1.0 };
        }
        if let Some(class) = self.class() {
            record.target = if classes > 2 { class.into() } else { f64::from(class) * 2.0 - 1.0 };
        }
        record
    }

    fn describe(self, classes: u32) -> String {
        let named = |class: u8| match (classes > 2, class) {
            (true, class) => format!("class {}", class + 1),
            (false, 0) => "-1".to_owned(),
            (false, _) => "+1".to_owned(),
        };
        match self {
            Self::Unit { axis, negative, class } => {
                format!("({}e{}; {})", if negative { "-" } else { "" }, axis + 1, named(class))
            }
            Self::Zeros { class } => format!("(0; {})", named(class)),
            Self::Null => "none".to_owned(),
        }
    }
}

/// Two neighbouring data sets of 2 to 7 extreme records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    n: u8,
    /// The position of the differing record.
    at: u8,
    base: Extreme,
    neighbour: Extreme,
    /// The record in the first half of the other positions, and in the second half.
    others: [Extreme; 2],
    classes: u8,
}

impl Pair {
    /// Returns the number of records, null ones included.
    pub fn n(&self) -> u64 {
        self.n.into()
    }

    /// Returns whether it is a pair under this relation.
    pub(super) fn fits(&self, relation: AdjacencyKind) -> bool {
        let null = |extreme| extreme == Extreme::Null;
        match relation {
            AdjacencyKind::ZeroOut => null(self.neighbour) && !null(self.base),
            _ => ![self.base, self.neighbour].into_iter().chain(self.others).any(null),
        }
    }

    /// Returns a number of classes above the class of every record.
    pub(super) fn classes_at_least(&self) -> u32 {
        self.classes.into()
    }

    /// Describes the pair in words.
    pub fn describe(&self) -> String {
        let classes = self.classes.into();
        let [base, neighbour, first, second] =
            [self.base, self.neighbour, self.others[0], self.others[1]].map(|extreme| extreme.describe(classes));
        let others = if self.others[0] == self.others[1] {
            format!("all others {first}")
        } else {
            format!("the others half {first}, then half {second}")
        };
        format!("record {} of {} is {base} against {neighbour}, {others}", self.at + 1, self.n)
    }

    fn extremes(&self, side: Side) -> Vec<Extreme> {
        let differing = match side {
            Side::Base => self.base,
            Side::Neighbour => self.neighbour,
        };
        let first_half = (usize::from(self.n) - 1).div_ceil(2);
        let others = (0..usize::from(self.n) - 1).map(|other| self.others[usize::from(other >= first_half)]);
        let mut all: Vec<Extreme> = others.collect();
        all.insert(self.at.into(), differing);
        all
    }

    pub(super) fn examples(&self, side: Side, classes: u32) -> Result<Examples<f64>, Error> {
        let (mut values, mut targets, mut valid) = (Vec::new(), Vec::new(), Vec::new());
        for extreme in self.extremes(side) {
            let record = extreme.record(classes);
            values.extend(record.features);
            targets.push(record.target);
            valid.push(extreme != Extreme::Null);
        }
        let shape = |_| Error::Count { name: "rows", value: self.n(), range: "what memory can address" };
        Examples::dense(values, targets, DIM as usize).and_then(|examples| examples.with_valid(valid)).map_err(shape)
    }

    /// Exchanges the data sets if that gives a smaller pair.
    fn sorted(self) -> Self {
        if self.neighbour != Extreme::Null && self.neighbour < self.base {
            Self { base: self.neighbour, neighbour: self.base, ..self }
        } else {
            self
        }
    }

    /// Returns the least of all equivalent pairs.
    fn least(self, symmetries: &[Symmetry]) -> Self {
        symmetries.iter().map(|symmetry| symmetry.of_pair(self)).min().unwrap_or(self)
    }
}

/// A signed permutation of two axes: a symmetry of linear models of two features that treat the features alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedPermutation {
    exchanged: bool,
    negated: [bool; DIM as usize],
}

impl SignedPermutation {
    /// Returns all eight, the identity first.
    pub fn all() -> [Self; 8] {
        let [a, b, c, d] = Self::reflections();
        let exchanged = |kept: Self| Self { exchanged: true, ..kept };
        [a, b, c, d, exchanged(a), exchanged(b), exchanged(c), exchanged(d)]
    }

    /// Returns the four that keep the axes, the identity first.
    pub fn reflections() -> [Self; 4] {
        [[false, false], [true, false], [false, true], [true, true]].map(|negated| Self { exchanged: false, negated })
    }

    /// Returns the image of a unit vector, given by its axis, 0 or 1, and whether it points in the negative direction.
    pub fn of(self, axis: u8, negative: bool) -> (u8, bool) {
        let negated = if axis == 0 { self.negated[0] } else { self.negated[1] };
        (if self.exchanged { 1 - axis.min(1) } else { axis }, negative != negated)
    }
}

/// A direction for each axis and a permutation of the classes.
#[derive(Debug, Clone)]
struct Symmetry {
    axes: SignedPermutation,
    classes: Vec<u8>,
}

impl Symmetry {
    fn all(classes: u32) -> Vec<Self> {
        let of_classes =
            |classes: Vec<u8>| SignedPermutation::reflections().map(|axes| Self { axes, classes: classes.clone() });
        orders(classes as u8).into_iter().flat_map(of_classes).collect()
    }

    fn of(&self, extreme: Extreme) -> Extreme {
        let renamed = |class: u8| self.classes[usize::from(class)];
        match extreme {
            Extreme::Unit { axis, negative, class } => {
                let (axis, negative) = self.axes.of(axis, negative);
                Extreme::Unit { axis, negative, class: renamed(class) }
            }
            Extreme::Zeros { class } => Extreme::Zeros { class: renamed(class) },
            Extreme::Null => Extreme::Null,
        }
    }

    fn of_pair(&self, pair: Pair) -> Pair {
        let Pair { base, neighbour, others, .. } = pair;
        let [base, neighbour] = [base, neighbour].map(|extreme| self.of(extreme));
        Pair { base, neighbour, others: others.map(|extreme| self.of(extreme)), ..pair }.sorted()
    }
}

/// Returns all permutations of `0..count`.
fn orders(count: u8) -> Vec<Vec<u8>> {
    let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in orders(last) {
        for place in 0..=order.len() {
            let mut longer = order.clone();
            longer.insert(place, last);
            all.push(longer);
        }
    }
    all
}

/// All pairs under a relation, one for each equivalence class.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    relation: AdjacencyKind,
    all: Vec<Pair>,
    leading: usize,
}

const UP: Extreme = Extreme::Unit { axis: 0, negative: false, class: 1 };
const OTHER_CLASS: Extreme = Extreme::Unit { axis: 0, negative: false, class: 0 };
const OTHER_SIGN: Extreme = Extreme::Unit { axis: 0, negative: true, class: 1 };
const OTHER_OF_BOTH: Extreme = Extreme::Unit { axis: 0, negative: true, class: 0 };
const ACROSS: Extreme = Extreme::Unit { axis: 1, negative: false, class: 1 };
const ZEROS: Extreme = Extreme::Zeros { class: 1 };

/// Pairs that are informative for many algorithms: number of records, position of the differing record, the other records,
/// and the differing record in either data set.
const REPLACED: [(u8, u8, Extreme, Extreme, Extreme); 6] = [
    (2, 0, ZEROS, UP, OTHER_CLASS),
    (2, 1, UP, UP, OTHER_SIGN),
    (3, 1, OTHER_CLASS, UP, OTHER_CLASS),
    (5, 4, ZEROS, OTHER_OF_BOTH, OTHER_SIGN),
    (5, 2, ACROSS, UP, ZEROS),
    (7, 0, ACROSS, UP, OTHER_CLASS),
];
const LEFT_OUT: [(u8, u8, Extreme, Extreme, Extreme); 6] = [
    (2, 0, ZEROS, UP, Extreme::Null),
    (2, 1, UP, OTHER_CLASS, Extreme::Null),
    (3, 1, Extreme::Null, OTHER_SIGN, Extreme::Null),
    (5, 4, OTHER_CLASS, UP, Extreme::Null),
    (5, 2, ACROSS, OTHER_OF_BOTH, Extreme::Null),
    (7, 0, Extreme::Null, UP, Extreme::Null),
];

impl Pairs {
    /// Creates all pairs of records of this many classes; a few that are informative for many algorithms come first.
    ///
    /// # Errors
    /// [`Error::Adjacency`] for a relation other than [`ReplaceOne`](dp_accountant::ReplaceOne) and
    /// [`ZeroOut`](dp_accountant::ZeroOut), [`Error::Count`] for fewer than 2 classes or more than 5.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::AdjacencyKind;
    /// use dp_audit_recipes::black_box::Pairs;
    ///
    /// let pairs = Pairs::new(AdjacencyKind::ReplaceOne, 2)?;
    /// assert_eq!(pairs.all()[0].describe(), "record 1 of 2 is (e1; -1) against (e1; +1), all others (0; -1)");
    /// # Ok::<(), dp_optim::Error>(())
    /// ```
    pub fn new(relation: AdjacencyKind, classes: u32) -> Result<Self, Error> {
        let first = match relation {
            AdjacencyKind::ReplaceOne => REPLACED,
            AdjacencyKind::ZeroOut => LEFT_OUT,
            adjacency => return Err(Error::Adjacency { recipe: super::RECIPE, adjacency }),
        };
        if !(2..=MOST_CLASSES).contains(&classes) {
            return Err(Error::Count { name: "classes", value: classes.into(), range: "between 2 and 5" });
        }
        let symmetries = Symmetry::all(classes);
        let of_classes = classes as u8;
        let mut all: Vec<Pair> = Vec::new();
        for (n, at, other, base, neighbour) in first {
            let pair = Pair { n, at, base, neighbour, others: [other; 2], classes: of_classes };
            let pair = pair.least(&symmetries);
            if !all.contains(&pair) {
                all.push(pair);
            }
        }
        let leading = all.len();
        for pair in enumerated(relation, of_classes, &symmetries) {
            if !all[..leading].contains(&pair) {
                all.push(pair);
            }
        }
        Ok(Self { relation, all, leading })
    }

    /// Returns the pairs.
    pub fn all(&self) -> &[Pair] {
        &self.all
    }

    /// Returns the number of leading pairs that were listed explicitly.
    pub fn leading(&self) -> usize {
        self.leading
    }

    /// Returns the relation.
    pub fn relation(&self) -> AdjacencyKind {
        self.relation
    }
}

/// Returns the least pair of each equivalence class.
fn enumerated(relation: AdjacencyKind, classes: u8, symmetries: &[Symmetry]) -> Vec<Pair> {
    let records = Extreme::all(classes.into());
    let mut kinds = records.clone();
    let replacements = if relation == AdjacencyKind::ZeroOut {
        kinds.push(Extreme::Null);
        vec![Extreme::Null]
    } else {
        records.clone()
    };
    let mut all = Vec::new();
    for &base in &records {
        for &neighbour in replacements.iter().filter(|&&neighbour| base < neighbour) {
            // The differing records come first in the order, so that all others are compared under the symmetries that fix
            // them.
            let pair = Pair { n: 0, at: 0, base, neighbour, others: [Extreme::Null; 2], classes };
            if pair.least(symmetries) < pair {
                continue;
            }
            let fixing: Vec<Symmetry> =
                symmetries.iter().filter(|symmetry| symmetry.of_pair(pair) == pair).cloned().collect();
            for &first in &kinds {
                for &second in &kinds {
                    let pair = Pair { others: [first, second], ..pair };
                    if pair.least(&fixing) < pair {
                        continue;
                    }
                    for n in FEWEST_RECORDS as u8..=MOST_RECORDS as u8 {
                        if n == 2 && first != second {
                            continue; // There is only one other record.
                        }
                        let mut places = vec![0, n / 2, n - 1];
                        places.dedup();
                        all.extend(places.into_iter().map(|at| Pair { n, at, ..pair }));
                    }
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests;
