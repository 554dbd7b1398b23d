//! `priv-gene` and `majority`.

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::NoiseMode;

use super::{Built, Entry, Request, conflict};
use crate::error::Error;
use crate::recipes::{Majority, PrivGene};

pub(super) const PRIV_GENE: Entry = Entry {
    name: "priv-gene",
    docs: include_str!("../recipes/priv_gene.rs"),
    about: "Coordinate steps, each chosen by the exponential mechanism, without gradients (Zhang et al. 2013)",
    relations: &[AdjacencyKind::ReplaceOne, AdjacencyKind::ZeroOut],
    settings: &["steps", "step-size", "clip"],
    data_dependent_time: false,
    records_to_check: |_| 1,
    build: priv_gene,
};

pub(super) const MAJORITY: Entry = Entry {
    name: "majority",
    docs: include_str!("../recipes/majority.rs"),
    about: "Predicts the noisy mean label for every record: the baseline without features",
    settings: &[],
    build: majority,
    ..PRIV_GENE
};

fn priv_gene(request: &Request<'_>) -> Result<Built, Error> {
    let settings = request.settings;
    if request.noise_mode != NoiseMode::Exact {
        return Err(conflict("noise", "this algorithm chooses by integers, always exactly")
            .expected("exact")
            .help("omit `noise`"));
    }
    let recipe = PrivGene::new(request.loss);
    let step = settings.step_size.unwrap_or(recipe.step);
    Ok(PrivGene { rounds: settings.steps, step, slope: settings.clip, ..recipe }.into())
}

fn majority(request: &Request<'_>) -> Result<Built, Error> {
    Ok(Majority { noise_mode: request.noise_mode, ..Majority::new(request.loss) }.into())
}
