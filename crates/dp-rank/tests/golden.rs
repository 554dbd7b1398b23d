//! Tests against independently computed values: the cases of `ranking.json` in the directory `DP_GOLDEN_DIR`, or in the tree's
//! own copy. The crate for privacy accounting reads its own cases.

#[path = "golden/learning.rs"]
mod learning;
#[path = "golden/metrics.rs"]
mod metrics;
#[path = "golden/mq2008.rs"]
#[cfg(feature = "files")]
mod mq2008;
#[path = "golden/sensitivity.rs"]
mod sensitivity;

use std::path::PathBuf;

use serde_json::Value;

fn load() -> Value {
    let directory = std::env::var_os("DP_GOLDEN_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden")), PathBuf::from);
    let path = directory.join("ranking.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn list<T>(value: &Value, element: impl Fn(&Value) -> Option<T>) -> Vec<T> {
    value.as_array().unwrap().iter().map(|v| element(v).unwrap()).collect()
}

fn vector(value: &Value) -> Vec<f64> {
    list(value, Value::as_f64)
}

/// Parses a matrix, row by row, and its number of columns.
fn matrix(value: &Value) -> (Vec<f64>, usize) {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(vector).collect();
    (rows.concat(), rows[0].len())
}

/// Parses grades, which some cases write as decimals.
fn grades(value: &Value) -> Vec<u32> {
    vector(value).iter().map(|&grade| grade as u32).collect()
}

struct Case<'a> {
    id: &'a str,
    input: &'a Value,
    out: &'a Value,
    relative: f64,
    absolute: f64,
}

impl Case<'_> {
    fn check(&self, name: &str, got: f64) {
        self.compare(name, &self.out[name], got);
    }

    fn compare(&self, name: &str, expected: &Value, got: f64) {
        let expected = expected.as_f64().unwrap_or_else(|| panic!("{}: no number for {name}", self.id));
        let tolerance = self.absolute + self.relative * expected.abs();
        assert!((got - expected).abs() <= tolerance, "{} {name}: got {got}, expected {expected}", self.id);
    }

    fn check_all(&self, name: &str, got: &[f64]) {
        let value = &self.out[name];
        let nested = value.as_array().and_then(|rows| rows.first()).is_some_and(Value::is_array);
        let expected = if nested { matrix(value).0 } else { vector(value) };
        assert_eq!(expected.len(), got.len(), "{} {name}", self.id);
        for (expected, got) in expected.iter().zip(got) {
            self.compare(name, &Value::from(*expected), *got);
        }
    }
}

/// Checks all cases of a function. A file in `DP_GOLDEN_DIR` need not have any.
fn for_each_case(function: &str, check: impl Fn(&Case<'_>)) {
    let file = load();
    let all = file["cases"].as_array().unwrap();
    assert!(!all.is_empty());
    let mut cases = 0;
    for case in all.iter().filter(|case| case["fn"] == function) {
        cases += 1;
        check(&Case {
            id: case["id"].as_str().unwrap(),
            input: &case["in"],
            out: &case["out"],
            relative: case["rtol"].as_f64().unwrap(),
            absolute: case["atol"].as_f64().unwrap(),
        });
    }
    assert!(cases > 0 || std::env::var_os("DP_GOLDEN_DIR").is_some(), "no cases of {function}");
}
