//! Trainings whose clipping norm follows a quantile of the gradients' norms.

use dp_accountant::bound::{self, Theorem};

use super::*;
use crate::engine::RunState;
use crate::recipes::QuantileClipping;

/// From a norm far below those of the gradients, which are about 7 at the start and 1 at the mean.
fn adaptive() -> ModelSgd {
    let norm = QuantileClipping { share: 0.05, ..QuantileClipping::new() };
    ModelSgd {
        adaptive_norm: Some(norm),
        descent: Descent::Plain,
        schedule: Schedule::Constant { step: 0.5 },
        microbatch: 32,
        ..ModelSgd { batch_size: 200, steps: 200, ..ModelSgd::new(ClippingNorm::new(0.05).unwrap()) }
    }
}

#[test]
fn the_count_is_part_of_one_gaussian_on_one_sample() {
    fn parts<A: RecordAdjacency>(recipe: &ModelSgd) -> (Vec<DpEvent>, f64) {
        let plan = recipe.plan::<A>(5000, 2, budget(2.0)).unwrap();
        let found = bound::epsilon(plan.event(), Delta::new(1e-5).unwrap()).unwrap();
        assert!(found.value <= 2.0 && found.value > 1.999 && found.value == plan.reached().epsilon);
        if recipe.sampling == Sampling::Poisson {
            assert_eq!(found.theorem, Theorem::ContourIntegral, "{:?}", A::KIND);
        }
        let mut event = plan.event().clone();
        while let DpEvent::AddRemoveTwice { event: inner }
        | DpEvent::SelfComposed { event: inner, .. }
        | DpEvent::PoissonSampled { event: inner, .. }
        | DpEvent::SampledWithoutReplacement { event: inner, .. } = event
        {
            event = *inner;
        }
        let DpEvent::Composed { events } = event else { panic!("{event:?}") };
        (events, plan.noise_multiplier())
    }
    let recipe = adaptive();
    let fixed = ModelSgd { adaptive_norm: None, ..recipe.clone() }.plan::<ZeroOut>(5000, 2, budget(2.0)).unwrap();
    let (events, noise) = parts::<ZeroOut>(&recipe);
    let count = |events: &[DpEvent]| match events[1] {
        DpEvent::Gaussian { std_dev, sensitivity } => (std_dev / sensitivity, sensitivity),
        ref other => panic!("{other:?}"),
    };
    // A twentieth of 1/z² is the count's.
    let (multiplier, sensitivity) = count(&events);
    assert_eq!(sensitivity, 0.5);
    let DpEvent::Gaussian { std_dev, sensitivity: of_sum } = events[0] else { panic!() };
    assert!((multiplier.powi(-2) / (multiplier.powi(-2) + (of_sum / std_dev).powi(2)) - 0.05).abs() < 1e-12);
    assert!((noise * 0.95f64.sqrt() / fixed.noise_multiplier() - 1.0).abs() < 1e-3, "{noise}");
    assert_eq!(count(&parts::<ReplaceOne>(&recipe).0).1, 0.5);
    assert_eq!(count(&parts::<ReplaceOne>(&ModelSgd { sampling: Sampling::FixedSize, ..recipe.clone() }).0).1, 1.0);
    // Whatever the budget, the count fits into it.
    for epsilon in [0.05, 0.5, 8.0] {
        recipe.plan::<ZeroOut>(1000, 2, budget(epsilon)).unwrap();
    }
}

fn trained<F: RealField + Copy>(recipe: &ModelSgd, threads: usize) -> (Vec<F>, Vec<RunState<F>>) {
    let plan = recipe.plan::<ZeroOut>(5000, 2, budget(8.0)).unwrap();
    let mut control = Control { workers: Workers::new(threads.try_into().unwrap()), ..Control::default() };
    let (mut rng, mut states) = (SeededRng::new(4), Vec::new());
    let mut observer = |after: &AfterUpdate<'_, F>| states.push(after.state().unwrap());
    let start = vec![convert(5.0); 2];
    let trained = plan.train(&Mean::new(), &points::<F>(5000), start, &mut rng, &mut control, &mut observer).unwrap();
    (trained.weights.get().clone(), states)
}

/// The norm grows while gradients are longer, and ends near their median; with it the steps are long enough to find the mean.
#[test]
fn the_norm_follows_the_median() {
    for quantile in [0.2, 0.5, 0.8] {
        let recipe = adaptive();
        let norm = QuantileClipping { quantile, ..recipe.adaptive_norm.unwrap() };
        let recipe = ModelSgd { adaptive_norm: Some(norm), ..recipe };
        let (weights, states) = trained::<f32>(&recipe, 1);
        assert!((weights[0] - 0.3).abs() < 0.2 && (weights[1] + 0.6).abs() < 0.2, "{weights:?}");
        let scales: Vec<f64> = states.iter().map(|state| state.norm_scale).collect();
        // At first no gradient is below the norm.
        assert!(scales[..10].windows(2).all(|pair| pair[1] > pair[0]), "{:?}", &scales[..10]);
        // The share of gradients below the norms at the end, on average.
        let below = |(state, scale): (&RunState<f32>, &f64)| {
            let norm = 0.05 * scale;
            let far = |point: &&[f32; 2]| {
                let squares = [0, 1].map(|j| f64::from(state.vectors[0][j] - point[j]).powi(2));
                squares.iter().sum::<f64>() <= norm * norm
            };
            points::<f32>(5000).0.iter().filter(far).count() as f64 / 5000.0
        };
        // The norm after a step is that of the next one.
        let share = states[100..].iter().zip(&scales[100..]).map(below).sum::<f64>() / 100.0;
        assert!((share - quantile).abs() < 0.12, "{quantile}: {share}");
        let (again, states_again) = trained::<f32>(&recipe, 3);
        assert_eq!((again, states_again), (weights, states));
        let double = trained::<f64>(&ModelSgd { float: FloatKind::F64, ..recipe }, 2).0;
        assert!((double[0] - 0.3).abs() < 0.2 && (double[1] + 0.6).abs() < 0.2, "{double:?}");
    }
    let stuck = trained::<f32>(&ModelSgd { adaptive_norm: None, ..adaptive() }, 1).0;
    assert!((stuck[0] - 0.3).abs() > 0.5, "{stuck:?}");
}

#[test]
fn a_norm_goes_on_from_a_state_and_has_its_certificate() {
    let plan = adaptive().plan::<ZeroOut>(5000, 2, budget(8.0)).unwrap();
    let points = points::<f32>(5000);
    let train = |plan: &ModelPlan<ZeroOut>, resumed: Option<RunState<f32>>| {
        let start = Start { parameters: vec![5.0; 2], resumed };
        let (mut rng, mut control, mut states) =
            (dp_mechanisms::OsSeeded::new().unwrap(), Control::default(), Vec::new());
        let mut observer = |after: &AfterUpdate<'_, f32>| states.push(after.state().unwrap());
        plan.train(&Mean::new(), &points, start, &mut rng, &mut control, &mut observer).map(|trained| (trained, states))
    };
    let (whole, states) = train(&plan, None).unwrap();
    assert!(whole.log.is_private());
    let certificate = whole.certificate(Unit::Record, Vec::new(), "0".repeat(64), BTreeMap::new());
    certificate.verify().unwrap();
    let state = states[59].clone();
    let (resumed, later) = train(&plan, Some(state.clone().losing(70))).unwrap();
    assert_eq!((later.len(), resumed.log.to_event()), (130, plan.event().clone()));
    let ratio = later[0].norm_scale / state.norm_scale;
    assert!(ratio > 0.7 && ratio < 1.4, "{ratio}");
    for norm_scale in [0.0, -1.0, f64::NAN, 1e9, 1e-9] {
        let refused = train(&plan, Some(RunState { norm_scale, ..state.clone() }));
        assert!(matches!(refused, Err(Error::State { .. })), "{norm_scale}");
    }
    let fixed = ModelSgd { adaptive_norm: None, ..adaptive() }.plan::<ZeroOut>(5000, 2, budget(8.0)).unwrap();
    assert!(matches!(train(&fixed, Some(state)), Err(Error::State { .. })));
}

#[test]
fn what_does_not_go_with_an_adaptive_norm_is_refused() {
    let plan = |recipe: ModelSgd| {
        recipe.plan::<ZeroOut>(5000, 2, budget(1.0)).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(plan(adaptive()), "");
    let with = |norm: QuantileClipping| ModelSgd { adaptive_norm: Some(norm), ..adaptive() };
    let usual = adaptive().adaptive_norm.unwrap();
    let norm = ClippingNorm::new(0.5).unwrap();
    let adam_bc = Descent::AdamBc { first_decay: 0.9, second_decay: 0.999, floor: 0.1 };
    for (recipe, message) in [
        (with(QuantileClipping { quantile: 0.0, ..usual }), "quantile"),
        (with(QuantileClipping { rate: 0.0, ..usual }), "rate"),
        (with(QuantileClipping { rate: 1.5, ..usual }), "rate"),
        (with(QuantileClipping { share: 0.0, ..usual }), "share of the count"),
        (ModelSgd { clipping: ClippingNorm::new(1e-10).unwrap().into(), ..adaptive() }, "single precision"),
        (ModelSgd { clipping: GradientClipping::PerBlock(norm), ..adaptive() }, "flat clipping"),
        (ModelSgd { descent: adam_bc, ..adaptive() }, "DP-AdamBC"),
        (ModelSgd { search: Some(StepSearch::new()), ..adaptive() }, "either"),
    ] {
        assert!(plan(recipe.clone()).contains(message), "{}", plan(recipe));
    }
}
