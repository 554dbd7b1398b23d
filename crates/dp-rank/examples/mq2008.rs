//! Compares rankers on the five folds of MQ2008, without privacy and with it.
//!
//! `cargo run --release -p dp-rank --features files --example mq2008 -- S1.txt.xz S2.txt.xz S3.txt.xz S4.txt.xz S5.txt.xz`
//!
//! Fold f trains on parts f to f+3 and tests on part f+4 (modulo 5). Private rankers have the crate's recommended settings, which
//! were chosen on synthetic lists; the others take 400 steps on batches of ten lists. Delta is 1e-4. Batches and noise are
//! seeded, so that the table is reproducible; a release needs `OsSeeded`.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use dp_data::read::Input;
use dp_mechanisms::SeededRng;
use dp_optim::recipes::Budget;
use dp_rank::loss::{BayesRank, LambdaRank, ListLoss, ListMle, ListNet, RankNet, RankingLoss};
use dp_rank::metrics::{self, Cutoff};
use dp_rank::read::{ListOptions, SplitLists, load_letor};
use dp_rank::scorer::{Activation, Linear, Mlp, Scorer};
use dp_rank::spectral::Normalise;
use dp_rank::train::{Descent, NonPrivateRanking, PrivateRanking};
use dp_rank::{QueryLists, Ranking};

const REPETITIONS: u64 = 5;
const FEATURES: usize = 46;
const HIDDEN: usize = 256;

/// Training and test lists of one fold.
type Fold = (QueryLists, QueryLists);

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.len() != 5 {
        return Err("name the five parts of MQ2008, S1 to S5".into());
    }
    let options = ListOptions { features: Some(FEATURES), split_lists: SplitLists::Refuse, ..ListOptions::default() };
    let parts: Vec<QueryLists> = files
        .iter()
        .map(|file| {
            let mut lists = load_letor(Input::open(file)?, &options)?.lists;
            // ListMLE would learn the order of the file.
            lists.shuffle_documents(0);
            Ok(lists)
        })
        .collect::<Result<_, Box<dyn Error>>>()?;
    let folds: Vec<Fold> = (0..5)
        .map(|fold| {
            let mut train = parts[fold].clone();
            (1..4).try_for_each(|next| train.extend(&parts[(fold + next) % 5]))?;
            Ok((train, parts[(fold + 4) % 5].clone()))
        })
        .collect::<Result<_, dp_rank::Error>>()?;

    let mut out = std::io::stdout().lock();
    writeln!(out, "| ranker | epsilon | MAP | NDCG@1 | @4 | @8 | training |\n|---|---|---|---|---|---|---|")?;
    let linear = Linear::new(FEATURES)?;
    plain(&mut out, &folds, "linear ListNet", &linear, ListNet::TOP_1, 1.0)?;
    plain(&mut out, &folds, "linear BayesRank, k = 1", &linear, BayesRank::TOP_1, 1.0)?;
    plain(&mut out, &folds, "linear BayesRank, k = 2", &linear, BayesRank::new(Cutoff::new(2)?), 1.0)?;
    plain(&mut out, &folds, "linear ListMLE", &linear, ListMle, 0.1)?;
    plain(&mut out, &folds, "linear RankNet", &linear, RankNet, 0.1)?;
    plain(&mut out, &folds, "linear LambdaRank", &linear, LambdaRank, 0.1)?;
    for epsilon in [0.3, 1.0, 3.0] {
        private(&mut out, &folds, "linear BayesRank, k = 1", &linear, BayesRank::TOP_1, None, epsilon)?;
        private(&mut out, &folds, "linear ListNet", &linear, ListNet::TOP_1, None, epsilon)?;
        private(&mut out, &folds, "linear ListMLE", &linear, ListMle, None, epsilon)?;
    }
    let network = Mlp::new(FEATURES, HIDDEN, Activation::Relu)?;
    plain(&mut out, &folds, "network of 256", &network, BayesRank::TOP_1, 1.0)?;
    private(&mut out, &folds, "network of 256", &network, BayesRank::TOP_1, None, 1.0)?;
    let normalised = Some(Normalise::Always);
    private(&mut out, &folds, "network of 256, normalised", &network, BayesRank::TOP_1, normalised, 1.0)?;
    Ok(())
}

/// The initial parameters: 0, or a network's public initial weights.
trait Start: Scorer {
    fn start(&self, seed: u64) -> Vec<f64>;
}

impl Start for Linear {
    fn start(&self, _: u64) -> Vec<f64> {
        vec![0.0; self.parameters()]
    }
}

impl Start for Mlp {
    fn start(&self, seed: u64) -> Vec<f64> {
        self.initial(seed)
    }
}

/// Prints one row for rankers without privacy.
fn plain<S: Start>(
    out: &mut impl Write,
    folds: &[Fold],
    name: &str,
    scorer: &S,
    loss: impl RankingLoss + Copy,
    step: f64,
) -> Result<(), Box<dyn Error>> {
    let descent = Descent { step, ..Descent::default() };
    let training = NonPrivateRanking { descent, ..NonPrivateRanking::new(loss) };
    row(out, folds, name, "-", scorer, |train, seed| {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Ok(training.train(scorer, scorer.start(seed), train, key, &mut |_, _| {})?)
    })
}

/// Prints one row for private rankers.
fn private<S: Start>(
    out: &mut impl Write,
    folds: &[Fold],
    name: &str,
    scorer: &S,
    loss: impl ListLoss + Copy,
    normalise: Option<Normalise>,
    epsilon: f64,
) -> Result<(), Box<dyn Error>> {
    let budget = Budget::new(epsilon, 1e-4)?;
    let usual = PrivateRanking::for_epsilon(loss, budget.epsilon);
    let recipe = PrivateRanking { descent: Descent { normalise, ..usual.descent }, ..usual };
    row(out, folds, name, &epsilon.to_string(), scorer, |train, seed| {
        let plan = recipe.plan(train.len() as u64, scorer.parameters() as u64, budget)?;
        let trained = plan.train(scorer, scorer.start(seed), train, &mut SeededRng::new(seed), &mut |_, _| {})?;
        Ok(trained.weights.get().clone())
    })
}

/// Trains, tests, and prints means over folds and repetitions.
fn row<S: Scorer>(
    out: &mut impl Write,
    folds: &[Fold],
    name: &str,
    epsilon: &str,
    scorer: &S,
    train: impl Fn(&QueryLists, u64) -> Result<Vec<f64>, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let (mut sums, mut seconds) = ([0.0; 4], 0.0);
    for (number, (lists, test)) in folds.iter().enumerate() {
        for repetition in 0..REPETITIONS {
            let start = Instant::now();
            let weights = train(lists, 1000 * number as u64 + repetition)?;
            seconds += start.elapsed().as_secs_f64();
            for (sum, value) in sums.iter_mut().zip(judge(scorer, &weights, test)?) {
                *sum += value;
            }
        }
    }
    let runs = (folds.len() as u64 * REPETITIONS) as f64;
    let [map, one, four, eight] = sums.map(|sum| sum / runs);
    let milliseconds = 1e3 * seconds / runs;
    writeln!(out, "| {name} | {epsilon} | {map:.4} | {one:.4} | {four:.4} | {eight:.4} | {milliseconds:.0} ms |")?;
    Ok(())
}

/// Returns MAP and LETOR's NDCG at 1, 4 and 8.
fn judge<S: Scorer>(scorer: &S, weights: &[f64], test: &QueryLists) -> Result<[f64; 4], dp_rank::Error> {
    let (mut workspace, mut scores) = (S::Workspace::default(), Vec::new());
    let rankings: Vec<Ranking> = test
        .iter()
        .map(|list| {
            scores.resize(list.documents(), 0.0);
            scorer.scores(weights, list.features(), &mut workspace, &mut scores);
            Ranking::new(&scores, list.grades())
        })
        .collect::<Result<_, _>>()?;
    let mut values = [metrics::mean_over(&rankings, metrics::average_precision)?; 4];
    for (value, k) in values.iter_mut().skip(1).zip([1, 4, 8]) {
        let k = Cutoff::new(k)?;
        *value = metrics::mean_over(&rankings, |ranking| metrics::ndcg_letor(ranking, k))?;
    }
    Ok(values)
}
