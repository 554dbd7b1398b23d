//! `dp account batch`: JSON lines in, JSON lines out, in order, even if some of them are invalid.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;

use crate::support::{Run, Workplace};
use proptest::prelude::*;
use serde_json::{Value, json};

use dp::accounting::Line;
use dp::accounting::Question;
use dp::accounting::solve;

fn batch(place: &Workplace, input: &[u8]) -> Run {
    place.dp_with_input(&["account", "batch"], input)
}

fn values(run: &Run) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[test]
fn answers_stand_in_the_order_of_the_questions() {
    let place = Workplace::new();
    let questions: String = (0..1000)
        .map(|i| match i % 4 {
            0 => json!({"id": i, "job": "dpsgd", "noise_multiplier": 1.1, "sampling_rate": 0.01, "steps": 10 * i + 1, "delta": 1e-5}),
            1 => json!({"id": i, "job": "gaussian", "epsilon": 1.0, "delta": 1e-6, "steps": i}),
            2 => json!({"id": i, "job": "laplace", "noise_multiplier": 3.0, "steps": i}),
            _ => json!({"id": i, "event": {"type": "zcdp", "rho": 0.1}, "delta": 1e-6}),
        })
        .map(|question| format!("{question}\n"))
        .collect();
    let run = batch(&place, questions.as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stderr);
    let answers = values(&run);
    assert_eq!(answers.len(), 1000);
    for (i, answer) in answers.iter().enumerate() {
        assert_eq!(answer["id"], i);
        assert!(answer["epsilon"].as_f64().unwrap() <= answer["epsilon_upper"].as_f64().unwrap(), "{answer}");
        assert!(answer["epsilon_lower"].is_number() && answer["adjacency"].is_string(), "{answer}");
    }
    // The same, one after another and from a file, bit for bit.
    place.write("questions.jsonl", &questions);
    let again = place.dp(&["account", "batch", "questions.jsonl", "--json"]);
    assert_eq!((again.code, again.stdout), (0, run.stdout));
}

#[test]
fn one_bad_line_does_not_stop_the_rest() {
    let place = Workplace::new();
    let good = r#"{"job":"gdp","mu":1,"delta":1e-6}"#;
    let mut input = b"\xef\xbb\xbf".to_vec();
    // The code and the field of the expected error, if any.
    type Expected = Option<(&'static str, &'static str)>;
    let lines: [(&[u8], Expected); 16] = [
        (good.as_bytes(), None),
        (b"{\"job\":\"gdp\",", Some(("account.line", ""))),
        (b"\xff\xfe", Some(("account.line", ""))),
        (br#"{"job":"gdp","mu":"1","delta":1e-6}"#, Some(("account.line", "mu"))),
        (br#"{"job":"gdp","mu":1,"mu":2,"delta":1e-6}"#, Some(("account.line", ""))),
        (br#"{"job":"gdp","mu":1,"dleta":1e-6}"#, Some(("account.line", "dleta"))),
        (br#"{"job":"gdp","mu":1,"delta":NaN}"#, Some(("account.line", ""))),
        (br#"{"job":"gdp","mu":1,"delta":1e999}"#, Some(("account.line", ""))),
        (br#"{"job":"gdp","mu":-1,"delta":1e-6}"#, Some(("usage.value", "mu"))),
        (br#"{"job":"gdp","mu":1}"#, Some(("usage.missing", "delta"))),
        (br#"{"job":"gaussian","noise_multiplier":1,"epsilon":0.01,"delta":1e-9}"#, Some(("account.unreachable", "epsilon"))),
        (br#"{"event":{"type":"nothing"},"delta":1e-6}"#, Some(("account.event", "event"))),
        (br#"{"job":"dpsgd","noise_multiplier":1,"sampling_rate":0.1,"steps":1,"delta":1e-6,"sampling":"without-replacement","adjacency":"add-remove"}"#,
            Some(("privacy.adjacency", "adjacency"))),
        (br#"{"job":"gdp","mu":1,"delta":1e-6,"accountant":"exakt"}"#, Some(("account.line", "accountant"))),
        (br#"{"job":"dpsgd","noise_multiplier":1,"sampling_rate":0.1,"steps":1,"delta":1e-6,"accountant":"gdp"}"#,
            Some(("account.unsupported", "accountant"))),
        (good.as_bytes(), None),
    ];
    for (line, _) in &lines {
        input.extend_from_slice(line);
        input.extend_from_slice(b"\r\n  \r\n");
    }
    let run = batch(&place, &input);
    assert_eq!(run.code, 3, "{run:#?}");
    run.says("14 of 16 questions");
    let answers = values(&run);
    assert_eq!(answers.len(), lines.len(), "{run:#?}");
    for (i, (answer, (line, error))) in answers.iter().zip(&lines).enumerate() {
        let line = String::from_utf8_lossy(line);
        match error {
            None => assert!(answer["epsilon"].as_f64().unwrap() > 4.8, "{answer}"),
            Some((code, field)) => {
                assert_eq!(answer["error"]["code"], *code, "{line}: {answer}");
                assert_eq!(answer["error"]["where"]["line"], 2 * i + 1, "{line}: {answer}");
                assert_eq!(answer["error"]["where"]["field"].as_str().unwrap_or(""), *field, "{line}: {answer}");
                assert!(answer["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{answer}");
            }
        }
    }
}

#[test]
fn a_line_that_is_too_long_is_answered_with_an_error() {
    let place = Workplace::new();
    let mut input = format!("{{\"id\":\"{}\"}}\n", "x".repeat(5 << 20)).into_bytes();
    input.extend_from_slice(br#"{"job":"gdp","mu":1,"delta":1e-6}"#);
    let run = batch(&place, &input);
    let answers = values(&run);
    assert_eq!((run.code, answers.len()), (3, 2));
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("longer than 4 MiB"));
    assert!(answers[1]["epsilon"].is_number());
}

#[test]
fn errors_keep_the_name_of_their_question() {
    let place = Workplace::new();
    let run = batch(&place, b"{\"id\":\"a \\\"b\\\"\",\"job\":\"x\"}\n{\"id\":2.5,\"job\":\"gdp\"}");
    let answers = values(&run);
    assert_eq!((answers[0]["id"].as_str(), answers[1]["id"].as_f64()), (Some("a \"b\""), Some(2.5)));
    assert!(answers.iter().all(|answer| answer["error"].is_object()));
}

#[test]
fn nothing_in_nothing_out() {
    let place = Workplace::new();
    for input in [&b""[..], b"\n\n \r\n", b"\xef\xbb\xbf"] {
        let run = batch(&place, input);
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""), "{input:?}");
    }
    place.dp(&["account", "batch", "missing.jsonl"]).fails(1, "account.read").says("missing.jsonl");
}

#[test]
fn who_waits_for_an_answer_gets_it_before_asking_again() {
    let place = Workplace::new();
    let mut child =
        place.command(&["account", "batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("dp runs");
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for i in 0..3 {
        writeln!(stdin, "{{\"id\":{i},\"job\":\"gdp\",\"mu\":1,\"delta\":1e-6}}").unwrap();
        stdin.flush().unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["id"], i);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let place = Workplace::new();
    let line = "{\"job\":\"gdp\",\"mu\":1,\"delta\":1e-6}\n";
    place.write("questions.jsonl", line.repeat(20_000));
    let mut child = place
        .command(&["account", "batch", "questions.jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dp runs");
    let mut answer = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains("epsilon"), "{answer}");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

fn golden() -> Vec<Value> {
    let folder = std::env::var_os("DP_GOLDEN_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden"), PathBuf::from);
    let path = folder.join("accountant.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Value = serde_json::from_str(&text).expect("JSON");
    file["cases"].as_array().expect("cases").clone()
}

/// Converts a golden case to a question.
fn question(case: &Value) -> Option<Value> {
    let inputs = &case["inputs"];
    let step = |phase: &Value| {
        json!({"type": "self-composed", "count": phase["steps"], "event": {"type": "poisson-sampled",
            "sampling_rate": phase["sampling_rate"],
            "event": {"type": "gaussian", "std_dev": phase["noise_multiplier"], "sensitivity": 1.0}}})
    };
    let mut question = match case["kind"].as_str()? {
        "dpsgd_epsilon" | "dpsgd_sigma" => inputs.clone(),
        "dpsgd_rdp_epsilon_best_order" => {
            let mut question = inputs.clone();
            question["accountant"] = "rdp".into();
            question
        }
        "dpsgd_epsilon_heterogeneous" => {
            let phases: Vec<Value> = inputs["phases"].as_array()?.iter().map(step).collect();
            return Some(json!({"id": case["id"], "event": {"type": "composed", "events": phases},
                "delta": inputs["delta"], "adjacency": "add-remove"}));
        }
        _ => return None,
    };
    question["job"] = "dpsgd".into();
    question["id"] = case["id"].clone();
    question["adjacency"] = "add-remove".into();
    Some(question)
}

#[test]
fn golden_trainings() {
    let cases: Vec<(Value, Value)> =
        golden().into_iter().filter_map(|case| question(&case).map(|question| (case, question))).collect();
    assert!(cases.len() >= 10 || std::env::var_os("DP_GOLDEN_DIR").is_some(), "{} cases", cases.len());
    let input: String = cases.iter().map(|(_, question)| format!("{question}\n")).collect();
    let run = batch(&Workplace::new(), input.as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    for ((case, _), answer) in cases.iter().zip(values(&run)) {
        let (expected, number) = (&case["expected"], |key: &str| answer[key].as_f64().unwrap());
        let wanted = |key: &str| expected[key].as_f64().unwrap();
        assert_eq!(answer["id"], case["id"]);
        match case["kind"].as_str().unwrap() {
            "dpsgd_rdp_epsilon_best_order" => {
                // Our accountant takes the better of two conversions at each order, which may be slightly tighter.
                let ratio = number("epsilon") / wanted("epsilon");
                assert!((0.99..1.0 + 1e-6).contains(&ratio), "{case} {answer}");
            }
            "dpsgd_sigma" => {
                let noise = number("noise_multiplier");
                assert!(noise >= wanted("lower"), "{case} {answer}");
                assert!(noise <= wanted("value") * (1.0 + 1e-4), "{case} {answer}");
            }
            _ => {
                assert!(number("epsilon_upper") >= wanted("lower"), "{case} {answer}");
                assert!(number("epsilon_lower") <= wanted("upper"), "{case} {answer}");
                let (relative, absolute) = (case["tol"]["rel"].as_f64().unwrap(), case["tol"]["abs"].as_f64().unwrap());
                let allowed = absolute + relative * wanted("value");
                assert!((number("epsilon") - wanted("value")).abs() <= allowed, "{case} {answer}");
            }
        }
    }
}

/// A value of any kind, as a faulty program might send it.
fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-320.0f64..20.0).prop_map(|exponent| Value::from(10f64.powf(exponent))),
        prop::sample::select(vec!["dpsgd", "poisson", "rdp", "auto", "exact", "1.0", "add-remove", "epsilon", ""])
            .prop_map(Value::from),
        Just(json!([])),
        Just(json!({"type": "gaussian", "std_dev": 1e-200, "sensitivity": 1e200})),
    ]
}

fn any_question() -> impl Strategy<Value = Value> {
    let keys = [
        "noise_multiplier",
        "sampling_rate",
        "steps",
        "batch_size",
        "records",
        "epochs",
        "sampling",
        "epsilon",
        "delta",
        "solve",
        "adjacency",
        "n_public",
        "accountant",
        "dim",
        "buckets",
        "noise",
        "step_epsilon",
        "step_delta",
        "rho",
        "mu",
        "event",
        "job",
        "id",
    ];
    let valid = prop::sample::select(vec![
        json!({"job": "dpsgd", "noise_multiplier": 1.1, "sampling_rate": 0.01, "steps": 100, "delta": 1e-5}),
        json!({"job": "dpsgd", "noise_multiplier": 1.1, "batch_size": 10, "records": 1000, "epochs": 3, "delta": 1e-5}),
        json!({"job": "gaussian", "epsilon": 1.0, "delta": 1e-5}),
        json!({"job": "laplace-ball", "dim": 3, "noise_multiplier": 2.0}),
        json!({"job": "randomized-response", "buckets": 4, "noise": 0.3, "steps": 2, "delta": 1e-5}),
        json!({"job": "pure", "step_epsilon": 0.1, "steps": 10, "delta": 1e-5}),
        json!({"job": "approximate", "step_epsilon": 0.1, "step_delta": 1e-8, "delta": 1e-5}),
        json!({"job": "zcdp", "rho": 0.1, "delta": 1e-5}),
        json!({"job": "gdp", "mu": 1.0, "epsilon": 1.0}),
        json!({"event": {"type": "laplace", "scale": 1.0, "sensitivity": 1.0}, "epsilon": 0.5}),
    ]);
    let edits = prop::collection::vec((prop::sample::select(keys.to_vec()), prop::option::of(any_value())), 0..3);
    (valid, edits).prop_map(|(mut question, edits)| {
        for (key, value) in edits {
            match value {
                Some(value) => question[key] = value,
                None => drop(question.as_object_mut().map(|members| members.remove(key))),
            }
        }
        question
    })
}

/// Every line gives a failure with a message, or an ordered interval.
fn check(line: &[u8]) -> Result<(), TestCaseError> {
    match Line::parse(line).request.and_then(Question::new).and_then(|question| solve::answer(&question)) {
        Err(failure) => prop_assert!(!failure.message.is_empty() && failure.message.len() < 2000),
        Ok(answer) => {
            let text = String::from_utf8_lossy(line);
            prop_assert!(answer.epsilon_lower <= answer.epsilon_upper, "{text}: {answer:?}");
            prop_assert!(answer.epsilon == answer.epsilon_upper && answer.epsilon >= 0.0, "{text}: {answer:?}");
            prop_assert!((0.0..=1.0).contains(&answer.delta), "{text}: {answer:?}");
            prop_assert!(answer.target_epsilon.is_none_or(|target| answer.epsilon <= target), "{text}: {answer:?}");
            let json = serde_json::to_string(&answer).unwrap();
            prop_assert!(!json.contains("null"), "{json}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_question_is_answered_or_refused(question in any_question()) {
        check(question.to_string().as_bytes())?;
    }

    #[test]
    fn any_bytes_are_answered_or_refused(
        question in any_question(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut line = question.to_string().into_bytes();
        for (place, byte) in edits {
            let place = place.index(line.len());
            line[place] = byte;
        }
        check(&line)?;
    }

    #[test]
    fn any_arguments_are_understood_or_refused(
        job in prop::sample::select(vec!["dpsgd", "gaussian", "laplace", "pure", "gdp", "nonsense"]),
        arguments in prop::collection::vec((
            prop::sample::select(vec![
                "--noise-multiplier", "--sampling-rate", "--steps", "--epsilon", "--delta", "--epochs", "--batch-size",
                "--records", "--step-epsilon", "--mu", "--solve", "--adjacency", "--accountant",
            ]),
            prop_oneof![
                prop::sample::select(vec!["0", "-1", "1e400", "NaN", "-inf", "", "1e-5", "0.01", "100", "rdp", "steps", "replace-one"])
                    .prop_map(str::to_owned),
                any::<f64>().prop_map(|number| number.to_string()),
                ".{0,8}",
            ],
        ), 0..6),
    ) {
        use clap::Parser;
        use dp_cli::args::{Cli, Command};
        use dp_cli::commands::account::request;
        let flags = arguments.iter().flat_map(|(flag, value)| [(*flag).to_owned(), value.clone()]);
        let typed = ["dp", "account", job].into_iter().map(str::to_owned).chain(flags);
        if let Ok(cli) = Cli::try_parse_from(typed)
            && let Command::Account(args) = cli.command
            && let Ok(Some((request, _))) = request::from_args(&args.job)
            && let Ok(question) = Question::new(request)
            && let Ok(answer) = solve::answer(&question)
        {
            prop_assert!(answer.epsilon_lower <= answer.epsilon_upper, "{answer:?}");
        }
    }
}
