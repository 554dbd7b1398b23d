//! Training of a network, with measurements along its course.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dp_accountant::ZeroOut;
use dp_data::Images;
use dp_losses::{ChoosesFrom, Model};
use dp_mechanisms::SeededRng;
use dp_mechanisms::clip::ClippingNorm;
use dp_mechanisms::rng::{Purpose, ReleaseRng};
use dp_nets::{Architecture, Initial, Network, Pixels, Scaling};
use dp_optim::engine::{AfterUpdate, Control};
use dp_optim::recipes::{Budget, ModelSgd, NonPrivateSgd, Search, StepSearch};
use dp_optim::{Descent, FloatKind, Schedule};
use rand::Rng;

use super::{DELTA, NetworkSetting, Optimiser};
use crate::algorithm::Outcome;
use crate::cell::Cell;
use crate::dataset::ImageSets;
use crate::error::Error;

/// Images that are measured at a time.
const MEASURED: usize = 256;
/// Candidates of DP-BLSGD, and the ratio of each to the one before; the number is not the chapter's, which names none.
const CANDIDATES: (u32, f64) = (20, 0.8);

/// Runs several points of one training, in their order.
///
/// # Errors
/// [`Error::Data`] for images that do not fit, [`Error::Training`], [`Error::Interrupted`].
pub(crate) fn run(
    cells: &[(Cell, NetworkSetting)],
    images: &ImageSets,
    cancelled: &AtomicBool,
) -> Result<Vec<Outcome>, Error> {
    let Some(&(cell, setting)) = cells.first() else { return Ok(Vec::new()) };
    let data = |error: dp_nets::Error| Error::Data { file: setting.data.to_string(), what: error.to_string() };
    let (shape, classes) = (images.train.shape(), images.train.classes());
    let architecture = Architecture::named(setting.network, shape, classes, None).map_err(data)?;
    let network = Network::new(architecture, Pixels::new(Scaling::Symmetric)).map_err(data)?;
    network.check_images(&images.test).map_err(data)?;

    let mut watch = Watch { started: Instant::now(), measuring: Duration::ZERO, course: Vec::new() };
    let mut observer = |step: &AfterUpdate<'_, f32>| {
        if cells.iter().any(|(_, setting)| setting.after == step.update) {
            watch.measure(step, &setting, &network, images);
        }
    };
    let mut control = Control { cancelled: Some(cancelled), ..Control::default() };
    train(cell, &setting, &network, &images.train, &mut control, &mut observer).map_err(|source| match source {
        dp_optim::Error::Interrupted => Error::Interrupted,
        source => Error::Training { run: cell.training().to_string(), source },
    })?;
    cells.iter().map(|(cell, setting)| watch.at(cell, setting.after)).collect()
}

fn train(
    cell: Cell,
    setting: &NetworkSetting,
    network: &Network<f32, Pixels<f32>>,
    images: &Images,
    control: &mut Control<'_>,
    observer: &mut dyn FnMut(&AfterUpdate<'_, f32>),
) -> Result<(), dp_optim::Error> {
    let NetworkSetting { optimiser, epsilon, batches, lambda, clipping, step, iterations: steps, .. } = *setting;
    let mut rng = SeededRng::new(cell.seed());
    let start = network.initial(Initial::Uniform, rng.stream(Purpose::Custom(2), 0, 0).next_u64());
    let (n, batch_size) = (images.len() as u64, (images.len() as u64 / batches).max(1));
    let (schedule, float) = (Schedule::Constant { step }, FloatKind::F32);
    let adam = Descent::Adam { first_decay: 0.9, second_decay: 0.999, epsilon: 1e-8 };
    if optimiser == Optimiser::Adam {
        let recipe =
            NonPrivateSgd { batch_size, steps, descent: adam, lambda, schedule, float, ..NonPrivateSgd::new() };
        return recipe.train(network, images, start, &mut rng, control, observer).map(|_| ());
    }
    let search = match optimiser {
        Optimiser::DpBlsgd { armijo } => {
            let (candidates, shrink) = CANDIDATES;
            let search = Search::Backtracking;
            Some(StepSearch { search, candidates, shrink, armijo, most_loss: clipping, ..StepSearch::new() })
        }
        _ => None,
    };
    let recipe = ModelSgd {
        batch_size,
        steps,
        microbatch: network.recommended_microbatch().min(256) as u64,
        descent: if optimiser == Optimiser::DpAdam { adam } else { Descent::Plain },
        lambda,
        schedule,
        search,
        float,
        ..ModelSgd::new(ClippingNorm::new(clipping)?)
    };
    let budget = Budget::new(epsilon, DELTA)?;
    let plan = recipe.plan::<ZeroOut>(n, network.parameters() as u64, budget)?;
    plan.train(network, images, start, &mut rng, control, observer).map(|_| ())
}

/// The measurements of a course, with a clock that is stopped while measuring.
struct Watch {
    started: Instant,
    measuring: Duration,
    course: Vec<(u64, Outcome)>,
}

impl Watch {
    fn measure(
        &mut self,
        step: &AfterUpdate<'_, f32>,
        setting: &NetworkSetting,
        network: &Network<f32, Pixels<f32>>,
        images: &ImageSets,
    ) {
        let before = Instant::now();
        let seconds = self.started.elapsed().saturating_sub(self.measuring).as_secs_f64();
        let squared: f64 = step.iterate.iter().map(|&weight| f64::from(weight).powi(2)).sum();
        let outcome = Outcome {
            accuracy: means(network, step.iterate, &images.test).1,
            objective: means(network, step.iterate, &images.train).0 + 0.5 * setting.lambda * squared,
            seconds,
            chosen_step: matches!(setting.optimiser, Optimiser::DpBlsgd { .. }).then_some(step.step_size),
            ..Outcome::default()
        };
        self.course.push((step.update, outcome));
        self.measuring += before.elapsed();
    }

    fn at(&self, cell: &Cell, point: u64) -> Result<Outcome, Error> {
        let beyond = || Error::Data { file: cell.to_string(), what: "its iterations end before".to_owned() };
        self.course.iter().find(|(update, _)| *update == point).map(|(_, outcome)| *outcome).ok_or_else(beyond)
    }
}

/// Returns the mean loss and the accuracy: of equal logits the first counts.
fn means(network: &Network<f32, Pixels<f32>>, weights: &[f32], images: &Images) -> (f64, f64) {
    let positions: Vec<u32> = (0..images.len() as u32).collect();
    let (mut pass, mut losses) = (network.pass(MEASURED), vec![0.0; MEASURED]);
    let (mut loss, mut hits) = (0.0, 0u32);
    for chosen in positions.chunks(MEASURED) {
        let batch = network.choose(images, chosen);
        let losses = &mut losses[..chosen.len()];
        network.forward(weights, batch, &mut pass);
        network.losses(batch, &pass, losses);
        loss += losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
        for (i, logits) in pass.logits().chunks_exact(network.classes()).enumerate() {
            let first = |best: usize, class: usize| if logits[class] > logits[best] { class } else { best };
            hits += u32::from((1..logits.len()).fold(0, first) == batch.label(i));
        }
    }
    let n = images.len() as f64;
    (loss / n, f64::from(hits) / n)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::dataset::DataSet;

    /// Every optimiser learns the made-up images; a search reports the steps that it has chosen.
    #[test]
    fn every_optimiser_learns() {
        let data = DataSet::MadeUpImages { images: 2000 };
        let images = data.load_images(Path::new("nowhere")).unwrap();
        let cancelled = AtomicBool::new(false);
        for optimiser in [Optimiser::Adam, Optimiser::DpSgd, Optimiser::DpAdam, Optimiser::DpBlsgd { armijo: 0.1 }] {
            let setting = NetworkSetting::new(data, "mlp:8", optimiser);
            let step = if setting.step < 0.01 { 0.01 } else { setting.step };
            let setting = NetworkSetting { epsilon: 20.0, batches: 10, iterations: 100, step, ..setting };
            let points = [1, 10, 100].map(|after| NetworkSetting { after, ..setting });
            let cells = points.map(|setting| (Cell::new(setting, 0), setting));
            let outcomes = run(&cells, &images, &cancelled).unwrap();
            let (first, last) = (outcomes[0], outcomes[2]);
            assert!(last.accuracy > 0.95 && last.objective < 0.6 * first.objective, "{optimiser}: {outcomes:?}");
            let is_chosen = matches!(optimiser, Optimiser::DpBlsgd { .. });
            let chosen = |step: f64| step > 0.0 && step <= setting.step;
            assert!(outcomes.iter().all(|outcome| outcome.chosen_step.is_some_and(chosen) == is_chosen));
            // The same run again, and a part of it.
            let again = run(&cells[2..], &images, &cancelled).unwrap();
            assert_eq!((again[0].accuracy, again[0].objective), (last.accuracy, last.objective));
            let beyond = NetworkSetting { after: 101, ..setting };
            assert!(matches!(run(&[(Cell::new(beyond, 0), beyond)], &images, &cancelled), Err(Error::Data { .. })));
        }
        let cancelled = AtomicBool::new(true);
        let setting = NetworkSetting::new(data, "mlp:8", Optimiser::DpSgd);
        let cell = (Cell::new(setting, 0), setting);
        assert!(matches!(run(&[cell], &images, &cancelled), Err(Error::Interrupted)));
        let cnn = NetworkSetting { network: "small-cnn", ..setting };
        assert!(matches!(run(&[(Cell::new(cnn, 0), cnn)], &images, &cancelled), Err(Error::Data { .. })));
    }

    #[test]
    fn means_are_those_of_the_logits() {
        let images = DataSet::MadeUpImages { images: 300 }.load_images(Path::new("nowhere")).unwrap().train;
        let layers = Architecture::named("mlp:", images.shape(), 3, None);
        assert!(layers.is_err());
        let layers = Architecture::mlp(images.shape(), &[], 3, dp_nets::Activation::Relu);
        let network = Network::new(layers, Pixels::new(Scaling::Symmetric)).unwrap();
        // Weights of 0 give equal logits: the first class, with a third of the images, and a loss of ln 3.
        let (loss, accuracy) = means(&network, &vec![0.0; network.parameters()], &images);
        assert!((loss - 3f64.ln()).abs() < 1e-6 && (accuracy - 1.0 / 3.0).abs() < 1e-12, "{loss} {accuracy}");
    }
}
