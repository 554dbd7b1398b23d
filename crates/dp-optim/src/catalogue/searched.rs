//! `dp-blgd`, `dp-blsgd`, `dp-blsgd-ac` and `dp-agd`.

use dp_accountant::AdjacencyKind;

use super::{Built, Entry, LineSearch, Request};
use crate::recipes::{Search, SearchedDescent};

pub(super) const DP_BLGD: Entry = Entry {
    name: "dp-blgd",
    docs: include_str!("../recipes/searched_descent.rs"),
    about: "Full-batch gradient descent with a noisy line search, until the budget is spent",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &["lambda", "steps", "clip", "clip-loss", "step-size", "line-search"],
    data_dependent_time: false,
    records_to_check: |_| 1,
    build: |request| Ok(build(request, searching(request, SearchedDescent::dp_blgd(request.loss)))),
};

pub(super) const DP_AGD: Entry = Entry {
    name: "dp-agd",
    docs: include_str!("../recipes/searched_descent.rs"),
    about: "Full-batch gradient descent whose step sizes are chosen from a grid by report noisy min (Lee, Kifer \
            2018)",
    settings: &["lambda", "steps", "clip", "clip-loss", "step-size"],
    build: |request| Ok(build(request, SearchedDescent::dp_agd(request.loss))),
    ..DP_BLGD
};

pub(super) const DP_BLSGD: Entry = Entry {
    name: "dp-blsgd",
    docs: include_str!("../recipes/searched_descent.rs"),
    about: "SGD with a noisy line search, each gradient and each search on a fresh random batch",
    relations: &[AdjacencyKind::ZeroOut],
    settings: &["lambda", "steps", "batch-size", "clip", "clip-loss", "step-size", "line-search"],
    data_dependent_time: false,
    records_to_check: |settings| settings.batch_size.unwrap_or(1).clamp(1, 1 << 20),
    build: |request| Ok(build(request, searching(request, SearchedDescent::dp_blsgd(request.loss, batch(request))))),
};

pub(super) const DP_BLSGD_AC: Entry = Entry {
    name: "dp-blsgd-ac",
    docs: include_str!("../recipes/searched_descent.rs"),
    about: "SGD with a noisy line search and a clipping norm that shrinks where gradients disagree",
    build: |request| Ok(build(request, searching(request, SearchedDescent::dp_blsgd_ac(request.loss, batch(request))))),
    ..DP_BLSGD
};

/// Returns the batch size; by default a tenth of the records.
fn batch(request: &Request<'_>) -> u64 {
    request.settings.batch_size.unwrap_or(request.n / 10).max(1)
}

impl LineSearch {
    pub(super) fn search(self) -> Search {
        match self {
            Self::Backtracking => Search::Backtracking,
            Self::Selection => Search::Selection,
        }
    }
}

fn searching(request: &Request<'_>, recipe: SearchedDescent) -> SearchedDescent {
    let search = request.settings.line_search.map_or(recipe.search, LineSearch::search);
    SearchedDescent { search, ..recipe }
}

fn build(request: &Request<'_>, recipe: SearchedDescent) -> Built {
    let settings = request.settings;
    SearchedDescent {
        lambda: settings.lambda.unwrap_or(recipe.lambda),
        steps: settings.steps.unwrap_or(recipe.steps),
        clipping: settings.clip.unwrap_or(recipe.clipping),
        most_loss: settings.clip_loss.unwrap_or(recipe.most_loss),
        step: settings.step_size.unwrap_or(recipe.step),
        noise_mode: request.noise_mode,
        ..recipe
    }
    .into()
}
