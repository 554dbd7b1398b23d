use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_accountant::{Delta, ZeroOut};
use dp_losses::LossKind;

use super::*;
use crate::recipes::algorithm::Algorithm as _;
use crate::recipes::pnsgd::{Batching, Pnsgd, runs};
use crate::recipes::recipe::{Planned, Recipe};
use crate::schedule::Schedule;

fn budget(delta: f64) -> Budget {
    Budget::new(1.0, delta).unwrap()
}

fn recipe() -> Pnsgd {
    Pnsgd { row_norm: 0.5, ..Pnsgd::new(LossKind::Logistic) }
}

fn terms(recipe: &Pnsgd, n: u64, dim: u64, relation: AdjacencyKind) -> Result<Terms, Error> {
    recipe.inputs().terms(&Problem::new(recipe, n, dim, relation)?)
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-13 * expected.abs(), "{found} {expected}");
}

/// Two passes, each of three updates on 7 records and two on 4, of 5 features.
fn descent(recipe: &Pnsgd) -> Descent {
    let (inputs, problem) = (recipe.inputs(), Problem::new(recipe, 29, 5, AdjacencyKind::ReplaceOne).unwrap());
    let updates = vec![Updates { count: 3, batch_size: 7, step: 0.5 }, Updates { count: 2, batch_size: 4, step: 0.25 }];
    Descent::new(inputs, inputs.terms(&problem).unwrap(), &problem, 2, updates).unwrap()
}

/// The radius is twice the longest path (steps of total length 4 with gradients of at most 1/2) or twice the limit of a
/// contraction, plus twice the norm of all noise, whose squared steps add up to 7/4.
#[test]
fn the_ball_holds_every_way_and_all_noise() {
    let noise = |std_dev: f64| std_dev * 1.75f64.sqrt() * (5f64.sqrt() + 6.0);
    let ball = |lambda: f64, std_dev: f64| descent(&Pnsgd { lambda, ..recipe() }).ball(std_dev);
    for std_dev in [0.1, 3.0] {
        close(ball(0.0, std_dev), 2.0 * (0.5 * 4.0 + noise(std_dev)));
        // Contractions end at L/λ, farther than the path or nearer.
        close(ball(0.1, std_dev), 2.0 * (0.5 * 4.0 + noise(std_dev)));
        close(ball(0.5, std_dev), 2.0 * (0.5 / 0.5 + noise(std_dev)));
        close(ball(2.0, std_dev), 2.0 * (0.5 / 2.0 + noise(std_dev)));
        // A step beyond 1/λ flips the weights.
        close(ball(2.5, std_dev), 2.0 * (0.5 * 4.0 + noise(std_dev)));
        assert_eq!(descent(&Pnsgd { radius: Some(0.3), ..recipe() }).ball(std_dev), 0.3);
    }
    let all = DescentRun::new(descent(&recipe()), 0.7).unwrap();
    close(all.noise_norm(), 0.7 * (1.75f64 * 5.0).sqrt());
}

/// The mechanism's inputs for each run of updates, by the formulas: sensitivity `ηG/B`, contraction, rounding, noise.
#[test]
fn the_mechanism_is_told_what_the_formulas_say() {
    let unit = f64::EPSILON / 2.0;
    for (loss, lambda) in [
        (LossKind::Logistic, 0.0),
        (LossKind::Logistic, 0.3),
        (LossKind::Logistic, 1e-17),
        ("softmax:3".parse().unwrap(), 0.3),
    ] {
        let classes = loss.outputs() > 1;
        let recipe = Pnsgd { lambda, row_norm: 0.5, ..Pnsgd::new(loss) };
        let descent = descent(&recipe);
        let parameters = if classes { 15 } else { 5 };
        assert_eq!(descent.parameters(), parameters);
        let Constants { smoothness, data_lipschitz, .. } = descent.terms.constants;
        if !classes {
            close(data_lipschitz, 0.5);
            close(smoothness, 0.0625 + lambda);
            close(descent.terms.gradient_difference, 1.0);
            let null = terms(&recipe, 29, 5, AdjacencyKind::ZeroOut).unwrap();
            close(null.gradient_difference, 0.5);
        }
        let std_dev = 2.0;
        let ball = descent.ball(std_dev);
        // For several classes: an exponential for each and their sum; the largest score is subtracted.
        let (of_derivative, of_margins) = if classes { (2.0 * 11.0, 4.0) } else { (0.0, 0.0) };
        let dim = parameters as f64;
        let run = |count: u64, batch_size: u64, step: f64| {
            let batch = batch_size as f64;
            let rounding = (16.0 + dim / 2.0) * ball
                + step
                    * (4.0 * lambda * ball
                        + smoothness * (dim + 2.0 + of_margins) * ball
                        + (batch + 24.0 + of_derivative) * data_lipschitz);
            let update = Updates { count, batch_size, step };
            close(descent.rounding_of_update(&update, ball), 1.01 * unit * rounding);
            let sensitivity = step * descent.terms.gradient_difference / batch * (1.0 + 4.0 * f64::EPSILON);
            close(descent.sensitivity(&update), sensitivity);
            assert!(descent.sensitivity(&update) > step * descent.terms.gradient_difference / batch);
            let exact = (1.0 - step * lambda).max((1.0 - step * smoothness).abs());
            let contraction = if lambda > 0.0 { (exact + 4.0 * f64::EPSILON).min(1.0) } else { 1.0 };
            let deviation = 2.0 * descent.rounding_of_update(&update, ball);
            Iterates { count, sensitivity, contraction, deviation, std_dev: step * std_dev }
        };
        let pass = vec![run(3, 7, 0.5), run(2, 4, 0.25)];
        let expected = LastIterate::<ReplaceOne>::new(parameters, pass, 2).unwrap();
        assert_eq!(descent.event(std_dev).unwrap(), expected.event(), "{loss} {lambda}");
        assert_eq!(descent.mechanism::<ZeroOut>(std_dev).unwrap().event(), expected.event());
    }
}

#[test]
fn bounds_are_refused_beyond_their_limits() {
    let refused = |recipe: Pnsgd, n, dim| terms(&recipe, n, dim, AdjacencyKind::ReplaceOne).is_err();
    for (row_norm, refuse) in [
        (1.0, false),
        (1e-3, false),
        (1.0 + 1e-15, true),
        (0.0, true),
        (-0.5, true),
        (f64::INFINITY, true),
        (f64::NEG_INFINITY, true),
        (f64::NAN, true),
    ] {
        assert_eq!(refused(Pnsgd { row_norm, ..recipe() }, 9, 2), refuse, "{row_norm}");
    }
    for (target_bound, refuse) in [(1.0, false), (1.0 + 1e-15, true), (f64::NAN, true)] {
        assert_eq!(refused(Pnsgd { target_bound, ..recipe() }, 9, 2), refuse, "{target_bound}");
    }
    for (radius, refuse) in [(1e30, false), (1.1e30, true), (0.0, true), (-1.0, true), (f64::NAN, true)] {
        assert_eq!(refused(Pnsgd { radius: Some(radius), ..recipe() }, 9, 2), refuse, "{radius}");
    }
    assert!(refused(recipe(), 0, 2) && refused(recipe(), 9, 0));
    let most = (1e-3 / f64::EPSILON) as u64;
    assert!(!refused(recipe(), 9, most) && refused(recipe(), 9, most + 1));
    // A loss with unbounded slope.
    assert!(refused(Pnsgd { loss: LossKind::Squared, ..recipe() }, 9, 2));
    assert!(!refused(Pnsgd { loss: LossKind::Squared, radius: Some(1.0), ..recipe() }, 9, 2));
    assert!(descent(&recipe()).least_noise(budget(0.0), 1).is_err());
    for std_dev in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(DescentRun::new(descent(&recipe()), std_dev).is_err(), "{std_dev}");
    }
    for (mode, idealised) in [(NoiseMode::Exact, false), (NoiseMode::Rounded, true)] {
        let recipe = Pnsgd { noise_mode: mode, declared_order: true, ..recipe() };
        let assumptions = recipe.assumptions(&Problem::new(&recipe, 9, 2, AdjacencyKind::ReplaceOne).unwrap());
        assert_eq!(assumptions.contains(&Assumption::IdealisedFloat), idealised);
        assert!(assumptions.contains(&Assumption::DeclaredOrder));
    }
}

/// Consecutive equal updates are combined; the default step is `D/(L√(2T))` for all updates of all passes, at most `2/β`.
#[test]
fn runs_and_steps_of_pnsgd() {
    let updates = [(5, 0.5), (5, 0.5), (5, 0.25), (4, 0.25), (4, 0.25), (5, 0.5)];
    let found: Vec<_> = runs(updates.into_iter()).iter().map(|run| (run.count, run.batch_size, run.step)).collect();
    assert_eq!(found, [(2, 5, 0.5), (1, 5, 0.25), (2, 4, 0.25), (1, 5, 0.5)]);
    let usual = Pnsgd { row_norm: 0.5, distance: 3.0, passes: 4, ..Pnsgd::new(LossKind::Logistic) };
    let plan = |recipe: &Pnsgd, n| recipe.plan::<ReplaceOne>(n, 5, budget(1e-6));
    let listed = |sizes: &[u64]| Pnsgd { batching: Batching::Listed { sizes: sizes.to_vec() }, ..usual.clone() };
    // L = 1/2, T = 4 passes of 20 batches.
    let step = 3.0 / (0.5 * 160f64.sqrt());
    for recipe in [usual.clone(), listed(&[50; 20])] {
        let planned = plan(&recipe, 1000).unwrap();
        let [run] = planned.run().updates() else { panic!("{:?}", planned.run().updates()) };
        assert!(run.count == 20 && run.batch_size == 50, "{run:?}");
        close(run.step, step);
        close(planned.run().noise_norm(), planned.run().std_dev() * step * (80f64 * 5.0).sqrt());
        let text = planned.summary().text;
        assert!(text.contains("80 updates, batches of 50, first step"), "{text}");
    }
    let two = plan(&listed(&[50, 50, 30]), 1000).unwrap();
    assert!(two.summary().text.contains("12 updates, batches of 30 to 50, "), "{}", two.summary().text);
    // β = 1/16: the longest step is 32, which rounding must not exceed.
    let far = plan(&Pnsgd { distance: 1e4, ..usual.clone() }, 1000).unwrap();
    let longest = far.run().updates()[0].step;
    assert!(longest <= 32.0 && longest > 32.0 * (1.0 - 1e-15), "{longest}");
    for sizes in [&[][..], &[0], &[5, 0, 5], &[5, 6]] {
        let name = if sizes == [5, 6] { "sum of the batch sizes" } else { "batch size" };
        let error = plan(&listed(sizes), 10).unwrap_err();
        assert!(matches!(error, Error::Count { name: found, .. } if found == name), "{sizes:?}: {error}");
    }
    // More different updates than are listed.
    let schedule = Some(Schedule::InverseSqrt { step: 1.0 });
    let many = Pnsgd { batching: Batching::Equal { size: 1 }, schedule, ..usual };
    let error = plan(&many, (1 << 25) + 1).unwrap_err();
    assert!(matches!(error, Error::Count { name: "updates per pass", .. }), "{error}");
}

/// Listed batches that omit some records run as listed: as many as planned, with noise after each, on exactly their records.
#[test]
fn listed_batches_are_run_as_listed() {
    use dp_data::Examples;
    use dp_mechanisms::SeededRng;

    for (sizes, schedule) in [
        (vec![5u64; 4], None),
        (vec![5; 6], None),
        (vec![5, 7, 5], None),
        (vec![5; 4], Some(Schedule::InverseSqrt { step: 1.0 })),
    ] {
        let used = sizes.iter().sum::<u64>();
        let (batching, declared_order) = (Batching::Listed { sizes }, true);
        let usual = Pnsgd { row_norm: 0.5, passes: 2, declared_order, ..Pnsgd::new(LossKind::Logistic) };
        let plan = Pnsgd { batching, schedule, ..usual }.plan::<ReplaceOne>(30, 2, budget(1e-6)).unwrap();
        let train = |changed: u64| {
            let rows = (0..30).flat_map(|i| [if i == changed { -0.4 } else { 0.01 * i as f64 }, 0.3]).collect();
            let labels = (0..30).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
            let mut source = crate::MemorySource::new(Examples::dense(rows, labels, 2).unwrap(), 0.5, 1.0);
            let mut control = crate::engine::Control::default();
            let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(3), &mut control).unwrap();
            assert_eq!(trained.log.to_event(), plan.event());
            trained.weights.into_inner()
        };
        let (all, last, next) = (train(u64::MAX), train(used - 1), train(used));
        assert!(all != last && (all == next || used == 30), "{used}");
    }
}

/// A planned Snowball-SGD: batches that cost at most ρ under the noise, with consecutive equal updates combined.
#[test]
fn runs_of_snowball_sgd() {
    use crate::recipes::SnowballSgd;
    let recipe = SnowballSgd { row_norm: 0.5, distance: 0.2, ..SnowballSgd::new(LossKind::Logistic) };
    let plan = recipe.plan::<ReplaceOne>(4000, 5, budget(1e-6)).unwrap();
    let (run, calibrated) = (plan.run(), plan.derivation().calibrated);
    assert_eq!(run.std_dev(), calibrated.std_dev);
    let (count, squares) = run
        .updates()
        .iter()
        .fold((0, 0.0), |(count, squares), run| (count + run.count, squares + run.count as f64 * run.step * run.step));
    assert_eq!(count, calibrated.updates);
    close(run.noise_norm(), run.std_dev() * (squares * 5.0).sqrt());
    // Consecutive entries differ, otherwise they would be combined.
    assert!(run.updates().windows(2).all(|two| two[0].batch_size != two[1].batch_size || two[0].step != two[1].step));
    assert!(run.updates().iter().any(|run| run.count > 1) && run.updates().len() > 1);
}

/// The paper's simple conversion is a bound up to `(4 - 2√2) √ln(1/δ)`; beyond, where it is too small, it is not returned.
#[test]
fn the_simple_conversion_ends_where_it_is_too_small() {
    use crate::recipes::pnsgd::{epsilon_of_rho, epsilon_of_rho_simple};
    for delta in [1e-3, 1e-9] {
        let delta = Delta::new(delta).unwrap();
        let root = (-delta.get().ln()).sqrt();
        let last = (4.0 - 8f64.sqrt()) * root;
        let simple = epsilon_of_rho_simple(last * (1.0 - 1e-9), delta).unwrap().unwrap();
        close(simple, 2.0 * last * (1.0 - 1e-9) * root);
        assert!(simple >= epsilon_of_rho(last * (1.0 - 1e-9), delta).unwrap());
        assert_eq!(epsilon_of_rho_simple(last * (1.0 + 1e-9), delta).unwrap(), None);
    }
}
