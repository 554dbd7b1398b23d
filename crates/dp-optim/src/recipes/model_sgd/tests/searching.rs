//! Trainings whose step sizes are chosen by a private line search.

use dp_accountant::bound::{self, Theorem};

use super::*;
use crate::engine::RunState;
use crate::line_search::Search;
use crate::recipes::StepSearch;

const SEARCHES: [Search; 2] = [Search::Backtracking, Search::Selection];

/// Halving steps from one at which plain descent on `‖w - x‖²/2` diverges.
fn searching(search: Search) -> ModelSgd {
    let search = StepSearch { search, candidates: 6, shrink: 0.5, armijo: 0.3, most_loss: 30.0, ..StepSearch::new() };
    let schedule = Schedule::Constant { step: 3.2 };
    ModelSgd { search: Some(search), descent: Descent::Plain, schedule, microbatch: 32, ..recipe() }
}

#[test]
fn a_step_costs_its_gradient_and_its_search_on_one_sample() {
    let plain = recipe().plan::<ZeroOut>(5000, 2, budget(2.0)).unwrap();
    for search in SEARCHES {
        for share in [0.02, 0.1] {
            let recipe = searching(search);
            let step_search = StepSearch { share, ..recipe.search.unwrap() };
            let recipe = ModelSgd { search: Some(step_search), ..recipe };
            let plan = recipe.plan::<ZeroOut>(5000, 2, budget(2.0)).unwrap();
            let DpEvent::SelfComposed { event, count: 100 } = plan.event() else { panic!() };
            let DpEvent::PoissonSampled { event, .. } = &**event else { panic!() };
            let DpEvent::Composed { events } = &**event else { panic!() };
            let [DpEvent::Gaussian { std_dev, sensitivity }, choice] = &events[..] else { panic!() };
            // Shares of zCDP: 1/(2ν²) for the gradient, ε²/2 for a pure guarantee, ε²/8 for a range of ε.
            let of_gradient = 0.5 * (sensitivity / std_dev).powi(2);
            let of_search = match choice {
                DpEvent::PureDp { epsilon } if search == Search::Backtracking => epsilon * epsilon / 2.0,
                DpEvent::BoundedRange { epsilon } if search == Search::Selection => epsilon * epsilon / 8.0,
                other => panic!("{other:?}"),
            };
            assert!((of_search / (of_gradient + of_search) / share - 1.0).abs() < 1e-9, "{search:?} {share}");
            let found = bound::epsilon(plan.event(), Delta::new(1e-5).unwrap()).unwrap();
            assert_eq!(found.value, plan.reached().epsilon);
            assert_eq!(found.theorem, Theorem::ContourIntegral);
            assert!(found.value <= 2.0 && found.value > 1.999);
            let more = plan.noise_multiplier() / plain.noise_multiplier();
            // A pure guarantee or a range costs up to π/2 of its zCDP as a Gaussian.
            let (least, most) = (1.0 / (1.0 - share).sqrt(), (1.0 + 1.6 * share / (1.0 - share)).sqrt());
            assert!(more > 0.99 * least && more < 1.01 * most, "{search:?} {share}: {more}");
        }
    }
}

fn trained<F: RealField + Copy>(recipe: &ModelSgd, epsilon: f64, threads: usize) -> (Vec<F>, Vec<f64>) {
    let plan = recipe.plan::<ZeroOut>(5000, 2, budget(epsilon)).unwrap();
    let mut control = Control { workers: Workers::new(threads.try_into().unwrap()), ..Control::default() };
    let (mut rng, mut sizes) = (SeededRng::new(4), Vec::new());
    let mut observer = |after: &AfterUpdate<'_, F>| sizes.push(after.step_size);
    let start = vec![convert(5.0); 2];
    let trained = plan.train(&Mean::new(), &points::<F>(5000), start, &mut rng, &mut control, &mut observer).unwrap();
    (trained.weights.get().clone(), sizes)
}

/// The mean is found from steps that are too long without a search, with the same bits on any number of threads.
#[test]
fn steps_that_are_too_long_are_not_chosen() {
    for search in SEARCHES {
        for descent in [Descent::Plain, Descent::Accelerated { momentum: 0.3 }] {
            let recipe = ModelSgd { descent, ..searching(search) };
            let (weights, sizes) = trained::<f32>(&recipe, 60.0, 1);
            assert!((weights[0] - 0.3).abs() < 0.2 && (weights[1] + 0.6).abs() < 0.2, "{search:?}: {weights:?}");
            assert_eq!((sizes.len(), trained::<f32>(&recipe, 60.0, 3)), (100, (weights, sizes.clone())));
            let double = trained::<f64>(&ModelSgd { float: FloatKind::F64, ..recipe.clone() }, 60.0, 2).0;
            assert!((double[0] - 0.3).abs() < 0.2 && (double[1] + 0.6).abs() < 0.2, "{search:?}: {double:?}");
            let far = trained::<f32>(&ModelSgd { search: None, ..recipe }, 60.0, 1).0;
            assert!((far[0] - 0.3).abs() + (far[1] + 0.6).abs() > 0.5, "{far:?}");
        }
    }
}

/// Of candidates that are all refused, a backtracking search takes the shortest: the run makes as many steps as planned.
#[test]
fn a_step_is_made_where_none_lowers_the_loss() {
    let mut recipe = searching(Search::Backtracking);
    // No loss counts more than a tiny number, so that no decrease outweighs the noise, and an enormous one is required.
    recipe.search = recipe.search.map(|search| StepSearch { most_loss: 1e-6, armijo: 0.9, ..search });
    let (_, sizes) = trained::<f32>(&recipe, 1.0, 1);
    assert_eq!(sizes[..10], [0.1; 10]);
    // From now on the longest candidate is 1.2 times the longest taken.
    assert!(sizes[10..20].iter().all(|size| (size / (0.12 / 32.0) - 1.0).abs() < 1e-12), "{sizes:?}");
}

#[test]
fn a_search_goes_on_from_a_state() {
    for search in SEARCHES {
        let plan = searching(search).plan::<ZeroOut>(5000, 2, budget(4.0)).unwrap();
        let points = points::<f32>(5000);
        let train = |resumed: Option<RunState<f32>>| {
            let start = Start { parameters: vec![5.0; 2], resumed };
            let (mut rng, mut control, mut states) = (SeededRng::new(3), Control::default(), Vec::new());
            let mut observer = |after: &AfterUpdate<'_, f32>| {
                let state = after.state().unwrap();
                assert!((state.chosen.last().unwrap() * 3.2 - after.step_size).abs() < 1e-12);
                states.push(state);
            };
            let model = plan.train(&Mean::new(), &points, start, &mut rng, &mut control, &mut observer);
            model.map(|trained| (trained.log.to_event(), states))
        };
        let (event, states) = train(None).unwrap();
        let state = states[39].clone();
        assert_eq!(state.chosen.len(), 40);
        let (again, later) = train(Some(state.clone().losing(50))).unwrap();
        assert_eq!((again, later.len()), (event, 50));
        let last = later.last().unwrap();
        assert_eq!((last.chosen.len(), &last.chosen[..40]), (90, &state.chosen[..]));
        for chosen in [vec![0.5; 39], vec![0.5; 41], vec![1.5; 40], vec![0.0; 40], vec![f64::NAN; 40], Vec::new()] {
            let refused = train(Some(RunState { chosen, ..state.clone() }));
            assert!(matches!(refused, Err(Error::State { .. })), "{refused:?}");
        }
        // A run without a search has no such state.
        let recipe = ModelSgd { search: None, ..searching(search) };
        let plain = recipe.plan::<ZeroOut>(5000, 2, budget(4.0)).unwrap();
        let start = Start { parameters: vec![5.0; 2], resumed: Some(state) };
        let (mut rng, mut control) = (SeededRng::new(3), Control::default());
        let refused = plain.train(&Mean::new(), &points, start, &mut rng, &mut control, &mut |_| ());
        assert!(matches!(refused, Err(Error::State { .. })));
    }
}

/// Under every relation and sampling the event of the training is the planned one.
#[test]
fn every_relation_has_its_certificate() {
    fn check<A: RecordAdjacency>(recipe: &ModelSgd) {
        let plan = recipe.plan::<A>(5000, 2, budget(3.0)).unwrap();
        assert!(plan.reached().epsilon <= 3.0);
        let (mut rng, mut control) = (dp_mechanisms::OsSeeded::new().unwrap(), Control::default());
        let points = points::<f32>(5000);
        let trained = plan.train(&Mean::new(), &points, vec![0.0; 2], &mut rng, &mut control, &mut |_| ()).unwrap();
        assert!(trained.log.is_private());
        let certificate = trained.certificate(Unit::Record, Vec::new(), "0".repeat(64), BTreeMap::new());
        certificate.verify().unwrap();
        // Another search is another event.
        let mut edited = plan.derivation().clone();
        for edit in [StepSearch { share: 0.09, ..StepSearch::new() }, StepSearch { share: 0.5, ..StepSearch::new() }] {
            use dp_accountant::certificate::Derivation as _;
            edited.recipe.search = Some(StepSearch { search: recipe.search.unwrap().search, ..edit });
            assert_ne!(edited.event().unwrap(), *plan.event());
        }
    }
    for search in SEARCHES {
        let recipe = ModelSgd { steps: 10, ..searching(search) };
        check::<ZeroOut>(&recipe);
        check::<ReplaceOne>(&recipe);
        check::<ReplaceOne>(&ModelSgd { sampling: Sampling::FixedSize, ..recipe });
    }
}

#[test]
fn what_is_out_of_range_is_refused() {
    let plan = |search: StepSearch| {
        let recipe = ModelSgd { search: Some(search), ..recipe() };
        recipe.plan::<ZeroOut>(5000, 2, budget(1.0)).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let usual = StepSearch::new();
    assert_eq!(plan(usual), "");
    for (search, message) in [
        (StepSearch { search: Search::NoisyMin, ..usual }, "choose backtracking or selection"),
        (StepSearch { candidates: 0, ..usual }, "candidates = 0"),
        (StepSearch { candidates: 1025, ..usual }, "candidates = 1025"),
        (StepSearch { candidates: 1024, shrink: 0.7, ..usual }, "shortest step"),
        (StepSearch { shrink: 1.0, ..usual }, "shrink"),
        (StepSearch { armijo: f64::NAN, ..usual }, "armijo"),
        (StepSearch { share: 0.0, ..usual }, "share of the search"),
        (StepSearch { most_loss: f64::INFINITY, ..usual }, "largest loss"),
        (StepSearch { most_loss: 0.0, ..usual }, "largest loss"),
    ] {
        assert!(plan(search).contains(message), "{}", plan(search));
    }
}
