use proptest::prelude::*;

use super::*;

fn dense(rows: usize, dim: usize) -> Examples<f64> {
    let values = (0..rows * dim).map(|i| i as f64).collect();
    let targets = (0..rows).map(|i| -(i as f64)).collect();
    let valid = (0..rows).map(|i| i % 3 != 0).collect();
    Examples::dense(values, targets, dim).unwrap().with_valid(valid).unwrap()
}

/// Returns examples whose row `i` has `i % 4` values.
fn sparse(rows: usize) -> Examples<f64> {
    let mut builder = SparseBuilder::new(10).unwrap();
    for i in 0..rows {
        let indices: Vec<u32> = (0..(i % 4) as u32).map(|k| k * 3).collect();
        let values: Vec<f64> = indices.iter().map(|&k| (i * 100) as f64 + f64::from(k)).collect();
        builder.push(&indices, &values, i as f64).unwrap();
    }
    builder.finish()
}

/// Features with their columns, target, validity.
type Row = (Vec<(u32, f64)>, f64, bool);

fn rows_of(examples: &Examples<f64>) -> Vec<Row> {
    let block = examples.block();
    (0..block.len())
        .map(|i| {
            let one = block.slice(i..i + 1);
            let features = match one.rows {
                Rows::Dense { values, .. } => (0..).zip(values.iter().copied()).collect(),
                Rows::Sparse { offsets, indices, values, .. } => {
                    let range = offsets[0]..offsets[1];
                    indices[range.clone()].iter().copied().zip(values[range].iter().copied()).collect()
                }
            };
            (features, one.targets[0], one.valid.is_none_or(|valid| valid[0]))
        })
        .collect()
}

proptest! {
    #[test]
    fn permuting_in_place_equals_gathering(
        order in (1_usize..40).prop_flat_map(|n| Just((0..n as u32).collect::<Vec<_>>()).prop_shuffle()),
        dim in 1_usize..5,
    ) {
        for examples in [dense(order.len(), dim), sparse(order.len())] {
            let before = rows_of(&examples);
            let wanted: Vec<_> = order.iter().map(|&i| before[i as usize].clone()).collect();
            prop_assert_eq!(&rows_of(&examples.permuted(&order).unwrap()), &wanted);
            let mut in_place = examples;
            in_place.permute(&order).unwrap();
            prop_assert_eq!(&rows_of(&in_place), &wanted);
        }
    }

    #[test]
    fn single_precision_never_grows(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(!value.is_nan());
        let rounded = f32_towards_zero(value);
        prop_assert!(f64::from(rounded).abs() <= value.abs());
        // The next number away from zero is beyond the value, or the value is beyond all of them.
        let next = f32::from_bits(rounded.to_bits() + 1);
        prop_assert!(value.is_infinite() || next.is_infinite() || f64::from(next).abs() > value.abs());
    }
}

#[test]
fn orders_that_are_no_permutation_are_refused_and_change_nothing() {
    let mut examples = dense(3, 2);
    let before = rows_of(&examples);
    assert_eq!(examples.permute(&[0, 1]), Err(OrderError::Length { order: 2, rows: 3 }));
    assert_eq!(examples.permute(&[0, 1, 1]), Err(OrderError::Repeated { position: 1 }));
    assert_eq!(examples.permute(&[0, 1, 3]), Err(OrderError::OutOfRange { position: 3, rows: 3 }));
    assert_eq!(rows_of(&examples), before);
    assert!(examples.gather(&[3]).is_err());
    assert_eq!(examples.gather(&[2, 2, 0]).unwrap().len(), 3);
}

#[test]
fn shapes_are_checked() {
    assert!(Examples::dense(vec![1.0; 5], vec![1.0; 2], 2).is_err());
    assert!(Examples::dense(Vec::<f64>::new(), vec![], 0).is_err());
    assert!(Examples::dense(vec![1.0], vec![1.0; 3], usize::MAX).is_err());
    let sparse = |offsets: &[usize], indices: &[u32], values: usize, rows: usize| {
        Examples::sparse(offsets.to_vec(), indices.to_vec(), vec![1.0; values], vec![1.0; rows], 4)
    };
    assert!(sparse(&[0, 2, 3], &[0, 3, 1], 3, 2).is_ok());
    assert!(sparse(&[0, 2, 3], &[0, 4, 1], 3, 2).is_err(), "column outside");
    assert!(sparse(&[0, 2, 3], &[3, 0, 1], 3, 2).is_err(), "columns decrease");
    assert!(sparse(&[0, 2, 3], &[3, 3, 1], 3, 2).is_err(), "column twice");
    assert!(sparse(&[0, 3, 2], &[0, 1, 2], 3, 2).is_err(), "offsets decrease");
    assert!(sparse(&[0, 9, 3], &[0, 1, 2], 3, 2).is_err(), "offset outside");
    assert!(sparse(&[1, 2, 3], &[0, 1, 2], 3, 2).is_err(), "does not start at 0");
    assert!(sparse(&[0, 2], &[0, 1], 2, 2).is_err(), "one offset too few");
    assert!(sparse(&[0, 2, 3], &[0, 1], 3, 2).is_err(), "one column too few");
    assert!(Examples::dense(vec![1.0], vec![1.0], 1).unwrap().with_valid(vec![]).is_err());
}

#[test]
fn builders_agree_with_the_constructors_and_refuse_without_harm() {
    let mut by_rows = DenseBuilder::new(3).unwrap();
    by_rows.push(&[1.0, 0.0, 2.0], 1.0).unwrap();
    assert!(by_rows.push(&[1.0], 1.0).is_err());
    assert!(by_rows.push_nonzeros([(0, 1.0), (3, 1.0)], 1.0).is_err());
    by_rows.push_null().unwrap();
    by_rows.push_nonzeros([(1, 5.0)], -1.0).unwrap();
    let built = by_rows.finish();
    let made = Examples::dense(vec![1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0], vec![1.0, 0.0, -1.0], 3)
        .unwrap()
        .with_valid(vec![true, false, true])
        .unwrap();
    assert_eq!(rows_of(&built), rows_of(&made));

    let mut sparse = SparseBuilder::new(3).unwrap().with_marks();
    sparse.push(&[0, 2], &[1.0, 2.0], 1.0).unwrap();
    for bad in [[2, 0], [1, 1], [0, 3]] {
        assert!(sparse.push(&bad, &[1.0, 1.0], 1.0).is_err());
    }
    assert!(sparse.push(&[0], &[1.0, 1.0], 1.0).is_err());
    sparse.push_null().unwrap();
    let built = sparse.finish();
    let made = Examples::sparse(vec![0, 2, 2], vec![0, 2], vec![1.0, 2.0], vec![1.0, 0.0], 3)
        .unwrap()
        .with_valid(vec![true, false])
        .unwrap();
    assert_eq!(rows_of(&built), rows_of(&made));
    assert!(SparseBuilder::<f64>::new(0).is_err() && DenseBuilder::<f64>::new(0).is_err());
}

#[test]
fn debug_shows_no_value() {
    let examples = Examples::dense(vec![0.123456], vec![0.654321], 1).unwrap();
    let text = format!("{examples:?} {:?} {:?}", examples.block(), examples.block().rows);
    assert!(text.contains("dim: 1") && !text.contains("123456") && !text.contains("654321"), "{text}");
}
