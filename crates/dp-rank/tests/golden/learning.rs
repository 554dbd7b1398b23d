use dp_rank::Features;
use dp_rank::loss::{BayesRank, ListMle, ListNet, LossBuffers, RankingLoss};
use dp_rank::metrics::Cutoff;
use dp_rank::plackett_luce::{log_probability, softmax};
use dp_rank::scorer::{Activation, Linear, LinearWorkspace, Mlp, MlpWorkspace, Scorer};
use serde_json::Value;

use super::{for_each_case, grades, list, matrix, vector};

fn loss(input: &Value) -> Box<dyn RankingLoss> {
    let k = Cutoff::new(usize::try_from(input["k"].as_u64().unwrap()).unwrap()).unwrap();
    match input["loss"].as_str().unwrap() {
        "listnet" => Box::new(ListNet::new(k)),
        "listmle" => Box::new(ListMle),
        "bayesrank" => Box::new(BayesRank::new(k)),
        other => panic!("an unknown loss: {other}"),
    }
}

#[test]
fn plackett_luce() {
    for_each_case("plackett_luce", |case| {
        let scores = vector(&case.input["scores"]);
        let prefix = list(&case.input["prefix"], |v| v.as_u64().and_then(|j| usize::try_from(j).ok()));
        let log = log_probability(&scores, &prefix).unwrap();
        case.check("log_prob", log);
        case.check("prob", log.exp());
        let mut top1 = vec![0.0; scores.len()];
        softmax(&scores, &mut top1);
        case.check_all("top1", &top1);
    });
}

#[test]
fn loss_scores() {
    for_each_case("loss_scores", |case| {
        let scores = vector(&case.input["scores"]);
        let mut gradient = vec![0.0; scores.len()];
        let labels = grades(&case.input["labels"]);
        let value = loss(case.input).evaluate(&scores, &labels, &mut LossBuffers::default(), &mut gradient);
        case.check("value", value);
        case.check_all("grad", &gradient);
    });
}

#[test]
fn linear_grad() {
    for_each_case("linear_grad", |case| {
        let (x, width) = matrix(&case.input["x"]);
        let features = Features::new(&x, width).unwrap();
        let theta = vector(&case.input["theta"]);
        let scorer = Linear::new(width).unwrap();
        let mut workspace = LinearWorkspace::default();
        let (mut scores, mut g) = (vec![0.0; features.documents()], vec![0.0; features.documents()]);
        scorer.scores(&theta, features, &mut workspace, &mut scores);
        case.check_all("scores", &scores);
        let labels = grades(&case.input["labels"]);
        case.check("value", loss(case.input).evaluate(&scores, &labels, &mut LossBuffers::default(), &mut g));
        let mut gradient = vec![0.0; width];
        scorer.add_gradient(&theta, features, &g, &mut workspace, &mut gradient);
        case.check_all("grad", &gradient);
    });
}

#[test]
fn mlp_grad() {
    for_each_case("mlp_grad", |case| {
        let (x, width) = matrix(&case.input["x"]);
        let features = Features::new(&x, width).unwrap();
        let n = features.documents();
        let (w1, _) = matrix(&case.input["w1"]);
        let (b1, w2) = (vector(&case.input["b1"]), vector(&case.input["w2"]));
        let activation = match case.input["activation"].as_str().unwrap() {
            "relu" => Activation::Relu,
            "tanh" => Activation::Tanh,
            other => panic!("an unknown activation: {other}"),
        };
        let bias = case.input["b2"].as_f64().unwrap();
        let scorer = Mlp::new(width, b1.len(), activation).unwrap().with_output_bias(bias);
        let parameters = [w1.clone(), b1, w2].concat();
        let mut workspace = MlpWorkspace::default();
        let (mut scores, mut g) = (vec![0.0; n], vec![0.0; n]);
        scorer.scores(&parameters, features, &mut workspace, &mut scores);
        case.check_all("scores", &scores);
        let labels = grades(&case.input["labels"]);
        case.check("value", loss(case.input).evaluate(&scores, &labels, &mut LossBuffers::default(), &mut g));
        case.check("grad_b2", g.iter().sum());

        let mut gradient = vec![0.0; scorer.parameters()];
        scorer.add_gradient(&parameters, features, &g, &mut workspace, &mut gradient);
        for block in scorer.blocks() {
            case.check_all(&format!("grad_{}", block.name), &gradient[block.range]);
        }
        let mut gram = vec![0.0; n * n];
        scorer.gram(&parameters, features, &mut workspace, &mut gram);
        case.check_all("gram_w1_b1_w2", &gram);
    });
}
