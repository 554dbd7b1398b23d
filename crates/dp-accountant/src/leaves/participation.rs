//! The probability that the differing record is in any sample.
//!
//! If it is in no sample, the releases do not differ. Couple the samples of both data sets: they can be distinguished with
//! probability at most `p = 1 - prod_i (1 - q_i)^(T_i)`, so `delta(epsilon) <= p` at every epsilon, for any noise. With little
//! noise no bound is better.

use super::{Leaf, Leaves};
use crate::rounding::{add_up, count_up, mul_up};

/// Returns the natural logarithm of that probability, rounded up; 0 if a release is not of a sample.
pub(crate) fn log_participation(leaves: &Leaves) -> f64 {
    // The sum of -T ln(1 - q).
    let never = leaves.iter().try_fold(0.0, |sum, (leaf, count)| {
        let rate = match leaf {
            Leaf::PoissonGaussian { rate, .. } | Leaf::Poisson { rate, .. } | Leaf::WithoutReplacement { rate, .. } => {
                *rate
            }
            Leaf::PoissonReplacement(pair) => pair.rate(),
            _ => return None,
        };
        Some(add_up(sum, mul_up(count_up(*count), -(-rate).ln_1p() * ROUND_UP)))
    });
    never.map_or(0.0, |never| {
        let log = (-(-never).exp_m1()).ln();
        (log + 8.0 * f64::EPSILON * (1.0 + log.abs())).min(0.0)
    })
}

/// Factor that covers the error of an elementary function.
const ROUND_UP: f64 = 1.0 + 8.0 * f64::EPSILON;

#[cfg(test)]
mod tests {
    use crate::leaves::leaves;
    use crate::{Delta, DpEvent, exact};

    use super::*;

    fn sampled(sampling_rate: f64, std_dev: f64) -> DpEvent {
        let event = Box::new(DpEvent::Gaussian { std_dev, sensitivity: 1.0 });
        DpEvent::PoissonSampled { sampling_rate, event }
    }

    #[test]
    fn the_probability_of_any_sample() {
        let event = |last| DpEvent::Composed {
            events: vec![DpEvent::SelfComposed { event: Box::new(sampled(0.1, 1.0)), count: 3 }, last],
        };
        let log = log_participation(&leaves(&event(sampled(0.25, 5.0)), 1).unwrap());
        let exactly = 1.0 - 0.9f64.powi(3) * 0.75;
        assert!(log >= exactly.ln() && log <= exactly.ln() + 1e-13);
        let always = event(DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 });
        assert_eq!(log_participation(&leaves(&always, 1).unwrap()), 0.0);
    }

    #[test]
    fn without_noise_to_speak_of_the_curve_is_that_probability() {
        // With a noise of a thousandth, the releases identify the data set if the record was in any sample.
        for noise in [0.002, 0.05, 0.3] {
            let run = DpEvent::SelfComposed { event: Box::new(sampled(1e-4, noise)), count: 200 };
            let p = 1.0 - (1.0 - 1e-4f64).powi(200);
            assert_eq!(exact::epsilon(&run, Delta::new(1.001 * p).unwrap()).unwrap().upper, 0.0, "{noise}");
            let delta = exact::delta(&run, 0.5).unwrap();
            assert!(delta.lower <= p && delta.upper <= p * (1.0 + 1e-12), "{noise}: {delta:?}");
        }
        let epsilon = exact::epsilon(&sampled(0.1, 0.01), Delta::new(0.09999).unwrap()).unwrap();
        assert!(epsilon.lower > 1.0, "{epsilon:?}");
    }
}
