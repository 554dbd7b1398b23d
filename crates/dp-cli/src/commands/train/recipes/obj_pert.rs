//! `obj-pert` and `noisy-moments`.

use dp_optim::FloatKind;
use dp_optim::recipes::{NoisyMoments, ObjPert};

use super::{Built, PrivateAlgorithm, Request, steps};
use crate::args::{self, Adjacency};
use crate::failure::Failure;
use crate::input::conflict;

pub(super) const OBJ_PERT: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::ObjPert,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &["--lambda", "--centre-share", "--output-noise"],
    // The sum's regulariser grows with it: what is refused for one record is not refused for many.
    records_to_check: |_| 1 << 20,
    build: obj_pert,
};

pub(super) const NOISY_MOMENTS: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::NoisyMoments,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &["--lambda"],
    records_to_check: |_| 1,
    build: noisy_moments,
};

fn obj_pert(request: &Request<'_>) -> Result<Built, Failure> {
    let (config, settings) = (request.config, &request.config.settings);
    if config.float != FloatKind::F64 {
        return Err(conflict("--float", "this algorithm certifies its minimiser in double precision")
            .expected("f64")
            .help("leave --float away"));
    }
    let usual = ObjPert::new(config.loss);
    let recipe = ObjPert {
        lambda: settings.lambda,
        centre_share: settings.centre_share.unwrap_or(usual.centre_share),
        law: steps::output_noise(settings),
        noise_mode: config.noise,
        ..usual
    };
    Ok(recipe.into())
}

fn noisy_moments(request: &Request<'_>) -> Result<Built, Failure> {
    let config = request.config;
    let lambda = config.settings.lambda.unwrap_or(0.0);
    Ok(NoisyMoments { lambda, noise_mode: config.noise, ..NoisyMoments::new(config.loss) }.into())
}
