//! Test helpers: golden values, and laws known in closed form.

use std::path::PathBuf;

use dp_accountant::DpEvent;
use rand::RngExt;
use rand_distr::{Distribution, Exp1, StandardNormal};
use serde_json::Value;

use crate::subject::{Claim, FromFn, Side, Statistic, from_fn};
use crate::{Error, SeededRng};

/// One golden case.
pub(crate) struct Case {
    pub(crate) id: String,
    input: Value,
    out: Value,
    tolerance: f64,
}

/// Returns the cases of one function whose name starts with `beginning`; the repository contains at least one.
pub(crate) fn golden_cases(function: &str, beginning: &str) -> Vec<Case> {
    let folder = std::env::var_os("DP_GOLDEN_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden")), PathBuf::from);
    let path = folder.join("mechanisms.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Value = serde_json::from_str(&text).unwrap();
    let all = file["cases"].as_array().unwrap();
    assert!(!all.is_empty(), "no golden case at all");
    let cases: Vec<Case> = all
        .iter()
        .filter(|case| case["fn"] == function && case["id"].as_str().unwrap().starts_with(beginning))
        .map(|case| Case {
            id: case["id"].as_str().unwrap().to_owned(),
            input: case["in"].clone(),
            out: case["out"].clone(),
            tolerance: case["rtol"].as_f64().unwrap(),
        })
        .collect();
    assert!(!cases.is_empty() || std::env::var_os("DP_GOLDEN_DIR").is_some(), "no golden case of {function}");
    cases
}

impl Case {
    pub(crate) fn input(&self, name: &str) -> f64 {
        self.input[name].as_f64().unwrap_or_else(|| panic!("{}: no input {name}", self.id))
    }

    pub(crate) fn input_or(&self, name: &str, otherwise: f64) -> f64 {
        if self.input[name].is_null() { otherwise } else { self.input(name) }
    }

    pub(crate) fn list(&self, name: &str) -> Vec<f64> {
        self.input[name].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    }

    pub(crate) fn output(&self, name: &str) -> f64 {
        self.out[name].as_f64().unwrap_or_else(|| panic!("{}: no output {name}", self.id))
    }

    pub(crate) fn count(&self, name: &str) -> u64 {
        self.input[name].as_u64().unwrap_or_else(|| panic!("{}: no count {name}", self.id))
    }

    pub(crate) fn check(&self, name: &str, found: f64) {
        let expected = self.output(name);
        assert!(
            (found - expected).abs() <= self.tolerance * expected.abs(),
            "{}: {name} = {found}, expected {expected}",
            self.id
        );
    }
}

type Observe = Box<dyn Fn(Side, &mut SeededRng, &mut Vec<f64>) -> Result<(), Error> + Send + Sync>;

fn shift(side: Side) -> f64 {
    f64::from(side == Side::Neighbour)
}

/// Randomised response of this epsilon under another claimed epsilon.
pub(crate) fn coin(truth: f64, claim: f64) -> FromFn<Observe> {
    let claim = Claim { event: DpEvent::PureDp { epsilon: claim }, delta: 0.0 };
    let honest = 1.0 / (1.0 + (-truth).exp());
    from_fn(
        "coin",
        "heads or tails",
        claim,
        Statistic::Event,
        Box::new(move |side, rng, features| {
            features.push(f64::from((side == Side::Neighbour) == (rng.random::<f64>() < honest)));
            Ok(())
        }),
    )
}

/// Laplace noise of this epsilon on a value of sensitivity 1, under another claimed epsilon.
pub(crate) fn laplace(truth: f64, claim: f64) -> FromFn<Observe> {
    let claim = Claim { event: DpEvent::Laplace { scale: 1.0 / claim, sensitivity: 1.0 }, delta: 0.0 };
    from_fn(
        "laplace",
        "0 and 1",
        claim,
        Statistic::Score,
        Box::new(move |side, rng, features| {
            let size: f64 = Exp1.sample(rng);
            let noise = if rng.random::<bool>() { size } else { -size };
            features.push(shift(side) + noise / truth);
            Ok(())
        }),
    )
}

/// Normal noise of this mu on a value of sensitivity 1, under another claimed mu.
pub(crate) fn gaussian(truth: f64, claim: f64) -> FromFn<Observe> {
    let claim = Claim { event: DpEvent::Gaussian { std_dev: 1.0 / claim, sensitivity: 1.0 }, delta: 1e-5 };
    from_fn(
        "gaussian",
        "0 and 1",
        claim,
        Statistic::Score,
        Box::new(move |side, rng, features| {
            let noise: f64 = StandardNormal.sample(rng);
            features.push(shift(side) + noise / truth);
            Ok(())
        }),
    )
}
