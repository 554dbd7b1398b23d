//! Filters against the worst adversary with a small menu of releases, found by enumeration: every adaptive choice of the next
//! release, and every stopping rule.

use super::*;
use crate::adjacency::{AddRemoveOne, ReplaceOne};
use crate::params::{Delta, Epsilon, RdpOrder, Rho};
use crate::rdp::{RdpCurve, conversion};

/// A release with two outcomes: its event, and the probabilities of the first outcome under both laws.
#[derive(Clone)]
struct Coin {
    event: DpEvent,
    p: f64,
    q: f64,
}

impl Coin {
    fn randomized_response(epsilon: f64) -> Self {
        let p = epsilon.exp() / (1.0 + epsilon.exp());
        Self { event: DpEvent::PureDp { epsilon }, p, q: 1.0 - p }
    }

    /// Returns the release of whether a Gaussian lies above a threshold.
    fn gaussian(mu: f64, threshold: f64) -> Self {
        let event = DpEvent::Gaussian { std_dev: 1.0, sensitivity: mu };
        let above = crate::normal::upper_tail;
        Self { event, p: above(threshold - mu), q: above(threshold) }
    }

    /// Probability under P and privacy loss of each outcome.
    fn outcomes(&self) -> [(f64, f64); 2] {
        [(self.p, (self.p / self.q).ln()), (1.0 - self.p, ((1.0 - self.p) / (1.0 - self.q)).ln())]
    }
}

/// Returns the adversary's gain if it stops.
fn hockey_stick(epsilon: f64, loss: f64) -> f64 {
    (-(epsilon - loss).exp_m1()).max(0.0)
}

/// Returns the largest delta at the filter's epsilon of any adversary with this menu and at most `rounds` releases.
fn worst<A: Adjacency, F: Filter<A> + Clone>(filter: &F, menu: &[Coin], loss: f64, rounds: u32) -> f64 {
    let mut best = hockey_stick(filter.guarantee().epsilon().get(), loss);
    if rounds == 0 {
        return best;
    }
    for coin in menu {
        let mut after = filter.clone();
        if after.spend(&coin.event, 1).is_ok() {
            let value = coin.outcomes().iter().map(|(p, l)| p * worst(&after, menu, loss + l, rounds - 1)).sum();
            best = best.max(value);
        }
    }
    best
}

/// Returns delta at `epsilon` of randomised responses with fixed parameters, by enumeration.
fn fixed_delta(epsilons: &[f64], epsilon: f64, loss: f64) -> f64 {
    match epsilons.split_first() {
        None => hockey_stick(epsilon, loss),
        Some((first, rest)) => Coin::randomized_response(*first)
            .outcomes()
            .iter()
            .map(|(p, l)| p * fixed_delta(rest, epsilon, loss + l))
            .sum(),
    }
}

/// Admits releases while their composition as if fixed in advance stays within `(epsilon, delta)`: not a filter.
fn worst_against_plain_composition(epsilon: f64, delta: f64, menu: &[f64], spent: &mut Vec<f64>, loss: f64) -> f64 {
    let mut best = hockey_stick(epsilon, loss);
    if spent.len() == 3 {
        return best;
    }
    for &next in menu {
        spent.push(next);
        if fixed_delta(spent, epsilon, 0.0) <= delta {
            let value = Coin::randomized_response(next)
                .outcomes()
                .iter()
                .map(|(p, l)| p * worst_against_plain_composition(epsilon, delta, menu, spent, loss + l))
                .sum();
            best = best.max(value);
        }
        spent.pop();
    }
    best
}

const MENU: [f64; 4] = [0.1, 0.35, 0.6, 1.0];

fn coins() -> Vec<Coin> {
    MENU.map(Coin::randomized_response).to_vec()
}

fn target(epsilon: f64, delta: f64) -> (Epsilon, Delta) {
    (Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap())
}

fn order(order: f64) -> RdpOrder {
    RdpOrder::new(order).unwrap()
}

#[test]
fn no_adversary_beats_a_filter() {
    let menu = coins();
    for (epsilon, delta) in [(0.8, 0.05), (1.0, 0.01), (1.5, 1e-3)] {
        let (epsilon, delta) = target(epsilon, delta);
        let zcdp = ZcdpFilter::<ReplaceOne>::new(epsilon, delta).unwrap();
        let one = RdpFilter::<ReplaceOne>::new(epsilon, delta, order(6.0)).unwrap();
        let orders = [2.0, 3.0, 5.0, 9.0, 17.0].map(order);
        let several = RdpFilter::<ReplaceOne>::with_orders(epsilon, delta, &orders).unwrap();
        for value in [worst(&zcdp, &menu, 0.0, 4), worst(&one, &menu, 0.0, 4), worst(&several, &menu, 0.0, 4)] {
            assert!(value <= delta.get(), "{epsilon} {delta}: {value}");
        }
    }
}

#[test]
fn no_adversary_beats_the_gaussian_filter() {
    let menu: Vec<Coin> = [(0.2, 0.5), (0.2, -1.0), (0.4, 1.0), (0.7, 1.5), (0.7, 0.0)]
        .map(|(mu, threshold)| Coin::gaussian(mu, threshold))
        .to_vec();
    for (epsilon, delta) in [(0.5, 0.05), (0.8, 0.03)] {
        let (epsilon, delta) = target(epsilon, delta);
        let filter = GdpFilter::<AddRemoveOne>::new(epsilon, delta).unwrap();
        let value = worst(&filter, &menu, 0.0, 5);
        assert!(value <= delta.get() && value > 0.1 * delta.get(), "{epsilon} {delta}: {value}");
    }
}

/// The misuse that filters prevent: each path's releases, had they been fixed, cost at most (epsilon, delta); the procedure that
/// chooses between the paths costs more.
#[test]
fn plain_composition_of_adaptively_chosen_costs_is_beaten() {
    let (epsilon, delta, menu) = (0.3, 0.1135, [0.2, 0.35, 0.5]);
    let value = worst_against_plain_composition(epsilon, delta, &menu, &mut Vec::new(), 0.0);
    assert!(value > 1.2 * delta, "{value}");
    // The same adversary against filters with the same target.
    let menu = menu.map(Coin::randomized_response);
    let (epsilon, delta) = target(epsilon, delta);
    let zcdp = ZcdpFilter::<ReplaceOne>::new(epsilon, delta).unwrap();
    let orders = [2.0, 4.0, 8.0].map(order);
    let several = RdpFilter::<ReplaceOne>::with_orders(epsilon, delta, &orders).unwrap();
    assert!(worst(&zcdp, &menu, 0.0, 3) <= delta.get() && worst(&several, &menu, 0.0, 3) <= delta.get());
}

/// A fair public coin selects a Gaussian, which fits the budget of small orders, or randomised response, which fits that of large
/// ones. Continuing while some order fits admits both, and no order's budget holds for the whole.
#[test]
fn going_on_while_some_order_fits_is_unsound_as_a_renyi_statement() {
    let delta = Delta::new(1e-5).unwrap();
    let events = [DpEvent::Zcdp { rho: 0.020_811 }, DpEvent::PureDp { epsilon: 0.97 }];
    let curves = events.clone().map(|event| RdpCurve::new(&event).unwrap());
    // The budget that Mironov's conversion turns into (1, delta).
    let budget = |order: f64| 1.0 - 1e5f64.ln() / (order - 1.0);
    let at = |curve: &RdpCurve, a: f64| curve.at(order(a));
    assert!(at(&curves[0], 25.0) <= budget(25.0) && at(&curves[1], 400.0) <= budget(400.0), "each fits some order");
    let mut smallest_excess = f64::INFINITY;
    for i in 1..2000 {
        let a = 1.0 + (0.005 * f64::from(i)).exp();
        let moments = curves.each_ref().map(|curve| (a - 1.0) * at(curve, a) - core::f64::consts::LN_2);
        let moment = crate::logspace::log_add(moments[0], moments[1]);
        smallest_excess = smallest_excess.min(moment / (a - 1.0) - budget(a));
    }
    assert!(smallest_excess > 0.2, "{smallest_excess}");
    // A filter with a budget at each order admits neither.
    let orders = [25.0, 400.0].map(order);
    let divergences = orders.map(|order| budget(order.get()));
    let each = RdpFilter::<ReplaceOne>::within(&orders, &divergences, delta).unwrap();
    for event in &events {
        assert!(matches!(each.clone().spend(event, 1), Err(Refused::Exceeded { .. })));
    }
}

#[test]
fn a_refusal_leaves_no_trace_and_something_cheaper_may_still_fit() {
    let (epsilon, delta) = target(1.0, 1e-6);
    let mut filter = ZcdpFilter::<ReplaceOne>::new(epsilon, delta).unwrap();
    let budget = filter.rho();
    filter.spend(&DpEvent::Zcdp { rho: 0.75 * budget }, 1).unwrap();
    let before = filter.clone();
    let refused = filter.spend(&DpEvent::Zcdp { rho: 0.5 * budget }, 1).unwrap_err();
    assert_eq!(refused, Refused::Exceeded { needed: 0.5, left: 0.25 });
    assert_eq!(refused.to_string(), "the release needs 0.5 of the privacy budget, of which 0.25 is left");
    assert!(matches!(filter.spend(&DpEvent::Zcdp { rho: f64::NAN }, 1), Err(Refused::Invalid(_))));
    assert!(matches!(filter.spend(&DpEvent::NonPrivate, 1), Err(Refused::Exceeded { .. })));
    assert_eq!(filter, before);
    filter.spend(&DpEvent::Zcdp { rho: 0.125 * budget }, 2).unwrap();
    assert_eq!(filter.left(), 0.0);
    assert!(filter.spend(&DpEvent::Zcdp { rho: 1e-300 }, 1).is_err());
    filter.spend(&DpEvent::NoOp, 7).unwrap();
    assert_eq!(filter.guarantee().epsilon(), epsilon);
}

#[test]
fn a_filter_made_for_a_plan_takes_the_plan_release_by_release() {
    let delta = Delta::new(1e-6).unwrap();
    let step = DpEvent::Gaussian { std_dev: 7.3, sensitivity: 1.0 };
    let plan = DpEvent::SelfComposed { event: Box::new(step.clone()), count: 1000 };
    let mut filters: [Box<dyn Filter<ReplaceOne>>; 3] = [
        Box::new(RdpFilter::for_plan(&plan, delta).unwrap()),
        Box::new(ZcdpFilter::for_plan(&plan, delta).unwrap()),
        Box::new(GdpFilter::for_plan(&plan, delta).unwrap()),
    ];
    let renyi = RdpCurve::new(&plan).unwrap().epsilon(delta);
    let exact = crate::bound::epsilon(&plan, delta).unwrap().value;
    for (filter, expected) in filters.iter_mut().zip([renyi, renyi, exact]) {
        for i in 0..1000 {
            assert!(filter.spend(&step, 1).is_ok(), "step {i}");
        }
        assert!(filter.spend(&step, 1).is_err());
        let epsilon = filter.guarantee().epsilon().get();
        assert!(epsilon >= expected * (1.0 - 1e-13) && epsilon <= expected * (1.0 + 1e-9), "{epsilon} {expected}");
    }
}

/// Deviation from a plan of sampled steps: half-way the rate and the noise are doubled, as outcomes may suggest.
#[test]
fn a_sampled_plan_may_be_departed_from() {
    let delta = Delta::new(1e-6).unwrap();
    let step = |sampling_rate: f64, std_dev: f64| DpEvent::PoissonSampled {
        sampling_rate,
        event: Box::new(DpEvent::Gaussian { std_dev, sensitivity: 1.0 }),
    };
    let plan = DpEvent::SelfComposed { event: Box::new(step(0.01, 1.0)), count: 1000 };
    let mut filter = RdpFilter::<AddRemoveOne>::for_plan(&plan, delta).unwrap();
    let promised = filter.guarantee();
    let best = RdpCurve::new(&plan).unwrap().epsilon(delta);
    assert!((promised.epsilon().get() / best - 1.0).abs() < 1e-9);
    filter.spend(&step(0.01, 1.0), 500).unwrap();
    assert!((filter.left() - 0.5).abs() < 1e-9);
    let mut more = 0;
    while filter.spend(&step(0.02, 2.0), 1).is_ok() {
        more += 1;
    }
    assert!(more > 300 && more < 2000 && filter.left() < 0.01, "{more}");
    assert_eq!(filter.guarantee(), promised);
    let by_value = RdpFilter::<ReplaceOne>::for_plan(&plan, delta);
    assert!(matches!(by_value, Err(Error::NotUnderRelation { .. })), "{by_value:?}");
}

#[test]
fn budgets_are_the_largest_that_convert() {
    for (epsilon, delta) in [(0.01, 1e-6), (1.0, 1e-10), (20.0, 1e-3), (3.0, 0.999)] {
        let (epsilon, delta) = target(epsilon, delta);
        let zcdp = ZcdpFilter::<ReplaceOne>::new(epsilon, delta).unwrap().rho();
        assert!(crate::zcdp::epsilon(zcdp, delta).unwrap() <= epsilon.get());
        assert!(crate::zcdp::epsilon(zcdp * (1.0 + 1e-7), delta).unwrap() > epsilon.get());
        let mu = GdpFilter::<ReplaceOne>::new(epsilon, delta).unwrap().mu();
        assert!(crate::gaussian::delta(mu, epsilon.get()).unwrap() <= delta.get());
        assert!(crate::gaussian::delta(mu * (1.0 + 1e-9), epsilon.get()).unwrap() > delta.get());
        let filter = RdpFilter::<ReplaceOne>::new(epsilon, delta, order(3000.0)).unwrap();
        let DpEvent::RenyiDp { divergences, .. } = filter.to_event() else { panic!("{filter:?}") };
        let back = |rdp: f64| {
            let improved = conversion::epsilon_improved(order(3000.0), rdp, delta).unwrap();
            improved.min(conversion::epsilon_centred(order(3000.0), rdp, delta).unwrap())
        };
        assert!(back(divergences[0]) <= epsilon.get() && back(divergences[0] * (1.0 + 1e-9)) > epsilon.get());
    }
    let tiny = Epsilon::new(1e-6).unwrap();
    let unreachable = RdpFilter::<ReplaceOne>::new(tiny, Delta::ZERO, order(2.0));
    assert!(matches!(unreachable, Err(Error::Unreachable { .. })), "{unreachable:?}");
    assert!(RdpFilter::<ReplaceOne>::new(tiny, Delta::new(1e-6).unwrap(), order(1.0)).is_err());
    assert!(ZcdpFilter::<ReplaceOne>::new(tiny, Delta::ZERO).is_err());
    assert!(GdpFilter::<ReplaceOne>::new(tiny, Delta::ZERO).is_err());
}

#[test]
fn relations_and_theorems_are_checked() {
    let delta = Delta::new(1e-6).unwrap();
    let sampled = DpEvent::PoissonSampled {
        sampling_rate: 0.1,
        event: Box::new(DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 }),
    };
    let mut zcdp = ZcdpFilter::<ReplaceOne>::with_budget(Rho::new(1.0).unwrap(), delta).unwrap();
    assert!(matches!(zcdp.spend(&sampled, 1), Err(Refused::Invalid(Error::NotUnderRelation { .. }))));
    let mut gdp = GdpFilter::<AddRemoveOne>::new(Epsilon::new(1.0).unwrap(), delta).unwrap();
    assert!(matches!(gdp.spend(&sampled, 1), Err(Refused::Invalid(Error::Unsupported { .. }))));
    assert!(matches!(gdp.spend(&DpEvent::PureDp { epsilon: 0.1 }, 1), Err(Refused::Invalid(_))));
}

#[test]
fn a_filtered_run_composes_further() {
    let delta = Delta::new(1e-6).unwrap();
    let orders = [8.0, 4.0].map(order);
    let filter = RdpFilter::<ReplaceOne>::within(&orders, &[0.4, 0.1], delta).unwrap();
    let event = filter.to_event();
    assert_eq!(event, DpEvent::RenyiDp { orders: vec![4.0, 8.0], divergences: vec![0.1, 0.4] });
    let epsilon = RdpCurve::new(&event).unwrap().epsilon(delta);
    assert!((epsilon / filter.guarantee().epsilon().get() - 1.0).abs() < 1e-6, "{epsilon} {filter:?}");
    assert!(RdpFilter::<ReplaceOne>::within(&orders, &[0.4], delta).is_err());
    assert!(RdpFilter::<ReplaceOne>::within(&orders, &[0.4, -1.0], delta).is_err());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    /// The admitted releases cost no more than the guarantee, if taken as fixed in advance; refused ones are not spent; and the
    /// remaining budget never grows.
    #[test]
    fn admitted_releases_stay_within_the_promise(
        log_epsilon in -3.0f64..3.0,
        log_delta in -40.0f64..-2.0,
        log_stds in proptest::collection::vec(-1.0f64..5.0, 1..30),
    ) {
        let (epsilon, delta) = target(log_epsilon.exp(), log_delta.exp());
        let orders = [1.5, 3.0, 9.0, 33.0, 129.0].map(order);
        let mut filters: [Box<dyn Filter<ReplaceOne>>; 4] = [
            Box::new(ZcdpFilter::new(epsilon, delta).unwrap()),
            Box::new(GdpFilter::new(epsilon, delta).unwrap()),
            Box::new(RdpFilter::new(epsilon, delta, order(9.0)).unwrap()),
            Box::new(RdpFilter::with_orders(epsilon, delta, &orders).unwrap()),
        ];
        for filter in &mut filters {
            let mut log = crate::EventLog::<ReplaceOne>::new();
            let mut left = filter.left();
            for log_std in &log_stds {
                let event = DpEvent::Gaussian { std_dev: log_std.exp() / epsilon.get(), sensitivity: 1.0 };
                if filter.spend(&event, 1).is_ok() {
                    log.record(event, 1);
                    proptest::prop_assert!(filter.left() <= left && filter.left() >= 0.0);
                } else {
                    proptest::prop_assert_eq!(filter.left(), left);
                }
                left = filter.left();
            }
            let spent = crate::bound::epsilon(&log.to_event(), delta).unwrap().value;
            proptest::prop_assert!(spent <= epsilon.get() * (1.0 + 1e-12), "{} of {}", spent, epsilon);
            proptest::prop_assert_eq!(filter.guarantee().epsilon(), epsilon);
        }
    }
}
