//! Settings of a ranker's training that have recommended values.

use dp_optim::Error;
use dp_rank::spectral::Normalise;
use dp_rank::train::Scaling;

use super::{Method, RankerTraining};
use crate::ranker::{NamedLoss, ScorerShape};

/// Largest accepted width of documents and layers.
pub const WIDEST: usize = 1 << 20;

/// Largest accepted number of updates: more would take too long.
pub const MOST_UPDATES: u64 = 10_000_000;

/// The given settings; all others keep their recommended values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RankerSettings {
    /// Clipping norm of a list's gradient.
    pub clip: Option<f64>,
    /// Initial learning rate, which decays.
    pub step: Option<f64>,
    /// Expected batch size, in lists.
    pub batch_size: Option<u64>,
    /// Number of updates.
    pub updates: Option<u64>,
    /// Spectral normalisation of a network's weight matrix.
    pub normalise: Option<Normalise>,
    /// One weight for all gradients of a list, computed from its public features, in place of clipping: for bayesrank with
    /// protected grades.
    pub public_scaling: bool,
    /// True if the largest grade is kept for one random document of each drawn list (bayesrank).
    pub thin: bool,
}

impl RankerTraining {
    /// Sets the given settings.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Count`]; [`Error::Setting`] for a setting that contradicts loss, scorer, method or
    /// protected data. The names are those of the fields of [`RankerSettings`], with hyphens; `scaling` for `public_scaling`.
    pub fn with_settings(mut self, settings: &RankerSettings) -> Result<Self, Error> {
        let RankerSettings { clip, step, batch_size, updates, normalise, public_scaling, thin } = *settings;
        for (name, number) in [("clip", clip), ("step", step)] {
            if let Some(value) = number
                && !(value > 0.0 && value.is_finite())
            {
                return Err(Error::OutOfRange { name, value, range: "a finite number above 0" });
            }
        }
        if batch_size == Some(0) {
            return Err(Error::Count { name: "batch-size", value: 0, range: "at least 1" });
        }
        if let Some(value) = updates
            && !(1..=MOST_UPDATES).contains(&value)
        {
            return Err(Error::Count { name: "updates", value, range: "a whole number from 1 to 10000000" });
        }
        if normalise.is_some() && self.scorer == (ScorerShape::Linear {}) {
            return Err(unfit("normalise", "it has no meaning for a linear scorer", "a network"));
        }
        let is_bayesrank = matches!(self.loss(), NamedLoss::Bayesrank { .. });
        let protects = self.protects();
        let (of_batch, descent) = match &mut self.method {
            Method::Private { recipe, .. } => {
                if thin && !is_bayesrank {
                    let why = "the target of this loss is made of all grades of a list";
                    return Err(unfit("thin", why, "the loss bayesrank"));
                }
                if public_scaling && !is_bayesrank {
                    let why = "how far grades can move a gradient of this loss is not known";
                    return Err(unfit("scaling", why, "the loss bayesrank"));
                }
                if public_scaling && !protects.has_public_features() {
                    let why = "weights would be computed from features, which are protected";
                    return Err(unfit("scaling", why, "protected grades"));
                }
                recipe.clipping = clip.unwrap_or(recipe.clipping);
                recipe.thin = thin;
                recipe.scaling = match (public_scaling, thin) {
                    (false, _) => Scaling::Clip,
                    (true, true) => Scaling::THINNED,
                    (true, false) => Scaling::WHOLE,
                };
                (&mut recipe.batch_size, &mut recipe.descent)
            }
            Method::NonPrivate(recipe) => {
                for (given, name) in [(clip.is_some(), "clip"), (public_scaling, "scaling"), (thin, "thin")] {
                    if given {
                        return Err(unfit(name, "it has no meaning without privacy", "a private training"));
                    }
                }
                (&mut recipe.batch_size, &mut recipe.descent)
            }
        };
        *of_batch = batch_size.unwrap_or(*of_batch);
        descent.updates = updates.unwrap_or(descent.updates);
        descent.step = step.unwrap_or(descent.step);
        descent.normalise = normalise;
        Ok(self)
    }
}

fn unfit(name: &'static str, why: &'static str, expected: &'static str) -> Error {
    Error::Setting { name, why, expected: Some(expected), help: None }
}

#[cfg(test)]
mod tests {
    use dp_rank::train::Protected;

    use super::*;

    #[test]
    fn settings_are_set_or_refused_by_name() {
        let of = |loss| RankerTraining::new(loss, 1.0, 1e-6).unwrap();
        let usual = of(NamedLoss::Bayesrank { k: 1 });
        assert_eq!(usual.with_settings(&RankerSettings::default()).unwrap(), usual);
        let given = RankerSettings {
            clip: Some(0.5),
            step: Some(2.0),
            batch_size: Some(7),
            updates: Some(9),
            thin: true,
            public_scaling: true,
            ..RankerSettings::default()
        };
        let Method::Private { recipe, .. } = usual.with_settings(&given).unwrap().method else { panic!("not private") };
        assert_eq!((recipe.clipping, recipe.descent.step, recipe.batch_size, recipe.descent.updates), (0.5, 2.0, 7, 9));
        assert_eq!((recipe.thin, recipe.scaling), (true, Scaling::THINNED));

        let listnet = of(NamedLoss::Listnet { k: 1 });
        let without = RankerTraining::without_privacy(NamedLoss::Bayesrank { k: 1 }).unwrap();
        let none = RankerSettings::default();
        for (training, settings, name) in [
            (usual, RankerSettings { clip: Some(0.0), ..none }, "clip"),
            (usual, RankerSettings { step: Some(f64::NAN), ..none }, "step"),
            (usual, RankerSettings { batch_size: Some(0), ..none }, "batch-size"),
            (usual, RankerSettings { updates: Some(MOST_UPDATES + 1), ..none }, "updates"),
            (usual, RankerSettings { normalise: Some(Normalise::Always), ..none }, "normalise"),
            (listnet, RankerSettings { thin: true, ..none }, "thin"),
            (listnet, RankerSettings { public_scaling: true, ..none }, "scaling"),
            (usual.protecting(Protected::WholeList), RankerSettings { public_scaling: true, ..none }, "scaling"),
            (without, RankerSettings { clip: Some(1.0), ..none }, "clip"),
            (without, RankerSettings { thin: true, ..none }, "thin"),
        ] {
            match training.with_settings(&settings).unwrap_err() {
                Error::OutOfRange { name: found, .. }
                | Error::Count { name: found, .. }
                | Error::Setting { name: found, .. } => assert_eq!(found, name),
                other => panic!("{other}"),
            }
        }
        let network = RankerTraining { scorer: ScorerShape::mlp(), ..usual };
        assert!(network.with_settings(&RankerSettings { normalise: Some(Normalise::AboveOne), ..none }).is_ok());
    }
}
