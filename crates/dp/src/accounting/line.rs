//! Strict parsing of one line of a batch, a JSON object, into a question.

use crate::canonical;
use dp_accountant::AdjacencyKind;
use serde_json::{Map, Value};

use super::Choice;
use super::choices::Unknown;
use super::refusal::{Refusal, RefusalKind};
use super::request::{Job, Request, event, shown};

/// The keys that every job takes.
const COMMON: &[&str] =
    &["job", "id", "epsilon", "delta", "solve", "adjacency", "n_public", "group", "accountant", "steps"];

/// The relations.
const RELATIONS: &str = "add-remove, replace-one, change-list-labels";

/// The jobs with their specific keys.
const JOBS: &[(&str, &[&str])] = &[
    ("dpsgd", &["noise_multiplier", "sampling_rate", "batch_size", "records", "epochs", "sampling"]),
    ("gaussian", &["noise_multiplier"]),
    ("laplace", &["noise_multiplier"]),
    ("laplace-ball", &["noise_multiplier", "dim"]),
    ("randomized-response", &["buckets", "noise"]),
    ("pure", &["step_epsilon"]),
    ("approximate", &["step_epsilon", "step_delta"]),
    ("zcdp", &["rho"]),
    ("gdp", &["mu"]),
    ("event", &["event"]),
];

/// A parsed line: its identifier and its question.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The value of `id`, if it is usable.
    pub id: Option<Value>,
    /// The question, or the error in it.
    pub request: Result<Request, Refusal>,
}

impl Line {
    /// Parses a line without its line ending.
    pub fn parse(bytes: &[u8]) -> Self {
        let object = std::str::from_utf8(bytes)
            .map_err(|error| Refusal::of_line(format!("not UTF-8 text from byte {} on", error.valid_up_to() + 1)))
            .and_then(|text| {
                canonical::parse(text).map_err(|error| {
                    Refusal::of_line(format!("not JSON: {}", in_line(&error)))
                        .help("one JSON object per line; JSON has no NaN and no Infinity")
                })
            })
            .and_then(|value| match value {
                Value::Object(members) => Ok(members),
                other => Err(Refusal::of_line(format!("an object is needed, not {}", shown(&other)))),
            });
        match object {
            Err(failure) => Self { id: None, request: Err(failure) },
            Ok(mut members) => match members.remove("id") {
                None => Self { id: None, request: request(members) },
                Some(id @ (Value::String(_) | Value::Number(_))) => Self { id: Some(id), request: request(members) },
                Some(other) => {
                    let failure = Refusal::of_line(format!("`id` cannot be {}", shown(&other)));
                    Self { id: None, request: Err(failure.at_field("id").expected("text or a number")) }
                }
            },
        }
    }
}

/// Converts an object to a question.
fn request(mut members: Map<String, Value>) -> Result<Request, Refusal> {
    let job = match members.get("job") {
        Some(Value::String(job)) => job.clone(),
        None if members.contains_key("event") => "event".to_owned(),
        Some(other) => return Err(unfit("job", other, "the name of a job").help(names_of_jobs())),
        None => {
            return Err(missing("job", "the line says neither `job` nor `event`").help(names_of_jobs()));
        }
    };
    let Some((name, own)) = JOBS.iter().find(|(name, _)| *name == job) else {
        let near = nearest(&job, JOBS.iter().map(|(name, _)| *name));
        return Err(Refusal::of_line(format!("there is no job {}", shown(&Value::from(job))))
            .at_field("job")
            .help(near.map_or_else(names_of_jobs, |near| format!("did you mean `{near}`?"))));
    };
    if let Some(unknown) = members.keys().find(|key| !COMMON.contains(&key.as_str()) && !own.contains(&key.as_str())) {
        let keys = || COMMON.iter().chain(own.iter()).copied();
        let help = match nearest(unknown, keys()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it takes {}", keys().collect::<Vec<_>>().join(", ")),
        };
        let shown = shown(&Value::from(unknown.as_str()));
        return Err(Refusal::of_line(format!("{name} takes no {shown}")).at_field(unknown).help(help));
    }
    let mut fields = Fields(&mut members);
    let job = match *name {
        "dpsgd" => Job::Dpsgd,
        "gaussian" => Job::Gaussian,
        "laplace" => Job::Laplace,
        "laplace-ball" => Job::LaplaceBall { dim: fields.needed_count("dim")? },
        "randomized-response" => Job::RandomizedResponse {
            buckets: fields.count("buckets")?.unwrap_or(2),
            noise: fields.needed_number("noise")?,
        },
        "pure" => Job::Pure { step_epsilon: fields.needed_number("step_epsilon")? },
        "approximate" => Job::Approximate {
            step_epsilon: fields.needed_number("step_epsilon")?,
            step_delta: fields.needed_number("step_delta")?,
        },
        "zcdp" => Job::Zcdp { rho: fields.needed_number("rho")? },
        "gdp" => Job::Gdp { mu: fields.needed_number("mu")? },
        _ => match fields.0.remove("event") {
            Some(tree) => Job::Event(Box::new(event(tree).map_err(|failure| failure.at_field("event"))?)),
            None => return Err(missing("event", "event is missing")),
        },
    };
    Ok(Request {
        noise_multiplier: fields.number("noise_multiplier")?,
        sampling_rate: fields.number("sampling_rate")?,
        batch_size: fields.count("batch_size")?,
        records: fields.count("records")?,
        steps: fields.count("steps")?,
        epochs: fields.number("epochs")?,
        sampling: fields.word("sampling")?.unwrap_or_default(),
        epsilon: fields.number("epsilon")?,
        delta: fields.number("delta")?,
        solve: fields.solve()?,
        adjacency: fields.adjacency()?,
        n_public: fields.flag("n_public")?,
        group: fields.count("group")?,
        accountant: fields.word("accountant")?.unwrap_or_default(),
        ..Request::new(job)
    })
}

/// The members of a line, removed one by one.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn number(&mut self, name: &'static str) -> Result<Option<f64>, Refusal> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) => Ok(Some(number)),
                None => Err(unfit(name, &value, "a number, without quotes")),
            },
        }
    }

    fn needed_number(&mut self, name: &'static str) -> Result<f64, Refusal> {
        self.number(name)?.ok_or_else(|| missing(name, format!("{name} is missing")))
    }

    /// Reads a whole number; 1e4 counts as one.
    fn count(&mut self, name: &'static str) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        if let Some(count) = value.as_u64() {
            return Ok(Some(count));
        }
        match value.as_f64() {
            Some(number) if number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number) => {
                Ok(Some(number as u64))
            }
            _ => Err(unfit(
                name,
                &value,
                "a whole number of at least 0, without quotes, and above 2^53 without an exponent",
            )),
        }
    }

    fn needed_count(&mut self, name: &'static str) -> Result<u64, Refusal> {
        self.count(name)?.ok_or_else(|| missing(name, format!("{name} is missing")))
    }

    fn word<T: Choice>(&mut self, name: &'static str) -> Result<Option<T>, Refusal> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let word = value.as_str().and_then(T::named);
        word.map(Some).ok_or_else(|| unfit(name, &value, &words::<T>()))
    }

    /// Reads the quantity to solve for, spelled as a key or as a flag.
    fn solve(&mut self) -> Result<Option<Unknown>, Refusal> {
        if let Some(Value::String(word)) = self.0.get_mut("solve") {
            *word = word.replace('_', "-");
        }
        self.word("solve")
    }

    fn adjacency(&mut self) -> Result<Option<AdjacencyKind>, Refusal> {
        let Some(value) = self.0.remove("adjacency") else { return Ok(None) };
        let named = |word: &str| AdjacencyKind::from_words(word, true);
        value.as_str().and_then(named).map(Some).ok_or_else(|| unfit("adjacency", &value, RELATIONS))
    }

    fn flag(&mut self, name: &'static str) -> Result<Option<bool>, Refusal> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(value) => Err(unfit(name, &value, "true or false")),
        }
    }
}

/// Returns the accepted words of a key.
fn words<T: Choice>() -> String {
    T::ALL.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn names_of_jobs() -> String {
    format!("jobs are {}", JOBS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "))
}

fn missing(field: &str, message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Question, "usage.missing", message).at_field(field)
}

fn unfit(name: &str, value: &Value, expected: &str) -> Refusal {
    Refusal::of_line(format!("{name} cannot be {}", shown(value))).at_field(name).expected(expected)
}

/// Returns the JSON parser's message without its line number, which is always 1.
fn in_line(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

/// Returns the known name nearest to a misspelt one, if any is near.
fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed: String = typed.chars().take(64).map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect();
    known
        .map(|name| (strsim::levenshtein(&typed, &name.replace('-', "_")), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(line: &str) -> Refusal {
        Line::parse(line.as_bytes()).request.unwrap_err()
    }

    #[test]
    fn a_question_is_read_with_its_name() {
        let line = Line::parse(
            br#"{"job":"dpsgd","noise_multiplier":1.1,"sampling_rate":1e-2,"steps":1e4,"delta":1e-5,"id":7}"#,
        );
        assert_eq!(line.id, Some(Value::from(7)));
        let request = line.request.unwrap();
        assert_eq!((request.job, request.steps), (Job::Dpsgd, Some(10_000)));
        assert_eq!(
            (request.noise_multiplier, request.sampling_rate, request.delta),
            (Some(1.1), Some(0.01), Some(1e-5))
        );
    }

    #[test]
    fn a_tree_needs_no_job() {
        let line = Line::parse(br#"{"event":{"type":"pure-dp","epsilon":1.0},"delta":0}"#);
        assert!(matches!(line.request.unwrap().job, Job::Event(_)));
    }

    #[test]
    fn mistakes_are_named_and_the_nearest_key_is_offered() {
        let near = failure(r#"{"job":"dpsgd","noise_multiplyer":1.1}"#);
        assert_eq!((near.code, near.field.as_deref()), ("account.line", Some("noise_multiplyer")));
        assert_eq!(near.help.as_deref(), Some("did you mean `noise_multiplier`?"));
        assert_eq!(failure(r#"{"job":"dp-sgd"}"#).help.as_deref(), Some("did you mean `dpsgd`?"));
        for (line, word) in [
            (r#"{"job":"pure","step_epsilon":"1"}"#, "without quotes"),
            (r#"{"job":"gaussian","steps":1.5}"#, "whole number"),
            (r#"{"job":"gaussian","steps":-1}"#, "whole number"),
            (r#"{"job":"gaussian","sampling":"poisson"}"#, "takes no"),
            (r#"{"job":"gaussian","delta":null}"#, "delta"),
            (r#"{"job":"gaussian","adjacency":"add_remove"}"#, "add-remove"),
            (r#"{"job":"gaussian","id":{}}"#, "id"),
            (r#"{"job":"gaussian","job":"pure"}"#, "duplicate"),
            (r#"{"delta":1e-5}"#, "job"),
            (r#"[1]"#, "object"),
            (r#"{"job":"gaussian","delta":NaN}"#, "not JSON"),
            (r#"{"event":{"type":"gausian"},"delta":0}"#, "gausian"),
        ] {
            let failure = failure(line);
            let text = format!("{failure} {:?} {:?}", failure.expected, failure.help);
            assert!(text.contains(word), "{line}: {text}");
        }
        assert!(Line::parse(b"{\"id\": \xff}").request.unwrap_err().message.contains("byte 8"));
    }
}
