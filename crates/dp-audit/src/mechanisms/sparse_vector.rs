//! The sparse vector technique: fixed patterns of answers whose probability the neighbour's queries raise or lower.

use dp_accountant::{Delta, DpEvent, Epsilon, EventLog, ReplaceOne, bound};
use dp_mechanisms::sparse_vector::{Answer, Session};
use dp_mechanisms::{AboveThreshold, Bounded, GaussianAboveThreshold, LInf, PrivacyEvent, SeededRng};

use super::{Entry, pick, scored, sensitivity};
use crate::error::Error;
use crate::subject::{Claim, Statistic};

/// Queries relative to the threshold, and the pattern: `below` answers below, then `above` answers above.
struct Pattern {
    name: &'static str,
    words: &'static str,
    below: usize,
    above: usize,
    base: [f64; 2],
    neighbour: [f64; 2],
}

impl Pattern {
    fn queries(&self, levels: [f64; 2]) -> Vec<f64> {
        let [first, last] = levels;
        [vec![first; self.below], vec![last; self.above]].concat()
    }
}

/// The threshold itself: far from 0, as queries are.
const THRESHOLD: f64 = 1000.0;

const PATTERNS: [Pattern; 3] = [
    Pattern {
        name: "step",
        words: "below at T and above at T + D, against the reverse",
        below: 1,
        above: 1,
        base: [0.0, 1.0],
        neighbour: [1.0, 0.0],
    },
    Pattern {
        name: "ladder",
        words: "eight below at T - D/2 and above at T + D/2, against all D nearer to the other side",
        below: 8,
        above: 1,
        base: [-0.5, 0.5],
        neighbour: [0.5, -0.5],
    },
    Pattern {
        name: "several",
        words: "four below and three above at T, against all D nearer to the other side",
        below: 4,
        above: 3,
        base: [0.0, 0.0],
        neighbour: [1.0, -1.0],
    },
];

/// The epsilon at which a few queries come near the worst ratio, with an observable frequency.
const EPSILON: f64 = 2.0;

pub(super) fn subjects() -> Result<Vec<Entry>, Error> {
    let mut subjects = Vec::new();
    for pattern in PATTERNS {
        let answers = pattern.above as u64;
        let laplace = AboveThreshold::<ReplaceOne>::new(sensitivity::<LInf>()?, Epsilon::new(EPSILON)?, answers)?;
        let claim = Claim::new(laplace.event())?;
        let name = format!("above-threshold/{}", pattern.name);
        if pattern.above == 1 {
            let most = (pattern.below + pattern.above) as u64;
            let gaussian = GaussianAboveThreshold::<ReplaceOne>::new(sensitivity::<LInf>()?, 1.0, 2.0, most)?;
            let claim = Claim::new(gaussian.event())?;
            let name = format!("gaussian-above-threshold/{}", pattern.name);
            subjects.push(observe(name, &pattern, claim, move |log, rng| gaussian.start(THRESHOLD, log, rng)));
        }
        subjects.push(observe(name, &pattern, claim, move |log, rng| laplace.start(THRESHOLD, log, rng)));
    }
    subjects.push(value()?);
    Ok(subjects)
}

type Log = EventLog<ReplaceOne>;

/// Observes whether the session answers in the pattern.
fn observe<S>(name: String, pattern: &Pattern, claim: Claim, start: S) -> Entry
where
    S: Fn(&mut Log, &mut SeededRng) -> Result<Session<ReplaceOne>, dp_mechanisms::Error> + Send + Sync + 'static,
{
    let (base, neighbour) = (pattern.queries(pattern.base), pattern.queries(pattern.neighbour));
    let below = pattern.below;
    let cost = 1.0 + base.len() as f64 / 4.0;
    let subject = scored(name, pattern.words.to_owned(), claim, Statistic::Event, move |side, rng| {
        let mut log = EventLog::new();
        let mut session = start(&mut log, rng)?;
        for (i, &query) in pick(side, &base, &neighbour).iter().enumerate() {
            let query = Bounded::with_proven_sensitivity(THRESHOLD + query, sensitivity::<LInf>()?);
            let answer = session.answer(query, &mut log, rng)?;
            if (*answer.get() == Answer::Below) != (i < below) {
                return Ok(0.0);
            }
        }
        Ok(1.0)
    });
    Box::new(subject.with_relative_cost(cost))
}

/// The value of a positive answer, which has separate noise. The claim is the composed cost of all parts at delta = 0.
fn value() -> Result<Entry, Error> {
    let half = Epsilon::new(0.5 * EPSILON)?;
    let mechanism = AboveThreshold::<ReplaceOne>::new(sensitivity::<LInf>()?, half, 1)?.with_values(half)?;
    let epsilon = bound::epsilon(&mechanism.event(), Delta::ZERO)?.value;
    let claim = Claim::new(DpEvent::PureDp { epsilon })?;
    let words = "a query at T that may be answered with its value, and D more".to_owned();
    let subject = scored("above-threshold/value".to_owned(), words, claim, Statistic::Score, move |side, rng| {
        let mut log = EventLog::new();
        let mut session = mechanism.start(THRESHOLD, &mut log, rng)?;
        let query = THRESHOLD + pick(side, 0.0, 1.0);
        let query = Bounded::with_proven_sensitivity(query, sensitivity::<LInf>()?);
        Ok(match session.answer(query, &mut log, rng)?.get() {
            Answer::Above { value: Some(value) } => *value,
            Answer::Above { value: None } | Answer::Below => f64::NEG_INFINITY,
        })
    });
    Ok(Box::new(subject.with_relative_cost(1.5)))
}
