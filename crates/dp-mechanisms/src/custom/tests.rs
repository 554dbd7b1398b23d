use dp_accountant::{Delta, Epsilon, ReplaceOne, Rho, ZeroOut, bound};
use proptest::prelude::*;
use rand::Rng;
use statrs::distribution::{ContinuousCDF, Normal};

use super::loss_ccdf::falling;
use super::*;
use crate::{L1, L1Sensitivity, L2Sensitivity, OsSeeded, SeededRng};

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn delta(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

fn self_composed(claim: &Claim, count: u64) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(claim.event().unwrap()), count }
}

fn every_claim() -> Vec<Claim> {
    vec![
        Claim::PureEps(epsilon(0.5)),
        Claim::ApproxDp { epsilon: epsilon(0.5), delta: delta(1e-7) },
        Claim::ApproxDp { epsilon: epsilon(0.5), delta: Delta::ZERO },
        Claim::BoundedRange(epsilon(0.5)),
        Claim::Zcdp(Rho::new(0.125).unwrap()),
        Claim::ApproxZcdp { rho: Rho::new(0.125).unwrap(), delta: delta(1e-7) },
        Claim::ApproxZcdp { rho: Rho::new(0.125).unwrap(), delta: Delta::ZERO },
        Claim::Gdp(0.5),
        Claim::Rdp(RdpCurve::new(vec![2.0, 8.0, 32.0], vec![0.25, 1.0, 4.0]).unwrap()),
        Claim::DominatingPair(FinitePair::new(vec![0.75, 0.25], vec![0.25, 0.75]).unwrap()),
        LossCcdf::new(vec![0.0, 0.25, 0.5], vec![0.6, 0.3, 1e-8], vec![0.6, 0.3, 0.0]).unwrap().into(),
    ]
}

#[test]
fn every_claim_is_composed_by_the_accountants() {
    let sensitivity = L1Sensitivity::<ReplaceOne>::new(1.0).unwrap();
    for claim in every_claim() {
        let mechanism =
            CustomMechanism::new("mine", claim.clone(), sensitivity, |v: i64, _: &mut dyn CryptoRng| Ok(v)).unwrap();
        let mut log = EventLog::<ReplaceOne>::new();
        for value in 0..4 {
            let value = Bounded::with_proven_sensitivity(value, sensitivity);
            mechanism.release(value, &mut log, &mut OsSeeded::new().unwrap()).unwrap();
        }
        assert_eq!(log.entries(), [(mechanism.event(), 4)]);
        assert_eq!(log.assumptions(), [Assumption::ClaimedByUser { mechanism: "mine".to_owned() }]);
        let composed = bound::epsilon(&log.to_event(), delta(1e-5)).unwrap().value;
        let once = bound::epsilon(&claim.event().unwrap(), delta(1e-5)).unwrap().value;
        assert!(composed.is_finite() && composed > once && composed <= 4.0 * once + 40.0, "{claim:?}: {composed}");
        assert!(log.is_private());
    }
}

#[test]
fn claims_become_the_events_of_their_definitions() {
    let events = every_claim().iter().map(|claim| claim.event().unwrap().name()).collect::<Vec<_>>();
    let expected = [
        "pure-dp",
        "approximate-dp",
        "pure-dp",
        "bounded-range",
        "zcdp",
        "composed",
        "zcdp",
        "gdp",
        "renyi-dp",
        "dominating-pair",
        "dominating-pair",
    ];
    assert_eq!(events, expected);
}

/// It fails with probability `f = 1 - (1 - delta)^count`; the remaining `1 - f` is zCDP, so that epsilon at `f + (1 - f) x` is
/// that of zCDP at `x`, for every delta of a single release.
#[test]
fn approximate_zcdp_costs_its_delta_and_nothing_else() {
    let rho = Rho::new(0.1).unwrap();
    let approximate = Claim::ApproxZcdp { rho, delta: delta(1e-6) };
    let plain = Claim::Zcdp(rho);
    for count in [1, 20] {
        let failure = -(count as f64 * (-1e-6f64).ln_1p()).exp_m1();
        let at = |claim: &Claim, at: f64| bound::epsilon(&self_composed(claim, count), delta(at)).unwrap().value;
        let (whole, survivors) = (at(&approximate, failure + (1.0 - failure) * 1e-5), at(&plain, 1e-5));
        assert!(whole >= survivors * (1.0 - 1e-9) && whole <= survivors * (1.0 + 1e-3), "{whole} {survivors}");
        assert!(at(&approximate, failure * 0.999).is_infinite(), "{count}");
    }
}

#[test]
fn no_claim_without_numbers_that_are_one() {
    for mu in [f64::NAN, f64::INFINITY, 0.0, -0.0, -1.0, 5e-324] {
        assert!(Claim::Gdp(mu).event().is_err(), "{mu}");
    }
    for (orders, divergences) in [
        (vec![], vec![]),
        (vec![2.0], vec![]),
        (vec![1.0], vec![0.1]),
        (vec![3.0, 2.0], vec![0.1, 0.2]),
        (vec![f64::NAN], vec![0.1]),
        (vec![2.0], vec![-0.1]),
        (vec![2.0], vec![f64::NAN]),
        (vec![2.0], vec![f64::INFINITY]),
        (vec![f64::INFINITY], vec![1.0]),
    ] {
        assert!(RdpCurve::new(orders.clone(), divergences.clone()).is_err(), "{orders:?} {divergences:?}");
    }
    for (p, q) in [
        (vec![], vec![]),
        (vec![1.0], vec![0.5, 0.5]),
        (vec![0.5, 0.4], vec![0.5, 0.5]),
        (vec![1.5, -0.5], vec![0.5, 0.5]),
        (vec![f64::NAN, 1.0], vec![0.5, 0.5]),
    ] {
        assert!(FinitePair::new(p.clone(), q.clone()).is_err(), "{p:?} {q:?}");
    }
    let tail = || vec![0.5, 0.1];
    assert!(LossCcdf::new(vec![0.0, 1.0], tail(), tail()).is_ok());
    for losses in [vec![], vec![0.0], vec![0.5, 1.0], vec![0.0, 0.0], vec![0.0, f64::NAN], vec![0.0, f64::INFINITY]] {
        assert!(LossCcdf::new(losses.clone(), tail(), tail()).is_err(), "{losses:?}");
    }
    for bad in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
        assert!(LossCcdf::new(vec![0.0, 1.0], vec![0.5, bad], tail()).is_err(), "{bad}");
        assert!(LossCcdf::new(vec![0.0, 1.0], tail(), vec![bad, 0.1]).is_err(), "{bad}");
        let constant = |_| 0.5;
        assert!(LossCcdf::tabulate(bad, 1e9, constant, constant).is_err(), "{bad}");
        assert!(LossCcdf::tabulate(1e-9, bad, constant, constant).is_err(), "{bad}");
    }
}

#[test]
fn names_can_be_printed() {
    let build = |name: &str| {
        let f = |v: u8, _: &mut dyn CryptoRng| Ok(v);
        CustomMechanism::for_any_value::<u8, u8>(name, Claim::Gdp(1.0), f)
            .map(|m: CustomMechanism<AnyValue<ZeroOut>, _>| m)
    };
    for bad in ["", " ", "two\nlines", "\u{7}"] {
        assert_eq!(build(bad).err(), Some(Error::MechanismName { name: bad.to_owned() }));
    }
    assert_eq!(build("my count").unwrap().name(), "my count");
}

#[test]
fn what_is_refused_is_not_logged() {
    let sensitivity = L2Sensitivity::<ZeroOut>::new(1.0).unwrap();
    let failing = |_: f64, _: &mut dyn CryptoRng| Err::<f64, _>(Error::NonFiniteInput);
    let mechanism = CustomMechanism::new("failing", Claim::Gdp(1.0), sensitivity, failing).unwrap();
    let mut log = EventLog::new();
    let mut rng = SeededRng::new(1);
    let value = Bounded::with_proven_sensitivity(0.0, sensitivity);
    assert_eq!(mechanism.release(value, &mut log, &mut rng), Err(Error::NonFiniteInput));
    let larger = Bounded::with_proven_sensitivity(0.0, L2Sensitivity::new(1.5).unwrap());
    let refused = Error::SensitivityExceeded { found: 1.5, built_for: 1.0 };
    assert_eq!(mechanism.release(larger, &mut log, &mut rng), Err(refused));
    assert!(log.entries().is_empty() && log.assumptions().is_empty() && log.is_private());
}

#[test]
fn seeds_and_further_assumptions_reach_the_log() {
    let sensitivity = L1Sensitivity::<ZeroOut>::new(1.0).unwrap();
    let draw = |_: (), rng: &mut dyn CryptoRng| Ok(rng.next_u64());
    let mechanism = CustomMechanism::new("word", Claim::Gdp(1.0), sensitivity, draw)
        .unwrap()
        .assuming(Assumption::IdealisedFloat)
        .assuming(Assumption::IdealisedFloat);
    let release = |log: &mut EventLog<ZeroOut>, seed| {
        let value = Bounded::<(), ZeroOut, L1>::with_proven_sensitivity((), sensitivity);
        mechanism.release(value, log, &mut SeededRng::new(seed)).unwrap().into_inner()
    };
    let mut log = EventLog::new();
    // Two words of the generator are compared before a release.
    let mut same = SeededRng::new(1);
    let (_, _, drawn) = (same.next_u64(), same.next_u64(), same.next_u64());
    assert_eq!(release(&mut log, 1), drawn);
    assert_ne!(release(&mut log, 1), release(&mut log, 2));
    assert!(!log.is_private());
    assert_eq!(log.assumptions(), mechanism.assumptions());
    assert_eq!(log.assumptions().len(), 2);
    let printed = format!("{mechanism:?}");
    assert!(printed.contains("\"word\"") && printed.contains("Gdp"), "{printed}");
}

/// Returns the hockey-stick divergence of a pair, by its definition.
fn hockey_stick(pair: &FinitePair, t: f64) -> f64 {
    pair.p().iter().zip(pair.q()).map(|(p, q)| (p - t.exp() * q).max(0.0)).sum()
}

/// Returns the tails of a pair's loss at `losses`, in both orders.
fn tabulated(p: &[f64], q: &[f64], losses: Vec<f64>) -> LossCcdf {
    let tails = |own: &[f64], other: &[f64]| -> Vec<f64> {
        let above = |loss: f64| {
            own.iter().zip(other).filter(move |(own, other)| (*own / *other).ln() > loss).map(|(own, _)| own)
        };
        losses.iter().map(|&loss| above(loss).sum::<f64>().min(1.0)).collect()
    };
    let (above, reversed) = (tails(p, q), tails(q, p));
    LossCcdf::new(losses, above, reversed).unwrap()
}

fn law() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(prop_oneof![4 => 0.0f64..1.0, 1 => Just(0.0)], 6).prop_map(|weights| {
        let sum: f64 = weights.iter().sum::<f64>() + 1e-3;
        let mut law: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
        law.push(1e-3 / sum);
        law
    })
}

proptest! {
    /// The pair from a table of any two laws' losses has a divergence of at least theirs at every `t`, in both orders, and is a
    /// pair of laws.
    #[test]
    fn tables_dominate(p in law(), q in law(), mut steps in proptest::collection::vec(0.01f64..0.8, 0..12), t in 0.0f64..6.0) {
        steps.insert(0, 0.0);
        let losses: Vec<f64> = steps.iter().scan(0.0, |sum, step| { *sum += step; Some(*sum) }).collect();
        let pair = tabulated(&p, &q, losses).dominating_pair();
        let (true_pair, reversed) = (FinitePair::unchecked(p.clone(), q.clone()), FinitePair::unchecked(q, p));
        let swapped = FinitePair::unchecked(pair.q().to_vec(), pair.p().to_vec());
        prop_assert!(hockey_stick(&pair, t) >= hockey_stick(&true_pair, t) - 1e-15);
        prop_assert!(hockey_stick(&swapped, t) >= hockey_stick(&reversed, t) - 1e-15);
        prop_assert!(FinitePair::new(pair.p().to_vec(), pair.q().to_vec()).is_ok());
    }

    /// Any table of numbers in range, consistent or not, gives a pair with its own tails or worse.
    #[test]
    fn inconsistent_tables_are_still_pairs(
        above in proptest::collection::vec(0.0f64..=1.0, 5), reversed in proptest::collection::vec(0.0f64..=1.0, 5),
        t in 0.0f64..3.0,
    ) {
        let losses = vec![0.0, 0.1, 0.5, 1.0, 2.0];
        let table = LossCcdf::new(losses.clone(), above.clone(), reversed.clone()).unwrap();
        let pair = table.dominating_pair();
        prop_assert!(FinitePair::new(pair.p().to_vec(), pair.q().to_vec()).is_ok());
        // integral of e^(t - s) P(L > s) over s > t, with the table's tail between two of its losses the upper one.
        let swapped = FinitePair::unchecked(pair.q().to_vec(), pair.p().to_vec());
        for (pair, tails) in [(&pair, falling(above)), (&swapped, falling(reversed))] {
            let mut divergence = tails[4];
            for (i, &loss) in losses.iter().enumerate().skip(1) {
                divergence += (tails[i - 1] - tails[i]) * (1.0 - (t - loss).exp()).max(0.0);
            }
            prop_assert!(hockey_stick(pair, t) >= divergence - 1e-15);
        }
    }
}

/// The Laplace loss is one-sided: tails of the two orders agree, and with a table whose step divides epsilon the largest loss is
/// exact. Composed 30 times, the table costs at most 30 steps.
#[test]
fn a_table_of_laplace_composes_within_its_steps() {
    let (x, step) = (0.5, 0.0025);
    // P(L > t) = 1 - e^((t - x)/2)/2 for -x <= t < x.
    let tail = |t: f64| if t < x { 1.0 - 0.5 * ((t - x) / 2.0).exp() } else { 0.0 };
    let claim: Claim = LossCcdf::tabulate(step, x, tail, tail).unwrap().into();
    let exact = DpEvent::Laplace { scale: 1.0, sensitivity: x };
    for count in [1, 30] {
        let exact = DpEvent::SelfComposed { event: Box::new(exact.clone()), count };
        for delta_ in [1e-3, 1e-6, 1e-9] {
            let exact = bound::epsilon(&exact, delta(delta_)).unwrap().value;
            let tabulated = bound::epsilon(&self_composed(&claim, count), delta(delta_)).unwrap().value;
            let slack = step * count as f64;
            assert!(
                tabulated >= exact * (1.0 - 1e-9) && tabulated <= exact + slack,
                "{count} {delta_}: {tabulated} {exact}"
            );
        }
    }
}

/// Renyi points of a Gaussian are interpolated as in the accountant, and never below the true value.
#[test]
fn points_of_a_gaussian_are_never_below_it() {
    let curve = RdpCurve::new(vec![1.5, 3.0, 10.0, 50.0], vec![0.75, 1.5, 5.0, 25.0]).unwrap();
    for i in 0..=980 {
        let order = 1.0 + f64::from(i) * 0.05;
        let bound = curve.at(order).unwrap();
        assert!(bound >= 0.5 * order * (1.0 - 1e-12) || order == 1.0, "{order}: {bound}");
    }
    assert_eq!(curve.at(50.1).unwrap(), f64::INFINITY);
    let claimed = bound::epsilon(&Claim::Rdp(curve).event().unwrap(), delta(1e-5)).unwrap().value;
    let exact = bound::epsilon(&Claim::Gdp(1.0).event().unwrap(), delta(1e-5)).unwrap().value;
    assert!(claimed >= exact, "{claimed} {exact}");
}

/// Ten Gaussians by a table of 3000 losses cost at most ten steps of the table more than by their parameter.
#[test]
fn tables_of_thousands_are_composed() {
    let standard = Normal::standard();
    let mu = 0.3;
    let tail = |t: f64| standard.sf(t / mu - mu / 2.0);
    let claim: Claim = LossCcdf::tabulate(1e-3, 3.0, tail, tail).unwrap().into();
    let composed = self_composed(&claim, 10);
    let exact = bound::epsilon(&self_composed(&Claim::Gdp(mu), 10), delta(1e-5)).unwrap().value;
    let found = bound::epsilon(&composed, delta(1e-5)).unwrap().value;
    assert!(found >= exact && found < exact + 10.0 * 1e-3, "{found} {exact}");
}
