//! DP-SGD for models of any kind, such as networks, from settings.

use dp_accountant::certificate::NoiseMode;
use dp_mechanisms::clip::{AutomaticClipping, ClippingNorm, GradientClipping};

use super::{ClipRule, Entry, Settings, Steps, conflict, steps};
use crate::error::Error;
use crate::float::FloatKind;
use crate::recipes::dp_sgd::adam::{EPSILON, FIRST_DECAY, FLOOR, SECOND_DECAY};
use crate::recipes::{ModelSgd, Sampling};
use crate::{Averaging, Descent, Schedule};

/// The names of the algorithms that train a model of any kind; the first is the default.
pub const FOR_MODELS: [&str; 3] = ["dp-sgd", "dp-adam", "dp-adambc"];

/// The names of their settings for such a model.
pub const MODEL_SETTINGS: &[&str] = &[
    "lambda",
    "passes",
    "steps",
    "batch-size",
    "sampling",
    "clip",
    "clip-rule",
    "momentum",
    "step-size",
    "schedule",
    "averaging",
];

/// Their values if they are not given, in words.
pub const MODEL_DEFAULTS: &str = "20 passes in Poisson batches of n/30, clipping norm 0.1, constant steps of 4 (1 - momentum) over the \
                                  clipping norm (Adam 0.004), the last iterate, no regularisation";

/// The default clipping norm.
const CLIP: f64 = 0.1;
/// The default step size times the clipping norm, under the default momentum.
const STEP: f64 = 0.4;
/// The default step size of Adam.
const ADAM_STEP: f64 = 0.004;
/// The default momentum.
const MOMENTUM: f64 = 0.9;
/// The default number of passes.
const PASSES: u64 = 20;
/// The default batch is this part of the samples.
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
}

impl ModelRequest<'_> {
    /// Builds the recipe of one of the algorithms [`FOR_MODELS`], with defaults that were measured on small networks of images.
    ///
    /// # Errors
    /// [`Error::Setting`] for another algorithm, and for a setting that it does not take, or not in this combination.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::certificate::NoiseMode;
    /// use dp_optim::FloatKind;
    /// use dp_optim::catalogue::{self, ModelRequest, Settings};
    ///
    /// let settings = Settings { passes: Some(10), ..Settings::default() };
    /// let (float, noise_mode) = (FloatKind::F32, NoiseMode::Exact);
    /// let request = ModelRequest { settings: &settings, n: 60_000, microbatch: 128, float, noise_mode };
    /// let recipe = request.build(catalogue::find("dp-sgd").ok_or("no such algorithm")?)?;
    /// assert_eq!((recipe.batch_size, recipe.steps), (2000, 300));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(&self, algorithm: &Entry) -> Result<ModelSgd, Error> {
        let Self { settings, n, microbatch, float, noise_mode } = *self;
        if let Some(name) = settings.given().find(|name| !MODEL_SETTINGS.contains(name)) {
            return Err(conflict(name, "networks have no such setting"));
        }
        let norm = ClippingNorm::new(settings.clip.unwrap_or(CLIP))?;
        let clipping = match settings.clip_rule {
            None | Some(ClipRule::Flat) => norm.into(),
            Some(ClipRule::PerLayer) => GradientClipping::PerBlock(norm),
            Some(ClipRule::Automatic) => AutomaticClipping::new(norm, GAMMA * norm.get())?.into(),
        };
        let momentum = settings.momentum.unwrap_or(MOMENTUM);
        let (first_decay, second_decay) = (FIRST_DECAY, SECOND_DECAY);
        let (descent, step) = match algorithm.name {
            // Momentum prolongs steps by 1/(1 - momentum).
            "dp-sgd" => {
                let step = STEP * ((1.0 - momentum) / (1.0 - MOMENTUM)) / norm.get();
                (if momentum == 0.0 { Descent::Plain } else { Descent::Accelerated { momentum } }, step)
            }
            _ if settings.momentum.is_some() => return Err(conflict("momentum", "Adam has momentum of its own")),
            "dp-adam" => (Descent::Adam { first_decay, second_decay, epsilon: EPSILON }, ADAM_STEP),
            "dp-adambc" => (Descent::AdamBc { first_decay, second_decay, floor: FLOOR }, ADAM_STEP),
            _ => {
                let help = "omit `algorithm`, or take dp-sgd, dp-adam or dp-adambc";
                let why = "this algorithm does not train networks";
                return Err(Error::Setting { name: "algorithm", why, expected: None, help: Some(help) });
            }
        };
        let step = settings.step_size.unwrap_or(step);
        let schedule = match settings.schedule {
            None | Some(Steps::Constant) => Schedule::Constant { step },
            Some(Steps::InverseSqrt) => Schedule::InverseSqrt { step },
            Some(_) => {
                let expected = Some("constant or inverse-sqrt");
                let why = "this `schedule` is for convex losses, whose smoothness is known";
                return Err(Error::Setting { name: "schedule", why, expected, help: None });
            }
        };
        let batch_size = settings.batch_size.unwrap_or_else(|| n.div_ceil(BATCHES).max(1));
        let steps = match (settings.steps, settings.passes) {
            (Some(_), Some(_)) => return Err(conflict("steps", "`passes` and `steps` both say how long to train")),
            (Some(steps), None) => steps,
            (None, passes) => n.div_ceil(batch_size.clamp(1, n.max(1))).saturating_mul(passes.unwrap_or(PASSES)).max(1),
        };
        let averaging = steps::averaging_or(
            settings,
            match settings.averaging {
                None => Averaging::Last,
                Some(_) => Averaging::Suffix { updates: (steps / 2).max(1) },
            },
        );
        let recipe = ModelSgd {
            sampling: steps::sampling(settings).unwrap_or(Sampling::Poisson),
            batch_size,
            steps,
            microbatch,
            descent,
            lambda: settings.lambda.unwrap_or(0.0),
            schedule,
            averaging,
            noise_mode,
            float,
            ..ModelSgd::new(clipping)
        };
        Ok(recipe)
    }
}

#[cfg(test)]
mod tests {
    use dp_accountant::{Delta, Epsilon, ZeroOut};

    use super::*;
    use crate::catalogue::{ALGORITHMS, Average, BatchSampling, find};
    use crate::recipes::Budget;

    fn build(name: &str, settings: &Settings) -> Result<ModelSgd, Error> {
        let (float, noise_mode) = (FloatKind::F32, NoiseMode::Exact);
        ModelRequest { settings, n: 6000, microbatch: 64, float, noise_mode }.build(find(name).unwrap())
    }

    #[test]
    fn every_combination_that_is_built_is_planned() {
        let budget = Budget { epsilon: Epsilon::new(2.0).unwrap(), delta: Delta::new(1e-5).unwrap() };
        for name in FOR_MODELS {
            for clip_rule in [None, Some(ClipRule::Flat), Some(ClipRule::PerLayer), Some(ClipRule::Automatic)] {
                for averaging in [None, Some(Average::Last), Some(Average::Suffix), Some(Average::Exponential)] {
                    let recipe = build(name, &Settings { clip_rule, averaging, ..Settings::default() }).unwrap();
                    assert_eq!((recipe.batch_size, recipe.steps, recipe.microbatch), (200, 600, 64));
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
        let recipe = build("dp-sgd", &settings).unwrap();
        assert_eq!((recipe.lambda, recipe.steps, recipe.batch_size), (0.01, 77, 123));
        assert_eq!((recipe.sampling, recipe.descent), (Sampling::FixedSize, Descent::Plain));
        assert_eq!((recipe.schedule, recipe.averaging), (Schedule::InverseSqrt { step: 0.3 }, Averaging::Uniform));
        assert_eq!(recipe.clipping, ClippingNorm::new(2.0).unwrap().into());
        // Steps are as long for every clipping norm and momentum.
        for (clip, momentum, expected) in [(0.1, 0.9, 4.0), (1.0, 0.9, 0.4), (1.0, 0.0, 4.0)] {
            let settings = Settings { clip: Some(clip), momentum: Some(momentum), ..Settings::default() };
            let Schedule::Constant { step } = build("dp-sgd", &settings).unwrap().schedule else { panic!() };
            assert!((step - expected).abs() < 1e-12, "{step}");
        }
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
        for entry in ALGORITHMS.iter().filter(|entry| !FOR_MODELS.contains(&entry.name)) {
            assert_eq!(of(entry.name, Settings::default()), "algorithm");
        }
    }
}
