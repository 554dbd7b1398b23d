use proptest::prelude::*;

use super::*;

const HEAD: &str = "[label]\ncolumn = 'y'\npositive = '1'\nnegative = '0'\n";

fn refused(text: &str) -> DataError {
    Schema::parse("s.toml", text).expect_err(text)
}

#[test]
fn each_mistake_has_its_code_its_field_and_its_line() {
    let column = |body: &str| format!("{HEAD}[columns.a]\n{body}\n[columns.ok]\ntype = 'numeric'\nmin = 0\nmax = 1\n");
    let cases = [
        (column("type = 'numeric'\nmin = 0"), "bounds.missing", "columns.a.max", 5),
        (column("type = 'numeric'\nmax = 0"), "bounds.missing", "columns.a.min", 5),
        (column("type = 'numeric'\nmin = 2\nmax = 1"), "bounds.order", "columns.a.min", 5),
        (column("type = 'numeric'\nmin = nan\nmax = 1"), "bounds.not_finite", "columns.a.min", 5),
        (column("type = 'numeric'\nmin = 0\nmax = inf"), "bounds.not_finite", "columns.a.max", 5),
        (column("type = 'numeric'\nmin = '0'\nmax = 1"), "schema.type", "columns.a.min", 7),
        (column("type = 'numeric'\nmin = -1\nmax = 1\nlog1p = true"), "schema.log1p", "columns.a.log1p", 5),
        (
            column("type = 'numeric'\nmin = 0\nmax = 1\non_missing = 'category'"),
            "schema.on_missing",
            "columns.a.on_missing",
            5,
        ),
        (
            column("type = 'numeric'\nmin = 0\nmax = 1\non_missing = {value = 2}"),
            "schema.on_missing",
            "columns.a.on_missing",
            5,
        ),
        (
            column("type = 'numeric'\nmin = 0\nmax = 1\non_missing = {valu = 1}"),
            "schema.unknown_key",
            "columns.a.on_missing.valu",
            9,
        ),
        (column("type = 'numeric'\nmin = 0\nmax = 1\nmxa = 1"), "schema.unknown_key", "columns.a.mxa", 9),
        (column("type = 'number'"), "schema.type", "columns.a.type", 6),
        (column("min = 0"), "schema.missing_key", "columns.a.type", 5),
        (column("type = 'categorical'"), "schema.missing_key", "columns.a.categories", 5),
        (column("type = 'categorical'\ncategories = []"), "schema.categories", "columns.a.categories", 5),
        (column("type = 'categorical'\ncategories = ['x', 'x']"), "schema.categories", "columns.a.categories", 5),
        (
            column("type = 'categorical'\ncategories = ['x']\non_unknown = 'other'"),
            "schema.on_unknown",
            "columns.a.on_unknown",
            5,
        ),
        (
            column("type = 'categorical'\ncategories = ['x']\non_missing = {value = 'y'}"),
            "schema.on_missing",
            "columns.a.on_missing",
            5,
        ),
        (column("type = 'drop'\nreviewed = 'perhaps'"), "schema.type", "columns.a.reviewed", 7),
    ];
    for (text, code, field, line) in cases {
        let error = refused(&text);
        assert_eq!((error.code(), error.field(), error.line()), (code, Some(field), Some(line)), "{text}\n{error}");
        assert_eq!(error.file(), Some("s.toml"));
        assert!(error.expected_text().is_some() || error.help_text().is_some(), "{error}");
    }
    let near = refused(&column("type = 'numeric'\nmin = 0\nmax = 1\nlog1 = true"));
    assert_eq!(near.help_text(), Some("did you mean `log1p`?"));
}

#[test]
fn mistakes_outside_the_columns() {
    let ok = "[columns.a]\ntype = 'numeric'\nmin = 0\nmax = 1\n";
    for (text, code) in [
        ("label = ".to_owned(), "schema.syntax"),
        (ok.to_owned(), "schema.missing_key"),
        (HEAD.to_owned(), "schema.missing_key"),
        (format!("{HEAD}[columns]\n"), "schema.columns"),
        (format!("{HEAD}[columns.a]\ntype = 'drop'\n"), "schema.columns"),
        (format!("{HEAD}[columns.y]\ntype = 'numeric'\nmin = 0\nmax = 1\n"), "schema.columns"),
        (format!("{HEAD}{ok}{ok}"), "schema.syntax"),
        (format!("columns = 1\n{HEAD}"), "schema.type"),
        (format!("mising = ['']\n{HEAD}{ok}"), "schema.unknown_key"),
        (format!("[label]\npositive = '1'\nnegative = '0'\n{ok}"), "schema.missing_key"),
        (format!("[label]\ncolumn = 'y'\npositive = '1'\n{ok}"), "schema.label"),
        (format!("[label]\ncolumn = 'y'\npositive = '1'\nnegative = ['0', '1']\n{ok}"), "schema.label"),
        (format!("[label]\ncolumn = 'y'\npositive = [['1']]\nnegative = '0'\n{ok}"), "schema.type"),
    ] {
        assert_eq!(refused(&text).code(), code, "{text}");
    }
}

#[test]
fn each_mistake_of_a_label_has_its_code_and_its_field() {
    for (body, code, field) in [
        ("classes = ['a']", "schema.label", "label.classes"),
        ("classes = 'a'", "schema.label", "label.classes"),
        ("classes = []", "schema.label", "label.classes"),
        ("classes = ['a', 'b', 'a']", "schema.label", "label.classes"),
        ("classes = [0, 1, 0]", "schema.label", "label.classes"),
        ("classes = [['a'], 'b']", "schema.type", "label.classes"),
        ("type = 'classes'", "schema.missing_key", "label.classes"),
        ("classes = ['a', 'b']\nothers = 'positive'", "schema.type", "label.others"),
        ("classes = ['a', 'b']\npositive = 'a'", "schema.unknown_key", "label.positive"),
        ("type = 'numeric'\nmin = 0", "bounds.missing", "label.max"),
        ("type = 'numeric'\nmax = 0", "bounds.missing", "label.min"),
        ("type = 'numeric'\nmin = 1\nmax = 1", "bounds.order", "label.min"),
        ("type = 'numeric'\nmin = 2\nmax = 1", "bounds.order", "label.min"),
        ("type = 'numeric'\nmin = 0\nmax = 5e-324", "bounds.order", "label.min"),
        ("type = 'numeric'\nmin = nan\nmax = 1", "bounds.not_finite", "label.min"),
        ("type = 'numeric'\nmin = 0\nmax = inf", "bounds.not_finite", "label.max"),
        ("type = 'numeric'\nmin = 0\nmax = 'x'", "schema.type", "label.max"),
        ("type = 'numeric'\nmin = 0\nmax = 1\nothers = 'neutral'", "schema.unknown_key", "label.others"),
        ("min = 0\nmax = 1", "schema.unknown_key", "label.min"),
        ("type = 'number'", "schema.type", "label.type"),
        ("type = 'numeric'\nmin = 0\nmax = 1\non_missing = 'category'", "schema.type", "label.on_missing"),
    ] {
        let error =
            refused(&format!("[columns.a]\ntype = 'numeric'\nmin = 0\nmax = 1\n[label]\ncolumn = 'y'\n{body}\n"));
        assert_eq!((error.code(), error.field()), (code, Some(field)), "{body}\n{error}");
        assert!(error.line().is_some_and(|line| line >= 5), "{body}\n{error}");
        assert!(error.expected_text().is_some() || error.help_text().is_some(), "{error}");
    }
    let many: Vec<String> = (0..=MAX_CLASSES).map(|i| i.to_string()).collect();
    assert_eq!(
        refused(&format!("[label]\ncolumn = 'y'\nclasses = {many:?}\n[columns.a]\ntype = 'indicator'\n")).code(),
        "schema.label"
    );
    let untyped = refused("[label]\ncolumn = 'y'\nmin = 0\nmax = 1\n[columns.a]\ntype = 'indicator'\n");
    assert!(untyped.help_text().is_some_and(|help| help.contains("type = \"numeric\"")), "{untyped}");
}

#[test]
fn review_is_demanded_and_recorded() {
    let text = format!(
        "{HEAD}reviewed = false\n[columns.a]\ntype = 'drop'\nreviewed = false\n[columns.b]\ntype = 'numeric'\nmin = 0\nmax = 1\n"
    );
    let mut schema = Schema::parse("s", &text).unwrap();
    assert_eq!(schema.unreviewed(), ["y", "a"]);
    assert_eq!(schema.check_reviewed().unwrap_err().code(), "schema.unreviewed");
    let unknown = schema.assume_public(&["a", "nobody"]).unwrap_err();
    assert_eq!((unknown.code(), schema.unreviewed().len()), ("schema.unknown_column", 2));
    schema.assume_public(&["a", "b"]).unwrap();
    assert_eq!((schema.unreviewed(), schema.assumed_public()), (vec!["y"], vec!["a"]));
    schema.assume_all_public();
    assert!(schema.check_reviewed().is_ok());
    assert_eq!(schema.assumed_public(), ["y", "a"]);
    assert_eq!(Schema::parse("s", &schema.to_toml()).unwrap(), schema, "the record survives the file");
}

#[test]
fn defaults_of_the_file_reach_the_columns_they_fit() {
    let text = format!(
        "missing = ['NA']\non_missing = 'category'\n{HEAD}[columns.c]\ntype = 'categorical'\ncategories = ['x']\n\
         [columns.n]\ntype = 'numeric'\nmin = 0\nmax = 1\nmissing = [-9]\n"
    );
    let schema = Schema::parse("s", &text).unwrap();
    let columns = schema.columns();
    assert_eq!((&columns[0].on_missing, &columns[1].on_missing), (&OnMissing::Category, &OnMissing::Error));
    assert_eq!(
        (schema.missing_of(&columns[0]), schema.missing_of(&columns[1])),
        (&["NA".to_owned()][..], &["-9".to_owned()][..])
    );
}

fn review() -> impl Strategy<Value = Review> {
    prop_oneof![Just(Review::Reviewed), Just(Review::Unreviewed), Just(Review::AssumedPublic)]
}

fn column() -> impl Strategy<Value = Column> {
    let finite = || any::<f64>().prop_filter("finite", |value| value.is_finite());
    let numeric =
        (finite(), finite(), 0..5_usize, 0..3_usize, 0..3_usize).prop_map(|(a, b, scale, policy, unreadable)| {
            let (log1p, cosines) = (scale == 4, [None, Some(0), Some(4)][policy]);
            let scale = [None, Some(Scale::Linear), Some(Scale::Log), Some(Scale::ByRange), None][scale];
            let (a, b) = if log1p { (a.abs(), b.abs()) } else { (a, b) };
            let on_missing = [OnMissing::Error, OnMissing::Neutral, OnMissing::Value(Fill::Number(a))][policy].clone();
            let on_unreadable = [OnUnreadable::Error, OnUnreadable::Neutral, OnUnreadable::Missing][unreadable];
            let kind = ColumnKind::Numeric { min: a.min(b), max: a.max(b), log1p, scale, cosines, on_unreadable };
            (kind, None, on_missing)
        });
    let categorical =
        (proptest::collection::hash_set("\\PC*|[\"'\\\\\n\t#=,]{0,3}", 1..4), 0..4_usize).prop_map(|(set, policy)| {
            let categories: Vec<String> = set.into_iter().collect();
            let fill = OnMissing::Value(Fill::Category(categories[0].clone()));
            let on_missing = [OnMissing::Error, OnMissing::Neutral, OnMissing::Category, fill][policy].clone();
            let on_unknown = if policy % 2 == 0 { OnUnknown::Error } else { OnUnknown::Neutral };
            (ColumnKind::Categorical { categories, on_unknown }, None, on_missing)
        });
    let dropped = Just((ColumnKind::Drop, None, OnMissing::Error));
    let missing = proptest::option::of(proptest::collection::vec("\\PC{0,3}", 0..3));
    let name = "\\PC{0,8}|[a-z.\"'\\\\\n# ]{0,6}";
    let source = proptest::option::weighted(0.2, "\\PC{0,3}");
    (name, prop_oneof![numeric, formatted(), categorical, dropped], missing, review(), (any::<bool>(), source))
        .prop_map(|(name, (kind, format, on_missing), missing, review, (line_ends, source))| Column {
            source: source.filter(|source| *source != name),
            name,
            kind,
            format,
            on_missing,
            missing,
            line_ends,
            review,
        })
}

/// Columns with formats.
fn formatted() -> impl Strategy<Value = (ColumnKind, Option<CellFormat>, OnMissing)> {
    let numeric = |min, max, on_unreadable| ColumnKind::Numeric {
        min,
        max,
        log1p: false,
        scale: None,
        cosines: None,
        on_unreadable,
    };
    let policy = prop_oneof![Just(OnUnreadable::Error), Just(OnUnreadable::Neutral)];
    let units = proptest::collection::vec("[a-z€$%\"]{0,3}", 0..3);
    let number = (any::<bool>(), proptest::option::of(0..4_usize), units, policy.clone()).prop_map(
        move |(is_comma, thousands, units, policy)| {
            let (decimal, marks) = if is_comma { (',', ['.', ' ', '\'', '_']) } else { ('.', [',', ' ', '\'', '_']) };
            let format = NumberFormat { decimal, thousands: thousands.map(|mark| marks[mark]), units };
            (numeric(-1.0, 1e6, policy), Some(CellFormat::Number(format)), OnMissing::Value(Fill::Number(0.25)))
        },
    );
    let date = (0..4_usize, 0..20000_i32, 0..20000_i32, 0..86400_i32, policy).prop_map(
        move |(part, first, length, seconds, on_unreadable)| {
            let (word, part) = DatePart::WORDS[part];
            let min = f64::from(first) + f64::from(seconds) / 86400.0;
            let kind = match part.categories() {
                Some(categories) => ColumnKind::Categorical {
                    categories: categories.iter().map(|&category| category.to_owned()).collect(),
                    on_unknown: if on_unreadable == OnUnreadable::Error {
                        OnUnknown::Error
                    } else {
                        OnUnknown::Neutral
                    },
                },
                None if word == "hour" => numeric(0.0, 24.0, on_unreadable),
                None => numeric(min, f64::from(first + length + 1), on_unreadable),
            };
            let on_missing = if word == "date" { OnMissing::Value(Fill::Number(min)) } else { OnMissing::Neutral };
            let pattern = "%d.%m.%Y %H:%M".to_owned();
            (kind, Some(CellFormat::Date(DateFormat { pattern, part })), on_missing)
        },
    );
    let flag = proptest::collection::hash_set("[a-z\"' ]{1,3}", 2..5).prop_map(|texts| {
        let mut one: Vec<String> = texts.into_iter().collect();
        let zero = one.split_off(1);
        let kind = ColumnKind::Indicator { on_unreadable: OnUnreadable::Missing };
        (kind, Some(CellFormat::Flag { one, zero }), OnMissing::Neutral)
    });
    prop_oneof![number, date, flag]
}

fn label_kind() -> impl Strategy<Value = LabelKind> {
    let finite = || any::<f64>().prop_filter("finite", |value| value.is_finite());
    let others = prop_oneof![Just(Others::Error), Just(Others::Neutral)];
    prop_oneof![
        others.prop_map(|others| LabelKind::TwoClasses {
            positive: vec!["1".into(), "\"".into()],
            negative: vec!["0".into()],
            others
        }),
        (proptest::collection::hash_set("\\PC*|[\"'\\\\\n\t#=,]{0,3}", 2..6), any::<bool>()).prop_map(
            |(classes, others_are_neutral)| LabelKind::Classes {
                classes: classes.into_iter().collect(),
                others_are_neutral
            }
        ),
        (finite(), finite()).prop_map(|(a, b)| LabelKind::Number(LabelRange { min: a.min(b), max: a.max(b) })),
    ]
}

proptest! {
    #[test]
    fn toml_and_json_give_back_the_same_schema(
        columns in proptest::collection::vec(column(), 1..6),
        label in "\\PC{0,8}",
        kind in label_kind(),
        (missing_is_neutral, lenient) in any::<(bool, bool)>(),
        label_review in review(),
        comment in "\\PC{0,20}|[\n\r]{0,3}",
    ) {
        let unreadable_is_neutral = lenient && matches!(kind, LabelKind::Number(_));
        let format = if matches!(kind, LabelKind::Number(_)) && lenient {
            Some(NumberFormat { decimal: ',', thousands: Some(' '), units: vec!["€".into()] })
        } else {
            None
        };
        let label = Label { column: label, kind, format, missing_is_neutral, unreadable_is_neutral, review: label_review };
        let Ok(schema) = Schema::new(columns, label, vec![String::new(), "?".into()]) else { return Ok(()) };
        let marks = [None, Some(';'), Some('\t')];
        let encoding = lenient.then(|| "latin1".to_owned());
        let file = FileFormat { delimiter: marks[comment.len() % 3], encoding, header: missing_is_neutral.then_some(false), review: label_review };
        let schema = schema.with_file(file).unwrap();
        let text = schema.to_toml_with_comments(&|_| Some(comment.clone()));
        let read = Schema::parse("s", &text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&read, &schema, "{}", text);
        let json = serde_json::to_string(&schema).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Schema>(&json).unwrap(), &schema, "{}", json);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,40}|([a-z.]{1,6} ?= ?[0-9'\\[\\]{}a-z]{0,6}\n){0,5}") {
        let _ = Schema::parse("s", &text);
        let _ = Schema::parse("s", &format!("{HEAD}[columns.a]\n{text}"));
    }
}
