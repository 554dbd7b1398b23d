use dp_accountant::{ReplaceOne, ZeroOut};
use dp_data::{Examples, PassRequest, RowSource, RowStream};
use dp_losses::{HuberRegression, HuberSvm, LogCosh, Softmax};
use dp_mechanisms::rng::{LentRng, ReleaseRng as _, SeededRng};

use super::*;
use crate::added_up::AddedUp;
use crate::engine::Control;
use crate::recipes::{
    AnyRecipe, BoltOn, Budget, DpSgd, Majority, NoisyMoments, Planned, Recipe, RecordAdjacency, Sampling,
};
use crate::{Descent, MemorySource};

const N: usize = 400;
const DIM: usize = 4;

/// Records that are added up elsewhere, with faults.
struct Elsewhere {
    records: AddedUp,
    asked: u32,
    /// What is wrong with the answers from the given question on.
    fault: Option<(u32, Fault)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    OtherCount,
    OtherSums,
    TooLarge,
    TooFew,
}

fn examples(classes: u32) -> Examples<f64> {
    let mut state = 7u64;
    let mut unit = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for i in 0..N {
        let row: [f64; DIM] = [unit() - 0.5, unit() - 0.5, unit() - 0.5, 0.5];
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt() * (1.0 + 1e-12);
        values.extend(row.map(|x| x / norm));
        targets.push(match classes {
            0 => (row[0] - row[1] + 0.2 * (unit() - 0.5)).clamp(-1.0, 1.0),
            2 => {
                if row[0] - row[1] + 0.3 * (unit() - 0.5) > 0.0 {
                    1.0
                } else {
                    -1.0
                }
            }
            classes => f64::from((i as u32 * 5 + u32::from(row[0] > 0.0)) % classes),
        });
    }
    Examples::dense(values, targets, DIM).unwrap()
}

impl RowSource<f64> for Elsewhere {
    fn describe(&mut self) -> Result<Description, SourceError> {
        self.records.describe()
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<f64> + '_>, SourceError> {
        self.records.open_pass(request)
    }

    fn sums(&mut self) -> Option<&mut dyn SumSource> {
        Some(self)
    }
}

impl SumSource for Elsewhere {
    fn sums(&mut self, request: &SumRequest<'_>) -> Result<IntegerSums, SourceError> {
        let mut answer = SumSource::sums(&mut self.records, request)?;
        self.asked += 1;
        match self.fault.filter(|(from, _)| self.asked >= *from).map(|(_, fault)| fault) {
            None => {}
            Some(Fault::OtherCount) => answer.records += 1,
            Some(Fault::OtherSums) => answer.steps[0] += i64::from(self.asked),
            Some(Fault::TooLarge) => answer.steps[0] = (N as i64) << (2 * request.bits.min(25) + 1),
            Some(Fault::TooFew) => drop(answer.steps.pop()),
        }
        Ok(answer)
    }
}

fn budget() -> Budget {
    Budget::new(2.0, 1e-6).unwrap()
}

fn recipe(loss: LossKind) -> DpSgd {
    let clipping = (loss == LossKind::Squared).then(|| ClippingNorm::new(0.5).unwrap());
    DpSgd {
        sampling: Sampling::Passes,
        batch_size: u64::MAX,
        passes: 5,
        clipping,
        descent: Descent::suited_to(0.01),
        target_bound: bound(loss),
        ..DpSgd::new(loss)
    }
}

fn bound(loss: LossKind) -> f64 {
    f64::from(loss.outputs().max(2) - 1)
}

fn elsewhere(loss: LossKind, fault: Option<(u32, Fault)>) -> Elsewhere {
    Elsewhere { records: AddedUp::new(examples(classes(loss)), 1.0, bound(loss)), asked: 0, fault }
}

fn train<A: RecordAdjacency>(
    recipe: &DpSgd,
    source: &mut dyn RowSource<f64>,
) -> Result<crate::Trained<f64, A, crate::recipes::DerivationOf<DpSgd, A>>, Error> {
    let plan = recipe.plan::<A>(N as u64, DIM as u64, budget()).unwrap();
    let mut rng = SeededRng::new(3);
    let mut lent: LentRng<'_> = rng.lend();
    plan.train(source, &mut lent, &mut Control::default())
}

const LOSSES: [fn() -> LossKind; 8] = [
    || LossKind::Logistic,
    || LossKind::HuberSvm(HuberSvm::new(0.3).unwrap()),
    || LossKind::Hinge,
    || LossKind::HuberRegression(HuberRegression::new(0.2).unwrap()),
    || LossKind::Absolute,
    || LossKind::LogCosh(LogCosh::new(0.4).unwrap()),
    || LossKind::Squared,
    || LossKind::Softmax(Softmax::new(4).unwrap()),
];

fn classes(loss: LossKind) -> u32 {
    loss.classes().unwrap_or(if loss.is_classification() { 2 } else { 0 })
}

/// The same noise on sums that differ by their rounding alone.
#[test]
fn models_are_those_of_rows_in_memory_and_say_what_they_rest_on() {
    for loss in LOSSES.map(|loss| loss()) {
        let recipe = recipe(loss);
        let mut here = MemorySource::new(examples(classes(loss)), 1.0, bound(loss));
        let mut elsewhere = elsewhere(loss, None);
        let one = train::<ZeroOut>(&recipe, &mut here).unwrap();
        let other = train::<ZeroOut>(&recipe, &mut elsewhere).unwrap();
        // The first step is asked for twice.
        assert_eq!(elsewhere.asked, 6, "{loss}");
        assert_eq!(one.derivation, other.derivation);
        for (one, other) in one.weights.get().iter().zip(other.weights.get()) {
            assert!((one - other).abs() < 1e-8 * (1.0 + one.abs()), "{loss}: {one} {other}");
        }
        let certificate =
            other.certificate(dp_accountant::guarantee::Unit::Record, Vec::new(), String::new(), Default::default());
        assert!(certificate.assumptions.contains(&Assumption::EngineArithmetic { bits: bits_of(N as u64) }), "{loss}");
        let replaced = train::<ReplaceOne>(&recipe, &mut self::elsewhere(loss, None));
        assert!(replaced.is_ok(), "{loss}: {:?}", replaced.err());
    }
}

#[test]
fn answers_that_cannot_be_right_end_the_run() {
    let logistic = recipe(LossKind::Logistic);
    for (from, fault, says) in [
        (1, Fault::OtherCount, "number of rows"),
        (3, Fault::OtherCount, "number of rows"),
        (2, Fault::OtherSums, "two answers"),
        (1, Fault::TooLarge, "contributions"),
        (1, Fault::TooFew, "coordinates"),
    ] {
        let mut source = elsewhere(LossKind::Logistic, Some((from, fault)));
        let error = train::<ZeroOut>(&logistic, &mut source).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// An algorithm that needs rows says so.
#[test]
fn other_algorithms_are_refused() {
    let source = || elsewhere(LossKind::Logistic, None);
    let sampled = DpSgd { sampling: Sampling::Poisson, batch_size: 50, ..recipe(LossKind::Logistic) };
    let in_batches = DpSgd { batch_size: 50, ..recipe(LossKind::Logistic) };
    for recipe in [sampled, in_batches] {
        assert!(train::<ZeroOut>(&recipe, &mut source()).is_err());
    }
    let bolt_on = AnyRecipe::from(BoltOn::strongly_convex(LossKind::Logistic, 0.1));
    let error = train_any(&bolt_on, &mut source()).unwrap_err();
    assert!(error.to_string().contains("stay where they are"), "{error}");
    let longer = AnyRecipe::from(NoisyMoments { row_norm: 2.0, ..NoisyMoments::new(LossKind::Squared) });
    let error = train_any(&longer, &mut source()).unwrap_err();
    assert!(error.to_string().contains("norm at most 1"), "{error}");
}

fn train_any(recipe: &AnyRecipe, source: &mut dyn RowSource<f64>) -> Result<(Vec<f64>, Vec<Assumption>), Error> {
    let plan = recipe.plan::<ZeroOut>(N as u64, DIM as u64, budget()).unwrap();
    let trained = plan.train(source, &mut SeededRng::new(1), &mut Control::default())?;
    let unit = dp_accountant::guarantee::Unit::Record;
    let certificate = trained.certificate(unit, Vec::new(), String::new(), Default::default());
    Ok((trained.weights.into_inner(), certificate.assumptions))
}

/// Moments and targets on the same grid give the same model, but for rows that clipping shortens across a step.
#[test]
fn single_releases_are_those_of_rows_in_memory() {
    let recipes = [
        (LossKind::Logistic, AnyRecipe::from(NoisyMoments::new(LossKind::Logistic))),
        (LossKind::Squared, AnyRecipe::from(NoisyMoments::new(LossKind::Squared))),
        (LOSSES[7](), AnyRecipe::from(NoisyMoments::new(LOSSES[7]()))),
        (LossKind::Logistic, AnyRecipe::from(Majority::new(LossKind::Logistic))),
    ];
    for (loss, recipe) in recipes {
        let mut here = MemorySource::new(examples(classes(loss)), 1.0, bound(loss));
        let mut there = elsewhere(loss, None);
        let (expected, assumptions) = train_any(&recipe, &mut here).unwrap();
        assert!(!assumptions.iter().any(|assumption| matches!(assumption, Assumption::EngineArithmetic { .. })));
        let (found, assumptions) = train_any(&recipe, &mut there).unwrap();
        assert_eq!((found.len(), there.asked), (expected.len(), 2), "{loss}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{loss}: {found} {expected}");
        }
        assert!(assumptions.iter().any(|assumption| matches!(assumption, Assumption::EngineArithmetic { .. })));
        for (fault, says) in [
            (Fault::OtherCount, "number of rows"),
            (Fault::OtherSums, "two answers"),
            (Fault::TooLarge, "contributions"),
            (Fault::TooFew, ""),
        ] {
            let mut there = elsewhere(loss, Some((1, fault)));
            let error = train_any(&recipe, &mut there).unwrap_err();
            assert!(error.to_string().contains(says), "{loss} {error}");
        }
    }
}
