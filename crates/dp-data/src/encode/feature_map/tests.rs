use std::f64::consts::PI;

use proptest::prelude::*;

use super::super::tests::dense;
use super::super::{Encoder, Encoding, RowNorm};
use super::*;
use crate::examples::{Examples, Storage};
use crate::schema::Schema;
use crate::workers::Workers;

const HEAD: &str = "label = { column = 'y', positive = '1', negative = '0' }\n";

fn encoder(columns: &str, encoding: Encoding) -> Encoder {
    Encoder::new(&Schema::parse("s", &format!("{HEAD}{columns}")).unwrap(), encoding).unwrap()
}

type Bits = (Vec<usize>, Vec<u32>, Vec<u64>, Vec<u64>, Option<Vec<bool>>);

fn bits(examples: &Examples<f64>) -> Bits {
    let (offsets, indices, values) = match examples.storage() {
        Storage::Dense(values) => (Vec::new(), Vec::new(), values),
        Storage::Sparse { offsets, indices, values } => (offsets.clone(), indices.clone(), values),
    };
    let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect();
    (offsets, indices, bits(values), bits(examples.targets()), examples.block().valid.map(<[bool]>::to_vec))
}

/// Returns the features by their formula: sparse categories around curved and plain columns.
fn by_formula(z: [f64; 3], category: usize, map: FeatureMap, unit: bool, intercept: f64) -> Vec<f64> {
    let mut features = Vec::new();
    let linear = |z: f64| if unit { z } else { 2.0 * z - 1.0 };
    let cosines = |z: f64, k: u32| (1..=k).map(move |j| (PI * f64::from(j) * z).cos() / f64::from(j).sqrt());
    let free = |z: f64| if map.cosines == 0 { vec![linear(z)] } else { cosines(z, map.cosines).collect() };
    features.extend(free(z[0]));
    features.extend((0..3).map(|c| f64::from(u8::from(c == category))));
    features.extend(free(z[1]));
    features.push(1.0); // the indicator
    features.push(0.0); // the range without width
    features.extend(cosines(z[2], 3));
    if map.pairs {
        let first = z.map(|z| (PI * z).cos());
        features.extend([first[1] * first[0], first[2] * first[0], first[2] * first[1]]);
    }
    features.push(intercept);
    features
}

proptest! {
    #[test]
    fn features_are_those_of_the_formula(
        shares in proptest::array::uniform3(prop_oneof![Just(0.0), Just(0.5), Just(1.0), 0.0..=1.0_f64]),
        category in 0_usize..3, cosines in 0_u32..9, pairs in any::<bool>(), unit in any::<bool>(), clip in any::<bool>(),
    ) {
        let columns = "columns.a = { type = 'numeric', min = 0, max = 1 }\n\
             columns.c = { type = 'categorical', categories = ['0', '1', '2'] }\n\
             columns.b = { type = 'numeric', min = -8, max = 8, scale = 'linear' }\n\
             columns.i = { type = 'indicator' }\n\
             columns.w = { type = 'numeric', min = 3, max = 3 }\n\
             columns.d = { type = 'numeric', min = 0, max = 1023, log1p = true, cosines = 3 }\n";
        let map = FeatureMap { scale: Scale::Linear, cosines, pairs };
        let row_norm = if clip { RowNorm::Clip } else { RowNorm::Unit };
        let encoding = if unit { Encoding::unit_scale(row_norm) } else { Encoding { row_norm, ..Encoding::UNIT_ROWS } };
        let encoder = encoder(columns, encoding.with_map(map).with_intercept(0.25));
        let (b, d) = (16.0 * shares[1] - 8.0, (shares[2] * 1024f64.ln()).exp() - 1.0);
        let numbers = [format!("{:?}", shares[0]), category.to_string(), format!("{b:?}"), "1".into(), "3".into(), format!("{d:?}")];
        let found = dense(&encoder, &numbers);
        let expected = by_formula(shares, category, map, unit, 0.25);
        prop_assert_eq!((found.len(), encoder.feature_names().len()), (expected.len(), expected.len()));
        let norm = expected.iter().map(|v| v * v).sum::<f64>().sqrt();
        let divisor = if clip { norm.max(1.0) } else { norm };
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!((found - expected / divisor).abs() < 1e-12, "{:?} {:?}", found, expected);
        }
    }

    #[test]
    fn one_pass_and_two_give_the_same_bits(
        cells in proptest::collection::vec((-2.0..12.0_f64, 0_usize..40), 1..20),
        cosines in 0_u32..5, pairs in any::<bool>(), log in any::<bool>(), wide in any::<bool>(), fourier in 0_u32..40,
    ) {
        // With forty categories rows are sparse, with two they are dense.
        let categories: Vec<_> = (0..if wide { 40 } else { 2 }).map(|i| format!("'{i}'")).collect();
        let text = format!(
            "{HEAD}columns.a = {{ type = 'numeric', min = 0, max = 10 }}\n\
             columns.b = {{ type = 'numeric', min = -10, max = 10 }}\n\
             columns.c = {{ type = 'categorical', categories = [{}], on_unknown = 'neutral' }}\n",
            categories.join(",")
        );
        let scale = if log { Scale::Log } else { Scale::Linear };
        let mut plain = Encoding::UNIT_ROWS.with_map(FeatureMap { scale, ..FeatureMap::LINEAR });
        plain.fourier = (fourier > 0).then(|| FourierFeatures::new(fourier));
        let before = Encoder::new(&Schema::parse("s", &text).unwrap(), plain).unwrap();
        let after = before.with_map(FeatureMap { scale, cosines, pairs }).unwrap();
        let mut csv = "a,b,c,y\n".to_owned();
        for (number, category) in &cells {
            csv += &format!("{number},{},{category},1\n", -number);
        }
        let input = || crate::read::Input::from_bytes("t.csv", csv.clone().into_bytes());
        let options = crate::read::CsvOptions::default();
        let (coordinates, _) = crate::read::load_coordinates::<f64>(input(), &before, &options).unwrap();
        prop_assert_eq!(coordinates.len(), cells.len());
        let two = coordinates.encode(&after, Workers::ONE).unwrap();
        let one = crate::read::load_csv::<f64>(input(), &after, &options).unwrap().examples;
        prop_assert_eq!(bits(&one), bits(&two));
    }
}

/// Parts are encoded by any thread and joined in order: dense and sparse rows, with a category that makes null records.
#[test]
fn the_number_of_threads_changes_no_bit() {
    for wide in [false, true] {
        let categories: Vec<_> = (0..if wide { 40 } else { 2 }).map(|i| format!("'{i}'")).collect();
        let text = format!(
            "{HEAD}columns.a = {{ type = 'numeric', min = 0, max = 10 }}\n\
             columns.c = {{ type = 'categorical', categories = [{}], on_unknown = 'neutral' }}\n",
            categories.join(",")
        );
        let plain = Encoder::new(&Schema::parse("s", &text).unwrap(), Encoding::UNIT_ROWS).unwrap();
        let after = plain.with_map(FeatureMap::curves(3)).unwrap();
        let rows = (0..20_000).map(|i| format!("{},{},1\n", f64::from(i % 997) / 99.7, i % 3));
        let csv = format!("a,c,y\n{}", rows.collect::<String>());
        let input = crate::read::Input::from_bytes("t.csv", csv.into_bytes());
        let (coordinates, _) =
            crate::read::load_coordinates::<f64>(input, &plain, &crate::read::CsvOptions::default()).unwrap();
        let with =
            |threads: usize| coordinates.clone().encode(&after, Workers::new(threads.try_into().unwrap())).unwrap();
        let one = with(1);
        let nulls = one.block().valid.map_or(0, |valid| valid.iter().filter(|valid| !**valid).count());
        assert_eq!((one.len(), one.is_sparse(), nulls), (20_000, wide, if wide { 0 } else { 6666 }));
        assert!([2, 3].iter().all(|&threads| bits(&with(threads)) == bits(&one)));
    }
}

#[test]
fn names_say_which_function_a_feature_is() {
    let columns = "columns.a = { type = 'numeric', min = 0, max = 1 }\n\
         columns.c = { type = 'categorical', categories = ['x', 'y'] }\n\
         columns.b = { type = 'numeric', min = 0, max = 1, cosines = 0 }\n";
    let map = FeatureMap { scale: Scale::Log, cosines: 2, pairs: true };
    let encoder = encoder(columns, Encoding::UNIT_ROWS.with_map(map));
    assert_eq!(encoder.feature_names(), ["a~1", "a~2", "c=x", "c=y", "b", "a*b", "<intercept>"]);
    assert_eq!((encoder.dim(), encoder.free_columns()), (7, 1));
}

#[test]
fn a_model_file_keeps_the_map_and_older_ones_have_none() {
    let columns = "columns.a = { type = 'numeric', min = 0, max = 1, cosines = 2, scale = 'log' }";
    let plain = encoder("columns.a = { type = 'numeric', min = 0, max = 1 }", Encoding::UNIT_ROWS);
    let text = serde_json::to_string(&plain).unwrap();
    assert!(!text.contains("map") && !text.contains("cosines") && !text.contains("scale"), "{text}");
    let map = FeatureMap { scale: Scale::Log, cosines: 3, pairs: true };
    for encoding in [Encoding::UNIT_ROWS, Encoding::UNIT_ROWS.with_map(map)] {
        let curved = encoder(columns, encoding);
        let text = serde_json::to_string(&curved).unwrap();
        assert_eq!(serde_json::from_str::<Encoder>(&text).unwrap(), curved);
        let broken = text.replace("\"cosines\":2", "\"cosines\":65");
        assert!(serde_json::from_str::<Encoder>(&broken).is_err(), "{broken}");
    }
}

#[test]
fn too_many_functions_are_refused() {
    let text: String =
        (0..6000).map(|i| format!("columns.c{i} = {{ type = 'numeric', min = 0, max = 1 }}\n")).collect();
    let schema = Schema::parse("s", &format!("{HEAD}{text}")).unwrap();
    for map in [FeatureMap { pairs: true, ..FeatureMap::LINEAR }, FeatureMap { cosines: 65, ..FeatureMap::LINEAR }] {
        let refused = Encoder::new(&schema, Encoding::UNIT_ROWS.with_map(map)).unwrap_err();
        assert_eq!(refused.code(), "encoding.map");
    }
}

/// Features of single columns add up to the row, up to its norm.
#[test]
fn single_columns_add_up_to_the_row() {
    let columns = "columns.a = { type = 'numeric', min = 0, max = 100 }\n\
         columns.c = { type = 'categorical', categories = ['x', 'y'], on_missing = 'category' }\n\
         columns.skip = { type = 'drop' }\n\
         columns.b = { type = 'numeric', min = -1, max = 1, cosines = 0 }\n\
         columns.i = { type = 'indicator' }\n\
         columns.w = { type = 'numeric', min = 2, max = 2 }\n\
         columns.d = { type = 'numeric', min = 0, max = 1, cosines = 3 }\n";
    for cosines in [0, 2] {
        let encoder = encoder(columns, Encoding::UNIT_ROWS.with_map(FeatureMap::curves(cosines)));
        let cells = ["7", "", "", "0.5", "1", "2", "0.25"].map(str::to_owned);
        let row = dense(&encoder, &cells);
        let mut sum = vec![0.0; encoder.dim()];
        for (column, cell) in cells.iter().enumerate() {
            let features = encoder.column_features(column, crate::encode::Cell::Text(cell.as_bytes()));
            assert_eq!(features.is_none(), column == 2);
            features.into_iter().flatten().for_each(|(index, value)| sum[index] += value);
        }
        sum[encoder.dim() - 1] = 1.0;
        let norm = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
        for (found, expected) in row.iter().zip(&sum) {
            assert!((found * norm - expected).abs() < 1e-12, "{row:?} {sum:?}");
        }
        let grid = encoder.column_grid(0, 5).unwrap();
        assert!(grid[0] == 0.0 && grid[4] == 100.0 && grid.is_sorted(), "{grid:?}");
        assert!(encoder.column_grid(1, 5).is_none() && encoder.column_grid(5, 5).is_none());
    }
}

#[test]
fn records_without_columns_have_no_map() {
    let encoding = Encoding::UNIT_ROWS.with_map(FeatureMap::curves(2));
    let libsvm = super::super::LibsvmFormat { features: Some(3), ..Default::default() };
    assert_eq!(Encoder::libsvm(libsvm.clone(), encoding).unwrap_err().code(), "encoding.map");
    let images = super::super::ImageFormat::new(vec![2, 2], libsvm.label);
    assert_eq!(Encoder::images(images, encoding).unwrap_err().code(), "encoding.map");
}

#[test]
fn the_sine_is_within_three_units_in_the_last_place() {
    let mut worst = 0.0_f64;
    for k in -200_000..=200_000 {
        let v = f64::from(k) / 200_000.0;
        let (found, expected) = (sin_half_pi(v), (core::f64::consts::FRAC_PI_2 * v).sin());
        worst = worst.max((found - expected).abs() / (expected.abs().next_up() - expected.abs()));
        assert!((-1.0..=1.0).contains(&found) && found.signum() == v.signum(), "{v}: {found}");
    }
    assert!(worst <= 3.0, "{worst}");
    assert_eq!((sin_half_pi(0.0), sin_half_pi(1.0), sin_half_pi(-1.0)), (0.0, 1.0, -1.0));
}
