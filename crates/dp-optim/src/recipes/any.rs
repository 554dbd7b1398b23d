//! The algorithms of this crate as one type, for a choice at run time and for files.

use dp_accountant::certificate::{Assumption, Derivation as Derives};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::admm_obj_pert::AdmmObjPert;
use super::at_base_rate::{AtBaseRate, AtBaseRateDerivation};
use super::bolt_on::{BoltOn, OutputRun};
use super::bst14::Bst14;
use super::dp_ftrl::DpFtrl;
use super::dp_newton::DpNewton;
use super::dp_sgd::DpSgd;
use super::dp_svrg::DpSvrg;
use super::majority::Majority;
use super::noisy_moments::NoisyMoments;
use super::non_private::NonPrivateDerivation;
use super::obj_pert::ObjPert;
use super::one_vs_all::{OneVsAll, OneVsAllDerivation};
use super::per_unit::{PerUnit, PerUnitDerivation};
use super::phased_erm::PhasedErm;
use super::phased_sgd::PhasedSgd;
use super::pnsgd::Pnsgd;
use super::priv_gene::PrivGene;
use super::promise::Promise;
use super::recipe::{Budget, NOT_JOINT, Nesting, Planned, Recipe, RecordAdjacency, Summary};
use super::rsgd_ar::RsgdAr;
use super::scs13::Scs13;
use super::searched_descent::SearchedDescent;
use super::snowball_sgd::SnowballSgd;
use crate::derivation::{Choice, Derivation, DerivesModel, ModelTerms, WeightNoise};
use crate::engine::Control;
use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::trained::Trained;
use crate::tuning::composition::{Composition, CompositionDerivation};
use crate::tuning::portions::{Portions, PortionsDerivation};
use crate::tuning::random_stopping::{RandomStopping, RandomStoppingDerivation};

/// Defines an enumeration of recipes, one of their plans and one of their derivations, which forward every call.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident($derivation:ty)),+ $(,)?) => {
        /// A private recipe of any algorithm.
        ///
        /// # Examples
        /// ```
        /// use dp_accountant::{Delta, Epsilon, ReplaceOne};
        /// use dp_losses::LossKind;
        /// use dp_optim::recipes::{AnyRecipe, BoltOn, Budget, Planned, Recipe};
        ///
        /// let recipe = AnyRecipe::from(BoltOn::strongly_convex(LossKind::Logistic, 0.01));
        /// let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::ZERO };
        /// let plan = recipe.plan_copies::<ReplaceOne>(10_000, 5, budget, 1)?;
        /// assert!(plan.reached().epsilon <= 1.0);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case"))]
        #[non_exhaustive]
        pub enum AnyRecipe {
            $($(#[$doc])* $variant($variant)),+
        }

        /// A planned release of any algorithm.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum AnyPlan<A: RecordAdjacency> {
            $($(#[$doc])* $variant(<$variant as Recipe>::Plan<A>)),+
        }

        $(impl From<$variant> for AnyRecipe {
            fn from(recipe: $variant) -> Self {
                Self::$variant(recipe)
            }
        }

        impl From<$derivation> for AnyDerivation {
            fn from(derivation: $derivation) -> Self {
                Self::$variant(derivation)
            }
        })+

        impl Recipe for AnyRecipe {
            type Plan<A: RecordAdjacency> = AnyPlan<A>;

            fn plan_copies<A: RecordAdjacency>(
                &self,
                n: u64,
                dim: u64,
                budget: Budget,
                copies: u64,
            ) -> Result<AnyPlan<A>, Error> {
                Ok(match self {
                    $(Self::$variant(recipe) => AnyPlan::$variant(recipe.plan_copies(n, dim, budget, copies)?)),+
                })
            }

            fn plan_joint<A: RecordAdjacency>(
                &self,
                n: u64,
                dim: u64,
                classes: u32,
                budget: Budget,
                copies: u64,
            ) -> Result<(OutputRun, AnyDerivation), Error> {
                match self {
                    $(Self::$variant(recipe) => {
                        let (run, one) = recipe.plan_joint::<A>(n, dim, classes, budget, copies)?;
                        Ok((run, one.into()))
                    }),+
                }
            }
        }

        impl<A: RecordAdjacency> Planned<A> for AnyPlan<A> {
            type Derivation = AnyDerivation;

            fn promise(&self) -> &Promise {
                match self {
                    $(Self::$variant(plan) => Planned::promise(plan)),+
                }
            }

            fn derivation(&self) -> AnyDerivation {
                match self {
                    $(Self::$variant(plan) => Planned::derivation(plan).into()),+
                }
            }

            fn summary(&self) -> Summary {
                match self {
                    $(Self::$variant(plan) => Planned::summary(plan)),+
                }
            }

            fn memory(&self) -> u64 {
                match self {
                    $(Self::$variant(plan) => Planned::memory(plan)),+
                }
            }

            fn train<F: Real>(
                &self,
                source: &mut dyn RowSource<F>,
                rng: &mut (impl ReleaseRng + ?Sized),
                control: &mut Control<'_>,
            ) -> Result<Trained<F, A, AnyDerivation>, Error> {
                match self {
                    $(Self::$variant(plan) => {
                        Ok(Planned::train(plan, source, rng, control)?.map_derivation(AnyDerivation::from))
                    }),+
                }
            }
        }

        /// The derivation of a release by any algorithm.
        #[derive(Debug, Clone, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case"))]
        #[non_exhaustive]
        pub enum AnyDerivation {
            $($(#[$doc])* $variant($derivation),)+
            /// [`recipes::non_private`](crate::recipes::non_private): no guarantee.
            NonPrivate(NonPrivateDerivation),
        }

        impl DerivesModel for AnyDerivation {
            fn records(&self) -> u64 {
                match self {
                    $(Self::$variant(derivation) => derivation.records(),)+
                    Self::NonPrivate(_) => 0,
                }
            }

            fn units(&self) -> u64 {
                match self {
                    $(Self::$variant(derivation) => derivation.units(),)+
                    Self::NonPrivate(_) => 0,
                }
            }

            fn unit(&self) -> Unit {
                match self {
                    $(Self::$variant(derivation) => derivation.unit(),)+
                    Self::NonPrivate(_) => Unit::Record,
                }
            }

            fn model_terms(&self) -> ModelTerms {
                match self {
                    $(Self::$variant(derivation) => derivation.model_terms(),)+
                    Self::NonPrivate(_) => ModelTerms::NONE,
                }
            }

            fn work(&self) -> u64 {
                match self {
                    $(Self::$variant(derivation) => derivation.work(),)+
                    Self::NonPrivate(_) => 0,
                }
            }

            fn release_lattice(&self) -> Result<ReleaseLattice, Error> {
                match self {
                    $(Self::$variant(derivation) => derivation.release_lattice(),)+
                    Self::NonPrivate(_) => Ok(ReleaseLattice::ANYWHERE),
                }
            }

            fn nesting(&self) -> Nesting {
                match self {
                    $(Self::$variant(derivation) => derivation.nesting(),)+
                    Self::NonPrivate(_) => Nesting::NonPrivate,
                }
            }

            fn weight_noise(&self) -> Option<WeightNoise> {
                match self {
                    $(Self::$variant(derivation) => derivation.weight_noise(),)+
                    Self::NonPrivate(_) => None,
                }
            }

            fn choice(&self) -> Option<Choice> {
                match self {
                    $(Self::$variant(derivation) => derivation.choice(),)+
                    Self::NonPrivate(_) => None,
                }
            }

            fn joint_event(&self, classes: u32) -> Result<DpEvent, Error> {
                match self {
                    $(Self::$variant(derivation) => derivation.joint_event(classes),)+
                    Self::NonPrivate(_) => Err(NOT_JOINT),
                }
            }
        }

        impl Derives for AnyDerivation {
            type Error = Error;

            fn event(&self) -> Result<DpEvent, Error> {
                match self {
                    $(Self::$variant(derivation) => derivation.event(),)+
                    Self::NonPrivate(_) => Ok(DpEvent::NonPrivate),
                }
            }

            fn adjacency(&self) -> AdjacencyKind {
                match self {
                    $(Self::$variant(derivation) => derivation.adjacency(),)+
                    Self::NonPrivate(_) => AdjacencyKind::ReplaceOne,
                }
            }

            fn assumptions(&self) -> Vec<Assumption> {
                match self {
                    $(Self::$variant(derivation) => derivation.assumptions(),)+
                    Self::NonPrivate(_) => Vec::new(),
                }
            }
        }
    };
}

algorithms! {
    /// [`AdmmObjPert`].
    AdmmObjPert(Derivation<AdmmObjPert>),
    /// [`AtBaseRate`].
    AtBaseRate(AtBaseRateDerivation),
    /// [`BoltOn`].
    BoltOn(Derivation<BoltOn>),
    /// [`Bst14`].
    Bst14(Derivation<Bst14>),
    /// [`DpFtrl`].
    DpFtrl(Derivation<DpFtrl>),
    /// [`DpNewton`].
    DpNewton(Derivation<DpNewton>),
    /// [`DpSgd`].
    DpSgd(Derivation<DpSgd>),
    /// [`DpSvrg`].
    DpSvrg(Derivation<DpSvrg>),
    /// [`Majority`].
    Majority(Derivation<Majority>),
    /// [`NoisyMoments`].
    NoisyMoments(Derivation<NoisyMoments>),
    /// [`ObjPert`].
    ObjPert(Derivation<ObjPert>),
    /// [`OneVsAll`].
    OneVsAll(OneVsAllDerivation),
    /// [`PerUnit`].
    PerUnit(PerUnitDerivation),
    /// [`PhasedErm`].
    PhasedErm(Derivation<PhasedErm>),
    /// [`PhasedSgd`].
    PhasedSgd(Derivation<PhasedSgd>),
    /// [`Pnsgd`].
    Pnsgd(Derivation<Pnsgd>),
    /// [`PrivGene`].
    PrivGene(Derivation<PrivGene>),
    /// [`RsgdAr`].
    RsgdAr(Derivation<RsgdAr>),
    /// [`SearchedDescent`].
    SearchedDescent(Derivation<SearchedDescent>),
    /// [`SnowballSgd`].
    SnowballSgd(Derivation<SnowballSgd>),
    /// [`Scs13`].
    Scs13(Derivation<Scs13>),
    /// [`Composition`].
    Composition(CompositionDerivation),
    /// [`Portions`].
    Portions(PortionsDerivation),
    /// [`RandomStopping`].
    RandomStopping(RandomStoppingDerivation),
}

impl AnyDerivation {
    /// Returns the derivation, or `None` for the baseline without privacy.
    pub fn private(&self) -> Option<&Self> {
        (self.nesting() != Nesting::NonPrivate).then_some(self)
    }
}
