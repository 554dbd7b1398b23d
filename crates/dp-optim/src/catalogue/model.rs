//! DP-SGD and its variants for models of any kind, such as networks, from settings.

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::NoiseMode;
use dp_mechanisms::clip::{AutomaticClipping, ClippingNorm, GradientClipping};

use super::{ClipRule, Entry, LineSearch, Settings, Steps, conflict, steps};
use crate::error::Error;
use crate::float::FloatKind;
use crate::recipes::dp_sgd::adam::{EPSILON, FIRST_DECAY, FLOOR, SECOND_DECAY};
use crate::recipes::{Budget, ModelSgd, NonPrivateSgd, QuantileClipping, Sampling, StepSearch};
use crate::{Averaging, Descent, Schedule};

/// The names of the algorithms that train a model of any kind; the first is the default.
pub const FOR_MODELS: [&str; 4] = ["dp-sgd", "dp-adam", "dp-adambc", "dp-blsgd"];

/// The names of their settings for such a model.
pub const MODEL_SETTINGS: &[&str] = &[
    "lambda",
    "passes",
    "steps",
    "batch-size",
    "sampling",
    "clip",
    "clip-rule",
    "clip-loss",
    "momentum",
    "step-size",
    "schedule",
    "line-search",
    "averaging",
];

/// Their values if they are not given, in words.
pub const MODEL_DEFAULTS: &str = "20 passes in Poisson batches of n/30; clipping norm 0.1; momentum 0.9; a constant step size of about 0.4 over \
     the clipping norm, smaller with more noise (Adam: 0.004); the last iterate; no regularisation. dp-blsgd: \
     backtracking from a step size of 12 over the clipping norm, without momentum; losses clipped at 3. \
     Adaptive clipping begins at 1. Without privacy: 10 passes in \
     batches of 128, step size 0.05. Without momentum, steps are ten times as long";

/// The default clipping norm.
const CLIP: f64 = 0.1;
/// The default first clipping norm of adaptive clipping.
const FIRST_ADAPTIVE_CLIP: f64 = 1.0;
/// The default step size times the clipping norm, under the default momentum.
const STEP: f64 = 0.4;
/// The noise `ν √T / b` at which the default step size is [`STEP`].
const NOISE: f64 = 0.025;
/// The largest factor by which less noise lengthens the default steps.
const LONGEST: f64 = 2.0;
/// The default step size of Adam.
const ADAM_STEP: f64 = 0.004;
/// The default momentum.
const MOMENTUM: f64 = 0.9;
/// The default number of passes.
const PASSES: u64 = 20;
/// The default number of passes without privacy.
const PLAIN_PASSES: u64 = 10;
/// The default step size without privacy, under the default momentum.
const PLAIN_STEP: f64 = 0.05;
/// The settings of a line search.
const SEARCH_SETTINGS: [&str; 2] = ["clip-loss", "line-search"];
/// The longest step that a line search tries times the clipping norm, under the default momentum.
const LONGEST_SEARCHED: f64 = 1.2;
/// The number of samples over the default batch size.
const BATCHES: u64 = 30;
/// γ of automatic clipping over the clipping norm.
const GAMMA: f64 = 0.1;

/// The inputs of the recipe for a model: the given settings, and public numbers.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'s> {
    /// The given settings.
    pub settings: &'s Settings,
    /// Number of samples, public.
    pub n: u64,
    /// Maximum number of samples whose gradients are summed at a time, chosen for the model.
    pub microbatch: u64,
    /// The floating-point type of training.
    pub float: FloatKind,
    /// The noise mode.
    pub noise_mode: NoiseMode,
    /// The privacy budget.
    pub budget: Budget,
    /// The neighbouring relation.
    pub relation: AdjacencyKind,
}

impl ModelRequest<'_> {
    /// Builds the recipe of one of the algorithms [`FOR_MODELS`], with defaults that were measured on small networks of images. The
    /// default step size of DP-SGD falls as the noise grows.
    ///
    /// # Formula
    /// With noise multiplier ν, T steps, batch size b, clipping norm C and momentum m, the default step size of DP-SGD is
    /// ```text
    /// 4 (1 - m) / C · min(2, √(0.025 b / (ν √T)))
    /// ```
    /// The longest candidate of DP-BLSGD has by default the size `12 (1 - m)/C`, for any noise.
    ///
    /// # Errors
    /// [`Error::Setting`] for another algorithm, and for a setting that it does not take, or not in this combination; a budget that
    /// no noise can meet, and other errors of [`ModelSgd::plan`].
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::certificate::NoiseMode;
    /// use dp_accountant::AdjacencyKind;
    /// use dp_optim::FloatKind;
    /// use dp_optim::catalogue::{self, ModelRequest, Settings};
    /// use dp_optim::recipes::Budget;
    ///
    /// let settings = Settings { passes: Some(10), ..Settings::default() };
    /// let request = ModelRequest {
    ///     settings: &settings,
    ///     n: 60_000,
    ///     microbatch: 128,
    ///     float: FloatKind::F32,
    ///     noise_mode: NoiseMode::Exact,
    ///     budget: Budget::new(2.0, 1e-5)?,
    ///     relation: AdjacencyKind::ZeroOut,
    /// };
    /// let recipe = request.build(catalogue::find("dp-sgd").ok_or("no such algorithm")?)?;
    /// assert_eq!((recipe.batch_size, recipe.steps), (2000, 300));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(&self, algorithm: &Entry) -> Result<ModelSgd, Error> {
        let Self { settings, n, microbatch, float, noise_mode, budget, relation } = *self;
        if let Some(name) = settings.given().find(|name| !MODEL_SETTINGS.contains(name)) {
            return Err(conflict(name, "networks have no such setting"));
        }
        let adapts = settings.clip_rule == Some(ClipRule::Adaptive);
        if adapts && ["dp-adambc", "dp-blsgd"].contains(&algorithm.name) {
            return Err(conflict("clip-rule", "an adaptive norm is for dp-sgd and dp-adam"));
        }
        let norm = ClippingNorm::new(settings.clip.unwrap_or(if adapts { FIRST_ADAPTIVE_CLIP } else { CLIP }))?;
        let (first_decay, second_decay) = (FIRST_DECAY, SECOND_DECAY);
        let clipping = match settings.clip_rule {
            None | Some(ClipRule::Flat | ClipRule::Adaptive) => norm.into(),
            Some(ClipRule::PerLayer) => GradientClipping::PerBlock(norm),
            Some(ClipRule::Automatic) => AutomaticClipping::new(norm, GAMMA * norm.get())?.into(),
        };
        let search = (algorithm.name == "dp-blsgd").then(|| search(settings));
        if let (None, Some(name)) = (search, settings.given().find(|name| SEARCH_SETTINGS.contains(name))) {
            return Err(conflict(name, "only dp-blsgd searches for the size of its steps"));
        }
        let (descent, step) = match algorithm.name {
            "dp-sgd" => descent(settings, STEP / norm.get()),
            // A search works best without momentum.
            "dp-blsgd" => {
                let momentum = Some(settings.momentum.unwrap_or(0.0));
                descent(&Settings { momentum, ..settings.clone() }, LONGEST_SEARCHED / norm.get())
            }
            _ if settings.momentum.is_some() => return Err(conflict("momentum", "Adam has momentum of its own")),
            "dp-adam" => (Descent::Adam { first_decay, second_decay, epsilon: EPSILON }, ADAM_STEP),
            "dp-adambc" => (Descent::AdamBc { first_decay, second_decay, floor: FLOOR }, ADAM_STEP),
            _ => {
                let (why, expected) = (
                    "this algorithm does not train networks",
                    Some("dp-sgd, dp-adam, dp-adambc, dp-blsgd or non-private"),
                );
                return Err(Error::Setting { name: "algorithm", why, expected, help: None });
            }
        };
        let batch_size = settings.batch_size.unwrap_or_else(|| n.div_ceil(BATCHES).max(1));
        let steps = number_of_steps(settings, n, batch_size, PASSES)?;
        let mut recipe = ModelSgd {
            sampling: steps::sampling(settings).unwrap_or(Sampling::Poisson),
            batch_size,
            steps,
            microbatch,
            descent,
            lambda: settings.lambda.unwrap_or(0.0),
            schedule: schedule(settings, step)?,
            search,
            adaptive_norm: adapts.then(QuantileClipping::new),
            averaging: averaging(settings, steps),
            noise_mode,
            float,
            ..ModelSgd::new(clipping)
        };
        if algorithm.name == "dp-sgd" && settings.step_size.is_none() {
            let noise = recipe.noise_multiplier(n, relation, budget)?;
            let noise_of_all = noise * (recipe.steps as f64).sqrt() / recipe.batch_size as f64;
            recipe.schedule = schedule(settings, step * (NOISE / noise_of_all).sqrt().min(LONGEST))?;
        }
        Ok(recipe)
    }
}

/// Builds the baseline without privacy for `n` samples: SGD with momentum.
///
/// # Errors
/// [`Error::Setting`] for a setting that it does not take, or not in this combination.
pub fn non_private_model(settings: &Settings, n: u64, float: FloatKind) -> Result<NonPrivateSgd, Error> {
    let is_private = |name: &&str| ["clip", "clip-rule", "sampling"].contains(name) || SEARCH_SETTINGS.contains(name);
    if let Some(name) = settings.given().find(|name| is_private(name) || !MODEL_SETTINGS.contains(name)) {
        return Err(conflict(name, "training without privacy has no such setting"));
    }
    let recipe = NonPrivateSgd { float, lambda: settings.lambda.unwrap_or(0.0), ..NonPrivateSgd::new() };
    let (descent, step) = descent(settings, PLAIN_STEP);
    let batch_size = settings.batch_size.unwrap_or(recipe.batch_size.min(n.max(1)));
    let steps = number_of_steps(settings, n, batch_size, PLAIN_PASSES)?;
    let (schedule, averaging) = (schedule(settings, step)?, averaging(settings, steps));
    Ok(NonPrivateSgd { batch_size, steps, descent, schedule, averaging, ..recipe })
}

/// Returns the descent with the momentum, and its default step size, given that under the default momentum: momentum prolongs
/// steps by `1/(1 - momentum)`.
fn descent(settings: &Settings, step: f64) -> (Descent, f64) {
    let momentum = settings.momentum.unwrap_or(MOMENTUM);
    let descent = if momentum == 0.0 { Descent::Plain } else { Descent::Accelerated { momentum } };
    (descent, step * ((1.0 - momentum) / (1.0 - MOMENTUM)))
}

fn search(settings: &Settings) -> StepSearch {
    let usual = StepSearch::new();
    StepSearch {
        search: settings.line_search.map_or(usual.search, LineSearch::search),
        most_loss: settings.clip_loss.unwrap_or(usual.most_loss),
        ..usual
    }
}

fn schedule(settings: &Settings, step: f64) -> Result<Schedule, Error> {
    let step = settings.step_size.unwrap_or(step);
    match settings.schedule {
        None | Some(Steps::Constant) => Ok(Schedule::Constant { step }),
        Some(Steps::InverseSqrt) => Ok(Schedule::InverseSqrt { step }),
        Some(_) => {
            let expected = Some("constant or inverse-sqrt");
            let why = "this `schedule` is for convex losses, whose smoothness is known";
            Err(Error::Setting { name: "schedule", why, expected, help: None })
        }
    }
}

fn number_of_steps(settings: &Settings, n: u64, batch_size: u64, passes: u64) -> Result<u64, Error> {
    match (settings.steps, settings.passes) {
        (Some(_), Some(_)) => Err(conflict("steps", "`passes` and `steps` both say how long to train")),
        (Some(steps), None) => Ok(steps),
        (None, given) => {
            let of_pass = n.div_ceil(batch_size.clamp(1, n.max(1)));
            Ok(of_pass.saturating_mul(given.unwrap_or(passes)).max(1))
        }
    }
}

fn averaging(settings: &Settings, steps: u64) -> Averaging {
    match settings.averaging {
        None => Averaging::Last,
        Some(_) => steps::averaging_or(settings, Averaging::Suffix { updates: (steps / 2).max(1) }),
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::ZeroOut;

    use super::*;
    use crate::catalogue::{ALGORITHMS, Average, BatchSampling, find};
    use crate::recipes::{Budget, Search};

    fn request(settings: &Settings) -> ModelRequest<'_> {
        ModelRequest {
            settings,
            n: 6000,
            microbatch: 64,
            float: FloatKind::F32,
            noise_mode: NoiseMode::Exact,
            budget: Budget::new(2.0, 1e-5).unwrap(),
            relation: AdjacencyKind::ZeroOut,
        }
    }

    fn build(name: &str, settings: &Settings) -> Result<ModelSgd, Error> {
        request(settings).build(find(name).unwrap())
    }

    #[test]
    fn every_combination_that_is_built_is_planned() {
        let budget = request(&Settings::default()).budget;
        for name in FOR_MODELS {
            for clip_rule in [None, Some(ClipRule::Flat), Some(ClipRule::PerLayer), Some(ClipRule::Automatic)] {
                for averaging in [None, Some(Average::Last), Some(Average::Suffix), Some(Average::Exponential)] {
                    let recipe = build(name, &Settings { clip_rule, averaging, ..Settings::default() }).unwrap();
                    assert_eq!((recipe.batch_size, recipe.steps, recipe.microbatch), (200, 600, 64));
                    let found = match recipe.clipping {
                        GradientClipping::PerBlock(_) => ClipRule::PerLayer,
                        GradientClipping::Automatic(_) => ClipRule::Automatic,
                        _ => ClipRule::Flat,
                    };
                    assert_eq!(found, clip_rule.unwrap_or(ClipRule::Flat));
                    let plan = recipe.plan::<ZeroOut>(6000, 1000, budget).unwrap();
                    assert!(plan.reached().epsilon <= 2.0);
                }
            }
        }
    }

    #[test]
    fn settings_are_those_given() {
        let settings = Settings {
            lambda: Some(0.01),
            steps: Some(77),
            batch_size: Some(123),
            sampling: Some(BatchSampling::Fixed),
            clip: Some(2.0),
            momentum: Some(0.0),
            step_size: Some(0.3),
            schedule: Some(Steps::InverseSqrt),
            averaging: Some(Average::Uniform),
            ..Settings::default()
        };
        let fixed = ModelRequest { relation: AdjacencyKind::ReplaceOne, ..request(&settings) };
        let recipe = fixed.build(find("dp-sgd").unwrap()).unwrap();
        assert_eq!((recipe.lambda, recipe.steps, recipe.batch_size), (0.01, 77, 123));
        assert_eq!((recipe.sampling, recipe.descent), (Sampling::FixedSize, Descent::Plain));
        assert_eq!((recipe.schedule, recipe.averaging), (Schedule::InverseSqrt { step: 0.3 }, Averaging::Uniform));
        assert_eq!(recipe.clipping, ClippingNorm::new(2.0).unwrap().into());
        // Steps are as long for every clipping norm and momentum, and the shorter the more noise there is.
        for (clip, momentum, n, epsilon, expected) in [
            (0.1, 0.9, 60_000, 2.0, 4.0),
            (1.0, 0.9, 60_000, 2.0, 0.4),
            (1.0, 0.0, 60_000, 2.0, 4.0),
            (0.1, 0.9, 60_000, 1.0, 3.1),
            (0.1, 0.9, 60_000, 8.0, 6.2),
            (0.1, 0.9, 6000, 2.0, 1.3),
            (0.1, 0.9, 6_000_000, 2.0, 8.0),
        ] {
            let settings = Settings { clip: Some(clip), momentum: Some(momentum), ..Settings::default() };
            let budget = Budget::new(epsilon, 1e-5).unwrap();
            let request = ModelRequest { n, budget, ..request(&settings) };
            let Schedule::Constant { step } = request.build(find("dp-sgd").unwrap()).unwrap().schedule else {
                panic!()
            };
            assert!((step / expected - 1.0).abs() < 0.1, "{clip} {momentum} {n} {epsilon}: {step}");
        }
    }

    #[test]
    fn only_dp_blsgd_searches() {
        let settings = Settings {
            line_search: Some(LineSearch::Selection),
            clip_loss: Some(1.5),
            clip: Some(0.5),
            ..Settings::default()
        };
        let recipe = build("dp-blsgd", &settings).unwrap();
        let expected = StepSearch { search: Search::Selection, most_loss: 1.5, ..StepSearch::new() };
        assert_eq!((recipe.search, recipe.descent), (Some(expected), Descent::Plain));
        // Ten times as long without momentum, and three times the usual step.
        let longest = |recipe: &ModelSgd| match recipe.schedule {
            Schedule::Constant { step } => step,
            _ => panic!(),
        };
        assert!((longest(&recipe) - 24.0).abs() < 1e-9);
        let usual = build("dp-blsgd", &Settings::default()).unwrap();
        assert_eq!(usual.search, Some(StepSearch::new()));
        let with_momentum = Settings { momentum: Some(0.9), step_size: Some(0.7), ..Settings::default() };
        let recipe = build("dp-blsgd", &with_momentum).unwrap();
        assert_eq!((recipe.descent, longest(&recipe)), (Descent::Accelerated { momentum: 0.9 }, 0.7));
        let adaptive =
            build("dp-sgd", &Settings { clip_rule: Some(ClipRule::Adaptive), ..Settings::default() }).unwrap();
        assert_eq!(adaptive.adaptive_norm, Some(QuantileClipping::new()));
        assert_eq!(adaptive.clipping, ClippingNorm::new(1.0).unwrap().into());
        for name in ["dp-adambc", "dp-blsgd"] {
            let settings = Settings { clip_rule: Some(ClipRule::Adaptive), ..Settings::default() };
            assert!(matches!(build(name, &settings), Err(Error::Setting { name: "clip-rule", .. })), "{name}");
        }
        for name in &FOR_MODELS[..3] {
            assert_eq!(build(name, &Settings::default()).unwrap().search, None);
            for settings in [
                Settings { line_search: Some(LineSearch::Backtracking), ..Settings::default() },
                Settings { clip_loss: Some(1.0), ..Settings::default() },
            ] {
                assert!(matches!(build(name, &settings), Err(Error::Setting { .. })), "{name}");
            }
        }
        assert!(matches!(non_private_model(&settings, 6000, FloatKind::F32), Err(Error::Setting { .. })));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let of = |name: &str, settings: Settings| match build(name, &settings) {
            Err(Error::Setting { name, .. }) => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(of("dp-adam", Settings { momentum: Some(0.5), ..Settings::default() }), "momentum");
        assert_eq!(of("dp-sgd", Settings { bands: Some(2), ..Settings::default() }), "bands");
        assert_eq!(of("dp-sgd", Settings { schedule: Some(Steps::Halving), ..Settings::default() }), "schedule");
        assert_eq!(of("dp-sgd", Settings { steps: Some(1), passes: Some(1), ..Settings::default() }), "steps");
        let baseline = |settings: &Settings| non_private_model(settings, 6000, FloatKind::F32);
        let usual = baseline(&Settings::default()).unwrap();
        assert_eq!((usual.steps, usual.batch_size), (470, 128));
        let plain = baseline(&Settings { momentum: Some(0.0), steps: Some(3), ..Settings::default() }).unwrap();
        assert_eq!((plain.descent, plain.steps), (Descent::Plain, 3));
        for settings in [
            Settings { clip: Some(1.0), ..Settings::default() },
            Settings { sampling: Some(BatchSampling::Fixed), ..Settings::default() },
            Settings { bands: Some(1), ..Settings::default() },
        ] {
            assert!(matches!(baseline(&settings), Err(Error::Setting { .. })), "{settings:?}");
        }
        for entry in ALGORITHMS.iter().filter(|entry| !FOR_MODELS.contains(&entry.name)) {
            assert_eq!(of(entry.name, Settings::default()), "algorithm");
        }
    }
}
