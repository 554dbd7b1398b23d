//! The probability that a differing record is in any sample.
//!
//! If none is in a sample, the releases do not differ. Couple the samples of both data sets: they can be distinguished with
//! probability at most `p = 1 - prod_i (1 - q_i)^(T_i)`, so `delta(epsilon) <= p` at every epsilon, for any noise. With little
//! noise no bound is better. Each of a group's `k` records is in a Poisson sample independently of the others: `1 - q` becomes
//! `(1 - q)^k`. A sample of fixed size misses all of them with probability at least `1 - k q`.

use super::{Leaf, Leaves};
use crate::rounding::{add_up, count_up, mul_up};

/// Returns the natural logarithm of that probability, rounded up; 0 if a release is not of a sample.
pub(crate) fn log_participation(leaves: &Leaves) -> f64 {
    never(leaves, 1.0).map_or(0.0, |never| {
        let log = (-(-never).exp_m1()).ln();
        (log + 8.0 * f64::EPSILON * (1.0 + log.abs())).min(0.0)
    })
}

/// Returns `-ln` of the probability that none of `size` records is in any sample, rounded up; `None` if a release is not of a
/// sample.
fn never(leaves: &Leaves, size: f64) -> Option<f64> {
    leaves.iter().try_fold(0.0, |sum, (leaf, count)| {
        let one = match leaf {
            Leaf::PoissonGaussian { rate, .. } | Leaf::Poisson { rate, .. } => mul_up(size, misses(*rate)),
            Leaf::PoissonReplacement(pair) => mul_up(size, misses(pair.rate())),
            Leaf::WithoutReplacement { rate, .. } => misses(mul_up(size, *rate).min(1.0)),
            Leaf::Group { size: more, base } => never(base, mul_up(size, count_up(*more)))?,
            _ => return None,
        };
        Some(add_up(sum, mul_up(count_up(*count), one)))
    })
}

/// Returns `-ln(1 - probability)`, rounded up.
fn misses(probability: f64) -> f64 {
    -(-probability).ln_1p() * ROUND_UP
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
    fn a_group_is_missed_where_all_its_records_are() {
        let once = |event: DpEvent| log_participation(&leaves(&event, 1).unwrap()).exp();
        let three = |event| once(DpEvent::Group { size: 3, event: Box::new(event) });
        let poisson = three(sampled(0.1, 1.0));
        let exactly = 1.0 - 0.9f64.powi(3);
        assert!(poisson >= exactly && poisson <= exactly * (1.0 + 1e-13), "{poisson}");
        // Three of the ten records are in a sample of two with probability 1 - (7 6)/(10 9) = .533.
        let event = Box::new(DpEvent::Gaussian { std_dev: 1.0, sensitivity: 1.0 });
        let fixed_size = DpEvent::SampledWithoutReplacement { sampling_rate: 0.2, event };
        assert!((once(fixed_size.clone()) - 0.2).abs() < 1e-14);
        assert!((three(fixed_size.clone()) - 0.6).abs() < 1e-14);
        assert_eq!(once(DpEvent::Group { size: 5, event: Box::new(fixed_size) }), 1.0);
    }

    #[test]
    fn without_noise_to_speak_of_the_curve_is_that_probability() {
        // With a noise of a thousandth, the releases identify the data set if the record was in any sample.
        for noise in [0.002, 0.05, 0.3] {
            let run = DpEvent::SelfComposed { event: Box::new(sampled(1e-4, noise)), count: 200 };
            let p = -(200.0 * (-1e-4f64).ln_1p()).exp_m1();
            assert_eq!(exact::epsilon(&run, Delta::new(1.001 * p).unwrap()).unwrap().upper, 0.0, "{noise}");
            let delta = exact::delta(&run, 0.5).unwrap();
            assert!(delta.lower <= p && delta.upper <= p * (1.0 + 1e-12), "{noise}: {delta:?}");
        }
        let epsilon = exact::epsilon(&sampled(0.1, 0.01), Delta::new(0.09999).unwrap()).unwrap();
        assert!(epsilon.lower > 1.0, "{epsilon:?}");
    }
}
