//! Tests of trainings on tables.

use dp_data::Workers;
use dp_data::encode::{Encoder, Encoding, FeatureMap};
use dp_data::read::{CsvOptions, Input, load_csv};
use dp_data::schema::{Label, Others, Schema};
use dp_data::spool::{Held, HeldCoordinates, Room};
use dp_mechanisms::SeededRng;
use dp_optim::engine::Control;

use super::*;
use crate::ModelFile;
use crate::error::ErrorKind;
use crate::model::Prediction;
use crate::verify;

const SCHEMA: &str = r#"
    [label]
    column = "buys"
    positive = "yes"
    negative = "no"
    [columns.visits]
    type = "numeric"
    min = 0
    max = 30
"#;

fn table() -> Input {
    let row = |i: u32| format!("{},{}\n", i % 31, if i % 31 > 15 { "yes" } else { "no" });
    let rows: String = (0..3000).map(row).collect();
    Input::from_bytes("people.csv", format!("visits,buys\n{rows}").into_bytes())
}

fn schema() -> Schema {
    Schema::parse("schema.toml", SCHEMA).unwrap()
}

#[test]
fn every_listed_algorithm_trains_and_verifies_or_says_why_not() {
    let mut refused = Vec::new();
    for entry in catalogue::ALGORITHMS {
        let training = Training::new(3.0, 1e-6).unwrap().by(entry.name).unwrap();
        match training.on_csv(&schema(), table()) {
            Ok(file) => {
                let verified = verify::model(&file, verify::WORK).unwrap();
                assert!(verified.epsilon <= 3.0 && verified.delta <= 1e-6, "{}: {verified:?}", entry.name);
                let reread = ModelFile::parse(file.to_text().unwrap().as_bytes()).unwrap();
                assert_eq!(reread, file);
            }
            Err(TrainError::Recipe(error)) => refused.push(format!("{}: {error}", entry.name)),
            Err(error) => panic!("{}: {error}", entry.name),
        }
    }
    assert_eq!(refused, [""; 0]);
}

#[test]
fn weights_that_are_not_finite_are_not_sealed() {
    let mut file = Training::new(3.0, 1e-6).unwrap().on_csv(&schema(), table()).unwrap();
    file.model.weights[0] = f64::NAN;
    assert_eq!(ModelFile::seal(file.model, file.certificate).unwrap_err().kind(), ErrorKind::NotFinite);
}

/// Rows that are spooled give the model of rows in memory bit for bit, under a seed, for every algorithm: rows of several blocks and
/// buckets, some of them null records.
fn spooled_rows_train_the_same_models(text: &str, sparse: bool) {
    let text = text.replace("max = 30", "max = 30\non_missing = 'neutral'");
    let encoder = Encoder::new(&Schema::parse("schema.toml", &text).unwrap(), Encoding::default()).unwrap();
    assert_eq!(encoder.prefers_sparse(), sparse);
    let row = |i: u32| {
        let visits = if i % 50 == 7 { String::new() } else { (i % 31).to_string() };
        format!("{visits},{},t{}\n", if i % 31 > 15 { "yes" } else { "no" }, i % 40)
    };
    let rows: String = (0..20_000).map(row).collect();
    let table = format!("visits,buys,town\n{rows}");
    let records = |memory| {
        let input = Input::from_bytes("people.csv", table.clone().into_bytes());
        let room = Room { memory, ..Room::default() };
        let (rows, _) = Held::<f64>::read(input, &encoder, &CsvOptions::default(), &room).unwrap();
        assert_eq!(matches!(rows, Held::Spool(_)), memory == 0);
        Records { encoder: encoder.clone(), rows, tried: None }
    };
    for entry in catalogue::ALGORITHMS {
        let training = Training::new(3.0, 1e-6).unwrap().by(entry.name).unwrap();
        let [memory, spool] = [u64::MAX, 0].map(|memory| {
            let control = &mut Control::default();
            training.on_records(records(memory), &mut SeededRng::new(1), control).unwrap().file
        });
        assert_eq!(memory, spool, "{} {sparse}", entry.name);
    }
}

/// Curves that are computed when rows are read give the models of stored and of spooled ones: algorithms that read them so, and
/// others.
#[test]
fn curves_train_the_models_of_stored_rows() {
    let encoder = Encoder::new(&schema(), Encoding::default()).unwrap();
    let mapped = encoder.with_map(FeatureMap::curves(20)).unwrap();
    let row = |i: u32| format!("{},{}\n", i % 31, if (10..21).contains(&(i % 31)) { "yes" } else { "no" });
    let table = format!("visits,buys\n{}", (0..3000).map(row).collect::<String>());
    let input = || Input::from_bytes("people.csv", table.clone().into_bytes());
    let records = |kind: u32| {
        let room = Room { memory: if kind == 0 { 0 } else { u64::MAX }, ..Room::default() };
        let rows = if kind == 2 {
            Held::<f64>::read(input(), &mapped, &CsvOptions::default(), &room).unwrap().0
        } else {
            let read = HeldCoordinates::<f64>::read(input(), &encoder, &CsvOptions::default(), &room);
            read.unwrap().0.encode(&mapped, Workers::ONE, &room).unwrap()
        };
        let found = (matches!(rows, Held::Spool(_)), matches!(rows, Held::Curves(_)), matches!(rows, Held::Memory(_)));
        assert_eq!(found, (kind == 0, kind == 1, kind == 2));
        Records { encoder: mapped.clone(), rows, tried: None }
    };
    for name in ["obj-pert", "noisy-moments", "dp-newton", "bolt-on-convex", "dp-sgd", "dp-gd"] {
        let training = Training::new(3.0, 1e-6).unwrap().by(name).unwrap();
        let [spooled, curves, stored] = [0, 1, 2].map(|kind| {
            let control = &mut Control::default();
            training.on_records(records(kind), &mut SeededRng::new(1), control).unwrap().file
        });
        assert_eq!(curves, stored, "{name}");
        assert_eq!(curves, spooled, "{name}");
    }
}

#[test]
fn dense_spooled_rows_train_the_same_models() {
    spooled_rows_train_the_same_models(SCHEMA, false);
}

#[test]
fn sparse_spooled_rows_train_the_same_models() {
    let towns: Vec<String> = (0..40).map(|i| format!("'t{i}'")).collect();
    let columns = format!("{SCHEMA}\n[columns.town]\ntype = 'categorical'\ncategories = [{}]", towns.join(", "));
    spooled_rows_train_the_same_models(&columns, true);
}

/// A unit's share of a pure guarantee allows less noise for few features: `auto` takes it though there is a delta.
#[test]
fn auto_for_units_loses_no_more_than_without_a_delta() {
    let shape = Shape { n: 1500, dim: 4, sparse: false };
    let task = Task { loss: LossKind::Logistic, classes: 2 };
    let loss = |delta| {
        let training = Training::new(1.0, delta).unwrap().per_unit("id", 5);
        training.recipe(task, shape).unwrap().advice.unwrap().expected_loss
    };
    assert_eq!(loss(1e-3), loss(0.0));
}

/// The class depends on whether a number is in the middle of its range, which no line tells.
#[test]
fn auto_makes_curves_and_a_stated_map_is_used() {
    let row = |i: u32| format!("{},{}\n", i % 31, if (10..21).contains(&(i % 31)) { "yes" } else { "no" });
    let table = format!("visits,buys\n{}", (0..3000).map(row).collect::<String>());
    let right = |training: &Training| {
        let input = Input::from_bytes("people.csv", table.clone().into_bytes());
        let file = training.on_csv(&schema(), input).unwrap();
        assert!(verify::model(&file, verify::WORK).unwrap().epsilon <= 3.0);
        let mut row = dp_data::encode::RowBuffer::new(&file.model.encoder);
        let mut predicted = |visits: u32| {
            file.model.encoder.encode_row(|_| dp_data::encode::Cell::Number(visits.into()), None, &mut row).unwrap();
            matches!(file.model.predict(&row), Some(Prediction::Class { name: "yes", .. }))
        };
        let right = (0..31).filter(|visits| predicted(*visits) == (10..21).contains(visits)).count();
        (file.model.encoder.encoding().map.cosines, right)
    };
    let auto = Training::new(3.0, 1e-6).unwrap();
    let (cosines, right_by_curves) = right(&auto);
    assert!(cosines == 6 && right_by_curves >= 28, "{cosines} {right_by_curves}");
    let (cosines, right_by_a_line) = right(&auto.clone().with_map(FeatureMap::LINEAR));
    assert!(cosines == 0 && right_by_a_line <= 24, "{cosines} {right_by_a_line}");
    let stated = auto.by("dp-sgd").unwrap().with_map(FeatureMap::curves(3));
    assert_eq!(right(&stated).0, 3);
}

#[test]
fn a_model_predicts() {
    let file = Training::new(3.0, 1e-6).unwrap().on_csv(&schema(), table()).unwrap();
    let mut row = dp_data::encode::RowBuffer::new(&file.model.encoder);
    let mut predicted = |visits: &str| {
        file.model.encoder.encode_row(|_| visits.as_bytes(), None, &mut row).unwrap();
        match file.model.predict(&row) {
            Some(Prediction::Class { name, .. }) => name.to_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([predicted("0"), predicted("30")], ["no", "yes"]);
}

#[test]
fn what_is_refused_is_named() {
    assert!(matches!(Training::new(-1.0, 0.0), Err(TrainError::Recipe(_))));
    let training = Training::new(1.0, 1e-6).unwrap();
    assert!(matches!(training.clone().by("nonesuch"), Err(TrainError::Algorithm(name)) if name == "nonesuch"));
    let lists = training.clone().under(AdjacencyKind::ChangeListLabels).on_csv(&schema(), table());
    assert!(matches!(lists, Err(TrainError::Relation { .. })));
    let unreviewed = Schema::parse("schema.toml", &format!("{SCHEMA}\nreviewed = false")).unwrap();
    assert!(matches!(training.on_csv(&unreviewed, table()), Err(TrainError::Data(_))));
}

#[test]
fn a_seeded_run_claims_nothing() {
    let encoder = Encoder::new(&schema(), Encoding::default()).unwrap();
    let examples = load_csv::<f64>(table(), &encoder, &CsvOptions::default()).unwrap().examples;
    let rng = &mut SeededRng::new(1);
    let file = Training::new(1.0, 1e-6).unwrap().on_examples(encoder, examples, rng).unwrap();
    let refused = verify::model(&file, verify::WORK).unwrap_err();
    assert_eq!((refused.kind(), refused.code()), (ErrorKind::NotPrivate, "verify.not_private"));
}

#[test]
fn losses_fit_their_labels() {
    let two = Label::two_classes("y", vec!["1".into()], vec!["0".into()], Others::Error);
    let several = Label::classes("y", ["a", "b", "c"].map(String::from).to_vec());
    let number = Label::number("y", dp_data::schema::LabelRange { min: 0.0, max: 1.0 });
    for (label, classes) in [(two, Some(2)), (several, Some(3)), (number, None)] {
        assert_eq!(usual_loss(&label).unwrap().classes(), classes);
    }
}
