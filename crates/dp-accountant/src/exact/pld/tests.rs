use super::*;
use crate::leaves::Leaf;

/// 10,000 Laplace releases, where a composition that ignores the transform's rounding falls below the truth.
#[test]
fn many_laplace_releases() {
    let composed = Composed::new(&vec![(Leaf::Laplace { x: 0.02 }, 10_000)]).unwrap();
    let (lower, upper) = composed.epsilon(1e-8f64.ln());
    assert!(lower <= 12.694_602_204_183_061 && 12.694_602_204_183_061 <= upper && upper - lower < 1e-4);
}
