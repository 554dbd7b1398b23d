//! The mechanisms of `dp-mechanisms`, each on its worst-case inputs: what `dp audit mechanism` runs.

use dp_accountant::{EventLog, ReplaceOne};
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, LaplaceBall, Mechanism};

use crate::error::Error;
use crate::subject::{Claim, Side, Statistic, Subject, from_fn};

/// Every pair of inputs of every mechanism. Names begin with the mechanism's, then a slash.
///
/// # Errors
/// A mechanism that refuses its parameters.
///
/// # Examples
/// ```
/// let subjects = dp_audit::mechanisms::subjects()?;
/// assert!(subjects.iter().any(|subject| subject.name().starts_with("gaussian/")));
/// # Ok::<(), dp_audit::Error>(())
/// ```
pub fn subjects() -> Result<Vec<Box<dyn Subject>>, Error> {
    let sensitivity = L2Sensitivity::<ReplaceOne>::new(1.0)?;
    let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
    for dim in [1usize, 2, 10] {
        let gaussian = Gaussian::from_std_dev(sensitivity, 1.0)?;
        // The first coordinate is the projection on the shift.
        subjects.push(additive(format!("gaussian/{dim}"), gaussian, sensitivity, dim, |output| output[0])?);
        let ball = LaplaceBall::from_scale(sensitivity, 1.0, dim as u64)?;
        let score = |output: &[f64]| {
            let rest: f64 = output[1..].iter().map(|y| y * y).sum();
            (output[0].powi(2) + rest).sqrt() - ((output[0] - 1.0).powi(2) + rest).sqrt()
        };
        subjects.push(additive(format!("laplace-ball/{dim}"), ball, sensitivity, dim, score)?);
    }
    Ok(subjects)
}

/// Noise added to the origin, and to the unit vector of the first coordinate.
fn additive<M>(
    name: String,
    mechanism: M,
    sensitivity: L2Sensitivity<ReplaceOne>,
    dim: usize,
    score: fn(&[f64]) -> f64,
) -> Result<Box<dyn Subject>, Error>
where
    M: Mechanism<Vec<f64>, ReplaceOne, Output = Vec<f64>, Norm = dp_mechanisms::L2> + Send + Sync + 'static,
{
    let claim = Claim::new(mechanism.event())?;
    let pair = format!("0 and a unit vector, {dim} coordinates");
    let subject = from_fn(name, pair, claim, Statistic::Score, move |side, rng, features| {
        let mut value = vec![0.0; dim];
        value[0] = f64::from(side == Side::Neighbour);
        let bounded = Bounded::with_proven_sensitivity(value, sensitivity);
        let released = mechanism.release(bounded, &mut EventLog::new(), rng)?;
        features.push(score(released.get()));
        Ok(())
    });
    Ok(Box::new(subject.with_relative_cost(dim as f64)))
}
