//! A member of the zoo: a fault, its claim, the attacker's statistic, and its sound twin.

use dp_accountant::DpEvent;
use dp_audit::{Claim, Error, Side, Statistic, Subject};
use dp_mechanisms::SeededRng;

/// The attacker's statistic of one run on one of the inputs.
pub(crate) type Observe = Box<dyn Fn(Side, &mut SeededRng) -> f64 + Send + Sync>;

/// A mutant and its twin under one claim, one pair of inputs and one statistic.
pub(crate) struct Specimen {
    pub(crate) name: &'static str,
    pub(crate) pair: &'static str,
    pub(crate) claim: Claim,
    pub(crate) statistic: Statistic,
    pub(crate) trials: u64,
    pub(crate) mutant: Observe,
    pub(crate) twin: Observe,
}

impl Specimen {
    /// Creates a fault that shows in a score, whose threshold the auditor selects.
    pub(crate) fn score(
        name: &'static str,
        pair: &'static str,
        claim: Claim,
        mutant: impl Fn(Side, &mut SeededRng) -> f64 + Send + Sync + 'static,
        twin: impl Fn(Side, &mut SeededRng) -> f64 + Send + Sync + 'static,
    ) -> Self {
        let (mutant, twin) = (Box::new(mutant), Box::new(twin));
        Self { name, pair, claim, statistic: Statistic::Score, trials: 20_000, mutant, twin }
    }

    /// Creates a fault that shows in a fixed event.
    pub(crate) fn event(
        name: &'static str,
        pair: &'static str,
        claim: Claim,
        mutant: impl Fn(Side, &mut SeededRng) -> bool + Send + Sync + 'static,
        twin: impl Fn(Side, &mut SeededRng) -> bool + Send + Sync + 'static,
    ) -> Self {
        let indicator = |event: bool| if event { 1.0 } else { 0.0 };
        let mutant = move |side, rng: &mut SeededRng| indicator(mutant(side, rng));
        let twin = move |side, rng: &mut SeededRng| indicator(twin(side, rng));
        Self { statistic: Statistic::Event, ..Self::score(name, pair, claim, mutant, twin) }
    }

    /// Sets the number of runs on each input.
    pub(crate) fn with_trials(self, trials: u64) -> Self {
        Self { trials, ..self }
    }
}

/// Claims `epsilon`-DP.
pub(crate) fn pure(epsilon: f64) -> Claim {
    Claim { event: DpEvent::PureDp { epsilon }, delta: 0.0 }
}

/// Claims Gaussian noise of standard deviation 1 on a value of sensitivity `mu`, stated at delta = 1e-5.
pub(crate) fn gaussian(mu: f64) -> Claim {
    Claim { event: DpEvent::Gaussian { std_dev: 1.0, sensitivity: mu }, delta: 1e-5 }
}

/// The half of a specimen that an audit runs.
pub(crate) struct Cage<'a> {
    name: String,
    specimen: &'a Specimen,
    observe: &'a Observe,
}

impl Specimen {
    /// Returns the faulty half.
    pub(crate) fn mutant(&self) -> Cage<'_> {
        Cage { name: self.name.to_owned(), specimen: self, observe: &self.mutant }
    }

    /// Returns the sound twin.
    pub(crate) fn twin(&self) -> Cage<'_> {
        Cage { name: format!("{}: sound", self.name), specimen: self, observe: &self.twin }
    }
}

impl Subject for Cage<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn pair(&self) -> &str {
        self.specimen.pair
    }

    fn claim(&self) -> &Claim {
        &self.specimen.claim
    }

    fn statistic(&self) -> Statistic {
        self.specimen.statistic
    }

    fn observe(&self, side: Side, rng: &mut SeededRng, features: &mut Vec<f64>) -> Result<(), Error> {
        features.push((self.observe)(side, rng));
        Ok(())
    }

    fn trials_hint(&self) -> Option<u64> {
        Some(self.specimen.trials)
    }
}

/// Returns `base` or `neighbour`.
pub(crate) fn pick<T>(side: Side, base: T, neighbour: T) -> T {
    match side {
        Side::Base => base,
        Side::Neighbour => neighbour,
    }
}
