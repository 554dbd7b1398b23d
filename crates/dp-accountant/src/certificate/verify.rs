//! Verification of certificates.

use core::fmt;

use super::{Assumption, Certificate, Derivation, EpsilonDelta, NoiseMode, SCHEMA};
use crate::adjacency::AdjacencyKind;
use crate::bound::{self, Theorem};
use crate::error::Error;
use crate::event::DpEvent;
use crate::params::Delta;

/// Largest relative difference between a recorded and a recomputed number. It covers the elementary functions of other hardware
/// and is too small to weaken a guarantee.
const TOLERANCE: f64 = 1e-9;

/// The guarantee that a certificate was found to prove.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verified {
    /// The epsilon that the certificate states.
    pub epsilon: f64,
    /// The delta that the certificate states.
    pub delta: f64,
    /// The relation under which it holds.
    pub adjacency: AdjacencyKind,
    /// The recomputed epsilon; at most `epsilon`, up to rounding.
    pub recomputed_epsilon: f64,
    /// The theorem that gives it.
    pub theorem: Theorem,
}

/// The reason for which a certificate does not hold.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// This version does not know the certificate's schema.
    #[error("the certificate's schema is {found:?}; this version reads {SCHEMA:?}")]
    UnknownSchema {
        /// The schema in the certificate.
        found: String,
    },
    /// No guarantee is claimed.
    #[error(
        "the certificate claims no privacy: the model was trained without noise, or with noise that can be reproduced"
    )]
    NotPrivate,
    /// The certificate claims privacy and states no epsilon.
    #[error("the certificate claims privacy but does not state what epsilon and delta were reached")]
    NothingStated,
    /// The certificate claims privacy and says that no noise was drawn.
    #[error("the certificate claims privacy but says that no noise was drawn")]
    NoNoise,
    /// A stated epsilon or delta is not a valid privacy parameter.
    #[error("the certificate's {part} guarantee is invalid: {error}")]
    InvalidGuarantee {
        /// `requested` or `reached`.
        part: &'static str,
        /// The error in it.
        error: Error,
    },
    /// The stated guarantee exceeds the requested one.
    #[error("the certificate states {name} = {reached:?}, more than the {requested:?} that was asked for")]
    MoreThanRequested {
        /// `epsilon` or `delta`.
        name: &'static str,
        /// The requested value.
        requested: f64,
        /// The achieved value.
        reached: f64,
    },
    /// The recipe's theorem holds under another relation than the stated one.
    #[error("the recipe proves its guarantee under {derived}, the certificate states {stated}")]
    WrongAdjacency {
        /// The relation of the recipe's theorem.
        derived: AdjacencyKind,
        /// The relation in the certificate.
        stated: AdjacencyKind,
    },
    /// The recipe's parameters are refused.
    #[error("the recipe cannot be recomputed: {reason}")]
    Derivation {
        /// The recipe's own error.
        reason: String,
    },
    /// The recipe's release differs from the recorded one.
    #[error("the recorded release is not what the recipe gives: {what} is {recorded}, and should be {derived}")]
    EventMismatch {
        /// The position in the event tree.
        what: String,
        /// The value in the certificate.
        recorded: String,
        /// The value that the recipe gives.
        derived: String,
    },
    /// An assumption of the guarantee is not listed.
    #[error("the certificate does not list an assumption that its guarantee rests on: {}", .assumption.name())]
    MissingAssumption {
        /// The missing assumption.
        assumption: Assumption,
    },
    /// The event tree cannot be accounted for.
    #[error("the release cannot be accounted for: {error}")]
    Accounting {
        /// The error in it.
        error: Error,
    },
    /// The release costs more than stated.
    #[error(
        "the release costs epsilon = {recomputed:?} at delta = {delta:?} ({theorem}), more than the stated {stated:?}"
    )]
    EpsilonTooSmall {
        /// The epsilon in the certificate.
        stated: f64,
        /// The epsilon that follows from the recipe.
        recomputed: f64,
        /// The delta of both.
        delta: f64,
        /// The theorem that gives it.
        theorem: Theorem,
    },
}

impl<D: Derivation> Certificate<D> {
    /// Recomputes the guarantee from the recipe's public parameters.
    ///
    /// The checks, in this order: the schema is known; privacy is claimed, with noise, and stated in valid privacy parameters
    /// that are at most the requested ones; the recipe's relation is the stated one; the recipe gives the recorded event (same
    /// shape, numbers within 1e-9 relatively); all assumptions of the recipe, of the noise and of the absence of a ledger are
    /// listed; and epsilon, recomputed at the stated delta from the *recipe's* event, is at most the stated one (within 1e-9
    /// relatively).
    ///
    /// The model itself is not checked: compare [`model_sha256`](Self::model_sha256) with its hash separately. The
    /// [`assumptions`](Self::assumptions), which only the curator can vouch for, are not checked either.
    ///
    /// # Errors
    /// The first failed check.
    pub fn verify(&self) -> Result<Verified, VerifyError> {
        if self.schema != SCHEMA {
            return Err(VerifyError::UnknownSchema { found: self.schema.clone() });
        }
        if !self.private {
            return Err(VerifyError::NotPrivate);
        }
        let reached = self.reached.ok_or(VerifyError::NothingStated)?;
        if self.noise == NoiseMode::None {
            return Err(VerifyError::NoNoise);
        }
        let delta = check_guarantee("reached", reached)?;
        if let Some(requested) = self.requested {
            check_guarantee("requested", requested)?;
            for (name, requested, reached) in
                [("epsilon", requested.epsilon, reached.epsilon), ("delta", requested.delta, reached.delta)]
            {
                if !(reached <= requested) {
                    return Err(VerifyError::MoreThanRequested { name, requested, reached });
                }
            }
        }
        let derived_adjacency = self.derivation.adjacency();
        if derived_adjacency != self.adjacency {
            return Err(VerifyError::WrongAdjacency { derived: derived_adjacency, stated: self.adjacency });
        }
        let derived = self.derivation.event().map_err(|error| VerifyError::Derivation { reason: error.to_string() })?;
        // Also refuses trees too deep to compare.
        let bound = bound::epsilon(&derived, delta).map_err(|error| VerifyError::Accounting { error })?;
        compare(&self.event, &derived)?;
        self.check_assumptions()?;
        if !(bound.value <= reached.epsilon * (1.0 + TOLERANCE)) {
            return Err(VerifyError::EpsilonTooSmall {
                stated: reached.epsilon,
                recomputed: bound.value,
                delta: reached.delta,
                theorem: bound.theorem,
            });
        }
        Ok(Verified {
            epsilon: reached.epsilon,
            delta: reached.delta,
            adjacency: self.adjacency,
            recomputed_epsilon: bound.value,
            theorem: bound.theorem,
        })
    }

    fn check_assumptions(&self) -> Result<(), VerifyError> {
        let mut needed = self.derivation.assumptions();
        if self.noise == NoiseMode::Rounded {
            needed.push(Assumption::IdealisedFloat);
        }
        // A certificate of this schema has no ledger entry.
        needed.push(Assumption::EarlierRunsNotAccounted);
        match needed.into_iter().find(|assumption| !self.assumptions.contains(assumption)) {
            Some(assumption) => Err(VerifyError::MissingAssumption { assumption }),
            None => Ok(()),
        }
    }
}

fn check_guarantee(part: &'static str, stated: EpsilonDelta) -> Result<Delta, VerifyError> {
    let invalid = |error| VerifyError::InvalidGuarantee { part, error };
    crate::error::non_negative("epsilon", stated.epsilon).map_err(invalid)?;
    Delta::new(stated.delta).map_err(invalid)
}

/// Compares two trees node by node with a stack; `derived` is known to be of bounded depth.
fn compare(recorded: &DpEvent, derived: &DpEvent) -> Result<(), VerifyError> {
    let mut open = vec![(recorded, derived)];
    while let Some((recorded, derived)) = open.pop() {
        let node = derived.name();
        if recorded.name() != node {
            return Err(mismatch("kind of release".to_owned(), recorded.name(), node));
        }
        let (recorded, derived) = (recorded.fields(), derived.fields());
        for (&(name, recorded), &(_, derived)) in recorded.words.iter().zip(&derived.words) {
            if recorded != derived {
                return Err(mismatch(format!("{name} of {node}"), recorded, derived));
            }
        }
        // The integers include the lengths of lists, so that from here on both have the same fields.
        for (&(name, recorded), &(_, derived)) in recorded.integers.iter().zip(&derived.integers) {
            if recorded != derived {
                return Err(mismatch(format!("{name} of {node}"), recorded, derived));
            }
        }
        for (&(name, recorded), &(_, derived)) in recorded.numbers.iter().zip(&derived.numbers) {
            if !((recorded - derived).abs() <= TOLERANCE * derived.abs()) {
                return Err(mismatch(format!("{name} of {node}"), recorded, derived));
            }
        }
        open.extend(recorded.events.into_iter().zip(derived.events).rev());
    }
    Ok(())
}

fn mismatch(what: String, recorded: impl fmt::Debug, derived: impl fmt::Debug) -> VerifyError {
    VerifyError::EventMismatch { what, recorded: format!("{recorded:?}"), derived: format!("{derived:?}") }
}
