//! `priv-gene` and `majority`.

use dp_accountant::certificate::NoiseMode;
use dp_optim::recipes::{Majority, PrivGene};

use super::{Built, PrivateAlgorithm, Request};
use crate::args::{Adjacency, Algorithm};
use crate::failure::Failure;
use crate::input::conflict;

pub(super) const PRIV_GENE: PrivateAlgorithm = PrivateAlgorithm {
    name: Algorithm::PrivGene,
    relations: &[Adjacency::ReplaceOne, Adjacency::AddRemove],
    flags: &["--steps", "--step-size", "--clip"],
    records_to_check: |_| 1,
    build: priv_gene,
};

pub(super) const MAJORITY: PrivateAlgorithm =
    PrivateAlgorithm { name: Algorithm::Majority, flags: &[], build: majority, ..PRIV_GENE };

fn priv_gene(request: &Request<'_>) -> Result<Built, Failure> {
    let (config, settings) = (request.config, &request.config.settings);
    if config.noise != NoiseMode::Exact {
        return Err(conflict("--noise", "this algorithm chooses by integers, always exactly")
            .expected("exact")
            .help("leave --noise away"));
    }
    let recipe = PrivGene::new(config.loss);
    let step = settings.step_size.unwrap_or(recipe.step);
    Ok(PrivGene { rounds: settings.steps, step, slope: settings.clip, ..recipe }.into())
}

fn majority(request: &Request<'_>) -> Result<Built, Failure> {
    let config = request.config;
    Ok(Majority { noise_mode: config.noise, ..Majority::new(config.loss) }.into())
}
