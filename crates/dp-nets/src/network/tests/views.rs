//! Several views of each example.

use super::laws::check_rows;
use super::*;

/// Rows, of which view `v` is the row turned by `v` places.
#[derive(Debug, Clone, Copy)]
struct Turned(usize);

impl<F: Float> Input<F> for Turned {
    type Batch<'a> = Block<'a, F>;

    fn examples(&self, batch: Block<'_, F>) -> usize {
        batch.len()
    }

    fn views(&self) -> usize {
        self.0
    }

    fn read(&self, batch: Block<'_, F>, i: usize, view: usize, classes: usize, values: &mut [F]) -> Option<usize> {
        let class = Features.read(batch, i, 0, classes, values);
        values.rotate_left(view);
        class
    }
}

#[test]
fn every_layer_satisfies_the_laws() {
    (2..).zip(tiny()).for_each(|(views, architecture)| check_rows(&architecture, Turned(views)));
}

#[test]
fn losses_and_logits_are_means_over_the_views() {
    let architecture = tiny().swap_remove(3);
    let dim = architecture.input.values().unwrap();
    let of_views = Network::<f64, _>::new(architecture.clone(), Turned(3)).unwrap();
    let of_rows = of_rows::<f64>(architecture);
    let (w, values): (_, Vec<f64>) = (parameters(&of_rows), (0..dim).map(number).collect());
    let turned: Vec<f64> = (0..3)
        .flat_map(|view| {
            let mut row = values.clone();
            row.rotate_left(view);
            row
        })
        .collect();
    let (mut pass, mut passes) = (of_views.pass(1), of_rows.pass(3));
    of_views.forward(&w, block(&values, &[2.0], None), &mut pass);
    of_rows.forward(&w, block(&turned, &[2.0; 3], None), &mut passes);
    for (class, &logit) in pass.logits().iter().enumerate() {
        let mean = (0..3).map(|view| passes.logits()[3 * view + class]).sum::<f64>() / 3.0;
        assert!((logit - mean).abs() < 1e-15, "{logit} {mean}");
    }
    let (mut loss, mut losses) = ([0.0], [0.0; 3]);
    of_views.losses(block(&values, &[2.0], None), &pass, &mut loss);
    of_rows.losses(block(&turned, &[2.0; 3], None), &passes, &mut losses);
    assert!((loss[0] - losses.iter().sum::<f64>() / 3.0).abs() < 1e-15, "{loss:?} {losses:?}");
}

#[test]
fn an_image_is_moved_and_mirrored() {
    let shape = Shape { height: 2, width: 3, channels: 2 };
    // Channel 0 counts from 1, channel 1 from 101.
    let pixels = (0..6).flat_map(|j| [1 + j, 101 + j]).collect();
    let images = Images::new(shape, pixels, vec![1], 2).unwrap();
    let shown = |views: Views, view: usize| {
        let input = Pixels::<f64>::new(Scaling::Unit).with_views(views);
        let mut values = [9.0; 12];
        assert_eq!(input.read(images.choose(&[0]), 0, view, 2, &mut values), Some(1));
        let byte = |value: f64| (value * 255.0).round() as u8;
        let (first, second): (Vec<u8>, Vec<u8>) =
            values.chunks_exact(2).map(|pixel| (byte(pixel[0]), byte(pixel[1]))).unzip();
        assert!(first.iter().zip(&second).all(|(&a, &b)| (a == 0 && b == 0) || b == a + 100), "{first:?} {second:?}");
        first
    };
    let expected = [
        [1, 2, 3, 4, 5, 6],
        [4, 5, 6, 0, 0, 0],
        [0, 0, 0, 1, 2, 3],
        [2, 3, 0, 5, 6, 0],
        [0, 1, 2, 0, 4, 5],
        [3, 2, 1, 6, 5, 4],
        [6, 5, 4, 0, 0, 0],
        [0, 0, 0, 3, 2, 1],
        [2, 1, 0, 5, 4, 0],
        [0, 3, 2, 0, 6, 5],
    ];
    assert_eq!([Views::One, Views::Flip, Views::Shifts, Views::ShiftsAndFlip].map(Views::count), [1, 2, 5, 10]);
    for (view, expected) in expected.into_iter().enumerate() {
        assert_eq!(shown(Views::ShiftsAndFlip, view), expected, "{view}");
        if view < 5 {
            assert_eq!(shown(Views::Shifts, view), expected, "{view}");
        }
    }
    assert_eq!(
        [shown(Views::One, 0), shown(Views::Flip, 0), shown(Views::Flip, 1)],
        [expected[0], expected[0], expected[5]]
    );
}

/// A view that is not finite excludes its example, whatever the other views are.
#[test]
fn one_bad_view_excludes_the_example() {
    struct Second;
    impl Input<f64> for Second {
        type Batch<'a> = Block<'a, f64>;

        fn examples(&self, batch: Block<'_, f64>) -> usize {
            batch.len()
        }

        fn views(&self) -> usize {
            2
        }

        fn read(
            &self,
            batch: Block<'_, f64>,
            i: usize,
            view: usize,
            classes: usize,
            values: &mut [f64],
        ) -> Option<usize> {
            let class = Features.read(batch, i, 0, classes, values);
            if view == 1 && i == 0 {
                values[0] = f64::NAN;
            }
            class
        }
    }
    let network = Network::<f64, _>::new(tiny().swap_remove(1), Second).unwrap();
    let (w, blocks) = (parameters(&network), network.blocks().len());
    let values: Vec<f64> = (0..10).map(number).collect();
    let found = evaluate(
        &network,
        &w,
        block(&values, &[0.0, 1.0], None),
        Some(&[vec![0.0; blocks], vec![1.0; blocks]].concat()),
    );
    assert!(found.squared_norms[..blocks].iter().all(|norm| *norm == f64::INFINITY));
    assert!(found.squared_norms[blocks..].iter().chain(&found.gradient).all(|number| number.is_finite()));
}
