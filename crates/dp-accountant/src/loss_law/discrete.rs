//! Noise on the integers.

use super::atoms::{Atom, Atoms};

/// Maximum number of outcomes of an enumerated law.
const MANY: f64 = 1e6;

/// Returns the loss of the discrete Laplace law against itself shifted by `sensitivity` steps; `None` if there are too many
/// outcomes.
///
/// # Formula
/// Masses `(1-q)/(1+q) q^|k|` with `q = e^(-1/t)`, loss `(|k - D| - |k|)/t`: all outcomes up to 0 have the loss `D/t`, all from D
/// on have the loss `-D/t`, and each one between has its own. As for the continuous law, any integer shift of L1 norm D over
/// several coordinates costs no more.
pub(crate) fn laplace(scale: f64, sensitivity: u64) -> Option<Atoms> {
    let steps = sensitivity as f64;
    if !(steps <= MANY) {
        return None;
    }
    let power = |k: f64| (-k / scale).exp();
    // 1 + q and (1 - q)/(1 + q).
    let sum = 1.0 + power(1.0);
    let single = -(-1.0 / scale).exp_m1() / sum;
    let end = |near: f64, far: f64, loss: f64| Atom { loss, p: near / sum, q: far / sum };
    let between = (1..sensitivity).map(|k| {
        let k = k as f64;
        Atom { loss: (steps - 2.0 * k) / scale, p: single * power(k), q: single * power(steps - k) }
    });
    let ends = [end(1.0, power(steps), steps / scale), end(power(steps), 1.0, -steps / scale)];
    let rounding = (8.0 + steps / scale) * f64::EPSILON;
    Some(Atoms::new(ends.into_iter().chain(between).collect(), 0.0, 0.0, rounding).symmetric())
}

/// Masses below the exponential of minus this, relative to the largest, are counted as a failure.
const LEAST_EXPONENT: f64 = 690.0;

/// Returns the loss of the discrete Gaussian law in one dimension against itself shifted by `sensitivity` steps; `None` if the
/// shift is not an integer, or if there are too many outcomes.
///
/// # Formula
/// Masses proportional to `e^(-k^2/(2 s^2))`, loss `D (D - 2 k)/(2 s^2)`. Outcomes so far out that their mass would underflow are
/// counted as an infinite loss, of probability at least their mass.
pub(crate) fn gaussian(scale: f64, sensitivity: f64) -> Option<Atoms> {
    let reach = (scale * (2.0 * LEAST_EXPONENT).sqrt()).ceil();
    if !(reach + sensitivity <= MANY && sensitivity == sensitivity.round() && scale > 1e-3) {
        return None;
    }
    let exponent = |k: f64| 0.5 * (k / scale) * (k / scale);
    let (reach, shift) = (reach as i64, sensitivity as i64);
    let mut normaliser = crate::logspace::CompensatedSum::default();
    (-reach..=reach).for_each(|k| normaliser.add((-exponent(k as f64)).exp()));
    let normaliser = normaliser.value();
    let atoms: Vec<Atom> = (-reach..=reach + shift)
        .map(|k| {
            let k = k as f64;
            let mass = |k: f64| (-exponent(k)).exp() / normaliser;
            let loss = sensitivity / scale * ((sensitivity - 2.0 * k) / (2.0 * scale));
            Atom { loss, p: mass(k), q: mass(k - sensitivity) }
        })
        .collect();
    // Beyond the reach the masses fall at least by the factor e^(-reach/s^2) at each step.
    let lost = (-LEAST_EXPONENT).exp() / -(-(reach as f64) / (scale * scale)).exp_m1();
    // The rounding error of an exponent is relative to the exponent.
    let error = |atom: &Atom| f64::EPSILON * (8.0 + 2.0 * -atom.p.min(atom.q).ln());
    Some(Atoms::with_errors(atoms, lost, lost, error).symmetric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss_law::LossLaw;

    #[test]
    fn one_step_of_discrete_laplace_is_a_randomised_response() {
        let law = laplace(1.0, 1).unwrap();
        let p = 1.0 / (1.0 + (-1f64).exp());
        assert!((law.tails(0.0).p_above - p).abs() < 1e-15 && (law.tails(0.0).q_above - (1.0 - p)).abs() < 1e-15);
    }

    #[test]
    fn masses_sum_to_one_and_losses_are_their_ratios() {
        for law in [laplace(3.0, 5).unwrap(), gaussian(2.5, 3.0).unwrap(), gaussian(0.4, 1.0).unwrap()] {
            for loss in law.atoms().0 {
                let (low, high) = (law.tails(loss - 1e-9), law.tails(loss + 1e-9));
                assert!((high.p_above + high.p_below - 1.0).abs() < 1e-14);
                let ratio = ((low.p_above - high.p_above) / (low.q_above - high.q_above)).ln();
                if low.p_above - high.p_above > 1e-3 && low.q_above - high.q_above > 1e-3 {
                    assert!((ratio - loss).abs() < 1e-12, "{loss} {ratio}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_enumerated_is_not_covered() {
        assert!(laplace(1.0, 1 << 40).is_none());
        assert!(gaussian(1e9, 1.0).is_none() && gaussian(2.0, 1.5).is_none() && gaussian(f64::MAX, 1.0).is_none());
    }
}
