use dp_accountant::{Delta, DpEvent, Epsilon, ReplaceOne};
use proptest::prelude::*;

use super::*;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::Budget;
use dp_accountant::certificate::NoiseMode;

#[test]
fn sizes_are_floors_and_leave_no_phase_empty() {
    assert!(localising(0, 1.0).is_empty() && localising(1, 1.0).is_empty());
    for n in 2..2000u64 {
        let phases = localising(n, 1.0);
        assert_eq!(phases.len() as u32, n.ilog2(), "{n}");
        for (i, phase) in (1..).zip(&phases) {
            assert_eq!((phase.records, phase.step), (n >> i, 0.25f64.powi(i)), "{n}");
        }
        assert!(phases.iter().map(|phase| phase.records).sum::<u64>() < n);
    }
}

/// `⌈log₂ log₂ n⌉` at powers of two, where a logarithm in floating point may round either way.
#[test]
fn the_number_of_stages_is_exact() {
    let problem = Problem { lipschitz: 1.0, gradient_difference: 2.0, distance: 1.0, dim: 3, rho: 1.0 };
    let stages = |n| problem.reduction(n, 1.0, 1.0).unwrap().stages;
    for (n, expected) in [
        (2, 1),
        (4, 1),
        (5, 2),
        (16, 2),
        (17, 3),
        (256, 3),
        (257, 4),
        (65536, 4),
        (65537, 5),
        (1 << 32, 5),
        ((1 << 32) + 1, 6),
    ] {
        assert_eq!(stages(n), expected, "{n}");
    }
    assert!(problem.reduction(100, 0.0, 1.0).is_err() && problem.reduction(100, f64::NAN, 1.0).is_err());
    assert!(problem.reduction(0, 1.0, 1.0).is_err());
}

proptest! {
    /// All phases have the ratio that one Gaussian release needs: the whole costs what one costs, whatever the
    /// sensitivities, and is exactly within the budget.
    #[test]
    fn phases_cost_what_one_costs(
        sensitivities in prop::collection::vec(1e-12..10.0_f64, 1..12), epsilon in 0.1..5.0_f64, copies in 1..4_u64,
    ) {
        let budget = Budget { epsilon: Epsilon::new(epsilon).unwrap(), delta: Delta::new(1e-6).unwrap() };
        let multiplier = noise_multiplier("phases", budget, copies).unwrap();
        let noise = PhaseNoise::<ReplaceOne>::new(&sensitivities, multiplier, NoiseMode::Exact).unwrap();
        let promise = Promise::new(noise.event(), budget, copies).unwrap();
        let (requested, reached) = (promise.requested().epsilon, promise.reached().epsilon);
        prop_assert!(reached <= requested && reached > (1.0 - 1e-6) * requested);
        let is_gaussian = |event: &DpEvent| matches!(event, DpEvent::Gaussian { .. });
        let DpEvent::Parallel { events } = noise.event() else { panic!("not disjoint parts") };
        prop_assert!(events.len() == sensitivities.len() && events.iter().all(is_gaussian));
    }
}

#[test]
fn without_delta_there_is_no_gaussian_noise() {
    let budget = Budget { epsilon: Epsilon::new(1.0).unwrap(), delta: Delta::ZERO };
    assert!(matches!(noise_multiplier("phases", budget, 1), Err(Error::NotProved { .. })));
}
