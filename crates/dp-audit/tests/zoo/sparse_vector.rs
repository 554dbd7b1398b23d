//! Faulty variants of the sparse vector technique, in the numbering of Lyu, Su and Li 2017, "Understanding the sparse vector
//! technique for differential privacy", Figure 1, and a faulty resumption. The sound twin is this workspace's mechanism.
//!
//! Queries have sensitivity 1 and the threshold is 0. The probabilities of the events are computed by numerical integration
//! over the threshold's noise.

use dp_accountant::{Epsilon, EventLog, ReplaceOne};
use dp_mechanisms::sparse_vector::Answer;
use dp_mechanisms::{AboveThreshold, Bounded, LInfSensitivity, SeededRng};

use crate::specimen::{Specimen, pick, pure};
use crate::textbook::laplace;

/// The answers until the end: the noisy value of each query above, `None` for one below.
type Answers = Vec<Option<f64>>;

/// The sparse vector technique with exchangeable parts.
struct SparseVector {
    threshold_scale: f64,
    query_scale: f64,
    /// True if each query has a fresh threshold.
    fresh_threshold: bool,
    /// Number of answers above after which it stops.
    most_above: usize,
    /// True if it continues with a fresh threshold after the last answer above.
    restart: bool,
}

impl SparseVector {
    /// Returns the noisy value of each query if it is above, until it stops.
    fn answers(&self, queries: &[f64], rng: &mut SeededRng) -> Answers {
        let mut threshold = laplace(self.threshold_scale, rng);
        let (mut answers, mut above) = (Answers::new(), 0);
        for query in queries {
            if self.fresh_threshold {
                threshold = laplace(self.threshold_scale, rng);
            }
            let noisy = query + laplace(self.query_scale, rng);
            let answer = (noisy >= threshold).then_some(noisy);
            answers.push(answer);
            above += usize::from(answer.is_some());
            if above == self.most_above {
                if !self.restart {
                    break;
                }
                above = 0;
                threshold = laplace(self.threshold_scale, rng);
            }
        }
        answers
    }
}

/// Returns whether the answers are exactly `below` answers below, then `above` answers above.
fn shows(answers: &Answers, below: usize, above: usize) -> bool {
    answers.len() == below + above
        && answers[..below].iter().all(Option::is_none)
        && answers[below..].iter().all(Option::is_some)
}

/// Half of epsilon for the threshold, half for the answers above; each mutant differs in one respect.
fn textbook(epsilon: f64, most_above: usize) -> SparseVector {
    SparseVector {
        threshold_scale: 2.0 / epsilon,
        query_scale: 4.0 * most_above as f64 / epsilon,
        fresh_threshold: false,
        most_above,
        restart: false,
    }
}

/// Returns the workspace's mechanism at the same claim, with or without noisy values for half of epsilon.
fn sound(epsilon: f64, most_above: u64, values: bool) -> AboveThreshold<ReplaceOne> {
    let sensitivity = LInfSensitivity::new(1.0).unwrap();
    let half = Epsilon::new(0.5 * epsilon).unwrap();
    if values {
        AboveThreshold::new(sensitivity, half, most_above).unwrap().with_values(half).unwrap()
    } else {
        AboveThreshold::new(sensitivity, Epsilon::new(epsilon).unwrap(), most_above).unwrap()
    }
}

/// Returns the answers of one session.
fn session(mechanism: &AboveThreshold<ReplaceOne>, queries: &[f64], rng: &mut SeededRng) -> Answers {
    let mut log = EventLog::new();
    let mut session = mechanism.start(0.0, &mut log, rng).unwrap();
    let mut answers = Answers::new();
    for &query in queries {
        if session.is_over() {
            break;
        }
        let query = Bounded::with_proven_sensitivity(query, mechanism.sensitivity());
        answers.push(match session.answer(query, &mut log, rng).unwrap().get() {
            Answer::Below => None,
            Answer::Above { value } => Some(value.unwrap_or(0.0)),
        });
    }
    answers
}

/// Returns `count` queries at `first`, then `rest` at `last`.
fn queries(count: usize, first: f64, rest: usize, last: f64) -> Vec<f64> {
    [vec![first; count], vec![last; rest]].concat()
}

pub(crate) fn specimens() -> Vec<Specimen> {
    vec![
        variant_3(),
        variant_4(),
        variant_5(),
        variant_6(),
        threshold_for_each_query(),
        every_other_counted(),
        resumed(),
    ]
}

/// Four queries below and an answer of at most 1: the noise of that answer bounds the threshold from above, and each query
/// below then has a cost. Probability 0.0098 against 0.00029, at a claim of 2.
fn variant_3() -> Specimen {
    let inputs = |side| pick(side, [0.0; 5], [1.0, 1.0, 1.0, 1.0, 0.0]);
    let small = |answers: &Answers| shows(answers, 4, 1) && answers[4].is_some_and(|value| value <= 1.0);
    let mutant = SparseVector { query_scale: 1.0, ..textbook(2.0, 1) };
    let twin = sound(2.0, 1, true);
    Specimen::event(
        "sparse vector 3: answers with the comparison's own noise",
        "(0, 0, 0, 0, 0) and (1, 1, 1, 1, 0)",
        pure(2.0),
        move |side, rng| small(&mutant.answers(&inputs(side), rng)),
        move |side, rng| small(&session(&twin, &inputs(side), rng)),
    )
    .with_trials(200_000)
}

/// A quarter of the budget for the threshold; noise of one answer for three answers. One below, three above: 0.029 against
/// 0.00095.
fn variant_4() -> Specimen {
    let mutant = SparseVector { threshold_scale: 2.0, query_scale: 2.0 / 3.0, ..textbook(2.0, 3) };
    let twin = sound(2.0, 3, false);
    let inputs = |side| pick(side, queries(1, 0.0, 3, 0.0), queries(1, 1.0, 3, -1.0));
    Specimen::event(
        "sparse vector 4: query noise not scaled by the number of answers",
        "(0, 0, 0, 0) and (1, -1, -1, -1)",
        pure(2.0),
        move |side, rng| shows(&mutant.answers(&inputs(side), rng), 1, 3),
        move |side, rng| shows(&session(&twin, &inputs(side), rng), 1, 3),
    )
    .with_trials(100_000)
}

/// Below and then above: 0.1967 against exactly 0.
fn variant_5() -> Specimen {
    let mutant = SparseVector { query_scale: 0.0, ..textbook(1.0, 1) };
    let twin = sound(1.0, 1, false);
    let inputs = |side| pick(side, [0.0, 1.0], [1.0, 0.0]);
    Specimen::event(
        "sparse vector 5: no query noise",
        "(0, 1) and (1, 0)",
        pure(1.0),
        move |side, rng| shows(&mutant.answers(&inputs(side), rng), 1, 1),
        move |side, rng| shows(&session(&twin, &inputs(side), rng), 1, 1),
    )
}

/// Three below and three above: 0.0071 against 0.00052.
fn variant_6() -> Specimen {
    let mutant = SparseVector { query_scale: 2.0, most_above: usize::MAX, ..textbook(1.0, 1) };
    let twin = sound(1.0, 3, false);
    let inputs = |side| pick(side, queries(3, 0.0, 3, 0.0), queries(3, 1.0, 3, -1.0));
    Specimen::event(
        "sparse vector 6: never stops",
        "(0, 0, 0, 0, 0, 0) and (1, 1, 1, -1, -1, -1)",
        pure(1.0),
        move |side, rng| shows(&mutant.answers(&inputs(side), rng), 3, 3),
        move |side, rng| shows(&session(&twin, &inputs(side), rng), 3, 3),
    )
    .with_trials(200_000)
}

/// Ten below: 0.015 against 0.00098.
fn threshold_for_each_query() -> Specimen {
    let mutant = SparseVector { fresh_threshold: true, ..textbook(2.0, 1) };
    let twin = sound(2.0, 1, false);
    let inputs = |side| pick(side, [-1.0; 10], [0.0; 10]);
    Specimen::event(
        "sparse vector with a fresh threshold for each query",
        "ten queries at -1 and at 0",
        pure(2.0),
        move |side, rng| shows(&mutant.answers(&inputs(side), rng), 10, 0),
        move |side, rng| shows(&session(&twin, &inputs(side), rng), 10, 0),
    )
    .with_trials(200_000)
}

/// Noise for one answer above, but the session ends at the second. Eight below and two above: 0.0117 against 0.00076.
fn every_other_counted() -> Specimen {
    let mutant = SparseVector { most_above: 2, ..textbook(2.0, 1) };
    let twin = sound(2.0, 2, false);
    let inputs = |side| pick(side, queries(8, -0.5, 2, 1.0), queries(8, 0.5, 2, 0.0));
    Specimen::event(
        "sparse vector that counts every other answer above",
        "eight queries at -1/2 and two at 1; eight at 1/2 and two at 0",
        pure(2.0),
        move |side, rng| shows(&mutant.answers(&inputs(side), rng), 8, 2),
        move |side, rng| shows(&session(&twin, &inputs(side), rng), 8, 2),
    )
    .with_trials(200_000)
}

/// The number of answers above among 200 queries, which a session that stops after the first cannot reveal.
fn resumed() -> Specimen {
    let inputs = |side| pick(side, [0.0; 200], [1.0; 200]);
    let count = |answers: &Answers| answers.iter().flatten().count() as f64;
    let mutant = SparseVector { restart: true, ..textbook(1.0, 1) };
    let twin = sound(1.0, 1, false);
    Specimen::score(
        "sparse vector resumed after its last answer, not charged",
        "200 queries at 0 and at 1",
        pure(1.0),
        move |side, rng| count(&mutant.answers(&inputs(side), rng)),
        move |side, rng| count(&session(&twin, &inputs(side), rng)),
    )
}
