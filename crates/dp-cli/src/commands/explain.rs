//! `dp explain`: the long form of every error code, and the terms of the field.

mod terms;

use terms::TERMS;

use crate::args::ExplainArgs;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::output::Console;

/// An error code with its page.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The code.
    pub code: &'static str,
    /// The meaning and the remedy, in one paragraph.
    pub text: &'static str,
}

/// The codes of the command itself; `dp-data` supplies those of the readers.
const OWN: &[Page] = &[
    Page {
        code: "account.event",
        text: "The tree of events cannot be read or makes no sense: it is not JSON, an event has a type that does not \
               exist, a field is missing, unknown or duplicate, a number lies outside its range, or the tree is \
               nested too deeply. The message names what. `dp account event --help` shows an example; the \
               certificate of any model holds one under `event`.",
    },
    Page {
        code: "account.failed",
        text: "The accountant itself failed on a question of a batch. That is a mistake in the program: please report \
               the question. The other lines were answered as usual.",
    },
    Page {
        code: "account.line",
        text: "A line of a batch is not a question: it is not UTF-8, not one JSON object, longer than 4 MiB, it has a \
               key that does not exist or that is duplicate, or a value of another kind (a number in quotes, a \
               fraction where a count belongs). JSON has no NaN and no Infinity. The other lines are answered as \
               usual.",
    },
    Page {
        code: "account.read",
        text: "The file of questions or events could not be opened or read. Check its name and that you may read it; \
               answers that were printed before are complete and correct.",
    },
    Page {
        code: "account.unreachable",
        text: "Nothing meets the target: no amount of noise, no sampling rate or not even one step gives the requested \
               epsilon at the requested delta. With delta = 0 only pure mechanisms can meet a target. A part of the \
               release that does not depend on the unknown number may already cost too much.",
    },
    Page {
        code: "account.unsupported",
        text: "The requested accountant has no theorem for the release: Gaussian DP covers only events that satisfy it \
               exactly, zero-concentrated DP neither sampling nor approximate guarantees, the exact accountant only \
               releases with a known worst-case pair of distributions. `auto` chooses among all that apply, \
               `--compare` shows them.",
    },
    Page {
        code: "audit.failed",
        text: "An audit could not be carried out: what is audited refused its own inputs, the claim cannot be accounted \
               for, or the system gave no threads or no random seed. It says nothing about privacy either way. The \
               message names what failed.",
    },
    Page {
        code: "checkpoint.format",
        text: "The file given with --checkpoint is not the checkpoint of a training, or not as it was written: a byte was \
               changed, or the end is missing. It cannot be repaired. The interrupted training has cost its whole budget, \
               which counts beside that of a new one.",
    },
    Page {
        code: "checkpoint.other",
        text: "The checkpoint given with --resume is of another training. Layers, classes, initial weights, number of images, \
               budget and all settings must be those of the interrupted command; the message names what differs.",
    },
    Page {
        code: "checkpoint.used",
        text: "A training that is still running uses the file given with --checkpoint. Two trainings that go on from one \
               checkpoint would spend the rest of its budget twice.",
    },
    Page {
        code: "config.key",
        text: "The file given with --config names a flag or a command that does not exist. Keys are the long names of flags: \
               those of every command at the top, those of one command in its table, as `epsilon = 1` below `[train]` or \
               `steps = 1000` below `[account.dpsgd]`. `dp help COMMAND` lists them; --print-config writes such a file.",
    },
    Page {
        code: "config.read",
        text: "The file given with --config could not be opened or read. Check its name and that you may read it.",
    },
    Page {
        code: "config.syntax",
        text: "The file given with --config is not valid TOML. The message names the line. Texts stand in quotes, numbers and \
               `true` do not; a flag without a value is `force = true`.",
    },
    Page {
        code: "config.value",
        text: "A value in the file given with --config has a kind that the flag does not take: a flag without a value is true \
               or false, any other a text, a number, or a list of these where the flag may be repeated.",
    },
    Page {
        code: "key.format",
        text: "The file given with --key is no Ed25519 key of the kind that is needed, in PEM: `dp sign model` takes the \
               secret key that `dp sign new-key` wrote, `dp verify` the public one, whose name ends in .pub.",
    },
    Page {
        code: "key.read",
        text: "The file given with --key could not be opened or read as text. Check its name and that you may read it: a \
               secret key is readable by its owner alone.",
    },
    Page {
        code: "lists.empty",
        text: "A file of lists holds no document: it is empty, has only comments, or only a header. Check that it is the \
               right file.",
    },
    Page {
        code: "lists.feature",
        text: "A feature of a LETOR line is not of the form `index:value`, or occurs twice in the line. Features follow \
               grade and query, divided by blanks; what follows `#` is a comment.",
    },
    Page {
        code: "lists.grade",
        text: "A grade is not a whole number from 0 to the largest one. The largest grade is declared (--largest-grade, 2 \
               if not given) and never read off the grades, which are private; map finer scales to whole grades \
               beforehand. In LETOR the grade is the first part of a line, in CSV the column that --label names. Only \
               `dp rank predict` reads documents without grades.",
    },
    Page {
        code: "lists.query",
        text: "A document has no query. In LETOR the second part of each line is `qid:ID`, in CSV the cell of the column \
               that --query names. All documents of one query are one list, which is the unit of privacy.",
    },
    Page {
        code: "lists.split",
        text: "The rows of one query do not lie together: others stand between them, or they are in two files. Often \
               two users share a name; joined into one list, they would share its protection. Sort the file by query, \
               or add --split-lists join if all rows of a query are one user's; lists in two files belong into one.",
    },
    Page {
        code: "lists.unreadable",
        text: "A file of lists could not be read to its end: the disk failed, or a line is longer than 64 MiB. Fetch the file again and compare its size or checksum.",
    },
    Page {
        code: "lists.value",
        text: "The value of a feature is not a finite number: a word, a blank cell, NaN or infinity; or a value is so \
               large that a score overflows. Fill in missing values beforehand; where features are protected, only \
               from within the same list.",
    },
    Page {
        code: "lists.width",
        text: "A feature lies beyond the declared number of features (--features, or that of the ranker), or a CSV file has \
               another number of feature columns. LETOR numbers features from 1.",
    },
    Page {
        code: "model.format",
        text: "The file is not a model that this version can read: it is not JSON, a member is missing, unknown or \
               there twice, or the schema names another format. A model is the file that `dp train --out` wrote; do \
               not edit it. A model of a newer version needs that version.",
    },
    Page {
        code: "file.too_large",
        text: "A file that is held in memory as a whole is larger than the limit: 64 MiB for a schema or a tree of \
               events, 4 GiB for a model or ranker with its certificate (no larger one is written). Usually the wrong \
               file was named, such as the data in place of the schema. Data and questions have no size limit, except \
               64 MiB for a row or line.",
    },
    Page {
        code: "model.read",
        text: "The model file could not be opened or read. Check its name and that you may read it.",
    },
    Page {
        code: "model.mismatch",
        text: "The records do not fit the model: they come in another format than those it was trained on (CSV \
               against libsvm). Use records of the same form as for training.",
    },
    Page {
        code: "output.closed_pipe",
        text: "Standard output, where the result was to go, was closed before the result was \
               written, or there was none from the start. Files named by --out or --report are there if they were \
               complete. Output that is often read only in part (predictions, the answers of a batch, help) ends \
               without this error.",
    },
    Page {
        code: "network.shape",
        text: "The layers of a network do not fit each other, or do not fit the images: a kernel or a pool is larger than its \
               input, the last layer is not linear with one unit for each class, or the network is for images of another \
               size. The message names the layers, counted from 1. `dp help networks` lists the kinds of layers.",
    },
    Page {
        code: "network.syntax",
        text: "The file given with --model describes no network: it is not TOML, a key is unknown or missing, or a value is of \
               another kind. The message names the line. `dp help networks` shows a complete file.",
    },
    Page {
        code: "output.exists",
        text: "The output file is there already. `dp` never replaces a file unless told to with --force, and makes \
               sure of it at the moment the new file gets its name, so two runs cannot overwrite each other.",
    },
    Page {
        code: "output.full",
        text: "The disk, or the quota of the user, is full. Outputs are written under a temporary name and appear \
               only when they are complete, so nothing was left behind, but for the checkpoint of a training, from which \
               --resume continues. The privacy budget of a training run that \
               failed while writing is spent all the same if its noise had been drawn and seen by anyone; the noise \
               of an unwritten model was seen by nobody.",
    },
    Page {
        code: "output.write",
        text: "An output could not be written: the folder does not exist, is not writable, or the name belongs to \
               something that is not an ordinary file. Nothing was left behind.",
    },
    Page {
        code: "privacy.adjacency",
        text: "The algorithm has no proof under the neighbouring relation that was asked for. A guarantee under one \
               relation is not one under another: under `replace-one` a record may change to any other, under \
               `add-remove` it is present or replaced by a null record that contributes nothing (zero-out). Nothing is \
               converted silently; choose a relation that the algorithm is proved for.",
    },
    Page {
        code: "privacy.refused",
        text: "No guarantee is possible with these settings: a parameter lies outside the range in which the theorem \
               behind the algorithm holds, for example a strongly convex algorithm without regularisation, a step \
               size larger than the loss allows, or squared loss without a radius. The message names the parameter.",
    },
    Page {
        code: "reproduce.busy",
        text: "Another `dp reproduce` is under way in the same output folder and holds its runs.csv: two at once would \
               do every run twice. Wait until it has ended, or name another folder with --out.",
    },
    Page {
        code: "reproduce.data",
        text: "A data set of the experiments cannot be read: a file is not in the folder that --data names, or holds \
               something else than its name says. The message names every missing file with its size and origin; \
               `dp reproduce list --data DIR` shows which are there. Any gzip of the same content will do.",
    },
    Page {
        code: "reproduce.failed",
        text: "An experiment could not be run or its picture not be drawn, though its parameters come with the program: \
               please report the message. Runs that had finished are kept, and the same command goes on after them.",
    },
    Page {
        code: "reproduce.record",
        text: "The file runs.csv in the output folder is no record of finished runs, one with other columns, or one in \
               which a line was changed: each line ends with a digest of the rest. The file is left as it is. Name \
               another folder with --out, or move the file away; a line that was changed can be removed, and its run is \
               done again.",
    },
    Page {
        code: "run.interrupted",
        text: "A signal (Ctrl-C, or a request to end) stopped the command. Temporary files were removed and no output \
               got its name; a model that was being trained was seen by nobody. Run the command again; a training \
               with --checkpoint goes on with --resume.",
    },
    Page {
        code: "sign.random",
        text: "The system gave no random numbers, so that no key could be made. Nothing was written.",
    },
    Page {
        code: "signature.format",
        text: "The file is not a signature: it is not what `dp sign model` writes, a member is missing, unknown or \
               there twice, or its format is of another version.",
    },
    Page {
        code: "signature.read",
        text: "The signature that --key asks for could not be opened or read. It lies beside the model, as MODEL.sig, or \
               where --signature says. Without --key a model is verified without anybody's word for it.",
    },
    Page {
        code: "train.failed",
        text: "Training ended before anything was released, because the source of the records failed (it ended \
               early or changed while it was read) or because the system's random source gave out.",
    },
    Page {
        code: "train.not_finite",
        text: "The released weights are not finite numbers: the settings were so extreme that the arithmetic \
               overflowed, such as a --lambda near the largest double. Whether this happens is decided by the released \
               weights alone, after the noise, so that the guarantee covers it; no model was written.",
    },
    Page {
        code: "train.useless",
        text: "By the numbers of records and features, epsilon and delta alone, the noise is expected to cost the model half \
               or more of what can be gained over the majority class (or the mean). The budget would be spent for \
               little, so nothing was trained. The message says how many records, or which epsilon, would bring the \
               expected loss to a fifth. The forecast comes from measurements on other tables and can be wrong by a \
               factor of three either way; --anyway trains all the same.",
    },
    Page {
        code: "usage.arguments",
        text: "The command line could not be understood: an unknown flag, a missing argument, a word where a number \
               belongs. `dp help COMMAND` lists what a command takes.",
    },
    Page {
        code: "usage.conflict",
        text: "Two flags contradict each other, or a flag has no meaning for this form of data or this algorithm. \
               Ignoring one of them would train something else than was asked for.",
    },
    Page {
        code: "usage.missing",
        text: "A flag is needed that was not given. Nothing that matters for privacy is guessed: epsilon, the label, \
               and a schema (or the explicit --schema-from-data) have to be given.",
    },
    Page {
        code: "usage.stdin_twice",
        text: "Two inputs were both `-`. Standard input can be read only once; name a file for one of them.",
    },
    Page {
        code: "usage.unknown_code",
        text: "`dp explain` was given a code that does not exist. `dp explain` alone lists them all.",
    },
    Page {
        code: "usage.unknown_topic",
        text: "`dp help` was given a topic that does not exist. `dp help` alone lists the commands.",
    },
    Page {
        code: "usage.value",
        text: "The value of a flag lies outside its range. Epsilon is a finite number greater than 0; delta lies in \
               [0, 1) and should be far below 1/n; step sizes, radius and regularisation are finite and positive; \
               counts are at least 1.",
    },
    Page {
        code: "value.clamped",
        text: "A warning of `dp check`, no error: values lie outside the public range of their column and count as its nearer \
               end. A few are usual. If there are many, the unit or the decimal mark of the column may have changed, or \
               the range may be too narrow; widen it by what is publicly known, not by what the file holds.",
    },
    Page {
        code: "verify.assumption",
        text: "The certificate hides something that the guarantee rests on: the recipe, the schema or the noise rests \
               on an assumption that the certificate does not list, or it lists one that does not fit the model.",
    },
    Page {
        code: "verify.certificate_hash",
        text: "The certificate is not the one that was written with this file: a number, a name or a word in it was \
               changed after training. Ask for the original file.",
    },
    Page {
        code: "verify.guarantee",
        text: "The guarantee does not follow from what the certificate says was done. `dp verify` derives every \
               sensitivity again from the recipe's public parameters and epsilon from the events; they disagree with \
               what is written. The model has not been shown to be private.",
    },
    Page {
        code: "verify.model_hash",
        text: "The model is not the one that the certificate speaks of: a weight, a range, a category or another \
               part of the model was changed after training, or a certificate was put beside a model that is not \
               its own.",
    },
    Page {
        code: "verify.not_private",
        text: "The certificate itself says that there is no guarantee: the model was trained without privacy, or its \
               noise came from a seed that makes it reproducible, and so can be subtracted by anyone who knows or \
               guesses the seed. Train again with privacy and without --seed.",
    },
    Page {
        code: "verify.signature",
        text: "There is a signature, and it does not show that the holder of the key given with --key vouches for this \
               model: it is by another key, for another certificate or statement, or it was changed. The guarantee itself \
               was verified before. Ask the curator for the signature of this file, and for the key through another \
               channel than the model.",
    },
    Page {
        code: "verify.weights",
        text: "The weights are not what the recipe of the certificate can have released. Noise is added on a grid \
               whose step follows from its scale, and a projection leaves weights in a ball; these lie between the \
               points of the grid, outside the ball, or need more digits than the recipe's arithmetic has. Such \
               weights were put in place of those that were released, and may contain no noise at all. Ask for the \
               original file.",
    },
    Page {
        code: "verify.work",
        text: "Recomputing this certificate takes more steps than the limit, because of very many candidates, updates \
               or features, so that it was neither verified nor refuted. The number of steps is known beforehand. \
               Raise the limit with --work if you trust the file that far.",
    },
];

/// Returns all codes with their pages, in alphabetical order.
pub fn pages() -> Vec<Page> {
    let mut pages = OWN.to_vec();
    pages.extend(dp_data::error::codes().iter().map(|&(code, text)| Page { code, text }));
    pages.sort_unstable_by_key(|page| page.code);
    pages
}

/// Prints the page of a code, or the list of all codes.
///
/// # Errors
/// An unknown code, or standard output that cannot be written.
pub fn run(args: &ExplainArgs, console: &Console) -> Result<(), Failure> {
    let pages = pages();
    match &args.code {
        None => {
            let codes: Vec<&str> = pages.iter().map(|page| page.code).collect();
            let terms: Vec<&str> = TERMS.iter().map(|term| term.names[0]).collect();
            let listed = wrapped(&terms.join(", "), 80);
            let text = format!("{}\n\nTerms: {listed}", codes.join("\n"));
            console.result(&serde_json::json!({ "schema": "dp.explain/1", "codes": codes, "terms": terms }), &text)
        }
        Some(code) => match pages.iter().find(|page| page.code.eq_ignore_ascii_case(code)) {
            Some(page) => console.result(
                &serde_json::json!({ "schema": "dp.explain/1", "code": page.code, "text": page.text }),
                &format!("{}\n\n{}", page.code, wrapped(page.text, 80)),
            ),
            None => explain_term(code, console).unwrap_or_else(|| {
                let message = format!("there is no code or term `{code}`");
                Err(Failure::new(ExitStatus::Usage, "usage.unknown_code", message).help(match nearest(code, &pages) {
                    Some(near) => format!("did you mean `{near}`? `dp explain` lists all codes and terms"),
                    None => "`dp explain` lists all codes and terms".to_owned(),
                }))
            }),
        },
    }
}

/// Prints a term; `None` if there is no such term.
fn explain_term(name: &str, console: &Console) -> Option<Result<(), Failure>> {
    let term = terms::find(name)?;
    let others = match term.names {
        [_] => String::new(),
        [_, others @ ..] => format!(" (also {})", others.join(", ")),
        [] => return None,
    };
    let name = term.names[0];
    let text = format!("{name}{others}\n\n{}", wrapped(term.text, 80));
    Some(console.result(&serde_json::json!({ "schema": "dp.explain/1", "term": name, "text": term.text }), &text))
}

/// Returns the code that is most like the argument.
fn nearest(code: &str, pages: &[Page]) -> Option<&'static str> {
    let code = code.to_ascii_lowercase();
    let likeness = |page: &Page| strsim::jaro_winkler(page.code, &code);
    let all = pages.iter().map(|page| (page.code, likeness(page)));
    all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, likeness)| *likeness > 0.7).map(|(code, _)| code)
}

/// Breaks text at blanks into lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > width {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += word_length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        let pages = pages();
        assert!(pages.windows(2).all(|pair| pair[0].code < pair[1].code));
        for page in &pages {
            assert!(page.text.len() > 60, "{}", page.code);
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c);
            assert!(page.code.contains('.') && page.code.chars().all(plain), "{}", page.code);
        }
    }

    #[test]
    fn wrapping_keeps_words_and_width() {
        let text = wrapped("aaa bbb ccc dddddddd e", 7);
        assert_eq!(text, "aaa bbb\nccc\ndddddddd\ne");
    }
}
