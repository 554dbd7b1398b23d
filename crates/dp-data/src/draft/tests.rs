mod written_values;

use super::*;
use crate::encode::{Encoder, Encoding};
use crate::read::{CuratorWarning, load_csv};
use crate::schema::{CellFormat, ColumnKind, LabelKind, OnMissing, OnUnknown, OnUnreadable, Others, Review};

fn two(positive: &[&str], negative: &[&str], others: Others) -> LabelKind {
    let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    LabelKind::TwoClasses { positive: owned(positive), negative: owned(negative), others }
}

fn drafted(text: &str, options: &DraftOptions) -> Result<Draft, DataError> {
    draft(Input::from_bytes("f.csv", text.into()), options, &CsvOptions::default())
}

const PEOPLE: &str = "\
id,age,pay,city,code,gap,same,empty,y
1,30,0,Rome,0,1.5,x,,no
2,40,10,other,1,NA,x,,no
3,50,200000,Oslo,0,2.5,x,,yes
4,60,5,Rome,1,,x,,no
";

fn numeric(min: f64, max: f64, log1p: bool) -> ColumnKind {
    ColumnKind::Numeric { min, max, log1p, scale: None, cosines: None, on_unreadable: OnUnreadable::Error }
}

fn kind<'d>(draft: &'d Draft, name: &str) -> &'d ColumnKind {
    &draft.schema.columns().iter().find(|column| column.name == name).unwrap().kind
}

#[test]
fn types_ranges_categories_and_label() {
    let draft = drafted(PEOPLE, &DraftOptions::new("y")).unwrap();
    assert_eq!(kind(&draft, "age"), &numeric(30.0, 60.0, false));
    assert_eq!(
        kind(&draft, "code"),
        &ColumnKind::Indicator { on_unreadable: OnUnreadable::Error },
        "only zeros and ones"
    );
    assert_eq!(kind(&draft, "gap"), &numeric(1.5, 2.5, false));
    for name in ["id", "same", "empty"] {
        assert_eq!(kind(&draft, name), &ColumnKind::Drop, "{name}");
    }
    let categories = ["Oslo", "Rome", "other"].map(String::from).to_vec();
    assert_eq!(kind(&draft, "city"), &ColumnKind::Categorical { categories, on_unknown: OnUnknown::Other });
    assert_eq!(draft.schema.label().kind, two(&["yes"], &["no"], Others::Neutral));
    assert_eq!(draft.schema.unreviewed().len(), 9, "everything is marked");
    let gap = draft.schema.columns().iter().find(|column| column.name == "gap").unwrap();
    assert_eq!(gap.missing.as_deref(), Some(&[String::new(), "NA".to_owned()][..]));
    let text = draft.to_toml();
    assert_eq!(text.matches("# REVIEW").count(), 9);
    assert!(text.contains("2 cells hold \"NA\", \"\""), "{text}");
    assert_eq!(Schema::parse("s", &text).unwrap(), draft.schema);
}

/// A database or Parquet has `true`, Python writes `True`, and R and spreadsheets `TRUE`.
#[test]
fn booleans_are_read_as_any_program_writes_them() {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let draft = drafted("smoker,x,y\nTrue,1,false\nFalse,2,true\nTrue,3,true\n", &DraftOptions::new("y")).unwrap();
    let smoker = draft.schema.columns().iter().find(|column| column.name == "smoker").unwrap();
    let one = texts(&["True", "true", "TRUE"]);
    assert_eq!(smoker.format, Some(CellFormat::Flag { one, zero: texts(&["False", "false", "FALSE"]) }));
    let expected = two(&["false", "False", "FALSE"], &["true", "True", "TRUE"], Others::Neutral);
    assert_eq!(draft.schema.label().kind, expected);
    // Two classes that differ in capitals alone are left as they are.
    let odd = drafted("x,y\n1,true\n2,TRUE\n2,TRUE\n", &DraftOptions::new("y")).unwrap();
    assert_eq!(odd.schema.label().kind, two(&["true"], &["TRUE"], Others::Neutral));
    let one_is_named = DraftOptions { positive: Some("true".to_owned()), ..DraftOptions::new("y") };
    let odd = drafted("x,y\n1,true\n2,no\n2,no\n", &one_is_named).unwrap();
    assert_eq!(odd.schema.label().kind, two(&["true"], &["no"], Others::Neutral));
}

#[test]
fn log1p_is_suggested_or_applied_where_it_suits() {
    let rows: String = (0..50).map(|i| format!("{},{i},{}\n", if i == 7 { 90_000 } else { i % 3 }, i % 2)).collect();
    let text = format!("pay,even,y\n{rows}");
    let suggested = drafted(&text, &DraftOptions::default()).unwrap();
    assert_eq!(kind(&suggested, "pay"), &numeric(0.0, 90_000.0, false));
    assert!(suggested.notes.iter().any(|note| note.column == "pay" && note.text.contains("log1p")));
    let applied = drafted(&text, &DraftOptions { apply_log1p: true, ..Default::default() }).unwrap();
    assert_eq!(kind(&applied, "pay"), &numeric(0.0, 90_000.0, true));
}

#[test]
fn classes() {
    let classes = |labels: &[&str], positive: Option<&str>, negative: Option<&str>| {
        let rows: String = labels.iter().zip([3, 5, 4, 9, 2, 6]).map(|(label, x)| format!("{x},{label}\n")).collect();
        let options = DraftOptions {
            positive: positive.map(String::from),
            negative: negative.map(String::from),
            ..DraftOptions::new("y")
        };
        drafted(&format!("x,y\n{rows}"), &options).map(|draft| {
            let LabelKind::TwoClasses { positive, negative, others } = &draft.schema.label().kind else {
                panic!("two classes are drafted as such");
            };
            (positive.join("|"), negative.join("|"), *others)
        })
    };
    let two = |a: &str, b: &str| Ok::<_, String>((a.to_owned(), b.to_owned(), Others::Neutral));
    let found = |result: Result<_, DataError>| result.map_err(|error| error.code().to_owned());
    assert_eq!(found(classes(&["0", "1", "1"], None, None)), two("1", "0"));
    assert_eq!(found(classes(&["-1", "+1", "-1"], None, None)), two("+1", "-1"));
    assert_eq!(found(classes(&["a", "b", "b"], None, None)), two("a", "b"));
    assert_eq!(found(classes(&["a", "b", "b"], Some("b"), None)), two("b", "a"));
    assert_eq!(found(classes(&["1.0", "0.0"], Some("0"), None)), two("0", "1.0"));
    assert_eq!(found(classes(&["a", "b", "c"], Some("b"), Some("c"))), two("b", "c"));
    let rest = |a: &str, b: &str, others| Ok((a.to_owned(), b.to_owned(), others));
    assert_eq!(found(classes(&["a", "b", "c"], Some("b"), None)), rest("b", "", Others::Negative));
    assert_eq!(found(classes(&["a", "b", "c"], None, Some("b"))), rest("", "b", Others::Positive));
    assert_eq!(found(classes(&["a", "a"], Some("a"), None)), rest("a", "", Others::Negative));
    // Spellings of a class belong to it.
    let spelled = ["ja", "nein", "Ja", "NEIN", "ja."];
    assert_eq!(found(classes(&spelled, Some("ja"), None)), two("ja|Ja|ja.", "NEIN|nein"));
    assert_eq!(found(classes(&spelled, None, Some("nein"))), two("Ja|ja|ja.", "nein|NEIN"));
    assert_eq!(found(classes(&spelled, None, None)), two("NEIN|nein", "Ja|ja|ja."));
    assert_eq!(found(classes(&["no", "yes", "No", "?!"], Some("no"), None)), rest("no|No", "", Others::Negative));
    assert_eq!(found(classes(&["no", "yes", "No", "?!"], Some("yes"), Some("no"))), two("yes", "no|No"));
    // But two classes may have such names.
    assert_eq!(found(classes(&["a", "A", "A"], Some("a"), None)), two("a", "A"));
    assert_eq!(found(classes(&["a", "A", "A"], None, None)), two("a", "A"));
    assert_eq!(found(classes(&["a", "A", "b"], Some("a"), Some("A"))), two("a", "A"));
    for (labels, positive) in
        [(&["a", "a"][..], None), (&["1.5", "1.50"], None), (&["a", "b"], Some("z")), (&["", ""], None)]
    {
        let error = classes(labels, positive, None).unwrap_err();
        assert_eq!((error.code(), error.column()), ("label.undecided", Some("y")), "{labels:?} {positive:?}");
    }
}

#[test]
fn too_many_categories_are_dropped_and_a_stray_text_is_an_error_until_a_person_decides() {
    let rows: String = (0..120)
        .map(|i| format!("name{i},{},{}\n", if i == 77 { "oops".into() } else { i.to_string() }, i % 2))
        .collect();
    let draft = drafted(&format!("name,age,y\n{rows}"), &DraftOptions::default()).unwrap();
    assert_eq!(kind(&draft, "name"), &ColumnKind::Drop);
    assert_eq!(kind(&draft, "age"), &numeric(0.0, 119.0, false));
    let note = draft.notes.iter().find(|note| note.column == "age").unwrap();
    assert!(note.text.starts_with("Cells that are not numbers: 1, the first on line 79."), "{}", note.text);
    let load = |schema: &Schema| {
        let encoder = Encoder::new(schema, Encoding::UNIT_ROWS).unwrap();
        let input = Input::from_bytes("f.csv", format!("name,age,y\n{rows}").into());
        (encoder.can_refuse_records(), load_csv::<f64>(input, &encoder, &CsvOptions::default()))
    };
    let (can_refuse, refused) = load(&draft.schema);
    let refused = refused.unwrap_err();
    assert!(can_refuse);
    assert_eq!((refused.code(), refused.line(), refused.column()), ("csv.bad_number", Some(79), Some("age")));
    for policy in ["neutral", "missing"] {
        let text = format!("on_unreadable = \"{policy}\"\n{}", draft.to_toml());
        let (can_refuse, loaded) = load(&Schema::parse("s", &text).unwrap());
        assert_eq!(loaded.unwrap().warnings, [CuratorWarning::Neutral { records: 1 }], "{policy}");
        assert!(!can_refuse);
    }
    let nothing = drafted("name,y\na,0\na,1\n", &DraftOptions::default()).unwrap_err();
    assert_eq!(nothing.code(), "schema.columns");
}

#[test]
fn numbers_that_mark_missing_ones_do_not_set_the_range() {
    let column = |sentinel: &str, one_in: usize, scale: usize| {
        let cell = |i: usize| if i % one_in == 1 { sentinel.to_owned() } else { (i % 40 * scale).to_string() };
        let rows: String = (0..200).map(|i| format!("{},{}\n", cell(i), i % 2)).collect();
        let draft = drafted(&format!("x,y\n{rows}"), &DraftOptions::default()).unwrap();
        let column = draft.schema.columns()[0].clone();
        let ColumnKind::Numeric { min, max, .. } = column.kind else { panic!("{column:?}") };
        let asks = draft.notes.iter().any(|note| note.text.contains("apart from the other numbers"));
        (min, max, if asks { None } else { Some(column.missing.is_some()) })
    };
    assert_eq!(column("-999", 20, 1), (0.0, 39.0, Some(true)));
    assert_eq!(column("999", 20, 1), (0.0, 39.0, Some(true)));
    assert_eq!(column("-9", 20, 100), (0.0, 3900.0, Some(true)), "negative where the others are not");
    assert_eq!(column("9999", 20, 60), (0.0, 2340.0, Some(true)));
    // Within the range of the others, near it, once, or most of the cells: a value like any other.
    assert_eq!(column("99", 20, 100), (0.0, 3900.0, Some(false)));
    assert_eq!(column("9999", 20, 70), (0.0, 9999.0, None), "the draft asks");
    assert_eq!(column("-999", 250, 1), (-999.0, 39.0, Some(false)));
    assert_eq!(column("999", 2, 1), (0.0, 999.0, Some(false)));
}

#[test]
fn empty_cells_of_texts_are_a_category_unless_they_are_rare() {
    for (one_in, policy) in [(4, OnMissing::Category), (150, OnMissing::Neutral)] {
        let ward = |i: usize| if i % one_in == 3 { "" } else { ["north", "south"][i % 2] };
        let rows: String = (0..300).map(|i| format!("{},{}\n", ward(i), i % 2)).collect();
        let draft = drafted(&format!("ward,y\n{rows}"), &DraftOptions::default()).unwrap();
        assert_eq!(draft.schema.columns()[0].on_missing, policy);
        assert!(draft.notes.iter().any(|note| note.text.contains("of 300 cells are empty")));
    }
}

#[test]
fn labels_of_more_than_two_values() {
    let drafted_label = |labels: &[&str], options: &DraftOptions| {
        let rows: String = labels.iter().enumerate().map(|(i, label)| format!("{},{label}\n", i * 7 % 5)).collect();
        drafted(&format!("x,y\n{rows}"), options).map(|draft| {
            let note = draft.notes.iter().find(|note| note.column == "y").unwrap().text.clone();
            (draft.schema.label().kind.clone(), draft.schema.label().review, note)
        })
    };
    let named = DraftOptions::new("y");
    let classes = |classes: &[&str]| LabelKind::Classes {
        classes: classes.iter().map(|&class| class.to_owned()).collect(),
        others_are_neutral: true,
    };
    // With classes listed by a person, another one is a mistake.
    let said = |classes: &[&str]| LabelKind::Classes {
        classes: classes.iter().map(|&class| class.to_owned()).collect(),
        others_are_neutral: false,
    };
    let number = |min, max| LabelKind::Number(LabelRange { min, max });
    let many: Vec<String> = (0..40).map(|i| (i * i).to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let texts: Vec<String> = (0..200).map(|i| format!("name{i}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for (labels, expected, says) in [
        (&["b", "c", "a", "b"][..], classes(&["a", "b", "c"]), "classes"),
        (&["10", "9", "2", "2.0", ""], classes(&["2", "9", "10"]), "whole numbers"),
        (&["1", "2", "x"], classes(&["1", "2", "x"]), "classes"),
        (&["1.5", "2.5", "-4"], number(-4.0, 2.5), "number"),
        (&["1", "NA", "2.5", "-4"], number(-4.0, 2.5), "missing"),
        (&many, number(0.0, 1521.0), "number"),
    ] {
        let (kind, review, note) = drafted_label(labels, &named).unwrap();
        assert_eq!((&kind, review), (&expected, Review::Unreviewed), "{labels:?}");
        assert!(note.contains(says), "{note}");
        // A column that is the label only because it is last is not taken as a numeric label.
        let guessed = drafted_label(labels, &DraftOptions::default()).unwrap_err();
        assert_eq!((guessed.code(), guessed.column()), ("label.undecided", Some("y")), "{labels:?}");
    }
    assert_eq!(drafted_label(&texts, &named).unwrap_err().code(), "label.undecided");
    // A kind stated by a person is not taken from the data, whatever the data contain; a contradiction is noted.
    let [of_classes, of_range] = ["No label of the file is one of them.", "No label of the file lies in it."];
    let said_to_be = |min, max| LabelHint::Number(LabelRange { min, max });
    for (hint, kind, labels, contradicts) in [
        (LabelHint::Classes(vec!["u".into(), "v".into()]), said(&["u", "v"]), ["a", "b"], of_classes),
        (LabelHint::Classes(vec!["u".into(), "v".into()]), said(&["u", "v"]), ["a", "v"], ""),
        (said_to_be(0.0, 9.0), number(0.0, 9.0), ["a", "3"], "Some labels of the file are no numbers."),
        (said_to_be(0.0, 9.0), number(0.0, 9.0), ["-1", "-3"], of_range),
        (said_to_be(0.0, 9.0), number(0.0, 9.0), ["-1", "10"], ""),
    ] {
        let options = DraftOptions { hint: Some(hint), ..DraftOptions::new("y") };
        let (found, review, note) = drafted_label(&labels, &options).unwrap();
        assert_eq!((found, review), (kind, Review::Reviewed));
        assert!(
            if contradicts.is_empty() { !note.contains("of the file") } else { note.ends_with(contradicts) },
            "{note}"
        );
    }
    let twice = DraftOptions { hint: Some(LabelHint::Classes(vec!["u".into(), "u".into()])), ..DraftOptions::new("y") };
    assert_eq!(drafted_label(&["u", "u"], &twice).unwrap_err().code(), "schema.label");
}

/// A source that gives a few bytes at a time, so that a small table has many chunks.
struct Drops(std::io::Cursor<Vec<u8>>);

impl std::io::Read for Drops {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(900);
        self.0.read(&mut buffer[..most])
    }
}

#[test]
fn drafts_are_the_same_on_any_number_of_threads() {
    let mut text = "id,money,flag,town,note,odd,label\n".to_owned();
    for i in 0..3000_u32 {
        let money = if i % 400 == 13 { "NA".to_owned() } else { format!("{}.5", (i * i) % 9000 / (1 + i % 50)) };
        let odd = if i == 2345 { "unreadable".to_owned() } else { format!("-{}e-1", i % 7) };
        let note = if i == 1234 { "\"two\nlines\"".to_owned() } else { format!("text {i}") };
        let town = ["Rome", "\"Oslo\"", "Bern", ""][(i / 700) as usize % 4];
        text += &format!("{i},{money},{},{town},{note},{odd},{}\n", i % 2, i % 1500);
    }
    for label in ["flag", "label", "town"] {
        let draft = |threads: usize| {
            let workers = crate::Workers::new(threads.try_into().unwrap());
            let source = Drops(std::io::Cursor::new(text.clone().into_bytes()));
            let input = Input::from_reader("a.csv", source).unwrap().with_workers(workers);
            draft(input, &DraftOptions::new(label), &CsvOptions::default())
                .map(|drafted| drafted.to_toml())
                .map_err(|error| error.to_string())
        };
        let one = draft(1);
        assert!(
            label != "flag"
                || one.as_ref().is_ok_and(|toml| toml.contains("line 2348") && toml.contains("numbers the rows")),
            "{one:?}"
        );
        for threads in [2, 3] {
            assert_eq!(draft(threads), one, "{threads} threads");
        }
    }
}
