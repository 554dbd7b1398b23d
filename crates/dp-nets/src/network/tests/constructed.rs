//! Examples for which norms from inner products cancel: they must not be too small here.

use dp_losses::laws::norm_laws;

use super::*;
use crate::layers::convolution::Convolution;
use crate::layers::per_example;
use crate::window::{Patches, Window};

#[test]
fn constant_and_nearly_constant_images() {
    let layers =
        [convolution(8, [3, 3], [1, 1], [0, 0]), Layer::Tanh, convolution(8, [3, 3], [1, 1], [1, 1]), linear(3)];
    let network = of_rows::<f32>(architecture([12, 12, 2], &layers));
    let w = parameters(&network);
    for wobble in [0.0, 1e-7, 1e-4, 1e-2] {
        let values: Vec<f32> = (0..288).map(|j| 0.7 + wobble * number::<f32>(j)).collect();
        for target in [0.0, 1.0, 2.0] {
            assert_eq!(norm_laws(&network, &w, &[block(&values, &[target], None)]), Ok(()));
        }
    }
}

/// Returns the gradient of a convolution and its squared norm.
fn gradient_of<F: Float>(convolution: &Convolution, image: &[F], gradient: &[F]) -> (Vec<F>, f64) {
    let mut buffer = vec![F::zero(); convolution.buffer(1)];
    let parameters = vec![F::zero(); convolution.parameters()];
    let mut own = parameters.clone();
    convolution.backward(&parameters, image, gradient, 1, &mut buffer, &mut own, None);
    let mut norm = [0.0];
    per_example::squared_norms(&own, own.len(), norm.iter_mut());
    (own, norm[0])
}

/// Checks, in `f32`, that the norm is that of the stored gradient, and that it is the norm in `f64` within `tolerance`,
/// relatively.
fn norm_is_right(image: &[f32], gradient: &[f32], side: usize, channels: usize, tolerance: f64) {
    let input = Shape { height: side + 2, width: side + 2, channels };
    let window = Window { size: [3, 3], stride: [1, 1], padding: [0, 0] };
    let convolution = Convolution { patches: Patches::new(window, input, [side, side]), inputs: image.len(), channels };
    let (stored, single) = gradient_of(&convolution, image, gradient);
    let of_stored: f64 = stored.iter().map(|&g| f64::from(g) * f64::from(g)).sum();
    assert!((single / of_stored - 1.0).abs() < 1e-11);
    let wide = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let (_, double) = gradient_of(&convolution, &wide(image), &wide(gradient));
    let error = single / double - 1.0;
    assert!(error.abs() <= tolerance, "{error}");
}

/// An image whose windows are nearly equal and gradients that add up to about 0. The sum over inner products in `f32` was 15%
/// too small for such an image.
#[test]
fn a_nearly_constant_image_with_gradients_that_add_up_to_zero() {
    let (side, channels) = (16, 128);
    let image: Vec<f32> = (0..18 * 18 * channels).map(|j| 1.0 + 1e-3 * number::<f32>(j)).collect();
    let mut gradient: Vec<f32> = (0..side * side * channels).map(number).collect();
    for channel in 0..channels {
        let own = || gradient.iter().skip(channel).step_by(channels);
        let mean = own().sum::<f32>() / (side * side) as f32;
        gradient.iter_mut().skip(channel).step_by(channels).for_each(|g| *g -= mean);
    }
    norm_is_right(&image, &gradient, side, channels, 1e-4);
}

/// Three gradients g, h, -(g + h), repeated.
#[test]
fn repeated_gradients_that_cancel() {
    let (side, channels) = (8, 64);
    let image: Vec<f32> = (0..10 * 10 * channels).map(|j| 1.0 + 2e-2 * number::<f32>(j)).collect();
    let gradient: Vec<f32> = (0..side * side * channels)
        .map(|j| {
            let (g, h) = (number::<f32>(j % channels), number::<f32>(j % channels + 500));
            [g, h, -(g + h)][j / channels % 3]
        })
        .collect();
    norm_is_right(&image, &gradient, side, channels, 1e-4);
}
