//! A mechanism given by the public parameters with which it is deployed.

use dp::wording::one_line;
use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Epsilon, ReplaceOne};
use dp_audit::Subject;
use dp_audit::mechanisms::deployed;
use dp_mechanisms::{
    DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, LaplaceBall, Norm, RandomizedResponse, Sensitivity, Staircase,
};

use crate::args::AuditParameterArgs;
use crate::failure::Failure;
use crate::input::conflict;

/// The flags of each mechanism: one of the first list is required, those of the second are optional.
const TAKEN: [(&str, &[&str], &[&str]); 7] = [
    ("gaussian", &["--std-dev"], &["--sensitivity", "--dim", "--noise"]),
    ("laplace", &["--scale", "--epsilon"], &["--sensitivity", "--dim", "--noise"]),
    ("laplace-ball", &["--scale", "--epsilon"], &["--sensitivity", "--dim", "--noise"]),
    ("discrete-laplace", &["--scale", "--epsilon"], &["--sensitivity"]),
    ("discrete-gaussian", &["--scale"], &["--sensitivity"]),
    ("staircase", &["--epsilon"], &["--sensitivity"]),
    ("randomized-response", &["--epsilon"], &["--buckets"]),
];

/// Largest number of coordinates: a run draws as many numbers.
const MOST_DIM: u64 = 1 << 20;

/// Returns the pairs of the named mechanism, if any parameter is given.
///
/// # Errors
/// `usage.conflict` for a parameter that it does not take, `usage.value` for one that is missing or out of range.
pub(super) fn subjects(names: &[String], args: &AuditParameterArgs) -> Result<Option<Vec<Box<dyn Subject>>>, Failure> {
    let given = given(args);
    let Some(&first) = given.first() else { return Ok(None) };
    let [name] = names else {
        return Err(conflict(first, format!("{first} describes one mechanism, and {} are named", names.len())));
    };
    let Some(&(_, needed, others)) = TAKEN.iter().find(|(mechanism, ..)| mechanism == name) else {
        let message = format!("`{}` takes no parameters", one_line(name));
        return Err(conflict(first, message).expected(TAKEN.map(|(mechanism, ..)| mechanism).join(", ")));
    };
    let flags = || needed.iter().chain(others).copied();
    if let Some(foreign) = given.iter().find(|flag| !flags().any(|taken| taken == **flag)) {
        return Err(conflict(foreign, format!("{foreign} is no parameter of {name}"))
            .expected(flags().collect::<Vec<_>>().join(", ")));
    }
    let chosen: Vec<&str> = given.iter().copied().filter(|flag| needed.contains(flag)).collect();
    match chosen[..] {
        [_] => built(name, args).map(Some),
        [] => Err(Failure::usage(
            needed.first().copied().unwrap_or(first),
            format!("how much noise {name} draws was not said"),
        )
        .expected(needed.join(" or "))),
        [_, second, ..] => {
            Err(conflict(second, format!("{} says it already", chosen.first().copied().unwrap_or(first))))
        }
    }
}

/// Returns the given flags.
fn given(args: &AuditParameterArgs) -> Vec<&'static str> {
    [
        ("--std-dev", args.std_dev.is_some()),
        ("--scale", args.scale.is_some()),
        ("--epsilon", args.epsilon.is_some()),
        ("--sensitivity", args.sensitivity.is_some()),
        ("--dim", args.dim.is_some()),
        ("--buckets", args.buckets.is_some()),
        ("--noise", args.noise.is_some()),
    ]
    .into_iter()
    .filter_map(|(flag, typed)| typed.then_some(flag))
    .collect()
}

/// The amount of noise.
enum Amount {
    StdDev(f64),
    Scale(f64),
    Epsilon(Epsilon),
}

fn built(name: &str, args: &AuditParameterArgs) -> Result<Vec<Box<dyn Subject>>, Failure> {
    let (amount, flag) = match (args.std_dev, args.scale, args.epsilon) {
        (Some(std_dev), ..) => (Amount::StdDev(std_dev), "--std-dev"),
        (_, Some(scale), _) => (Amount::Scale(scale), "--scale"),
        (.., epsilon) => {
            let epsilon = Epsilon::new(epsilon.unwrap_or(1.0));
            (Amount::Epsilon(epsilon.map_err(|error| Failure::usage("--epsilon", error.to_string()))?), "--epsilon")
        }
    };
    let mode = args.noise.unwrap_or(NoiseMode::Exact);
    let (dim, buckets) = (args.dim.unwrap_or(1), args.buckets.unwrap_or(2));
    if !(1..=MOST_DIM).contains(&dim) {
        return Err(Failure::usage("--dim", format!("{dim} coordinates cannot be audited"))
            .expected(format!("a whole number from 1 to {MOST_DIM}")));
    }
    // A constructor's error names the parameter itself; the message names the flag that sets it.
    let refused = |error: dp_audit::Error| {
        let message = error.to_string();
        let flag = [("sensitivity", "--sensitivity"), ("buckets", "--buckets")]
            .into_iter()
            .find(|(word, _)| message.starts_with(word))
            .map_or(flag, |(_, flag)| flag);
        Failure::usage(flag, message)
    };
    // Each mechanism takes the amounts listed in `TAKEN`; the remaining combinations cannot occur.
    let subjects = || -> Result<_, dp_audit::Error> {
        match (name, amount) {
            ("gaussian", Amount::StdDev(std_dev)) => {
                deployed::gaussian(Gaussian::from_std_dev(apart(args)?, std_dev)?.with_noise_mode(mode)?, dim)
            }
            ("laplace", Amount::Scale(scale)) => {
                deployed::laplace(Laplace::from_scale(apart(args)?, scale)?.with_noise_mode(mode)?, dim)
            }
            ("laplace", Amount::Epsilon(epsilon)) => {
                deployed::laplace(Laplace::new(apart(args)?, epsilon)?.with_noise_mode(mode)?, dim)
            }
            ("laplace-ball", Amount::Scale(scale)) => {
                deployed::laplace_ball(LaplaceBall::from_scale(apart(args)?, scale, dim)?.with_noise_mode(mode)?)
            }
            ("laplace-ball", Amount::Epsilon(epsilon)) => {
                deployed::laplace_ball(LaplaceBall::new(apart(args)?, epsilon, dim)?.with_noise_mode(mode)?)
            }
            ("discrete-laplace", Amount::Scale(scale)) => {
                deployed::discrete_laplace(DiscreteLaplace::from_scale(apart(args)?, scale)?)
            }
            ("discrete-laplace", Amount::Epsilon(epsilon)) => {
                deployed::discrete_laplace(DiscreteLaplace::new(apart(args)?, epsilon)?)
            }
            ("discrete-gaussian", Amount::Scale(scale)) => {
                deployed::discrete_gaussian(DiscreteGaussian::from_scale(apart(args)?, scale, 1)?)
            }
            ("staircase", Amount::Epsilon(epsilon)) => deployed::staircase(Staircase::new(apart(args)?, epsilon)?),
            ("randomized-response", Amount::Epsilon(epsilon)) => {
                deployed::randomized_response(RandomizedResponse::new(buckets, epsilon)?)
            }
            _ => Ok(Vec::new()),
        }
    };
    subjects().map_err(refused)
}

/// Returns the sensitivity for the distance of the two inputs. The relation has no influence.
fn apart<N: Norm>(args: &AuditParameterArgs) -> Result<Sensitivity<N, ReplaceOne>, dp_audit::Error> {
    Ok(Sensitivity::new(args.sensitivity.unwrap_or(1.0))?)
}
