//! PNSGD and Snowball-SGD: golden values, coupled runs on neighbours, exact laws in closed form, and refusals.

use crate::support::{close, count, distance, golden, number, numbers};
use dp_accountant::certificate::{Derivation as _, NoiseMode};
use dp_accountant::{AdjacencyKind, Delta, DpEvent, ReplaceOne, ZeroOut, bound, zcdp};
use dp_data::Examples;
use dp_losses::{Constants, Domain, HuberSvm, L2, LossKind};
use dp_mechanisms::last_iterate::{Iterates, LastIterate};
use dp_mechanisms::{PrivacyEvent, SeededRng};
use dp_optim::engine::Control;
use dp_optim::growth::expansion;
use dp_optim::recipes::noise_scale::StdDev;
use dp_optim::recipes::pnsgd::{Batching, epsilon_of_rho, epsilon_of_rho_simple, per_batch};
use dp_optim::recipes::snowball_sgd::{Snowball, SnowballNoise, SnowballSteps};
use dp_optim::recipes::{AnyRecipe, Budget, Planned, Pnsgd, Recipe, RecordAdjacency, SnowballSgd};
use dp_optim::{Derivation, DerivesModel as _, Error, MemorySource, Schedule};
use rand::RngExt;
use serde_json::Value;

fn budget(epsilon: f64, delta: f64) -> Budget {
    Budget::new(epsilon, delta).unwrap()
}

fn mu(event: &DpEvent) -> f64 {
    (2.0 * zcdp::rho(event).unwrap()).sqrt()
}

fn counts(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(count).collect()
}

#[test]
fn golden_renyi_of_each_batch() {
    for case in golden("pnsgd_rdp") {
        let (id, input, out, rtol) = (case["id"].as_str().unwrap(), &case["in"], &case["out"], number(&case["rtol"]));
        let (beta, gamma, g) = (number(&input["beta"]), number(&input["gamma"]), number(&input["grad_diff"]));
        let (etas, batches, sigmas) = (numbers(&input["etas"]), counts(&input["batches"]), numbers(&input["sigmas"]));
        let steps: Vec<_> = (0..etas.len()).map(|t| (etas[t], batches[t], sigmas[t])).collect();
        let found = per_batch(&steps, beta, gamma, g);
        for (&found, &expected) in found.iter().zip(&numbers(&out["per_batch"])) {
            close(found, expected, rtol, id);
        }
        let worst = number(&out["rdp_per_alpha"]);
        close(found.iter().copied().fold(0.0, f64::max), worst, rtol, id);
        // The mechanism's event: never below the formula, and above it only by the grid's rounding.
        let pass = steps.iter().map(|&(eta, batch, sigma)| Iterates {
            count: 1,
            sensitivity: eta * g / batch as f64,
            contraction: expansion(eta, beta, gamma),
            deviation: 0.0,
            std_dev: eta * sigma,
        });
        let event = LastIterate::<ReplaceOne>::new(1, pass.collect(), 1).unwrap().event();
        let rho = zcdp::rho(&event).unwrap();
        assert!(rho >= worst * (1.0 - 1e-14), "{id}: {rho} below {worst}");
        close(rho, worst, 1e-7, id);
    }
}

fn check_batches(id: &str, found: &[u64], out: &Value) {
    assert_eq!(found.iter().sum::<u64>(), count(&out["n"]), "{id}");
    if let Some(batches) = out.get("batches") {
        assert_eq!(found, counts(batches), "{id}");
    }
    for (name, part) in
        [("batches_head", &found[..found.len().min(8)]), ("batches_tail", &found[found.len() - found.len().min(8)..])]
    {
        if let Some(expected) = out.get(name) {
            assert_eq!(part, counts(expected), "{id} {name}");
        }
    }
}

#[test]
fn golden_schedules() {
    for (function, steps) in [("snowball_fixed", SnowballSteps::Constant), ("snowball_jnn", SnowballSteps::Halving)] {
        for case in golden(function) {
            let (id, input, out, rtol) =
                (case["id"].as_str().unwrap(), &case["in"], &case["out"], number(&case["rtol"]));
            let (d, rho) = (number(&input["d"]), number(&input["rho"]));
            let (l, distance) = (number(&input["L"]), number(&input["D"]));
            let snowball = Snowball::new(steps, count(&input["T"])).unwrap();
            check_batches(id, &snowball.batch_sizes(4.0 * d, rho).unwrap(), out);
            let first = snowball.first_step(l, distance);
            let name = if out.get("eta").is_some() { "eta" } else { "eta_first" };
            close(first, number(&out[name]), rtol, id);
            close(2.0 / first, number(&out["beta_max"]), rtol, id);
            close(l / d.sqrt(), number(&out["sigma"]), rtol, id);
            close(snowball.excess_loss_of_the_paper(l, distance), number(&out["bound_paper"]), rtol, id);
            if let Some(expected) = out.get("bound") {
                close(snowball.excess_loss(l, distance), number(expected), rtol, id);
            }
            if let Some(boundaries) = out.get("boundaries") {
                assert_eq!(snowball.boundaries(), counts(boundaries), "{id}");
                let phases = snowball.boundaries().len() as i32 - 2;
                close(first * 0.5f64.powi(phases), number(&out["eta_last"]), rtol, id);
                // The closed form is that for constant steps with seven times the weight.
                let closed = Snowball::new(SnowballSteps::Constant, snowball.updates()).unwrap();
                let closed: u64 = closed.batch_sizes(28.0 * d, rho).unwrap().iter().sum();
                assert_eq!(closed, count(&out["n_closed"]), "{id}");
            }
            if let Some(phase) = out.get("phase") {
                let ends = snowball.boundaries();
                let found: Vec<u64> =
                    (1..=snowball.updates()).map(|t| ends.iter().filter(|&&end| end < t).count() as u64 - 1).collect();
                assert_eq!(found, counts(phase), "{id}");
            }
        }
    }
    for case in golden("snowball_fixed_T") {
        let (input, out) = (&case["in"], &case["out"]);
        let (n, d, rho) = (count(&input["n"]), number(&input["d"]), number(&input["rho"]));
        let (snowball, used) = Snowball::longest(SnowballSteps::Constant, n, 4.0 * d, rho).unwrap();
        assert_eq!((snowball.updates(), used), (count(&out["T"]), count(&out["used"])), "{}", case["id"]);
        let least = (n as f64 / 2.0).min((n as f64 * rho).powi(2) / (64.0 * d));
        close(least, number(&out["lower_bound"]), number(&case["rtol"]), "lower bound");
        assert!(snowball.updates() as f64 >= least.floor());
    }
    for case in golden("fkt_rho_to_dp") {
        let (input, out, rtol) = (&case["in"], &case["out"], number(&case["rtol"]));
        let (rho, delta) = (number(&input["rho"]), Delta::new(number(&input["delta"])).unwrap());
        close(epsilon_of_rho(rho, delta).unwrap(), number(&out["eps"]), rtol, "epsilon");
        let simple = epsilon_of_rho_simple(rho, delta).unwrap();
        assert_eq!(simple.is_some(), out["simple_valid"] == true);
        if let Some(simple) = simple {
            close(simple, number(&out["eps_simple"]), rtol, "simple form");
        }
    }
}

/// Perfect squares: with d = 4 and ρ = 1/10, `B √j = 40` has integer solutions, also if ρ is a double below its decimal.
#[test]
fn ties_are_exact() {
    let last = |weight, rho| Snowball::new(SnowballSteps::Constant, 16).unwrap().batch_sizes(weight, rho).unwrap();
    let batches = last(16.0, 0.1);
    assert_eq!((batches[15], batches[12], batches[0]), (40, 20, 10));
    assert_eq!(last(36.0, 0.3)[15], 20);
    for (j, &batch) in (1u64..).zip(batches.iter().rev()) {
        assert!(batch * batch * j >= 1600 && (batch - 1) * (batch - 1) * j < 1600, "{j}: {batch}");
    }
    for steps in [SnowballSteps::Constant, SnowballSteps::Halving] {
        for n in [40, 41, 1000, 12_345] {
            let (snowball, used) = Snowball::longest(steps, n, 16.0, 0.1).unwrap();
            let of =
                |updates| Snowball::new(steps, updates).unwrap().batch_sizes(16.0, 0.1).unwrap().iter().sum::<u64>();
            assert!(used <= n && of(snowball.updates()) == used && of(snowball.updates() + 1) > n, "{steps:?} {n}");
        }
        assert!(Snowball::longest(steps, 39, 16.0, 0.1).is_err());
        assert!(Snowball::new(steps, 0).is_err() && Snowball::new(steps, u64::MAX).is_err());
        let five = Snowball::new(steps, 5).unwrap();
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert!(five.batch_sizes(16.0, bad).is_err(), "{bad}");
        }
    }
}

/// The schedule has the cost for which it was made: with noise of `L/√d` at most ρ, and nearly ρ.
#[test]
fn schedules_cost_what_they_were_made_for() {
    for (loss, relation) in [(LossKind::Logistic, false), (LossKind::HuberSvm(HuberSvm::USUAL), true)] {
        for steps in [SnowballSteps::Constant, SnowballSteps::Halving] {
            let recipe = SnowballSgd { steps, distance: 1.0, ..SnowballSgd::new(loss) };
            let event = |derivation: &Derivation<SnowballSgd>| mu(&derivation.event().unwrap());
            let derivation = if relation {
                recipe.plan::<ReplaceOne>(5000, 30, budget(1.0, 1e-6)).unwrap().derivation().clone()
            } else {
                recipe.plan::<ZeroOut>(5000, 30, budget(1.0, 1e-6)).unwrap().derivation().clone()
            };
            let calibrated = derivation.calibrated;
            let of_theorem = SnowballNoise { std_dev: 1.0 / 30f64.sqrt(), ..calibrated };
            let theorem = Derivation { calibrated: of_theorem, ..derivation.clone() };
            let (found, rho) = (event(&theorem), calibrated.rho);
            assert!(found <= rho * (1.0 + 1e-5) && found > 0.9 * rho, "{loss} {steps:?}: {found} {rho}");
            // Integer batch sizes leave a small margin, by which the noise is reduced.
            let (least, stated) = (calibrated.std_dev, of_theorem.std_dev);
            assert!(least <= stated * (1.0 + 1e-5) && least > 0.9 * stated);
            assert!((event(&derivation) / rho - 1.0).abs() < 1e-4);
        }
    }
}

fn random_examples(rng: &mut SeededRng, loss: LossKind, n: usize, dim: usize) -> (Vec<f64>, Vec<f64>) {
    let rows = (0..n)
        .flat_map(|_| {
            let mut x: Vec<f64> = (0..dim).map(|_| rng.random_range(-1.0..1.0)).collect();
            let norm = x.iter().map(|v| v * v).sum::<f64>().sqrt();
            x.iter_mut().for_each(|v| *v *= (1.0 - 1e-15) / norm);
            x
        })
        .collect();
    let targets = (0..n)
        .map(|_| match loss {
            LossKind::Softmax(loss) => f64::from(rng.random_range(0..loss.classes())),
            LossKind::Squared => rng.random_range(-1.0..1.0),
            _ => [-1.0, 1.0][rng.random_range(0..2)],
        })
        .collect();
    (rows, targets)
}

/// Two runs with the same noise end no farther apart than the shift of the one differing batch times the later contractions,
/// on which the guarantee rests: for each position and through the whole recipe.
#[test]
fn coupled_runs_stay_together() {
    let mut rng = SeededRng::new(41);
    let mut most: f64 = 0.0;
    for trial in 0..300 {
        let losses = ["logistic", "huber-svm:0.5", "squared", "softmax:3"];
        let loss: LossKind = losses[trial % losses.len()].parse().unwrap();
        let lambda = if rng.random_bool(0.5) { rng.random_range(0.01..1.0) } else { 0.0 };
        let radius = (loss == LossKind::Squared || rng.random_bool(0.3)).then(|| rng.random_range(0.3..3.0));
        let sizes: Vec<u64> = (0..rng.random_range(1..6)).map(|_| rng.random_range(1..4)).collect();
        let (n, dim) = (sizes.iter().sum::<u64>() as usize, rng.random_range(1..4));
        let mut domain = Domain::unit_rows();
        if let Some(radius) = radius {
            domain = domain.with_radius(radius).unwrap();
        }
        let constants: Constants = loss.constants(L2::new(lambda).unwrap(), &domain);
        let steps: Vec<f64> = sizes.iter().map(|_| rng.random_range(0.1..2.0) / constants.smoothness).collect();
        let recipe = Pnsgd {
            lambda,
            radius,
            batching: Batching::Listed { sizes: sizes.clone() },
            schedule: Some(Schedule::Steps { values: steps.clone() }),
            declared_order: true,
            noise_mode: NoiseMode::Rounded,
            ..Pnsgd::new(loss)
        };
        let plan = recipe.plan::<ReplaceOne>(n as u64, dim as u64, budget(2.0, 1e-5)).unwrap();
        let (rows, targets) = random_examples(&mut rng, loss, n, dim);
        let at = rng.random_range(0..n);
        let (other_rows, other_targets) = random_examples(&mut rng, loss, 1, dim);
        let (mut neighbour_rows, mut neighbour_targets) = (rows.clone(), targets.clone());
        neighbour_rows[at * dim..(at + 1) * dim].copy_from_slice(&other_rows);
        neighbour_targets[at] = other_targets[0];
        let train = |rows: &[f64], targets: &[f64]| {
            let examples = Examples::dense(rows.to_vec(), targets.to_vec(), dim).unwrap();
            let mut source = MemorySource::new(examples, 1.0, recipe.target_bound);
            let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(trial as u64), &mut Control::default());
            trained.unwrap().weights.into_inner()
        };
        let apart = distance(&train(&rows, &targets), &train(&neighbour_rows, &neighbour_targets));
        let mut read = 0;
        let place = sizes.iter().position(|size| {
            read += *size as usize;
            at < read
        });
        let t = place.unwrap();
        let shrunk: f64 = steps[t + 1..].iter().map(|&step| expansion(step, constants.smoothness, lambda)).product();
        let claimed = steps[t] * constants.gradient_difference / sizes[t] as f64 * shrunk;
        assert!(apart <= claimed + 1e-7, "{loss} {trial}: {apart} beyond {claimed}");
        most = most.max(apart / claimed);
    }
    assert!(most > 0.9, "the search is not worth its name: {most}");
}

/// While margins stay below `1 - h` the Huber SVM's gradient does not depend on the iterate, so that the last iterate is
/// Gaussian with mean and variance in closed form. Checks mean and variance of 20000 runs on each of two neighbours, each
/// within 6.2 standard errors: false-alarm rate 1e-9 each. The exact trade-off is the claimed one for a record of the last
/// batch, and smaller for an early one.
#[test]
fn the_last_iterate_has_the_law_that_is_claimed() {
    let (lambda, step, batch, updates) = (0.5, 0.01, 2u64, 3usize);
    let recipe = Pnsgd {
        lambda,
        batching: Batching::Equal { size: batch },
        schedule: Some(Schedule::Constant { step }),
        declared_order: true,
        noise_mode: NoiseMode::Rounded,
        ..Pnsgd::new(LossKind::HuberSvm(HuberSvm::USUAL))
    };
    let plan = recipe.plan::<ReplaceOne>(6, 1, budget(1.0, 1e-5)).unwrap();
    let (sigma, shrink) = (plan.run().std_dev(), 1.0 - step * lambda);
    let variance: f64 = (0..updates).map(|i| (step * sigma * shrink.powi(i as i32)).powi(2)).sum();
    for (at, tight) in [(5, true), (0, false)] {
        let mut means = [0.0; 2];
        for (side, target) in [(0, 1.0), (1, -1.0)] {
            let mut targets = vec![1.0; 6];
            targets[at] = target;
            let mean: f64 = (0..updates)
                .map(|t| shrink.powi((updates - 1 - t) as i32) * step * (targets[2 * t] + targets[2 * t + 1]) / 2.0)
                .sum();
            means[side] = mean;
            let runs = 20_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            let mut rng = SeededRng::new(7 + side as u64);
            for _ in 0..runs {
                let examples = Examples::dense(vec![1.0; 6], targets.clone(), 1).unwrap();
                let mut source = MemorySource::new(examples, 1.0, 1.0);
                let trained = plan.train::<f64>(&mut source, &mut rng, &mut Control::default()).unwrap();
                let off = trained.weights.get()[0] - mean;
                sum += off;
                squares += off * off;
            }
            let runs = f64::from(runs);
            assert!((sum / runs).abs() < 6.2 * (variance / runs).sqrt(), "{at} {side}: mean");
            assert!((squares / runs / variance - 1.0).abs() < 6.2 * (2.0 / runs).sqrt(), "{at} {side}: variance");
        }
        let (exact, claimed) = ((means[0] - means[1]).abs() / variance.sqrt(), mu(&plan.event()));
        let own_noise = (means[0] - means[1]).abs() / (step * sigma);
        assert!(exact < claimed, "{at}: {exact} {claimed}");
        // In the proof, a record of the last batch is hidden by the noise of its own step alone.
        assert!(!tight || (own_noise / claimed - 1.0).abs() < 1e-3, "{own_noise} {claimed}");
    }
}

#[test]
fn whole_recipes_train_verify_and_share_budgets() {
    let mut rng = SeededRng::new(5);
    let (n, dim) = (600, 4);
    for loss in ["logistic", "softmax:3"] {
        let loss: LossKind = loss.parse().unwrap();
        let (rows, targets) = random_examples(&mut rng, loss, n, dim);
        let pnsgd = Pnsgd { passes: 3, lambda: 0.1, ..Pnsgd::new(loss) };
        for recipe in [AnyRecipe::from(pnsgd), AnyRecipe::from(SnowballSgd::new(loss))] {
            check_recipe::<ReplaceOne>(&recipe, &rows, &targets, dim);
            check_recipe::<ZeroOut>(&recipe, &rows, &targets, dim);
        }
    }
}

fn check_recipe<A: RecordAdjacency>(recipe: &AnyRecipe, rows: &[f64], targets: &[f64], dim: usize) {
    let n = targets.len() as u64;
    let plan = recipe.plan_copies::<A>(n, dim as u64, budget(1.0, 1e-6), 4).unwrap();
    let together = DpEvent::SelfComposed { event: Box::new(plan.event()), count: 4 };
    let epsilon = bound::epsilon(&together, Delta::new(1e-6).unwrap()).unwrap().value;
    assert!(epsilon == plan.reached().epsilon && epsilon <= 1.0 && epsilon > 0.999, "{epsilon}");
    let derivation = plan.derivation();
    assert_eq!(derivation.event().unwrap(), plan.event());
    assert_eq!(derivation.adjacency(), A::KIND);
    let examples = Examples::dense(rows.to_vec(), targets.to_vec(), dim).unwrap();
    let mut source = MemorySource::new(examples, 1.0, 2.0);
    // The source's bound on targets is wider than planned.
    let wide = plan.train::<f64>(&mut source, &mut SeededRng::new(1), &mut Control::default());
    let bound = derivation.model_terms().target_bound;
    assert!(wide.is_ok() == (bound >= 2.0), "{wide:?}");
    let examples = Examples::dense(rows.to_vec(), targets.to_vec(), dim).unwrap();
    let mut source = MemorySource::new(examples, 1.0, bound);
    let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(1), &mut Control::default()).unwrap();
    assert_eq!(trained.log.entries(), &[(plan.event(), 1)]);
    assert_eq!(trained.weights.get().len() as u64, derivation.model_terms().weights);
    assert_eq!(trained.derivation, derivation);
}

#[test]
fn what_is_not_proved_is_refused() {
    let good = Pnsgd::new(LossKind::Logistic);
    let pnsgd = |recipe: Pnsgd| recipe.plan::<ReplaceOne>(100, 3, budget(1.0, 1e-6)).map(|_| ());
    assert!(pnsgd(good.clone()).is_ok());
    let long = Pnsgd { schedule: Some(Schedule::Constant { step: 8.1 }), ..good.clone() };
    let error = pnsgd(long).unwrap_err();
    assert!(matches!(error, Error::StepTooLong { longest: 8.0, .. }), "{error}");
    assert!(error.to_string().contains("8.1") && error.to_string().contains("8.0"), "{error}");
    assert!(pnsgd(Pnsgd { schedule: Some(Schedule::Constant { step: 8.0 }), ..good.clone() }).is_ok());
    let listed = |sizes: &[u64]| Pnsgd { batching: Batching::Listed { sizes: sizes.to_vec() }, ..good.clone() };
    assert!(pnsgd(listed(&[30, 70])).is_ok());
    for refused in [
        Pnsgd::new(LossKind::Hinge),
        Pnsgd::new(LossKind::Squared),
        Pnsgd { passes: 0, ..good.clone() },
        Pnsgd { passes: u64::MAX, ..good.clone() },
        Pnsgd { lambda: -1.0, ..good.clone() },
        Pnsgd { lambda: f64::NAN, ..good.clone() },
        Pnsgd { radius: Some(f64::NAN), ..good.clone() },
        Pnsgd { radius: Some(1e40), ..good.clone() },
        Pnsgd { distance: 0.0, ..good.clone() },
        Pnsgd { row_norm: 2.0, ..good.clone() },
        Pnsgd { target_bound: 2.0, ..good.clone() },
        Pnsgd { noise_mode: NoiseMode::None, ..good.clone() },
        Pnsgd { batching: Batching::Equal { size: 0 }, ..good.clone() },
        listed(&[]),
        listed(&[10, 0]),
        listed(&[60, 60]),
        listed(&[u64::MAX, u64::MAX]),
    ] {
        assert!(pnsgd(refused.clone()).is_err(), "{refused:?}");
    }
    let snowball = |recipe: SnowballSgd, n, delta| recipe.plan::<ReplaceOne>(n, 3, budget(1.0, delta)).map(|_| ());
    let rolling = SnowballSgd::new(LossKind::Logistic);
    assert!(snowball(rolling.clone(), 1000, 1e-6).is_ok());
    assert!(matches!(snowball(rolling.clone(), 1000, 0.0), Err(Error::NotProved { .. })));
    assert!(matches!(snowball(rolling.clone(), 3, 1e-6), Err(Error::Count { .. })));
    let far = SnowballSgd { distance: 1e3, ..rolling.clone() };
    assert!(matches!(snowball(far, 1000, 1e-6), Err(Error::StepTooLong { .. })));
    assert!(snowball(SnowballSgd { distance: f64::NAN, ..rolling }, 1000, 1e-6).is_err());
    // Certificates of unknown origin are refused, or verified, quickly.
    let plan = good.plan::<ReplaceOne>(100, 3, budget(1.0, 1e-6)).unwrap();
    for n in [u64::MAX, 1 << 60] {
        assert!(Derivation { n, ..plan.derivation().clone() }.event().is_err(), "{n}");
    }
    let contracting = Pnsgd { lambda: 1e-9, ..good };
    assert!(Derivation { recipe: contracting, n: 1 << 36, ..plan.derivation().clone() }.event().is_ok());
    assert!(Derivation { relation: AdjacencyKind::AddRemoveOne, ..plan.derivation().clone() }.event().is_err());
    assert!(Derivation { calibrated: StdDev { std_dev: f64::NAN }, ..plan.derivation().clone() }.event().is_err());
}

/// Each public parameter determines the event or an assumption.
#[test]
fn every_field_of_the_derivations_counts() {
    let recipe = Pnsgd { lambda: 0.05, radius: Some(2.0), passes: 2, ..Pnsgd::new(LossKind::Squared) };
    let calibrated = StdDev { std_dev: 1.0 };
    let good = Derivation { recipe, relation: AdjacencyKind::ReplaceOne, n: 1000, dim: 4, calibrated };
    type Change<T> = fn(&mut T);
    let changes: [(&str, Change<Derivation<Pnsgd>>); 14] = [
        ("loss", |d| d.recipe.loss = LossKind::Logistic),
        ("lambda", |d| d.recipe.lambda = 0.06),
        ("passes", |d| d.recipe.passes = 3),
        ("batching", |d| d.recipe.batching = Batching::Equal { size: 49 }),
        ("schedule", |d| d.recipe.schedule = Some(Schedule::Constant { step: 0.5 })),
        ("distance", |d| d.recipe.distance = 4.0),
        ("radius", |d| d.recipe.radius = Some(3.0)),
        ("declared order", |d| d.recipe.declared_order = true),
        ("noise mode", |d| d.recipe.noise_mode = NoiseMode::Rounded),
        ("row norm", |d| d.recipe.row_norm = 0.9),
        ("target bound", |d| d.recipe.target_bound = 2.0),
        ("relation", |d| d.relation = AdjacencyKind::ZeroOut),
        ("n", |d| d.n = 1100),
        ("noise", |d| d.calibrated.std_dev = 1.1),
    ];
    let statement = |d: &Derivation<Pnsgd>| (d.event().ok(), d.assumptions(), d.adjacency());
    for (name, change) in changes {
        let mut other = good.clone();
        change(&mut other);
        assert_ne!(statement(&other), statement(&good), "{name}");
    }
    let plan = SnowballSgd::new(LossKind::Logistic).plan::<ReplaceOne>(2000, 4, budget(1.0, 1e-6)).unwrap();
    let good = plan.derivation().clone();
    let changes: [(&str, Change<Derivation<SnowballSgd>>); 6] = [
        ("updates", |d| d.calibrated.updates -= 1),
        ("rho", |d| d.calibrated.rho *= 1.1),
        ("noise", |d| d.calibrated.std_dev *= 0.9),
        ("steps", |d| d.recipe.steps = SnowballSteps::Halving),
        ("dim", |d| d.dim = 3),
        ("row norm", |d| d.recipe.row_norm = 0.9),
    ];
    for (name, change) in changes {
        let mut other = good.clone();
        change(&mut other);
        assert_ne!(other.event().ok(), good.event().ok(), "{name}");
    }
    // A schedule that needs more records than there are cannot have run.
    assert!(Derivation { n: 1000, ..good }.event().is_err());
}

/// Losses that push the iterate to the boundary of the ball and keep it there: the last iterate reveals nothing about the
/// first record, and the average of the iterates more than the guarantee allows. See `examples/average_iterate.rs`.
#[test]
fn the_average_iterate_is_not_private() {
    let (radius, first, later) = (0.05, 0.05, 0.39);
    let sizes: Vec<u64> = [vec![2], vec![32; 8]].concat();
    let n = sizes.iter().sum::<u64>();
    let recipe = Pnsgd {
        radius: Some(radius),
        batching: Batching::Listed { sizes: sizes.clone() },
        schedule: Some(Schedule::Steps { values: [vec![first], vec![later; 8]].concat() }),
        declared_order: true,
        noise_mode: NoiseMode::Rounded,
        ..Pnsgd::new(LossKind::HuberSvm(HuberSvm::USUAL))
    };
    let delta = Delta::new(1e-6).unwrap();
    let plan = recipe.plan::<ReplaceOne>(n, 1, budget(2.0, delta.get())).unwrap();
    let sigma = plan.run().std_dev();
    assert!(sigma < 0.15, "{sigma}");
    // In the ball margins are below 1 - h: gradients are -y x. The first record is (1, ±1), the other one in its batch (0, 1),
    // all later ones (1, 1).
    let released = |target: f64, seed| {
        let rows = [vec![1.0, 0.0], vec![1.0; n as usize - 2]].concat();
        let targets = [vec![target], vec![1.0; n as usize - 1]].concat();
        let mut source = MemorySource::new(Examples::dense(rows, targets, 1).unwrap(), 1.0, 1.0);
        let trained = plan.train::<f64>(&mut source, &mut SeededRng::new(seed), &mut Control::default());
        trained.unwrap().weights.into_inner()[0]
    };
    for seed in 0..200 {
        for target in [1.0, -1.0] {
            assert!((released(target, seed) - radius).abs() < 1e-15, "the last iterate is pinned");
        }
    }
    // A later iterate leaves the boundary only if its noise exceeds `(later - 2 radius)/(later sigma)` standard deviations, at
    // least five: with probability below 1e-5 in eight steps. Otherwise the average is a public function of the first iterate,
    // the first record's mean gradient ±1/2 with the noise of its own step alone: `first (±1/2 + sigma xi)`. Its sign is wrong
    // in fewer than one in 2000 runs.
    assert!((later - 2.0 * radius) / (later * sigma) > 5.0 && 0.5 / sigma > 3.3);
    let (right, wrong) = (1.0f64 - 5e-4 - 1e-5, 5e-4 + 1e-5);
    let epsilon_of_average = ((right - delta.get()) / wrong).ln();
    assert!(epsilon_of_average > 3.0 * plan.reached().epsilon, "{epsilon_of_average}");
}
