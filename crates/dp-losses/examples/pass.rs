//! Trains a logistic model by plain SGD with L2 regularisation on synthetic sparse rows. The parameters are stored as a scale
//! times a vector, so that a step changes only the non-zeros of its row.
#![allow(clippy::print_stdout)] // printing is what an example is for

use dp_data::Examples;
use dp_losses::{L2, LinearModel, Logistic, Model, ScaledSteps};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (rows, dim, stored) = (20_000_usize, 1_000, 5);
    // Column c pulls towards +1 if it is even, towards -1 if it is odd.
    let column = |row: usize, k: usize| (k * 200 + (row * 7_919 + k * 104_729) % 200) as u32;
    let offsets = (0..=rows).map(|row| row * stored).collect();
    let indices: Vec<u32> = (0..rows * stored).map(|i| column(i / stored, i % stored)).collect();
    let targets = indices
        .chunks_exact(stored)
        .map(|row| if row.iter().filter(|&&c| c % 2 == 0).count() * 2 > stored { 1.0 } else { -1.0 })
        .collect();
    let values = vec![1.0 / (stored as f64).sqrt(); rows * stored];
    let data = Examples::sparse(offsets, indices, values, targets, dim)?;

    let (model, regulariser) = (LinearModel::new(dim, Logistic), L2::new(1e-4)?);
    let (mut v, mut scale, mut pass) = (vec![0.0; dim], 1.0, model.pass(rows));
    for (t, start) in (0..rows).enumerate() {
        let eta = 2.0 / (1.0 + t as f64 / 1_000.0).sqrt();
        let next = scale * regulariser.shrink(eta);
        model.step_scaled(scale, -eta / next, data.block().slice(start..start + 1), &mut pass, &mut v);
        scale = next;
    }
    let w: Vec<f64> = v.iter().map(|v| scale * v).collect();
    let mut losses = vec![0.0; rows];
    model.forward(&w, data.block(), &mut pass);
    model.losses(data.block(), &pass, &mut losses);
    let right = pass.predictions().iter().zip(data.block().targets).filter(|(p, y)| *p * *y > 0.0).count();
    println!(
        "one pass over {rows} rows: mean loss {:.4}, {:.1} % right",
        losses.iter().sum::<f64>() / rows as f64,
        100.0 * right as f64 / rows as f64
    );
    Ok(())
}
