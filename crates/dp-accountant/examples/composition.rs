//! Accounting for releases of another system: a log of releases, its tightest guarantee, and the bound of each theorem.
//!
//! `cargo run -p dp-accountant --example composition`

use std::error::Error;
use std::io::Write;

use dp_accountant::{Accountant, Delta, DpEvent, EventLog, RdpAccountant, ReplaceOne, ZcdpAccountant, bound};

fn main() -> Result<(), Box<dyn Error>> {
    // Replacing one person's record changes each histogram by sqrt(2) in the L2 norm, each count by 1.
    let histogram = DpEvent::Gaussian { std_dev: 20.0, sensitivity: 2f64.sqrt() };
    let count = DpEvent::Laplace { scale: 50.0, sensitivity: 1.0 };

    let mut log = EventLog::<ReplaceOne>::new();
    log.record(histogram, 52); // weekly, for a year
    log.record(count, 12); // monthly

    let delta = Delta::new(1e-6)?;
    let mut out = std::io::stdout().lock();
    let best = bound::epsilon(&log.to_event(), delta)?;
    writeln!(out, "everything released: epsilon = {:.4} at delta = {delta}", best.value)?;
    writeln!(out, "  by {}", best.theorem)?;

    let mut renyi = RdpAccountant::<ReplaceOne>::new();
    renyi.compose_log(&log)?;
    let mut zcdp = ZcdpAccountant::<ReplaceOne>::new();
    zcdp.compose_log(&log)?;
    writeln!(out, "Renyi accountant: epsilon = {:.4}", renyi.epsilon(delta))?;
    writeln!(out, "zCDP accountant: epsilon = {:.4} (rho = {:.5})", zcdp.epsilon(delta), zcdp.rho())?;

    writeln!(out, "each entry by itself:")?;
    for (event, times) in log.entries() {
        let event = DpEvent::SelfComposed { event: Box::new(event.clone()), count: *times };
        let bound = bound::epsilon(&event, delta)?;
        writeln!(out, "  {times} releases: epsilon = {:.4} by {}", bound.value, bound.theorem)?;
    }

    // The total as a guarantee that can be printed and stored.
    writeln!(out, "{}", renyi.guarantee(delta)?)?;
    assert!(best.value <= renyi.epsilon(delta) && renyi.epsilon(delta) <= zcdp.epsilon(delta) * (1.0 + 1e-9));
    Ok(())
}
