//! Metrics of single features on MQ2008, for those who have the data: `DP_LETOR_DIR` names the folder that holds
//! `mq2008/S1.txt.xz` and its neighbours. The data are not part of the tree.

use std::path::PathBuf;

use dp_data::read::Input;
use dp_rank::Ranking;
use dp_rank::metrics::{Cutoff, average_precision, mean_over, ndcg, ndcg_letor};
use dp_rank::read::{ListOptions, SplitLists, load_letor};

use super::for_each_case;

#[test]
fn mq2008_single_feature() {
    let Some(directory) = std::env::var_os("DP_LETOR_DIR").map(PathBuf::from) else {
        eprintln!("SKIPPED: mq2008_single_feature needs DP_LETOR_DIR, the folder that holds mq2008/");
        return;
    };
    for_each_case("mq2008_single_feature", |case| {
        let path = directory.join(case.input["file"].as_str().unwrap());
        let input = Input::open(path.to_str().unwrap()).unwrap();
        let options = ListOptions { features: Some(46), split_lists: SplitLists::Refuse, ..Default::default() };
        let lists = load_letor(input, &options).unwrap().lists;
        let feature = usize::try_from(case.input["feature"].as_u64().unwrap()).unwrap() - 1;
        let sign = if case.input["score"].as_str().unwrap().ends_with("lower first") { -1.0 } else { 1.0 };
        let rankings: Vec<Ranking> = lists
            .iter()
            .map(|list| {
                let scores: Vec<f64> = list.features().rows().map(|row| sign * row[feature]).collect();
                Ranking::new(&scores, list.grades()).unwrap()
            })
            .collect();
        case.check("queries", lists.len() as f64);
        case.check("docs", lists.documents() as f64);
        case.check("min_docs", lists.iter().map(|list| list.documents()).min().unwrap() as f64);
        case.check("max_docs", lists.longest() as f64);
        case.check("map", mean_over(&rankings, average_precision).unwrap());
        for (name, expected) in case.out.as_object().unwrap() {
            if let Some((kind, k)) = name.split_once('@') {
                let k = Cutoff::new(k.parse().unwrap()).unwrap();
                let metric = match kind {
                    "ndcg_letor" => ndcg_letor,
                    "ndcg_std" => ndcg,
                    other => panic!("an unknown metric: {other}"),
                };
                case.compare(name, expected, mean_over(&rankings, |list| metric(list, k)).unwrap());
            }
        }
    });
}
