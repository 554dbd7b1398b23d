use proptest::prelude::*;

use super::*;
use crate::examples::Feature;

/// Returns the encoded row of these cells in dense form.
pub(super) fn dense(encoder: &Encoder, cells: &[impl AsRef<str>]) -> Vec<f64> {
    let mut row = RowBuffer::new(encoder);
    encoder.encode_row(|column| cells[column].as_ref().as_bytes(), None, &mut row).unwrap();
    assert!(row.indices().windows(2).all(|pair| pair[0] < pair[1]), "{:?}", row.indices());
    let mut out = vec![f64::NAN; encoder.dim()];
    row.write_dense(&mut out);
    out
}

/// A sum in twice the precision: `high + low`, exact to about `2^-104`.
#[derive(Default)]
struct DoubleDouble {
    high: f64,
    low: f64,
}

impl DoubleDouble {
    fn add_square(&mut self, value: f64) {
        let square = value * value;
        let error = value.mul_add(value, -square);
        let sum = self.high + square;
        let carried = sum - self.high;
        let lost = (self.high - (sum - carried)) + (square - carried);
        self.low += lost + error;
        self.high = sum;
    }

    fn exceeds_one(&self) -> bool {
        (self.high - 1.0) + self.low > 0.0
    }
}

/// Returns whether the exact norm is at most 1, in double and in single precision.
fn norm_is_bounded(values: &[f64]) -> bool {
    let mut double = DoubleDouble::default();
    let mut single = DoubleDouble::default();
    for &value in values {
        double.add_square(value);
        single.add_square(f64::from(f32::narrow(value)));
    }
    !double.exceeds_one() && !single.exceeds_one() && values.iter().all(|value| value.is_finite())
}

fn any_finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |value| value.is_finite()),
        -2.0..2.0_f64,
        Just(0.0),
        Just(1.0),
        Just(f64::MAX),
        Just(f64::from_bits(1)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_row_ends_with_norm_at_most_one(
        values in proptest::collection::vec(any_finite(), 0..200),
        clip in any::<bool>(),
    ) {
        let mut row = values.clone();
        bound_norm(&mut row, if clip { RowNorm::Clip } else { RowNorm::Unit });
        prop_assert!(norm_is_bounded(&row));
        let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let norm = (row.iter().map(|v| v * v).sum::<f64>()).sqrt();
        if largest > 0.0 && (!clip || largest >= 1.0) {
            prop_assert!(norm > 1.0 - 1e-12, "norm {}", norm);
        }
    }

    #[test]
    fn short_rows_are_not_changed_by_clipping(values in proptest::collection::vec(-0.1..0.1_f64, 1..50)) {
        let mut row = values.clone();
        bound_norm(&mut row, RowNorm::Clip);
        prop_assert_eq!(row, values);
    }

    #[test]
    fn encoded_rows_keep_the_bound_and_the_one_hot_pattern(
        low in any_finite(), high in any_finite(), value in any_finite(),
        category in 0_usize..3, log1p in any::<bool>(), clip in any::<bool>(), symmetric in any::<bool>(),
        intercept in prop_oneof![Just(0.0), Just(1.0), 0.0..1e3_f64, Just(f64::MAX)],
    ) {
        let (mut min, mut max) = (low.min(high), low.max(high));
        if log1p {
            (min, max) = (min.abs().min(max.abs()), min.abs().max(max.abs()));
        }
        let text = format!(
            "label = {{ column = 'y', positive = '1', negative = '0' }}\n\
             [columns.v]\ntype = 'numeric'\nmin = {min:?}\nmax = {max:?}\nlog1p = {log1p}\n\
             [columns.c]\ntype = 'categorical'\ncategories = ['a', 'b', 'c']\n"
        );
        let schema = Schema::parse("s", &text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let encoding = Encoding {
            range: if symmetric { NumericRange::Symmetric } else { NumericRange::Unit },
            row_norm: if clip { RowNorm::Clip } else { RowNorm::Unit },
            intercept,
            ..Encoding::UNIT_ROWS
        };
        let encoder = Encoder::new(&schema, encoding).unwrap();
        let mut row = RowBuffer::new(&encoder);
        let cells = [format!("{value:?}"), ["a", "b", "c"][category].to_owned()];
        encoder.encode_row(|column| cells[column].as_bytes(), Some(b"1".as_slice()), &mut row).unwrap();
        prop_assert!(norm_is_bounded(row.values()));
        let hot: Vec<u32> = row.indices().iter().copied().filter(|index| (1..4).contains(index)).collect();
        prop_assert_eq!(hot, vec![category as u32 + 1]);
        prop_assert!(row.indices().windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(row.indices().iter().all(|&index| (index as usize) < encoder.dim()));
    }

    #[test]
    fn numbers_are_read_as_the_standard_library_reads_them(value in any_finite(), whole in any::<i64>()) {
        for text in [format!("{value:?}"), format!("{value:e}"), format!(" {value} ")] {
            prop_assert_eq!(parse_number(text.as_bytes()).map(f64::to_bits), Some(value.to_bits()), "{}", text);
        }
        prop_assert_eq!(parse_number(whole.to_string().as_bytes()), Some(whole as f64));
    }

    #[test]
    fn what_is_not_a_finite_number_is_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
        let expected = std::str::from_utf8(&bytes).ok()
            .and_then(|text| text.trim_ascii().parse::<f64>().ok()).filter(|number| number.is_finite());
        prop_assert_eq!(parse_number(&bytes).map(f64::to_bits), expected.map(f64::to_bits));
    }
}

#[test]
fn odd_numbers() {
    for (text, number) in
        [("-0", Some(-0.0)), ("+7", Some(7.0)), ("1e3", Some(1000.0)), (".5", Some(0.5)), ("007", Some(7.0))]
    {
        assert_eq!(parse_number(text.as_bytes()).map(f64::to_bits), number.map(f64::to_bits), "{text}");
    }
    for text in ["", "-", "nan", "NaN", "inf", "-inf", "1e999", "1,5", "1 2", "0x10", "1_000", "12a", "\u{661}"] {
        assert_eq!(parse_number(text.as_bytes()), None, "{text}");
    }
}

/// The closed form for a row of one number, one category and the intercept, in both encodings.
#[test]
fn the_two_encodings_by_hand() {
    let schema = Schema::parse(
        "s",
        "label = { column = 'y', positive = 'p', negative = 'n' }\n\
         columns.v = { type = 'numeric', min = 10, max = 30 }\n\
         columns.skip = { type = 'drop' }\n\
         columns.c = { type = 'categorical', categories = ['a', 'b'], on_missing = 'category' }\n\
         columns.w = { type = 'numeric', min = 0, max = 1023, log1p = true }",
    )
    .unwrap();
    let expect = |encoding, cells: [&str; 4], features: [f64; 6]| {
        let encoder = Encoder::new(&schema, encoding).unwrap();
        assert_eq!(encoder.feature_names(), ["v", "c=a", "c=b", "c=<missing>", "w", "<intercept>"]);
        assert_eq!((encoder.dim(), encoder.intercept_index()), (6, Some(5)));
        let mut row = RowBuffer::new(&encoder);
        encoder.encode_row(|column| cells[column].as_bytes(), None, &mut row).unwrap();
        let mut out = [f64::NAN; 6];
        row.write_dense(&mut out);
        let norm = features.iter().map(|v| v * v).sum::<f64>().sqrt();
        for (found, wanted) in out.iter().zip(features) {
            assert!((found - wanted / norm).abs() < 1e-14, "{out:?} against {features:?} / {norm}");
        }
        assert_eq!(row.target(), None);
    };
    let unit_scale = Encoding::unit_scale(RowNorm::Clip);
    // log1p(31) / log1p(1023) = 5/10.
    expect(Encoding::UNIT_ROWS, ["25", "", "a", "31"], [0.5, 1.0, 0.0, 0.0, 0.0, 1.0]);
    expect(unit_scale, ["25", "", "a", "31"], [0.75, 1.0, 0.0, 0.0, 0.5, 1.0]);
    // Values outside the public range are clamped; a missing category has its own feature.
    expect(Encoding::UNIT_ROWS, ["-1e300", "", "", "1e300"], [-1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    expect(unit_scale, ["31", "x", "b", "-5"], [1.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    let half = Encoding::unit_scale(RowNorm::Clip).with_intercept(0.5);
    expect(half, ["30", "", "a", "1023"], [1.0, 1.0, 0.0, 0.0, 1.0, 0.5]);
}

#[test]
fn indicators_stay_where_they_are_and_numbers_are_centred() {
    let schema = Schema::parse(
        "s",
        "label = { column = 'y', positive = 'p', negative = 'n' }\n\
         columns.one_hot = { type = 'indicator', on_missing = { value = 0 } }\n\
         columns.number = { type = 'numeric', min = 0, max = 1 }",
    )
    .unwrap();
    assert_eq!(Schema::parse("s", &schema.to_toml()).unwrap().columns(), schema.columns());
    let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
    assert_eq!(encoder.feature_names(), ["one_hot", "number", "<intercept>"]);
    let mut row = RowBuffer::new(&encoder);
    for (cells, features) in [
        (["0", "0"], [0.0, -1.0, 1.0]),
        (["1", "0.5"], [1.0, 0.0, 1.0]),
        (["7", "1"], [1.0, 1.0, 1.0]),
        (["", "1"], [0.0, 1.0, 1.0]),
    ] {
        encoder.encode_row(|column| cells[column].as_bytes(), None, &mut row).unwrap();
        let mut out = [f64::NAN; 3];
        row.write_dense(&mut out);
        let norm = features.iter().map(|v| v * v).sum::<f64>().sqrt();
        for (found, wanted) in out.iter().zip(features) {
            assert!((found - wanted / norm).abs() < 1e-14, "{cells:?}: {out:?}");
        }
    }
    // An indicator has no categories, and its range cannot be declared.
    for bad in ["type = 'indicator', min = 0", "type = 'indicator', on_missing = 'category'"] {
        let text = format!("label = {{ column = 'y', positive = 'p', negative = 'n' }}\ncolumns.a = {{ {bad} }}");
        assert!(Schema::parse("s", &text).is_err(), "{bad}");
    }
}

#[test]
fn a_schema_states_whether_records_can_be_null() {
    for (column, policy, cell) in [
        ("type = 'numeric', min = 0, max = 1", "on_missing", ""),
        ("type = 'numeric', min = 0, max = 1", "on_unreadable", "x"),
        ("type = 'numeric', min = 0, max = 1, unit = 'm'", "on_unreadable", "1"),
        ("type = 'indicator'", "on_missing", ""),
        ("type = 'indicator'", "on_unreadable", "x"),
        ("type = 'categorical', categories = ['a']", "on_missing", ""),
        ("type = 'categorical', categories = ['a']", "on_unknown", "x"),
        ("type = 'date', format = '%Y-%m-%d', min = 2000-01-01, max = 2030-01-01", "on_unreadable", "x"),
        ("type = 'weekday', format = '%Y-%m-%d'", "on_unreadable", "x"),
    ] {
        for policy in [None, Some(policy)] {
            let policy = policy.map_or(String::new(), |policy| format!(", {policy} = 'neutral'"));
            let text = format!(
                "label = {{ column = 'y', positive = '1', negative = '0' }}\ncolumns.a = {{ {column}{policy} }}"
            );
            let schema = Schema::parse("s", &text).unwrap();
            let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
            let mut row = RowBuffer::new(&encoder);
            let is_null =
                encoder.encode_row(|_| cell.as_bytes(), Some(b"1".as_slice()), &mut row).is_ok_and(|()| row.is_null());
            assert_eq!((encoder.can_be_neutral(), is_null), (!policy.is_empty(), !policy.is_empty()), "{text}");
        }
    }
}

#[test]
fn policies_for_missing_and_unknown_values() {
    let schema = Schema::parse(
        "s",
        "missing = ['', '?']\n\
         label = { column = 'y', positive = '1', negative = '-1', others = 'neutral', on_missing = 'neutral' }\n\
         columns.v = { type = 'numeric', min = 0, max = 1, on_missing = { value = 1 }, on_unreadable = 'missing' }\n\
         columns.n = { type = 'numeric', min = 0, max = 1, on_missing = 'neutral', missing = ['-9'],\n\
         on_unreadable = 'neutral' }\n\
         columns.c = { type = 'categorical', categories = ['a', 'other'], on_missing = { value = 'a' } }\n\
         columns.k = { type = 'categorical', categories = ['a', '?'], on_unknown = 'neutral' }\n\
         columns.e = { type = 'numeric', min = 0, max = 1 }",
    )
    .unwrap();
    assert!(schema.can_be_neutral());
    let encoder = Encoder::new(&schema, Encoding::unit_scale(RowNorm::Unit)).unwrap();
    let mut row = RowBuffer::new(&encoder);
    let mut encode = |cells: [&str; 5], label: &str| {
        encoder.encode_row(|column| cells[column].as_bytes(), Some(label.as_bytes()), &mut row)?;
        let null = row.is_null();
        assert_eq!(null, row.values().is_empty());
        assert_eq!(null, row.target().is_none());
        Ok::<_, DataError>((null, row.indices().to_vec()))
    };
    let whole = (false, vec![0, 1, 2, 4, 6, 7]);
    assert_eq!(encode(["1", "1", "a", "a", "1"], "1").unwrap(), whole);
    assert_eq!(encode(["1", "1", "a", "a", "1"], "+1.0").unwrap(), whole, "labels compare as numbers");
    assert_eq!(encode(["?", "1", "", "a", "1"], "1").unwrap(), whole, "missing values are replaced");
    assert_eq!(encode(["nan", "1", "a", "a", "1"], "1").unwrap(), whole, "so are unreadable ones, as the column says");
    assert_eq!(encode(["1", "1", "zzz", "?", "1"], "1").unwrap(), (false, vec![0, 1, 3, 5, 6, 7]), "other; declared ?");
    for (cells, label) in [
        (["1", "-9", "a", "a", "1"], "1"),
        (["1", "abc", "a", "a", "1"], "1"),
        (["1", "1", "a", "zzz", "1"], "1"),
        (["1", "1", "a", "a", "1"], "7"),
        (["1", "1", "a", "a", "1"], ""),
    ] {
        assert_eq!(encode(cells, label).unwrap(), (true, vec![]), "{cells:?} {label}");
    }
    // A refusal takes precedence over a null record, at any position in the row.
    assert_eq!(encode(["1", "-9", "a", "a", "x"], "7").unwrap_err().code(), "csv.bad_number");
    assert_eq!(encode(["1", "-9", "a", "a", " "], "7").unwrap_err().code(), "csv.missing_value");
    assert_eq!(encode(["1", "1", "a", "", "1"], "1").unwrap_err().code(), "csv.missing_value");
}

#[test]
fn an_unreadable_cell_is_missing_only_where_the_schema_says_so() {
    let encode = |policies: &str, cell: &str| {
        let text = format!(
            "label = {{ column = 'y', positive = '1', negative = '0' }}\n\
             columns.pay = {{ type = 'numeric', min = 0, max = 20000{policies} }}\n\
             columns.one = {{ type = 'indicator'{policies} }}"
        );
        let encoder = Encoder::new(&Schema::parse("s", &text).unwrap(), Encoding::UNIT_ROWS).unwrap();
        let mut row = RowBuffer::new(&encoder);
        let cells = [cell, "1"];
        encoder.encode_row(|column| cells[column].as_bytes(), None, &mut row).map_err(|error| error.code())?;
        Ok::<_, &str>((row.is_null(), row.values().len()))
    };
    for text in ["12,345.60", "12 345", "12 kg", "$5", "NaN", "inf", "1e999", "NULL", "0x10"] {
        for policies in ["", ", on_missing = 'neutral'", ", on_missing = { value = 1 }"] {
            assert_eq!(encode(policies, text), Err("csv.bad_number"), "{text} {policies}");
        }
        assert_eq!(encode(", on_unreadable = 'neutral'", text), Ok((true, 0)));
        assert_eq!(encode(", on_unreadable = 'missing'", text), Err("csv.bad_number"));
        assert_eq!(encode(", on_unreadable = 'missing', on_missing = { value = 1 }", text), Ok((false, 3)));
        assert_eq!(encode(", on_unreadable = 'missing', on_missing = 'neutral'", text), Ok((true, 0)));
    }
    assert_eq!(encode(", on_unreadable = 'neutral'", ""), Err("csv.missing_value"));
    assert_eq!(encode("", "12345.60"), Ok((false, 3)));
}

/// The same cells with types have the encoding, or the error, of their text.
#[test]
fn typed_cells_are_encoded_as_their_text() {
    let schema = Schema::parse(
        "s",
        "missing = ['', '-9', 'NaN']\n\
         label = { column = 'y', classes = ['0', '1', '2.5', 'true'], on_missing = 'neutral', others = 'neutral' }\n\
         columns.v = { type = 'numeric', min = 0, max = 1, on_missing = 'neutral' }\n\
         columns.c = { type = 'categorical', categories = ['1', '2.5', '-0.001'], on_missing = 'category' }\n\
         columns.d = { type = 'categorical', categories = ['true', 'false'], on_unknown = 'neutral' }",
    )
    .unwrap();
    let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS).unwrap();
    let encode = |cells: [Cell<'_>; 4]| {
        let mut row = RowBuffer::new(&encoder);
        let result = encoder.encode_row(|column| cells[column], Some(cells[3]), &mut row);
        let tallies = row.tallies().iter().map(|tally| (tally.neutral, tally.replaced, tally.clamped));
        let tallies: Vec<_> = tallies.collect();
        let bits: Vec<u64> = row.values().iter().map(|value| value.to_bits()).collect();
        (result.map_err(|error| error.to_string()), row.indices().to_vec(), bits, row.target(), tallies)
    };
    let numbers = [0.0, 1.0, -9.0, 2.5, 0.1, -0.001, 1e300, f64::NAN, f64::INFINITY];
    let mut cells: Vec<(Cell<'_>, String)> = numbers
        .iter()
        .map(|&number| {
            (Cell::Number(number), String::from_utf8(Cell::Number(number).text(&mut [0; 32]).to_vec()).unwrap())
        })
        .collect();
    cells.push((Cell::Missing, String::new()));
    let mut seen = 0;
    for (a, text_a) in &cells {
        for (b, text_b) in &cells {
            let texts = [text_a, text_b, "true", text_a].map(|text| Cell::Text(text.as_bytes()));
            assert_eq!(encode([*a, *b, Cell::Boolean(true), *a]), encode(texts), "{text_a} {text_b}");
            seen += 1;
        }
    }
    assert_eq!(seen, 100);
    // A Boolean is a number in a numeric column, and matches 1 where `true` is not declared.
    let text = |text: &'static str| Cell::Text(text.as_bytes());
    assert_eq!(
        encode([Cell::Boolean(true), Cell::Boolean(true), Cell::Boolean(false), Cell::Boolean(true)]),
        encode([text("1"), text("1"), text("false"), text("true")])
    );
}

#[test]
fn storage_follows_from_the_schema() {
    let sparse = |numeric: usize, categories: usize| {
        let mut text = String::from("label = { column = 'y', positive = '1', negative = '0' }\n");
        for i in 0..numeric {
            text += &format!("columns.v{i} = {{ type = 'numeric', min = 0, max = 1 }}\n");
        }
        let list: Vec<_> = (0..categories).map(|i| format!("'{i}'")).collect();
        text += &format!("columns.c = {{ type = 'categorical', categories = [{}] }}\n", list.join(","));
        Encoder::new(&Schema::parse("s", &text).unwrap(), Encoding::UNIT_ROWS).unwrap().prefers_sparse()
    };
    assert!(!sparse(54, 2));
    assert!(sparse(6, 102));
    // 3 of 9 features and 3 of 8: on either side of 0.35.
    assert!(sparse(1, 7) && !sparse(1, 6));
}

#[test]
fn an_encoder_survives_its_model_file_and_a_bad_one_does_not() {
    let schema = Schema::parse(
        "s",
        "label = { column = 'y', positive = ['1', '2'], others = 'negative' }\n\
         columns.v = { type = 'numeric', min = -0.1, max = 1e300, on_missing = { value = 0.3 } }\n\
         columns.c = { type = 'categorical', categories = ['a', 'other'], on_missing = 'category', reviewed = false }\n\
         columns.d = { type = 'drop' }",
    )
    .unwrap();
    let table = Encoder::new(&schema, Encoding::unit_scale(RowNorm::Clip)).unwrap();
    let format = LibsvmFormat { features: Some(123), zero_based: true, ..Default::default() };
    let libsvm = Encoder::libsvm(format, Encoding::UNIT_ROWS).unwrap();
    for encoder in [table, libsvm] {
        let json = serde_json::to_string(&encoder).unwrap();
        assert_eq!(serde_json::from_str::<Encoder>(&json).unwrap(), encoder);
        let broken = json.replace("-0.1", "2e300").replace("\"features\":123", "\"features\":0");
        assert!(serde_json::from_str::<Encoder>(&broken).is_err(), "{broken}");
        assert!(serde_json::from_str::<Encoder>(&json.replacen('{', "{\"x\":1,", 1)).is_err());
    }
    for intercept in [f64::NAN, -1.0, f64::INFINITY] {
        let refused = Encoder::new(&schema, Encoding::UNIT_ROWS.with_intercept(intercept));
        assert_eq!(refused.unwrap_err().code(), "encoding.invalid");
    }
}

/// Encoders of versions without `on_unreadable` took such cells for missing ones.
#[test]
fn encoders_of_older_files_treat_unreadable_cells_as_missing() {
    let text = "label = { column = 'y', type = 'numeric', min = 0, max = 1, on_missing = 'neutral' }\n\
                columns.v = { type = 'numeric', min = 0, max = 1, on_missing = { value = 1 } }\n\
                columns.i = { type = 'indicator', on_missing = 'neutral' }";
    let encoder = Encoder::new(&Schema::parse("s", text).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let json = serde_json::to_string(&encoder).unwrap();
    let older = json.replace(",\"on_unreadable\":\"error\"", "").replace(",\"unreadable_is_neutral\":false", "");
    assert_eq!(json.len() - older.len(), 2 * 24 + 30, "{json}");
    let older: Encoder = serde_json::from_str(&older).unwrap();
    let encode = |encoder: &Encoder, cells: [&str; 3]| {
        let mut row = RowBuffer::new(encoder);
        encoder
            .encode_row(|column| cells[column].as_bytes(), Some(cells[2].as_bytes()), &mut row)
            .map_err(|e| e.code())?;
        Ok::<_, &str>(row.target())
    };
    for (cells, target) in [(["x", "1", "1"], Some(1.0)), (["1", "x", "1"], None), (["1", "1", "x"], None)] {
        assert_eq!(encode(&older, cells), Ok(target), "{cells:?}");
        assert_eq!(encode(&encoder, cells), Err("csv.bad_number"), "{cells:?}");
    }
}

#[test]
fn a_buffer_of_another_encoder_is_made_to_fit() {
    let encoder = |columns: &str| {
        let text = format!("label = {{ column = 'y', positive = '1', negative = '0' }}\n{columns}");
        Encoder::new(&Schema::parse("s", &text).unwrap(), Encoding::UNIT_ROWS).unwrap()
    };
    let narrow = encoder("columns.a = { type = 'numeric', min = 0, max = 1 }");
    let wide = encoder(
        "columns.a = { type = 'numeric', min = 0, max = 1 }\ncolumns.b = { type = 'numeric', min = 0, max = 1 }",
    );
    let mut row = RowBuffer::new(&narrow);
    wide.encode_row(|_| Cell::Number(1.0), None, &mut row).unwrap();
    assert_eq!(row.indices(), &[0, 1, 2]);
}

/// Returns the targets of labels: `None` is a null record, an error is its code.
fn targets(label: &str, cells: &[&str]) -> Vec<Result<Option<f64>, &'static str>> {
    let text =
        format!("missing = ['', 'NA']\nlabel = {{ column = 'y', {label} }}\ncolumns.a = {{ type = 'indicator' }}");
    let encoder = Encoder::new(&Schema::parse("s", &text).unwrap(), Encoding::UNIT_ROWS).unwrap();
    let mut row = RowBuffer::new(&encoder);
    let mut target = |cell: &&str| {
        encoder.encode_row(|_| b"1".as_slice(), Some(cell.as_bytes()), &mut row).map_err(|error| error.code())?;
        assert_eq!(row.is_null(), row.target().is_none());
        assert!(row.target().is_none_or(|target| target.abs() <= encoder.target_bound()));
        Ok(row.target())
    };
    cells.iter().map(&mut target).collect()
}

#[test]
fn targets_of_several_classes_are_their_positions() {
    let list = "classes = ['cat', '7', '1.5', '-0']";
    let cells = ["cat", "7", "7.0", "+7", "1.50", "0", "-0.0"];
    assert_eq!(targets(list, &cells), [0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0].map(|target| Ok(Some(target))));
    let odd = ["Cat", " cat", "8", "nan", "", "NA"];
    let unknown = Err("label.unknown");
    let missing = Err("label.missing");
    assert_eq!(targets(list, &odd), [unknown, Ok(Some(0.0)), unknown, unknown, missing, missing]);
    let neutral = format!("{list}, others = 'neutral', on_missing = 'neutral'");
    assert_eq!(targets(&neutral, &odd), [None, Some(0.0), None, None, None, None].map(Ok));
    assert_eq!(targets("classes = [' b', 'b']", &[" b", "b ", "b"]), [0.0, 1.0, 1.0].map(|target| Ok(Some(target))));
    // A marker of missing values that is listed as a class is that class.
    assert_eq!(targets("classes = ['NA', 'b']", &["NA", "b"]), [Ok(Some(0.0)), Ok(Some(1.0))]);
    assert_eq!(targets("classes = ['01', '1']", &["1", "01", "1.0"]), [1.0, 0.0, 0.0].map(|target| Ok(Some(target))));
}

#[test]
fn targets_of_numbers_lie_in_the_unit_interval() {
    let range = "type = 'numeric', min = 10, max = 30";
    let cells = ["10", "15", "20", "3e1", "-1e308", "31"];
    assert_eq!(targets(range, &cells), [-1.0, -0.5, 0.0, 1.0, -1.0, 1.0].map(|target| Ok(Some(target))));
    let odd = ["nan", "inf", "-inf", "x", "1e999", "", "NA"];
    let (bad, missing) = (Err("csv.bad_number"), Err("label.missing"));
    assert_eq!(targets(range, &odd), [bad, bad, bad, bad, bad, missing, missing]);
    let of = |policies: &str| targets(&format!("{range}, {policies}"), &odd);
    assert_eq!(of("on_missing = 'neutral'"), [bad, bad, bad, bad, bad, Ok(None), Ok(None)]);
    assert_eq!(of("on_unreadable = 'neutral'"), [Ok(None), Ok(None), Ok(None), Ok(None), Ok(None), missing, missing]);
    assert_eq!(of("on_missing = 'neutral', on_unreadable = 'neutral'"), [Ok(None); 7]);
}

#[test]
fn labels_are_refused_in_words() {
    let refused = |label: &str| {
        let text = format!("label = {{ column = 'y', {label} }}\ncolumns.a = {{ type = 'indicator' }}");
        let encoder = Encoder::new(&Schema::parse("s", &text).unwrap(), Encoding::UNIT_ROWS).unwrap();
        encoder.encode_row(|_| b"1".as_slice(), Some(b"z".as_slice()), &mut RowBuffer::new(&encoder)).unwrap_err()
    };
    for (label, expected) in [
        ("positive = 'p', negative = ['n', 'm']", "`p` (positive) or `n`, `m` (negative)"),
        ("classes = ['a', 'b']", "one of `a`, `b`"),
        ("classes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]", "one of `0`, `1`, `2`, `3`, `4`, `5`, `6`, `7` and 2 more"),
        ("type = 'numeric', min = 0, max = 2.5", "a number; outside 0.0 to 2.5 it is clamped"),
    ] {
        let error = refused(label);
        assert_eq!(error.expected_text(), Some(expected), "{label}");
        assert!(error.help_text().is_some() && !error.public_message().contains('z'), "{error}");
    }
}
