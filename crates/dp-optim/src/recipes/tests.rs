//! Tests common to all recipes: assumptions and work of derivations, and refused bounds.

use crate::derivation::DerivesModel;
use dp_accountant::certificate::{Assumption, Derivation as _, NoiseMode};
use dp_accountant::{AdjacencyKind, Delta, DpEvent, EventLog, ReplaceOne, ZeroOut, bound, work};
use dp_data::{Block, Description, Examples, PassRequest, RowSource, RowStream, SourceError};
use dp_losses::{LossKind, Penalty};
use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, Mechanism, OsSeeded, ReleaseRng as _, Released, SeededRng};

use super::*;
use crate::MemorySource;
use crate::engine::Control;
use crate::error::Error;
use crate::tuning::composition::{Candidate, Composition};
use crate::tuning::portions::Portions;
use crate::tuning::random_stopping::RandomStopping;

const N: u64 = 600;
const DIM: u64 = 3;

fn budget() -> Budget {
    Budget::new(1.0, 1e-6).unwrap()
}

/// A bound on rows, one on targets, and the noise mode.
#[derive(Debug, Clone, Copy)]
struct Common {
    row_norm: f64,
    target_bound: f64,
    noise_mode: NoiseMode,
}

const USUAL: Common = Common { row_norm: 0.5, target_bound: 1.0, noise_mode: NoiseMode::Exact };

/// Every single-model recipe with additive noise, with these bounds.
fn all(common: Common) -> Vec<(&'static str, AnyRecipe)> {
    let Common { row_norm, target_bound, noise_mode } = common;
    let loss = LossKind::Logistic;
    macro_rules! recipe {
        ($recipe:ident; $usual:expr) => {
            (stringify!($recipe), $recipe { row_norm, target_bound, noise_mode, ..$usual }.into())
        };
    }
    vec![
        recipe!(AdmmObjPert; AdmmObjPert::new(loss, Penalty::L1 { lambda: 0.001 })),
        recipe!(BoltOn; BoltOn::strongly_convex(loss, 0.01)),
        recipe!(Bst14; Bst14::convex(loss, 1.0)),
        recipe!(DpFtrl; DpFtrl::new(loss)),
        recipe!(DpNewton; DpNewton::with_one_curvature(loss)),
        recipe!(DpSgd; DpSgd::new(loss)),
        recipe!(DpSgd; DpSgd::adam(loss)),
        recipe!(DpSvrg; DpSvrg::new(loss)),
        recipe!(Majority; Majority::new(loss)),
        recipe!(NoisyMoments; NoisyMoments::new(loss)),
        recipe!(ObjPert; ObjPert::new(loss)),
        recipe!(PhasedErm; PhasedErm::new(loss, 1.0)),
        recipe!(PhasedSgd; PhasedSgd::new(loss, 1.0)),
        recipe!(Pnsgd; Pnsgd::new(loss)),
        recipe!(RsgdAr; RsgdAr::new(loss, 0.01)),
        recipe!(Scs13; Scs13 { law: scs13::StepLaw::Gaussian, ..Scs13::new(loss) }),
        recipe!(SearchedDescent; SearchedDescent::dp_blgd(loss)),
        recipe!(SnowballSgd; SnowballSgd::new(loss)),
    ]
}

/// The number of records, the assumptions and the verification work of every recipe, alone and combined with others.
/// Three matrices of all pairs of features count for the recipes that hold them, also inside another recipe.
#[test]
fn memory_counts_matrices_of_all_features() {
    let (n, dim, loss) = (5000, 700, LossKind::Logistic);
    let memory = |recipe: AnyRecipe| recipe.plan_copies::<ZeroOut>(n, dim, budget(), 1).unwrap().memory();
    let matrices = 3 * 8 * dim * dim;
    let objective = || AnyRecipe::from(ObjPert::new(loss));
    for (name, recipe) in [
        ("objective perturbation", objective()),
        ("noisy moments", NoisyMoments::new(loss).into()),
        ("Newton", DpNewton::new(loss).into()),
        ("one-vs-all", OneVsAll::new(objective(), 3).into()),
        ("base rate", AtBaseRate::new(objective()).into()),
        ("units", PerUnit::new(objective(), 2, "patient").into()),
        ("portions", Portions::new([DpSgd::new(loss).into(), objective()]).into()),
        ("composition", Composition::new([DpSgd::new(loss).into(), objective()].map(Candidate::new)).into()),
        ("random stopping", RandomStopping::new([DpSgd::new(loss).into(), objective()], 2.0).into()),
    ] {
        let found = memory(recipe);
        assert!((matrices..2 * matrices).contains(&found), "{name}: {found}");
    }
    let none = memory(DpSgd::new(loss).into());
    assert!(none > 8 * dim && none < matrices / 2, "{none}");
}

#[test]
fn derivations_say_how_many_records_and_what_is_trusted() {
    for (mode, idealised) in [(NoiseMode::Exact, false), (NoiseMode::Rounded, true)] {
        for (name, recipe) in all(Common { noise_mode: mode, ..USUAL }) {
            let mut expected = vec![Assumption::PublicN, Assumption::OneRowPerUnit];
            if name != "Majority" {
                expected.push(Assumption::RowNorm { bound: 0.5 });
            }
            if idealised {
                expected.push(Assumption::IdealisedFloat);
            }
            let check = |name: &str, recipe: &AnyRecipe| {
                let plan = recipe.plan_copies::<ReplaceOne>(N, DIM, budget(), 1).unwrap();
                let derivation = plan.derivation();
                assert_eq!(derivation.records(), N, "{name}");
                // Within about a second, and no less than that of a release.
                assert!((1 << 24..1 << 28).contains(&derivation.work()), "{name}: {}", derivation.work());
                let found = derivation.assumptions();
                assert!(
                    found.len() == expected.len() && found.iter().all(|one| expected.contains(one)),
                    "{name}: {found:?}"
                );
            };
            check(name, &recipe);
            // Candidates are distinguished, and certificates of both kinds list the common assumptions once.
            if name == "BoltOn" {
                check("of classes", &OneVsAll::new(recipe.clone(), 3).into());
                check("at the base rate", &AtBaseRate::new(recipe.clone()).into());
                let two = [
                    recipe.clone(),
                    BoltOn { row_norm: 0.5, noise_mode: mode, ..BoltOn::strongly_convex(LossKind::Logistic, 0.1) }
                        .into(),
                ];
                check("best of portions", &Portions::new(two.clone()).into());
                check("best of all", &Composition::new(two.clone().map(Candidate::new)).into());
                check("best of repetitions", &RandomStopping::new(two, 3.0).into());
            }
        }
    }
    let evolved = PrivGene { row_norm: 0.5, ..PrivGene::new(LossKind::Logistic) };
    let derivation = Planned::<ReplaceOne>::derivation(&evolved.plan::<ReplaceOne>(N, DIM, budget()).unwrap());
    assert_eq!(derivation.records(), N);
    let rows = Assumption::RowNorm { bound: 0.5 };
    assert_eq!(derivation.assumptions(), [Assumption::PublicN, rows, Assumption::OneRowPerUnit]);
}

/// Every bound is accepted up to its limit and not beyond: rows and targets longer than the proof allows, no noise, no copies.
#[test]
fn bounds_beyond_a_proof_are_refused_by_every_recipe() {
    let refuses = |common: Common, name: &str, recipe: AnyRecipe, refuse: bool| {
        let planned = recipe.plan_copies::<ReplaceOne>(N, DIM, budget(), 1);
        assert_eq!(planned.is_err(), refuse, "{name}: {common:?} {:?}", planned.err());
    };
    let each = |common: Common, refuse: bool| {
        all(common).into_iter().for_each(|(name, recipe)| refuses(common, name, recipe, refuse));
    };
    each(Common { row_norm: 1.0, ..USUAL }, false);
    for row_norm in [0.0, -0.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        each(Common { row_norm, ..USUAL }, true);
    }
    for (name, recipe) in all(Common { row_norm: 1.0 + 1e-15, ..USUAL }) {
        // Recipes with a proof for rows of any length.
        let any = ["AdmmObjPert", "Majority", "NoisyMoments", "ObjPert"].contains(&name);
        refuses(USUAL, name, recipe, !any);
    }
    for target_bound in [-1.0, f64::NAN, f64::INFINITY] {
        each(Common { target_bound, ..USUAL }, true);
    }
    for (name, recipe) in all(Common { target_bound: 1.0 + 1e-15, ..USUAL }) {
        // Moments allow targets of any size.
        refuses(USUAL, name, recipe, name != "NoisyMoments");
    }
    each(Common { target_bound: 0.5, ..USUAL }, false);
    each(Common { noise_mode: NoiseMode::None, ..USUAL }, true);
    for (name, recipe) in all(USUAL) {
        assert!(recipe.plan_copies::<ReplaceOne>(N, DIM, budget(), 0).is_err(), "{name}");
        for (n, dim) in [(0, DIM), (N, 0)] {
            assert!(recipe.plan_copies::<ReplaceOne>(n, dim, budget(), 1).is_err(), "{name}");
        }
    }
}

/// Six hundred linearly separable records; the source fails when asked whether all passes were the same.
struct Failing(MemorySource<f64>);

impl RowSource<f64> for Failing {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.0.describe()
    }
    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        self.0.open_pass(request)
    }
    fn finish(&mut self) -> Result<(), SourceError> {
        Err(SourceError::CountChanged { expected: N, found: N - 1 })
    }

    fn gather(&mut self, positions: &[u32]) -> Result<Block<'_, f64>, SourceError> {
        self.0.gather(positions)
    }
}

fn source() -> MemorySource<f64> {
    let rows = (0..N).flat_map(|i| [if i % 2 == 0 { 0.4 } else { -0.4 }, 0.1, 0.2]).collect();
    let labels = (0..N).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    MemorySource::new(Examples::dense(rows, labels, 3).unwrap(), 0.5, 1.0)
}

/// Every training logs what was planned, is private only under a secret generator, and releases nothing if its source reports
/// at the end that the records changed between passes.
#[test]
fn every_training_keeps_its_promise_or_releases_nothing() {
    let mut secret = OsSeeded::new().unwrap();
    let evolved = PrivGene { row_norm: 0.5, ..PrivGene::new(LossKind::Logistic) };
    for (name, recipe) in all(USUAL).into_iter().chain([("PrivGene", evolved.into())]) {
        let plan = recipe.plan_copies::<ReplaceOne>(N, DIM, budget(), 1).unwrap();
        let mut control = Control::default();
        let trained = plan.train::<f64>(&mut source(), &mut secret, &mut control).unwrap();
        assert!(trained.log.is_private(), "{name}");
        assert_eq!(trained.log.to_event(), plan.event(), "{name}");
        let told = plan.train::<f64>(&mut source(), &mut SeededRng::new(1), &mut control).unwrap();
        assert!(!told.log.is_private(), "{name}");
        let failed = plan.train::<f64>(&mut Failing(source()), &mut secret, &mut control);
        assert!(failed.is_err(), "{name}");
    }
}

/// The log of releases on null records is the whole log under zero-out; under replace-one each costs two records.
#[test]
fn logs_of_null_records_are_kept_or_paid_for_twice() {
    let event = DpEvent::Gaussian { std_dev: 2.0, sensitivity: 1.0 };
    for private in [true, false] {
        let logged = || {
            let mut log = EventLog::<ZeroOut>::new();
            log.record(event.clone(), 3);
            log.assume(Assumption::FloatSum);
            if !private {
                log.mark_not_private();
            }
            log
        };
        let (kept, replaced) = (ZeroOut::from_null_records(logged()), ReplaceOne::from_null_records(logged()));
        let all = logged().to_event();
        assert_eq!(kept.to_event(), all);
        assert_eq!(replaced.to_event(), DpEvent::AddRemoveTwice { event: Box::new(all) });
        assert_eq!((kept.is_private(), replaced.is_private()), (private, private));
        assert!([kept.assumptions(), replaced.assumptions()].iter().all(|said| said.contains(&Assumption::FloatSum)));
    }
}

/// A run whose mechanism logs an event other than the stated one.
#[derive(Debug, Clone, PartialEq)]
struct Liar {
    /// The fraction of its cost that it states.
    stated: f64,
}

impl Algorithm for Liar {
    const NAME: &'static str = "liar";

    type Calibrated = noise_scale::StdDev;
    type Run = Self;

    fn setting(&self) -> Setting {
        let (loss, noise_mode) = (LossKind::Logistic, NoiseMode::Exact);
        Setting { loss, row_norm: 0.5, target_bound: 1.0, noise_mode, float: None }
    }

    fn calibrate(&self, _: &Problem, _: Budget, _: u64) -> Result<(noise_scale::StdDev, Self), Error> {
        Ok((noise_scale::StdDev { std_dev: 10.0 }, self.clone()))
    }

    fn resolve(&self, _: &Problem, _: &noise_scale::StdDev) -> Result<Self, Error> {
        Ok(self.clone())
    }
}

impl Run for Liar {
    fn event(&self) -> Result<DpEvent, Error> {
        Ok(DpEvent::Gaussian { std_dev: 10.0, sensitivity: self.stated })
    }

    fn summary(&self) -> Summary {
        Summary { sensitivity: None, rows: 0, text: String::new() }
    }

    fn train<F: dp_losses::Real, A: RecordAdjacency>(
        &self,
        _: Admitted<'_, F, A>,
        rng: &mut dp_mechanisms::LentRng<'_>,
        _: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let mut log = EventLog::new();
        let sensitivity = L2Sensitivity::new(1.0)?;
        let sum = Bounded::with_proven_sensitivity(vec![F::zero(); DIM as usize], sensitivity);
        Ok((Gaussian::from_std_dev(sensitivity, 10.0)?.release(sum, &mut log, rng)?, log))
    }
}

/// The log equals the promise, or the result is discarded.
#[test]
fn a_log_of_another_event_than_was_promised_releases_nothing() {
    let train = |stated: f64| {
        let plan = Liar { stated }.plan::<ZeroOut>(N, DIM, budget()).unwrap();
        plan.train::<f64>(&mut source(), &mut SeededRng::new(1), &mut Control::default())
    };
    assert!(train(1.0).is_ok());
    for stated in [0.5, 1.0 + f64::EPSILON, 0.999] {
        assert!(matches!(train(stated), Err(Error::NotAsPlanned)), "{stated}");
    }
}

/// Noise of one relation is not logged under the name of another.
#[test]
fn a_run_is_trained_under_the_relation_of_its_plan_alone() {
    let recipe = Scs13 { row_norm: 0.5, ..Scs13::new(LossKind::Logistic) };
    let plan = recipe.plan::<ZeroOut>(N, DIM, budget()).unwrap();
    let (mut rng, control) = (SeededRng::new(1), &mut Control::default());
    let run = plan.run();
    assert!(run.train_observing::<f64, ZeroOut>(&mut source(), &mut rng.lend(), control, |_| {}).is_ok());
    let other = run.train_observing::<f64, ReplaceOne>(&mut source(), &mut rng.lend(), control, |_| {});
    assert!(matches!(
        other,
        Err(Error::Relation { planned: AdjacencyKind::ZeroOut, found: AdjacencyKind::ReplaceOne })
    ));
}

/// A source that only streams passes, without access to single rows.
struct Passes(MemorySource<f64>);

impl RowSource<f64> for Passes {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.0.describe()
    }
    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        self.0.open_pass(request)
    }
}

/// Recipes that only need passes train on such a source, and those that draw batches return an error.
#[test]
fn a_source_of_passes_serves_all_that_do_not_draw_batches() {
    let stochastic = SearchedDescent { row_norm: 0.5, ..SearchedDescent::dp_blsgd(LossKind::Logistic, 60) };
    for (name, recipe) in all(USUAL).into_iter().chain([("DP-BLSGD", stochastic.into())]) {
        let plan = recipe.plan::<ZeroOut>(N, DIM, budget()).unwrap();
        let trained = plan.train(&mut Passes(source()), &mut SeededRng::new(1), &mut Control::default());
        if ["Bst14", "DpSgd", "DpSvrg", "DP-BLSGD"].contains(&name) {
            let refused = matches!(trained, Err(Error::Source(SourceError::PassesOnly { engine: "memory" })));
            assert!(refused, "{name}: {:?}", trained.err());
        } else {
            assert!(trained.is_ok(), "{name}: {:?}", trained.err());
        }
    }
}

/// A serialised derivation is read back unchanged; with a missing, additional or repeated field it is refused.
#[cfg(feature = "serde")]
#[test]
fn derivations_have_exactly_their_fields() {
    let evolved = PrivGene { row_norm: 0.5, ..PrivGene::new(LossKind::Logistic) };
    for (name, recipe) in all(USUAL).into_iter().chain([("PrivGene", evolved.into())]) {
        let derivation = recipe.plan::<ZeroOut>(N, DIM, budget()).unwrap().derivation();
        let text = serde_json::to_string(&derivation).unwrap();
        let read = |text: &str| serde_json::from_str::<AnyDerivation>(text);
        assert_eq!(read(&text).unwrap(), derivation, "{name}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let fields = value.as_object().unwrap();
        assert!(fields.len() >= 6, "{name}: {text}");
        let with = |more: &str| text.replacen('{', &format!("{{{more},"), 1);
        assert!(read(&with("\"further\":1")).is_err(), "{name}");
        for (field, value) in fields {
            assert!(read(&with(&format!("\"{field}\":{value}"))).is_err(), "{name}: {field} twice");
            let mut fewer = fields.clone();
            fewer.remove(field);
            let optional = ["moments_std_dev", "certification", "centre"].contains(&field.as_str());
            let read = read(&serde_json::to_string(&fewer).unwrap());
            assert_eq!(read.is_ok(), optional, "{name} without {field}: {read:?}");
        }
    }
}

/// What a plan within a limit promises is what verification recomputes without one.
#[test]
fn a_promise_is_evaluated_without_a_limit() {
    let recipe = DpSgd { row_norm: 0.5, batch_size: 1, ..DpSgd::new(LossKind::Logistic) };
    let plan = work::limited(1e5, || recipe.plan::<ZeroOut>(N, DIM, budget()));
    assert!(plan.is_short);
    let plan = plan.value.unwrap();
    let delta = Delta::new(plan.reached().delta).unwrap();
    assert_eq!(plan.reached().epsilon, bound::epsilon(&plan.event(), delta).unwrap().value);
    assert!(work::limited(1e5, || bound::epsilon(&plan.event(), delta)).value.unwrap().value > plan.reached().epsilon);
}
