use dp_data::Examples;
use dp_losses::{HuberRegression, HuberSvm, LossKind, ProximalVisitor};
use dp_mechanisms::SeededRng;
use rand::RngExt;

use super::*;

const DIM: usize = 4;

fn losses() -> [LossKind; 5] {
    [
        LossKind::Logistic,
        LossKind::Hinge,
        LossKind::Absolute,
        LossKind::HuberSvm(HuberSvm::USUAL),
        LossKind::HuberRegression(HuberRegression::USUAL),
    ]
}

/// Rows of norm at most 1, one of them null; in some data sets all others are alike.
fn examples(n: usize, seed: u64, alike: bool, sparse: bool) -> Examples<f64> {
    let mut rng = SeededRng::new(seed);
    let mut row = [0.0; DIM];
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for i in 0..n {
        if i == 0 || !alike {
            row.iter_mut().for_each(|x| *x = 0.5 * rng.random_range(-1.0..1.0));
        }
        let null = i == n / 2;
        values.extend(row.iter().map(|x| if null { 0.0 } else { *x }));
        targets.push(if null {
            0.0
        } else if rng.random_bool(0.8) == (row[0] > 0.0) {
            1.0
        } else {
            -1.0
        });
    }
    if !sparse {
        return Examples::dense(values, targets, DIM).unwrap();
    }
    let offsets = (0..=n).map(|i| i * DIM).collect();
    let indices = (0..n * DIM).map(|i| (i % DIM) as u32).collect();
    Examples::sparse(offsets, indices, values, targets, DIM).unwrap()
}

fn terms(kind: LossKind, n: usize, modulus: f64) -> Terms {
    let slopes = if kind.is_classification() { 1.0 } else { 2.0 };
    Terms {
        n: n as u64,
        dim: DIM as u64,
        modulus,
        row_norm: 1.0,
        slopes,
        offset: 2.1,
        centre_norm: 1.0,
        reach: (4.0 / modulus).sqrt().min(1.0 / modulus),
    }
}

struct Solve<'s> {
    block: Block<'s, f64>,
    centre: &'s [f64],
    certificate: Certificate,
    by_count: bool,
}

impl ProximalVisitor<f64> for Solve<'_> {
    /// The point, and the objective there.
    type Output = (Vec<f64>, f64);
    fn visit<L: ProximalLoss<f64>>(self, loss: L) -> Self::Output {
        let control = Control::default();
        let point = if self.by_count {
            State::new(&loss, self.block, self.centre, &self.certificate).unwrap().by_count(&control).unwrap()
        } else {
            certified(&loss, self.block, self.centre, &self.certificate, &control).unwrap()
        };
        let losses = (0..self.block.len()).map(|i| loss.value(self.block.rows.dot(i, &point), self.block.targets[i]));
        let risk = losses.sum::<f64>() / self.block.len() as f64;
        let away: f64 = point.iter().zip(self.centre).map(|(w, v)| (w - v) * (w - v)).sum();
        (point, risk + 0.5 * self.certificate.modulus * away)
    }
}

fn solve(kind: LossKind, examples: &Examples<f64>, modulus: f64, tolerance: f64, by_count: bool) -> (Vec<f64>, f64) {
    let certificate = terms(kind, examples.len(), modulus).certificate(tolerance).unwrap();
    let centre = [0.5, -0.5, 0.25, 0.0];
    kind.visit_proximal(Solve { block: examples.block(), centre: &centre, certificate, by_count }).unwrap()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

#[test]
fn what_is_certified_is_near_the_minimiser() {
    for kind in losses() {
        for (seed, alike) in [(1, false), (2, true)] {
            let data = examples(60, seed, alike, false);
            for modulus in [0.02, 1.0, 300.0] {
                let finest = terms(kind, 60, modulus).least_tolerance();
                let (exact, least) = solve(kind, &data, modulus, finest, false);
                // No nearby point has a smaller objective: checked along random directions, by strong convexity.
                let mut rng = SeededRng::new(seed);
                let value = |point: &[f64]| {
                    struct At<'a>(Block<'a, f64>, &'a [f64]);
                    impl ProximalVisitor<f64> for At<'_> {
                        type Output = f64;
                        fn visit<L: ProximalLoss<f64>>(self, loss: L) -> f64 {
                            let each =
                                (0..self.0.len()).map(|i| loss.value(self.0.rows.dot(i, self.1), self.0.targets[i]));
                            each.sum::<f64>() / self.0.len() as f64
                        }
                    }
                    let away: f64 = point.iter().zip([0.5, -0.5, 0.25, 0.0]).map(|(w, v)| (w - v) * (w - v)).sum();
                    kind.visit_proximal(At(data.block(), point)).unwrap() + 0.5 * modulus * away
                };
                for _ in 0..200 {
                    let width = 10f64.powf(rng.random_range(-6.0..1.0));
                    let other: Vec<f64> = exact.iter().map(|w| w + width * rng.random_range(-1.0..1.0)).collect();
                    let bound = least + 0.5 * modulus * (distance(&other, &exact) - finest).max(0.0).powi(2) - 1e-13;
                    assert!(value(&other) >= bound * (1.0 - 1e-13) - modulus * finest, "{kind} {modulus}");
                }
                for tolerance in [1e-1, 1e-3, 1e-5].map(|tolerance: f64| tolerance.max(finest)) {
                    let (found, _) = solve(kind, &data, modulus, tolerance, false);
                    assert!(distance(&found, &exact) <= tolerance + finest, "{kind} {modulus} {tolerance}");
                }
                let (sparse, _) = solve(kind, &examples(60, seed, alike, true), modulus, finest, false);
                assert!(distance(&sparse, &exact) <= 2.0 * finest, "{kind}");
            }
        }
    }
}

#[test]
fn the_fallback_certifies_by_its_count() {
    for kind in losses() {
        let data = examples(30, 3, false, false);
        let (exact, _) = solve(kind, &data, 0.5, 1e-5, false);
        let (found, _) = solve(kind, &data, 0.5, 0.1, true);
        assert_eq!(found.len(), exact.len());
        assert!(distance(&found, &exact) <= 0.1, "{kind}: {}", distance(&found, &exact));
    }
}

/// Each rounding alone, one unit of it for each product and sum, is within the allowance, which is not much larger.
#[test]
fn every_rounding_is_allowed_for() {
    let terms = Terms {
        n: 1 << 20,
        dim: 10_000,
        modulus: 0.25,
        row_norm: 0.5,
        slopes: 2.0,
        offset: 3.0,
        centre_norm: 5.0,
        reach: 7.0,
    };
    let near = |found: f64, needed: f64, most: f64| {
        assert!(found >= UNIT * needed && found <= most * UNIT * needed, "{} {needed}", found / UNIT);
    };
    // Sums of rows in two levels, `X/λ` long; and the difference with the centre.
    near(terms.point_error(), (256.0 + 4096.0) * 0.5 / 0.25, 1.02);
    near(Terms { n: 1, centre_norm: 1e9, ..terms }.point_error(), 1e9, 2.1);
    // Products of rows with points up to `|v| + 2 reach`, and the numbers they are compared with; a proximal step.
    near(terms.prediction_error(), 10_000.0 * (0.5 * (5.0 + 14.0) + 3.0), 1.02);
    near(Terms { dim: 1, modulus: 1e-9, ..terms }.prediction_error(), 0.25 / 1e-9, 8.2);
    let long = Terms { n: 1 << 40, ..terms };
    let tolerance = 1e-4;
    let certificate = long.certificate(tolerance).unwrap();
    near(certificate.prediction_error(19.0), 10_000.0 * (0.5 * 19.0 + 3.0), 1.02);
    // A gap of `g` is within `√(2g/λ)`, to which the point's own error is added; a sum of `n` terms has relative error `n u`.
    let (n, error) = (long.n as f64, long.point_error());
    assert!(error > 1e-3 * tolerance);
    let gap = 0.5 * long.modulus * (tolerance - error).powi(2);
    assert!(!certificate.accepts(n * gap * (1.0 - n * UNIT)) && certificate.accepts(n * gap * (1.0 - 8.0 * n * UNIT)));
    assert!(!certificate.accepts(f64::NAN) && certificate.tolerance() == tolerance);
    // `8 (X A / (λ τ))²` rounds.
    assert!((8.0 * 4e4 * 4e4..8.1 * 4e4 * 4e4).contains(&(certificate.rounds() as f64)));
    // At the least tolerance, the errors of a gap and of a point are within a quarter of it each.
    for terms in [terms, Terms { n: 1 << 42, dim: 1, ..terms }] {
        let least = terms.least_tolerance();
        let of_gap = (2.0 * terms.prediction_error() * terms.slopes / terms.modulus).sqrt();
        assert!(of_gap < 0.36 * least && terms.point_error() < 0.126 * least);
        assert!(of_gap > 0.35 * least || terms.point_error() > 0.124 * least);
    }
}

#[test]
fn a_tolerance_below_rounding_is_refused() {
    let terms = terms(LossKind::Hinge, 1000, 0.01);
    assert!(terms.certificate(terms.least_tolerance()).is_ok());
    assert!(matches!(terms.certificate(0.9 * terms.least_tolerance()), Err(Error::NotProved { .. })));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(terms.certificate(bad).is_err(), "{bad}");
    }
}

/// Marks of records that do not count are kept: their loss is treated as constant.
#[test]
fn records_that_do_not_count_have_no_slope() {
    let data = examples(20, 4, false, false);
    let mut valid = vec![true; 20];
    valid[3] = false;
    let Block { rows, targets, .. } = data.block();
    let certificate = terms(LossKind::Hinge, 20, 0.5).certificate(1e-5).unwrap();
    let centre = [0.0; DIM];
    let solve = |block| {
        let solve = Solve { block, centre: &centre, certificate, by_count: false };
        LossKind::Hinge.visit_proximal(solve).unwrap().0
    };
    let marked = solve(Block { rows, targets, valid: Some(&valid) });
    let dp_data::Rows::Dense { values, .. } = rows else { unreachable!() };
    let mut values = values.to_vec();
    values[3 * DIM..4 * DIM].fill(0.0);
    let null = Examples::dense(values, targets.to_vec(), DIM).unwrap();
    assert!(distance(&marked, &solve(null.block())) <= 2e-5);
}
