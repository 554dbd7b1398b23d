//! `dp-blgd`, `dp-blsgd`, `dp-blsgd-ac` and `dp-agd`.

use dp_optim::recipes::{Search, SearchedDescent};

use super::{Built, PrivateAlgorithm, Request};
use crate::args::{self, Adjacency, Algorithm};

pub(super) const DP_BLGD: PrivateAlgorithm = PrivateAlgorithm {
    name: Algorithm::DpBlgd,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &["--lambda", "--steps", "--clip", "--clip-loss", "--step-size", "--line-search"],
    records_to_check: |_| 1,
    build: |request| Ok(build(request, searching(request, SearchedDescent::dp_blgd(request.config.loss)))),
};

pub(super) const DP_AGD: PrivateAlgorithm = PrivateAlgorithm {
    name: Algorithm::DpAgd,
    flags: &["--lambda", "--steps", "--clip", "--clip-loss", "--step-size"],
    build: |request| Ok(build(request, SearchedDescent::dp_agd(request.config.loss))),
    ..DP_BLGD
};

pub(super) const DP_BLSGD: PrivateAlgorithm = PrivateAlgorithm {
    name: Algorithm::DpBlsgd,
    relations: &[Adjacency::AddRemove],
    flags: &["--lambda", "--steps", "--batch-size", "--clip", "--clip-loss", "--step-size", "--line-search"],
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build: |request| {
        Ok(build(request, searching(request, SearchedDescent::dp_blsgd(request.config.loss, batch(request)))))
    },
};

pub(super) const DP_BLSGD_AC: PrivateAlgorithm = PrivateAlgorithm {
    name: Algorithm::DpBlsgdAc,
    build: |request| {
        Ok(build(request, searching(request, SearchedDescent::dp_blsgd_ac(request.config.loss, batch(request)))))
    },
    ..DP_BLSGD
};

/// A tenth of the records, unless another size was asked for.
fn batch(request: &Request<'_>) -> u64 {
    request.config.settings.batch_size.unwrap_or(request.shape.n / 10).max(1)
}

fn searching(request: &Request<'_>, recipe: SearchedDescent) -> SearchedDescent {
    let search = match request.config.settings.line_search {
        None | Some(args::LineSearch::Backtracking) => Search::Backtracking,
        Some(args::LineSearch::Selection) => Search::Selection,
    };
    SearchedDescent { search, ..recipe }
}

fn build(request: &Request<'_>, recipe: SearchedDescent) -> Built {
    let (config, settings) = (request.config, &request.config.settings);
    SearchedDescent {
        lambda: settings.lambda.unwrap_or(recipe.lambda),
        steps: settings.steps.unwrap_or(recipe.steps),
        clipping: settings.clip.unwrap_or(recipe.clipping),
        most_loss: settings.clip_loss.unwrap_or(recipe.most_loss),
        step: settings.step_size.unwrap_or(recipe.step),
        noise_mode: config.noise,
        ..recipe
    }
    .into()
}
