//! Any private recipe, for callers that choose one at run time.

use dp_data::SampleSource;
use dp_losses::Real;
use dp_mechanisms::ReleaseRng;

use super::admm_obj_pert::{self, AdmmObjPert};
use super::bolt_on::{self, BoltOn};
use super::bst14::{self, Bst14};
use super::dp_ftrl::{self, DpFtrl};
use super::dp_newton::{self, DpNewton};
use super::dp_sgd::{self, DpSgd};
use super::dp_svrg::{self, DpSvrg};
use super::majority::{self, Majority};
use super::noisy_moments::{self, NoisyMoments};
use super::obj_pert::{self, ObjPert};
use super::one_vs_all::{self, OneVsAll};
use super::phased_erm::{self, PhasedErm};
use super::phased_sgd::{self, PhasedSgd};
use super::pnsgd::{self, Pnsgd};
use super::priv_gene::{self, PrivGene};
use super::promise::Promise;
use super::recipe::{Budget, Planned, Recipe, RecordAdjacency, Summary};
use super::rsgd_ar::{self, RsgdAr};
use super::scs13::{self, Scs13};
use super::searched_descent::{self, SearchedDescent};
use super::snowball_sgd::{self, SnowballSgd};
use crate::derivation::Derivation;
use crate::engine::Control;
use crate::error::Error;
use crate::trained::Trained;
use crate::tuning::portions::{self, Portions};
use crate::tuning::random_stopping::{self, RandomStopping};

/// One enumeration of recipes and one of their plans, with every call handed on.
macro_rules! any_recipe {
    ($($(#[$doc:meta])* $variant:ident($recipe:ty, $plan:ident :: Plan)),+ $(,)?) => {
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
            $($(#[$doc])* $variant($recipe)),+
        }

        /// A planned release of any algorithm.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum AnyPlan<A: RecordAdjacency> {
            $($(#[$doc])* $variant($plan::Plan<A>)),+
        }

        $(impl From<$recipe> for AnyRecipe {
            fn from(recipe: $recipe) -> Self {
                Self::$variant(recipe)
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
        }

        impl<A: RecordAdjacency> Planned<A> for AnyPlan<A> {
            fn promise(&self) -> &Promise {
                match self {
                    $(Self::$variant(plan) => Planned::promise(plan)),+
                }
            }

            fn derivation(&self) -> Derivation {
                match self {
                    $(Self::$variant(plan) => Planned::derivation(plan)),+
                }
            }

            fn summary(&self) -> Summary {
                match self {
                    $(Self::$variant(plan) => Planned::summary(plan)),+
                }
            }

            fn train<F: Real>(
                &self,
                source: &mut dyn SampleSource<F>,
                rng: &mut (impl ReleaseRng + ?Sized),
                control: &mut Control<'_>,
            ) -> Result<Trained<F, A>, Error> {
                match self {
                    $(Self::$variant(plan) => Planned::train(plan, source, rng, control)),+
                }
            }
        }
    };
}

any_recipe! {
    /// [`AdmmObjPert`].
    AdmmObjPert(AdmmObjPert, admm_obj_pert::Plan),
    /// [`BoltOn`].
    BoltOn(BoltOn, bolt_on::Plan),
    /// [`Bst14`].
    Bst14(Bst14, bst14::Plan),
    /// [`DpFtrl`].
    DpFtrl(DpFtrl, dp_ftrl::Plan),
    /// [`DpNewton`].
    DpNewton(DpNewton, dp_newton::Plan),
    /// [`DpSgd`].
    DpSgd(DpSgd, dp_sgd::Plan),
    /// [`DpSvrg`].
    DpSvrg(DpSvrg, dp_svrg::Plan),
    /// [`Majority`].
    Majority(Majority, majority::Plan),
    /// [`NoisyMoments`].
    NoisyMoments(NoisyMoments, noisy_moments::Plan),
    /// [`ObjPert`].
    ObjPert(ObjPert, obj_pert::Plan),
    /// [`OneVsAll`].
    OneVsAll(OneVsAll, one_vs_all::Plan),
    /// [`PhasedErm`].
    PhasedErm(PhasedErm, phased_erm::Plan),
    /// [`PhasedSgd`].
    PhasedSgd(PhasedSgd, phased_sgd::Plan),
    /// [`Pnsgd`].
    Pnsgd(Pnsgd, pnsgd::Plan),
    /// [`PrivGene`].
    PrivGene(PrivGene, priv_gene::Plan),
    /// [`RsgdAr`].
    RsgdAr(RsgdAr, rsgd_ar::Plan),
    /// [`SearchedDescent`].
    SearchedDescent(SearchedDescent, searched_descent::Plan),
    /// [`SnowballSgd`].
    SnowballSgd(SnowballSgd, snowball_sgd::Plan),
    /// [`Scs13`].
    Scs13(Scs13, scs13::Plan),
    /// [`Portions`].
    Portions(Portions, portions::Plan),
    /// [`RandomStopping`].
    RandomStopping(RandomStopping, random_stopping::Plan),
}
