//! Audits a user-defined mechanism, created with `CustomMechanism`, and a variant that claims half of its cost.
//!
//! `cargo run --release -p dp-audit --example audit_custom_mechanism`

use dp_accountant::{Epsilon, ZeroOut};
use dp_audit::{Auditor, Error, check, report};
use dp_mechanisms::custom::{Claim, CryptoRng, CustomMechanism};
use dp_mechanisms::{L1Sensitivity, exact};

fn main() -> Result<(), Error> {
    let sensitivity = L1Sensitivity::<ZeroOut>::new(1.0)?;
    let auditor = Auditor::new(200_000)?.with_confidence(0.999)?.with_seed(1);
    let mut audits = Vec::new();
    for claimed in [0.5, 0.25] {
        // Integer noise of scale 2: a count, which changes by at most 1, costs epsilon = 1/2.
        let claim = Claim::PureEps(Epsilon::new(claimed)?);
        let count = CustomMechanism::new("count", claim, sensitivity, |value: i64, rng: &mut dyn CryptoRng| {
            let noise = exact::discrete_laplace(2, 1, rng)?;
            Ok(value.saturating_add(i64::try_from(noise).unwrap_or(i64::MAX)))
        })?;
        audits.push(check(&count, sensitivity, 100, 101, |output: &i64| *output as f64, &auditor)?);
    }
    #[expect(clippy::print_stdout, reason = "an example prints")]
    {
        print!("{}", report::plain(&audits));
    }
    Ok(())
}
