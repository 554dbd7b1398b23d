//! `dp-blgd` and `dp-agd`.

use dp_optim::recipes::{Search, SearchedDescent};

use super::{Built, PrivateAlgorithm, Request};
use crate::args::{self, Adjacency, Algorithm};

pub(super) const DP_BLGD: PrivateAlgorithm = PrivateAlgorithm {
    name: Algorithm::DpBlgd,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &["--lambda", "--steps", "--clip", "--clip-loss", "--step-size", "--line-search"],
    records_to_check: |_| 1,
    build: |request| {
        let searches = match request.config.settings.line_search {
            None | Some(args::LineSearch::Backtracking) => Search::Backtracking,
            Some(args::LineSearch::Selection) => Search::Selection,
        };
        Ok(build(request, SearchedDescent { search: searches, ..SearchedDescent::dp_blgd(request.config.loss) }))
    },
};

pub(super) const DP_AGD: PrivateAlgorithm = PrivateAlgorithm {
    name: Algorithm::DpAgd,
    flags: &["--lambda", "--steps", "--clip", "--clip-loss", "--step-size"],
    build: |request| Ok(build(request, SearchedDescent::dp_agd(request.config.loss))),
    ..DP_BLGD
};

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
