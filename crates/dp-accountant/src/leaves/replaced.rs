//! What holds under add/remove, read for a replaced record.
//!
//! Every release is read as one about two records, except Gaussian noise about a Poisson sample, whose own pair of laws is
//! known. There the event promises that the sample holds each record independently, and that one record of the sample moves
//! the value by at most its sensitivity. So, given who else takes part, which has the same law for both neighbours, the
//! value is `v` without the record, `v + a` with it, and `v + b` with what it is replaced by, where `|a|` and `|b|` are at
//! most the sensitivity: contributions of at most that radius, at most twice that apart, whatever the value is a function
//! of. That is the pair of [`sampled_replacement`] at `r = 1/2`, at every step, whatever the outcomes before it were.
//!
//! **Several Gaussian releases about the same sample**, of which each sees those before, are one whose squared ratios of
//! sensitivity to noise are added up. In the proof there `X_1` and `X_2` are products of a factor for each release. Let all
//! releases after the j-th have their largest covariances. The mean given the first j is then `f(X_1, X_2) = E (1 - X_1 Y_1 -
//! X_2 Y_2)_+`, with lognormal `Y`, whose second derivatives `E Y_i Y_k (..)''` are all non-negative; that is all that Kahane's
//! inequality asks of it, so that the j-th may have its largest covariances too, whatever it depends on.
//!
//! What is only known to be `mu`-Gaussian-DP has no such reading: how the three outputs lie is not known.

use super::combined::group;
use super::{Leaf, Leaves, Reading, multiply, read_inner};
use crate::error::Error;
use crate::event::DpEvent;
use crate::relations::Relations;
use crate::sampled_replacement::Pair;

/// The leaves of `inner` for a replaced record.
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
                // Its depth was checked above.
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

/// Whether all that is released is the value with Gaussian noise, about a sample or not.
fn is_gaussian_noise(event: &DpEvent) -> bool {
    match event {
        DpEvent::Gaussian { .. } | DpEvent::NoOp => true,
        DpEvent::PoissonSampled { event, .. } | DpEvent::SelfComposed { event, .. } => is_gaussian_noise(event),
        DpEvent::Composed { events } => events.iter().all(is_gaussian_noise),
        _ => false,
    }
}
