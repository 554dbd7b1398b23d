//! `dp plan`: the expected cost of privacy before data is read.

use serde_json::Value;

use crate::support::Workplace;

const SCHEMA: &str = "\
[label]
column = 'again'
positive = 'yes'
negative = 'no'

[columns.age]
type = 'numeric'
min = 0
max = 100
reviewed = false

[columns.ward]
type = 'categorical'
categories = ['a', 'b', 'c']
";

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn more_epsilon_costs_less_and_needs_fewer_rows() {
    let place = Workplace::new();
    let said: Value = place.dp(&words("plan --rows 20000 --features 30 --epsilon 1,0.1,5,1 --out p.svg --json")).json();
    assert_eq!(
        (&said["schema"], &said["loss"], &said["n_public"]),
        (&"dp.plan/1".into(), &"logistic".into(), &true.into())
    );
    let forecasts = said["forecasts"].as_array().unwrap();
    assert_eq!(forecasts.iter().map(|forecast| number(&forecast["epsilon"])).collect::<Vec<_>>(), [0.1, 1.0, 5.0]);
    for pair in forecasts.windows(2) {
        let [less, more] = pair else { panic!() };
        for figure in ["expected_loss", "expected_loss_without_delta", "rows_needed"] {
            assert!(number(&more[figure]) < number(&less[figure]), "{figure}: {pair:?}");
        }
        assert!(number(&more["two_releases"]["epsilon"]) > number(&less["two_releases"]["epsilon"]));
    }
    for forecast in forecasts {
        assert_eq!((&forecast["delta"], &forecast["dim"]), (&1e-6.into(), &31.into()));
        let [low, high] = [0, 1].map(|end| number(&forecast["expected_loss_range"][end]));
        let expected = number(&forecast["expected_loss"]);
        assert!(low < expected && expected < high);
        // The needed rows lose what was asked for.
        let rows = forecast["rows_needed"].to_string();
        let epsilon = forecast["epsilon"].to_string();
        let again: Value =
            place.dp(&["plan", "--rows", &rows, "--features", "30", "--epsilon", &epsilon, "--json"]).json();
        let loss = number(&again["forecasts"][0]["expected_loss"]);
        assert!(loss <= 0.05 && loss > 0.04, "{loss}");
        let both = number(&forecast["two_releases"]["epsilon"]) / number(&forecast["epsilon"]);
        assert!(both > 1.3 && both <= 2.0, "{both}");
    }
    let picture = place.read("p.svg");
    assert!(picture.contains("output perturbation") && picture.contains("range of auto"));
    let text = place.dp(&words("plan --rows 20000 --features 30 --target-loss 0.01")).ok();
    assert!(text.contains("rows for 1%") && text.lines().any(|line| line.starts_with("0.1 ")), "{text}");
}

/// The forecast is that of the dry run for the same numbers.
#[test]
fn a_schema_gives_features_and_loss_as_in_training() {
    let place = Workplace::new();
    place.write("s.toml", SCHEMA);
    place.write("r.toml", SCHEMA.replace("reviewed = false\n", ""));
    place.write("d.csv", "age,ward,again\n1,a,yes\n");
    for (rows, epsilon, more) in
        [("900", "0.5", ""), ("900", "2", ""), ("90000", "1", " --delta 0"), ("5000", "1", " --loss huber-svm")]
    {
        let plan = format!("plan --rows {rows} --schema s.toml --epsilon {epsilon}{more} --json");
        let plan: Value = place.dp(&words(&plan)).json();
        let dry = format!(
            "train --data d.csv --schema r.toml --epsilon {epsilon}{more} --dry-run --n {rows} --out m.json --anyway --json"
        );
        let dry: Value = place.dp(&words(&dry)).json();
        let forecast = &plan["forecasts"][0];
        assert_eq!(forecast["dim"], dry["dim"]);
        assert_eq!(forecast["expected_loss"], dry["choice"]["expected_loss"]);
        assert_eq!(forecast["expected_loss_range"], dry["choice"]["expected_loss_range"]);
        assert_eq!(plan["loss"], dry["loss"]);
    }
}

#[test]
fn units_of_several_rows_cost_more() {
    let place = Workplace::new();
    let loss = |more: &str| {
        let said: Value = place.dp(&words(&format!("plan --rows 6000 --features 12 --epsilon 1{more} --json"))).json();
        number(&said["forecasts"][0]["expected_loss"])
    };
    let (one, full, some) = (loss(""), loss(" --max-rows 3"), loss(" --max-rows 5 --units 2000"));
    assert!(one < full && full < some, "{one} {full} {some}");
    let text = place.dp(&words("plan --rows 6000 --features 12 --max-rows 5 --units 2000")).ok();
    assert!(text.starts_with("6000 rows of 2000 units with at most 5 each"), "{text}");
}

#[test]
fn several_classes_and_numbers_have_their_losses() {
    let place = Workplace::new();
    for (more, loss) in [
        ("--classes 2", "logistic"),
        ("--classes 4", "softmax:4"),
        ("--loss softmax --classes 4", "softmax:4"),
        ("--loss log-cosh", "log-cosh:0.5"),
        ("--loss squared --adjacency replace-one", "squared"),
    ] {
        let said: Value = place.dp(&words(&format!("plan --rows 5000 --features 9 --epsilon 1 {more} --json"))).json();
        assert_eq!(said["loss"], loss);
    }
}

/// A table at the limits has a forecast, if not a plan.
#[test]
fn the_largest_tables_have_a_forecast() {
    let place = Workplace::new();
    for shape in ["--rows 1000000000000 --features 500 --max-rows 1000", "--rows 1 --features 1000000"] {
        let said = place.dp(&words(&format!("plan {shape} --epsilon 1 --out p.svg --force --json"))).json();
        let loss = number(&said["forecasts"][0]["expected_loss"]);
        assert!((0.0..=1.0).contains(&loss), "{said}");
    }
}

#[test]
fn nonsense_is_refused_with_the_flag() {
    let place = Workplace::new();
    let forced = place.dp(&["plan", "--rows", "100", "--features", "3", "--force"]);
    assert!(forced.code == 2 && forced.stderr.contains("--out"), "{forced:?}");
    place.write("s.toml", SCHEMA);
    place.write("old.svg", "");
    for (typed, exit, code, says) in [
        ("--rows 100 --features 3 --epsilon 0", 2, "usage.value", "--epsilon"),
        ("--rows 100 --features 3 --delta 2", 2, "usage.value", "--delta"),
        ("--rows 100 --features 3 --target-loss 0", 2, "usage.value", "--target-loss"),
        ("--rows 18446744073709551615 --features 3", 2, "usage.value", "--rows"),
        ("--rows 100 --features 18446744073709551615", 2, "usage.value", "--features"),
        ("--rows 100 --features 3 --loss softmax", 2, "usage.value", "--classes"),
        ("--rows 100 --features 3 --loss logistic --classes 3", 2, "usage.value", "--loss"),
        ("--rows 100 --schema s.toml --loss softmax", 2, "usage.value", "--loss"),
        ("--rows 100 --features 3 --max-rows 5 --units 3", 2, "usage.value", "--rows"),
        ("--rows 100 --features 3 --max-rows 2000000", 2, "usage.value", "--max-rows"),
        ("--rows 100 --features 3 --adjacency change-list-labels", 4, "privacy.adjacency", "--adjacency"),
        ("--rows 100 --features 3 --out old.svg", 1, "output.exists", "old.svg"),
        ("--rows 100 --features 3 --out plan.png", 2, "usage.value", ".svg"),
    ] {
        place.dp(&words(&format!("plan {typed}"))).fails(exit, code).says(says);
    }
    for (typed, flag) in [
        ("--rows 100", "--features"),
        ("--features 3", "--rows"),
        ("--rows 0 --features 3", "--rows"),
        ("--rows 100 --features 3 --schema s.toml", "--schema"),
    ] {
        let run = place.dp(&words(&format!("plan {typed}")));
        assert_eq!(run.code, 2);
        run.says(flag);
    }
}
