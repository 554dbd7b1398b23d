//! Values computed elsewhere: the cases `metrics` of `ranking.json` in the directory `DP_GOLDEN_DIR`, or in the tree's
//! own copy.

use std::path::PathBuf;

use dp_rank::Ranking;
use dp_rank::metrics::{Cutoff, average_precision, average_precision_at, mean_ndcg_letor, ndcg, ndcg_letor, precision};
use serde_json::Value;

type AtCutoff = fn(&Ranking, Cutoff) -> f64;

fn load() -> Value {
    let directory = std::env::var_os("DP_GOLDEN_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden")), PathBuf::from);
    let path = directory.join("ranking.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn list<T>(value: &Value, element: impl Fn(&Value) -> Option<T>) -> Vec<T> {
    value.as_array().unwrap().iter().map(|v| element(v).unwrap()).collect()
}

#[test]
fn metrics() {
    let file = load();
    let mut cases = 0;
    for case in file["cases"].as_array().unwrap().iter().filter(|case| case["fn"] == "metrics") {
        cases += 1;
        let (id, input, out) = (&case["id"], &case["in"], &case["out"]);
        let (relative, absolute) = (case["rtol"].as_f64().unwrap(), case["atol"].as_f64().unwrap());
        let labels = list(&input["labels"], |v| v.as_u64().and_then(|label| u32::try_from(label).ok()));
        let ranking = Ranking::new(&list(&input["scores"], Value::as_f64), &labels).unwrap();
        let order: Vec<u64> = ranking.order().iter().map(|&document| document as u64).collect();
        assert_eq!(order, list(&out["order"], Value::as_u64), "{id}");

        let check = |name: &str, expected: &Value, got: f64| {
            let expected = expected.as_f64().unwrap_or_else(|| panic!("{id}: no number for {name}"));
            let tolerance = absolute + relative * expected.abs();
            assert!((got - expected).abs() <= tolerance, "{id} {name}: got {got}, expected {expected}");
        };
        let by_cutoff: [(&str, AtCutoff); 4] =
            [("ndcg_std", ndcg), ("ndcg_letor", ndcg_letor), ("ap_at", average_precision_at), ("precision", precision)];
        for (name, metric) in by_cutoff {
            let values = out[name].as_object().unwrap();
            assert!(!values.is_empty(), "{id}: no values of {name}");
            for (k, expected) in values {
                let k = Cutoff::new(k.parse().unwrap()).unwrap();
                check(&format!("{name}@{}", k.get()), expected, metric(&ranking, k));
            }
        }
        check("mean_ndcg_letor", &out["mean_ndcg_letor"], mean_ndcg_letor(&ranking));
        check("ap", &out["ap"], average_precision(&ranking));
    }
    // Another file need not have cases of this function, but must have some.
    assert!(!file["cases"].as_array().unwrap().is_empty());
    assert!(cases > 0 || std::env::var_os("DP_GOLDEN_DIR").is_some(), "no cases of metrics");
}
