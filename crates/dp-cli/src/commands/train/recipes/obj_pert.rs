//! `obj-pert`.

use dp_optim::FloatKind;
use dp_optim::recipes::ObjPert;

use super::{Built, PrivateAlgorithm, Request};
use crate::args::{self, Adjacency};
use crate::failure::Failure;
use crate::input::conflict;

pub(super) const OBJ_PERT: PrivateAlgorithm = PrivateAlgorithm {
    name: args::Algorithm::ObjPert,
    relations: &[Adjacency::AddRemove, Adjacency::ReplaceOne],
    flags: &["--lambda"],
    // The sum's regulariser grows with it: what is refused for one record is not refused for many.
    records_to_check: |_| 1 << 20,
    build,
};

fn build(request: &Request<'_>) -> Result<Built, Failure> {
    let (config, settings) = (request.config, &request.config.settings);
    if config.float != FloatKind::F64 {
        return Err(conflict("--float", "this algorithm certifies its minimiser in double precision")
            .expected("f64")
            .help("leave --float away"));
    }
    let recipe = ObjPert { lambda: settings.lambda, noise_mode: config.noise, ..ObjPert::new(config.loss) };
    Ok(recipe.into())
}
