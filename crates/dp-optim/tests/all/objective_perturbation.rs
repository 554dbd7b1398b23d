//! Published objective perturbation against golden values, and its minimisers.

use crate::support::{close, golden_family, number};
use dp_accountant::{AdjacencyKind, MarginLoss};
use dp_optim::recipes::Budget;
use dp_optim::recipes::obj_pert::published::{Calibration, published};

/// The calibrations of Chaudhuri et al. and of Kifer et al., for a replaced record if the golden value is for one.
#[test]
fn the_papers_calibrations() {
    for case in golden_family("objpert_calibration") {
        let id = case["id"].as_str().unwrap();
        let (n, curvature, lambda) = (number(&case["n"]), number(&case["c"]), number(&case["lam"]));
        let budget = Budget::new(number(&case["eps"]), number(&case["dp_delta"])).unwrap();
        // Slope 1 and this curvature.
        let loss = MarginLoss::BoundedSlope { slope: 1.0, curvature };
        let of = |calibration, relation| published(calibration, loss, n * lambda, budget, relation).unwrap();
        let cms = of(Calibration::Cms11, AdjacencyKind::ReplaceOne);
        close(cms.noise.scale(), number(&case["cms_beta"]).recip(), 1e-9, id);
        close(cms.noise.scale(), 2.0 / number(&case["cms_eps_prime"]), 1e-9, id);
        close(cms.regularization / n, lambda + number(&case["cms_extra_lambda"]), 1e-9, id);
        let relation = if number(&case["zeta"]) == 1.0 { AdjacencyKind::ZeroOut } else { AdjacencyKind::ReplaceOne };
        let kst = of(Calibration::Kst12, relation);
        close(kst.noise.scale(), number(&case["kst_sigma"]), 1e-9, id);
        close(kst.regularization, number(&case["kst_delta_reg"]).max(n * lambda), 1e-9, id);
    }
}
