//! The release of noisy moments, and the model solved from it.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{DpEvent, EventLog};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::{LentRng, Released};
use nalgebra::convert;

use super::stage::Stage;
use crate::engine::Control;
use crate::error::Error;
use crate::recipes::algorithm::Run;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::problem::Admitted;
use crate::recipes::recipe::{RecordAdjacency, Summary};

/// A training by noisy moments: the sums, their noise, and the regulariser.
#[derive(Debug, Clone, PartialEq)]
pub struct MomentsRun {
    pub(super) stage: Stage,
    pub(super) lambda: f64,
    pub(super) sensitivity: f64,
    pub(super) noise: NoiseScale,
    pub(super) noise_mode: NoiseMode,
}

impl MomentsRun {
    /// Returns the noise on the moments.
    pub fn noise(&self) -> NoiseScale {
        self.noise
    }

    /// Returns the L2 sensitivity of all moments together.
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    pub(crate) fn moments<F: Real, A: RecordAdjacency>(
        &self,
        source: &mut dyn RowSource<F>,
        log: &mut EventLog<A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Released<Vec<f64>>, Error> {
        self.stage.moments_released::<F, A>(self.noise, self.noise_mode, source, log, rng, control)
    }
}

impl Run for MomentsRun {
    fn event(&self) -> Result<DpEvent, Error> {
        Ok(self.noise.event(self.sensitivity, self.stage.moments()))
    }

    fn summary(&self) -> Summary {
        let moments = self.stage.moments();
        Summary {
            sensitivity: Some(self.sensitivity),
            rows: self.stage.n,
            text: format!(
                "sensitivity {:.4e} of {moments} moments, noise of norm {:.4e} on them, lambda {:e}",
                self.sensitivity,
                self.noise.coordinate_std_dev(moments) * (moments as f64).sqrt(),
                self.lambda,
            ),
        }
    }

    fn holds_square(&self) -> bool {
        true
    }

    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        let mut log = EventLog::new();
        let moments = self.moments(source, &mut log, rng, control)?;
        let weights = self.stage.solve(moments, self.noise, self.lambda * self.stage.n as f64)?;
        Ok((weights.map(|weights| weights.into_iter().map(convert).collect()), log))
    }
}
