//! The decay of a law's moment function along the line: certified bounds for truncating the integral.
//!
//! Tilt the loss of one release by `e^(c L) / M(c)`; then `|M(c + it)| / M(c)` is the modulus of that law's characteristic
//! function. If its density is at least `d` on an interval of width `w`, a uniform part of mass `d w` splits off, whose
//! characteristic function has modulus `|sin(y)/y|`, `y = t w / 2`; the rest contributes at most its mass. Several intervals,
//! nested or not, whose heights add up to no more than the density, give
//!
//! ```text
//! |M(c + it)| / M(c) <= 1 - sum_i mass_i shortfall(t w_i / 2),
//! ```
//!
//! where `shortfall` is increasing and at most `1 - |sin y / y|`, so that the bound holds for every larger `t` too.

/// The largest modulus of `sin(y)/y` beyond its first zero, rounded up.
const SIDE_LOBE: f64 = 0.217_24;

/// A uniform part of a law: its width and its mass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Layer {
    pub(super) width: f64,
    pub(super) mass: f64,
}

/// Returns an increasing lower bound on `1 - |sin y / y|` for `y >= 0`.
///
/// Up to 3.1 it uses the Taylor polynomial of degree 4 of `sin y / y`, which is above it at every `y` and decreases up to the
/// square root of 10.
pub(super) fn shortfall(y: f64) -> f64 {
    let square = y * y;
    if y < 3.1 {
        (square / 6.0 * (1.0 - square / 20.0)).min(1.0 - SIDE_LOBE)
    } else {
        (1.0 - 1.0 / y).max(1.0 - SIDE_LOBE)
    }
}

/// Cuts a histogram (width and height of neighbouring cells) into nested layers as wide as possible.
///
/// The stack holds the start and height of each open layer; a lower cell closes the layers above it.
pub(super) fn layers(cells: impl Iterator<Item = (f64, f64)>) -> Vec<Layer> {
    let mut found = Vec::new();
    let mut open: Vec<(f64, f64)> = Vec::new();
    let mut position = 0.0;
    for (width, height) in cells.chain(core::iter::once((0.0, 0.0))) {
        let mut start = position;
        while let Some(&(begin, top)) = open.last() {
            if top <= height {
                break;
            }
            open.pop();
            let below = open.last().map_or(0.0, |&(_, height)| height).max(height);
            found.push(Layer { width: position - begin, mass: (position - begin) * (top - below) });
            start = begin;
        }
        if height > open.last().map_or(0.0, |&(_, height)| height) {
            open.push((start, height));
        }
        position += width;
    }
    found
}

/// Returns the logarithm of the bound at `t` and beyond.
pub(super) fn log_decay(layers: &[Layer], t: f64) -> f64 {
    let gain: f64 = layers.iter().map(|layer| layer.mass * shortfall(0.5 * t * layer.width)).sum();
    // The slack covers the rounding of the masses.
    (-gain * (1.0 - 1e-9)).ln_1p().min(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortfall_rises_and_is_below_that_of_the_sinc() {
        let mut before = 0.0;
        for i in 1..40_000 {
            let y = f64::from(i) * 1e-3;
            let bound = shortfall(y);
            assert!(bound <= 1.0 - (y.sin() / y).abs() + 1e-15 && bound >= before, "{y}");
            before = bound;
        }
    }

    #[test]
    fn layers_add_up_to_the_histogram() {
        let cells = [(1.0, 0.1), (1.0, 0.4), (0.5, 0.2), (2.0, 0.0), (1.0, 0.3), (1.0, 0.05)];
        let layers = layers(cells.into_iter());
        let mass: f64 = layers.iter().map(|layer| layer.mass).sum();
        let expected: f64 = cells.iter().map(|(width, height)| width * height).sum();
        assert!((mass - expected).abs() < 1e-15, "{layers:?}");
        assert!(layers.contains(&Layer { width: 2.5, mass: 0.25 }), "{layers:?}");
    }

    #[test]
    fn a_uniform_law_falls_as_its_characteristic_function() {
        let cells = (0..10).map(|_| (0.1, 1.0));
        let layers = layers(cells);
        assert_eq!(layers.len(), 1);
        for t in [0.1, 1.0, 10.0, 1000.0] {
            let exact: f64 = (0.5f64 * t).sin() / (0.5 * t);
            assert!(log_decay(&layers, t).exp() >= exact.abs());
        }
        assert!(log_decay(&layers, 1e6) < -13.0);
    }
}
