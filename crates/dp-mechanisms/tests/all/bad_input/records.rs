//! Serialised mechanisms: each number, word and key replaced by every other kind.

use std::fmt::Debug;

use dp_accountant::{Epsilon, ZeroOut};
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::{
    AboveThreshold, DiscreteGaussian, DiscreteLaplace, Exponential, Gaussian, GaussianAboveThreshold, GaussianMixture,
    L1Sensitivity, L2Sensitivity, LInfSensitivity, Laplace, LaplaceBall, NoisyMax, PermuteAndFlip, RandomizedResponse,
    Staircase,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Replacements of each value, as text: `1e999` is JSON, and not a number.
const REPLACEMENTS: [&str; 22] = [
    "null",
    "true",
    "\"\"",
    "\"1\"",
    "[]",
    "{}",
    "[1]",
    "{\"x\":1}",
    "1e999",
    "-1e999",
    "-1",
    "-0.0",
    "0",
    "1",
    "2",
    "5e-324",
    "1e-300",
    "0.5",
    "1e300",
    "4294967297",
    "18446744073709551615",
    "\"exact\"",
];

/// Returns every text that differs from `value` in one place.
fn mutants(value: &Value) -> Vec<String> {
    let mut all: Vec<String> = REPLACEMENTS.iter().map(|&text| text.to_owned()).collect();
    match value {
        Value::Object(fields) => {
            let text = |name: &str, inner: &str| {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(key, value)| match key == name {
                        true => format!("{key:?}:{inner}"),
                        false => format!("{key:?}:{value}"),
                    })
                    .collect();
                format!("{{{}}}", fields.join(","))
            };
            for (name, inner) in fields {
                all.extend(mutants(inner).iter().map(|inner| text(name, inner)));
                // The key twice, the key omitted, a different key.
                all.push(text(name, &format!("{inner},{name:?}:{inner}")));
                let mut fewer = fields.clone();
                fewer.remove(name);
                all.push(Value::Object(fewer.clone()).to_string());
                fewer.insert(format!("{name}_"), inner.clone());
                all.push(Value::Object(fewer).to_string());
                let mut more = fields.clone();
                more.insert("unknown".to_owned(), Value::Null);
                all.push(Value::Object(more).to_string());
            }
        }
        Value::Array(items) => {
            for i in 0..items.len() {
                all.extend(mutants(&items[i]).iter().map(|inner| {
                    let item = |j: usize| if i == j { inner.clone() } else { items[j].to_string() };
                    format!("[{}]", (0..items.len()).map(item).collect::<Vec<_>>().join(","))
                }));
            }
        }
        _ => {}
    }
    all
}

/// Checks that reading any mutant gives an error or a mechanism that passed its constructor and is written as it was read.
fn check<M: Serialize + DeserializeOwned + PartialEq + Debug>(original: &M, is_sound: impl Fn(&M) -> bool) {
    let text = serde_json::to_value(original).unwrap();
    assert_eq!(serde_json::from_value::<M>(text.clone()).unwrap(), *original);
    let (mut read, mut refused) = (0, 0);
    for mutant in mutants(&text) {
        match serde_json::from_str::<M>(&mutant) {
            Ok(mechanism) => {
                assert!(is_sound(&mechanism), "{mutant}");
                let again = serde_json::to_string(&mechanism).unwrap();
                assert_eq!(serde_json::from_str::<M>(&again).unwrap(), mechanism, "{mutant}");
                read += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(read > 0 && refused > read, "{original:?}: {read} read, {refused} refused");
    for text in ["", "{", "nul", "[[[[[[[[", "\u{0}"] {
        assert!(serde_json::from_str::<M>(text).is_err());
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(serde_json::from_str::<M>(&deep).is_err());
}

fn sound(scale: f64, sensitivity: f64) -> bool {
    scale.is_normal() && scale > 0.0 && sensitivity.is_normal() && sensitivity > 0.0
}

#[test]
fn what_is_read_has_passed_its_constructor() {
    let sensitivity = L2Sensitivity::<ZeroOut>::new(0.25).unwrap();
    let gaussian = Gaussian::from_std_dev(sensitivity, 1.5).unwrap();
    check(&gaussian, |m| sound(m.std_dev(), m.sensitivity().get()) && sound(m.grid().step(), 1.0));
    let ball = LaplaceBall::new(sensitivity, Epsilon::new(0.7).unwrap(), 5).unwrap();
    check(&ball, |m| sound(m.scale(), m.sensitivity().get()) && (1..=1 << 32).contains(&m.dim()));
    let mixture = GaussianMixture::<ZeroOut>::new(0.3, vec![0.1, 0.2], vec![0.5, 0.5]).unwrap();
    check(&mixture, |m| sound(m.std_dev(), m.sensitivity().get()));
    check(&sensitivity, |m| sound(1.0, m.get()));
    let steps = L1Sensitivity::<ZeroOut>::new(3.0).unwrap();
    let discrete = DiscreteLaplace::new(steps, Epsilon::new(0.7).unwrap()).unwrap();
    check(&discrete, |m| sound(m.scale(), m.sensitivity().get()));
    let laplace = Laplace::new(steps, Epsilon::new(0.7).unwrap()).unwrap();
    check(&laplace, |m| sound(m.scale(), m.sensitivity().get()));
    let staircase = Staircase::new(steps, Epsilon::new(5.0).unwrap()).unwrap();
    check(&staircase, |m| sound(m.epsilon().get(), m.sensitivity().get()));
    let normal = DiscreteGaussian::from_scale(sensitivity, 2.5, 3).unwrap();
    check(&normal, |m| sound(m.scale(), m.sensitivity().get()) && m.dim() >= 1);
    let response = RandomizedResponse::new(3, Epsilon::new(0.7).unwrap()).unwrap();
    check(&response, |m| m.noise() > 0.0 && m.noise() < 1.0 && m.buckets() >= 2);
    check(&ClippingNorm::new(1.5).unwrap(), |m| m.get() >= ClippingNorm::LEAST);
}

#[test]
fn what_is_read_of_a_choice_has_passed_its_constructor() {
    let (sensitivity, epsilon) = (LInfSensitivity::<ZeroOut>::new(0.25).unwrap(), Epsilon::new(0.7).unwrap());
    check(&Exponential::new(sensitivity, epsilon).unwrap(), |m| sound(m.epsilon().get(), m.sensitivity().get()));
    check(&PermuteAndFlip::new(sensitivity, epsilon).unwrap(), |m| sound(m.epsilon().get(), m.sensitivity().get()));
    check(&NoisyMax::new(sensitivity, epsilon).unwrap(), |m| sound(m.epsilon().get(), m.sensitivity().get()));
    let sparse = AboveThreshold::new(sensitivity, epsilon, 2).unwrap();
    check(&sparse, |m| sound(m.query_epsilon(), m.threshold_epsilon()) && m.answers() >= 1);
    let gaussian = GaussianAboveThreshold::new(sensitivity, 1.5, 2.5, 10).unwrap();
    check(&gaussian, |m| sound(m.query_std_dev(), m.threshold_std_dev()) && m.max_queries() >= 1);
}
