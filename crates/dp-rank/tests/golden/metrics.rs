use dp_rank::Ranking;
use dp_rank::metrics::{Cutoff, average_precision, average_precision_at, mean_ndcg_letor, ndcg, ndcg_letor, precision};
use serde_json::Value;

use super::{for_each_case, list, vector};

type AtCutoff = fn(&Ranking, Cutoff) -> f64;

#[test]
fn metrics() {
    for_each_case("metrics", |case| {
        let labels = list(&case.input["labels"], |v| v.as_u64().and_then(|label| u32::try_from(label).ok()));
        let ranking = Ranking::new(&vector(&case.input["scores"]), &labels).unwrap();
        let order: Vec<u64> = ranking.order().iter().map(|&document| document as u64).collect();
        assert_eq!(order, list(&case.out["order"], Value::as_u64), "{}", case.id);

        let by_cutoff: [(&str, AtCutoff); 4] =
            [("ndcg_std", ndcg), ("ndcg_letor", ndcg_letor), ("ap_at", average_precision_at), ("precision", precision)];
        for (name, metric) in by_cutoff {
            let values = case.out[name].as_object().unwrap();
            assert!(!values.is_empty(), "{}: no values of {name}", case.id);
            for (k, expected) in values {
                let k = Cutoff::new(k.parse().unwrap()).unwrap();
                case.compare(&format!("{name}@{}", k.get()), expected, metric(&ranking, k));
            }
        }
        case.check("mean_ndcg_letor", mean_ndcg_letor(&ranking));
        case.check("ap", average_precision(&ranking));
    });
}
