//! `--curve`: epsilon against delta or steps, or the trade-off curve of an attacker, as numbers or as a picture.

use dp::accounting::{self, Choice, Question, SCHEMA, Unknown, solve};
use std::path::Path;

use dp_accountant::Delta;
use dp_accountant::trade_off::Errors;
use serde::Serialize;
use serde_json::{Map, Value};

use super::picture;
use crate::args::{Curve, QuestionArgs, word};
use crate::atomic;
use crate::commands::dry_run::Foreseen;
use crate::exit_code::ExitStatus;
use crate::failure::Failure;
use crate::limit::{self, Limited};
use crate::output::{Console, number};
use crate::progress::ProgressMode;

/// Default number of points of a curve.
const POINTS: usize = 45;

/// Default range of the deltas of a curve; a smaller requested delta extends it.
const DELTAS: (f64, f64) = (1e-12, 0.1);

/// The quantity on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    /// Its name in CSV and JSON.
    pub name: &'static str,
    /// Its name in a picture.
    pub title: &'static str,
    /// True if the axis is logarithmic.
    pub logarithmic: bool,
}

/// One point, with the certified interval of its height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The horizontal coordinate.
    pub x: f64,
    /// The certified lower bound.
    pub lower: f64,
    /// The certified upper bound.
    pub upper: f64,
}

/// The certified sides of a curve, and the promised one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// Both; the upper one is promised.
    Both,
    /// The lower one alone.
    Lower,
}

/// A curve with its certified bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The certified sides.
    pub sides: Sides,
    /// The points, from left to right.
    pub points: Vec<Point>,
}

/// The files of a written curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Written {
    schema: &'static str,
    curve: String,
    points: usize,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The form of an output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Csv,
    Svg,
}

/// Computes a curve and writes it.
///
/// # Errors
/// Errors in the question, and output that cannot be written.
pub fn execute(
    question: &Question,
    curve: Curve,
    asked: &QuestionArgs,
    progress: ProgressMode,
    console: &Console,
) -> Result<(), Failure> {
    let form = asked.out.as_deref().map(form).transpose()?;
    let count = asked.points.unwrap_or(POINTS);
    if !accounting::POINTS.contains(&count) {
        return Err(Failure::usage("--points", format!("{count} points are out of range"))
            .expected("a whole number from 2 to 10000"));
    }
    if asked.dry_run {
        let writes: Vec<&Path> = asked.out.as_deref().into_iter().collect();
        return Foreseen::new(SCHEMA, &[], &writes, asked.force)?.print(console);
    }
    if let Some(out) = &asked.out {
        atomic::check(out, asked.force)?;
    }
    let scale = (count as f64 / POINTS as f64).max(1.0);
    let Limited { value: points, is_short, .. } =
        limit::within(asked.limit, scale, progress, console, || points(question, curve, count))?;
    let points = points?;
    let note = is_short.then(|| limit::note(asked.limit));
    if let Some(note) = &note {
        console.note(note);
    }
    let (Some(out), Some(form)) = (&asked.out, form) else {
        return console.result(&json(&points, question, curve, note), &csv(&points));
    };
    let content = match form {
        Form::Csv => csv(&points),
        Form::Svg => picture::svg(&points)?,
    };
    atomic::write(out, asked.force, content.as_bytes())?;
    let (points, file) = (points.points.len(), atomic::shown(out));
    let written = Written { schema: SCHEMA, curve: word(&curve), points, file, note };
    console.result(&written, &format!("{} points: {}", written.points, written.file))
}

/// Computes the points of a curve.
fn points(question: &Question, curve: Curve, count: usize) -> Result<Points, Failure> {
    match curve {
        Curve::EpsilonDelta => against_delta(question, count),
        Curve::EpsilonSteps => against_steps(question, count),
        Curve::TradeOff => trade_off(question, count),
    }
}

const EPSILON: Axis = Axis { name: "epsilon", title: "epsilon", logarithmic: false };

fn against_delta(question: &Question, count: usize) -> Result<Points, Failure> {
    let least = if question.delta > 0.0 { DELTAS.0.min(question.delta) } else { DELTAS.0 };
    let event = solve::solved_event(question)?;
    let evaluation = solve::evaluation(question, &event)?;
    let points = spread(least, DELTAS.1, count).map(|x| {
        let epsilon = Delta::new(x).and_then(|delta| evaluation.epsilon(delta));
        let epsilon = epsilon.map_err(|error| question.refused(&error))?;
        Ok(Point { x, lower: epsilon.lower, upper: epsilon.upper })
    });
    let x = Axis { name: "delta", title: "delta", logarithmic: true };
    Ok(Points { x, y: EPSILON, sides: Sides::Both, points: points.collect::<Result<_, Failure>>()? })
}

fn against_steps(question: &Question, count: usize) -> Result<Points, Failure> {
    if question.unknown != Unknown::Epsilon {
        return Err(Failure::usage("--curve", "epsilon against steps needs everything but epsilon")
            .help("give delta, and as --steps the most steps of the curve"));
    }
    let delta = question.target_delta()?;
    let (noise, rate) = (question.noise_multiplier.unwrap_or(1.0), question.sampling_rate.unwrap_or(1.0));
    let mut steps: Vec<u64> = spread(1.0, question.steps as f64, count).map(|steps| steps.round() as u64).collect();
    steps.dedup();
    let points = steps.into_iter().map(|steps| {
        let event = question.event_at(noise, rate, steps);
        let evaluation = solve::evaluation(question, &event)?;
        let epsilon = evaluation.epsilon(delta).map_err(|error| question.refused(&error))?;
        Ok(Point { x: steps as f64, lower: epsilon.lower, upper: epsilon.upper })
    });
    let x = Axis { name: "steps", title: "steps", logarithmic: true };
    Ok(Points { x, y: EPSILON, sides: Sides::Both, points: points.collect::<Result<_, Failure>>()? })
}

/// Returns the least type II error for each type I error.
fn trade_off(question: &Question, count: usize) -> Result<Points, Failure> {
    let point = |errors: &Errors| Point { x: errors.type_one, lower: errors.type_two, upper: 1.0 - errors.type_one };
    Ok(Points {
        x: Axis { name: "type_one", title: "false alarms (type I error)", logarithmic: false },
        y: Axis { name: "type_two", title: "missed detections (type II error), at least", logarithmic: false },
        sides: Sides::Lower,
        points: solve::trade_off(question, count)?.iter().map(point).collect(),
    })
}

/// Returns `count` numbers from `low` to `high` in geometric progression, with exact ends.
fn spread(low: f64, high: f64, count: usize) -> impl Iterator<Item = f64> {
    let last = count.saturating_sub(1).max(1);
    (0..count).map(move |i| match i {
        0 => low,
        i if i == last => high,
        i => low * (high / low).powf(i as f64 / last as f64),
    })
}

impl Points {
    /// Returns the promised value at a point.
    pub fn promise(&self, point: &Point) -> f64 {
        match self.sides {
            Sides::Both => point.upper,
            Sides::Lower => point.lower,
        }
    }
}

/// Formats the curve as CSV, one line per point, with full precision.
fn csv(points: &Points) -> String {
    let (x, y) = (points.x.name, points.y.name);
    let (x_of, promise) = (|point: &Point| point.x, |point: &Point| points.promise(point));
    match points.sides {
        Sides::Both => {
            let mut text = format!("{x},{y},{y}_lower,{y}_upper\n");
            for point in &points.points {
                text.push_str(&format!("{},{},{},{}\n", x_of(point), promise(point), point.lower, point.upper));
            }
            text
        }
        Sides::Lower => {
            let mut text = format!("{x},{y}\n");
            for point in &points.points {
                text.push_str(&format!("{},{}\n", x_of(point), promise(point)));
            }
            text
        }
    }
}

fn json(points: &Points, question: &Question, curve: Curve, note: Option<String>) -> Value {
    let (x, y) = (points.x.name, points.y.name);
    let list = points.points.iter().map(|point| {
        let mut members = vec![(x.to_owned(), number(point.x)), (y.to_owned(), number(points.promise(point)))];
        if points.sides == Sides::Both {
            members.push((format!("{y}_lower"), number(point.lower)));
            members.push((format!("{y}_upper"), number(point.upper)));
        }
        Value::Object(Map::from_iter(members))
    });
    let mut written = serde_json::json!({
        "schema": SCHEMA,
        "job": question.job.name(),
        "curve": word(&curve),
        "accountant": question.accountant.name(),
        "adjacency": question.relation.as_str(),
        "n_public": question.relation.n_public(),
        "points": list.collect::<Vec<_>>(),
    });
    if let Some(note) = note {
        written["note"] = note.into();
    }
    written
}

fn form(out: &Path) -> Result<Form, Failure> {
    match out.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("csv") => Ok(Form::Csv),
        Some("svg") => Ok(Form::Svg),
        _ => {
            Err(Failure::new(ExitStatus::Usage, "usage.value", "the name does not say which form the curve is to have")
                .at_flag("--out")
                .expected("a name that ends in .csv or .svg"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_numbers_have_exact_ends() {
        let found: Vec<f64> = spread(1e-12, 0.1, 12).collect();
        assert_eq!((found[0], found[11]), (1e-12, 0.1));
        assert!(found.windows(2).all(|pair| (pair[1] / pair[0] - 10.0).abs() < 1e-9));
        assert_eq!(spread(1.0, 1.0, 2).collect::<Vec<_>>(), [1.0, 1.0]);
    }

    #[test]
    fn the_promise_is_the_careful_end() {
        let point = Point { x: 0.5, lower: 0.25, upper: f64::INFINITY };
        let mut points = Points { x: EPSILON, y: EPSILON, sides: Sides::Both, points: vec![point] };
        assert_eq!(csv(&points), "epsilon,epsilon,epsilon_lower,epsilon_upper\n0.5,inf,0.25,inf\n");
        points.sides = Sides::Lower;
        assert_eq!(csv(&points), "epsilon,epsilon\n0.5,0.25\n");
    }
}
