//! The privacy curve as a contour integral of the moment function, between two certified bounds.
//!
//! # The integral
//! Let `L` be the total privacy loss under the first of two hypotheses, and `M(z) = E e^(z L) = e^K(z)`. Losses of releases add
//! up, so that `K = sum_i n_i K_i`. As a function of epsilon, `delta(epsilon) = E (1 - e^(epsilon - L))_+`
//! has the two-sided Laplace transform `M(z) / (z (z + 1))`, because that of one loss is
//! `integral over (-inf, L) of (1 - e^(s - L)) e^(z s) ds = e^(z L) / (z (z + 1))`. So for every `c > 0` with `M(c)` finite
//!
//! ```text
//! delta(epsilon) = 1/(2 pi i) integral over c + iR of e^(K(z) - z epsilon) / (z (z + 1)) dz.
//! ```
//!
//! Near the saddle point of the integrand this converges within a few dozen points, whatever the number of releases.
//!
//! # Errors of the sum
//! *Aliasing.* The trapezoid sum of step `h` on the whole line equals, by Poisson's summation formula,
//! `sum over all integers j of e^(j c W) delta(epsilon + j W)` with `W = 2 pi / h`. All terms are positive. Those with
//! `j < 0` lie between `e^(j c W) (1 - e^(epsilon + j W))` and `e^(j c W)`, since `1 - e^s <= delta(s) <= 1`: both are
//! geometric sums. Those with `j > 0` are at least 0 and, by Chernoff's bound on any line `c' > c`, at most
//!
//! ```text
//! sum_j e^(j c W) e^(K(c') - c' (epsilon + j W)) s(c'),     s(c) = sup_(x > 0) (1 - e^-x) e^(-c x) = c^c / (c + 1)^(c + 1).
//! ```
//!
//! *Truncation.* Beyond `T` the modulus of the integrand is at most `e^(K(c) - c epsilon) D(T) / |z (z + 1)|`, where `D` is the
//! product of the decreasing bounds of [`decay`], to the power of their counts. The omitted terms on both sides are thus at most
//! `D(T) e^(K(c) - c epsilon) min(1/T, pi/(2c)) / pi`.
//!
//! *Moments.* Each `M_i(z_j)` is known up to an absolute error (discretisation, range, rounding; [`nodes`]). A product of factors
//! `m_i` with errors of at most `e_i` has an error of at most `prod (|m_i| + e_i) - prod |m_i|`, by expansion. Relative to the
//! product this is `exp(sum n_i ln(1 + e_i/|m_i|)) - 1`. Logarithms, products and the sum itself each add a few units in the last
//! place of their arguments.
//!
//! All errors are added to the upper end and subtracted from the lower one. The Chernoff bound on the line, which is the Renyi
//! accountant's bound, caps the upper end in any case.
//!
//! # Directions
//! Under add/remove each direction is composed with itself, all releases in the same direction, and the larger delta is taken at
//! the end. (Taking the worse direction of each release gives no bound: Lebeda, Regehr, Kamath and Steinke 2024.)

mod closed_laws;
mod decay;
mod eased;
mod law;
mod line;
mod nodes;
mod poisson_gaussian;
mod replacement;
mod search;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::eased::{epsilon_eased, log_delta_eased};
use self::law::Law;
pub(in crate::exact) use self::line::{EASED, Effort, PATIENT};
use self::line::{Line, LogDelta, USUAL, chernoff_epsilon, upper_cumulant};
use self::poisson_gaussian::{Direction, PoissonGaussian};
use self::replacement::Replacement;
use self::search::{Saddle, Search};
use super::ends::{Ends, largest_shown};
use super::kept::{Kept, Size, WIDENING};
use crate::leaves::{Leaf, Leaves};

/// Maximum number of components of all mixtures; the moments of more take too long.
const MAX_COMPONENTS: usize = 4096;

/// Maximum number of lines for one evaluation.
const MAX_LINES: usize = 3;

/// Maximum number of steps of the search for a root.
const MAX_STEPS: usize = 60;

/// Relative distance of the ends at which no better line is needed.
const CLOSE: f64 = 1e-9;

/// Distance of the ends, as a logarithm of delta, above which a line's result counts as open.
const OPEN: f64 = 1e-6;

/// Largest ratio of two epsilons that count as near each other.
const NEAR: f64 = 1.5;

/// The ends of an unknown epsilon.
const UNKNOWN: Ends = Ends { lower: 0.0, upper: f64::INFINITY };

/// The ends of an unknown logarithm of a delta.
const ANY_DELTA: Ends = Ends { lower: f64::NEG_INFINITY, upper: 0.0 };

/// A tree whose losses all have a moment function, with the laws of each direction.
#[derive(Debug, Clone)]
pub(crate) struct Contour {
    directions: Vec<OneWay>,
}

/// The laws of one direction, with the lines computed for them.
#[derive(Debug, Clone)]
struct OneWay {
    laws: Vec<(Law, f64)>,
    kept: Kept<Closeness>,
}

/// The position of a line, with the width of its result there.
#[derive(Debug)]
struct Closeness {
    line: Line,
    /// The epsilon and the logarithm of delta for which it was computed.
    epsilon: f64,
    log_delta: f64,
    /// The distance between the two bounds on the logarithm of delta there.
    width: f64,
}

impl Size for Closeness {
    fn bytes(&self) -> usize {
        self.line.bytes()
    }
}

impl Closeness {
    fn new(line: Line, epsilon: f64, estimate: f64) -> Self {
        let LogDelta { lower, upper, .. } = line.log_delta(epsilon);
        Self { line, epsilon, log_delta: estimate, width: upper - lower }
    }

    /// Returns whether these ends are as close as a line can give: an evaluation near an open one is open too, but farther away
    /// another line may do better.
    fn suffices(&self, epsilon: f64, LogDelta { lower, upper, .. }: LogDelta) -> bool {
        let is_near = epsilon.max(self.epsilon) <= NEAR * epsilon.min(self.epsilon);
        upper - lower <= WIDENING * self.width && (is_near || self.width <= OPEN)
    }
}

impl Contour {
    /// Returns the laws of `leaves`; `None` if one has no moment function, or if no loss has a density, since no sum would then
    /// end.
    pub(crate) fn new(leaves: &Leaves) -> Option<Self> {
        let mut square = 0.0;
        let mut laplace = BTreeMap::new();
        let mut pure = BTreeMap::new();
        let mut sampled = BTreeMap::new();
        let mut replaced = BTreeMap::new();
        let mut others = Vec::new();
        let mut components_in_all = 0;
        for (leaf, count) in leaves {
            let times = *count as f64;
            match leaf {
                Leaf::Gaussian { mu } => square += times * mu * mu,
                Leaf::PoissonGaussian { rate, mu } => {
                    *sampled.entry((rate.to_bits(), mu.to_bits())).or_insert(0.0) += times;
                }
                Leaf::PoissonReplacement(pair) => {
                    let (rate, mean) = pair.symmetric()?;
                    *replaced.entry((rate.to_bits(), mean.to_bits())).or_insert(0.0) += times;
                }
                Leaf::Laplace { x } | Leaf::LaplaceBall { x, dim: 1 } => {
                    *laplace.entry(x.to_bits()).or_insert(0.0) += times;
                }
                Leaf::Pure { epsilon } => *pure.entry(epsilon.to_bits()).or_insert(0.0) += times,
                Leaf::RandomizedResponse { buckets, noise } if *noise > 0.0 => {
                    others.push((randomized_response(*buckets, *noise), times));
                }
                Leaf::Mixture(mixture) => {
                    components_in_all += mixture.components().len();
                    if components_in_all > MAX_COMPONENTS {
                        return None;
                    }
                    let sum: f64 = mixture.components().iter().map(|component| component.1).sum();
                    let components = mixture.components().iter().map(|&(mu, weight)| (mu * mu, weight / sum)).collect();
                    others.push((Law::Mixture { components, log_sum: sum.ln() }, times));
                }
                _ => return None,
            }
        }
        if square > 0.0 {
            others.push((Law::Gaussian { square }, 1.0));
        }
        others.extend(laplace.into_iter().map(|(x, times)| (Law::Laplace { x: f64::from_bits(x) }, times)));
        others.extend(replaced.into_iter().map(|((rate, mean), times): ((u64, u64), f64)| {
            (Law::Replacement(Replacement { rate: f64::from_bits(rate), mean: f64::from_bits(mean) }), times)
        }));
        let has_density = others.iter().any(|(law, _)| !matches!(law, Law::Atoms(_))) || !sampled.is_empty();
        others.extend(pure.into_iter().map(|(epsilon, times)| (binary(f64::from_bits(epsilon)), times)));
        let ways: &[Direction] =
            if sampled.is_empty() { &[Direction::Remove] } else { &[Direction::Remove, Direction::Add] };
        let directions = ways.iter().map(|&direction| {
            let mut laws = others.clone();
            laws.extend(sampled.iter().map(|(&(rate, mu), &times)| {
                let (rate, sigma) = (f64::from_bits(rate), f64::from_bits(mu).recip());
                (Law::PoissonGaussian(PoissonGaussian { rate, sigma, direction }), times)
            }));
            OneWay { laws, kept: Kept::default() }
        });
        let directions = directions.collect();
        has_density.then_some(Self { directions })
    }

    /// Returns whether there are many releases with a density, or Gaussians: the integrand of few hardly decays.
    pub(crate) fn is_long(&self) -> bool {
        const MANY_RELEASES: f64 = 100.0;
        let decaying = |(law, count): &(Law, f64)| match law {
            Law::Gaussian { .. } => f64::INFINITY,
            Law::Atoms(_) => 0.0,
            _ => *count,
        };
        // The other direction has as many.
        let releases = self.directions.first().map_or(0.0, |direction| direction.laws.iter().map(decaying).sum());
        releases >= MANY_RELEASES
    }

    /// Returns bounds on the largest loss, which is epsilon at delta = 0.
    pub(crate) fn supremum(&self) -> Ends {
        let upper = self.directions.iter().map(|direction| supremum(&direction.laws)).fold(0.0, f64::max);
        Ends { lower: upper * (1.0 - 1e-12), upper }
    }

    /// Returns epsilon for a delta between `e^low` and `e^high`: the lower end for `high`, the upper end for `low`.
    ///
    /// `None` if no end is known.
    pub(crate) fn epsilon(&self, low: f64, high: f64) -> Option<Ends> {
        let mut found = Ends { lower: 0.0, upper: 0.0 };
        for direction in &self.directions {
            found = found.larger(direction.epsilon(low, high).unwrap_or(UNKNOWN));
        }
        (found != UNKNOWN).then_some(found)
    }

    /// As [`epsilon`](Self::epsilon), with [eased] lines for the directions that the usual ones leave open.
    pub(crate) fn epsilon_eased(&self, low: f64, high: f64, effort: Effort) -> Ends {
        let usual = |direction: &OneWay| direction.epsilon(low, high).unwrap_or(UNKNOWN);
        self.eased(Ends { lower: 0.0, upper: 0.0 }, usual, |direction| {
            epsilon_eased(&direction.laws, low, high, effort)
        })
    }

    /// As [`epsilon_eased`](Self::epsilon_eased), for [`log_delta`](Self::log_delta).
    pub(crate) fn log_delta_eased(&self, epsilon: f64, effort: Effort) -> Ends {
        let usual = |direction: &OneWay| direction.log_delta(epsilon).unwrap_or(ANY_DELTA);
        self.eased(Ends::exactly(f64::NEG_INFINITY), usual, |direction| {
            log_delta_eased(&direction.laws, epsilon, effort)
        })
    }

    fn eased(
        &self,
        least: Ends,
        usual: impl Fn(&OneWay) -> Ends,
        eased: impl Fn(&OneWay) -> (Option<Ends>, Option<Closeness>),
    ) -> Ends {
        let known: Vec<Ends> = self.directions.iter().map(usual).collect();
        let floor = known.iter().fold(least, |found, ends| found.larger(*ends)).lower;
        let each = self.directions.iter().zip(known).map(|(direction, known)| {
            let is_open = known.upper > floor && known.upper - known.lower > OPEN * known.upper.abs().max(1.0);
            let found = if is_open { direction.kept.keeping(|| eased(direction)) } else { None };
            found.map_or(known, |ends| known.both(ends))
        });
        each.fold(least, Ends::larger)
    }

    /// Returns the logarithm of delta at `epsilon`; `None` if nothing is known of it.
    pub(crate) fn log_delta(&self, epsilon: f64) -> Option<Ends> {
        let mut found = Ends { lower: f64::NEG_INFINITY, upper: f64::NEG_INFINITY };
        for direction in &self.directions {
            found = found.larger(direction.log_delta(epsilon).unwrap_or(ANY_DELTA));
        }
        (found.upper < 0.0 || found.lower > f64::NEG_INFINITY).then_some(found)
    }
}

/// Returns binary randomised response, which dominates every `epsilon`-DP release.
fn binary(epsilon: f64) -> Law {
    let truth = -(-epsilon).exp().ln_1p();
    Law::atoms(&[(truth, epsilon), (truth - epsilon, -epsilon)])
}

/// Returns k-ary randomised response for a changed record: two answers are exchanged, the others are unchanged.
fn randomized_response(buckets: u64, noise: f64) -> Law {
    let each = noise / buckets as f64;
    let loss = ((1.0 - noise) / each).ln_1p();
    let rest = (buckets as f64 - 2.0) * each;
    let mut atoms = vec![(each.ln() + loss, loss), (each.ln(), -loss)];
    if rest > 0.0 {
        atoms.push((rest.ln(), 0.0));
    }
    Law::atoms(&atoms)
}

/// Returns the largest total loss, rounded up, so that delta is 0 from there on.
fn supremum(laws: &[(Law, f64)]) -> f64 {
    laws.iter().map(|(law, count)| law.supremum() * count).sum::<f64>() * (1.0 + 1e-14 * (1.0 + laws.len() as f64))
}

impl OneWay {
    fn log_delta(&self, epsilon: f64) -> Option<Ends> {
        let nearest = self.kept.ready().into_iter().min_by(|a, b| {
            let distance = |kept: &Closeness| (kept.epsilon - epsilon).abs();
            distance(a).total_cmp(&distance(b)).then(a.width.total_cmp(&b.width))
        });
        if let Some(kept) = nearest {
            let found = kept.line.log_delta(epsilon);
            if kept.suffices(epsilon, found) {
                return Some(Ends { lower: found.lower, upper: found.upper });
            }
        }
        self.kept.keeping(|| log_delta_of(&self.laws, epsilon))
    }

    fn epsilon(&self, low: f64, high: f64) -> Option<Ends> {
        let nearest = self.kept.ready().into_iter().min_by(|a, b| {
            let distance = |kept: &Closeness| (kept.log_delta - low).abs();
            distance(a).total_cmp(&distance(b)).then(a.width.total_cmp(&b.width))
        });
        if let Some(kept) = nearest
            && let Some(center) = root(&kept.line, kept.epsilon, 1.0, low)
            && kept.suffices(center, kept.line.log_delta(center))
        {
            return Some(Ends {
                lower: lower_end(&kept.line, center, high),
                upper: upper_end(&kept.line, center, low).min(supremum(&self.laws)),
            });
        }
        self.kept.keeping(|| epsilon_of(&self.laws, low, high))
    }
}

fn log_delta_of(laws: &[(Law, f64)], epsilon: f64) -> (Option<Ends>, Option<Closeness>) {
    let mut kept = None;
    (log_delta_by(laws, epsilon, &mut kept), kept)
}

fn epsilon_of(laws: &[(Law, f64)], low: f64, high: f64) -> (Option<Ends>, Option<Closeness>) {
    let mut kept = None;
    (epsilon_by(laws, low, high, &mut kept), kept)
}

fn log_delta_by(laws: &[(Law, f64)], epsilon: f64, kept: &mut Option<Closeness>) -> Option<Ends> {
    if epsilon >= supremum(laws) {
        return Some(Ends { lower: f64::NEG_INFINITY, upper: f64::NEG_INFINITY });
    }
    let mut search = Search::new(laws);
    let saddle = search.for_epsilon(epsilon)?;
    match Line::new(&mut search, &saddle, epsilon, saddle.log_delta_at(epsilon).min(0.0), USUAL) {
        Some(line) => {
            let LogDelta { lower, upper, estimate, .. } = line.log_delta(epsilon);
            *kept = Some(Closeness { line, epsilon, log_delta: estimate, width: upper - lower });
            Some(Ends { lower, upper })
        }
        None => {
            let cumulant = upper_cumulant(&mut search, saddle.c)?;
            Some(Ends { lower: f64::NEG_INFINITY, upper: line::chernoff(saddle.c, cumulant, epsilon).min(0.0) })
        }
    }
}

fn epsilon_by(laws: &[(Law, f64)], low: f64, high: f64, kept: &mut Option<Closeness>) -> Option<Ends> {
    let cap = supremum(laws);
    let mut search = Search::new(laws);
    let mut found = Ends { lower: 0.0, upper: cap };
    let Some(mut saddle) = search.for_delta(low) else {
        return cap.is_finite().then_some(found);
    };
    // The saddle-point approximation may misjudge epsilon; the sum then shows where the saddle should be.
    for _ in 0..MAX_LINES {
        let start = saddle.epsilon.max(0.0);
        let Some(line) = Line::new(&mut search, &saddle, start, low, USUAL) else {
            return chernoff_only(&mut search, &saddle, low).map(|ends| found.both(ends)).or(Some(found));
        };
        found = found.both(Ends { lower: 0.0, upper: line.chernoff_epsilon(low) });
        let Some(center) = root(&line, saddle.epsilon, saddle.bend().sqrt(), low) else {
            break;
        };
        let ends = Ends { lower: lower_end(&line, center, high), upper: upper_end(&line, center, low) };
        let is_too_short = line.is_too_short(center);
        *kept = Some(Closeness::new(line, center, low));
        found = found.both(ends);
        let misjudged = (saddle.epsilon - center).abs() > 0.5 * saddle.bend().sqrt() || is_too_short;
        if found.upper - found.lower <= CLOSE * found.upper || !misjudged {
            break;
        }
        match search.for_epsilon(center) {
            Some(next) => saddle = next,
            None => break,
        }
    }
    Some(found)
}

/// Returns the Renyi bound on the line, if the line's sum is of no use.
fn chernoff_only(search: &mut Search<'_>, saddle: &Saddle, low: f64) -> Option<Ends> {
    let upper = chernoff_epsilon(saddle.c, upper_cumulant(search, saddle.c)?, low);
    Some(Ends { lower: 0.0, upper })
}

/// Returns the epsilon at which the estimate of delta is `e^log_delta`, by Newton's method from `start`; 0 if the estimate at 0
/// is already smaller, `None` if it is lost there. Where the sum loses delta, the estimate is no number, and counts as smaller. A
/// step that leaves the interval in which the root lies is replaced by its middle, or, as long as only one end is known, by `scale`
/// and increasing multiples of it.
fn root(line: &Line, start: f64, scale: f64, log_delta: f64) -> Option<f64> {
    let mut epsilon = start.max(0.0);
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut reach = scale;
    for _ in 0..MAX_STEPS {
        let LogDelta { estimate, slope, .. } = line.log_delta(epsilon);
        if estimate > log_delta {
            low = epsilon;
        } else if epsilon == 0.0 {
            return (!estimate.is_nan()).then_some(0.0);
        } else {
            high = epsilon;
        }
        let newton = epsilon - (estimate - log_delta) / slope;
        let is_usable = newton.is_finite() && slope < 0.0;
        if is_usable && (newton - epsilon).abs() <= 1e-14 * newton {
            return Some(newton);
        }
        if high.is_finite() && high - low <= 1e-14 * high {
            return Some(epsilon);
        }
        epsilon = match (low.is_finite(), high.is_finite()) {
            _ if is_usable && newton > low && newton < high => newton.max(0.0),
            (true, true) if high > 4.0 * low && low > 0.0 => (low * high).sqrt(),
            (true, true) => 0.5 * (low + high),
            (has_low, _) => {
                let step = if has_low { reach } else { -reach };
                reach *= 1.5;
                (epsilon + step).max(0.0)
            }
        };
    }
    None
}

/// Returns the least epsilon near `center` at which the upper bound on delta is at most `e^log_delta`; infinite if there is none.
fn upper_end(line: &Line, center: f64, log_delta: f64) -> f64 {
    let mut epsilon = center;
    let mut factor = 1.0;
    for _ in 0..60 {
        let LogDelta { upper, slope, .. } = line.log_delta(epsilon);
        let excess = upper - log_delta;
        if excess <= 0.0 {
            return epsilon;
        }
        if !(slope < 0.0) {
            break;
        }
        epsilon = (epsilon - factor * excess / slope).next_up();
        factor *= 1.25;
        if !epsilon.is_finite() {
            break;
        }
    }
    f64::INFINITY
}

/// Returns the largest epsilon near `center` at which the lower bound on delta is at least `e^log_delta`; 0 if there is none.
fn lower_end(line: &Line, center: f64, log_delta: f64) -> f64 {
    largest_shown(center, |epsilon| {
        let LogDelta { lower, slope, .. } = line.log_delta(epsilon);
        (lower - log_delta, slope)
    })
}
