//! Prints the constants of each loss on unit rows for a few radii, with those tabulated in papers.
#![allow(clippy::print_stdout)] // printing is what an example is for

use dp_losses::{Constants, Domain, L2, LossKind};

fn main() -> Result<(), dp_losses::Error> {
    println!(
        "{:>20} {:>7} {:>9} {:>10} {:>12} {:>16}",
        "loss", "radius", "Lipschitz", "smoothness", "G", "G of the papers"
    );
    for name in [
        "logistic",
        "huber-svm:0.1",
        "hinge",
        "squared",
        "huber-regression:0.1",
        "log-cosh:0.1",
        "absolute",
        "softmax:2",
        "softmax:10",
    ] {
        let loss: LossKind = name.parse()?;
        for radius in [0.1, 1.0, 10.0, 100.0] {
            let domain = Domain::unit_rows().with_radius(radius)?;
            let regulariser = L2::new(1.0 / radius)?;
            let tight = loss.constants(regulariser, &domain);
            let papers = Constants::of_the_papers(&loss, regulariser, &domain);
            println!(
                "{name:>20} {radius:>7} {:>9.4} {:>10.4} {:>12.6} {:>16.6}",
                tight.lipschitz, tight.smoothness, tight.gradient_difference, papers.gradient_difference
            );
        }
    }
    Ok(())
}
