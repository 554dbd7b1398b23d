//! `--config`: flags from a TOML file, which flags on the command line and the environment override; `--print-config` writes one.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::{Table, Value};

use super::FileName;
use super::short_help::Refused;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::input::{LARGEST_SCHEMA, read_whole};

/// The flags that a file cannot hold.
const OF_CONFIG: [&str; 4] = ["config", "help", "print-config", "version"];

/// Returns the arguments with the flags of the file named by `--config`, if any, that neither the arguments nor the environment
/// give; and the file.
///
/// # Errors
/// `config.*`.
pub(super) fn with_config(
    command: &Command,
    arguments: &[OsString],
) -> Result<(Vec<OsString>, Option<FileName>), Failure> {
    let lenient = command.clone().ignore_errors(true).try_get_matches_from(arguments);
    // A request for help and the like is no error here; the strict parse answers it.
    let Ok(matches) = lenient else { return Ok((arguments.to_vec(), None)) };
    let Some(name) = matches.try_get_one::<FileName>("config").ok().flatten().cloned() else {
        return Ok((arguments.to_vec(), None));
    };
    let name = &name;
    let table = read(name)?;
    check(command, &table, name, "")?;
    let mut built = command.clone();
    built.build();
    let (mut extra, mut at, mut matches, mut tables) = (Vec::new(), &built, &matches, Some(&table));
    loop {
        if let Some(table) = tables {
            add(at, matches, table, name, &mut extra)?;
        }
        let Some((word, below)) = matches.subcommand() else { break };
        let Some(subcommand) = at.find_subcommand(word) else { break };
        (at, matches) = (subcommand, below);
        tables = tables.and_then(|table| table.get(word)).and_then(Value::as_table);
    }
    // What follows `--` are no flags.
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let (before, after) = arguments.split_at(end);
    let all = before.iter().cloned().chain(extra).chain(after.iter().cloned()).collect();
    Ok((all, Some(name.clone())))
}

/// Names the file for an invalid value in it: that of a flag in `all` arguments which neither those `given` nor the environment has.
pub(super) fn refused(error: clap::Error, given: &[OsString], all: &[OsString], file: Option<FileName>) -> Refused {
    let named = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(shown)) => shown.split(' ').next().map(str::to_owned),
        _ => None,
    };
    let has = |arguments: &[OsString], flag: &str| {
        arguments.iter().any(|argument| argument.to_string_lossy().split('=').next() == Some(flag))
    };
    match (file, named) {
        (Some(file), Some(flag)) if has(all, &flag) && !has(given, &flag) => {
            let message = error.to_string();
            let first = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let mut failure = Failure::new(ExitStatus::Usage, "config.value", first);
            failure.details.location.field = Some(flag.trim_start_matches('-').to_owned());
            Refused::Config(failure.at_file(&file))
        }
        _ => Refused::Clap(error),
    }
}

fn read(name: &FileName) -> Result<Table, Failure> {
    if &**name == "-" {
        let message = "standard input is for records";
        return Err(Failure::new(ExitStatus::Usage, "config.read", message).at_flag("--config").help("name a file"));
    }
    let unreadable = |error: &std::io::Error| {
        Failure::new(ExitStatus::Usage, "config.read", format!("the file cannot be read: {error}")).at_file(name)
    };
    let bytes = read_whole(name, LARGEST_SCHEMA, unreadable)?;
    let syntax = |message: String, line| {
        let mut failure = Failure::new(ExitStatus::Usage, "config.syntax", message).at_file(name);
        failure.details.location.line = line;
        failure
    };
    let text = String::from_utf8(bytes).map_err(|_| syntax("the file is not UTF-8".to_owned(), None))?;
    text.parse::<Table>().map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() as u64 + 1);
        syntax(error.message().to_owned(), line).expected("TOML: `epsilon = 1` below `[train]`, say")
    })
}

/// Checks the names of all flags and commands in the file.
fn check(command: &Command, table: &Table, file: &FileName, within: &str) -> Result<(), Failure> {
    for (key, value) in table {
        let path = if within.is_empty() { key.clone() } else { format!("{within}.{key}") };
        match (value, command.find_subcommand(key)) {
            (Value::Table(below), Some(subcommand)) => check(subcommand, below, file, &path)?,
            (value, _) if flag(command, key).is_some() => {
                if value.is_table() {
                    return Err(wrong_kind(file, &path, "a text, a number, true or false"));
                }
            }
            _ => {
                let flags = command.get_arguments().filter_map(Arg::get_long).filter(|flag| !OF_CONFIG.contains(flag));
                let commands = command.get_subcommands().map(Command::get_name);
                let known = flags.chain(commands).map(|known| (known, strsim::jaro_winkler(known, key)));
                let nearest = known
                    .max_by(|a, b| a.1.total_cmp(&b.1))
                    .filter(|(known, likeness)| *likeness > 0.7 && known != key);
                let mut failure = Failure::new(ExitStatus::Usage, "config.key", format!("there is no flag `{path}`"));
                failure.details.location.field = Some(path);
                let place =
                    if within.is_empty() { "`dp`".to_owned() } else { format!("`dp {}`", within.replace('.', " ")) };
                let failure = failure.at_file(file).expected(format!("flags of {place} by their long names"));
                let before = if within.is_empty() { String::new() } else { format!("{within}.") };
                let owners = command.get_subcommands().filter(|subcommand| flag(subcommand, key).is_some());
                let owners: Vec<String> = owners.map(|owner| format!("[{before}{}]", owner.get_name())).collect();
                return Err(match nearest {
                    _ if !owners.is_empty() => {
                        failure.help(format!("put it below the table of its command: {}", owners.join(", ")))
                    }
                    Some((nearest, _)) => failure.help(format!("did you mean `{nearest}`?")),
                    None => failure,
                });
            }
        }
    }
    Ok(())
}

fn wrong_kind(file: &FileName, key: &str, expected: &str) -> Failure {
    let mut failure = Failure::new(ExitStatus::Usage, "config.value", format!("`{key}` has a value of another kind"));
    failure.details.location.field = Some(key.to_owned());
    failure.at_file(file).expected(expected)
}

/// Returns the flag of this name.
fn flag<'c>(command: &'c Command, key: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(key)).filter(|_| !OF_CONFIG.contains(&key))
}

/// Adds the flags of a table that are not given elsewhere and do not conflict with a given one.
fn add(
    command: &Command,
    matches: &ArgMatches,
    table: &Table,
    file: &FileName,
    extra: &mut Vec<OsString>,
) -> Result<(), Failure> {
    let is_given = |arg: &Arg| {
        let source = matches
            .try_contains_id(arg.get_id().as_str())
            .ok()
            .and_then(|_| matches.value_source(arg.get_id().as_str()));
        matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    };
    for (key, value) in table {
        let Some(arg) = flag(command, key) else { continue };
        // A conflict is declared by either of the two.
        let contradicts = |given: &Arg| {
            let of = |arg: &Arg, other: &Arg| {
                command.get_arg_conflicts_with(arg).iter().any(|it| it.get_id() == other.get_id())
            };
            is_given(given) && (of(arg, given) || of(given, arg))
        };
        if is_given(arg) || command.get_arguments().any(contradicts) {
            continue;
        }
        let wrong = |expected: &str| wrong_kind(file, key, expected);
        let text = |value: &Value| match value {
            Value::String(text) => Ok(text.clone()),
            Value::Integer(number) => Ok(number.to_string()),
            Value::Float(number) => Ok(number.to_string()),
            Value::Boolean(value) => Ok(value.to_string()),
            _ => Err(wrong("a text, a number, true or false")),
        };
        match (arg.get_action(), value) {
            (ArgAction::SetTrue, Value::Boolean(true)) => extra.push(format!("--{key}").into()),
            (ArgAction::SetTrue, Value::Boolean(false)) => {}
            (ArgAction::SetTrue, _) => return Err(wrong("true or false")),
            (ArgAction::Count, Value::Integer(count @ 0..=9)) => {
                extra.extend((0..*count).map(|_| OsString::from(format!("--{key}"))));
            }
            (ArgAction::Count, _) => return Err(wrong("a whole number from 0 to 9")),
            (_, Value::Array(values)) => {
                let values = values.iter().map(text).collect::<Result<Vec<_>, _>>()?;
                if arg.get_num_args().is_some_and(|range| range.min_values() > 1) {
                    extra.push(format!("--{key}").into());
                    extra.extend(values.into_iter().map(OsString::from));
                } else {
                    extra.extend(values.into_iter().map(|value| OsString::from(format!("--{key}={value}"))));
                }
            }
            (_, value) => extra.push(format!("--{key}={}", text(value)?).into()),
        }
    }
    Ok(())
}

/// Returns the given flags, from the command line, the environment and the file, as a file.
///
/// # Errors
/// `config.value` for a name that is not UTF-8, which TOML cannot hold.
pub(super) fn printed(command: &Command, matches: &ArgMatches) -> Result<String, Failure> {
    let mut built = command.clone();
    built.build();
    let (mut root, mut path, mut tables) = (Table::new(), Vec::new(), Vec::new());
    let (mut at, mut matches) = (&built, matches);
    loop {
        tables.push((path.clone(), given(at, matches, path.is_empty())?));
        let Some((word, below)) = matches.subcommand() else { break };
        let Some(subcommand) = at.find_subcommand(word) else { break };
        path.push(word.to_owned());
        (at, matches) = (subcommand, below);
    }
    for (path, table) in tables {
        let mut place = &mut root;
        for word in path {
            let below = place.entry(word).or_insert_with(|| Value::Table(Table::new()));
            match below {
                Value::Table(below) => place = below,
                _ => return Ok(String::new()),
            }
        }
        place.extend(table);
    }
    Ok(root.to_string())
}

/// Returns the given flags of one command; global flags are those of the first.
fn given(command: &Command, matches: &ArgMatches, is_first: bool) -> Result<Table, Failure> {
    let mut table = Table::new();
    for arg in command.get_arguments() {
        let Some(name) = arg.get_long().filter(|name| !OF_CONFIG.contains(name)) else { continue };
        let id = arg.get_id().as_str();
        let source = matches.value_source(id);
        if arg.is_global_set() != is_first
            || !matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
        {
            continue;
        }
        let text = |value: &OsStr| match value.to_str() {
            Some(text) => Ok(typed(text.to_owned())),
            None => {
                let failure =
                    Failure::usage(&format!("--{name}"), "the value is not UTF-8 and cannot stand in a file of flags");
                Err(Failure { code: "config.value", ..failure })
            }
        };
        let values: Vec<Value> = matches.get_raw(id).into_iter().flatten().map(text).collect::<Result<_, _>>()?;
        let value = match arg.get_action() {
            ArgAction::SetTrue => Value::Boolean(true),
            ArgAction::Count => Value::Integer(matches.get_count(id).into()),
            _ => match <[Value; 1]>::try_from(values) {
                Ok([one]) => one,
                Err(several) => Value::Array(several),
            },
        };
        table.insert(name.to_owned(), value);
    }
    Ok(table)
}

/// Returns a number if it has the same text, otherwise the text.
fn typed(text: String) -> Value {
    let integer = text.parse::<i64>().ok().filter(|number| number.to_string() == text).map(Value::Integer);
    let float =
        || text.parse::<f64>().ok().filter(|number| number.to_string() == text && number.is_finite()).map(Value::Float);
    integer.or_else(float).unwrap_or(Value::String(text))
}
