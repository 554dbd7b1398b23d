use super::*;
use crate::event::DpEvent;
use crate::params::{Delta, RdpOrder};
use crate::rdp::RdpCurve;

#[test]
fn the_grid_is_increasing_and_finds_its_places() {
    let mut before = 0.0;
    for place in 0..400 {
        let order = Grid::order(place);
        assert!(order > before, "{place}: {order}");
        assert!(Grid::place(order).abs_diff(place) <= 1, "{place}: {order}");
        before = order;
    }
    assert_eq!((Grid::order(0), Grid::order(48), Grid::order(49), Grid::order(79)), (1.0, 1.5, 2.0, 32.0));
}

#[test]
fn chords_bound_the_curve_and_are_exact_on_the_grid() {
    let curve = |order: f64| super::super::laplace::rdp(order, 0.9);
    let grid = Grid::default();
    for i in 0..4000 {
        let order = 1.0 + (0.006 * f64::from(i) - 10.0).exp();
        let (got, exact) = (grid.read(order, curve), curve(order));
        if order < 9e6 {
            assert!(got >= exact * (1.0 - 1e-13), "{order}: {got} {exact}");
            assert!(got <= exact * 1.2, "{order}: {got} {exact}");
        }
    }
    for order in [1.0, 1.5, 2.0, 7.0, 32.0] {
        assert_eq!(grid.read(order, curve), curve(order));
    }
    assert_eq!(grid.read(1e9, curve), f64::INFINITY);
}

#[test]
fn each_order_of_the_grid_is_evaluated_once() {
    let evaluations = core::cell::Cell::new(0);
    let grid = Grid::default();
    for round in 0..3 {
        for i in 0..1000 {
            grid.read(2.0 + f64::from(i + round), |order| {
                evaluations.set(evaluations.get() + 1);
                order
            });
        }
    }
    assert!(evaluations.get() < 160, "{evaluations:?}");
}

/// The work of nested combinations adds up and does not multiply; otherwise this would not end.
#[test]
fn deep_and_wide_trees_are_answered() {
    let laplace = |scale: f64| DpEvent::Laplace { scale, sensitivity: 1.0 };
    let build = |wrap: &dyn Fn(DpEvent) -> DpEvent| {
        (0..40).fold(laplace(2.0), |event, i| {
            wrap(DpEvent::Composed { events: vec![event, laplace(3.0 + f64::from(i)), DpEvent::Gdp { mu: 0.1 }] })
        })
    };
    let poisson = build(&|event| DpEvent::PoissonSampled { sampling_rate: 0.5, event: Box::new(event) });
    let fixed = build(&|event| DpEvent::SampledWithoutReplacement { sampling_rate: 0.5, event: Box::new(event) });
    let groups = build(&|event| DpEvent::Group { size: 2, event: Box::new(DpEvent::Parallel { events: vec![event] }) });
    let delta = Delta::new(1e-6).unwrap();
    for event in [poisson, fixed, groups] {
        let epsilon = RdpCurve::new(&event).unwrap().epsilon(delta);
        assert!(epsilon > 0.0, "{epsilon}");
    }
}

#[test]
fn nested_sampling_costs_little_more_than_the_product_of_the_rates() {
    let inner = DpEvent::Composed {
        events: vec![
            DpEvent::Laplace { scale: 2.0, sensitivity: 1.0 },
            DpEvent::Gaussian { std_dev: 3.0, sensitivity: 1.0 },
        ],
    };
    let poisson = |rate, event| DpEvent::PoissonSampled { sampling_rate: rate, event: Box::new(event) };
    let at = |event: &DpEvent, order| RdpCurve::new(event).unwrap().at(RdpOrder::new(order).unwrap());
    // A separate part between the two keeps them from merging.
    let apart = |event| DpEvent::Composed { events: vec![event, DpEvent::PureDp { epsilon: 1e-9 }] };
    for order in [2.0, 8.0, 31.0] {
        let (nested, once) =
            (at(&poisson(0.2, apart(poisson(0.5, inner.clone()))), order), at(&poisson(0.1, inner.clone()), order));
        assert!(nested >= once * (1.0 - 1e-9) && nested <= once * 1.1, "{order}: {nested} {once}");
    }
}
