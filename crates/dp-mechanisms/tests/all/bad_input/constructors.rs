//! Constructors on all combinations of numbers.

use dp_accountant::{Epsilon, ZeroOut};
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::{Error, L2, Sensitivity};

use super::noise::Accepted;
use super::{EXTREME, NEVER_POSITIVE, continuous, discrete, numbers};

pub type Relation = ZeroOut;

/// A constructor of some numbers, each with a name and the values that are invalid for it.
pub struct Constructor {
    pub name: &'static str,
    pub parameters: &'static [Parameter],
    pub build: fn(&[f64]) -> Result<Accepted, Error>,
}

/// A parameter, by its name in errors.
pub struct Parameter {
    pub name: &'static str,
    pub never: fn(f64) -> bool,
    /// A value that is always valid.
    pub good: f64,
}

/// Finite, positive and normal.
pub const fn positive(name: &'static str) -> Parameter {
    Parameter { name, never: |x| !(x > 0.0 && x.is_normal()), good: 0.5 }
}

pub const SENSITIVITY: Parameter = positive("sensitivity");
pub const EPSILON: Parameter =
    Parameter { name: "epsilon", never: |x| !(x >= Epsilon::MIN.get() && x.is_finite()), good: 0.5 };
pub const DELTA: Parameter = Parameter { name: "delta", never: |x| !(x > 0.0 && x < 1.0), good: 0.5 };

fn constructors() -> impl Iterator<Item = &'static Constructor> {
    continuous::CONSTRUCTORS.iter().chain(discrete::CONSTRUCTORS)
}

/// Returns all combinations of numbers for `count` parameters.
fn combinations(count: usize) -> Vec<Vec<f64>> {
    (0..count).fold(vec![vec![]], |all, _| {
        all.iter().flat_map(|tuple| numbers().map(|x| [tuple.as_slice(), &[x]].concat())).collect()
    })
}

#[test]
fn every_combination_is_refused_or_releases_the_noise_it_announces() {
    for constructor in constructors() {
        let (mut accepted, mut refused) = (0, 0);
        for tuple in combinations(constructor.parameters.len()) {
            let what = format!("{}{tuple:?}", constructor.name);
            let impossible = constructor.parameters.iter().zip(&tuple).any(|(parameter, x)| (parameter.never)(*x));
            match (constructor.build)(&tuple) {
                Ok(_) if impossible => panic!("{what} was accepted"),
                Ok(configuration) => {
                    configuration.check(&what);
                    accepted += 1;
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty(), "{what}");
                    refused += 1;
                }
            }
        }
        assert!(accepted > 0 && refused > 0, "{}: {accepted} accepted, {refused} refused", constructor.name);
    }
}

/// With one invalid number among valid ones, the error names the parameter and the value.
#[test]
fn errors_name_the_parameter_and_its_value() {
    for constructor in constructors() {
        for (i, parameter) in constructor.parameters.iter().enumerate() {
            for x in numbers().filter(|x| (parameter.never)(*x)) {
                let mut tuple: Vec<f64> = constructor.parameters.iter().map(|parameter| parameter.good).collect();
                tuple[i] = x;
                let message = match (constructor.build)(&tuple) {
                    Ok(_) => panic!("{}{tuple:?} was accepted", constructor.name),
                    Err(error) => error.to_string(),
                };
                assert!(message.contains(parameter.name), "{}{tuple:?}: {message}", constructor.name);
                let value = if x == 0.0 { "0".to_owned() } else { format!("{x:?}") };
                assert!(message.contains(&value), "{}{tuple:?}: {message}", constructor.name);
            }
        }
    }
}

#[test]
fn sensitivities_and_norms_refuse_what_is_no_length() {
    for x in NEVER_POSITIVE {
        assert!(Sensitivity::<L2, Relation>::new(x).is_err(), "{x}");
        assert!(ClippingNorm::new(x).is_err(), "{x}");
    }
    for x in EXTREME {
        assert!(Sensitivity::<L2, Relation>::new(x).is_ok(), "{x}");
        assert_eq!(ClippingNorm::new(x).is_ok(), x >= 2f64.powi(-500), "{x}");
    }
}
