use dp_data::{Block, Examples};

use crate::{CompensatedSum, LossKind, Model, ModelVisitor, ScaledSteps};

/// The largest difference between a column of the curvature and a difference quotient of gradients, excluding the coupling that
/// the curvature omits.
struct Quotients<'a>(Block<'a, f64>);

impl ModelVisitor<f64> for Quotients<'_> {
    type Output = f64;
    fn visit<M>(self, model: M) -> f64
    where
        M: ScaledSteps<f64> + for<'a> Model<f64, Batch<'a> = Block<'a, f64>>,
    {
        let block = self.0;
        let (parameters, features) = (model.parameters(), model.features());
        assert_eq!(parameters % features, 0);
        let w: Vec<f64> = (0..parameters).map(|j| 0.4 * (j as f64 * 0.7).sin()).collect();
        let mut pass = model.pass(block.len());
        let mut curvature = vec![0.0; parameters * features];
        assert_eq!(model.add_curvature(&w, block, &mut pass, &mut curvature), block.len());
        let mut gradient = |w: &[f64]| -> Vec<f64> {
            let mut sum = CompensatedSum::zeros(parameters);
            model.add_compensated((w, &[]), block, &mut pass, &mut sum);
            (0..parameters).map(|j| sum.value(j)).collect()
        };
        let mut worst = 0.0f64;
        for column in 0..parameters {
            let moved = |by: f64| {
                let mut moved = w.clone();
                moved[column] += by;
                moved
            };
            let (above, below) = (gradient(&moved(1e-5)), gradient(&moved(-1e-5)));
            let of_block = column / features;
            for line in column..(of_block + 1) * features {
                let quotient = (above[line] - below[line]) / 2e-5;
                let place = line * features + column % features;
                worst = worst.max((curvature[place] - quotient).abs());
            }
        }
        worst
    }
}

#[test]
fn it_is_the_derivative_of_the_gradient() {
    let rows: Vec<f64> = (0..60).map(|i| f64::from(i * 37 % 11 - 5) / 9.0).collect();
    let valid: Vec<bool> = (0..20).map(|i| i != 3).collect();
    for (loss, targets) in
        [("logistic", [-1.0, 1.0]), ("squared", [0.4, -0.9]), ("log-cosh:0.5", [0.4, -0.9]), ("softmax:3", [0.0, 2.0])]
    {
        let kind: LossKind = loss.parse().unwrap();
        let targets = targets.repeat(10);
        let dense = Examples::dense(rows.clone(), targets.clone(), 3).unwrap();
        let block = Block { valid: Some(&valid), ..dense.block() };
        assert!(kind.visit_model(3, Quotients(block)) < 1e-5, "{loss}");
        let offsets = (0..=20).map(|i| 3 * i).collect();
        let sparse = Examples::sparse(offsets, [0, 2, 3].repeat(20), rows.clone(), targets, 4).unwrap();
        assert!(kind.visit_model(4, Quotients(sparse.block())) < 1e-5, "{loss}, sparse");
    }
}
