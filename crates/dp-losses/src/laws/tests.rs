use core::sync::atomic::{AtomicU32, Ordering};

use dp_data::{Block, Examples};

use super::*;
use crate::{LinearModel, LinearPass, Logistic, ParameterBlock};

/// A logistic model with one error.
struct Broken {
    inner: LinearModel<f64, Logistic>,
    fault: Fault,
    calls: AtomicU32,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    LossDependsOnTheBatch,
    GradientOfABatchScaled,
    NormTooSmall,
    GradientScaled,
    CoefficientsSquared,
    NothingIsSelected,
    Remembers,
    OtherSumInDouble,
}

impl Model<f64> for Broken {
    type Batch<'a> = Block<'a, f64>;
    type Pass = LinearPass<f64>;

    fn blocks(&self) -> &[ParameterBlock] {
        self.inner.blocks()
    }

    fn pass(&self, microbatch: usize) -> Self::Pass {
        self.inner.pass(microbatch)
    }

    fn forward(&self, parameters: &[f64], batch: Block<'_, f64>, pass: &mut Self::Pass) {
        self.inner.forward(parameters, batch, pass);
    }

    fn losses(&self, batch: Block<'_, f64>, pass: &Self::Pass, out: &mut [f64]) {
        self.inner.losses(batch, pass, out);
        if self.fault == Fault::LossDependsOnTheBatch {
            let mean = out.iter().sum::<f64>() / out.len() as f64;
            out.iter_mut().for_each(|loss| *loss += mean);
        }
        if self.fault == Fault::Remembers {
            out[0] += 1e-12 * f64::from(self.calls.fetch_add(1, Ordering::Relaxed) + 1);
        }
    }

    fn backward(&self, parameters: &[f64], batch: Block<'_, f64>, pass: &mut Self::Pass) {
        self.inner.backward(parameters, batch, pass);
    }

    fn squared_norms(&self, batch: Block<'_, f64>, pass: &mut Self::Pass, out: &mut [f64]) {
        self.inner.squared_norms(batch, pass, out);
        match self.fault {
            Fault::NormTooSmall => out.iter_mut().for_each(|norm| *norm *= 0.999),
            Fault::GradientScaled => out.iter_mut().for_each(|norm| *norm *= 1.001 * 1.001),
            _ => {}
        }
    }

    fn add_weighted(&self, batch: Block<'_, f64>, pass: &mut Self::Pass, coefficients: &[f64], sum: &mut [f64]) {
        let mut coefficients = coefficients.to_vec();
        match self.fault {
            Fault::GradientOfABatchScaled if batch.len() > 1 => coefficients.iter_mut().for_each(|c| *c *= 2.0),
            Fault::GradientScaled => coefficients.iter_mut().for_each(|c| *c *= 1.001),
            Fault::CoefficientsSquared => coefficients.iter_mut().for_each(|c| *c *= *c),
            Fault::NothingIsSelected => coefficients.iter_mut().for_each(|c| *c += 1e-300),
            _ => {}
        }
        self.inner.add_weighted(batch, pass, &coefficients, sum);
    }

    fn add_weighted_in_double(
        &self,
        batch: Block<'_, f64>,
        pass: &mut Self::Pass,
        coefficients: &[f64],
        sum: &mut [f64],
    ) {
        let scale = if self.fault == Fault::OtherSumInDouble { 1.001 } else { 1.0 };
        let coefficients: Vec<f64> = coefficients.iter().map(|c| scale * c).collect();
        self.inner.add_weighted_in_double(batch, pass, &coefficients, sum);
    }
}

#[test]
fn every_fault_is_found_under_its_law() {
    let rows = vec![0.6, 0.8, 0.0, 1.0, 0.0, -0.3, 0.0, 0.2, -0.5, 0.1, 0.9, -0.2];
    let mut with_nan = rows.clone();
    with_nan[4] = f64::NAN;
    let targets = vec![1.0, -1.0, 1.0, 1.0];
    let data = Examples::dense(rows, targets.clone(), 3).unwrap();
    let poisoned = Examples::dense(with_nan, targets, 3).unwrap();
    let block = data.block();
    let case = Case {
        parameters: vec![0.3, -0.2, 0.7],
        whole: block,
        singles: (0..4).map(|i| block.slice(i..i + 1)).collect(),
        parts: vec![(block.slice(0..1), 1), (block.slice(1..4), 3)],
        poisoned: Some((poisoned.block(), 1)),
    };
    let law = |fault| {
        let model = Broken { inner: LinearModel::new(3, Logistic), fault, calls: AtomicU32::new(0) };
        model_laws(&model, &case).map_err(|violation| violation.law)
    };
    assert_eq!(law(Fault::None), Ok(()));
    let sound = Broken { inner: LinearModel::new(3, Logistic), fault: Fault::None, calls: AtomicU32::new(0) };
    assert_eq!(sound.norm_roundings(), 3.0, "as many squares as parameters");
    assert_eq!(law(Fault::LossDependsOnTheBatch), Err(1));
    assert_eq!(law(Fault::GradientOfABatchScaled), Err(2));
    assert_eq!(law(Fault::NormTooSmall), Err(3));
    assert_eq!(law(Fault::GradientScaled), Err(4));
    assert_eq!(law(Fault::CoefficientsSquared), Err(5));
    assert_eq!(law(Fault::NothingIsSelected), Err(5));
    assert_eq!(law(Fault::Remembers), Err(6));
    assert_eq!(law(Fault::OtherSumInDouble), Err(9));
}
