//! Private choices among settings.

use dp_accountant::{Delta, Repetitions};
use dp_optim::Error;
use dp_optim::catalogue::Settings;
use dp_optim::recipes::AnyRecipe;
use dp_optim::tuning::composition::Candidate;
use dp_optim::tuning::{Composition, MOST_CANDIDATES, Portions, RandomStopping};

use super::Shape;

/// A private choice among settings, which is part of the release.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The combinations to choose among.
    pub grid: Vec<Settings>,
    /// The method.
    pub method: ChoiceMethod,
}

/// The method of a private choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChoiceMethod {
    /// On disjoint portions of the records, one for each combination and one to compare them.
    Portions,
    /// Each combination on the same nine tenths of the records, the others to compare them; the costs of all trainings compose.
    Composition,
    /// The best of a random number of trainings.
    RandomStopping(Repetitions),
}

/// The law of the number of trainings in [`ChoiceMethod::RandomStopping`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrialLaw {
    /// Logarithmic: the truncated negative binomial law with eta = 0.
    #[default]
    Logarithmic,
    /// Geometric: eta = 1.
    Geometric,
    /// Poisson, which may train nothing and needs a delta.
    Poisson,
}

/// Largest mean number of trainings.
const MOST_TRIALS: f64 = 10_000.0;

impl ChoiceMethod {
    /// Returns random stopping by this law, with `trials` trainings on average; by default twice the number of candidates.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for `trials`, [`Error::Setting`] for a Poisson law without a delta.
    ///
    /// # Examples
    /// ```
    /// use dp::training::{ChoiceMethod, TrialLaw};
    /// use dp_accountant::Delta;
    ///
    /// assert!(ChoiceMethod::random_stopping(TrialLaw::Geometric, None, 3, Delta::ZERO).is_ok());
    /// assert!(ChoiceMethod::random_stopping(TrialLaw::Poisson, None, 3, Delta::ZERO).is_err());
    /// ```
    pub fn random_stopping(law: TrialLaw, trials: Option<f64>, candidates: usize, delta: Delta) -> Result<Self, Error> {
        let mean = trials.unwrap_or(2.0 * candidates as f64);
        let (is_enough, range) = match law {
            TrialLaw::Poisson => (mean > 0.0, "a number above 0, at most 10000"),
            TrialLaw::Logarithmic | TrialLaw::Geometric => (mean > 1.0, "a number above 1, at most 10000"),
        };
        if !(is_enough && mean <= MOST_TRIALS) {
            return Err(Error::OutOfRange { name: "trials", value: mean, range });
        }
        Ok(Self::RandomStopping(match law {
            TrialLaw::Logarithmic => RandomStopping::repetitions_of_mean(0.0, mean),
            TrialLaw::Geometric => RandomStopping::repetitions_of_mean(1.0, mean),
            TrialLaw::Poisson if delta == Delta::ZERO => {
                return Err(Error::Setting {
                    name: "trial-law",
                    why: "the best of a Poisson number of trainings has no guarantee without a delta",
                    expected: Some("a delta above 0, or another law"),
                    help: None,
                });
            }
            TrialLaw::Poisson => Repetitions::Poisson { mean },
        }))
    }
}

impl Choice {
    /// Creates a choice.
    ///
    /// # Errors
    /// [`Error::Count`] for fewer than two combinations, or more than [`MOST_CANDIDATES`].
    pub fn new(grid: Vec<Settings>, method: ChoiceMethod) -> Result<Self, Error> {
        if !(2..=MOST_CANDIDATES).contains(&grid.len()) {
            // `MOST_CANDIDATES` in words.
            let range = "2 to 1000 combinations of settings";
            return Err(Error::Count { name: "grid", value: grid.len() as u64, range });
        }
        Ok(Self { grid, method })
    }

    /// Returns the shape of the records that one combination is trained on.
    pub fn shape_of_one(&self, shape: Shape) -> Shape {
        match self.method {
            ChoiceMethod::Portions => Shape { n: Portions::records_of_portion(shape.n, self.grid.len()), ..shape },
            ChoiceMethod::Composition => {
                let of_choice = Composition::records_of_choice(shape.n);
                Shape { n: shape.n.saturating_sub(of_choice), ..shape }
            }
            ChoiceMethod::RandomStopping(_) => shape,
        }
    }

    /// Returns the recipe that chooses among the candidates.
    pub fn recipe(&self, candidates: Vec<AnyRecipe>) -> AnyRecipe {
        match self.method {
            ChoiceMethod::Portions => Portions::new(candidates).into(),
            ChoiceMethod::Composition => Composition::new(candidates.into_iter().map(Candidate::new)).into(),
            ChoiceMethod::RandomStopping(repetitions) => {
                RandomStopping { candidates, repetitions, score_share: RandomStopping::SCORE_SHARE }.into()
            }
        }
    }
}
