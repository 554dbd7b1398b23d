//! The engine against other ways to the same number.

use super::*;

fn curve(leaves: Leaves) -> Contour {
    Contour::new(&leaves).unwrap()
}

#[test]
fn dp_sgd() {
    let contour = curve(vec![(Leaf::PoissonGaussian { rate: 0.01, mu: 1.0 }, 10_000)]);
    let target = 1e-5f64.ln();
    let ends = contour.epsilon(target, target).unwrap();
    let truth = 6.187_712_389_97;
    assert!(ends.lower <= truth + 1e-11 && ends.upper >= truth - 1e-11, "{ends:?}");
    assert!((ends.upper - ends.lower) / ends.upper < 1e-9, "{ends:?}");
}
