//! Metrics of single features on MQ2008, if the data are available: `DP_LETOR_DIR` is the folder that contains `mq2008/S1.txt.xz`
//! to `S5.txt.xz`. The data are not part of the tree.

use std::path::PathBuf;

use dp_data::read::Input;
use dp_rank::loss::BayesRank;
use dp_rank::metrics::{Cutoff, average_precision, mean_over, ndcg, ndcg_letor};
use dp_rank::read::{ListOptions, SplitLists, load_letor};
use dp_rank::scorer::{Linear, LinearWorkspace};
use dp_rank::sensitivity::{Contributions, Gram, half_diameter, list_net};
use dp_rank::{QueryLists, Ranking};

use super::for_each_case;

fn lists(path: &std::path::Path) -> QueryLists {
    let input = Input::open(path.to_str().unwrap()).unwrap();
    let options = ListOptions { features: Some(46), split_lists: SplitLists::Refuse, ..Default::default() };
    load_letor(input, &options).unwrap().lists
}

/// Figures of the training lists of fold 1 at `θ = 0`, computed independently to three digits.
#[test]
fn label_sensitivities_at_the_start() {
    let Some(directory) = std::env::var_os("DP_LETOR_DIR").map(PathBuf::from) else {
        eprintln!("SKIPPED: label_sensitivities_at_the_start needs DP_LETOR_DIR, the folder that holds mq2008/");
        return;
    };
    let mut training = QueryLists::new(46, 2).unwrap();
    for part in 1..=4 {
        training.extend(&lists(&directory.join(format!("mq2008/S{part}.txt.xz")))).unwrap();
    }
    assert_eq!(training.len(), 628);
    let (scorer, theta) = (Linear::new(46).unwrap(), vec![0.0; 46]);
    let (mut workspace, mut values) = (LinearWorkspace::default(), Vec::new());
    let (mut ratios, mut largest, mut largest_of_list_net, mut published) = (0.0, 0.0_f64, 0.0_f64, 0.0_f64);
    for list in training.iter() {
        let gram = Gram::of(&scorer, &theta, list.features(), &mut workspace, &mut values);
        let scores = vec![0.0; list.documents()];
        let one = Contributions::new(BayesRank::TOP_1, &scores, &gram).unwrap();
        ratios += one.weighted() / one.triangle();
        largest = largest.max(one.weighted().min(one.covariance()));
        published = published.max(one.triangle());
        largest_of_list_net = largest_of_list_net.max(list_net(&gram, 2).diameter);
        assert!(one.bounds().diameter <= half_diameter(&gram) * (1.0 + 1e-9));
    }
    let near = |got: f64, expected: f64| assert!((got - expected).abs() < 0.0051, "{got} {expected}");
    near(ratios / 628.0, 0.61);
    near(largest, 1.86);
    near(published, 2.48);
    near(largest_of_list_net, 4.33);
}

#[test]
fn mq2008_single_feature() {
    let Some(directory) = std::env::var_os("DP_LETOR_DIR").map(PathBuf::from) else {
        eprintln!("SKIPPED: mq2008_single_feature needs DP_LETOR_DIR, the folder that holds mq2008/");
        return;
    };
    for_each_case("mq2008_single_feature", |case| {
        let lists = lists(&directory.join(case.input["file"].as_str().unwrap()));
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
