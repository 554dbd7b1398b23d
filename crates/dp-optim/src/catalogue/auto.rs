//! `auto`: algorithm and settings chosen by public numbers.

use dp_accountant::AdjacencyKind;

use super::{Advice, Built, Entry, Request, Settings};
use crate::Auto;
use crate::error::Error;
use crate::recipes::AnyRecipe;

pub(super) const AUTO: Entry = Entry {
    name: "auto",
    docs: include_str!("../auto.rs"),
    about: "Chooses algorithm, settings and curves of numeric columns from public numbers alone: records, features, \
            budget, loss. States the reason and the expected loss; takes `lambda`, `passes`, `radius` and `gradients`",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &["lambda", "passes", "radius", "gradients"],
    data_dependent_time: true,
    records_to_check: |_| 1,
    build,
};

fn auto(request: &Request<'_>) -> Auto {
    let Settings { lambda, passes, radius, .. } = *request.settings;
    let (noise_mode, float) = (request.noise_mode, request.float);
    Auto { lambda, passes, radius, noise_mode, float, ..Auto::new(request.loss) }
}

/// Returns the number of cosines of each of `numeric` columns.
pub(super) fn cosines(request: &Request<'_>, numeric: u64) -> Result<u32, Error> {
    let &Request { budget, relation, n, dim, .. } = request;
    auto(request).cosines(n, dim, numeric, budget, relation)
}

fn build(request: &Request<'_>) -> Result<Built, Error> {
    let &Request { budget, relation, n, dim, .. } = request;
    let auto = auto(request);
    let mut choice = if request.sums {
        auto.choose_descent(n, dim, budget, relation)?
    } else {
        auto.choose(n, dim, budget, relation)?
    };
    let (low, high) = choice.expected_cost.range();
    if let AnyRecipe::BoltOn(recipe) = &mut choice.recipe {
        recipe.arithmetic = request.private_arithmetic(recipe.passes, recipe.batch_size, recipe.radius);
    }
    Ok(Built {
        recipe: choice.recipe,
        advice: Some(Advice {
            reason: choice.reason,
            expected_loss: choice.expected_cost.share,
            expected_loss_range: [low, high],
        }),
    })
}
