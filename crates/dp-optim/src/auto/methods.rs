//! The expected costs of the methods among which `auto` chooses.

use dp_accountant::AdjacencyKind;

use super::{Auto, ExpectedCost};
use crate::error::Error;
use crate::recipes::Budget;

/// Where noise is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Method {
    /// Once, in the objective whose minimiser is released.
    ObjectivePerturbation,
    /// On the sum of all gradients, at each step.
    AcceleratedDescent,
    /// Once, on the model after stochastic gradient descent.
    OutputPerturbation,
}

impl Method {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ObjectivePerturbation => "objective perturbation",
            Self::AcceleratedDescent => "accelerated descent",
            Self::OutputPerturbation => "output perturbation",
        }
    }
}

/// The expected cost of a method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// The method.
    pub method: Method,
    /// Its expected cost.
    pub expected_cost: ExpectedCost,
}

impl Auto {
    /// Returns the expected cost of each method that supports the loss and the given parameters, including those
    /// that [`choose`](Self::choose) would not select.
    ///
    /// # Examples
    /// ```
    /// use dp_accountant::AdjacencyKind;
    /// use dp_losses::LossKind;
    /// use dp_optim::Auto;
    /// use dp_optim::auto::Method;
    /// use dp_optim::recipes::Budget;
    ///
    /// let budget = Budget::new(1.0, 1e-6)?;
    /// let forecasts = Auto::new(LossKind::Logistic).forecasts(40_000, 100, budget, AdjacencyKind::ZeroOut)?;
    /// assert_eq!(forecasts[0].method, Method::ObjectivePerturbation);
    /// assert!(forecasts[0].expected_cost.share < forecasts[2].expected_cost.share);
    /// # Ok::<(), dp_optim::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`choose`](Self::choose).
    pub fn forecasts(&self, n: u64, dim: u64, budget: Budget, relation: AdjacencyKind) -> Result<Vec<Forecast>, Error> {
        let terms = self.terms(n, dim, budget, relation)?;
        let objective =
            if self.supports_objective_perturbation(&terms) { self.perturb_objective(&terms)? } else { None };
        let descent = self.descend(&terms)?;
        let output = if self.loss.is_smooth() && terms.character.clipping.is_none() {
            Some(self.perturb_output(&terms)?)
        } else {
            None
        };
        let choices = objective.into_iter().chain([descent]).chain(output);
        Ok(choices.map(|choice| Forecast { method: choice.method, expected_cost: choice.expected_cost }).collect())
    }
}
