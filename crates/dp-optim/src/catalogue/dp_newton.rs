//! `dp-newton`.

use dp_accountant::AdjacencyKind;

use super::{Built, CurvatureSource, Entry, Request};
use crate::error::Error;
use crate::recipes::DpNewton;

pub(super) const DP_NEWTON: Entry = Entry {
    name: "dp-newton",
    docs: include_str!("../recipes/dp_newton.rs"),
    about: "Newton's method with noisy gradients and Hessians: few steps, for the logistic loss (Ganesh et al. \
            2023)",
    relations: &[AdjacencyKind::ZeroOut, AdjacencyKind::ReplaceOne],
    settings: &["lambda", "steps", "curvature", "curvature-share"],
    data_dependent_time: false,
    records_to_check: |_| 1,
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Error> {
    let settings = request.settings;
    let usual = match settings.curvature {
        None | Some(CurvatureSource::EachStep) => DpNewton::new(request.loss),
        Some(CurvatureSource::Once) => DpNewton::with_one_curvature(request.loss),
    };
    let recipe = DpNewton {
        lambda: settings.lambda,
        steps: settings.steps.unwrap_or(usual.steps),
        share: settings.curvature_share.unwrap_or(usual.share),
        noise_mode: request.noise_mode,
        ..usual
    };
    Ok(recipe.into())
}
