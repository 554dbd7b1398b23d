//! Private training of a ranker: PrivBR and its kin, with noise that does not depend on who was drawn.
//!
//! # Formula
//! With `m` lists, of which each takes part in an update by itself with probability `q = 1 - e^(-b/m)`, and `z` the
//! loss's public centre, or 0:
//! ```text
//! h_j = Σ_i (g_i - z_i) φ_i          the gradient of list j, or what its grades make of it
//! S   = Σ_(j drawn) clip_C(h_j)      θ ← θ - η_t (S + N(0, σ² I) + q Σ_(all j) Σ_i z_i φ_i) / (q m)
//! ```
//!
//! # Privacy
//! **The relation** is [`ChangeListLabels`]: documents, their features, the number of lists and of their documents are
//! public; the grades of *one* list are other ones. It says nothing of a user with several lists.
//!
//! **A step.** What list `j` adds to `S` has norm at most `C` whatever its grades are, so two vectors of grades are at most
//! `2C` apart and either is within `C` of a list that was not drawn. The noise is the same for all batches. So a step is
//! [`PoissonSampledReplacement`](DpEvent::PoissonSampledReplacement) with distance `2C` and radius `C`, whose curve is
//! exact (there is its proof), and steps compose, each with the iterate of those before. What is divided by, the public
//! part, steps and normalisation are computed from what is public or released.
//!
//! **Clipping against a known sensitivity.** A weight `min(1, c/Δ_j)` from a bound `Δ_j` of the list's
//! [sensitivity](crate::sensitivity) would be public and leave gradients unbiased, with the same noise; but `‖h_j‖ <=
//! Δ_j/2`, so that clipping to `c/2` shortens no gradient by more, and it is more accurate.
//!
//! **What the source of the method has instead**: noise whose scale is the largest sensitivity *in the batch*. That tells
//! who was drawn, and amplification by sampling is gone: the true epsilon is 2.6 to 13 where 0.76 to 2.4 is claimed
//! (tests of `dp_accountant::sampled_replacement`). Its sign would also climb the loss.
//!
//! **Losses with a large public part** (ListNet, ListMLE). Without clipping they would be far from a list that was not
//! drawn, whatever their grades are, and sampling would hide nothing. Clipped to `C` they are within `C` of it.
//!
//! # References
//! Dissertation on Renyi-DP optimisers and private ranking, chapter 6, Algorithm 6.1 (PrivBR), corrected as said.

use dp_accountant::certificate::{Assumption, Certificate, Derivation, EpsilonDelta, NoiseMode, SCHEMA};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, ChangeListLabels, DpEvent, EventLog, bound, calibrate};
use dp_mechanisms::clip::{ClippingNorm, ExactSum};
use dp_mechanisms::steps::{NoisySteps, StepPlan};
use dp_mechanisms::{Gaussian, L2Sensitivity, PrivacyEvent, ReleaseRng, Released};
use dp_optim::engine::{BatchLaw, Sampler};
use dp_optim::recipes::Budget;
use std::collections::BTreeMap;

use super::descent::{Descent, Observer};
use super::error::TrainError;
use super::gradient::ListGradient;
use super::non_private::check_lists;
use crate::error::Error;
use crate::lists::QueryLists;
use crate::loss::ListLoss;
use crate::scorer::Scorer;

/// A private training of a ranker, before anything is calibrated.
///
/// # Examples
/// ```
/// use dp_accountant::{Delta, Epsilon};
/// use dp_optim::recipes::Budget;
/// use dp_rank::loss::BayesRank;
/// use dp_rank::train::PrivateRanking;
///
/// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-4)? };
/// let recipe = PrivateRanking { batch_size: 10, ..PrivateRanking::new(BayesRank::TOP_1) };
/// let plan = recipe.plan(628, 46, budget)?;
/// // The noise over the distance of two vectors of grades: 2C.
/// assert!((1.0..1.05).contains(&plan.noise_multiplier()), "{}", plan.noise_multiplier());
/// assert!(plan.reached().epsilon <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrivateRanking<L> {
    /// The loss of a list.
    pub loss: L,
    /// b: lists in a batch, on average.
    pub batch_size: u64,
    /// C: what is private about a list's gradient is scaled to this norm at most.
    pub clipping: f64,
    /// Whether the loss's public centre is taken out of what is clipped, and added for all lists. Of a loss that has one it
    /// leaves more room below the clipping norm to what is private; but it is then the only part that is not shortened,
    /// pulls the harder, and ranked worse on MQ2008, the only lists on which the two were compared.
    pub centred: bool,
    /// The steps.
    pub descent: Descent,
    /// How the noise is drawn.
    pub noise_mode: NoiseMode,
}

impl<L: ListLoss> PrivateRanking<L> {
    /// What serves at epsilons about 1, the numbers chosen by a grid on made-up lists ([`synthetic`](crate::synthetic)): batches of forty,
    /// clipped at 0.1, and 400 falling steps from 2 on. At epsilon 0.3 half as long steps are better, at 3 three times as
    /// long ones.
    pub fn new(loss: L) -> Self {
        let descent = Descent { step: 2.0, ..Descent::default() };
        Self { loss, batch_size: 40, clipping: 0.1, centred: false, descent, noise_mode: NoiseMode::Exact }
    }

    /// Calibrates the noise for `lists` lists and as many parameters, before any grade is read.
    ///
    /// # Errors
    /// Numbers outside their range, and a budget that no noise reaches, delta = 0 among them.
    pub fn plan(self, lists: u64, parameters: u64, budget: Budget) -> Result<RankingPlan<L>, TrainError> {
        self.descent.check()?;
        let at = |std_dev: f64| RankingDerivation {
            lists,
            parameters,
            batch_size: self.batch_size,
            updates: self.descent.updates,
            clipping: self.clipping,
            std_dev,
            exact_noise: self.noise_mode == NoiseMode::Exact,
        };
        at(1.0).event()?;
        if !matches!(self.noise_mode, NoiseMode::Exact | NoiseMode::Rounded) {
            return Err(TrainError::NoNoise);
        }
        let event_at = |std_dev: f64| at(std_dev).event().unwrap_or(DpEvent::NonPrivate);
        let std_dev = calibrate::least_scale(budget.epsilon, budget.delta, event_at)?;
        let derivation = at(std_dev);
        let reached = bound::epsilon(&derivation.event()?, budget.delta)?.value;
        Ok(RankingPlan {
            recipe: self,
            derivation,
            requested: EpsilonDelta { epsilon: budget.epsilon.get(), delta: budget.delta.get() },
            reached: EpsilonDelta { epsilon: reached, delta: budget.delta.get() },
        })
    }
}

/// How the noise of a private ranker follows from public numbers; what [`verify`](Certificate::verify) recomputes.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RankingDerivation {
    /// m: number of lists.
    pub lists: u64,
    /// Number of parameters.
    pub parameters: u64,
    /// b: lists in a batch, on average.
    pub batch_size: u64,
    /// T: number of updates.
    pub updates: u64,
    /// C: the clipping norm.
    pub clipping: f64,
    /// σ: standard deviation of the noise on each coordinate of a batch's sum.
    pub std_dev: f64,
    /// Whether the noise is drawn exactly.
    pub exact_noise: bool,
}

impl RankingDerivation {
    fn law(&self) -> BatchLaw {
        BatchLaw::Poisson { mean_darts: self.batch_size.min(self.lists) }
    }

    fn gaussian(&self) -> Result<Gaussian<ChangeListLabels>, TrainError> {
        let norm = ClippingNorm::new(self.clipping)?;
        let mode = if self.exact_noise { NoiseMode::Exact } else { NoiseMode::Rounded };
        let of = |sensitivity| -> Result<_, TrainError> {
            Ok(Gaussian::from_std_dev(sensitivity, self.std_dev)?.with_noise_mode(mode)?)
        };
        // The sum's own sensitivity may be larger by rounding, which depends on the grid and not on it.
        let first = of(L2Sensitivity::new(2.0 * self.clipping)?)?;
        let sum = ExactSum::for_release(self.dim()?, norm.into(), &first, self.lists)?;
        of(sum.sensitivity())
    }

    fn dim(&self) -> Result<usize, TrainError> {
        usize::try_from(self.parameters).map_err(|_| Error::Zero { what: "the number of parameters" }.into())
    }

    fn plan(&self, gaussian: &Gaussian<ChangeListLabels>) -> Result<StepPlan, TrainError> {
        let sampling_rate = self.law().sampling_rate(self.lists)?;
        let radius = gaussian.sensitivity().get() - self.clipping;
        Ok(StepPlan::PoissonSampledReplacement { sampling_rate, radius, steps: self.updates })
    }
}

impl Derivation for RankingDerivation {
    type Error = TrainError;

    fn event(&self) -> Result<DpEvent, TrainError> {
        let gaussian = self.gaussian()?;
        Ok(self.plan(&gaussian)?.event(gaussian.event()))
    }

    fn adjacency(&self) -> AdjacencyKind {
        AdjacencyKind::ChangeListLabels
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let text =
            "documents, their features and the lengths of lists are public; one list holds all labels of one unit";
        let mut assumptions = vec![Assumption::PublicN, Assumption::Other { text: text.to_owned() }];
        if !self.exact_noise {
            assumptions.push(Assumption::IdealisedFloat);
        }
        assumptions
    }
}

/// A private training of a ranker with its noise.
#[derive(Debug, Clone, PartialEq)]
pub struct RankingPlan<L> {
    recipe: PrivateRanking<L>,
    derivation: RankingDerivation,
    requested: EpsilonDelta,
    reached: EpsilonDelta,
}

impl<L: ListLoss> RankingPlan<L> {
    /// Standard deviation of the noise over the distance `2C` of two vectors of grades.
    pub fn noise_multiplier(&self) -> f64 {
        self.derivation.std_dev / (2.0 * self.derivation.clipping)
    }

    /// How the release follows from public numbers.
    pub fn derivation(&self) -> &RankingDerivation {
        &self.derivation
    }

    /// What the whole training costs.
    ///
    /// # Errors
    /// None for a plan that was made.
    pub fn event(&self) -> Result<DpEvent, TrainError> {
        self.derivation.event()
    }

    /// The guarantee, at most what was asked for.
    pub fn reached(&self) -> EpsilonDelta {
        self.reached
    }

    /// Trains from `start`, which must not depend on grades. The observer sees released parameters only.
    ///
    /// # Privacy
    /// As the [module](self) says: all iterates may be published.
    ///
    /// # Errors
    /// Lists or a scorer of another size than planned. Nothing is released then.
    pub fn train<S: Scorer, R: ReleaseRng + ?Sized>(
        &self,
        scorer: &S,
        start: Vec<f64>,
        lists: &QueryLists,
        rng: &mut R,
        observer: &mut Observer<'_>,
    ) -> Result<TrainedRanker, TrainError> {
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
        let (law, gaussian) = (derivation.law(), derivation.gaussian()?);
        let mean_size = law.mean_size(derivation.lists)?;
        // A key of its own for the batches: independent of the noise and of other runs.
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let mut sampler = Sampler::new(law, derivation.lists, key)?;
        let mut log = EventLog::new();
        let mut steps = NoisySteps::start(gaussian.into(), derivation.plan(&gaussian)?, &mut log, rng)?;
        let norm = ClippingNorm::new(derivation.clipping)?;
        let mut sum = ExactSum::for_release(derivation.dim()?, norm.into(), &gaussian, derivation.lists)?;
        let mut gradients = ListGradient::new(scorer);
        let mut of_list = vec![0.0; scorer.parameters()];
        let centred = recipe.centred && recipe.loss.has_public_centre();
        let direction = |_: u64, parameters: &[f64], downhill: &mut [f64]| -> Result<(), TrainError> {
            for &list in sampler.draw()? {
                of_list.fill(0.0);
                let list = lists.list(list as usize);
                if centred {
                    gradients.add_private(&recipe.loss, parameters, list, &mut of_list);
                } else {
                    gradients.add_whole(&recipe.loss, parameters, list, &mut of_list);
                }
                sum.add(&of_list)?;
            }
            let noisy = steps.noisy(sum.finish(), rng)?;
            if centred {
                let weight = mean_size / derivation.lists as f64;
                for list in lists.iter() {
                    gradients.add_public(&recipe.loss, parameters, list.features(), weight, downhill);
                }
            }
            downhill.iter_mut().zip(noisy).for_each(|(along, noisy)| *along = (*along + noisy) / mean_size);
            Ok(())
        };
        let weights = recipe.descent.run(scorer, start, direction, observer)?;
        let weights = steps.finish(weights, &mut log)?;
        let (derivation, requested, reached) = (derivation.clone(), *requested, *reached);
        Ok(TrainedRanker { weights, log, derivation, noise: recipe.noise_mode, requested, reached })
    }
}

/// What a private training of a ranker returns.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedRanker {
    /// The scorer's parameters.
    pub weights: Released<Vec<f64>>,
    /// Everything that was released.
    pub log: EventLog<ChangeListLabels>,
    /// How it was derived.
    pub derivation: RankingDerivation,
    /// How the noise was drawn.
    pub noise: NoiseMode,
    /// What was asked for.
    pub requested: EpsilonDelta,
    /// What was reached.
    pub reached: EpsilonDelta,
}

impl TrainedRanker {
    /// The certificate of this release, per list; a run with reproducible noise is certified as not private.
    ///
    /// `model_sha256` is the hash of the model as published, and `versions` the crates that made it; this crate adds
    /// itself.
    pub fn certificate(
        &self,
        further: Vec<Assumption>,
        model_sha256: String,
        mut versions: BTreeMap<String, String>,
    ) -> Certificate<RankingDerivation> {
        let private = self.log.is_private();
        let mut assumptions = self.derivation.assumptions();
        let of_releases = self.log.assumptions().iter().cloned();
        for assumption in of_releases.chain([Assumption::EarlierRunsNotAccounted]).chain(further) {
            if !assumptions.contains(&assumption) {
                assumptions.push(assumption);
            }
        }
        versions.entry(env!("CARGO_PKG_NAME").to_owned()).or_insert_with(|| env!("CARGO_PKG_VERSION").to_owned());
        Certificate {
            schema: SCHEMA.to_owned(),
            adjacency: AdjacencyKind::ChangeListLabels,
            unit: Unit::List,
            private,
            requested: Some(self.requested),
            reached: private.then_some(self.reached),
            event: self.log.to_event(),
            noise: self.noise,
            derivation: self.derivation.clone(),
            assumptions,
            model_sha256,
            versions,
        }
    }
}
