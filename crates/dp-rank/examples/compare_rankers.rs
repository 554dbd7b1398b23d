//! Compares two scorers on the same synthetic lists, with standard metrics and with LETOR's conventions.
//!
//! `cargo run -p dp-rank --example compare_rankers`

use std::error::Error;
use std::io::Write;

use dp_rank::Ranking;
use dp_rank::metrics::{self, Cutoff};

/// A small generator of uniform numbers, so that the example prints the same everywhere.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut uniform = Uniform(7);
    let (mut informed, mut random) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        let n = 5 + (uniform.next() * 20.0) as usize;
        let quality: Vec<f64> = (0..n).map(|_| uniform.next()).collect();
        let grades: Vec<u32> = quality.iter().map(|&q| u32::from(q > 0.7) + u32::from(q > 0.9)).collect();
        let noisy: Vec<f64> = quality.iter().map(|q| q + 0.5 * uniform.next()).collect();
        let guesses: Vec<f64> = (0..n).map(|_| uniform.next()).collect();
        informed.push(Ranking::new(&noisy, &grades)?);
        random.push(Ranking::new(&guesses, &grades)?);
    }

    let mut out = std::io::stdout().lock();
    writeln!(out, "{:<10} {:>8} {:>8} {:>14} {:>8}", "scorer", "NDCG@5", "NDCG@10", "LETOR NDCG@10", "MAP")?;
    for (name, lists) in [("informed", &informed), ("random", &random)] {
        let ndcg_at = |k: usize| -> Result<f64, dp_rank::Error> {
            let k = Cutoff::new(k)?;
            metrics::mean_over(lists, |list| metrics::ndcg(list, k))
        };
        let ten = Cutoff::new(10)?;
        writeln!(
            out,
            "{name:<10} {:>8.4} {:>8.4} {:>14.4} {:>8.4}",
            ndcg_at(5)?,
            ndcg_at(10)?,
            metrics::mean_over(lists, |list| metrics::ndcg_letor(list, ten))?,
            metrics::mean_over(lists, metrics::average_precision)?,
        )?;
    }
    writeln!(out, "LETOR's figure is lower because lists of fewer than ten documents count as 0 in it.")?;
    Ok(())
}
