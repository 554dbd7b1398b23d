use std::f64::consts::TAU;

use proptest::prelude::*;

use super::super::tests::dense;
use super::super::{Encoder, Encoding, FeatureMap, RowBuffer, RowNorm};
use super::*;
use crate::schema::{Scale, Schema};

const SCHEMA: &str = "label = { column = 'y', positive = '1', negative = '0' }\n\
     columns.a = { type = 'numeric', min = 0, max = 1 }\n\
     columns.c = { type = 'categorical', categories = ['0', '1', '2'] }\n\
     columns.w = { type = 'numeric', min = 3, max = 3 }\n\
     columns.i = { type = 'indicator' }\n\
     columns.b = { type = 'numeric', min = 0, max = 1000, scale = 'log', cosines = 3 }\n";

fn encoder(encoding: Encoding) -> Encoder {
    Encoder::new(&Schema::parse("s", SCHEMA).unwrap(), encoding).unwrap()
}

/// Returns the features by their formula, from the draws that `draw` defines: coordinates are a, the categories, w, i and b.
fn by_formula(fourier: FourierFeatures, squared_norm: f64, v: [f64; 7]) -> Vec<f64> {
    let width = fourier.features as usize;
    let (phases, normals) = draw::fourier(fourier.seed, width, 7 * width);
    let deviation = |coordinate: usize| if [0, 6].contains(&coordinate) { 1.0 } else { 0.5 } * fourier.bandwidth;
    let angle = |i: usize| {
        let terms = v.iter().enumerate().map(|(c, v)| deviation(c) * normals[c * width + i] * v);
        TAU * phases[i] + terms.sum::<f64>()
    };
    (0..width).map(|i| (2.0 * squared_norm / width as f64).sqrt() * angle(i).cos()).collect()
}

proptest! {
    #[test]
    fn features_are_those_of_the_formula(
        (a, z) in (0.0..=1.0_f64, 0.0..=1.0_f64), category in 0_usize..3, flag in any::<bool>(), cosines in 0_u32..4,
        (features, bandwidth, seed) in (1_u32..20, 0.01..50.0_f64, 0..PROJECTION_SEEDS), pairs in any::<bool>(),
        clip in any::<bool>(), intercept in 0.1..2.0_f64,
    ) {
        let fourier = FourierFeatures { bandwidth, seed, ..FourierFeatures::new(features) };
        let row_norm = if clip { RowNorm::Clip } else { RowNorm::Unit };
        let map = FeatureMap { scale: Scale::Linear, cosines, pairs };
        let plain = Encoding { row_norm, ..Encoding::UNIT_ROWS }.with_map(map).with_intercept(intercept);
        let (plain, joint) = (encoder(plain), encoder(plain.with_fourier(fourier)));
        prop_assert_eq!(joint.dim(), plain.dim() + features as usize);
        prop_assert_eq!(joint.feature_names().len(), joint.dim());
        // The logarithmic coordinate's inverse.
        let (b, category_text) = (1000.0 * (101_f64.powf(z) - 1.0) / 100.0, category.to_string());
        let (a_text, b_text) = (format!("{a:?}"), format!("{b:?}"));
        let cells = [a_text.as_str(), &category_text, "3", if flag { "1" } else { "0" }, &b_text];
        let (before, found) = (dense(&plain, &cells), dense(&joint, &cells));
        let mut v = [2.0 * a - 1.0, 0.0, 0.0, 0.0, 0.0, f64::from(u8::from(flag)), 2.0 * z - 1.0];
        v[1 + category] = 1.0;
        // Three cosines, an indicator, a category.
        let of_a = if cosines == 0 { 1.0 / 3.0 } else { (1..=cosines).map(|j| 0.5 / f64::from(j)).sum() };
        let of_pairs = if pairs { 0.25 } else { 0.0 };
        let squared_norm = of_a + (0.5 + 0.25 + 0.5 / 3.0) + 1.0 + 0.5 + of_pairs + intercept * intercept;
        let expected = by_formula(fourier, squared_norm, v);
        // Rows differ by the norm alone in their other features.
        let after = plain.dim() - 1;
        let ratio = before.iter().zip(&found).take(after).find(|(before, _)| before.abs() > 0.1).map(|(b, f)| f / b);
        if let Some(ratio) = ratio {
            for (before, found) in before[..after].iter().zip(&found) {
                prop_assert!((before * ratio - found).abs() < 1e-12);
            }
        }
        // The intercept tells by what the row was divided.
        let scale = found[after + features as usize] / intercept;
        for (found, expected) in found[after..].iter().zip(&expected) {
            prop_assert!((found - scale * expected).abs() < 1e-10, "{:?} {:?}", found, expected);
        }
    }

    #[test]
    fn instruction_sets_agree(values in proptest::collection::vec(-1.0..=1.0_f64, 5), features in 1_u32..70) {
        let plan = FourierPlan::new(&FourierFeatures::new(features), 5, |i| i < 3, 4.0).unwrap();
        let coordinates: Vec<_> = (0..).zip(values).collect();
        let mut fast = Vec::new();
        plan.apply(&coordinates, &mut fast);
        let mut plain = plan.phases.to_vec();
        Row { plan: &plan, coordinates: &coordinates, features: &mut plain }.compute();
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&plain), bits(&fast));
    }
}

/// Inner products approximate the kernel. Each is a mean of 40,000 terms of absolute value at most 2, so that by Hoeffding's
/// inequality one is off by more than 0.06 with probability below 4e-8.
#[test]
fn inner_products_are_those_of_the_kernel() {
    let fourier = FourierFeatures { seed: 3, ..FourierFeatures::new(40_000) };
    let plan = FourierPlan::new(&fourier, 4, |i| i < 2, 1.0).unwrap();
    let features = |row: [f64; 4]| {
        let coordinates: Vec<_> = (0..).zip(row).filter(|(_, value)| *value != 0.0).collect();
        let mut features = Vec::new();
        plan.apply(&coordinates, &mut features);
        features
    };
    let rows: [[f64; 4]; 4] =
        [[0.3, -0.7, 1.0, 0.0], [0.3, -0.2, 1.0, 0.0], [0.3, -0.7, 0.0, 1.0], [-0.9, 1.0, 0.0, 1.0]];
    for one in rows {
        for other in rows {
            let squared: f64 = (0..4).map(|i| (one[i] - other[i]).powi(2) * if i < 2 { 1.0 } else { 0.25 }).sum();
            let product: f64 = features(one).iter().zip(features(other)).map(|(a, b)| a * b).sum();
            assert!((product - (-2.0 * squared).exp()).abs() < 0.06, "{one:?} {other:?}: {product}");
        }
    }
}

#[test]
fn a_model_file_keeps_them_and_older_ones_have_none() {
    let text = serde_json::to_string(&encoder(Encoding::UNIT_ROWS)).unwrap();
    assert!(!text.contains("fourier"), "{text}");
    let joint = encoder(Encoding::UNIT_ROWS.with_fourier(FourierFeatures { seed: 7, ..FourierFeatures::new(5) }));
    let text = serde_json::to_string(&joint).unwrap();
    assert_eq!(serde_json::from_str::<Encoder>(&text).unwrap(), joint);
    for (old, new) in [
        ("\"features\":5", "\"features\":0"),
        ("\"features\":5", "\"features\":4000000000"),
        ("\"bandwidth\":2.0", "\"bandwidth\":0.0"),
        ("\"bandwidth\":2.0", "\"bandwidth\":-1"),
        ("\"bandwidth\":2.0", "\"bandwidth\":101"),
        ("\"seed\":7", "\"seed\":9007199254740992"),
        ("chacha20/1", "chacha20/2"),
    ] {
        assert!(text.contains(old), "{text}");
        assert!(serde_json::from_str::<Encoder>(&text.replace(old, new)).is_err(), "{new}");
    }
}

#[test]
fn a_table_of_categories_has_them_and_records_without_columns_do_not() {
    let encoding = Encoding::UNIT_ROWS.with_fourier(FourierFeatures::new(3));
    let text = "label = { column = 'y', positive = '1', negative = '0' }\n\
         columns.c = { type = 'categorical', categories = ['0', '1', '2'] }\n";
    let encoder = Encoder::new(&Schema::parse("s", text).unwrap(), encoding).unwrap();
    assert_eq!((encoder.dim(), encoder.prefers_sparse(), encoder.free_columns()), (7, false, 0));
    let libsvm = super::super::LibsvmFormat { features: Some(3), ..Default::default() };
    assert_eq!(Encoder::libsvm(libsvm.clone(), encoding).unwrap_err().code(), "encoding.map");
    let images = super::super::ImageFormat::new(vec![2, 2], libsvm.label);
    assert_eq!(Encoder::images(images, encoding).unwrap_err().code(), "encoding.map");
    assert_eq!(encoder.in_sql(crate::sql::Dialect::Sqlite).unwrap_err().code(), "encoding.sql");
}

/// Bits of stored models: they may never change.
#[test]
fn the_draws_of_a_version_are_fixed() {
    let fourier = FourierFeatures { seed: 42, ..FourierFeatures::new(3) };
    let plan = FourierPlan::new(&fourier, 2, |i| i == 0, 1.0).unwrap();
    let mut features = Vec::new();
    plan.apply(&[(0, 0.25), (1, 1.0)], &mut features);
    let bits: Vec<u64> = features.iter().map(|feature| feature.to_bits()).collect();
    assert_eq!(bits, [4573217321639535910, 4603741208123207573, 13828445691715858579]);
}

#[test]
fn null_records_stay_null_and_a_projection_follows() {
    let encoding = Encoding::UNIT_ROWS.with_fourier(FourierFeatures::new(6));
    let schema = SCHEMA.replace("max = 1 }", "max = 1, on_missing = 'neutral' }");
    let encoder = Encoder::new(&Schema::parse("s", &schema).unwrap(), encoding).unwrap();
    let mut row = RowBuffer::new(&encoder);
    encoder.encode_row(|column| ["", "0", "3", "1", "5"][column].as_bytes(), None, &mut row).unwrap();
    assert!(row.is_null() && row.values().is_empty());
    let projected = encoder.clone().projected(super::super::Projection::gaussian(4, 1)).unwrap();
    let mut row = RowBuffer::new(&projected);
    projected.encode_row(|column| ["1", "0", "3", "1", "5"][column].as_bytes(), None, &mut row).unwrap();
    let norm: f64 = row.values().iter().map(|value| value * value).sum();
    assert!(row.values().len() == 5 && (norm - 1.0).abs() < 1e-12, "{:?}", row.values());
}

/// Their size follows from that of the intercept, so it must be finite.
#[test]
fn an_intercept_whose_square_overflows_is_refused() {
    let encoding = |intercept| Encoding::UNIT_ROWS.with_intercept(intercept).with_fourier(FourierFeatures::new(2));
    let schema = Schema::parse("s", SCHEMA).unwrap();
    assert_eq!(Encoder::new(&schema, encoding(1e154)).unwrap_err().code(), "encoding.map");
    let large = Encoder::new(&schema, encoding(1e150)).unwrap();
    assert!(dense(&large, &["1", "0", "3", "1", "5"]).iter().all(|value| value.is_finite()));
}
