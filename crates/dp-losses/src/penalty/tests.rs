use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::golden;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// Returns the cases of a family of `optim-rdp.json`: at least one in the tree's copy.
fn cases(family: &str) -> Vec<Value> {
    let cases = golden::file("optim-rdp.json")["families"][family].as_array().cloned().unwrap_or_default();
    assert!(!cases.is_empty() || std::env::var_os("DP_GOLDEN_DIR").is_some(), "no case of {family}");
    cases
}

fn plain(features: usize) -> Layout {
    Layout { features, outputs: 1, intercept: false }
}

#[test]
fn golden_values_of_one_weight() {
    for case in cases("prox") {
        let of = |name: &str| case[name].as_f64().unwrap();
        let lambda = of("lam");
        let penalty = match case["penalty"].as_str().unwrap() {
            "l1" => Penalty::L1 { lambda },
            "elastic_net" => Penalty::ElasticNet { lambda, ridge: of("l2") },
            "scad" => Penalty::Scad { lambda, a: of("a") },
            "mcp" => Penalty::Mcp { lambda, gamma: of("gamma") },
            other => panic!("{other}"),
        };
        let (mut x, out) = (numbers(&case["x"]), numbers(&case["out"]));
        penalty.prox(plain(x.len()), of("step"), &mut x).unwrap();
        for (found, expected) in x.iter().zip(&out) {
            assert!((found - expected).abs() <= 1e-12 + 1e-9 * expected.abs(), "{case}: {found}");
        }
    }
}

#[test]
fn golden_values_of_matrices() {
    for case in cases("prox_nuclear") {
        let rows = |name: &str| -> Vec<Vec<f64>> { case[name].as_array().unwrap().iter().map(numbers).collect() };
        let (matrix, out) = (rows("matrix"), rows("out"));
        let (features, outputs) = (matrix.len(), matrix[0].len());
        let flat =
            |rows: &[Vec<f64>]| -> Vec<f64> { (0..outputs).flat_map(|k| rows.iter().map(move |row| row[k])).collect() };
        let (mut x, expected) = (flat(&matrix), flat(&out));
        let layout = Layout { features, outputs, intercept: false };
        let values = numbers(&case["singular_values"]);
        let norm = Penalty::Nuclear { lambda: 1.0 }.value(layout, &x).unwrap();
        assert!((norm - values.iter().sum::<f64>()).abs() < 1e-10);
        Penalty::Nuclear { lambda: 0.5 }.prox(layout, 2.0 * case["t"].as_f64().unwrap(), &mut x).unwrap();
        for (found, expected) in x.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-10, "{case}: {x:?}");
        }
    }
}

/// Any penalty on `features` features, including an intercept, with a step for which its map is single-valued.
fn any_penalty() -> impl Strategy<Value = (Penalty, f64)> {
    penalty_among(6)
}

/// One of the first `kinds` kinds, of which four are convex.
fn penalty_among(kinds: u8) -> impl Strategy<Value = (Penalty, f64)> {
    let lambda = prop_oneof![Just(0.0), 0.0..2.0f64];
    (0..kinds, lambda, 0.0..2.0f64, 0.0..1.0f64).prop_map(|(kind, lambda, other, step)| {
        let penalty = match kind {
            0 => Penalty::L1 { lambda },
            1 => Penalty::ElasticNet { lambda, ridge: other },
            2 => Penalty::Group { lambda, sizes: if other < 1.0 { vec![2, 1] } else { Vec::new() } },
            3 => Penalty::Nuclear { lambda },
            4 => Penalty::Scad { lambda, a: 2.05 + other },
            _ => Penalty::Mcp { lambda, gamma: 1.05 + other },
        };
        (penalty, step)
    })
}

/// Returns the objective that the map minimises.
fn objective(penalty: &Penalty, layout: Layout, step: f64, x: &[f64], w: &[f64]) -> f64 {
    let squared: f64 = x.iter().zip(w).map(|(x, w)| (x - w) * (x - w)).sum();
    step * penalty.value(layout, w).unwrap() + 0.5 * squared
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// No point near or far is better than the map's; an excess over the minimum of a strictly convex function would show in some
    /// direction at some distance.
    #[test]
    fn the_map_minimises_its_objective(
        (penalty, step) in any_penalty(), outputs in 1usize..4, intercept: bool,
        x in prop::collection::vec(-5.0..5.0f64, 15), directions in prop::collection::vec(-1.0..1.0f64, 12 * 15),
    ) {
        let layout = Layout { features: 5, outputs, intercept };
        let x = &x[..5 * outputs];
        let mut w = x.to_vec();
        penalty.prox(layout, step, &mut w).unwrap();
        let least = objective(&penalty, layout, step, x, &w);
        prop_assert!(least <= objective(&penalty, layout, step, x, x) + 1e-12);
        for (i, direction) in directions.chunks(15).enumerate() {
            for length in [1e-3, 0.1, 1.0, 5.0] {
                // Along one axis, or in any direction; the intercept moves too.
                let there: Vec<f64> = (0..w.len())
                    .map(|j| w[j] + if i < w.len().min(6) && j != i { 0.0 } else { length * direction[j] })
                    .collect();
                prop_assert!(least <= objective(&penalty, layout, step, x, &there) + 1e-11, "{:?} {}", penalty, step);
            }
        }
        if intercept {
            for k in 0..outputs {
                prop_assert_eq!(w[5 * k + 4], x[5 * k + 4]);
            }
        }
        prop_assert!(DVector::from(w.clone()).norm() <= DVector::from_column_slice(x).norm() * (1.0 + 1e-12));
    }

    /// A bound on the distance moved by a map, on which the range of a run's iterates rests.
    #[test]
    fn a_map_pulls_no_harder_than_is_said(
        (penalty, step) in any_penalty(), x in prop::collection::vec(-9.0..9.0f64, 10),
    ) {
        let layout = Layout { features: 5, outputs: 2, intercept: false };
        let mut w = x.clone();
        penalty.prox(layout, step, &mut w).unwrap();
        // The distance moved, without the effect of the ridge.
        let moved: f64 = x.iter().zip(&w).map(|(x, w)| (x - (1.0 + step * penalty.ridge()) * w).powi(2)).sum();
        prop_assert!(moved.sqrt() <= step * penalty.pull(10) * (1.0 + 1e-12) + 1e-12);
    }

    #[test]
    fn convex_maps_bring_no_two_points_apart(
        (penalty, step) in penalty_among(4), x in prop::collection::vec(-5.0..5.0f64, 10),
        y in prop::collection::vec(-5.0..5.0f64, 10),
    ) {
        prop_assert!(penalty.is_convex());
        let layout = Layout { features: 5, outputs: 2, intercept: true };
        let mapped = |v: &[f64]| {
            let mut v = v.to_vec();
            penalty.prox(layout, step, &mut v).unwrap();
            DVector::from(v)
        };
        let apart = (DVector::from_column_slice(&x) - DVector::from_column_slice(&y)).norm();
        prop_assert!((mapped(&x) - mapped(&y)).norm() <= apart * (1.0 + 1e-9) + 1e-12);
    }

    #[test]
    fn singular_values_are_those_of_another_method(
        entries in prop::collection::vec(-3.0..3.0f64, 24), outputs in 1usize..7, t in 0.0..2.0f64,
    ) {
        let rows = 24 / outputs;
        let entries = &entries[..rows * outputs];
        let layout = Layout { features: rows, outputs, intercept: false };
        let matrix = DMatrix::from_column_slice(rows, outputs, entries);
        let svd = matrix.svd(true, true);
        let nuclear = Penalty::Nuclear { lambda: 1.0 };
        prop_assert!((nuclear.value(layout, entries).unwrap() - svd.singular_values.sum()).abs() < 1e-9);
        let shrunk = svd.singular_values.map(|value| (value - t).max(0.0));
        let (u, v_t) = (svd.u.unwrap(), svd.v_t.unwrap());
        // The other method is sometimes less exact than ours, so it is judged by its reconstruction of the matrix itself.
        let whole = &u * DMatrix::from_diagonal(&svd.singular_values) * &v_t;
        let defect = (whole - DMatrix::from_column_slice(rows, outputs, entries)).norm();
        prop_assert!(defect < 1e-6);
        let expected = u * DMatrix::from_diagonal(&shrunk) * v_t;
        let mut w = entries.to_vec();
        nuclear.prox(layout, t, &mut w).unwrap();
        prop_assert!((DMatrix::from_column_slice(rows, outputs, &w) - expected).norm() < 1e-9 + 4.0 * defect);
    }

    #[test]
    fn single_precision_agrees((penalty, step) in any_penalty(), x in prop::collection::vec(-5.0..5.0f32, 10)) {
        let layout = Layout { features: 5, outputs: 2, intercept: true };
        let (mut single, mut double) = (x.clone(), x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        penalty.prox(layout, step, &mut single).unwrap();
        penalty.prox(layout, step, &mut double).unwrap();
        for (single, double) in single.iter().zip(&double) {
            prop_assert!((f64::from(*single) - double).abs() <= 1e-6 * (1.0 + double.abs()));
        }
    }

    #[test]
    fn what_is_written_is_read((penalty, _) in any_penalty()) {
        prop_assert_eq!(penalty.to_string().parse::<Penalty>().unwrap(), penalty.clone());
        #[cfg(feature = "serde")]
        prop_assert_eq!(serde_json::from_str::<Penalty>(&serde_json::to_string(&penalty).unwrap()).unwrap(), penalty);
    }
}

#[test]
fn a_group_lives_or_dies_as_a_whole() {
    // Three outputs; features 0 and 1 are a group, 2 is its own group, 3 is the intercept.
    let layout = Layout { features: 4, outputs: 3, intercept: true };
    let penalty = Penalty::Group { lambda: 1.0, sizes: vec![2] };
    let mut w = [0.5, -0.5, 1.0, 9.0, 0.1, 0.2, 1.0, 9.0, 0.1, 0.1, 1.0, 9.0f64];
    penalty.prox(layout, 1.0, &mut w).unwrap();
    for k in 0..3 {
        // The first group's norm is below √6; the other's is √3, which is its threshold too.
        assert_eq!(w[4 * k..][..4], [0.0, 0.0, 0.0, 9.0]);
    }
}

#[test]
fn numbers_outside_their_range_are_refused() {
    let refused = |penalty: Penalty, step: f64| {
        let mut w = [1.0, 2.0];
        let result = penalty.prox(plain(2), step, &mut w);
        assert!(result.is_err() && w == [1.0, 2.0], "{penalty:?} {step}");
    };
    for bad in [-1.0, f64::NAN, f64::INFINITY, 1e101] {
        refused(Penalty::L1 { lambda: bad }, 1.0);
        refused(Penalty::ElasticNet { lambda: 1.0, ridge: bad }, 1.0);
        refused(Penalty::L1 { lambda: 1.0 }, bad);
        refused(Penalty::Scad { lambda: 1.0, a: bad }, 0.5);
        refused(Penalty::Mcp { lambda: 1.0, gamma: bad }, 0.5);
    }
    refused(Penalty::Scad { lambda: 1.0, a: 2.0 }, 0.1);
    refused(Penalty::Scad { lambda: 1.0, a: 3.0 }, 2.0);
    refused(Penalty::Mcp { lambda: 1.0, gamma: 1.5 }, 1.5);
    refused(Penalty::Group { lambda: 1.0, sizes: vec![0] }, 1.0);
    refused(Penalty::Group { lambda: 1.0, sizes: vec![2, 1] }, 1.0);
    refused(Penalty::Group { lambda: 1.0, sizes: vec![u32::MAX; 3] }, 1.0);
    let l1 = Penalty::L1 { lambda: 1.0 };
    assert!(l1.prox(plain(3), 1.0, &mut [1.0, 2.0]).is_err());
    assert!(l1.prox(Layout { features: usize::MAX, outputs: 3, intercept: false }, 1.0, &mut [1.0]).is_err());
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(l1.prox(plain(2), 1.0, &mut [bad, 1.0]).is_err());
    }
    for text in
        ["l1", "l1:x", "l1:1:2", "l1:-1", "group:1:0", "group:1:2,x", "scad:1:2", "mcp:1:0", "mcp:1:2:3", "l2:1", ""]
    {
        assert!(text.parse::<Penalty>().is_err(), "{text}");
    }
    assert_eq!("scad:0.5".parse(), Ok(Penalty::Scad { lambda: 0.5, a: 3.7 }));
    assert_eq!("group:0.5".parse(), Ok(Penalty::Group { lambda: 0.5, sizes: vec![] }));
    #[cfg(feature = "serde")]
    assert!(serde_json::from_str::<Penalty>(r#"{"kind":"l1","lambda":1,"ridge":1}"#).is_err());
}

#[test]
fn a_map_takes_whatever_it_is_given() {
    for penalty in ["l1:1", "elastic-net:1:1", "group:1:2", "nuclear:1", "scad:1", "mcp:1"] {
        let layout = Layout { features: 3, outputs: 2, intercept: true };
        let mut map = ProximalMap::new(penalty.parse().unwrap(), layout, 0.5).unwrap();
        for bad in [f64::NAN, f64::INFINITY, f64::MAX] {
            for step in [0.5, 9.0, -1.0, f64::NAN] {
                map.apply(step, &mut [1.0, bad, 2.0, 3.0, 1.0, 1.0]);
                map.apply(step, &mut [bad; 5]);
                map.apply::<f64>(step, &mut []);
            }
        }
        // A step beyond the checked range is clamped to the longest one.
        let (mut far, mut longest) = ([3.0, 2.0, 1.0, -4.0, 2.0, 1.0], [3.0, 2.0, 1.0, -4.0, 2.0, 1.0]);
        map.apply(9.0, &mut far);
        map.apply(0.5, &mut longest);
        assert_eq!(far, longest);
    }
    let none = Layout { features: 0, outputs: 0, intercept: true };
    ProximalMap::new(Penalty::Nuclear { lambda: 1.0 }, none, 1.0).unwrap().apply(1.0, &mut [1.0; 0]);
}

/// Penalties that are not convex are not declared convex: their maps increase distances.
#[test]
fn maps_of_other_penalties_bring_points_apart() {
    let layout = Layout { features: 1, outputs: 1, intercept: false };
    for penalty in [Penalty::Scad { lambda: 1.0, a: 2.5 }, Penalty::Mcp { lambda: 1.0, gamma: 1.5 }] {
        assert!(!penalty.is_convex());
        let mapped: Vec<f64> = (0..40)
            .map(|i| {
                let mut w = [0.1 * f64::from(i)];
                penalty.prox(layout, 0.5, &mut w).unwrap();
                w[0]
            })
            .collect();
        let steepest = mapped.windows(2).map(|pair| (pair[1] - pair[0]) / 0.1).fold(0.0, f64::max);
        assert!(steepest > 1.2, "{penalty:?}: {steepest}");
    }
}
