//! `dp help`: all flags of a command, the algorithms, the settings and the theory of one, or the table of exit codes.

use clap::CommandFactory;
use dp_accountant::Delta;
use dp_losses::LossKind;
use dp_nets::Architecture;
use dp_optim::catalogue::{self, ALGORITHMS, Entry, FOR_MODELS, MODEL_DEFAULTS, MODEL_SETTINGS, PARAMETERS};

use super::evaluate::table;
use crate::args::{Cli, HelpArgs, with_dashes};
use crate::exit_code::{self, ExitStatus};
use crate::failure::Failure;
use crate::output::Console;

/// The topics that are no command.
const TOPICS: [&str; 4] = ["algorithms", "algorithm NAME", "networks", "exit-codes"];

/// The losses, by the kind of label.
const LOSSES: [&str; 8] =
    ["logistic", "huber-svm:0.1", "hinge", "softmax:3", "log-cosh:0.5", "huber-regression:0.5", "squared", "absolute"];

/// Prints the help.
///
/// # Errors
/// An unknown topic, or standard output that cannot be written.
pub fn run(args: &HelpArgs, console: &Console) -> Result<(), Failure> {
    let mut root = Cli::command();
    root.build();
    let words: Vec<&str> = args.topic.iter().map(String::as_str).collect();
    let text = match words.as_slice() {
        ["exit-codes"] => exit_code::table(),
        ["algorithms"] => algorithms(),
        ["networks"] => networks(),
        ["algorithm", name] => algorithm(catalogue::find(name).ok_or_else(|| {
            let names: Vec<&str> = ALGORITHMS.iter().map(|entry| entry.name).collect();
            Failure::new(ExitStatus::Usage, "usage.unknown_topic", format!("there is no algorithm `{name}`"))
                .expected(names.join(", "))
        })?),
        words => {
            let mut command = &mut root;
            for (i, word) in words.iter().enumerate() {
                let mut names: Vec<&str> = if i == 0 { TOPICS.to_vec() } else { Vec::new() };
                names.extend(command.get_subcommands().map(clap::Command::get_name));
                let message = format!("there is no help on `{}`", words.join(" "));
                let unknown = Failure::new(ExitStatus::Usage, "usage.unknown_topic", message);
                let unknown = match names[..] {
                    [] => unknown.help(format!("`{}` has no subcommands", words[..i].join(" "))),
                    _ => unknown.expected(names.join(", ")),
                };
                command = command.find_subcommand_mut(word).ok_or(unknown)?;
            }
            command.render_long_help().to_string()
        }
    };
    console.result(&serde_json::json!({ "schema": "dp.help/1", "text": text }), &text)
}

/// Returns the losses that an algorithm trains without further settings, by name.
fn losses(entry: &Entry) -> Vec<String> {
    let delta = Delta::new(1e-6).unwrap_or(Delta::ZERO);
    let losses = LOSSES.iter().filter_map(|name| name.parse::<LossKind>().ok());
    losses.filter(|loss| entry.supports(*loss, delta)).map(|loss| loss.name().to_owned()).collect()
}

fn relations(entry: &Entry) -> String {
    entry.relations.iter().map(|relation| relation.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns the table of all algorithms.
fn algorithms() -> String {
    let mut rows =
        vec![["algorithm", "needs delta", "hinge", "softmax", "numbers", "relations"].map(str::to_owned).to_vec()];
    let yes = |holds: bool| if holds { "yes" } else { "-" }.to_owned();
    for entry in ALGORITHMS {
        let losses = losses(entry);
        let takes = |name: &str| losses.iter().any(|loss| loss == name);
        rows.push(vec![
            entry.name.to_owned(),
            yes(!entry.supports(LossKind::Logistic, Delta::ZERO)),
            yes(takes("hinge")),
            yes(takes("softmax")),
            yes(takes("log-cosh")),
            relations(entry),
        ]);
    }
    let abouts: String =
        ALGORITHMS.iter().map(|entry| format!("  {:<24} {}\n", entry.name, with_dashes(entry.about))).collect();
    format!(
        "{}\nAll train two classes with the logistic loss. hinge: also losses that are not smooth; softmax: several \
         classes at once; numbers: regression. Algorithms without a yes under softmax train several classes with --one-vs-all. The \
         first relation is the default; add-remove is zero-out, with a public number of records.\n`dp help algorithm NAME` \
         shows settings and theory.\n\n{abouts}",
        table(&rows).trim_start()
    )
}

/// Returns the settings of these names with their help.
fn settings(names: &[&str]) -> String {
    let parameters = PARAMETERS.iter().filter(|parameter| names.contains(&parameter.name));
    parameters
        .map(|parameter| {
            let value =
                if parameter.value_name.is_empty() { String::new() } else { format!(" <{}>", parameter.value_name) };
            format!("  --{}{value}\n          {}\n", parameter.name, with_dashes(parameter.help()))
        })
        .collect()
}

/// Returns the networks by name, the kinds of layers and the settings of their training.
fn networks() -> String {
    let mut rows = vec![["network", "images", "weights"].map(str::to_owned).to_vec()];
    let mut layers = String::new();
    for (name, architecture) in Architecture::all_named() {
        let weights = architecture.parameters().unwrap_or_default();
        rows.push(vec![name.to_owned(), architecture.input.to_string(), weights.to_string()]);
        let of_it: Vec<String> = architecture.layers.iter().map(ToString::to_string).collect();
        layers.push_str(&format!("  {name}: {}\n", of_it.join(", ")));
    }
    format!(
        "{}\n{layers}\nmlp:UNITS,.. has linear layers of so many units for images of any size, as mlp:1000 or mlp:256,64.\n\n\
         A file that ends in .toml describes other layers:\n{EXAMPLE}\n{LAYERS}\nThe algorithms are {}. For networks, dp-blsgd makes a \
         fixed number of steps, and searches for the size of each on the batch of its gradient.\n\nSettings. If not given: {MODEL_DEFAULTS}.\n{}",
        table(&rows).trim_start(),
        FOR_MODELS.join(", "),
        settings(MODEL_SETTINGS)
    )
}

/// A file of layers.
const EXAMPLE: &str = r#"
  input = [28, 28, 1]    # height, width, channels

  [[layers]]
  kind = "convolution"
  channels = 16
  kernel = [5, 5]        # stride = [1, 1] and padding = [0, 0] if not given

  [[layers]]
  kind = "tanh"          # or relu

  [[layers]]
  kind = "max-pool"      # or average-pool
  size = [2, 2]          # stride = size if not given

  [[layers]]
  kind = "linear"
  units = 10             # the last layer: one unit for each class
"#;

/// Further facts about layers.
const LAYERS: &str = "\
`kind = \"group-norm\"` with `groups` normalises each image by itself. Batch norm is refused: it mixes the images of a
batch, so that the gradient of one image, which has to be clipped, does not exist.
";

/// Returns settings and theory of an algorithm.
fn algorithm(entry: &Entry) -> String {
    let needs = if entry.supports(LossKind::Logistic, Delta::ZERO) { "optional" } else { "needed (--delta)" };
    let settings = settings(entry.settings);
    let settings = if settings.is_empty() { "  none\n".to_owned() } else { settings };
    format!(
        "{}: {}\n\ndelta      {needs}\nrelations  {}\nlosses     {}\n\nSettings:\n{settings}\nTheory:\n\n{}\n",
        entry.name,
        with_dashes(entry.about),
        relations(entry),
        losses(entry).join(", "),
        entry.theory()
    )
}
