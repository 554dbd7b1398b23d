//! How a release followed from public parameters, for every recipe of this crate: what a certificate carries.

use dp_accountant::certificate::{Assumption, Derivation as Derives, NoiseMode};
use dp_accountant::{AdjacencyKind, DpEvent};
use dp_losses::LossKind;

use crate::error::Error;
use crate::lattice::ReleaseLattice;
use crate::recipes::admm_obj_pert::AdmmObjPertDerivation;
use crate::recipes::bolt_on::BoltOnDerivation;
use crate::recipes::bst14::Bst14Derivation;
use crate::recipes::dp_ftrl::DpFtrlDerivation;
use crate::recipes::dp_newton::DpNewtonDerivation;
use crate::recipes::dp_sgd::DpSgdDerivation;
use crate::recipes::dp_svrg::DpSvrgDerivation;
use crate::recipes::majority::MajorityDerivation;
use crate::recipes::noisy_moments::NoisyMomentsDerivation;
use crate::recipes::non_private::NonPrivateDerivation;
use crate::recipes::obj_pert::ObjPertDerivation;
use crate::recipes::one_vs_all::OneVsAllDerivation;
use crate::recipes::phased_erm::PhasedErmDerivation;
use crate::recipes::phased_sgd::PhasedSgdDerivation;
use crate::recipes::pnsgd::PnsgdDerivation;
use crate::recipes::priv_gene::PrivGeneDerivation;
use crate::recipes::rsgd_ar::RsgdArDerivation;
use crate::recipes::scs13::Scs13Derivation;
use crate::recipes::searched_descent::SearchedDescentDerivation;
use crate::recipes::snowball_sgd::SnowballSgdDerivation;
use crate::tuning::portions::PortionsDerivation;
use crate::tuning::random_stopping::RandomStoppingDerivation;

/// What a private recipe's derivation demands of the model that it belongs to.
///
/// A certificate speaks of a model: the two must agree on these, or the guarantee is that of another training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelTerms {
    /// Number of weights, of all models together.
    pub weights: u64,
    /// Number of models that lie side by side in the weights: one, or one for each class against the rest.
    pub models: u64,
    /// The loss that it was trained with.
    pub loss: LossKind,
    /// Bound on the rows' L2 norm that training relied on.
    pub row_norm: f64,
    /// Bound on the targets' size that training relied on.
    pub target_bound: f64,
    /// How noise was drawn.
    pub noise_mode: NoiseMode,
}

impl ModelTerms {
    /// What no model meets, for a derivation whose event is refused.
    pub(crate) const NONE: Self = Self {
        models: 0,
        weights: 0,
        loss: LossKind::Logistic,
        row_norm: 0.0,
        target_bound: 0.0,
        noise_mode: NoiseMode::Exact,
    };
}

/// Steps that the accounting of one release takes, at most about; see [`DerivesModel::work`].
pub(crate) const RELEASE: u64 = 1 << 24;

/// A private recipe's derivation, which also says what it demands of its model.
pub trait DerivesModel: Derives<Error = Error> {
    /// Number of records that the release is planned for, public.
    fn records(&self) -> u64;

    /// What the model has to be.
    fn model_terms(&self) -> ModelTerms;

    /// What the released weights can be. See [`lattice`](crate::lattice) for which recipe is held to what.
    ///
    /// # Errors
    /// Those of [`event`](Derives::event), and a derivation that is not of a released model.
    fn release_lattice(&self) -> Result<ReleaseLattice, Error>;

    /// About how many steps it takes to recompute the event and its cost, in the order of five nanoseconds each; known at
    /// once and from the derivation alone, so that nobody has to recompute a stranger's to learn that it takes days.
    fn work(&self) -> u64 {
        RELEASE
    }
}

/// One enumeration of the derivations of private recipes, with every call handed on.
macro_rules! derivations {
    ($($(#[$doc:meta])* $variant:ident($derivation:ty)),+ $(,)?) => {
        /// A recipe of this crate with its public parameters, able to recompute the event of its release.
        #[derive(Debug, Clone, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case"))]
        #[non_exhaustive]
        pub enum Derivation {
            $($(#[$doc])* $variant($derivation),)+
            /// [`recipes::non_private`](crate::recipes::non_private): no guarantee.
            NonPrivate(NonPrivateDerivation),
        }

        impl Derivation {
            /// Number of records that a private recipe is planned for; `None` without privacy.
            pub fn records(&self) -> Option<u64> {
                match self {
                    $(Self::$variant(derivation) => Some(derivation.records()),)+
                    Self::NonPrivate(_) => None,
                }
            }

            /// What a private recipe demands of its model; `None` without privacy, where nothing is claimed.
            pub fn model_terms(&self) -> Option<ModelTerms> {
                match self {
                    $(Self::$variant(derivation) => Some(derivation.model_terms()),)+
                    Self::NonPrivate(_) => None,
                }
            }

            /// About how many steps it takes to recompute the event and its cost: see [`DerivesModel::work`].
            pub fn work(&self) -> u64 {
                match self {
                    $(Self::$variant(derivation) => derivation.work(),)+
                    Self::NonPrivate(_) => 0,
                }
            }

            /// What a private recipe's released weights can be; `None` without privacy.
            ///
            /// See [`DerivesModel::release_lattice`] for what may be wrong.
            pub fn release_lattice(&self) -> Option<Result<ReleaseLattice, Error>> {
                match self {
                    $(Self::$variant(derivation) => Some(derivation.release_lattice()),)+
                    Self::NonPrivate(_) => None,
                }
            }
        }

        impl Derives for Derivation {
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

derivations! {
    /// [`recipes::admm_obj_pert`](crate::recipes::admm_obj_pert).
    AdmmObjPert(AdmmObjPertDerivation),
    /// [`recipes::bolt_on`](crate::recipes::bolt_on).
    BoltOn(BoltOnDerivation),
    /// [`recipes::bst14`](crate::recipes::bst14).
    Bst14(Bst14Derivation),
    /// [`recipes::dp_ftrl`](crate::recipes::dp_ftrl).
    DpFtrl(DpFtrlDerivation),
    /// [`recipes::dp_newton`](crate::recipes::dp_newton).
    DpNewton(DpNewtonDerivation),
    /// [`recipes::dp_sgd`](crate::recipes::dp_sgd).
    DpSgd(DpSgdDerivation),
    /// [`recipes::dp_svrg`](crate::recipes::dp_svrg).
    DpSvrg(DpSvrgDerivation),
    /// [`recipes::majority`](crate::recipes::majority).
    Majority(MajorityDerivation),
    /// [`recipes::noisy_moments`](crate::recipes::noisy_moments).
    NoisyMoments(NoisyMomentsDerivation),
    /// [`recipes::obj_pert`](crate::recipes::obj_pert).
    ObjPert(ObjPertDerivation),
    /// [`recipes::one_vs_all`](crate::recipes::one_vs_all).
    OneVsAll(OneVsAllDerivation),
    /// [`recipes::phased_erm`](crate::recipes::phased_erm).
    PhasedErm(PhasedErmDerivation),
    /// [`recipes::phased_sgd`](crate::recipes::phased_sgd).
    PhasedSgd(PhasedSgdDerivation),
    /// [`recipes::pnsgd`](crate::recipes::pnsgd).
    Pnsgd(PnsgdDerivation),
    /// [`recipes::priv_gene`](crate::recipes::priv_gene).
    PrivGene(PrivGeneDerivation),
    /// [`recipes::rsgd_ar`](crate::recipes::rsgd_ar).
    RsgdAr(RsgdArDerivation),
    /// [`recipes::searched_descent`](crate::recipes::searched_descent).
    SearchedDescent(SearchedDescentDerivation),
    /// [`recipes::snowball_sgd`](crate::recipes::snowball_sgd).
    SnowballSgd(SnowballSgdDerivation),
    /// [`recipes::scs13`](crate::recipes::scs13).
    Scs13(Scs13Derivation),
    /// [`tuning::portions`](crate::tuning::portions).
    Portions(PortionsDerivation),
    /// [`tuning::random_stopping`](crate::tuning::random_stopping).
    RandomStopping(RandomStoppingDerivation),
}
