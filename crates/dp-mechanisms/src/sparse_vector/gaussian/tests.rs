use super::*;
use crate::sparse_vector::Answer;
use crate::sparse_vector::tests::{check_first_answer, numbers};
use crate::testing::{check_law, golden_cases};
use crate::{Bounded, OsSeeded, SeededRng};
use dp_accountant::{RdpOrder, ReplaceOne, rdp};

fn sensitivity(value: f64) -> LInfSensitivity<ReplaceOne> {
    LInfSensitivity::new(value).unwrap()
}

#[test]
fn golden_laws() {
    for case in golden_cases("mechanisms.json", "sparse_vector_gaussian") {
        let (threshold, queries) = (case.input("threshold_sigma"), case.input("query_sigma"));
        let mechanism = GaussianAboveThreshold::new(sensitivity(1.0), threshold, queries, 5).unwrap();
        let law = mechanism.first_answer(&numbers(&case.input["queries"]), case.input("threshold")).unwrap();
        check_first_answer(&case, &law);
    }
}

/// Whole sessions compared with their law: false-alarm rate 1e-9.
#[test]
fn sessions_have_the_law() {
    let unit = 0.3;
    let mechanism = GaussianAboveThreshold::new(sensitivity(unit), 0.4, 0.7, 4).unwrap();
    let queries = [-0.5, 0.0, 0.2, 0.4];
    let law = mechanism.first_answer(&queries, 0.1).unwrap();
    let mut counts = vec![0u64; law.len()];
    let mut rng = SeededRng::new(31);
    for _ in 0..100_000 {
        let mut log = EventLog::new();
        let mut session = mechanism.start(0.1, &mut log, &mut rng).unwrap();
        let first = queries.iter().position(|&value| {
            let query = Bounded::with_proven_sensitivity(value, sensitivity(unit));
            *session.answer(query, &mut log, &mut rng).unwrap().get() != Answer::Below
        });
        counts[first.unwrap_or(queries.len())] += 1;
    }
    check_law(&counts, &law, "sessions");
}

/// The Renyi divergence of the whole law between neighbours, compared with the event's, for alternating shifts of one query
/// level, which is the worst known case.
#[test]
fn divergences_are_below_the_event() {
    let (threshold, queries) = (2.0, 3.0);
    for length in [1, 2, 3, 8] {
        let mechanism = GaussianAboveThreshold::new(sensitivity(1.0), threshold, queries, length).unwrap();
        let event = mechanism.event();
        let DpEvent::AboveThresholdGaussian { threshold_std_dev, query_std_dev, sensitivity, max_queries, .. } = event
        else {
            panic!("{event:?}");
        };
        for level in [-3.0, 0.0, 2.0] {
            let law = |shift: f64| {
                let stream: Vec<f64> = (0..length).map(|i| level + if i % 2 == 0 { shift } else { -shift }).collect();
                mechanism.first_answer(&stream, 0.0).unwrap()
            };
            let (p, q) = (law(0.0), law(1.0));
            for order in [1.5, 2.0, 8.0] {
                let sum: f64 = p.iter().zip(&q).map(|(p, q)| p.powf(order) * q.powf(1.0 - order)).sum();
                let found = sum.ln() / (order - 1.0);
                let claimed = rdp::above_threshold_gaussian(
                    RdpOrder::new(order).unwrap(),
                    sensitivity / threshold_std_dev,
                    sensitivity / query_std_dev,
                    max_queries,
                );
                assert!(found <= claimed.unwrap() && found > 0.0, "{length} {level} {order}: {found}");
            }
        }
    }
}

/// Tests queries that change within one interval: all decrease by a sensitivity, or some increase and the others are unchanged.
#[test]
fn divergences_in_one_interval_are_below_the_event() {
    for length in [1u64, 2, 5] {
        let any = GaussianAboveThreshold::new(sensitivity(1.0), 1.5, 1.0, length).unwrap();
        let mechanism = any.range_bounded();
        let DpEvent::AboveThresholdGaussian {
            threshold_std_dev,
            query_std_dev,
            sensitivity,
            max_queries,
            range_bounded,
        } = mechanism.event()
        else {
            panic!("{:?}", mechanism.event());
        };
        assert!(range_bounded);
        let mut largest: f64 = 0.0;
        for moved in 0..1 << length {
            for low in [-1.0, -0.5, 0.0] {
                let at = |i: u64| low + if moved >> i & 1 == 1 { 1.0 } else { 0.0 };
                let stream: Vec<f64> = (0..length).map(at).collect();
                let p = mechanism.first_answer(&vec![0.0; length as usize], 0.0).unwrap();
                let q = mechanism.first_answer(&stream, 0.0).unwrap();
                for order in [1.5, 4.0] {
                    let claimed = rdp::above_threshold_gaussian_range_bounded(
                        RdpOrder::new(order).unwrap(),
                        sensitivity / threshold_std_dev,
                        sensitivity / query_std_dev,
                        max_queries,
                    )
                    .unwrap();
                    for (p, q) in [(&p, &q), (&q, &p)] {
                        let sum: f64 = p.iter().zip(q).map(|(p, q)| p.powf(order) * q.powf(1.0 - order)).sum();
                        let found = sum.ln() / (order - 1.0);
                        assert!(found <= claimed, "{length} {moved:b} {low} {order}: {found} {claimed}");
                        largest = largest.max(found / claimed);
                    }
                }
            }
        }
        assert!(largest > 0.2, "{length}: {largest}");
    }
}

#[test]
fn the_event_covers_the_lattice() {
    for bound in [1.0, 0.1, 1.0 / 3.0, 1e-300, 1e300] {
        let mechanism = GaussianAboveThreshold::new(sensitivity(bound), 2.5 * bound, 7.0 * bound, 1).unwrap();
        let DpEvent::AboveThresholdGaussian { threshold_std_dev, query_std_dev, sensitivity, max_queries, .. } =
            mechanism.event()
        else {
            panic!();
        };
        assert_eq!((threshold_std_dev, query_std_dev, max_queries), (2.5 * bound, 7.0 * bound, 2));
        let steps = mechanism.lattice.sensitivity() as f64 + 3.0;
        assert!(steps / mechanism.threshold_noise as f64 <= sensitivity / threshold_std_dev);
        assert!(steps / mechanism.query_noise as f64 <= sensitivity / query_std_dev);
        assert!(sensitivity <= bound * (1.0 + 1e-8));
    }
}

#[test]
fn a_session_ends_after_the_last_query() {
    let mechanism = GaussianAboveThreshold::new(sensitivity(1.0), 1.0, 1.0, 3).unwrap();
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    let query = |value| Bounded::with_proven_sensitivity(value, sensitivity(1.0));
    let mut session = mechanism.start(0.0, &mut log, &mut rng).unwrap();
    assert_eq!(session.answer(query(f64::NAN), &mut log, &mut rng), Err(Error::NonFiniteInput));
    for left in [2, 1, 0] {
        assert_eq!(*session.answer(query(-1e9), &mut log, &mut rng).unwrap().get(), Answer::Below);
        assert_eq!(session.queries_left(), Some(left));
    }
    assert!(session.is_over());
    let over = Err(Error::SessionOver { what: "queries", most: 3 });
    assert_eq!(session.answer(query(1e9), &mut log, &mut rng), over);
    // The session is over after the first positive answer.
    let mut session = mechanism.start(0.0, &mut log, &mut rng).unwrap();
    assert_eq!(*session.answer(query(1e9), &mut log, &mut rng).unwrap().get(), Answer::Above { value: None });
    assert!(session.is_over() && session.answer(query(1e9), &mut log, &mut rng).is_err());
    assert_eq!(log.entries(), [(mechanism.event(), 2)]);
}

#[test]
fn refused_parameters() {
    let new =
        |threshold, queries, most| GaussianAboveThreshold::new(sensitivity(1.0), threshold, queries, most).map(|_| ());
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(matches!(new(bad, 1.0, 1), Err(Error::NotFinite { .. })));
        assert!(matches!(new(1.0, bad, 1), Err(Error::NotFinite { .. })));
    }
    for bad in [0.0, -0.0, -1.0] {
        assert!(matches!(new(bad, 1.0, 1), Err(Error::NotPositive { .. })));
        assert!(matches!(new(1.0, bad, 1), Err(Error::NotPositive { .. })));
    }
    assert!(matches!(new(5e-324, 1.0, 1), Err(Error::TooSmall { .. })));
    for huge in [2f64.powi(24), 1e300] {
        assert!(matches!(new(huge, 1.0, 1), Err(Error::ScaleOverflow { .. })));
        assert!(matches!(new(1.0, huge, 1), Err(Error::ScaleOverflow { .. })));
    }
    assert_eq!(new(2f64.powi(22), 1e-300, 1 << 32), Ok(()));
    for bad in [0, (1 << 32) + 1] {
        assert!(matches!(new(1.0, 1.0, bad), Err(Error::OutOfRange { name: "max_queries", .. })));
    }
    let largest = GaussianAboveThreshold::new(sensitivity(f64::MAX), 1.0, 1.0, 1);
    assert!(matches!(largest, Err(Error::ScaleOverflow { .. })));
    let mechanism = GaussianAboveThreshold::new(sensitivity(1.0), 1.0, 1.0, 1).unwrap();
    assert!(matches!(mechanism.first_answer(&[0.0, 0.0], 0.0), Err(Error::Length { .. })));
    assert_eq!(mechanism.first_answer(&[f64::NAN], 0.0), Err(Error::NonFiniteInput));
}
