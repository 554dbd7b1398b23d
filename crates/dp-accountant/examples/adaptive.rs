//! Adaptive use of a budget: a filter called before each release, and an odometer without a budget.
//!
//! `cargo run -p dp-accountant --example adaptive`

use std::error::Error;
use std::io::Write;

use dp_accountant::filter::{Filter, GdpFilter, Refused};
use dp_accountant::odometer::RdpOdometer;
use dp_accountant::{Delta, DpEvent, Epsilon, ReplaceOne, semantics};

fn main() -> Result<(), Box<dyn Error>> {
    let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
    let mut out = std::io::stdout().lock();

    // An analyst asks for a mean with much noise, and again with half of it until two answers agree. The number of releases
    // depends on the answers: no accountant may simply add up the losses, but the filter's guarantee holds.
    let answers = [19.0, 3.5, 8.1, 5.2, 6.4, 5.9, 6.1];
    let mut filter = GdpFilter::<ReplaceOne>::new(epsilon, delta)?;
    let mut std_dev = 40.0;
    let mut last = f64::NAN;
    for answer in answers {
        match filter.spend(&DpEvent::Gaussian { std_dev, sensitivity: 1.0 }, 1) {
            Ok(_) => writeln!(out, "std {std_dev:>5}: answer {answer:>4}, {:.1} % left", 100.0 * filter.left())?,
            Err(refused @ Refused::Exceeded { .. }) => {
                writeln!(out, "std {std_dev:>5}: {refused}")?;
                break;
            }
            Err(Refused::Invalid(error)) => return Err(error.into()),
        }
        if f64::abs(answer - last) < 0.5 {
            break;
        }
        (last, std_dev) = (answer, 0.5 * std_dev);
    }
    let promised = filter.guarantee();
    writeln!(out, "whatever happens: {promised}")?;
    let found = semantics::true_positive_rate(0.01, promised.epsilon(), promised.delta())?;
    writeln!(out, "an attacker with 1 % false alarms finds a record in at most {:.1} % of the cases", 100.0 * found)?;

    // Without a budget, the bound so far may be read after every release, and the run may stop because of it.
    let mut odometer = RdpOdometer::<ReplaceOne>::new(delta)?;
    for (day, epsilon) in [0.05, 0.02, 0.1, 0.02, 0.2].into_iter().enumerate() {
        odometer.record(&DpEvent::PureDp { epsilon }, 20)?;
        writeln!(out, "day {}: epsilon = {:.3} at delta = {delta}", day + 1, odometer.epsilon())?;
    }
    assert!(odometer.epsilon() < 7.8); // the sum of the pure guarantees
    Ok(())
}
