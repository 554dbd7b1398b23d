//! A mechanism with custom parameters on its worst-case pairs, exactly as deployed.
//!
//! Each function takes a constructed mechanism, including noise mode and grid, and returns subjects whose claim is its own
//! event and whose score is the exact likelihood ratio: at the origin, and far from it if the mechanism has an origin.

use dp_accountant::Adjacency;
use dp_accountant::certificate::NoiseMode;
use dp_mechanisms::{DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, LaplaceBall, RandomizedResponse, Staircase};

use super::additive::{self, FAR, Pair, suffix_of};
use super::{integer, local};
use crate::error::Error;
use crate::subject::Subject;

/// Largest number of coordinates; a trial holds two vectors.
const MOST_COORDINATES: u64 = 1 << 24;

/// Largest sensitivity of integers that doubles represent exactly.
const LARGEST_DISTANCE: f64 = 9_007_199_254_740_992.0;

/// The subjects of one mechanism.
type Subjects = Vec<Box<dyn Subject>>;

/// Gaussian noise on `dim` coordinates. The inputs are 0 and the sensitivity times a unit vector.
///
/// # Errors
/// [`Error::OutOfRange`] for a `dim` of 0 or above 2^24, and events that the accountant rejects.
///
/// # Examples
/// ```
/// use dp_accountant::ZeroOut;
/// use dp_audit::{Auditor, Verdict, mechanisms::deployed};
/// use dp_mechanisms::{Gaussian, L2Sensitivity};
///
/// let gaussian = Gaussian::from_std_dev(L2Sensitivity::<ZeroOut>::new(0.1)?, 0.25)?;
/// let subjects = deployed::gaussian(gaussian, 1)?;
/// let audit = Auditor::new(50_000)?.audit(&subjects[0])?;
/// assert_eq!(audit.verdict, Verdict::NotRefuted);
/// assert!(audit.best_ratio() > 0.8); // mu = 0.4
/// # Ok::<(), dp_audit::Error>(())
/// ```
pub fn gaussian<A: Adjacency>(mechanism: Gaussian<A>, dim: u64) -> Result<Subjects, Error> {
    let sensitivity = mechanism.sensitivity().get();
    let of = [("std-dev", mechanism.std_dev()), ("sensitivity", sensitivity), ("dim", dim as f64)];
    let name = named("gaussian", &of, mechanism.noise_mode());
    on_vectors(dim, sensitivity, |suffix, pair| additive::gaussian(format!("{name}{suffix}"), pair, mechanism))
}

/// Laplace noise on each of `dim` coordinates: 0 and D along an axis.
///
/// # Errors
/// Those of [`gaussian`].
pub fn laplace<A: Adjacency>(mechanism: Laplace<A>, dim: u64) -> Result<Subjects, Error> {
    let sensitivity = mechanism.sensitivity().get();
    let of = [("scale", mechanism.scale()), ("sensitivity", sensitivity), ("dim", dim as f64)];
    let name = named("laplace", &of, mechanism.noise_mode());
    on_vectors(dim, sensitivity, |suffix, pair| additive::laplace(format!("{name}{suffix}"), pair, mechanism))
}

/// The L2 Laplace ball: 0 and D along an axis. For more than one coordinate, epsilon is stated at delta = 10^-5: the outcomes
/// that attain the pure epsilon are too rare to count.
///
/// # Errors
/// Those of [`gaussian`].
pub fn laplace_ball<A: Adjacency>(mechanism: LaplaceBall<A>) -> Result<Subjects, Error> {
    let (sensitivity, dim) = (mechanism.sensitivity().get(), mechanism.dim());
    let of = [("scale", mechanism.scale()), ("sensitivity", sensitivity), ("dim", dim as f64)];
    let name = named("laplace-ball", &of, mechanism.noise_mode());
    on_vectors(dim, sensitivity, |suffix, pair| additive::ball(format!("{name}{suffix}"), pair, mechanism))
}

/// The staircase: 0 and D.
///
/// # Errors
/// An event that the accountant rejects.
pub fn staircase<A: Adjacency>(mechanism: Staircase<A>) -> Result<Subjects, Error> {
    let of = [("epsilon", mechanism.epsilon().get()), ("sensitivity", mechanism.sensitivity().get())];
    Ok(vec![additive::staircase(named("staircase", &of, NoiseMode::Exact), mechanism)?])
}

/// Discrete Laplace noise on one integer: two integers that are D apart, at 0 and at 2^60.
///
/// # Errors
/// [`Error::OutOfRange`] for a sensitivity above 2^53, and events that the accountant rejects.
pub fn discrete_laplace<A: Adjacency>(mechanism: DiscreteLaplace<A>) -> Result<Subjects, Error> {
    let sensitivity = mechanism.sensitivity();
    let distance = whole(sensitivity.get())?;
    let name = named(
        "discrete-laplace",
        &[("scale", mechanism.scale()), ("sensitivity", sensitivity.get())],
        NoiseMode::Exact,
    );
    let subject =
        |(suffix, origin)| integer::release(format!("{name}{suffix}"), mechanism, sensitivity, origin, distance);
    integer::ORIGINS.into_iter().map(subject).collect()
}

/// Discrete Gaussian noise on one integer: two integers as far apart as the sensitivity allows, at 0 and at 2^60.
///
/// # Errors
/// [`Error::OutOfRange`] for a mechanism of several integers or a sensitivity outside `[1, 2^53]`, and events that the
/// accountant rejects.
pub fn discrete_gaussian<A: Adjacency>(mechanism: DiscreteGaussian<A>) -> Result<Subjects, Error> {
    if mechanism.dim() != 1 {
        return Err(Error::OutOfRange { name: "dimension", value: mechanism.dim() as f64, range: "[1, 1]" });
    }
    let sensitivity = mechanism.sensitivity();
    let distance = whole(sensitivity.get())?;
    let name = named(
        "discrete-gaussian",
        &[("scale", mechanism.scale()), ("sensitivity", sensitivity.get())],
        NoiseMode::Exact,
    );
    let subject =
        |(suffix, origin)| integer::release(format!("{name}{suffix}"), mechanism, sensitivity, origin, distance);
    integer::ORIGINS.into_iter().map(subject).collect()
}

/// Randomised response: two labels, and the answer that one of them makes likely.
///
/// # Errors
/// An event that the accountant rejects.
pub fn randomized_response(mechanism: RandomizedResponse) -> Result<Subjects, Error> {
    let of = [("noise", mechanism.noise()), ("buckets", mechanism.buckets() as f64)];
    Ok(vec![local::response(named("randomized-response", &of, NoiseMode::Exact), mechanism)?])
}

/// Returns the subjects at the origin, and far from it if such numbers exist.
fn on_vectors(
    dim: u64,
    sensitivity: f64,
    subject: impl Fn(&str, &Pair) -> Result<Box<dyn Subject>, Error>,
) -> Result<Subjects, Error> {
    if !(1..=MOST_COORDINATES).contains(&dim) {
        return Err(Error::OutOfRange { name: "dimension", value: dim as f64, range: "[1, 2^24]" });
    }
    let far = FAR * sensitivity;
    [("", 0.0), ("/far", far)]
        .into_iter()
        .filter(|(_, origin)| (origin + sensitivity).is_finite())
        .map(|(suffix, origin)| subject(suffix, &Pair::axis(dim as usize, origin, sensitivity)))
        .collect()
}

/// Returns the largest integer distance that a sensitivity allows.
fn whole(sensitivity: f64) -> Result<i64, Error> {
    if (1.0..=LARGEST_DISTANCE).contains(&sensitivity) {
        Ok(sensitivity.floor() as i64)
    } else {
        Err(Error::OutOfRange { name: "sensitivity", value: sensitivity, range: "[1, 2^53]" })
    }
}

/// Formats a name such as `gaussian/std-dev=2,sensitivity=1,dim=3`.
fn named(mechanism: &str, of: &[(&str, f64)], mode: NoiseMode) -> String {
    let number = |value: f64| if (1e-3..1e7).contains(&value) { format!("{value}") } else { format!("{value:e}") };
    let of: Vec<String> = of.iter().map(|&(name, value)| format!("{name}={}", number(value))).collect();
    format!("{mechanism}/{}{}", of.join(","), suffix_of(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Auditor, Claim, Claimed, Verdict};
    use dp_accountant::{DpEvent, Epsilon, ReplaceOne, ZeroOut};
    use dp_mechanisms::{L1Sensitivity, L2Sensitivity};

    fn l1<A: Adjacency>(value: f64) -> L1Sensitivity<A> {
        L1Sensitivity::new(value).unwrap()
    }

    fn l2<A: Adjacency>(value: f64) -> L2Sensitivity<A> {
        L2Sensitivity::new(value).unwrap()
    }

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).unwrap()
    }

    /// Returns subjects with parameters that the registry does not contain.
    fn all() -> Vec<Subjects> {
        let gaussian = Gaussian::<ZeroOut>::from_std_dev(l2(0.1), 0.1).unwrap();
        vec![
            super::gaussian(gaussian, 1).unwrap(),
            super::gaussian(gaussian.with_noise_mode(NoiseMode::Rounded).unwrap(), 3).unwrap(),
            laplace(Laplace::<ReplaceOne>::new(l1(1e200), epsilon(1.0)).unwrap(), 2).unwrap(),
            laplace_ball(LaplaceBall::<ZeroOut>::new(l2(3e200), epsilon(1.0), 1).unwrap()).unwrap(),
            staircase(Staircase::<ReplaceOne>::new(l1(0.3), epsilon(1.5)).unwrap()).unwrap(),
            discrete_laplace(DiscreteLaplace::<ZeroOut>::new(l1(5000.0), epsilon(1.0)).unwrap()).unwrap(),
            discrete_gaussian(DiscreteGaussian::<ZeroOut>::from_scale(l2(5.5), 5.0, 1).unwrap()).unwrap(),
            randomized_response(RandomizedResponse::new(3, epsilon(1.2)).unwrap()).unwrap(),
        ]
    }

    /// False alarms have probability 1e-9 each. The seed is fixed, and the bounds are far from the limits of the test: two
    /// thirds of each claim, and a quarter for a Gaussian epsilon at delta = 1e-5 without a comparison of mu.
    #[test]
    fn each_is_attacked_near_its_own_claim_and_never_beyond() {
        let auditor = Auditor::exactly(60_000).unwrap().with_failure_probability(1e-9).unwrap();
        for subject in all().iter().flatten() {
            let audit = auditor.audit(subject).unwrap();
            assert_eq!(audit.verdict, Verdict::NotRefuted, "{}", subject.name());
            let least = if subject.name().starts_with("discrete-gaussian") { 0.25 } else { 0.66 };
            assert!(audit.best_ratio() > least, "{}: {}", subject.name(), audit.best_ratio());
            // A claim of half the true epsilon is refuted.
            let half = Claim::new(DpEvent::PureDp { epsilon: 0.3 }).unwrap();
            let audit = auditor.audit(&Claimed::new(subject, half)).unwrap();
            assert_eq!(audit.verdict, Verdict::Refuted, "{}", subject.name());
        }
    }

    #[test]
    fn names_hold_the_parameters_and_are_unique() {
        let names: Vec<String> = all().iter().flatten().map(|subject| subject.name().to_owned()).collect();
        assert_eq!(names[0], "gaussian/std-dev=0.1,sensitivity=0.1,dim=1");
        assert_eq!(names[3], "gaussian/std-dev=0.1,sensitivity=0.1,dim=3/rounded/far");
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let refused = |result: Result<Subjects, Error>| assert!(matches!(result, Err(Error::OutOfRange { .. })));
        let gaussian = Gaussian::<ZeroOut>::from_std_dev(l2(1.0), 1.0).unwrap();
        refused(super::gaussian(gaussian, 0));
        refused(super::gaussian(gaussian, u64::MAX));
        refused(laplace_ball(LaplaceBall::<ZeroOut>::from_scale(l2(1.0), 1.0, 1 << 30).unwrap()));
        refused(discrete_gaussian(DiscreteGaussian::<ZeroOut>::from_scale(l2(0.5), 1.0, 1).unwrap()));
        refused(discrete_gaussian(DiscreteGaussian::<ZeroOut>::from_scale(l2(1.0), 1.0, 2).unwrap()));
        // No numbers exist that far from the origin: audited at the origin alone.
        let vast = Gaussian::<ZeroOut>::from_std_dev(l2(1e303), 1e280).unwrap();
        assert_eq!(super::gaussian(vast, 1).unwrap().len(), 1);
    }
}
