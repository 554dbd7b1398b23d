//! Update rules on noisy sums against golden values: noise-free iterates on eight records, from clipped sums over prescribed
//! batches.

use crate::support::{close, count, golden_family, number, numbers};
use dp_accountant::rdp::{RdpCurve, without_replacement_as_published};
use dp_accountant::{DpEvent, RdpOrder, SamplingRate};
use dp_losses::penalty::Layout;
use dp_losses::{Hinge, HuberSvm, Logistic, Loss, Penalty, ProximalMap};
use dp_mechanisms::steps::StepPlan;
use dp_optim::Schedule;
use dp_optim::engine::{
    AcceleratedDescent, Adam, AdmmOutput, ConsensusAdmm, Denominator, GradientDescent, LinearisedAdmm, Step, UpdateRule,
};
use dp_optim::recipes::dp_sgd::admm::{as_published, std_dev_on_the_gradient, std_dev_on_the_model};
use serde_json::Value;

/// The traces of one algorithm.
fn traces(algorithm: &str) -> Vec<Value> {
    let all = golden_family("trace");
    let cases: Vec<Value> = all.into_iter().filter(|case| case["algorithm"] == algorithm).collect();
    cases
}

/// The records of a trace, its loss and its clipping norm.
struct Records<'c> {
    rows: Vec<Vec<f64>>,
    targets: Vec<f64>,
    params: &'c Value,
}

impl<'c> Records<'c> {
    fn new(case: &'c Value) -> Self {
        let rows = case["dataset"]["x"].as_array().unwrap().iter().map(numbers).collect();
        Self { rows, targets: numbers(&case["dataset"]["y"]), params: &case["params"] }
    }

    fn number(&self, name: &str) -> f64 {
        number(&self.params[name])
    }

    fn dim(&self) -> usize {
        self.rows[0].len()
    }

    fn slope(&self, prediction: f64, target: f64) -> f64 {
        match self.params["loss"].as_str().unwrap() {
            "logistic" => Logistic.derivative(prediction, target),
            "hinge" => Hinge.derivative(prediction, target),
            "huber_hinge" => HuberSvm::new(0.5).unwrap().derivative(prediction, target),
            other => panic!("{other}"),
        }
    }

    /// Returns the sum of the batch's gradients, each clipped.
    fn sum(&self, batch: &[usize], w: &[f64]) -> Vec<f64> {
        let clip = self.params.get("clip").map_or(f64::INFINITY, number);
        let mut sum = vec![0.0; self.dim()];
        for &i in batch {
            let row = &self.rows[i];
            let slope = self.slope(row.iter().zip(w).map(|(x, w)| x * w).sum(), self.targets[i]);
            let norm = row.iter().map(|x| x * x * slope * slope).sum::<f64>().sqrt();
            let kept = slope * if norm > clip { clip / norm } else { 1.0 };
            sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += kept * x);
        }
        sum
    }

    fn batches(&self) -> Vec<Vec<usize>> {
        let of = |batch: &Value| batch.as_array().unwrap().iter().map(|i| count(i) as usize).collect();
        self.params["batches"].as_array().unwrap().iter().map(of).collect()
    }

    fn map(&self, longest: f64) -> ProximalMap {
        let layout = Layout { features: self.dim(), outputs: 1, intercept: false };
        ProximalMap::new(Penalty::L1 { lambda: self.number("l1") }, layout, longest).unwrap()
    }

    /// Runs `rule` over the batches with a constant step, and compares with the iterates `w` of the case.
    fn follow(&self, case: &Value, rule: &mut impl UpdateRule<f64>) {
        let mut w = vec![0.0; self.dim()];
        let expected = case["w"].as_array().unwrap();
        assert_eq!(self.batches().len(), expected.len());
        for (update, (batch, expected)) in (1..).zip(self.batches().iter().zip(expected)) {
            let sum = self.sum(batch, &w);
            let step = Step { update, step_size: self.number("eta"), divisor: self.number("denominator"), weight: 1.0 };
            rule.apply(&mut w, &sum, &step);
            agree(case, &w, expected);
        }
    }
}

#[track_caller]
fn agree(case: &Value, found: &[f64], expected: &Value) {
    for (found, expected) in found.iter().zip(numbers(expected)) {
        assert!((found - expected).abs() <= 1e-12 + 1e-9 * expected.abs(), "{}: {found} {expected}", case["id"]);
    }
}

#[test]
fn plain_and_proximal_descent() {
    for case in traces("dp_sgd").iter().chain(&traces("prox_sgd")) {
        let records = Records::new(case);
        let lambda = records.params.get("lam").map_or(0.0, number);
        let rule = AcceleratedDescent::new(GradientDescent { lambda, radius: None }, 0.0, &vec![0.0; records.dim()]);
        match records.params.get("l1") {
            Some(_) => records.follow(case, &mut rule.with_penalty(records.map(records.number("eta")))),
            None => records.follow(case, &mut { rule }),
        }
    }
}

#[test]
fn adam() {
    for case in &traces("dp_adam") {
        let records = Records::new(case);
        let denominator = Denominator::Plus { epsilon: records.number("eps_hat") };
        let (first, second) = (records.number("beta1"), records.number("beta2"));
        let rule = Adam::new(first, second, denominator, &vec![0.0; records.dim()]);
        records.follow(case, &mut rule.with_ball(records.number("lam"), None));
    }
}

#[test]
fn linearised_admm_on_batches() {
    for case in &traces("ssadmm") {
        let records = Records::new(case);
        let rho = records.number("rho");
        let zeros = vec![0.0; records.dim()];
        let mut rule = LinearisedAdmm::new(rho, records.map(1.0 / rho), AdmmOutput::Sparse, &zeros);
        let mut x = zeros.clone();
        let (batches, size) = (records.batches(), records.batches()[0].len());
        let steps = Schedule::PerDrawnPass {
            step: records.number("eta0"),
            batch_size: size as u64,
            examples: records.rows.len() as u64,
        };
        let steps = steps.prepare(batches.len() as u64).unwrap();
        for (update, (batch, expected)) in (1..).zip(batches.iter().zip(case["steps"].as_array().unwrap())) {
            assert!((steps.at(update) - number(&expected["eta"])).abs() < 1e-12, "{}", case["id"]);
            let sum = records.sum(batch, &x);
            let step = Step { update, step_size: steps.at(update), divisor: size as f64, weight: 1.0 };
            rule.apply(&mut x, &sum, &step);
            agree(case, &x, &expected["x"]);
            agree(case, rule.point(&x), &expected["z"]);
            agree(case, rule.dual(), &expected["y"]);
        }
    }
}

/// Noise on x in a step of all records is noise on their gradient: the same run, with `γ_g = -(ρ + 1/η) γ_x`.
#[test]
fn noise_on_the_model_is_noise_on_the_gradient() {
    for case in &traces("mpadmm_noise_step") {
        let records = Records::new(case);
        let (rho, eta) = (records.number("rho"), records.number("eta"));
        let zeros = vec![0.0; records.dim()];
        let mut rule = LinearisedAdmm::new(rho, records.map(1.0 / rho), AdmmOutput::Sparse, &zeros);
        let all: Vec<usize> = (0..records.rows.len()).collect();
        let n = all.len() as f64;
        let mut sum = records.sum(&all, &zeros);
        for (sum, noise) in sum.iter_mut().zip(numbers(&records.params["gamma_x"])) {
            *sum -= n * (rho + 1.0 / eta) * noise;
        }
        let mut x = zeros.clone();
        rule.apply(&mut x, &sum, &Step { update: 1, step_size: eta, divisor: n, weight: 1.0 });
        let expected = &case["x_only_variant"];
        agree(case, &x, &expected["x"]);
        agree(case, rule.point(&x), &expected["z"]);
        agree(case, rule.dual(), &expected["y"]);
    }
}

/// All records at each step, without noise.
#[test]
fn linearised_admm_on_all_records() {
    for case in &traces("mpadmm") {
        let records = Records::new(case);
        let (rho, eta) = (records.number("rho"), records.number("eta"));
        let zeros = vec![0.0; records.dim()];
        let mut rule = LinearisedAdmm::new(rho, records.map(1.0 / rho), AdmmOutput::Sparse, &zeros);
        let all: Vec<usize> = (0..records.rows.len()).collect();
        let mut x = zeros.clone();
        for (update, expected) in (1..).zip(case["steps"].as_array().unwrap()) {
            let sum = records.sum(&all, &x);
            rule.apply(&mut x, &sum, &Step { update, step_size: eta, divisor: all.len() as f64, weight: 1.0 });
            agree(case, &x, &expected["x"]);
            agree(case, rule.point(&x), &expected["z"]);
            agree(case, rule.dual(), &expected["y"]);
        }
    }
}

/// Two parties with steps `1/√k`; their `λ/N` is the regulariser of the mean over parties.
#[test]
fn parties_in_turn() {
    let cases = traces("dp_admm");
    assert!(!cases.is_empty() || std::env::var_os("DP_GOLDEN_DIR").is_some());
    for case in &cases {
        let records = Records::new(case);
        let parties: Vec<Vec<usize>> = records.params["parties"]
            .as_array()
            .unwrap()
            .iter()
            .map(|party| party.as_array().unwrap().iter().map(|i| count(i) as usize).collect())
            .collect();
        let zeros = vec![0.0; records.dim()];
        let rule = ConsensusAdmm::new(records.number("rho"), parties.len(), None, &zeros);
        let mut rule = rule.with_ball(records.number("l2") / parties.len() as f64, None);
        let mut w = zeros.clone();
        let mut update = 0;
        for (round, expected) in (1u32..).zip(case["steps"].as_array().unwrap()) {
            for party in &parties {
                update += 1;
                let sum = records.sum(party, &w);
                let step_size = 1.0 / f64::from(round).sqrt();
                rule.apply(&mut w, &sum, &Step { update, step_size, divisor: party.len() as f64, weight: 1.0 });
            }
            agree(case, rule.point(&w), &expected["w"]);
            agree(case, rule.model_of(0).unwrap(), &expected["w1"]);
            agree(case, rule.model_of(1).unwrap(), &expected["w2"]);
            agree(case, rule.dual_of(0).unwrap(), &expected["g1"]);
        }
    }
}

/// Returns the Renyi divergence of an event, as in DP-SGD's plans, at this order.
fn rdp(event: &DpEvent, order: f64) -> f64 {
    RdpCurve::new(event).unwrap().at(RdpOrder::new(order).unwrap())
}

/// Renyi divergence of one noisy sum if one record is drawn at this rate and moves it by `shift` of the noise's standard
/// deviation in either direction: a sum over a fine grid of `Q ((P/Q)^a - 1 - a (P/Q - 1))`, which loses no digits where P is
/// near Q.
fn realised_rdp(rate: f64, shift: f64, order: f64) -> f64 {
    let half = 10.0 + 2.0 * order * shift;
    let step = 1e-3;
    let points = (2.0 * half / step) as u64;
    let normal = |x: f64| -0.5 * x * x - 0.5 * (2.0 * std::f64::consts::PI).ln();
    let logs: Vec<f64> = (0..=points)
        .filter_map(|i| {
            let x = -half + step * i as f64;
            // Densities relative to that of the record's absence.
            let with = |shift: f64| rate * (x * shift - 0.5 * shift * shift).exp_m1();
            let (p, q) = (with(shift).ln_1p(), with(-shift).ln_1p());
            let scaled = order * (p - q);
            let term = if scaled > 30.0 { scaled } else { (scaled.exp_m1() - order * (p - q).exp_m1()).ln() };
            (term > f64::NEG_INFINITY).then_some(term + q + normal(x) + step.ln())
        })
        .collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log = largest + logs.iter().map(|log| (log - largest).exp()).sum::<f64>().ln();
    // ln(1 + e^log), which equals log for large values.
    let log_moment = if log > 30.0 { log } else { log.exp().ln_1p() };
    log_moment / (order - 1.0)
}

#[test]
fn divergence_of_admm_on_batches() {
    for case in &golden_family("ssadmm_rdp") {
        let of = |name: &str| number(&case[name]);
        let batch = of("batch");
        let sensitivity = 2.0 * of("grad_bound");
        close(sensitivity / batch, of("sensitivity"), 1e-12, "sensitivity");
        let step = DpEvent::Gaussian { std_dev: batch * of("sigma"), sensitivity };
        close(rdp(&step, of("alpha")), of("rdp_batch"), 1e-12, "one batch");
        let rate = SamplingRate::new(batch / of("n")).unwrap();
        if let Ok(order) = u32::try_from(of("alpha") as u64) {
            let curve = |order: f64| rdp(&step, order);
            let published = without_replacement_as_published(order, rate, f64::INFINITY, curve).min(of("rdp_batch"));
            close(published, of("rdp_iter"), 1e-9, "one step by the theorem of these values");
        }
        for (steps, expected) in [(1, of("rdp_iter")), (count(&case["iterations"]), of("rdp_total"))] {
            let plan = StepPlan::SampledWithoutReplacement { sampling_rate: rate, steps };
            // The accountant's value may be smaller: it uses better theorems than these values.
            let found = rdp(&plan.event(step.clone()), of("alpha"));
            assert!(found <= expected * (1.0 + 1e-9), "{case}: {found}");
            // But it cannot be below that of a pair of data sets: all gradients zero except one, at either end of its range.
            let realised = realised_rdp(rate.get(), of("grad_bound") / (batch * of("sigma")), of("alpha"));
            assert!(found >= steps as f64 * realised * (1.0 - 1e-3), "{case}: {found} {realised}");
        }
    }
}

#[test]
fn divergence_of_admm_on_all_records() {
    for case in &golden_family("mpadmm_rdp") {
        let of = |name: &str| number(&case[name]);
        let (n, eta, rho, sigma, bound) = (count(&case["n"]), of("eta"), of("rho"), of("sigma"), of("grad_bound"));
        let on_gradient = std_dev_on_the_gradient(sigma, eta, rho);
        close(on_gradient, of("equivalent_gradient_sigma"), 1e-12, "noise on the gradient");
        close(std_dev_on_the_model(2.0 * bound / n as f64, eta, rho), of("sens_x"), 1e-12, "sensitivity of x");
        let step = DpEvent::Gaussian { std_dev: n as f64 * on_gradient, sensitivity: 2.0 * bound };
        close(rdp(&step, of("alpha")), of("rdp_epoch_x_only"), 1e-9, "one step");
        let epochs = count(&case["epochs"]);
        let all = StepPlan::DisjointBatches { passes: epochs, steps_per_pass: 1 }.event(step);
        close(rdp(&all, of("alpha")), of("rdp_total_x_only"), 1e-9, "all steps");
        let printed = as_published::sensitivity_of_x(bound, n, eta, rho);
        close(printed, of("seed_sens_x"), 1e-12, "as printed");
        let claimed = as_published::renyi_divergence(of("alpha"), printed, rho, sigma, epochs);
        close(claimed, of("seed_total"), 1e-9, "as claimed");
    }
}
