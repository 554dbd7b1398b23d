//! The private training run of a ranker and its result.

use std::collections::BTreeMap;

use dp_accountant::certificate::{Assumption, Certificate, Derivation as _, EpsilonDelta, Figures, NoiseMode};
use dp_accountant::{DpEvent, EventLog};
use dp_mechanisms::steps::NoisySteps;
use dp_mechanisms::{ReleaseRng, Released};
use dp_optim::engine::Sampler;

use super::contribution::Contribution;
use super::{PrivateRanking, RankingDerivation};
use crate::error::Error;
use crate::lists::QueryLists;
use crate::loss::ListLoss;
use crate::scorer::Scorer;
use crate::train::descent::Observer;
use crate::train::error::TrainError;
use crate::train::non_private::check_lists;
use crate::train::protect::{Grades, Protect};

/// A private training of a ranker with calibrated noise.
#[derive(Debug, Clone, PartialEq)]
pub struct RankingPlan<L, P = Grades> {
    pub(super) recipe: PrivateRanking<L, P>,
    pub(super) derivation: RankingDerivation,
    pub(super) requested: EpsilonDelta,
    pub(super) reached: EpsilonDelta,
}

impl<L: ListLoss, P: Protect> RankingPlan<L, P> {
    /// Returns the standard deviation of the noise over the distance of neighbouring sums: `2C`, or `C` for the presence of a
    /// list.
    pub fn noise_multiplier(&self) -> f64 {
        self.derivation.std_dev / self.derivation.distance()
    }

    /// Returns the derivation of the release from public numbers.
    pub fn derivation(&self) -> &RankingDerivation {
        &self.derivation
    }

    /// Returns the privacy event of the whole training.
    ///
    /// # Errors
    /// None after successful planning.
    pub fn event(&self) -> Result<DpEvent, TrainError> {
        self.derivation.event()
    }

    /// Returns the attained guarantee, at most the requested one.
    pub fn reached(&self) -> EpsilonDelta {
        self.reached
    }

    /// Trains from `start`, which must not depend on protected data. The observer sees released parameters only.
    ///
    /// # Privacy
    /// As the [module](super) says: all iterates may be published.
    ///
    /// # Errors
    /// If lists or scorer have another size than planned. Nothing is released then.
    pub fn train<S: Scorer, R: ReleaseRng + ?Sized>(
        &self,
        scorer: &S,
        start: Vec<f64>,
        lists: &QueryLists,
        rng: &mut R,
        observer: &mut Observer<'_>,
    ) -> Result<TrainedRanker<P>, TrainError> {
        let Self { recipe, derivation, requested, reached } = self;
        check_lists(scorer, lists)?;
        for (what, found, expected) in [
            ("the lists", lists.len() as u64, derivation.lists),
            ("the scorer", scorer.parameters() as u64, derivation.parameters),
        ] {
            if found != expected {
                let size = |value| usize::try_from(value).unwrap_or(usize::MAX);
                return Err(Error::Shape { what, found: size(found), expected: size(expected) }.into());
            }
        }
        let (law, gaussian) = (derivation.law(), derivation.gaussian::<P::Relation>()?);
        let mean_size = law.mean_size(derivation.lists)?;
        // A separate key for the batches, independent of the noise and of other runs.
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let mut sampler = Sampler::new(law, derivation.lists, key)?;
        let mut log = EventLog::new();
        let mut steps = NoisySteps::start(gaussian.into(), derivation.plan(&gaussian)?, &mut log, rng)?;
        let mut sum = derivation.sum(&gaussian)?;
        let thinning = recipe.thin.then(|| {
            let mut key = [0; 32];
            rng.fill_bytes(&mut key);
            key
        });
        let contribution = Contribution::new(scorer, &recipe.loss).centred(recipe.centred).thinned(thinning);
        let mut contribution = contribution.scaled(derivation.scaling, derivation.clipping);
        let rate = mean_size / derivation.lists as f64;
        let direction = |_: u64, parameters: &[f64], downhill: &mut [f64]| -> Result<(), TrainError> {
            for &list in sampler.draw()? {
                sum.add(contribution.of(parameters, lists.list(list as usize)))?;
            }
            let noisy = steps.noisy(sum.finish(), rng)?;
            contribution.add_public(parameters, lists.iter(), rate, downhill);
            downhill.iter_mut().zip(noisy).for_each(|(along, noisy)| *along = (*along + noisy) / mean_size);
            Ok(())
        };
        let weights = recipe.descent.run(scorer, start, direction, observer)?;
        let weights = steps.finish(weights, &mut log)?;
        let (derivation, requested, reached) = (derivation.clone(), *requested, *reached);
        let protects = recipe.protects;
        Ok(TrainedRanker { weights, protects, log, derivation, noise: recipe.noise_mode, requested, reached })
    }
}

/// The result of a private training of a ranker.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedRanker<P: Protect = Grades> {
    /// The scorer's parameters.
    pub weights: Released<Vec<f64>>,
    /// The log of all releases.
    pub log: EventLog<P::Relation>,
    /// The protected data.
    pub protects: P,
    /// The derivation of the noise.
    pub derivation: RankingDerivation,
    /// The sampling mode of the noise.
    pub noise: NoiseMode,
    /// The requested guarantee.
    pub requested: EpsilonDelta,
    /// The attained guarantee.
    pub reached: EpsilonDelta,
}

impl<P: Protect> TrainedRanker<P> {
    /// Returns the certificate of this release, for one list or document; a run with reproducible noise is certified as not
    /// private.
    ///
    /// `model_sha256` is the hash of the published model, and `versions` the crates that produced it; this crate adds itself.
    pub fn certificate(
        &self,
        further: Vec<Assumption>,
        model_sha256: String,
        versions: BTreeMap<String, String>,
    ) -> Certificate<RankingDerivation> {
        let figures = Figures { requested: self.requested, reached: self.reached };
        Certificate::of_log(&self.log, self.derivation.unit(), self.derivation.clone(), self.noise, figures)
            .assuming(further)
            .of_model(model_sha256, versions)
            .made_by(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }
}
