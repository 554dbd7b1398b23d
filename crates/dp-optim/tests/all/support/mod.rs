//! Helpers of several test files: golden values, a source with prescribed orders and blocks, and a loss linear in the
//! prediction.
#![allow(dead_code, missing_docs)]

use std::path::PathBuf;

use dp_data::{Block, Description, Examples, PassReceipt, PassRequest, RowSource, RowStream, SourceError};
use dp_losses::{LinearModel, Loss, Model, Real, ScaledSteps};
use dp_optim::engine::{
    BatchSizes, Buffered, Control, GradientDescent, Iterate, Passes, PlainGradient, RowBatches, Run, Scaled, TwoParts,
};
use dp_optim::growth::{Arithmetic, Divisor, Growth, OrderPolicy};
use dp_optim::{Averaging, Schedule};
use serde_json::Value;

/// Returns the cases of one function from the golden values: at least one in the tree's copy; another file may omit functions,
/// but must contain some.
pub fn golden(function: &str) -> Vec<Value> {
    let file = golden_file("optim-erm.json");
    let all = file["cases"].as_array().unwrap();
    assert!(!all.is_empty(), "no golden case at all");
    let cases: Vec<Value> = all.iter().filter(|case| case["fn"] == function).cloned().collect();
    assert!(!cases.is_empty() || std::env::var_os("DP_GOLDEN_DIR").is_some(), "no golden case of {function}");
    cases
}

/// Returns the cases of one family of the golden values of the second file.
pub fn golden_family(family: &str) -> Vec<Value> {
    let cases = golden_file("optim-rdp.json")["families"][family].as_array().cloned().unwrap_or_default();
    assert!(!cases.is_empty() || std::env::var_os("DP_GOLDEN_DIR").is_some(), "no golden case of {family}");
    cases
}

fn golden_file(name: &str) -> Value {
    let folder = std::env::var_os("DP_GOLDEN_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden")), PathBuf::from);
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

pub fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list")).iter().map(number).collect()
}

#[track_caller]
pub fn close(found: f64, expected: f64, relative: f64, what: &str) {
    assert!((found - expected).abs() <= relative * expected.abs(), "{what}: {found} instead of {expected}");
}

pub fn schedule(value: &Value) -> Schedule {
    let at = |name: &str| number(&value[name]);
    match value["kind"].as_str().unwrap() {
        "const" => Schedule::Constant { step: at("eta") },
        "inv_sqrt" => Schedule::InverseSqrt { step: at("eta") },
        "dec" => Schedule::Decreasing { smoothness: at("beta"), examples: at("m"), power: at("c") },
        "sqrt" => Schedule::SquareRoot { smoothness: at("beta"), examples: at("m"), power: at("c") },
        "strongly" => Schedule::StronglyConvex { smoothness: at("beta"), strong_convexity: at("gamma") },
        "list" => Schedule::Steps { values: numbers(&value["values"]) },
        other => panic!("unknown schedule {other}"),
    }
}

pub fn averaging(value: &Value) -> Averaging {
    match value["kind"].as_str().unwrap() {
        "last" => Averaging::Last,
        "uniform" => Averaging::Uniform,
        "suffix" => Averaging::Suffix { updates: count(&value["s"]) },
        "poly" => Averaging::Polynomial,
        "coeffs" => Averaging::Coefficients { values: numbers(&value["values"]) },
        other => panic!("unknown average {other}"),
    }
}

/// Returns a run of the last iterate with the nominal divisor in exact arithmetic, which tests modify.
pub fn growth(n: u64, batch_size: u64, passes: u64, schedule: Schedule) -> Growth {
    Growth {
        n,
        batch_size,
        passes,
        schedule,
        averaging: Averaging::Last,
        order: OrderPolicy::Fixed,
        divisor: Divisor::Nominal,
        smoothness: 1.0,
        strong_convexity: 0.0,
        gradient_difference: 2.0,
        radius: None,
        rounding: None,
    }
}

/// `ℓ(p, y) = -y p`: gradient `-y x` for any parameters, so that with a regulariser every sensitivity is attained.
#[derive(Debug, Clone, Copy)]
pub struct Inner;

impl<F: Real> Loss<F> for Inner {
    fn value(&self, prediction: F, target: F) -> F {
        -(prediction * target)
    }
    fn derivative(&self, _prediction: F, target: F) -> F {
        -target
    }
    fn curvature_bound(&self) -> F {
        F::zero()
    }
}

/// Examples read in prescribed orders, in blocks of prescribed lengths (repeated as needed).
pub struct Prescribed<F> {
    pub examples: Examples<F>,
    /// The order of pass `j` is `orders[j mod len]`.
    pub orders: Vec<Vec<u32>>,
    pub blocks: Vec<usize>,
}

impl<F: Real> RowSource<F> for Prescribed<F> {
    fn describe(&mut self) -> Result<Description, SourceError> {
        Ok(Description {
            n: self.examples.len() as u64,
            dim: self.examples.dim(),
            row_norm: f64::INFINITY,
            target_bound: f64::INFINITY,
            engine: "prescribed",
        })
    }

    fn open_pass(&mut self, request: &PassRequest) -> Result<Box<dyn RowStream<F> + '_>, SourceError> {
        let order = &self.orders[request.pass as usize % self.orders.len()];
        let examples = self.examples.permuted(order).unwrap();
        Ok(Box::new(PrescribedPass { examples, at: 0, blocks: self.blocks.clone(), block: 0 }))
    }
}

struct PrescribedPass<F> {
    examples: Examples<F>,
    at: usize,
    blocks: Vec<usize>,
    block: usize,
}

impl<F: Real> RowStream<F> for PrescribedPass<F> {
    fn next_block(&mut self) -> Result<Option<Block<'_, F>>, SourceError> {
        let (start, rows) = (self.at, self.examples.len());
        if start == rows {
            return Ok(None);
        }
        let length = self.blocks.get(self.block % self.blocks.len().max(1)).copied().unwrap_or(rows).min(rows - start);
        self.block += 1;
        self.at += length;
        Ok(Some(self.examples.block().slice(start..start + length)))
    }

    fn receipt(self: Box<Self>) -> Result<PassReceipt, SourceError> {
        Ok(PassReceipt { rows: self.at as u64 })
    }
}

/// Runs the engine as `growth` describes, on `source`, and returns the output.
pub fn run<F: Real, L: Loss<F>, S: RowSource<F>>(
    growth: &Growth,
    loss: L,
    start: Vec<F>,
    arithmetic: Arithmetic,
    source: &mut S,
) -> Vec<F> {
    run_model(growth, &LinearModel::new(start.len(), loss), start, arithmetic, source)
}

/// As `run`, for any model of rows.
pub fn run_model<F: Real, M, S: RowSource<F>>(
    growth: &Growth,
    model: &M,
    start: Vec<F>,
    arithmetic: Arithmetic,
    source: &mut S,
) -> Vec<F>
where
    M: ScaledSteps<F> + for<'a> Model<F, Batch<'a> = Block<'a, F>>,
{
    let updates = growth.updates_per_pass() * growth.passes;
    let batch_size = growth.batch_size.min(growth.n) as usize;
    let run = Run {
        n: growth.n,
        batches: BatchSizes::Equal(batch_size),
        divisor: growth.divisor,
        steps: growth.schedule.prepare(updates).unwrap(),
        weights: growth.averaging.prepare(updates).unwrap(),
    };
    let (lambda, radius) = (growth.strong_convexity, growth.radius);
    let averaged = growth.averaging != Averaging::Last;
    let mut batches = RowBatches::new(source, dp_data::Order::Declared);
    let (mut stop, mut control) = (Passes(growth.passes), Control::default());
    match arithmetic {
        Arithmetic::Buffered => {
            let gradient = PlainGradient::new(model, batch_size);
            let mut iterate = Buffered::new(start, averaged, gradient, GradientDescent { lambda, radius });
            run.run(model, &mut batches, &mut iterate, &mut stop, &mut control).unwrap();
            Iterate::<F, M>::into_output(iterate)
        }
        Arithmetic::Scaled => {
            let mut iterate = Scaled::new(model, start, averaged, batch_size, lambda, radius);
            run.run(model, &mut batches, &mut iterate, &mut stop, &mut control).unwrap();
            iterate.into_output()
        }
        Arithmetic::TwoParts => {
            let mut iterate = TwoParts::new(model, start, averaged, batch_size, lambda, radius);
            run.run(model, &mut batches, &mut iterate, &mut stop, &mut control).unwrap();
            iterate.into_output()
        }
    }
}

pub fn dense<F: Real>(rows: &[Vec<f64>], targets: &[f64]) -> Examples<F> {
    let convert = |&x: &f64| nalgebra::convert::<f64, F>(x);
    let dim = rows[0].len();
    Examples::dense(rows.iter().flatten().map(convert).collect(), targets.iter().map(convert).collect(), dim).unwrap()
}

/// Returns the same examples with zeros omitted.
pub fn sparse<F: Real>(rows: &[Vec<f64>], targets: &[f64]) -> Examples<F> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        for (j, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(j as u32);
            values.push(nalgebra::convert::<f64, F>(x));
        }
        offsets.push(values.len());
    }
    let targets = targets.iter().map(|&y| nalgebra::convert::<f64, F>(y)).collect();
    Examples::sparse(offsets, indices, values, targets, rows[0].len()).unwrap()
}

pub fn distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}
