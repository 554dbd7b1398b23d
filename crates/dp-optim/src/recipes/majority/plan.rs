//! A constant answer with everything derived that does not need data, and its release.

use dp_accountant::{Delta, Epsilon, EventLog, bound};
use dp_data::RowSource;
use dp_losses::Real;
use dp_mechanisms::{Bounded, L2Sensitivity, LaplaceBall, Mechanism, PrivacyEvent, ReleaseRng, Released};
use nalgebra::convert;

use super::{Majority, MajorityDerivation};
use crate::engine::Control;
use crate::engine::grid_sum::{GridSum, counts, each_record};
use crate::error::Error;
use crate::recipes::AnyDerivation;
use crate::recipes::linear::size;
use crate::recipes::promise::Promise;
use crate::recipes::recipe::{Budget, Expected, Planned, RecordAdjacency, Summary, repeated};
use crate::trained::Trained;

/// The release of a constant answer, planned: noise, event and guarantee, from public parameters alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A: RecordAdjacency> {
    derivation: MajorityDerivation,
    noise: LaplaceBall<A>,
    promise: Promise,
}

impl<A: RecordAdjacency> Plan<A> {
    pub(super) fn new(recipe: &Majority, n: u64, dim: u64, budget: Budget, copies: u64) -> Result<Self, Error> {
        recipe.check(n, dim)?;
        GridSum::new(n)?;
        let sensitivity = L2Sensitivity::<A>::new(Majority::sensitivity(A::KIND)?)?;
        let mut noise = LaplaceBall::new(sensitivity, Epsilon::new(budget.epsilon.get() / copies as f64)?, 1)?;
        // The accountant rounds the quotient up; lift the scale by its last bits until it agrees.
        for _ in 0..8 {
            if bound::epsilon(&repeated(noise.event(), copies), Delta::ZERO)?.value <= budget.epsilon.get() {
                break;
            }
            noise = LaplaceBall::from_scale(sensitivity, noise.scale() * (1.0 + 4.0 * f64::EPSILON), 1)?;
        }
        let noise = noise.with_noise_mode(recipe.noise_mode)?;
        let promise = Promise::new(noise.event(), budget, copies)?;
        let derivation = MajorityDerivation { recipe: recipe.clone(), relation: A::KIND, n, dim, scale: noise.scale() };
        Ok(Self { derivation, noise, promise })
    }

    /// Scale of the noise on the sum of the targets, in units of their bound.
    pub fn scale(&self) -> f64 {
        self.derivation.scale
    }

    /// How far one record moves that sum.
    pub fn sensitivity(&self) -> f64 {
        self.noise.sensitivity().get()
    }

    /// How the release follows from public parameters.
    pub fn derivation(&self) -> &MajorityDerivation {
        &self.derivation
    }

    /// Releases the model.
    ///
    /// # Privacy
    /// As [`Planned::train`].
    ///
    /// # Errors
    /// A source of another shape or with wider bounds than planned or that fails, [`Error::Interrupted`].
    pub fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        let mut log = EventLog::new();
        let sum = self.noisy_sum(source, &mut log, rng, control)?;
        let MajorityDerivation { recipe, n, dim, .. } = &self.derivation;
        let mut weights = vec![F::zero(); size("dimension", *dim)?];
        let weights = sum.map(|sum| {
            let mean = sum.first().copied().unwrap_or(0.0) / *n as f64;
            if let Some(intercept) = weights.last_mut() {
                *intercept = convert(recipe.answer(mean, *n));
            }
            weights
        });
        let derivation = AnyDerivation::Majority(self.derivation.clone());
        self.promise.kept(weights, log, derivation, self.noise.noise_mode())
    }

    /// The sum of the targets with its noise, in units of their bound.
    pub(crate) fn noisy_sum<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        log: &mut EventLog<A>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Released<Vec<f64>>, Error> {
        let sum = vec![self.sum(source, control)?];
        Ok(self.noise.release(Bounded::with_proven_sensitivity(sum, self.noise.sensitivity()), log, rng)?)
    }

    /// The sum of the targets, in units of their bound: as private as the data.
    pub(crate) fn sum<F: Real>(&self, source: &mut dyn RowSource<F>, control: &mut Control<'_>) -> Result<f64, Error> {
        let MajorityDerivation { recipe, n, dim, .. } = &self.derivation;
        let (row_norm, target_bound) = (recipe.row_norm, recipe.target_bound);
        Expected { n: *n, dim: *dim, row_norm, target_bound }.check(&source.describe()?)?;
        let grid = GridSum::new(*n)?;
        let mut cells = 0;
        each_record(source, 0, control, |block| {
            for (_, &target) in (0..).zip(block.targets).filter(|(i, _)| counts(block, *i)) {
                let target: f64 = target.to_subset_unchecked();
                cells += grid.cell(target / target_bound);
            }
        })?;
        source.finish()?;
        Ok(grid.value(cells))
    }
}

impl<A: RecordAdjacency> Planned<A> for Plan<A> {
    type Derivation = AnyDerivation;

    fn promise(&self) -> &Promise {
        &self.promise
    }

    fn derivation(&self) -> AnyDerivation {
        AnyDerivation::Majority(self.derivation.clone())
    }

    fn summary(&self) -> Summary {
        let scale = self.derivation.scale * self.derivation.recipe.target_bound;
        Summary {
            sensitivity: Some(self.sensitivity() * self.derivation.recipe.target_bound),
            rows: self.derivation.n,
            text: format!("noise of scale {scale:.4e} on the sum of the targets, the same answer for everyone"),
        }
    }

    fn train<F: Real>(
        &self,
        source: &mut dyn RowSource<F>,
        rng: &mut (impl ReleaseRng + ?Sized),
        control: &mut Control<'_>,
    ) -> Result<Trained<F, A, AnyDerivation>, Error> {
        self.train(source, rng, control)
    }
}
