//! Conversion of settings to recipes of dp-optim.

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::NoiseMode;
use dp_losses::Penalty;
use dp_optim::recipes::dp_sgd::consensus::PARTIES;
use dp_optim::recipes::obj_pert::Calibration;
use dp_optim::recipes::pnsgd::Batching;
use dp_optim::recipes::scs13::StepCalibration;
use dp_optim::recipes::{
    AdmmObjPert, AnyRecipe, BoltOn, Bst14, Bst14Calibration, Budget, DpFtrl, DpNewton, DpSgd, DpSvrg, Majority,
    NoisyMoments, ObjPert, PassSteps, PhasedSgd, Pnsgd, PrivGene, RsgdAr, Sampling, Scs13, Search, SearchedDescent,
    SnowballSgd,
};
use dp_optim::{Auto, Descent, Schedule};

use super::Algorithm;
use crate::setting::{Setting, Step};

/// The radius of the convex models of BST14 and Phased-SGD: their step sizes are multiples of it.
const RADIUS: f64 = 10.0;

/// Ratio of strong convexity to curvature for accelerating the minimiser without privacy.
const SLOWEST: f64 = 1e-4;

/// The public numbers that a recipe may depend on besides its setting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Public {
    pub(super) n: u64,
    pub(super) dim: u64,
    pub(super) budget: Budget,
    pub(super) relation: AdjacencyKind,
}

/// Returns the private recipe of a setting; `None` if it has none, or its own noise.
pub(super) fn recipe(setting: &Setting, public: Public) -> Result<Option<AnyRecipe>, dp_optim::Error> {
    let Public { n, dim, budget, relation } = public;
    Ok(match setting.algorithm {
        Algorithm::Noiseless | Algorithm::Minimiser | Algorithm::TrueModel | Algorithm::OursAsPublished => None,
        Algorithm::Auto => {
            let auto = Auto { noise_mode: NoiseMode::Rounded, ..Auto::new(setting.loss) };
            Some(auto.choose(n, dim, budget, relation)?.recipe)
        }
        Algorithm::Majority => {
            Some(AnyRecipe::from(Majority { noise_mode: NoiseMode::Rounded, ..Majority::new(setting.loss) }))
        }
        Algorithm::Ours => {
            let recipe = match setting.lambda > 0.0 {
                true => BoltOn::strongly_convex(setting.loss, setting.lambda),
                false => BoltOn::convex(setting.loss),
            };
            Some(AnyRecipe::from(BoltOn {
                passes: setting.passes,
                batch_size: setting.batch_size,
                radius: radius(setting),
                schedule: schedule(setting),
                noise_mode: NoiseMode::Exact,
                declared_order: setting.on_disk,
                ..recipe
            }))
        }
        Algorithm::Scs13 | Algorithm::Scs13AsPublished => Some(AnyRecipe::from(Scs13 {
            lambda: setting.lambda,
            passes: setting.passes,
            batch_size: setting.batch_size,
            radius: radius(setting),
            schedule: schedule(setting),
            calibration: match setting.algorithm {
                Algorithm::Scs13AsPublished => StepCalibration::AsPublished,
                _ => StepCalibration::Joint,
            },
            noise_mode: NoiseMode::Rounded,
            declared_order: setting.on_disk,
            ..Scs13::new(setting.loss)
        })),
        Algorithm::Bst14 | Algorithm::Bst14AsPublished => {
            let recipe = match setting.lambda > 0.0 {
                true => Bst14::strongly_convex(setting.loss, setting.lambda),
                false => Bst14::convex(setting.loss, RADIUS),
            };
            let (calibration, sampling) = match setting.algorithm {
                Algorithm::Bst14AsPublished => (Bst14Calibration::AsPublished { iota: 1.0 }, Sampling::FixedSize),
                _ => (recipe.calibration, recipe.sampling),
            };
            Some(AnyRecipe::from(Bst14 {
                passes: setting.passes,
                batch_size: setting.batch_size,
                calibration,
                sampling,
                noise_mode: NoiseMode::Rounded,
                ..recipe
            }))
        }
        Algorithm::DpSgd => Some(AnyRecipe::from(dp_sgd(setting, public)?)),
        Algorithm::DpAdam | Algorithm::DpAdamBc => {
            let adaptive = match setting.algorithm {
                Algorithm::DpAdam => DpSgd::adam(setting.loss),
                _ => DpSgd::adam_bc(setting.loss),
            };
            let recipe = with_the_run_of(setting, adaptive);
            Some(AnyRecipe::from(recipe.with_adaptive_steps(n, dim, budget, relation)?))
        }
        Algorithm::DpGd => {
            let recipe = DpSgd::full_gradient(setting.loss, n, dim, budget, relation)?;
            let recipe = DpSgd { lambda: setting.lambda, noise_mode: NoiseMode::Rounded, ..recipe };
            Some(AnyRecipe::from(recipe.with_suited_steps(n, dim, budget, relation)?))
        }
        Algorithm::SsAdmm | Algorithm::MpAdmm => Some(AnyRecipe::from(admm(setting, public)?)),
        Algorithm::SparseMinimiser => {
            let all_records =
                DpSgd { sampling: Sampling::Passes, ..with_the_run_of(setting, DpSgd::new(setting.loss)) };
            let recipe = DpSgd { batch_size: u64::MAX, descent: Descent::suited_to(SLOWEST), ..all_records };
            // With such a large budget, steps are 1/β.
            Some(AnyRecipe::from(recipe.with_suited_first_step(n, dim, budget, relation)?))
        }
        Algorithm::RsgdAr | Algorithm::Nsgd | Algorithm::OutPertGd => {
            Some(AnyRecipe::from(output_perturbation(setting, public)?))
        }
        Algorithm::ObjPert
        | Algorithm::ObjPertCms11
        | Algorithm::ObjPertKst12
        | Algorithm::ObjPertRdp
        | Algorithm::Amp
        | Algorithm::AmpAsPublished => Some(AnyRecipe::from(objective_perturbation(setting))),
        Algorithm::DpNewton => Some(AnyRecipe::from(DpNewton {
            lambda: (setting.lambda > 0.0).then_some(setting.lambda),
            noise_mode: NoiseMode::Rounded,
            ..DpNewton::new(setting.loss)
        })),
        Algorithm::DpFtrl => {
            let lambda = setting.lambda;
            let recipe = DpFtrl { lambda, noise_mode: NoiseMode::Rounded, ..DpFtrl::new(setting.loss) };
            Some(AnyRecipe::from(recipe.with_suited_batches(n, dim, budget, relation)?))
        }
        Algorithm::DpSvrg => {
            let recipe = DpSvrg::recommended(setting.loss, n, dim, budget, relation)?;
            let recipe = DpSvrg { lambda: setting.lambda, noise_mode: NoiseMode::Rounded, ..recipe };
            Some(AnyRecipe::from(recipe.with_suited_steps(n, dim, budget, relation)?))
        }
        Algorithm::DpAdmm => {
            let recipe = DpSgd::dp_admm(setting.loss, PARTIES);
            let penalty = (setting.l1 > 0.0).then_some(Penalty::L1 { lambda: setting.l1 });
            let recipe = DpSgd { lambda: setting.lambda, penalty, noise_mode: NoiseMode::Rounded, ..recipe };
            Some(AnyRecipe::from(recipe.with_suited_rounds(None, n, dim, budget, relation)?))
        }
        Algorithm::AdmmObjPert => Some(AnyRecipe::from(AdmmObjPert {
            lambda: setting.lambda,
            noise_mode: NoiseMode::Rounded,
            ..AdmmObjPert::new(setting.loss, Penalty::L1 { lambda: setting.l1 })
        })),
        Algorithm::ObjPertCentred => {
            Some(AnyRecipe::from(ObjPert { noise_mode: NoiseMode::Rounded, ..ObjPert::new(setting.loss).centred() }))
        }
        Algorithm::NoisyMoments => Some(AnyRecipe::from(NoisyMoments {
            lambda: setting.lambda,
            noise_mode: NoiseMode::Rounded,
            ..NoisyMoments::new(setting.loss)
        })),
        Algorithm::PrivGene => Some(AnyRecipe::from(PrivGene::new(setting.loss))),
        Algorithm::DpBlgd | Algorithm::DpBlsgd | Algorithm::DpBlsgdAc | Algorithm::DpAgd => {
            Some(AnyRecipe::from(searched(setting)))
        }
        Algorithm::Pnsgd => Some(AnyRecipe::from(Pnsgd {
            lambda: setting.lambda,
            passes: setting.passes,
            batching: Batching::Equal { size: setting.batch_size },
            noise_mode: NoiseMode::Rounded,
            ..Pnsgd::new(setting.loss)
        })),
        Algorithm::SnowballSgd => Some(AnyRecipe::from(SnowballSgd {
            lambda: setting.lambda,
            noise_mode: NoiseMode::Rounded,
            ..SnowballSgd::new(setting.loss)
        })),
        Algorithm::PhasedSgd => Some(AnyRecipe::from(PhasedSgd {
            lambda: setting.lambda,
            noise_mode: NoiseMode::Rounded,
            ..PhasedSgd::new(setting.loss, RADIUS)
        })),
    })
}

/// Returns objective perturbation with the λ of the setting.
fn objective_perturbation(setting: &Setting) -> ObjPert {
    let usual = ObjPert::new(setting.loss);
    let (usual, calibration) = match setting.algorithm {
        Algorithm::ObjPertCms11 => (usual, Calibration::Cms11),
        Algorithm::ObjPertKst12 => (usual, Calibration::Kst12),
        Algorithm::ObjPertRdp => (usual, Calibration::Rdp),
        Algorithm::Amp => (ObjPert::approximate(setting.loss), Calibration::Exact),
        Algorithm::AmpAsPublished => (ObjPert::approximate(setting.loss), Calibration::Amp),
        _ => (usual, Calibration::Exact),
    };
    let lambda = (setting.lambda > 0.0).then_some(setting.lambda);
    ObjPert { lambda, calibration, noise_mode: NoiseMode::Rounded, ..usual }
}

/// Sets the passes, the batches and the penalty of the setting.
fn with_the_run_of(setting: &Setting, recipe: DpSgd) -> DpSgd {
    DpSgd {
        lambda: setting.lambda,
        passes: setting.passes,
        batch_size: setting.batch_size,
        penalty: (setting.l1 > 0.0).then_some(Penalty::L1 { lambda: setting.l1 }),
        noise_mode: NoiseMode::Rounded,
        ..recipe
    }
}

/// Returns DP-SGD. With a penalty it has the batches, steps and iterate of ss-ADMM, and differs from it only in the update
/// map.
fn dp_sgd(setting: &Setting, public: Public) -> Result<DpSgd, dp_optim::Error> {
    let Public { n, dim, budget, relation } = public;
    let recipe = with_the_run_of(setting, DpSgd::new(setting.loss));
    let recipe = DpSgd { schedule: schedule(setting), radius: radius(setting), ..recipe };
    match (setting.step, &recipe.penalty) {
        (Step::Suited, Some(_)) => {
            let schedule = falling(1.0, setting, n);
            let sampling = sampling_of_batches(relation);
            DpSgd { schedule: Some(schedule), sampling, ..recipe }.with_suited_first_step(n, dim, budget, relation)
        }
        (Step::Suited, None) => recipe.with_suited_steps(n, dim, budget, relation),
        _ => Ok(recipe),
    }
}

fn admm(setting: &Setting, public: Public) -> Result<DpSgd, dp_optim::Error> {
    let Public { n, dim, budget, relation } = public;
    let penalty = Penalty::L1 { lambda: setting.l1 };
    let recipe = match setting.algorithm {
        Algorithm::SsAdmm => {
            let recipe = with_the_run_of(setting, DpSgd::ss_admm(setting.loss, penalty, n, relation));
            DpSgd { schedule: Some(falling(1.0, setting, n)), ..recipe }
        }
        _ => DpSgd { batch_size: u64::MAX, ..with_the_run_of(setting, DpSgd::mp_admm(setting.loss, penalty)) },
    };
    let recipe = recipe.with_suited_first_step(n, dim, budget, relation)?;
    Ok(match (setting.step, &recipe.schedule) {
        (Step::First(step), Some(Schedule::PerDrawnPass { .. })) => {
            DpSgd { schedule: Some(falling(step, setting, n)), ..recipe }
        }
        (Step::First(step), _) => DpSgd { schedule: Some(Schedule::Constant { step }), ..recipe },
        _ => recipe,
    })
}

/// Returns the schedule `step / pass`.
fn falling(step: f64, setting: &Setting, n: u64) -> Schedule {
    let examples = n.max(1);
    Schedule::PerDrawnPass { step, batch_size: setting.batch_size.clamp(1, examples), examples }
}

/// Returns the sampling of batches as in chapter 4 of the dissertation, if there is a theorem for it.
fn sampling_of_batches(relation: AdjacencyKind) -> Sampling {
    match relation {
        AdjacencyKind::ReplaceOne => Sampling::FixedSize,
        _ => Sampling::Poisson,
    }
}

fn output_perturbation(setting: &Setting, public: Public) -> Result<RsgdAr, dp_optim::Error> {
    let Public { n, dim, budget, relation } = public;
    let (loss, lambda, knobs) = (setting.loss, setting.lambda, setting.knobs);
    let mut recipe = match setting.algorithm {
        Algorithm::Nsgd => RsgdAr::nsgd(loss, lambda),
        Algorithm::OutPertGd => RsgdAr::full_gradient(loss, lambda),
        _ => RsgdAr { restart_every: Some(setting.passes.div_ceil(2)), ..RsgdAr::new(loss, lambda) },
    };
    if setting.algorithm != Algorithm::OutPertGd {
        recipe.passes = setting.passes;
        recipe.batch_size = setting.batch_size;
    }
    if let Some(passes) = knobs.restart_every {
        recipe.restart_every = (passes > 0).then_some(passes);
    }
    if knobs.falling {
        recipe.steps = PassSteps::Falling;
    }
    recipe.noise_mode = NoiseMode::Rounded;
    match setting.step {
        Step::First(step) => Ok(RsgdAr { step, ..recipe }),
        Step::Suited => recipe.with_suited_steps(n, dim, budget, relation),
        _ => Ok(recipe),
    }
}

/// Passes count the gradients and searches that the budget is planned for.
fn searched(setting: &Setting) -> SearchedDescent {
    let (loss, batch_size, knobs) = (setting.loss, setting.batch_size, setting.knobs);
    let recipe = match setting.algorithm {
        Algorithm::DpBlsgd => SearchedDescent::dp_blsgd(loss, batch_size),
        Algorithm::DpBlsgdAc => SearchedDescent::dp_blsgd_ac(loss, batch_size),
        Algorithm::DpAgd => SearchedDescent::dp_agd(loss),
        _ => SearchedDescent::dp_blgd(loss),
    };
    SearchedDescent {
        lambda: setting.lambda,
        steps: setting.passes,
        armijo: knobs.armijo.unwrap_or(recipe.armijo),
        shrink: knobs.shrink.unwrap_or(recipe.shrink),
        most_loss: knobs.most_loss.unwrap_or(recipe.most_loss),
        clip_decay: knobs.clip_decay.unwrap_or(recipe.clip_decay),
        search: if knobs.selection { Search::Selection } else { recipe.search },
        noise_mode: NoiseMode::Rounded,
        ..recipe
    }
}

/// Returns the radius: the papers keep the iterates of a regularised objective within `1/λ`.
pub(super) fn radius(setting: &Setting) -> Option<f64> {
    (setting.lambda > 0.0).then(|| setting.lambda.recip())
}

/// Returns the schedule if it is not the algorithm's default.
pub(super) fn schedule(setting: &Setting) -> Option<Schedule> {
    match setting.step {
        Step::Usual | Step::Suited | Step::First(_) => None,
        Step::InverseSqrt(step) => Some(Schedule::InverseSqrt { step }),
        // The cap is never reached: 1/(λt) is at most 1/λ.
        Step::InverseStrongConvexity => {
            Some(Schedule::StronglyConvex { smoothness: setting.lambda, strong_convexity: setting.lambda })
        }
    }
}
