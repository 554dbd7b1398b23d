//! The run of a descent with its noise.

use dp_accountant::{DpEvent, EventLog};
use dp_losses::Real;
use dp_mechanisms::{LentRng, Released};

use super::{Descent, Updates};
use crate::engine::Control;
use crate::error::{Error, positive};
use crate::recipes::algorithm::Run;
use crate::recipes::problem::Admitted;
use crate::recipes::recipe::{RecordAdjacency, Summary};

/// A training with noise on every iterate that releases the last one.
#[derive(Debug, Clone, PartialEq)]
pub struct DescentRun {
    pub(super) descent: Descent,
    pub(super) std_dev: f64,
}

impl DescentRun {
    /// Creates the run with noise of standard deviation `std_dev` on each batch's mean gradient.
    pub(in crate::recipes) fn new(descent: Descent, std_dev: f64) -> Result<Self, Error> {
        positive("standard deviation", std_dev)?;
        Ok(Self { descent, std_dev })
    }

    /// Returns the updates of a pass, with consecutive equal ones combined.
    pub fn updates(&self) -> &[Updates] {
        &self.descent.updates
    }

    /// Returns σ, the standard deviation of the noise on each batch's mean gradient.
    pub fn std_dev(&self) -> f64 {
        self.std_dev
    }

    /// Returns the root of the expected squared norm of all noise together, as in the last iterate if nothing contracts.
    pub fn noise_norm(&self) -> f64 {
        let Descent { updates, passes, .. } = &self.descent;
        let squares: f64 = updates.iter().map(|update| update.count as f64 * update.step * update.step).sum();
        self.std_dev * (squares * *passes as f64 * self.descent.parameters() as f64).sqrt()
    }
}

impl Run for DescentRun {
    fn event(&self) -> Result<DpEvent, Error> {
        self.descent.event(self.std_dev)
    }

    fn summary(&self) -> Summary {
        let Descent { inputs, problem, passes, updates, .. } = &self.descent;
        let smallest = updates.iter().map(|update| update.batch_size).min().unwrap_or(0);
        let largest = updates.iter().map(|update| update.batch_size).max().unwrap_or(0);
        let batches = if smallest == largest { largest.to_string() } else { format!("{smallest} to {largest}") };
        let first = updates.first().map_or(0.0, |update| update.step);
        Summary {
            // Each iterate has a different sensitivity.
            sensitivity: None,
            rows: problem.n.saturating_mul(*passes),
            text: format!(
                "noise {:.4e} on each mean gradient, {} updates, batches of {batches}, first step {first:.4e}, \
                 lambda {:e}",
                self.std_dev,
                self.descent.updates_per_pass().saturating_mul(*passes),
                inputs.lambda
            ),
        }
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        self.descent.train(self.std_dev, source, rng, control)
    }
}
