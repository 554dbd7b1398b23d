//! The public parameters of a training, checked in one place for all recipes.

use core::marker::PhantomData;

use dp_accountant::AdjacencyKind;
use dp_accountant::certificate::{Assumption, NoiseMode};
use dp_data::RowSource;
use dp_losses::{Domain, LossKind, Real};

use super::algorithm::Algorithm;
use super::recipe::RecordAdjacency;
use crate::derivation::ModelTerms;
use crate::error::{Error, non_negative, positive};
use crate::float::FloatKind;

/// The parameters common to all recipes: the loss, the bounds that the source enforces, the noise mode and the floating-point
/// type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// The loss.
    pub loss: LossKind,
    /// Bound on the rows' L2 norm.
    pub row_norm: f64,
    /// Bound on the targets' absolute value; at most 1 for binary losses.
    pub target_bound: f64,
    /// The noise mode: exact or rounded.
    pub noise_mode: NoiseMode,
    /// The floating-point type of training; `None` if rows of either type are summed in doubles.
    pub float: Option<FloatKind>,
}

impl Setting {
    /// Returns the [assumptions](Self::assumptions), with that of a declared order if it is used.
    pub(super) fn assumptions_in(&self, declared_order: bool) -> Vec<Assumption> {
        let mut assumptions = self.assumptions();
        assumptions.extend(declared_order.then_some(Assumption::DeclaredOrder));
        assumptions
    }

    /// Returns the assumptions common to all recipes: public `n`, the bound on row norms, one row per unit, idealised noise
    /// if it is rounded, and for a custom loss its author's claims.
    pub fn assumptions(&self) -> Vec<Assumption> {
        let mut assumptions =
            vec![Assumption::PublicN, Assumption::RowNorm { bound: self.row_norm }, Assumption::OneRowPerUnit];
        if self.noise_mode != NoiseMode::Exact {
            assumptions.push(Assumption::IdealisedFloat);
        }
        if let LossKind::Custom(loss) = self.loss {
            let text = format!(
                "The loss {} is convex, its slope at most {}, its curvature at most {} and {} over the size of the argument; its \
                 derivative is accurate to 8 roundings.",
                self.loss,
                loss.slope(),
                loss.curvature(),
                loss.relative_curvature()
            );
            assumptions.push(Assumption::Other { text });
        }
        assumptions
    }
}

/// A recipe's setting, the public shape of the data and the neighbouring relation, all within their ranges.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Problem {
    /// Loss, bounds, noise mode and floating-point type.
    pub setting: Setting,
    /// Number of records, public, at least 1.
    pub n: u64,
    /// Number of features, intercept included, at least 1.
    pub dim: u64,
    /// The neighbouring relation: replace-one or zero-out.
    pub relation: AdjacencyKind,
}

impl Problem {
    /// Creates the problem that `recipe` solves on `n` records of `dim` features.
    ///
    /// # Errors
    /// A number outside its range, a relation under which `n` is secret, and a noise mode without noise.
    pub fn new<R: Algorithm>(recipe: &R, n: u64, dim: u64, relation: AdjacencyKind) -> Result<Self, Error> {
        let setting = recipe.setting();
        if !matches!(setting.noise_mode, NoiseMode::Exact | NoiseMode::Rounded) {
            let why = "without noise there is no guarantee: choose exact or rounded noise";
            return Err(Error::NotProved { recipe: R::NAME, why });
        }
        for (name, value) in [("number of records", n), ("dimension", dim)] {
            if value == 0 {
                return Err(Error::Count { name, value, range: "1 or more" });
            }
        }
        if !(positive("row norm", setting.row_norm)? <= R::MOST_ROW_NORM) {
            return Err(Error::OutOfRange { name: "row norm", value: setting.row_norm, range: "(0, 1]" });
        }
        let targets = non_negative("target bound", setting.target_bound)?;
        if setting.loss.is_classification() && targets > R::MOST_CLASS_TARGET {
            // The gradient is the target times a slope of at most 1.
            let range = "[0, 1] for a loss of two classes";
            return Err(Error::OutOfRange { name: "target bound", value: targets, range });
        }
        match relation {
            AdjacencyKind::ReplaceOne | AdjacencyKind::ZeroOut => Ok(Self { setting, n, dim, relation }),
            adjacency => Err(Error::Adjacency { recipe: R::NAME, adjacency }),
        }
    }

    /// Returns the domain of rows, targets and, within a radius, parameters, on which the loss's constants depend.
    ///
    /// # Errors
    /// A radius that is not finite and positive.
    pub fn domain(&self, radius: Option<f64>) -> Result<Domain, Error> {
        let Setting { row_norm, target_bound, .. } = self.setting;
        let domain = Domain::unit_rows().with_row_norm(row_norm)?.with_target_bound(target_bound)?;
        Ok(match radius {
            Some(radius) => domain.with_radius(positive("radius", radius)?)?,
            None => domain,
        })
    }

    /// Returns the number of weights.
    pub fn parameters(&self) -> u64 {
        self.setting.loss.parameters(self.dim)
    }

    /// Returns the terms that the released model must meet.
    pub fn model_terms(&self) -> ModelTerms {
        let Setting { loss, row_norm, target_bound, noise_mode, .. } = self.setting;
        ModelTerms {
            models: 1,
            weights: self.parameters(),
            has_threshold: false,
            loss,
            row_norm,
            target_bound,
            noise_mode,
        }
    }

    /// Checks relation, floating-point type, shape and bounds before a training.
    ///
    /// # Errors
    /// [`Error::Relation`], [`Error::FloatKind`], [`Error::Shape`], [`Error::Bound`], and a failing source.
    pub(crate) fn admit<'s, F: Real, A: RecordAdjacency>(
        &self,
        source: &'s mut dyn RowSource<F>,
    ) -> Result<Admitted<'s, F, A>, Error> {
        if A::KIND != self.relation {
            return Err(Error::Relation { planned: self.relation, found: A::KIND });
        }
        if let Some(float) = self.setting.float {
            float.expect::<F>()?;
        }
        let found = source.describe()?;
        for (name, planned, found) in [("n", self.n, found.n), ("dim", self.dim, found.dim as u64)] {
            if planned != found {
                return Err(Error::Shape { name, planned, found });
            }
        }
        let Setting { row_norm, target_bound, .. } = self.setting;
        for (name, planned, found) in
            [("row norms", row_norm, found.row_norm), ("targets", target_bound, found.target_bound)]
        {
            if !(found <= planned) {
                return Err(Error::Bound { name, planned, found });
            }
        }
        Ok(Admitted { source, relation: PhantomData })
    }
}

/// A source whose description has been checked against a plan under the relation `A`.
///
/// Only this crate creates one, when a plan starts to train.
pub struct Admitted<'s, F, A: RecordAdjacency> {
    source: &'s mut dyn RowSource<F>,
    relation: PhantomData<A>,
}

impl<'s, F, A: RecordAdjacency> Admitted<'s, F, A> {
    /// Returns the rows.
    pub fn into_source(self) -> &'s mut dyn RowSource<F> {
        self.source
    }
}
