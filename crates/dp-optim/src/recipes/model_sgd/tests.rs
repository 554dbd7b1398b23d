mod adaptive;
mod resuming;
mod searching;

use std::collections::BTreeMap;

use dp_accountant::certificate::{Certificate, NoiseMode};
use dp_accountant::guarantee::Unit;
use dp_accountant::{AdjacencyKind, Delta, DpEvent, ReplaceOne, ZeroOut};
use dp_data::{Samples, Workers};
use dp_losses::{ChoosesFrom, LossKind, Model, ParameterBlock};
use dp_mechanisms::SeededRng;
use dp_mechanisms::clip::{AutomaticClipping, ClippingNorm, GradientClipping};
use nalgebra::{RealField, convert};

use super::*;
use crate::engine::{AdmmOutput, AfterUpdate, Control, Start};
use crate::recipes::{DpSgd, Planned, Recipe};

/// Points of which the model finds the mean.
struct Points<F>(Vec<[F; 2]>);

impl<F: Sync> Samples for Points<F> {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }
}

/// The loss `‖w - x‖²/2`.
struct Mean([ParameterBlock; 1]);

impl Mean {
    fn new() -> Self {
        Self([ParameterBlock { name: "mean".into(), range: 0..2 }])
    }
}

type Chosen<'a, F> = (&'a Points<F>, &'a [u32]);

impl<F: RealField + Copy> Model<F> for Mean {
    type Batch<'a> = Chosen<'a, F>;
    /// The gradients.
    type Pass = Vec<[F; 2]>;

    fn blocks(&self) -> &[ParameterBlock] {
        &self.0
    }

    fn pass(&self, _: usize) -> Vec<[F; 2]> {
        Vec::new()
    }

    fn forward(&self, w: &[F], (points, positions): Chosen<'_, F>, pass: &mut Vec<[F; 2]>) {
        pass.clear();
        pass.extend(positions.iter().map(|&i| [0, 1].map(|k| w[k] - points.0[i as usize][k])));
    }

    fn losses(&self, _: Chosen<'_, F>, pass: &Vec<[F; 2]>, out: &mut [F]) {
        let half: F = convert(0.5);
        out.iter_mut().zip(pass).for_each(|(out, g)| *out = half * (g[0] * g[0] + g[1] * g[1]));
    }

    fn backward(&self, _: &[F], _: Chosen<'_, F>, _: &mut Vec<[F; 2]>) {}

    fn squared_norms(&self, _: Chosen<'_, F>, pass: &mut Vec<[F; 2]>, out: &mut [F]) {
        out.iter_mut().zip(pass).for_each(|(out, g)| *out = g[0] * g[0] + g[1] * g[1]);
    }

    fn add_weighted(&self, _: Chosen<'_, F>, pass: &mut Vec<[F; 2]>, coefficients: &[F], sum: &mut [F]) {
        for (&c, g) in coefficients.iter().zip(pass) {
            sum.iter_mut().zip(g.iter()).for_each(|(sum, &g)| *sum += c * g);
        }
    }

    fn add_weighted_in_double(&self, _: Chosen<'_, F>, pass: &mut Vec<[F; 2]>, coefficients: &[F], sum: &mut [f64]) {
        let wide = |x: F| -> f64 { x.to_subset_unchecked() };
        for (&c, g) in coefficients.iter().zip(pass) {
            sum.iter_mut().zip(g.iter()).for_each(|(sum, &g)| *sum += wide(c) * wide(g));
        }
    }
}

impl<F: RealField + Copy> ChoosesFrom<F, Points<F>> for Mean {
    fn choose<'a>(&self, points: &'a Points<F>, positions: &'a [u32]) -> Chosen<'a, F> {
        (points, positions)
    }
}

fn points<F: RealField + Copy>(n: u32) -> Points<F> {
    Points((0..n).map(|i| [f64::from(i).sin() + 0.3, f64::from(i).cos() - 0.6].map(convert)).collect())
}

fn budget(epsilon: f64) -> Budget {
    Budget::new(epsilon, 1e-5).unwrap()
}

fn recipe() -> ModelSgd {
    ModelSgd { batch_size: 200, steps: 100, ..ModelSgd::new(ClippingNorm::new(1.5).unwrap()) }
}

/// The cost is that of DP-SGD on rows with the same numbers, under both relations.
#[test]
fn costs_are_those_of_rows() {
    let norm = ClippingNorm::new(0.5).unwrap();
    let rows = DpSgd { batch_size: 100, steps: Some(70), clipping: Some(norm), ..DpSgd::new(LossKind::Squared) };
    let recipe = ModelSgd {
        batch_size: 100,
        steps: 70,
        microbatch: 1024,
        in_float: false,
        float: FloatKind::F64,
        ..ModelSgd::new(norm)
    };
    fn events<A: RecordAdjacency>(recipe: &ModelSgd, rows: &DpSgd) -> [DpEvent; 2] {
        let of_rows = rows.plan::<A>(5000, 9, budget(1.0)).unwrap().event();
        [recipe.plan::<A>(5000, 9, budget(1.0)).unwrap().event().clone(), of_rows]
    }
    for [found, expected] in [events::<ZeroOut>(&recipe, &rows), events::<ReplaceOne>(&recipe, &rows)] {
        assert_eq!(found, expected);
    }
    let fixed = ModelSgd { sampling: Sampling::FixedSize, ..recipe };
    let rows = DpSgd { sampling: Sampling::FixedSize, ..rows };
    let [found, expected] = events::<ReplaceOne>(&fixed, &rows);
    assert_eq!(found, expected);
    // Sums in single precision cost half a percent of noise.
    let single = ModelSgd { in_float: true, float: FloatKind::F32, microbatch: 128, ..recipe_of(&fixed) };
    let noise = |recipe: &ModelSgd| recipe.plan::<ZeroOut>(5000, 9, budget(1.0)).unwrap().noise_multiplier();
    let ratio = noise(&single) / noise(&recipe_of(&fixed));
    assert!(ratio > 1.001 && ratio < 1.0025, "{ratio}");
}

fn recipe_of(fixed: &ModelSgd) -> ModelSgd {
    ModelSgd { sampling: Sampling::Poisson, ..fixed.clone() }
}

/// Every descent finds the mean of 5000 points within the noise, in either float type, with the same bits on any number of threads.
#[test]
fn a_model_is_trained_from_its_start() {
    fn trained<F: RealField + Copy>(recipe: &ModelSgd, threads: usize) -> (Vec<F>, Vec<Vec<F>>) {
        let plan = recipe.plan::<ZeroOut>(5000, 2, budget(4.0)).unwrap();
        let mut control = Control { workers: Workers::new(threads.try_into().unwrap()), ..Control::default() };
        let mut seen = Vec::new();
        let mut observer = |moment: &AfterUpdate<'_, F>| {
            seen.push(moment.iterate.to_vec());
            assert_eq!(moment.update as usize, seen.len());
        };
        let (start, mut rng) = (vec![convert(5.0); 2], SeededRng::new(4));
        let result = plan.train(&Mean::new(), &points::<F>(5000), start, &mut rng, &mut control, &mut observer);
        (result.unwrap().weights.get().clone(), seen)
    }
    let adam = Descent::Adam { first_decay: 0.9, second_decay: 0.999, epsilon: 1e-8 };
    let adam_bc = Descent::AdamBc { first_decay: 0.9, second_decay: 0.999, floor: 0.1 };
    for (descent, step, steps) in [
        (Descent::Plain, 0.5, 100),
        (Descent::Accelerated { momentum: 0.9 }, 0.05, 300),
        (Descent::HeavyBall { momentum: 0.9 }, 0.05, 300),
        (adam, 0.05, 300),
        (adam_bc, 0.02, 400),
    ] {
        let schedule = Schedule::Constant { step };
        let recipe = ModelSgd { descent, steps, schedule, microbatch: 32, ..recipe() };
        let (weights, seen) = trained::<f32>(&recipe, 1);
        assert!((weights[0] - 0.3).abs() < 0.15 && (weights[1] + 0.6).abs() < 0.15, "{descent:?}: {weights:?}");
        assert!(seen.len() == steps as usize && seen.last() == Some(&weights));
        assert_eq!(trained::<f32>(&recipe, 3), (weights, seen));
        let double = trained::<f64>(&ModelSgd { float: FloatKind::F64, ..recipe }, 1).0;
        assert!((double[0] - 0.3).abs() < 0.15 && (double[1] + 0.6).abs() < 0.15, "{descent:?}: {double:?}");
    }
    // The other rules of clipping: the norm only scales the steps of automatic clipping.
    let norm = ClippingNorm::new(0.5).unwrap();
    for clipping in [GradientClipping::PerBlock(norm), AutomaticClipping::new(norm, 0.01).unwrap().into()] {
        let weights = trained::<f32>(&ModelSgd { clipping, steps: 300, ..recipe() }, 1).0;
        assert!((weights[0] - 0.3).abs() < 0.25 && (weights[1] + 0.6).abs() < 0.25, "{clipping:?}: {weights:?}");
    }
    let averaging = Averaging::Exponential { decay: 0.9 };
    let (weights, _) = trained::<f32>(&ModelSgd { averaging, ..recipe() }, 1);
    assert!((weights[0] - 0.3).abs() < 0.15 && (weights[1] + 0.6).abs() < 0.15, "{weights:?}");
    // The mean of the iterates is a function of what the observer sees.
    let averaging = Averaging::Suffix { updates: 10 };
    let (weights, seen) = trained::<f64>(&ModelSgd { averaging, float: FloatKind::F64, ..recipe() }, 1);
    let mean = seen[90..].iter().map(|iterate| iterate[0]).sum::<f64>() / 10.0;
    assert!((mean - weights[0]).abs() < 1e-12);
}

/// Without privacy the mean is found as closely as the steps allow.
#[test]
fn the_baseline_finds_the_mean() {
    fn trained<F: RealField + Copy>(recipe: &NonPrivateSgd) -> Result<Vec<F>, Error> {
        let (mut rng, mut control) = (SeededRng::new(4), Control::default());
        let start = vec![convert(5.0); 2];
        let model = recipe.train(&Mean::new(), &points::<F>(5000), start, &mut rng, &mut control, &mut |_| ())?;
        Ok(model.expose_without_any_guarantee())
    }
    let adam = Descent::Adam { first_decay: 0.9, second_decay: 0.999, epsilon: 1e-8 };
    let recipe = NonPrivateSgd { batch_size: 1000, steps: 800, ..NonPrivateSgd::new() };
    for (descent, step) in [(Descent::Plain, 0.05), (Descent::Accelerated { momentum: 0.9 }, 0.005), (adam, 0.02)] {
        let recipe = NonPrivateSgd { descent, schedule: Schedule::Constant { step }, ..recipe.clone() };
        let single = trained::<f32>(&recipe).unwrap();
        assert!((single[0] - 0.3).abs() < 0.03 && (single[1] + 0.6).abs() < 0.03, "{descent:?}: {single:?}");
        let double = trained::<f64>(&NonPrivateSgd { float: FloatKind::F64, ..recipe }).unwrap();
        assert!((double[0] - 0.3).abs() < 0.03 && (double[1] + 0.6).abs() < 0.03, "{descent:?}: {double:?}");
    }
    let admm = Descent::Admm { rho: 1.0, output: AdmmOutput::Sparse };
    for wrong in [
        NonPrivateSgd { steps: 0, ..recipe.clone() },
        NonPrivateSgd { batch_size: 5001, ..recipe.clone() },
        NonPrivateSgd { batch_size: 0, ..recipe.clone() },
        NonPrivateSgd { lambda: -1.0, ..recipe.clone() },
        NonPrivateSgd { descent: admm, ..recipe.clone() },
        NonPrivateSgd { float: FloatKind::F64, ..recipe.clone() },
    ] {
        assert!(trained::<f32>(&wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_certificate_is_derived_again() {
    let recipe = ModelSgd { noise_mode: NoiseMode::Rounded, ..recipe() };
    let plan = recipe.plan::<ReplaceOne>(5000, 2, budget(2.0)).unwrap();
    assert!(matches!(plan.event(), DpEvent::AddRemoveTwice { .. }) && plan.reached().epsilon <= 2.0);
    let (mut rng, mut control) = (dp_mechanisms::OsSeeded::new().unwrap(), Control::default());
    let trained =
        plan.train(&Mean::new(), &points::<f32>(5000), vec![0.0; 2], &mut rng, &mut control, &mut |_| ()).unwrap();
    assert!(trained.log.is_private());
    let certificate = trained.certificate(Unit::Record, Vec::new(), "0".repeat(64), BTreeMap::new());
    certificate.verify().unwrap();
    let text = format!("{:?}", certificate.assumptions);
    assert!(text.contains("norms that it states") && text.contains("Idealised"), "{text}");
    let edited = |edit: fn(&mut ModelDerivation)| {
        let mut certificate: Certificate<ModelDerivation> = certificate.clone();
        edit(&mut certificate.derivation);
        certificate.verify()
    };
    let edits: [fn(&mut ModelDerivation); 6] = [
        |derivation| derivation.std_dev *= 1.001,
        |derivation| derivation.n += 1,
        |derivation| derivation.recipe.steps -= 1,
        |derivation| derivation.recipe.batch_size -= 1,
        |derivation| derivation.recipe.microbatch += 1,
        |derivation| derivation.recipe.clipping = ClippingNorm::new(1.4).unwrap().into(),
    ];
    for (index, edit) in edits.into_iter().enumerate() {
        assert!(edited(edit).is_err(), "{index}");
    }
}

#[cfg(feature = "serde")]
#[test]
fn the_derivation_is_read_as_it_was_written() {
    use dp_accountant::certificate::Derivation as _;

    let plan = recipe().plan::<ZeroOut>(5000, 2, budget(2.0)).unwrap();
    let text = serde_json::to_string(plan.derivation()).unwrap();
    let read: ModelDerivation = serde_json::from_str(&text).unwrap();
    assert_eq!(&read, plan.derivation());
    assert_eq!(read.event().unwrap(), *plan.event());
    assert!(serde_json::from_str::<ModelDerivation>(&text.replacen("{", r#"{"more":1,"#, 1)).is_err());
}

#[test]
fn what_is_not_proved_is_refused_before_data_is_read() {
    let plan = |recipe: ModelSgd| recipe.plan::<ZeroOut>(60_000, 2, budget(1.0)).err().map(|error| error.to_string());
    assert_eq!(plan(recipe()), None);
    let admm = Descent::Admm { rho: 1.0, output: AdmmOutput::Sparse };
    let long = Schedule::Constant { step: 1e30 };
    for (recipe, message) in [
        (ModelSgd { sampling: Sampling::Passes, ..recipe() }, "its batches are drawn"),
        (ModelSgd { sampling: Sampling::FixedSize, ..recipe() }, "proved for replace-one"),
        (ModelSgd { noise_mode: NoiseMode::None, ..recipe() }, "without noise there is no guarantee"),
        (ModelSgd { descent: admm, ..recipe() }, "ADMM and consensus"),
        (ModelSgd { steps: 0, ..recipe() }, "steps = 0"),
        (ModelSgd { batch_size: 0, ..recipe() }, "batch size = 0"),
        (ModelSgd { batch_size: 60_001, ..recipe() }, "batch size = 60001"),
        (ModelSgd { microbatch: 2048, ..recipe() }, "slack for the rounding of a sum"),
        (ModelSgd { lambda: -1.0, ..recipe() }, "lambda"),
        (ModelSgd { schedule: long, ..recipe() }, "could overflow"),
        (ModelSgd { averaging: Averaging::Suffix { updates: 0 }, ..recipe() }, "averaging suffix"),
        (ModelSgd { descent: Descent::Accelerated { momentum: 1.0 }, ..recipe() }, "momentum"),
    ] {
        let found = plan(recipe).unwrap_or_default();
        assert!(found.contains(message), "{found} instead of {message}");
    }
    let none = Budget { delta: Delta::ZERO, ..budget(1.0) };
    assert!(recipe().plan::<ZeroOut>(1000, 2, none).unwrap_err().to_string().contains("delta > 0"));
    assert!(recipe().plan::<ZeroOut>(1000, 0, budget(1.0)).is_err());
    let secret = recipe().sums(1000, AdjacencyKind::AddRemoveOne);
    assert!(matches!(secret, Err(Error::Adjacency { .. })));

    // Another model, other data or another type than planned.
    let plan = recipe().plan::<ZeroOut>(5000, 2, budget(1.0)).unwrap();
    let mut rng = SeededRng::new(1);
    let mut train = |n, start: usize| {
        let (points, start) = (points::<f32>(n), vec![0.0; start]);
        plan.train(&Mean::new(), &points, start, &mut rng, &mut Control::default(), &mut |_| ()).map(|_| ())
    };
    train(5000, 2).unwrap();
    assert!(matches!(train(4999, 2), Err(Error::Shape { name: "n", planned: 5000, found: 4999 })));
    assert!(matches!(train(5000, 3), Err(Error::Shape { name: "parameters", planned: 2, found: 3 })));
    let double =
        plan.train(&Mean::new(), &points::<f64>(5000), vec![0.0; 2], &mut rng, &mut Control::default(), &mut |_| ());
    assert!(matches!(double, Err(Error::FloatKind { .. })));
    let cancelled = core::sync::atomic::AtomicBool::new(true);
    let mut control = Control { cancelled: Some(&cancelled), ..Control::default() };
    let start = vec![0.0; 2];
    let stopped = plan.train(&Mean::new(), &points::<f32>(5000), start, &mut rng, &mut control, &mut |_| ());
    assert!(matches!(stopped, Err(Error::Interrupted)));
}
