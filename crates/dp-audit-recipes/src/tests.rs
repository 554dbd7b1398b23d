use std::collections::BTreeSet;

use dp_accountant::Delta;
use dp_audit::Side;
use dp_losses::LossKind;
use dp_mechanisms::SeededRng;
use dp_mechanisms::rng::{Purpose, ReleaseRng};

use super::*;

/// Returns the features of `trials` runs on each side.
fn scores(audited: &Audited, trials: u64) -> [Vec<f64>; 2] {
    let rng = SeededRng::new(11);
    [Side::Base, Side::Neighbour].map(|side| {
        let mut scores = Vec::new();
        for trial in 0..trials {
            let mut rng = rng.stream(Purpose::Custom(side as u32), trial, 0);
            audited.subject.observe(side, &mut rng, &mut scores).unwrap();
        }
        scores
    })
}

#[test]
fn every_recipe_is_within_its_sensitivity_and_near_it() {
    for relation in [AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut] {
        let all = subjects(&Parameters { relation, ..Parameters::default() }).unwrap();
        assert!(all.len() >= 2 * RECIPES.len());
        for Audited { subject, distance } in all {
            assert!(distance.holds() && distance.ratio() > 0.95, "{} {relation}: {distance:?}", subject.name());
        }
    }
}

#[test]
fn any_parameters_stay_within_the_sensitivity() {
    let losses = [LossKind::Logistic, LossKind::HuberSvm(HuberSvm::new(1.0).unwrap()), LossKind::Squared];
    let mut rng = SeededRng::new(5);
    for _ in 0..40 {
        use rand::RngExt;
        let loss = losses[rng.random_range(0..3)];
        let parameters = Parameters {
            n: rng.random_range(1..30),
            dim: rng.random_range(1..5),
            relation: if rng.random_bool(0.5) { AdjacencyKind::ReplaceOne } else { AdjacencyKind::ZeroOut },
            loss,
            lambda: rng.random_bool(0.5).then(|| rng.random_range(0.01..2.0)),
            passes: rng.random_range(1..4),
            batch_size: rng.random_range(1..8),
            radius: (loss == LossKind::Squared || rng.random_bool(0.3)).then(|| rng.random_range(0.1..2.0)),
            // The distance before noise is the same in every mode and for every budget; calibrating large noise takes long.
            noise_mode: Some(NoiseMode::Exact),
            delta: if rng.random_bool(0.25) { 1e-5 } else { 0.0 },
            pairs: 200,
            ..Parameters::default()
        };
        let audited = subjects(&parameters).unwrap_or_else(|error| panic!("{error}: {parameters:?}"));
        for Audited { subject, distance } in audited {
            assert!(distance.holds(), "{}: {distance:?} {parameters:?}", subject.name());
        }
    }
}

#[test]
fn logistic_canaries_reach_half_of_the_claim() {
    // The gradients of two opposite labels differ by 1 at every iterate, and the constant allows for 2.
    let parameters = Parameters { loss: LossKind::Logistic, ..Parameters::default() };
    for Audited { subject, distance } in subjects(&parameters).unwrap() {
        assert!(distance.ratio() > 0.45, "{}: {distance:?}", subject.name());
    }
}

#[test]
fn what_is_audited_has_a_name_of_its_own_and_a_claim_within_its_budget() {
    let all = subjects(&Parameters::default()).unwrap();
    let names: BTreeSet<&str> = all.iter().map(|audited| audited.subject.name()).collect();
    assert_eq!(names.len(), all.len());
    for recipe in RECIPES {
        assert!(names.iter().any(|name| name.starts_with(recipe.name)), "{}", recipe.name);
        assert_eq!(super::recipe(recipe.name).map(|found| found.about), Some(recipe.about));
    }
    for audited in &all {
        let claim = audited.subject.claim();
        let bound = dp_accountant::bound::epsilon(&claim.event, Delta::new(claim.delta).unwrap()).unwrap();
        assert!(bound.value <= 1.0 && bound.value > 0.99, "{}: {bound:?}", audited.subject.name());
        assert!(audited.subject.pair().contains("against"));
    }
    let exact = subjects(&Parameters { noise_mode: Some(NoiseMode::Exact), ..Parameters::default() }).unwrap();
    assert!(exact.iter().all(|audited| audited.subject.name().ends_with("/exact")));
    // Choices on integers have no rounded mode.
    let rounded = names.iter().filter(|name| name.ends_with("/rounded")).count();
    let always_exact = names.iter().filter(|name| name.starts_with("priv-gene")).count();
    assert_eq!((all.len(), exact.len()), (exact.len() + rounded, rounded + always_exact));
    // With delta = 0 there is no Gaussian noise.
    let pure = subjects(&Parameters { delta: 0.0, ..Parameters::default() }).unwrap();
    assert!(!pure.is_empty() && pure.iter().all(|audited| audited.subject.claim().delta == 0.0));
}

#[test]
fn scores_are_log_likelihood_ratios() {
    // The mean of e^score over the first data set is 1, and that of e^-score over the second. A mean of many lies within 6 standard
    // errors of it, except with probability 2e-9 if it were normal.
    let replaced = subjects(&Parameters::default()).unwrap();
    // Batches of searches have a guarantee only for a record's presence.
    let zero_out = Parameters { relation: AdjacencyKind::ZeroOut, ..Parameters::default() };
    let in_batches = recipe("dp-blgd").unwrap().subjects(&zero_out).unwrap();
    let in_batches: Vec<Audited> =
        in_batches.into_iter().filter(|audited| audited.subject.name().contains("/in-batches/")).collect();
    assert_eq!(in_batches.len(), 4);
    let of_models = recipe("model-sgd").unwrap().subjects(&zero_out).unwrap();
    assert_eq!(of_models.len(), 8);
    for audited in replaced.into_iter().chain(in_batches).chain(of_models) {
        let name = audited.subject.name();
        // The law of a search needs an integral for each answer.
        let trials = if name.contains("backtracking") { 400 } else { 4_000 };
        let [base, neighbour] = scores(&audited, trials);
        for (sign, scores) in [(1.0, base), (-1.0, neighbour)] {
            let ratios: Vec<f64> = scores.iter().map(|score| (sign * score).exp()).collect();
            let count = ratios.len() as f64;
            let mean = ratios.iter().sum::<f64>() / count;
            let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / count;
            let error = (variance / count).sqrt();
            assert!((mean - 1.0).abs() < 6.0 * error, "{}: {mean} within {error}", audited.subject.name());
            assert!(variance > 0.003, "{}: the score says something", audited.subject.name());
        }
    }
}

#[test]
fn noisy_moments_of_a_single_record_are_those_of_the_canary() {
    let audited = recipe("noisy-moments").unwrap().subjects(&Parameters { n: 1, ..Parameters::default() }).unwrap();
    assert_eq!(audited.len(), 2);
    for Audited { subject, .. } in audited {
        let score = |side| {
            let mut scores = Vec::new();
            subject.observe(side, &mut SeededRng::new(1), &mut scores).unwrap();
            scores[0]
        };
        // With the same noise the score is larger for the neighbour.
        assert!(score(Side::Neighbour) > score(Side::Base), "{}", subject.name());
    }
}

#[test]
fn two_data_sets_differ_in_one_row() {
    let canary = Canary {
        common: Record { features: vec![0.0, 1.0], target: 1.0 },
        base: Record { features: vec![1.0, 0.0], target: 1.0 },
        neighbour: Record::null(2),
    };
    let rows = |side| {
        let examples = canary.examples(side, 5, 3).unwrap();
        let dp_data::Rows::Dense { values, .. } = examples.block().rows else { panic!("dense") };
        (values.to_vec(), examples.targets().to_vec())
    };
    let (base, neighbour) = (rows(Side::Base), rows(Side::Neighbour));
    assert_eq!(base.1, [1.0; 5]);
    assert_eq!(neighbour.1, [1.0, 1.0, 1.0, 0.0, 1.0]);
    let differing: Vec<usize> = (0..10).filter(|&i| base.0[i] != neighbour.0[i]).collect();
    assert_eq!(differing, [6]);
    assert_eq!(
        canary.describe(),
        "one record (1.0000, 0.0000; 1.0000) against (0.0000, 0.0000; 0.0000), all others (0.0000, 1.0000; 1.0000)"
    );
}

#[test]
fn refused_parameters_are_errors() {
    let refused = |change: fn(&mut Parameters)| {
        let mut parameters = Parameters::default();
        change(&mut parameters);
        subjects(&parameters).err().map(|error| error.to_string())
    };
    for (change, named) in [
        ((|p| p.n = 0) as fn(&mut Parameters), "number of records"),
        (|p| p.dim = 0, "dimension"),
        (|p| p.passes = 0, "passes"),
        (|p| p.batch_size = 0, "batch"),
        (|p| p.epsilon = f64::NAN, "epsilon"),
        (|p| p.delta = 1.0, "delta"),
        (|p| p.lambda = Some(-1.0), "lambda"),
        (|p| p.lambda = Some(f64::NAN), "lambda"),
        (|p| p.radius = Some(0.0), "radius"),
        (|p| p.loss = LossKind::Squared, "radius"),
        (|p| p.relation = AdjacencyKind::AddRemoveOne, "replace-one"),
    ] {
        let error = refused(change).unwrap_or_default();
        assert!(error.to_lowercase().contains(named), "{named}: {error:?}");
    }
    // Without a search only the constructed extremes are tried.
    let few = subjects(&Parameters { pairs: 0, ..Parameters::default() }).unwrap();
    for Audited { subject, distance } in few {
        assert!(distance.holds() && (distance.pairs == 8 || !subject.name().starts_with("bolt-on")), "{distance:?}");
    }
}

/// Returns what is seen of audits: their claims, their distances and one run on each side.
fn seen<E>(audits: Result<Vec<Audited>, E>) -> Option<Vec<String>> {
    let digest = |audited: &Audited| {
        let subject = &audited.subject;
        format!(
            "{} {} {:?} {:?} {:?}",
            subject.name(),
            subject.pair(),
            subject.claim(),
            audited.distance,
            scores(audited, 1)
        )
    };
    audits.ok().map(|audits| audits.iter().map(digest).collect())
}

#[test]
fn the_stated_settings_are_those_with_an_effect() {
    type Change = fn(&mut Parameters);
    const NAMED: [(Setting, Change); 6] = [
        (Relation, |parameters| parameters.relation = AdjacencyKind::ZeroOut),
        (Loss, |parameters| parameters.loss = LossKind::Logistic),
        (Lambda, |parameters| parameters.lambda = Some(0.25)),
        (Passes, |parameters| parameters.passes = 2),
        (BatchSize, |parameters| parameters.batch_size = 2),
        (Radius, |parameters| parameters.radius = Some(0.4)),
    ];
    type Build = Box<dyn Fn(&Parameters) -> Option<Vec<String>>>;
    let of_training = RECIPES.iter().map(|recipe| {
        let build: Build = Box::new(|parameters| seen(recipe.subjects(parameters)));
        (recipe.name, recipe.settings, build)
    });
    let of_rankers = rank::RECIPES.iter().map(|recipe| {
        let build: Build = Box::new(|parameters| seen(recipe.subjects(parameters)));
        (recipe.name, recipe.settings, build)
    });
    let mut wrong = Vec::new();
    for (name, settings, build) in of_training.chain(of_rankers) {
        let usual = Parameters { pairs: 4, ..Parameters::default() };
        let before = build(&usual);
        let has_effect = |change: Change| {
            let mut changed = usual.clone();
            change(&mut changed);
            build(&changed) != before
        };
        let named = NAMED.into_iter().filter(|(_, change)| has_effect(*change));
        let read: Vec<Setting> = named.map(|(setting, _)| setting).collect();
        if settings != read {
            wrong.push((name, read));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
