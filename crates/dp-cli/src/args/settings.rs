//! The flags of algorithms, as the library lists them.

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use dp_losses::Penalty;
use dp_optim::Error;
use dp_optim::catalogue::{Kind, PARAMETERS, Parameter, Settings, Value};
use dp_optim::tuning::MOST_CANDIDATES;

use super::algorithm::{named, with_dashes};
use crate::failure::Failure;
use crate::input::conflict;

/// The settings that were given, each with its values.
#[derive(Debug, Clone, Default)]
pub struct SettingsArgs(Vec<(&'static Parameter, Vec<Value>)>);

impl Args for SettingsArgs {
    fn augment_args(command: Command) -> Command {
        command.args(PARAMETERS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(parameter: &'static Parameter) -> Arg {
    let parser = match parameter.kind {
        Kind::Number(_) => value_parser!(f64).into(),
        Kind::Count { most, .. } if most == u64::from(u32::MAX) => value_parser!(u32).into(),
        Kind::Count { .. } => value_parser!(u64).into(),
        Kind::OneOf(names) => named(names()).into(),
        Kind::Penalty => ValueParser::from(value_parser!(Penalty)),
        Kind::Flag => value_parser!(bool),
    };
    let arg = Arg::new(parameter.name)
        .long(parameter.name)
        .help(with_dashes(parameter.help()))
        .help_heading("Algorithm")
        .value_parser(parser);
    let arg = match parameter.kind {
        Kind::Flag => return arg.action(ArgAction::SetTrue),
        Kind::Number(_) => arg.allow_hyphen_values(true),
        _ => arg,
    };
    let arg = arg.value_name(parameter.value_name);
    let arg = if parameter.tuned { arg.value_delimiter(',').action(ArgAction::Append) } else { arg };
    // `--l1` is an abbreviation of `--penalty`.
    if parameter.name == "l1" { arg.conflicts_with("penalty") } else { arg }
}

impl FromArgMatches for SettingsArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let values = |parameter: &'static Parameter| -> Vec<Value> {
            fn all<T: Clone + Send + Sync + 'static>(
                matches: &ArgMatches,
                name: &str,
                of: fn(T) -> Value,
            ) -> Vec<Value> {
                matches.get_many::<T>(name).into_iter().flatten().cloned().map(of).collect()
            }
            let name = parameter.name;
            match parameter.kind {
                Kind::Number(_) => all(matches, name, Value::Number),
                Kind::Count { most, .. } if most == u64::from(u32::MAX) => {
                    all(matches, name, |count: u32| Value::Count(count.into()))
                }
                Kind::Count { .. } => all(matches, name, Value::Count),
                Kind::OneOf(_) => all(matches, name, Value::Name),
                Kind::Penalty => all(matches, name, Value::Penalty),
                Kind::Flag if matches.get_flag(name) => vec![Value::Flag],
                Kind::Flag => Vec::new(),
            }
        };
        let given = PARAMETERS.iter().map(|parameter| (parameter, values(parameter)));
        Ok(Self(given.filter(|(_, values)| !values.is_empty()).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl SettingsArgs {
    /// The settings.
    ///
    /// # Errors
    /// `usage.value`; `usage.conflict` for several values of one flag.
    pub fn settings(&self) -> Result<Settings, Failure> {
        if let Some((parameter, values)) = self.0.iter().find(|(_, values)| values.len() > 1) {
            let flag = format!("--{}", parameter.name);
            return Err(conflict(&flag, format!("{flag} has {} values", values.len()))
                .expected("one")
                .help("`dp tune` chooses among several"));
        }
        self.grid().map(|grid| grid.into_iter().next().unwrap_or_default())
    }

    /// The settings for every combination of the values of those that have several.
    ///
    /// # Errors
    /// `usage.value`.
    pub fn grid(&self) -> Result<Vec<Settings>, Failure> {
        // Checked before memory is allocated: the largest accepted number.
        let combinations = self.0.iter().fold(1usize, |all, (_, values)| all.saturating_mul(values.len()));
        if combinations > MOST_CANDIDATES {
            return Err(Failure::usage("--lambda", format!("{combinations} combinations are too many"))
                .expected(format!("at most {MOST_CANDIDATES}")));
        }
        let mut grid = vec![Settings::default()];
        for (parameter, values) in &self.0 {
            let mut longer = Vec::with_capacity(grid.len() * values.len());
            for settings in &grid {
                for value in values {
                    let mut settings = settings.clone();
                    parameter.set(&mut settings, value.clone()).map_err(|error| refused(&error))?;
                    longer.push(settings);
                }
            }
            grid = longer;
        }
        Ok(grid)
    }
}

/// Converts an error of a setting, whose name is that of its flag.
pub(crate) fn refused(error: &Error) -> Failure {
    match error {
        Error::OutOfRange { name, value, range } => {
            Failure::usage(&format!("--{name}"), format!("--{name} is {value}")).expected(*range)
        }
        Error::Count { name, value, range } => {
            Failure::usage(&format!("--{name}"), format!("--{name} is {value}")).expected(*range)
        }
        other => Failure::usage("--algorithm", other.to_string()),
    }
}
