//! The checked settings of a ranker's training and its privacy budget.

use dp::RankerTraining;
use dp::ranker::{NamedLoss, ScorerShape};
use dp::ranking::{RankerSettings, WIDEST};
use dp_accountant::{Delta, Epsilon};
use dp_optim::Error;
use dp_optim::recipes::Budget;
use dp_rank::ranking::LARGEST_GRADE;
use dp_rank::train::Protected;

use super::lists::Declared;
use crate::args::{Adjacency, RankLoss, RankModel, RankModelArgs, RankPrivacyArgs, RankProtect, RankScaling, refused};
use crate::commands::train::refusal;
use crate::failure::Failure;
use crate::input::{conflict, meaningless, missing};
use crate::limit;

/// The settings of a training.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) training: RankerTraining,
    pub(super) declared: Declared<'static>,
    pub(super) limit: Option<f64>,
}

impl Settings {
    /// Checks the flags.
    pub(super) fn new(model: &RankModelArgs, privacy: &RankPrivacyArgs) -> Result<Self, Failure> {
        let loss = loss(model)?;
        if !(1..=LARGEST_GRADE).contains(&model.largest_grade) {
            return Err(Failure::usage("--largest-grade", format!("--largest-grade is {}", model.largest_grade))
                .expected(format!("a whole number from 1 to {LARGEST_GRADE}")));
        }
        let features = model.features.map(|features| bounded("--features", features)).transpose()?;
        let scorer = scorer(model)?;
        privacy.limit.map_or(Ok(()), limit::check)?;
        let budget = budget(privacy)?;
        let protects = protects(privacy)?;
        if !protects.has_public_features() && features.is_none() {
            return Err(missing("--features", "how many features a document has was not said")
                .expected("the number of features, known without looking at the lists: they are what is protected")
                .help("add --features 46, say, or --protect grades where features are public"));
        }
        let usual = match budget {
            Some(Budget { epsilon, delta }) => RankerTraining::new(loss, epsilon.get(), delta.get()),
            None => RankerTraining::without_privacy(loss),
        };
        let usual = usual?.protecting(protects);
        let given = RankerSettings {
            clip: model.clip,
            step: model.step,
            batch_size: model.batch_size,
            updates: Some(model.updates),
            normalise: model.normalise,
            public_scaling: model.scaling == RankScaling::Public,
            thin: model.thin,
        };
        let training = RankerTraining { scorer, normalise_features: model.normalise_features, ..usual };
        let training = training.with_settings(&given).map_err(|error| match error {
            Error::Setting { .. } => refusal(&error),
            _ => refused(&error),
        })?;
        let declared = Declared { form: None, features, largest_grade: model.largest_grade, grades_needed: true };
        Ok(Self { training, declared, limit: privacy.limit })
    }
}

fn bounded(flag: &str, number: u64) -> Result<usize, Failure> {
    match usize::try_from(number) {
        Ok(number @ 1..=WIDEST) => Ok(number),
        _ => {
            Err(Failure::usage(flag, format!("{flag} is {number}"))
                .expected(format!("a whole number from 1 to {WIDEST}")))
        }
    }
}

fn loss(model: &RankModelArgs) -> Result<NamedLoss, Failure> {
    let k = usize::try_from(model.k.unwrap_or(1)).unwrap_or(usize::MAX);
    match model.loss {
        RankLoss::Bayesrank | RankLoss::Listnet if k == 0 => {
            Err(Failure::usage("--k", "--k is 0").expected("the number of positions, at least 1"))
        }
        RankLoss::Bayesrank => Ok(NamedLoss::Bayesrank { k }),
        RankLoss::Listnet => Ok(NamedLoss::Listnet { k }),
        RankLoss::Listmle if model.k.is_some() => {
            Err(conflict("--k", "listmle looks at all positions").help("omit --k"))
        }
        RankLoss::Listmle => Ok(NamedLoss::Listmle {}),
    }
}

fn scorer(model: &RankModelArgs) -> Result<ScorerShape, Failure> {
    match model.model {
        RankModel::Mlp => Ok(ScorerShape::Mlp {
            hidden: model.hidden.map_or(Ok(ScorerShape::HIDDEN), |hidden| bounded("--hidden", hidden))?,
            activation: model.activation.unwrap_or_default(),
        }),
        RankModel::Linear => {
            let flags = [("--hidden", model.hidden.is_some()), ("--activation", model.activation.is_some())];
            meaningless(&flags, "for a linear scorer")
                .map_err(|failure| failure.help("omit it, or choose --model mlp"))?;
            Ok(ScorerShape::Linear {})
        }
    }
}

/// Returns the protected unit from the flags of protection and relation.
fn protects(privacy: &RankPrivacyArgs) -> Result<Protected, Failure> {
    let unfit = |what: &str, fits: &str| {
        Err(conflict("--adjacency", format!("{what} has another neighbouring relation"))
            .expected(fits)
            .help("omit --adjacency, or say what is protected: --protect grades, lists or documents"))
    };
    match (privacy.protect.unwrap_or(RankProtect::Grades), privacy.adjacency) {
        (RankProtect::Grades, None | Some(Adjacency::ChangeListLabels)) => Ok(Protected::Grades),
        (RankProtect::Grades, _) => unfit("the protection of grades", "--adjacency change-list-labels"),
        (RankProtect::Lists, None | Some(Adjacency::AddRemove)) => Ok(Protected::ListPresence),
        (RankProtect::Lists, Some(Adjacency::ReplaceOne)) => Ok(Protected::WholeList),
        (RankProtect::Lists, _) => {
            unfit("the protection of whole lists", "--adjacency add-remove, or --adjacency replace-one")
        }
        (RankProtect::Documents, None | Some(Adjacency::ReplaceOne)) => Ok(Protected::Document),
        (RankProtect::Documents, _) => unfit("the protection of documents", "--adjacency replace-one"),
    }
}

/// Returns the budget; `None` without privacy.
fn budget(privacy: &RankPrivacyArgs) -> Result<Option<Budget>, Failure> {
    if privacy.non_private {
        let flags = [
            ("--epsilon", privacy.epsilon.is_some()),
            ("--delta", privacy.delta.is_some()),
            ("--protect", privacy.protect.is_some()),
            ("--adjacency", privacy.adjacency.is_some()),
        ];
        meaningless(&flags, "without privacy").map_err(|failure| failure.help("omit it, or omit --non-private"))?;
        return Ok(None);
    }
    let epsilon = privacy.epsilon.ok_or_else(|| {
        missing("--epsilon", "how much privacy to spend was not said")
            .expected("a number greater than 0; 1 is a common choice, smaller is more private")
            .help("add --epsilon 1, or --non-private to train without privacy")
    })?;
    let delta = privacy.delta.ok_or_else(|| {
        missing("--delta", "how often the guarantee may fail was not said")
            .expected("a number greater than 0, far below one over the number of lists")
            .help("add --delta 1e-6, say")
    })?;
    let epsilon = Epsilon::new(epsilon).map_err(|error| {
        Failure::usage("--epsilon", error.to_string())
            .expected("a finite number, at least 2^-50 (about 1e-15)")
            .help("use --epsilon 1, say; smaller is more private")
    })?;
    let delta = Delta::new(delta)
        .map_err(|error| error.to_string())
        .and_then(|delta| if delta.get() > 0.0 { Ok(delta) } else { Err("--delta is 0".to_owned()) })
        .map_err(|message| {
            Failure::usage("--delta", message)
                .expected("a number in (0, 1), far below one over the number of lists: the noise is Gaussian")
                .help("use --delta 1e-6, say")
        })?;
    Ok(Some(Budget { epsilon, delta }))
}
