//! The run of objective perturbation, with all numbers that do not depend on data, and its training.

use dp_accountant::{DpEvent, EventLog, ZeroOut};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::{LentRng, Prepaid, Released};

use super::objective::RELEASES;
use super::{ObjPert, Perturbation};
use crate::engine::{Control, project};
use crate::error::Error;
use crate::recipes::algorithm::Run;
use crate::recipes::linear::size;
use crate::recipes::noise_scale::NoiseScale;
use crate::recipes::problem::{Admitted, Problem};
use crate::recipes::recipe::{RecordAdjacency, Summary};

/// A resolved release by objective perturbation: regulariser, noises and tolerance.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjPertRun {
    recipe: ObjPert,
    problem: Problem,
    perturbation: Perturbation,
    tolerance: f64,
    event: DpEvent,
}

impl ObjPertRun {
    pub(super) fn new(recipe: &ObjPert, problem: &Problem, perturbation: Perturbation) -> Result<Self, Error> {
        recipe.check()?;
        let event = perturbation.event(recipe, problem)?;
        let tolerance = perturbation.objective(recipe, problem).tolerance()?;
        Ok(Self { recipe: recipe.clone(), problem: *problem, perturbation, tolerance, event })
    }

    /// Returns Λ, the coefficient of `‖w - c‖²/2` in the sum over records.
    pub fn regularization(&self) -> f64 {
        self.perturbation.regularization
    }

    /// Returns the noise in the linear term: the law and scale of `b`.
    pub fn noise(&self) -> NoiseScale {
        self.perturbation.noise
    }

    /// Returns τ, the distance from the minimiser that is certified before the release.
    pub fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// Returns the noise on the minimiser.
    pub fn release_noise(&self) -> NoiseScale {
        self.perturbation.release
    }

    /// Returns the noise on the moments from which the centre is solved, if there is one.
    pub fn centre_noise(&self) -> Option<NoiseScale> {
        self.perturbation.centre
    }

    /// Returns the minimiser for a given linear term, not released.
    #[cfg(any(test, feature = "audit"))]
    pub(crate) fn minimiser<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        noise: &[f64],
        centre: &[f64],
        control: &mut Control<'_>,
    ) -> Result<Vec<F>, Error> {
        let objective = self.perturbation.objective(&self.recipe, &self.problem);
        objective.minimiser(self.tolerance, source, noise, centre, control)
    }

    /// Returns the centre: released least squares projected onto its ball, or the origin.
    fn centre<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        log: &mut EventLog<ZeroOut>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<Vec<f64>, Error> {
        let Self { recipe, problem, perturbation, .. } = self;
        let Some(noise) = perturbation.centre else {
            return Ok(vec![0.0; size("dimension", problem.parameters())?]);
        };
        let stage = recipe.stage(problem);
        let moments = stage.moments_released::<F, ZeroOut>(noise, recipe.noise_mode, source, log, rng, control)?;
        let mut centre = stage.solve(moments, noise, 0.0)?.into_inner();
        project(&mut centre, perturbation.objective(recipe, problem).centre_radius() * (1.0 - 1e-12));
        Ok(centre)
    }
}

impl Run for ObjPertRun {
    fn event(&self) -> Result<DpEvent, Error> {
        Ok(self.event.clone())
    }

    fn summary(&self) -> Summary {
        let Perturbation { regularization, noise, centre, .. } = self.perturbation;
        let of_a_coordinate = noise.coordinate_std_dev(self.problem.parameters());
        Summary {
            sensitivity: Some(self.recipe.row_norm),
            rows: self.problem.n,
            text: format!(
                "linear term of standard deviation {of_a_coordinate:.4}, lambda {:.4e} around {}, minimiser certified to \
                 within {:.1e}",
                regularization / self.problem.n as f64,
                if centre.is_some() { "least squares on noisy moments" } else { "0" },
                self.tolerance
            ),
        }
    }

    fn holds_square(&self) -> bool {
        true
    }

    /// Fails for noise too long to certify rounding errors, independently of the records, with probability below `e^-32`.
    fn train<F: Real, A: RecordAdjacency>(
        &self,
        rows: Admitted<'_, F, A>,
        rng: &mut LentRng<'_>,
        control: &mut Control<'_>,
    ) -> Result<(Released<Vec<F>>, EventLog<A>), Error> {
        let source = rows.into_source();
        let mut scope = Prepaid::<ZeroOut>::new(self.event()?);
        let centre = self.centre::<F>(source, scope.log(), rng, control)?;
        let objective = self.perturbation.objective(&self.recipe, &self.problem);
        let release = self.perturbation.release;
        let weights = objective.release::<F, _>(release, source, &centre, scope.log(), rng, control)?;
        let of_centre = u64::from(self.perturbation.centre.is_some());
        Ok(scope.finish(weights, of_centre + RELEASES)?)
    }
}
