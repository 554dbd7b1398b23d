//! For tests: golden values and statistical tests.

use std::path::PathBuf;

use serde_json::Value;

/// Returns the content of a golden file, from `DP_GOLDEN_DIR` or the copy in the project. A missing file fails the test.
pub(crate) fn golden(file: &str) -> Value {
    let folder = std::env::var_os("DP_GOLDEN_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden")), PathBuf::from);
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// One golden case.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) input: Value,
    pub(crate) out: Value,
    relative: f64,
    absolute: f64,
}

/// Returns the cases of one function: at least one in the tree's copy; another file need not have every function, but must have
/// some.
pub(crate) fn golden_cases(file: &str, function: &str) -> Vec<Case> {
    let file = golden(file);
    let all = file["cases"].as_array().unwrap();
    assert!(!all.is_empty(), "no golden case at all");
    let cases: Vec<Case> = all
        .iter()
        .filter(|case| case["fn"] == function)
        .map(|case| Case {
            id: case["id"].as_str().unwrap().to_owned(),
            input: case["in"].clone(),
            out: case["out"].clone(),
            relative: case["rtol"].as_f64().unwrap(),
            absolute: case["atol"].as_f64().unwrap_or(0.0),
        })
        .collect();
    assert!(!cases.is_empty() || std::env::var_os("DP_GOLDEN_DIR").is_some(), "no golden case of {function}");
    cases
}

impl Case {
    pub(crate) fn input(&self, name: &str) -> f64 {
        self.input[name].as_f64().unwrap_or_else(|| panic!("{}: no input {name}", self.id))
    }

    pub(crate) fn output(&self, name: &str) -> f64 {
        self.out[name].as_f64().unwrap_or_else(|| panic!("{}: no output {name}", self.id))
    }

    pub(crate) fn check(&self, name: &str, found: f64) {
        self.check_number(name, found, self.output(name));
    }

    pub(crate) fn check_number(&self, name: &str, found: f64, expected: f64) {
        let tolerance = self.absolute + self.relative * expected.abs();
        assert!((found - expected).abs() <= tolerance, "{}: {name} = {found}, expected {expected}", self.id);
    }
}

/// Returns the largest distance between the empirical distribution function of `sample` and `cdf`. Sorts the sample.
pub(crate) fn ks_distance(sample: &mut [f64], cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_unstable_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distances = sample.iter().enumerate().map(|(i, &x)| {
        let expected = cdf(x);
        (expected - i as f64 / n).max((i as f64 + 1.0) / n - expected)
    });
    distances.fold(0.0, f64::max)
}

/// Returns the distance that a sample of `n` exceeds with probability at most `false_alarm`, by the inequality of Dvoretzky,
/// Kiefer and Wolfowitz with Massart's constant: `P(distance > t) <= 2 exp(-2 n t²)`.
pub(crate) fn ks_threshold(n: usize, false_alarm: f64) -> f64 {
    ((2.0 / false_alarm).ln() / (2.0 * n as f64)).sqrt()
}

/// Returns Pearson's statistic of integers against a symmetric law, in `2 reach + 1` classes: each integer below `reach` in
/// absolute value, and all beyond on either side.
pub(crate) fn chi_square(sample: &[i64], reach: i64, mass: impl Fn(i64) -> f64, tail: impl Fn(i64) -> f64) -> f64 {
    let mut counts = vec![0.0; 2 * reach as usize + 1];
    sample.iter().for_each(|&k| counts[(k.clamp(-reach, reach) + reach) as usize] += 1.0);
    let classes = (-reach..=reach).zip(counts);
    let terms = classes.map(|(k, found): (i64, f64)| {
        let expected = sample.len() as f64 * if k.abs() == reach { tail(reach) } else { mass(k) };
        (found - expected).powi(2) / expected
    });
    terms.sum()
}

/// Asserts that counts come from this law, by Pearson's chi-square at a false-alarm rate of 1e-9. Classes with an expected count
/// below 1000 are pooled with the next rarest, so that the approximation holds that far out.
pub(crate) fn check_law(counts: &[u64], law: &[f64], what: &str) {
    assert_eq!(counts.len(), law.len());
    let total: u64 = counts.iter().sum();
    let mut classes: Vec<(f64, f64)> =
        counts.iter().zip(law).map(|(&count, &p)| (count as f64, p * total as f64)).collect();
    classes.sort_by(|one, other| other.1.total_cmp(&one.1));
    while classes.len() > 1 && classes[classes.len() - 1].1 < 1000.0 {
        if let (Some(rarest), Some(next)) = (classes.pop(), classes.last_mut()) {
            *next = (next.0 + rarest.0, next.1 + rarest.1);
        }
    }
    assert!(classes.len() > 1, "{what}: nothing to test");
    let statistic: f64 = classes.iter().map(|(found, expected)| (found - expected).powi(2) / expected).sum();
    let freedom = statrs::distribution::ChiSquared::new((classes.len() - 1) as f64).unwrap();
    let p = statrs::distribution::ContinuousCDF::sf(&freedom, statistic);
    assert!(p > 1e-9, "{what}: chi-square {statistic}, p = {p:e}, counts {counts:?}, law {law:?}");
}
