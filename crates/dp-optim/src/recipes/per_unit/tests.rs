use dp_accountant::certificate::{Assumption, Derivation as _};
use dp_accountant::guarantee::Unit;
use dp_accountant::{Delta, ReplaceOne, ZeroOut};
use dp_losses::LossKind;

use super::*;
use crate::derivation::DerivesModel as _;
use crate::recipes::recipe::Nesting;
use crate::recipes::{AtBaseRate, BoltOn, DpSgd, ObjPert, OneVsAll, Share, budget};

fn bolt_on() -> AnyRecipe {
    BoltOn::strongly_convex(LossKind::Logistic, 0.01).into()
}

/// Gaussian noise for K rows is that of one record of K times the sensitivity, Laplace noise that of K times the epsilon.
#[test]
fn one_release_costs_what_its_sensitivity_says() {
    for rows in [1, 2, 5, 64] {
        for delta in [0.0, 1e-6] {
            let recipe = PerUnit::new(bolt_on(), rows, "person");
            let plan = recipe.plan::<ReplaceOne>(1000 * rows, 5, budget(1.0, delta)).unwrap();
            assert!(plan.reached().epsilon <= 1.0 && plan.reached().epsilon > 0.9995, "{rows} rows, delta {delta}");
            assert_eq!(plan.derivation().units(), 1000);
            let DpEvent::Group { size, event } = plan.event() else { panic!("{:?}", plan.event()) };
            assert_eq!(size, rows);
            let more_sensitive = match *event {
                DpEvent::Gaussian { std_dev, sensitivity } => {
                    DpEvent::Gaussian { std_dev, sensitivity: sensitivity * rows as f64 }
                }
                DpEvent::LaplaceBall { scale, sensitivity, dim } => {
                    DpEvent::LaplaceBall { scale, sensitivity: sensitivity * rows as f64, dim }
                }
                other => panic!("{other:?}"),
            };
            let cost = bound::epsilon(&more_sensitive, Delta::new(delta).unwrap()).unwrap().value;
            assert!((cost / plan.reached().epsilon - 1.0).abs() < 1e-9);
        }
    }
}

/// The most that group privacy can lose against a Gaussian release with the same noise for one record.
#[test]
fn noise_in_the_objective_costs_little_more() {
    for rows in [2, 5] {
        let recipe = PerUnit::new(ObjPert::new(LossKind::Logistic), rows, "person");
        let plan = recipe.plan::<ZeroOut>(20_000, 20, budget(1.0, 1e-6)).unwrap();
        let ideal = PerUnit::budget_of_a_record(budget(1.0, 1e-6), rows).unwrap().epsilon.get();
        let ratio = plan.record_epsilon() / ideal;
        assert!(ratio > 0.95 && ratio < 1.05, "{rows} rows: {ratio}");
    }
}

#[test]
fn more_rows_need_more_noise_and_one_none() {
    let recipes: [AnyRecipe; 3] =
        [bolt_on(), ObjPert::new(LossKind::Logistic).into(), DpSgd::new(LossKind::Logistic).into()];
    for recipe in recipes {
        let alone = recipe.plan_copies::<ZeroOut>(6000, 5, budget(1.0, 1e-6), 1).unwrap().reached().epsilon;
        let mut last = f64::INFINITY;
        for rows in [1, 2, 3, 6] {
            let plan =
                PerUnit::new(recipe.clone(), rows, "person").plan::<ZeroOut>(6000, 5, budget(1.0, 1e-6)).unwrap();
            let epsilon = plan.record_epsilon();
            assert!(epsilon < last, "{rows} rows of {recipe:?}: {epsilon}, {last}");
            assert!(rows > 1 || epsilon >= 0.999 * alone);
            assert!(plan.reached().epsilon <= 1.0);
            last = epsilon;
        }
    }
}

#[test]
fn the_derivation_says_what_is_protected() {
    let plan = PerUnit::new(bolt_on(), 5, "person").plan::<ZeroOut>(5000, 5, budget(1.0, 0.0)).unwrap();
    let derivation = plan.derivation();
    assert_eq!(derivation.unit(), Unit::Column("person".to_owned()));
    assert_eq!(derivation.event().unwrap(), plan.event());
    let assumptions = derivation.assumptions();
    assert!(assumptions.contains(&Assumption::BoundedRows { column: "person".to_owned(), most: 5 }));
    assert!(assumptions.contains(&Assumption::PublicN) && !assumptions.contains(&Assumption::OneRowPerUnit));
    // A statement about fewer rows, or about units that the records do not divide into, is another event or none.
    let fewer = PerUnitDerivation { rows: 4, ..derivation.clone() };
    assert_ne!(fewer.event().unwrap(), plan.event());
    for rows in [0, 3, 7, MOST_ROWS + 1] {
        let odd = PerUnitDerivation { rows, ..derivation.clone() };
        assert!(odd.event().is_err() && odd.release_lattice().is_err());
        assert!(PerUnit::new(bolt_on(), rows, "person").plan::<ZeroOut>(5000, 5, budget(1.0, 0.0)).is_err());
    }
}

#[test]
fn it_contains_any_recipe_and_is_contained_in_none() {
    let whole = budget(1.0, 1e-6);
    let at_base_rate: AnyRecipe = AtBaseRate::new(bolt_on()).into();
    let plan = PerUnit::new(at_base_rate, 2, "person").plan::<ZeroOut>(2000, 5, whole).unwrap();
    assert!(plan.derivation().model_terms().has_threshold);
    let classes: AnyRecipe = OneVsAll { recipe: Box::new(bolt_on()), classes: 3, share: Share::Composed }.into();
    assert!(PerUnit::new(classes, 2, "person").plan::<ZeroOut>(2000, 5, whole).is_ok());
    let twice: AnyRecipe = PerUnit::new(PerUnit::new(bolt_on(), 2, "a"), 2, "b").into();
    assert!(twice.plan_copies::<ZeroOut>(2000, 5, whole, 1).is_err());
    let of_unit: AnyRecipe = PerUnit::new(bolt_on(), 2, "person").into();
    assert!(AtBaseRate::new(of_unit.clone()).plan::<ZeroOut>(2000, 5, whole).is_err());
    let plan = of_unit.plan_copies::<ZeroOut>(2000, 5, whole, 1).unwrap();
    assert_eq!(plan.derivation().nesting(), Nesting::Unit);
    let classes = OneVsAll { recipe: Box::new(of_unit), classes: 3, share: Share::Composed };
    assert!(classes.plan::<ZeroOut>(2000, 5, whole).is_err());
}
