//! Examples that are not finite, and null records.

use super::*;

const EXAMPLES: usize = 4;

/// Norms and both sums with the coefficients that the norms give: 0 where a norm is not finite.
fn clipped<F: Float>(network: &Network<F, Features>, w: &[F], batch: Block<'_, F>) -> (Vec<F>, Vec<F>, Vec<f64>) {
    let blocks = network.blocks().len();
    let mut pass = network.pass(1);
    let mut norms = vec![F::zero(); batch.len() * blocks];
    network.forward(w, batch, &mut pass);
    network.backward(w, batch, &mut pass);
    network.squared_norms(batch, &mut pass, &mut norms);
    let coefficients: Vec<F> =
        norms.iter().map(|norm| if norm.is_finite() { F::narrow(0.5) } else { F::zero() }).collect();
    let (mut wide, mut sum) = (vec![0.0; w.len()], vec![F::zero(); w.len()]);
    network.add_weighted_in_double(batch, &mut pass, &coefficients, &mut wide);
    network.add_weighted(batch, &mut pass, &coefficients, &mut sum);
    (norms, sum, wide)
}

fn others_are_unchanged<F: Float>(bad: F) {
    for architecture in tiny() {
        let network = of_rows::<F>(architecture.clone());
        let (w, blocks) = (parameters(&network), network.blocks().len());
        let dim = architecture.input.values().unwrap();
        let values: Vec<F> = (0..EXAMPLES * dim).map(number).collect();
        let mut poison = values.clone();
        poison[dim + dim / 2] = bad;
        let targets = [0.0, 1.0, 1.0, 0.0].map(F::narrow);
        let (norms, sum, wide) = clipped(&network, &w, block(&poison, &targets, None));
        assert!(norms[blocks..2 * blocks].iter().all(|norm| !norm.is_finite()), "{architecture:?}");
        assert!(norms.iter().filter(|norm| norm.is_finite()).count() == 3 * blocks);
        // A null record in its place, whose coefficient is not 0: the same bits.
        let (of_null, expected, expected_wide) =
            clipped(&network, &w, block(&values, &targets, Some(&[true, false, true, true])));
        assert!(of_null[blocks..2 * blocks].iter().all(|&norm| norm == F::zero()));
        assert!(sum == expected && wide == expected_wide, "{architecture:?}");
        // And the sum of the other three alone, up to rounding.
        let rest: Vec<F> = [&values[..dim], &values[2 * dim..]].concat();
        let (_, alone, _) = clipped(&network, &w, block(&rest, &[0.0, 1.0, 0.0].map(F::narrow), None));
        assert!(sum.iter().zip(&alone).all(|(&a, &b)| (a - b).wide().abs() < 1e-5));
    }
}

#[test]
fn a_value_that_is_not_finite_drops_its_example_alone() {
    others_are_unchanged(f64::NAN);
    others_are_unchanged(f32::NAN);
    others_are_unchanged(f32::INFINITY);
}

#[test]
fn an_overflow_in_one_layer_marks_all_blocks() {
    let network = of_rows::<f32>(architecture([1, 1, 2], &[linear(2), Layer::Relu, linear(2)]));
    let w = [3e38_f32, 3e38, -1.0, -1.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0];
    let found = evaluate(&network, &w, block(&[1.0, 1.0, 2.0, 3.0], &[0.0, 1.0], None), Some(&[0.0; 4]));
    assert!(found.squared_norms.iter().all(|norm| !norm.is_finite()), "{:?}", found.squared_norms);
    assert!(found.gradient.iter().all(|&g| g == 0.0));
}

#[test]
fn an_excluded_example_stays_excluded() {
    let network = of_rows::<f64>(tiny().swap_remove(1));
    let w = parameters(&network);
    // The tanh of an infinite number is finite, and so is the gradient of the first layer.
    for bad in [f64::NAN, f64::INFINITY] {
        let values = [0.1, bad, 0.3, 0.4, 0.5];
        let batch = block(&values, &[1.0], None);
        let mut pass = network.pass(1);
        network.forward(&w, batch, &mut pass);
        network.backward(&w, batch, &mut pass);
        let (mut sum, mut norms) = (vec![0.0; w.len()], [0.0; 3]);
        network.add_weighted(batch, &mut pass, &[0.0; 3], &mut sum);
        assert!(sum.iter().all(|&s| s == 0.0));
        network.squared_norms(batch, &mut pass, &mut norms);
        assert!(norms.iter().all(|norm| !norm.is_finite()), "{bad}");
    }
}

#[test]
fn null_records_may_hold_anything() {
    for architecture in tiny() {
        let network = of_rows::<f64>(architecture.clone());
        let values = vec![f64::NAN; architecture.input.values().unwrap()];
        let w = parameters(&network);
        for batch in [block(&values, &[0.0], Some(&[false])), block(&values, &[f64::NAN], None)] {
            let found = evaluate(&network, &w, batch, None);
            assert_eq!(found.losses, [0.0]);
            assert!(found.squared_norms.iter().chain(&found.gradient).all(|&x| x == 0.0));
        }
    }
}
