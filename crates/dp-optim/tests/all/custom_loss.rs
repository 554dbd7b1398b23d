//! A loss of another crate in every algorithm of the catalogue.

use dp_accountant::certificate::Assumption;
use dp_accountant::guarantee::Unit;
use dp_accountant::{Adjacency, AdjacencyKind, ReplaceOne, ZeroOut};
use dp_data::Examples;
use dp_losses::{CustomLoss, LossKind, RegisteredLoss};
use dp_mechanisms::{OsSeeded, ReleaseRng};
use dp_optim::catalogue::{ALGORITHMS, Request, Settings};
use dp_optim::engine::Control;
use dp_optim::recipes::{AnyRecipe, BoltOn, Budget, DpSgd, OneVsAll, Planned, Recipe, TrainsAny};
use dp_optim::tuning::Portions;
use dp_optim::{DerivesModel, Error, MemorySource};

/// Smoothed quantile regression.
#[derive(Debug)]
struct Quantile;

impl CustomLoss for Quantile {
    fn name(&self) -> &'static str {
        "quantile-80"
    }
    fn is_classification(&self) -> bool {
        false
    }
    fn value(&self, r: f64) -> f64 {
        0.5 * 0.5f64.hypot(r) - 0.3 * r
    }
    fn derivative(&self, r: f64) -> f64 {
        0.5 * r / 0.5f64.hypot(r) - 0.3
    }
    fn slope(&self) -> f64 {
        0.8
    }
    fn curvature(&self) -> f64 {
        1.0
    }
    fn relative_curvature(&self) -> f64 {
        0.19246
    }
}

fn loss() -> LossKind {
    LossKind::Custom(RegisteredLoss::new(&Quantile).unwrap())
}

const N: usize = 300;

/// Trains, and checks certificate and terms; an error of the plan is returned.
fn train<A: TrainsAny<f64> + Adjacency>(recipe: &AnyRecipe, budget: Budget) -> Result<(), Error> {
    let rows = (0..N).flat_map(|i| [(i % 10) as f64 / 16.0, (i % 7) as f64 / 16.0, 0.5]).collect();
    let targets = (0..N).map(|i| (i % 13) as f64 / 13.0 - 0.4).collect();
    let mut source = MemorySource::new(Examples::dense(rows, targets, 3).unwrap(), 1.0, 1.0);
    let plan = recipe.plan_copies::<A>(N as u64, 3, budget, 1)?;
    let trained = A::train_any(&plan, &mut source, &mut OsSeeded::new().unwrap().lend(), &mut Control::default())?;
    assert_eq!(trained.derivation.model_terms().loss, loss());
    let certificate = trained.certificate(Unit::Record, Vec::new(), String::new(), Default::default());
    certificate.verify().unwrap();
    let claim = "The loss custom:quantile-80 is convex, its slope at most 0.8";
    let states = |stated: &Assumption| matches!(stated, Assumption::Other { text } if text.starts_with(claim));
    assert!(certificate.assumptions.iter().any(states), "{:?}", certificate.assumptions);
    #[cfg(feature = "serde")]
    {
        let text = serde_json::to_string(&trained.derivation).unwrap();
        assert!(text.contains(r#"{"name":"custom","loss":"quantile-80"}"#), "{text}");
        assert_eq!(serde_json::from_str::<dp_optim::recipes::AnyDerivation>(&text).unwrap(), trained.derivation);
    }
    Ok(())
}

#[test]
fn every_algorithm_for_numbers_takes_a_custom_loss() {
    let budget = Budget::new(2.0, 1e-5).unwrap();
    let settings = Settings::default();
    let mut refused = Vec::new();
    for entry in ALGORITHMS {
        let relation = entry.usual_relation();
        let request = Request::new(&settings, loss(), budget, relation, N as u64, 3);
        let trained = entry.build(&request).and_then(|built| match relation {
            AdjacencyKind::ZeroOut => train::<ZeroOut>(&built.recipe, budget),
            _ => train::<ReplaceOne>(&built.recipe, budget),
        });
        match trained {
            Ok(()) => {}
            Err(Error::NotProved { .. }) => refused.push(entry.name),
            Err(error) => panic!("{}: {error}", entry.name),
        }
    }
    // Both state the losses that they take: those of two classes with a known curvature, those with a conjugate.
    assert_eq!(refused, ["dp-newton", "phased-erm"]);
}

/// A scaled exponential tail with a linear part: Huber's rounding of the exponential loss at margin 0.
#[derive(Debug)]
struct RoundedExponential;

impl CustomLoss for RoundedExponential {
    fn name(&self) -> &'static str {
        "rounded-exponential"
    }
    fn is_classification(&self) -> bool {
        true
    }
    fn value(&self, margin: f64) -> f64 {
        if margin < 0.0 { 1.0 - margin } else { (-margin).exp() }
    }
    fn derivative(&self, margin: f64) -> f64 {
        -(-margin.max(0.0)).exp()
    }
    fn slope(&self) -> f64 {
        1.0
    }
    fn curvature(&self) -> f64 {
        1.0
    }
}

/// One model for each class, and a private choice of settings.
#[test]
fn one_vs_all_and_tuning_take_a_custom_loss_of_two_classes() {
    let loss = LossKind::Custom(RegisteredLoss::new(&RoundedExponential).unwrap());
    let budget = Budget::new(4.0, 1e-5).unwrap();
    let classes = OneVsAll::new(BoltOn::strongly_convex(loss, 0.1), 3);
    let tuned = Portions::new([1, 2].map(|passes| DpSgd { passes, batch_size: 30, ..DpSgd::new(loss) }));
    let examples = |classes: usize| {
        let rows = (0..N).flat_map(|i| [(i % 10) as f64 / 16.0, (i % 7) as f64 / 16.0, 0.5]).collect();
        let label = |i: usize| if classes == 2 { [-1.0, 1.0][i % 2] } else { (i % classes) as f64 };
        MemorySource::new(Examples::dense(rows, (0..N).map(label).collect(), 3).unwrap(), 1.0, classes as f64 - 1.0)
    };
    let states = |assumptions: &[Assumption]| {
        let claim = "The loss custom:rounded-exponential is convex, its slope at most 1";
        let found = |stated: &Assumption| matches!(stated, Assumption::Other { text } if text.starts_with(claim));
        assert!(assumptions.iter().any(found), "{assumptions:?}");
    };
    let (mut rng, control) = (OsSeeded::new().unwrap(), &mut Control::default());
    let plan = classes.plan::<ReplaceOne>(N as u64, 3, budget).unwrap();
    let trained = plan.train::<f64>(&mut examples(3), &mut rng, control).unwrap();
    let certificate = trained.certificate(Unit::Record, Vec::new(), String::new(), Default::default());
    certificate.verify().unwrap();
    states(&certificate.assumptions);
    let plan = tuned.plan_copies::<ReplaceOne>(N as u64, 3, budget, 1).unwrap();
    let trained = plan.train::<f64>(&mut examples(2), &mut rng, control).unwrap();
    let mut certificate = trained.certificate(Unit::Record, Vec::new(), String::new(), Default::default());
    certificate.verify().unwrap();
    states(&certificate.assumptions);
    // A certificate that omits the claim, or states another one, is refused.
    certificate.assumptions.retain(|stated| !matches!(stated, Assumption::Other { .. }));
    assert!(certificate.verify().is_err());
}
