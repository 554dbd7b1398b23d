//! Selection among settings.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use dp::training::{Choice, ChoiceMethod, LARGEST_SUGGESTED_DELTA, Records};
use dp::verify::TUNED_SETTINGS;
use dp::wording::one_line;
use dp_accountant::Delta;
use dp_accountant::certificate::Assumption;
use dp_data::encode::Stored;
use dp_data::read;
use dp_data::{Block, Rows, Workers};
use dp_losses::{LossKind, Real};
use dp_mechanisms::rng::ReleaseRng;
use dp_optim::DerivesModel as _;
use dp_optim::MemorySource;
use dp_optim::catalogue::Settings;
use dp_optim::engine::Control;
use dp_optim::recipes::AnyDerivation;
use dp_optim::recipes::{AnyRecipe, Budget, TrainsAny};
use dp_optim::tuning::{MOST_CANDIDATES, public};
use serde::Serialize;

use super::config::TrainConfig;
use super::refusal::refusal;
use crate::args::{FormArgs, TuneArgs, TuningMethod, word};
use crate::failure::Failure;
use crate::input::{InputConfig, conflict, meaningless, missing};
use crate::output::Console;

/// Number of trainings of each candidate on each half of the public records, to average its noise.
const PUBLIC_TRAININGS: u32 = 3;

/// A selection among settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// The selection method.
    pub way: Way,
    /// The combinations, in the order of the flags.
    pub grid: Vec<Settings>,
}

/// A selection method.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// On the private records, as part of the release.
    Private(ChoiceMethod),
    /// On public records.
    Public(InputConfig),
}

impl Tuning {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.*`.
    pub(super) fn new(args: &TuneArgs, grid: Vec<Settings>, delta: f64) -> Result<Self, Failure> {
        if !(2..=MOST_CANDIDATES).contains(&grid.len()) {
            return Err(conflict("--lambda", format!("combinations to choose from: {}", grid.len()))
                .expected(format!("between 2 and {MOST_CANDIDATES}"))
                .help("give several values, divided by commas, to --lambda, --passes or --batch-size; for one, `dp train`"));
        }
        if let Some(twice) =
            grid.iter().enumerate().find(|(i, settings)| grid[..*i].contains(settings)).map(|(_, twice)| twice)
        {
            let given = [
                ("--lambda", twice.lambda.map(|lambda| lambda.to_string())),
                ("--passes", twice.passes.map(|passes| passes.to_string())),
                ("--batch-size", twice.batch_size.map(|size| size.to_string())),
            ];
            let named: Vec<String> =
                given.iter().filter_map(|(flag, value)| Some(format!("{flag} {}", value.as_ref()?))).collect();
            return Err(conflict("--lambda", format!("a combination is given twice: {}", named.join(" ")))
                .help("give each value once: a second candidate costs privacy"));
        }
        let given = [
            ("--public", args.public.is_some(), TuningMethod::Public),
            ("--trials", args.trials.is_some(), TuningMethod::RandomStopping),
            ("--trial-law", args.trial_law.is_some(), TuningMethod::RandomStopping),
        ];
        for (flag, given, method) in given {
            let flag = (flag, given && method != args.method);
            meaningless(&[flag], format_args!("but with --method {}", word(&method)))?;
        }
        let way = match args.method {
            TuningMethod::Portions => Way::Private(ChoiceMethod::Portions),
            TuningMethod::Composition => Way::Private(ChoiceMethod::Composition),
            TuningMethod::RandomStopping => Way::Private(random_stopping(args, grid.len(), delta)?),
            TuningMethod::Public => Way::Public(public_input(args)?),
        };
        Ok(Self { way, grid })
    }

    /// Returns the certificate's assumption for a selection on public records: the candidates, and who declared the records
    /// public.
    pub(super) fn assumption(&self) -> Option<Assumption> {
        let Way::Public(_) = self.way else { return None };
        let [lambda, passes, batch_size] = TUNED_SETTINGS;
        let mut grid = BTreeMap::<String, Vec<f64>>::new();
        for settings in &self.grid {
            let values = [
                (lambda, settings.lambda),
                (passes, settings.passes.map(|passes| passes as f64)),
                (batch_size, settings.batch_size.map(|size| size as f64)),
            ];
            for (name, value) in values {
                if let Some(value) = value {
                    grid.entry(name.to_owned()).or_default().push(value);
                }
            }
        }
        for values in grid.values_mut() {
            values.sort_by(f64::total_cmp);
            values.dedup();
        }
        Some(Assumption::ChosenOnPublic { grid })
    }

    /// The file of public records.
    pub(super) fn public_file(&self) -> Option<&Path> {
        match &self.way {
            Way::Public(input) => Some(Path::new(&input.data)),
            Way::Private(_) => None,
        }
    }

    /// Rejects a loss without a misclassification count.
    pub(super) fn check_loss(&self, loss: LossKind) -> Result<(), Failure> {
        match loss.classes() {
            Some(_) => Ok(()),
            None => Err(conflict("--loss", format!("{loss} is a loss of numbers; settings are judged by mistakes"))
                .help("tune a model of classes, or train with `dp train`")),
        }
    }

    /// Returns the private choice; `None` for one on public records.
    pub(super) fn choice(&self) -> Option<Choice> {
        match self.way {
            Way::Private(method) => Some(Choice { grid: self.grid.clone(), method }),
            Way::Public(_) => None,
        }
    }
}

fn random_stopping(args: &TuneArgs, combinations: usize, delta: f64) -> Result<ChoiceMethod, Failure> {
    let law = args.trial_law.unwrap_or_default();
    // A delta out of range is refused with the other flags.
    let delta = Delta::new(delta).or(Delta::new(LARGEST_SUGGESTED_DELTA)).map_err(|error| refusal(&error.into()))?;
    ChoiceMethod::random_stopping(law, args.trials, combinations, delta).map_err(|error| match error {
        dp_optim::Error::OutOfRange { value, range, .. } => Failure::usage("--trials", format!("--trials is {value}"))
            .expected(range)
            .help("twice the number of combinations is usual"),
        dp_optim::Error::Setting { why, .. } => {
            conflict("--trial-law", why).help("add --delta, or choose the logarithmic or the geometric law")
        }
        error => refusal(&error),
    })
}

/// Returns the input of public records, of the same format as the private ones.
fn public_input(args: &TuneArgs) -> Result<InputConfig, Failure> {
    let Some(public) = &args.public else {
        return Err(missing("--public", "which public records to choose on was not said")
            .help("add --public FILE, or choose another --method"));
    };
    let private = &args.train.input;
    let format = Some(private.form.format(&private.data));
    let form = FormArgs { format, labels: args.public_labels.clone(), ..private.form.clone() };
    let config = InputConfig::new(public, &form).and_then(InputConfig::with_labels);
    let config = config.map_err(|failure| match failure.details.location.flag.as_deref() {
        Some("--labels") => failure.at_flag("--public-labels"),
        _ => failure,
    })?;
    if &*config.data == "-" {
        return Err(Failure::usage("--public", "public records cannot come from standard input").help("name a file"));
    }
    Ok(config)
}

/// Reads the public records; warns the curator if some are also among the private ones.
pub(super) fn public_records<F: Real + Stored>(
    config: &TrainConfig,
    input: &InputConfig,
    private: &mut Records<F>,
    console: &Console,
) -> Result<MemorySource<F>, Failure> {
    let Records { encoder, rows: private, .. } = private;
    let from_data = |error: &dp_data::DataError| Failure::from_data(error);
    let opened = input.open()?.with_workers(config.workers);
    let loaded = read::load::<F>(opened, encoder, &config.input.csv).map_err(|error| from_data(&error))?;
    for warning in &loaded.warnings {
        console.warn_curator(&one_line(&format!("public records: {warning}")));
    }
    // The public records are the fewer ones.
    let mut public = HashMap::new();
    each_fingerprint(&loaded.examples.block(), |row| *public.entry(row).or_insert(0u64) += 1);
    let mut again = 0;
    let seen = |block: &Block<'_, F>| {
        each_fingerprint(block, |row| again += public.remove(&row).unwrap_or(0));
        Ok(())
    };
    private.for_each_block(seen).map_err(|error| from_data(&error))?;
    if again > 0 {
        console.warn_curator(&format!(
            "{again} of {} public records are, as encoded, also among the private ones\nif they are the same people's, they are \
             not public, and the choice is not covered by the guarantee",
            loaded.examples.len()
        ));
    }
    Ok(MemorySource::new(loaded.examples, encoder.row_bound(), encoder.target_bound()))
}

/// Returns the index of the best combination on the public records.
pub(super) fn chosen_on_public<A: TrainsAny<F>, F: Real + Stored>(
    public: &mut MemorySource<F>,
    candidates: &[AnyRecipe],
    n: u64,
    budget: Budget,
    workers: Workers,
    rng: &mut impl ReleaseRng,
) -> Result<usize, Failure> {
    let control = Control { workers, ..Control::default() };
    public::choose::<A, F>(candidates, public, n, budget, PUBLIC_TRAININGS, rng, &control)
        .map_err(|error| refusal(&error))
}

/// Passes a hash of each valid record's target and non-zero features to `each`; equal records have equal hashes.
fn each_fingerprint<F: Stored>(block: &Block<'_, F>, mut each: impl FnMut(u64)) {
    for i in (0..block.len()).filter(|&i| block.valid.is_none_or(|valid| valid[i])) {
        let mut hasher = DefaultHasher::new();
        block.targets[i].widen().to_bits().hash(&mut hasher);
        let mut feature = |(j, value): (usize, &F)| {
            let value = value.widen();
            if value != 0.0 {
                // The bounds of spooled rows and of curves are enforced already, which may change their last bits.
                (j, (value * 1e6).round() as i64).hash(&mut hasher);
            }
        };
        match block.rows {
            Rows::Dense { values, dim } => values[i * dim..(i + 1) * dim].iter().enumerate().for_each(&mut feature),
            Rows::Sparse { offsets, indices, values, .. } => {
                let range = offsets[i]..offsets[i + 1];
                indices[range.clone()].iter().zip(&values[range]).for_each(|(j, value)| feature((*j as usize, value)));
            }
        }
        each(hasher.finish());
    }
}

/// The selected settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Chosen {
    /// The number of the combination, from 1; absent if the random number of trainings was zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// Number of combinations.
    pub of: usize,
    /// The selected L2 regularisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    /// The selected number of passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passes: Option<u64>,
    /// The selected batch size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<u64>,
}

impl Chosen {
    /// Returns the selection recorded in the certificate's recipe, which is released with the model.
    pub(super) fn of(tuning: &Tuning, derivation: &AnyDerivation) -> Option<Self> {
        derivation.choice().map(|choice| Self::new(tuning, choice.chosen))
    }

    pub(super) fn new(tuning: &Tuning, position: Option<usize>) -> Self {
        let of = tuning.grid.len();
        let settings = position.and_then(|position| tuning.grid.get(position));
        settings.map_or(Self { of, ..Self::default() }, |settings| Self {
            number: position.map(|position| position + 1),
            of,
            lambda: settings.lambda,
            passes: settings.passes,
            batch_size: settings.batch_size,
        })
    }

    /// Formats the selection as flags.
    pub fn text(&self) -> String {
        let flags = [
            self.lambda.map(|lambda| format!(" --lambda {lambda}")),
            self.passes.map(|passes| format!(" --passes {passes}")),
            self.batch_size.map(|size| format!(" --batch-size {size}")),
        ];
        match self.number {
            Some(number) => {
                format!("{} (number {number} of {})", flags.into_iter().flatten().collect::<String>().trim(), self.of)
            }
            None => format!("none of {}: there was no training, and the model is zero", self.of),
        }
    }
}
