//! Guarantees under add/remove, read for a replaced record.
//!
//! Every release is read as one for two records, except Gaussian noise on a Poisson sample, whose own pair of laws is known.
//! There the event states that the sample holds each record independently, and that one record of the sample moves the value by
//! at most its sensitivity. Given the other records of the sample, whose law is the same for both neighbours, the value is `v`
//! without the record, `v + a` with it, and `v + b` with its replacement, where `|a|` and `|b|` are at most the sensitivity:
//! contributions of at most that radius, at a distance of at most twice that, for any function of the sample. This is the pair of
//! [`sampled_replacement`] at `r = 1/2`, at every step, for all earlier outcomes.
//!
//! **Several Gaussian releases of the same sample**, each of which may depend on those before, are one whose squared ratios of
//! sensitivity to noise are summed. In the proof there, `X_1` and `X_2` are products of a factor for each release. Let all
//! releases after the j-th have their largest covariances. The mean given the first j is then `f(X_1, X_2) = E (1 - X_1 Y_1 - X_2
//! Y_2)_+`, with lognormal `Y`, whose second derivatives `E Y_i Y_k (..)''` are all non-negative. Kahane's inequality requires
//! only this, so that the j-th release may have its largest covariances too, whatever it depends on.
//!
//! A release that is only known to be `mu`-Gaussian-DP has no such reading, because the joint position of the three outputs is
//! not known.

use super::combined::group;
use super::{Leaf, Leaves, Reading, multiply, read_inner};
use crate::error::Error;
use crate::event::DpEvent;
use crate::relations::Relations;
use crate::sampled_replacement::Pair;

/// Returns the leaves of `inner` for a replaced record.
pub(super) fn add_remove_twice(inner: &DpEvent, depth: usize) -> Result<Leaves, Error> {
    let (mut replaced, mut rest) = (Reading::new(), Reading::new());
    rest.narrowed = read_inner(inner, depth)?.narrowed;
    rest.narrowed.require_some_of(Relations::ADD_REMOVE)?;
    let mut open = vec![(inner, 1)];
    while let Some((event, count)) = open.pop() {
        match event {
            DpEvent::Composed { events } => open.extend(events.iter().rev().map(|event| (event, count))),
            DpEvent::SelfComposed { event, count: times } => open.push((event, multiply(count, *times)?)),
            _ => {
                // The depth was checked above.
                let Reading { leaves, .. } = read_inner(event, 0)?;
                match leaves.as_slice() {
                    [(Leaf::PoissonGaussian { rate, mu }, 1)] if is_gaussian_noise(event) => {
                        replaced.push(Leaf::PoissonReplacement(Pair::new(*rate, 2.0 * mu, 0.5)), count);
                    }
                    _ => {
                        for (leaf, times) in leaves {
                            rest.push(leaf, multiply(count, times)?);
                        }
                    }
                }
            }
        }
    }
    let mut found = group(2, rest.leaves)?;
    found.extend(replaced.leaves);
    Ok(found)
}

/// Returns whether the only release is the value with Gaussian noise, from a sample or not.
fn is_gaussian_noise(event: &DpEvent) -> bool {
    match event {
        DpEvent::Gaussian { .. } | DpEvent::NoOp => true,
        DpEvent::PoissonSampled { event, .. } | DpEvent::SelfComposed { event, .. } => is_gaussian_noise(event),
        DpEvent::Composed { events } => events.iter().all(is_gaussian_noise),
        _ => false,
    }
}
