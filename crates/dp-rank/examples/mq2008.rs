//! Rankers without privacy on the five folds of MQ2008: what private ones are measured against.
//!
//! `cargo run --release -p dp-rank --features files --example mq2008 -- S1.txt.xz S2.txt.xz S3.txt.xz S4.txt.xz S5.txt.xz`
//!
//! Fold f trains on parts f to f+3 and tests on part f+4 (modulo 5). Every ranker takes the same 400 plain steps on
//! batches of ten lists, with a step size that falls by a quarter of its start every hundred.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use dp_data::read::Input;
use dp_rank::loss::{BayesRank, LambdaRank, ListMle, ListNet, LossBuffers, RankNet, RankingLoss};
use dp_rank::metrics::{self, Cutoff};
use dp_rank::read::{ListOptions, SplitLists, load_letor};
use dp_rank::scorer::{Activation, Linear, Mlp, Scorer};
use dp_rank::spectral::{Normalise, PowerIteration};
use dp_rank::{QueryLists, Ranking};
use rand::{Rng, SeedableRng, rngs::StdRng};

const STEPS: usize = 400;
const BATCH: usize = 10;

/// Plain gradient steps; after each, the blocks of `normalised` are divided by their spectral norms.
fn train<S: Scorer>(
    scorer: &S,
    mut parameters: Vec<f64>,
    loss: &dyn RankingLoss,
    lists: &QueryLists,
    step_size: f64,
    normalised: bool,
    random: &mut StdRng,
) -> Vec<f64> {
    let blocks = if normalised { scorer.blocks() } else { Vec::new() };
    let mut iterations = vec![PowerIteration::default(); blocks.len()];
    let (mut workspace, mut buffers) = (S::Workspace::default(), LossBuffers::default());
    let (mut scores, mut score_gradient) = (vec![0.0; lists.longest()], vec![0.0; lists.longest()]);
    let mut sum = vec![0.0; scorer.parameters()];
    let mut order: Vec<usize> = (0..lists.len()).collect();
    for step in 0..STEPS {
        sum.fill(0.0);
        for drawn in 0..BATCH {
            // The first ten of a random order, drawn one by one.
            let other = drawn + (random.next_u64() % (order.len() - drawn) as u64) as usize;
            order.swap(drawn, other);
            let list = lists.list(order[drawn]);
            let (scores, g) = (&mut scores[..list.documents()], &mut score_gradient[..list.documents()]);
            scorer.scores(&parameters, list.features(), &mut workspace, scores);
            loss.evaluate(scores, list.grades(), &mut buffers, g);
            scorer.add_gradient(&parameters, list.features(), g, &mut workspace, &mut sum);
        }
        let step_size = step_size * (1.0 - (step / 100) as f64 / 4.0);
        parameters.iter_mut().zip(&sum).for_each(|(theta, g)| *theta -= step_size * g);
        for (block, iteration) in blocks.iter().zip(&mut iterations) {
            let matrix = &mut parameters[block.range.clone()];
            if block.name != "b1" {
                iteration.normalise(matrix, block.rows, block.columns, Normalise::Always);
            }
        }
    }
    parameters
}

fn rankings<S: Scorer>(scorer: &S, parameters: &[f64], lists: &QueryLists) -> Result<Vec<Ranking>, dp_rank::Error> {
    let mut workspace = S::Workspace::default();
    lists
        .iter()
        .map(|list| {
            let mut scores = vec![0.0; list.documents()];
            scorer.scores(parameters, list.features(), &mut workspace, &mut scores);
            Ranking::new(&scores, list.grades())
        })
        .collect()
}

/// Sums over folds: MAP, NDCG@8 and @10 of LETOR, standard NDCG@10, seconds.
type Row = [f64; 5];

fn judge(rankings: &[Ranking], seconds: f64) -> Result<Row, dp_rank::Error> {
    let (eight, ten) = (Cutoff::new(8)?, Cutoff::new(10)?);
    Ok([
        metrics::mean_over(rankings, metrics::average_precision)?,
        metrics::mean_over(rankings, |list| metrics::ndcg_letor(list, eight))?,
        metrics::mean_over(rankings, |list| metrics::ndcg_letor(list, ten))?,
        metrics::mean_over(rankings, |list| metrics::ndcg(list, ten))?,
        seconds,
    ])
}

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    if paths.len() != 5 {
        return Err("give the five parts S1 to S5 of MQ2008".into());
    }
    let options = ListOptions { features: Some(46), largest_grade: 2, split_lists: SplitLists::Refuse };
    let mut parts = Vec::new();
    for path in &paths {
        parts.push(load_letor(Input::open(path)?, &options)?.lists);
    }

    let linear = Linear::new(46)?;
    let mlp = Mlp::new(46, 256, Activation::Relu)?;
    let two = BayesRank::new(Cutoff::new(2)?);
    let by_linear: [(&str, &dyn RankingLoss, f64); 6] = [
        ("linear ListNet", &ListNet::TOP_1, 0.1),
        ("linear ListMLE", &ListMle, 0.01),
        ("linear BayesRank k=1", &BayesRank::TOP_1, 0.1),
        ("linear BayesRank k=2", &two, 0.1),
        ("linear RankNet", &RankNet, 0.001),
        ("linear LambdaRank", &LambdaRank, 0.1),
    ];
    let mut rows: Vec<(&str, Row)> = by_linear.iter().map(|row| (row.0, [0.0; 5])).collect();
    rows.push(("MLP256 BayesRank k=1, normalised", [0.0; 5]));
    let repeats = 3;
    for fold in 0..5 {
        let mut training = QueryLists::new(46, 2)?;
        for part in 0..4 {
            training.extend(&parts[(fold + part) % 5])?;
        }
        let test = &parts[(fold + 4) % 5];
        for repeat in 0..repeats {
            for (index, row) in rows.iter_mut().enumerate() {
                let mut random = StdRng::seed_from_u64((1000 * fold + repeat) as u64);
                let start = Instant::now();
                let measured = if let Some(&(_, loss, step_size)) = by_linear.get(index) {
                    let theta = train(&linear, vec![0.0; 46], loss, &training, step_size, false, &mut random);
                    let seconds = start.elapsed().as_secs_f64();
                    judge(&rankings(&linear, &theta, test)?, seconds)?
                } else {
                    let initial = mlp.initial((1000 * fold + repeat) as u64);
                    let parameters = train(&mlp, initial, &BayesRank::TOP_1, &training, 0.1, true, &mut random);
                    let seconds = start.elapsed().as_secs_f64();
                    judge(&rankings(&mlp, &parameters, test)?, seconds)?
                };
                row.1.iter_mut().zip(measured).for_each(|(sum, value)| *sum += value / (5 * repeats) as f64);
            }
        }
    }

    let mut out = std::io::stdout().lock();
    writeln!(out, "means of five folds, {repeats} runs each; {STEPS} steps of {BATCH} lists")?;
    writeln!(out, "{:<34} {:>7} {:>7} {:>8} {:>8} {:>9}", "", "MAP", "NDCG@8", "NDCG@10", "std@10", "training")?;
    for (name, [map, at_8, at_10, standard, seconds]) in rows {
        writeln!(out, "{name:<34} {map:>7.4} {at_8:>7.4} {at_10:>8.4} {standard:>8.4} {:>6.1} ms", 1e3 * seconds)?;
    }
    Ok(())
}
