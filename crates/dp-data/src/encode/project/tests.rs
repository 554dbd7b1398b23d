use proptest::prelude::*;

use super::*;
use crate::encode::{Encoder, Encoding, InputFormat, LibsvmFormat, RowNorm};
use crate::schema::Schema;

/// The first entries for seed 42 from 784 to 50 features, the last one, and all of them rotated and combined by exclusive or;
/// from an implementation of ChaCha20 and of the polar method in another language.
#[test]
fn the_bits_of_a_map_are_the_same_everywhere() {
    let entries = draw::gaussian(42, 50, 784 * 50);
    let first: Vec<u64> = entries.iter().take(6).map(|entry| entry.to_bits()).collect();
    let expected = [
        0x3f95_fbdf_9619_ba52,
        0xbfc5_c8fb_6c72_9ef1,
        0x3fcb_cd24_684e_29a5,
        0x3f83_cfcd_994d_d349,
        0x3fcd_df9e_5b07_3951,
        0xbfa4_52f4_68a2_7f10,
    ];
    assert_eq!(first, expected);
    assert_eq!(entries.last().map(|entry| entry.to_bits()), Some(0xbfbe_e867_1353_44a5));
    let all = (0..).zip(&entries).fold(0, |all, (i, entry)| all ^ entry.to_bits().rotate_left(i % 64));
    assert_eq!(all, 0x9ef8_d991_7b7a_df13);
    assert_eq!(draw::coordinates(7, 10, 784), [9, 231, 235, 371, 391, 417, 427, 522, 672, 682]);
}

#[test]
fn entries_are_normal() {
    // For 400,000 draws, the moments and the fractions within 1, 2 and 3 standard deviations. Six and a tenth standard errors are
    // exceeded once in 1e9.
    let draws = draw::gaussian(5, 1, 400_000);
    let n = draws.len() as f64;
    let mean_of = |f: fn(f64) -> f64| draws.iter().map(|&x| f(x)).sum::<f64>() / n;
    for (found, expected, variance) in [
        (mean_of(|x| x), 0.0, 1.0),
        (mean_of(|x| x * x), 1.0, 2.0),
        (mean_of(|x| x.powi(3)), 0.0, 15.0),
        (mean_of(|x| x.powi(4)), 3.0, 96.0),
    ] {
        assert!((found - expected).abs() < 6.1 * (variance / n).sqrt(), "{found} for {expected}");
    }
    for (width, share) in [(1.0, 0.682_689_492), (2.0, 0.954_499_736), (3.0, 0.997_300_204)] {
        let found = draws.iter().filter(|x| x.abs() < width).count() as f64 / n;
        assert!((found - share).abs() < 6.1 * (share * (1.0 - share) / n).sqrt(), "{width}: {found}");
    }
    let neighbours = draws.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / (n - 1.0);
    assert!(neighbours.abs() < 6.1 / n.sqrt());
}

/// A row of norm 1 is longer than 1 after a projection to p = 50 with the probability that a chi-square of 50 degrees of freedom
/// exceeds 50, 0.4734: the bound has to come after the projection. Papers that omit it rely on a norm that nearly every other row
/// exceeds.
#[test]
fn without_the_bound_half_of_all_unit_rows_would_be_too_long() {
    let (seeds, p) = (20_000, 50);
    let (mut longer, mut squares) = (0, 0.0);
    for seed in 0..seeds {
        let mut row = RowBuffer::default();
        row.push(0, 0.6);
        row.push(2, -0.8);
        ProjectionPlan::new(Projection::gaussian(p, seed), 60).unwrap().apply(&mut row);
        let square: f64 = row.values().iter().map(|value| value * value).sum();
        longer += u64::from(square > 1.0);
        squares += square;
    }
    // Six and a tenth standard errors: false alarm 1e-9.
    let share = longer as f64 / seeds as f64;
    assert!((share - 0.4734).abs() < 6.1 * (0.25 / seeds as f64).sqrt(), "{share}");
    let mean = squares / seeds as f64;
    assert!((mean - 1.0).abs() < 6.1 * (2.0 / (f64::from(p) * seeds as f64)).sqrt(), "{mean}");
}

fn libsvm(features: u32, encoding: Encoding) -> Encoder {
    Encoder::libsvm(LibsvmFormat { features: Some(features), ..LibsvmFormat::default() }, encoding).unwrap()
}

fn encode(encoder: &Encoder, features: &[(u32, f64)]) -> RowBuffer {
    let mut row = RowBuffer::new(encoder);
    features.iter().for_each(|&(index, value)| row.push(index, value));
    encoder.finish_row(Some(crate::encode::Cell::Text(b"1")), &mut row).unwrap();
    row
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn projected_rows_have_norm_at_most_one(
        values in proptest::collection::vec(
            prop_oneof![
                any::<f64>().prop_filter("finite", |value| value.is_finite()),
                -2.0..2.0_f64, Just(0.0), Just(f64::MAX), Just(-f64::MAX), Just(f64::from_bits(1)),
            ],
            1..30,
        ),
        features in 1_u32..30, seed in 0..PROJECTION_SEEDS, clip: bool, intercept: bool, gaussian: bool,
    ) {
        let inputs = values.len() as u32;
        let features = features.min(inputs);
        let encoding = Encoding::unit_scale(if clip { RowNorm::Clip } else { RowNorm::Unit })
            .with_intercept(if intercept { 1.0 } else { 0.0 });
        let projection =
            if gaussian { Projection::gaussian(features, seed) } else { Projection::coordinates(features, seed) };
        let encoder = libsvm(inputs, encoding).projected(projection).unwrap();
        prop_assert_eq!(encoder.dim(), features as usize + usize::from(intercept));
        let row = encode(&encoder, &(0..).zip(values.iter().copied()).collect::<Vec<_>>());
        let square: f64 = row.values().iter().map(|value| value * value).sum();
        prop_assert!(square <= 1.0 && row.values().iter().all(|value| value.is_finite()), "{}", square);
        prop_assert!(row.indices().iter().all(|&index| (index as usize) < encoder.dim()));
        prop_assert!(row.indices().is_sorted_by(|a, b| a < b));
    }
}

#[test]
fn a_row_is_projected_then_bounded() {
    let encoder = libsvm(4, Encoding::UNIT_ROWS);
    let projected = encoder.clone().projected(Projection::gaussian(3, 9)).unwrap();
    let entries = draw::gaussian(9, 3, 12);
    let row = encode(&projected, &[(1, 2.0), (3, -0.5)]);
    let mut expected: Vec<f64> = (0..3).map(|i| 2.0 * entries[3 + i] - 0.5 * entries[9 + i]).collect();
    expected.push(1.0);
    let norm = expected.iter().map(|value| value * value).sum::<f64>().sqrt();
    for (found, expected) in row.values().iter().zip(&expected) {
        assert!((found - expected / norm).abs() < 1e-14, "{found} {expected}");
    }
    // Predictions compute the inner product of the projected row.
    let weights = [0.3, -0.2, 0.7, 0.1];
    let by_hand: f64 = expected.iter().zip(weights).map(|(value, weight)| value / norm * weight).sum();
    assert!((row.dot(&weights) - by_hand).abs() < 1e-14);
    assert!(!projected.prefers_sparse() && encoder.prefers_sparse());

    let chosen = encoder.projected(Projection::coordinates(2, 9)).unwrap();
    let kept = draw::coordinates(9, 2, 4);
    let names: Vec<String> = kept.iter().map(|index| (index + 1).to_string()).chain(["<intercept>".into()]).collect();
    assert_eq!(chosen.feature_names(), names);
    let row = encode(&chosen, &[(0, 1.0), (1, 2.0), (2, 3.0), (3, 4.0)]);
    let ratio = row.values()[1] / row.values()[0];
    assert!((ratio - f64::from(kept[1] + 1) / f64::from(kept[0] + 1)).abs() < 1e-14);
    assert!(chosen.prefers_sparse() && row.values().len() == 3);
}

#[test]
fn a_model_holds_seed_and_version_and_no_matrix() {
    let schema = Schema::parse(
        "toy.toml",
        "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
         columns.sex = { type = 'categorical', categories = ['f', 'm', 'x'] }\n\
         columns.age = { type = 'numeric', min = 0, max = 1 }",
    )
    .unwrap();
    let plain = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
    assert!(!serde_json::to_string(&plain).unwrap().contains("projection"));
    for projection in [Projection::gaussian(2, PROJECTION_SEEDS - 1), Projection::coordinates(4, 0)] {
        let encoder = plain.clone().projected(projection).unwrap();
        let json = serde_json::to_value(&encoder).unwrap();
        assert_eq!(json["projection"]["generator"], "chacha20/1");
        let back: Encoder = serde_json::from_value(json.clone()).unwrap();
        assert_eq!((&back, back.projection()), (&encoder, Some(projection)));
        assert!(matches!(back.input(), InputFormat::Table(_)));
        // A meaningless member, an unknown generator, and an invalid size are refused.
        for (member, value) in
            [("scale", 1.into()), ("generator", "chacha20/2".into()), ("features", 5.into()), ("features", 0.into())]
        {
            let mut edited = json.clone();
            edited["projection"][member] = value;
            assert!(serde_json::from_value::<Encoder>(edited).is_err(), "{member}");
        }
    }
    // Projecting again replaces the projection; it does not stack.
    let once = plain.clone().projected(Projection::gaussian(2, 1)).unwrap();
    let twice = plain.projected(Projection::coordinates(3, 2)).unwrap().projected(Projection::gaussian(2, 1)).unwrap();
    assert_eq!(once, twice);
}

#[test]
fn impossible_projections_are_refused() {
    let refused = |inputs, projection| {
        let error = libsvm(inputs, Encoding::UNIT_ROWS).projected(projection).unwrap_err();
        assert_eq!(error.code(), "projection.invalid");
        error.to_string()
    };
    assert!(refused(4, Projection::gaussian(0, 1)).contains("between 1 and 4"));
    assert!(refused(4, Projection::coordinates(5, 1)).contains("between 1 and 4"));
    assert!(refused(4, Projection::gaussian(2, PROJECTION_SEEDS)).contains("2^53"));
    assert!(refused(1 << 26, Projection::gaussian(2, 1)).contains("coordinates"));
}
