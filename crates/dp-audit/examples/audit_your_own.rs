//! Audits a user-defined release: bounded counts with two-sided geometric noise, and a variant with a bug.
//!
//! The bug is a common one: the sensitivity of adding or removing a record is used although a record may be replaced.

use dp_accountant::DpEvent;
use dp_audit::{Auditor, Claim, Error, Side, Statistic, Subject, Unwatched, audit_all, report, subject};
use dp_mechanisms::SeededRng;
use rand::RngExt;

/// Each record's contribution to the sum lies in `-LARGEST..=LARGEST`.
const LARGEST: i64 = 5;

/// Returns a sum of small integers plus noise with masses proportional to `exp(-|k| / scale)`.
fn noisy_sum(records: &[i64], scale: f64, rng: &mut SeededRng) -> f64 {
    let sum: i64 = records.iter().map(|record| record.clamp(&-LARGEST, &LARGEST)).sum();
    // The difference of two geometric variables.
    let mut geometric = || (rng.random::<f64>().ln() * -scale).floor();
    sum as f64 + geometric() - geometric()
}

/// The sum of 20 records, one of which is replaced by its opposite.
fn exchanged(name: &'static str, epsilon: f64, sensitivity: i64) -> Result<impl Subject, Error> {
    let claim = Claim::new(DpEvent::PureDp { epsilon })?;
    let scale = sensitivity as f64 / epsilon;
    Ok(subject::from_fn(name, "one record of -5 or of 5", claim, Statistic::Score, move |side, rng, features| {
        let mut records = [0i64; 20];
        records[0] = if side == Side::Base { -LARGEST } else { LARGEST };
        features.push(noisy_sum(&records, scale, rng));
        Ok(())
    }))
}

fn main() -> Result<(), Error> {
    let epsilon = 1.0;
    let subjects = [exchanged("sum", epsilon, 2 * LARGEST)?, exchanged("sum, wrong sensitivity", epsilon, LARGEST)?];
    let suite = audit_all(&subjects, &Auditor::new(200_000)?.with_confidence(0.999)?, &Unwatched)?;
    let mut text = report::plain(&suite.audits);
    for audit in suite.refuted() {
        text += &format!("\n{}", report::statement(audit));
    }
    #[expect(clippy::print_stdout, reason = "an example prints")]
    {
        print!("{text}");
    }
    Ok(())
}
