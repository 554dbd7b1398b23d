//! The settings of all algorithms, each with its name, help and range.

use dp_losses::Penalty;

use super::choice::{
    Average, BatchSampling, Choice, CurvatureSource, LineSearch, NoiseLaw, Order, Steps, Stop, Variant,
};
use crate::error::Error;

/// The range of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// Above 0.
    Positive,
    /// 0 or above.
    NotNegative,
    /// From 0 to below 1.
    ShareOrNone,
    /// Above 0 and below 1.
    Share,
    /// Between 10⁻⁶ and 1 - 10⁻⁶.
    InnerShare,
}

impl Range {
    fn holds(self, x: f64) -> bool {
        match self {
            Self::Positive => x.is_finite() && x > 0.0,
            Self::NotNegative => x.is_finite() && x >= 0.0,
            Self::ShareOrNone => (0.0..1.0).contains(&x),
            Self::Share => x > 0.0 && x < 1.0,
            Self::InnerShare => (1e-6..=1.0 - 1e-6).contains(&x),
        }
    }

    /// Returns the range in words.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Positive => "a finite number greater than 0",
            Self::NotNegative => "a finite number, 0 or above",
            Self::ShareOrNone => "a share, from 0 to below 1",
            Self::Share => "a share, above 0 and below 1",
            Self::InnerShare => "a share between 0 and 1",
        }
    }
}

/// The type of a parameter's values.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A number.
    Number(Range),
    /// An integer between these bounds.
    Count {
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// One of these names, each with its meaning.
    OneOf(fn() -> Vec<(&'static str, &'static str)>),
    /// A switch.
    Flag,
    /// A [`Penalty`], as text.
    Penalty,
}

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A value of [`Kind::Number`].
    Number(f64),
    /// A value of [`Kind::Count`].
    Count(u64),
    /// A value of [`Kind::OneOf`].
    Name(String),
    /// A value of [`Kind::Flag`].
    Flag,
    /// A value of [`Kind::Penalty`].
    Penalty(Penalty),
}

/// A setting of one or more algorithms.
#[derive(Debug)]
pub struct Parameter {
    /// Its name, such as `batch-size`.
    pub name: &'static str,
    /// The placeholder of the value in a usage line.
    pub value_name: &'static str,
    /// The help text: meaning and default.
    help: &'static str,
    /// The type of its values.
    pub kind: Kind,
    /// True if tuning may choose among several values of it.
    pub tuned: bool,
    put: fn(&mut Settings, Value) -> Option<()>,
    given: fn(&Settings) -> bool,
}

impl Parameter {
    /// Returns the help text: meaning and default.
    pub fn help(&self) -> &'static str {
        self.help.trim_ascii()
    }

    /// Sets the value.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Count`]; [`Error::Setting`] for a value of another kind.
    pub fn set(&self, settings: &mut Settings, value: Value) -> Result<(), Error> {
        match (self.kind, &value) {
            (Kind::Number(range), &Value::Number(x)) if !range.holds(x) => {
                return Err(Error::OutOfRange { name: self.name, value: x, range: range.in_words() });
            }
            (Kind::Count { least: 1, .. }, Value::Count(0)) => {
                return Err(Error::Count { name: self.name, value: 0, range: "1 or more" });
            }
            _ => {}
        }
        (self.put)(settings, value).ok_or(Error::Setting {
            name: self.name,
            why: "this value is of another kind",
            expected: None,
            help: None,
        })
    }

    /// Returns whether it is given.
    pub fn is_given(&self, settings: &Settings) -> bool {
        (self.given)(settings)
    }
}

/// A type to which a parameter's value is converted.
trait Read: Sized {
    fn read(value: Value) -> Option<Self>;
}

impl Read for f64 {
    fn read(value: Value) -> Option<Self> {
        if let Value::Number(x) = value { Some(x) } else { None }
    }
}

impl Read for u64 {
    fn read(value: Value) -> Option<Self> {
        if let Value::Count(count) = value { Some(count) } else { None }
    }
}

impl Read for bool {
    fn read(value: Value) -> Option<Self> {
        (value == Value::Flag).then_some(true)
    }
}

impl Read for Penalty {
    fn read(value: Value) -> Option<Self> {
        if let Value::Penalty(penalty) = value { Some(penalty) } else { None }
    }
}

impl<C: Choice> Read for C {
    fn read(value: Value) -> Option<Self> {
        if let Value::Name(name) = value { C::named(&name) } else { None }
    }
}

fn names<C: Choice>() -> Vec<(&'static str, &'static str)> {
    C::ALL.iter().map(|&(_, name, help)| (name, help)).collect()
}

const ABOVE_0: Kind = Kind::Number(Range::Positive);
const FROM_0: Kind = Kind::Number(Range::NotNegative);
const COUNT: Kind = Kind::Count { least: 1, most: u64::MAX };

/// Defines a field of [`Settings`] and a [`Parameter`] for each setting.
macro_rules! settings {
    ($($(#[doc = $help:literal])+ $field:ident: $type:ty = $name:literal, $shown:literal, $kind:expr, $tuned:literal;)+) => {
        /// The given settings; all others follow from public numbers.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Settings {
            $($(#[doc = $help])+ pub $field: Option<$type>,)+
        }

        /// All settings, in display order.
        pub static PARAMETERS: &[Parameter] = &[$(Parameter {
            name: $name,
            value_name: $shown,
            help: concat!($($help),+),
            kind: $kind,
            tuned: $tuned,
            put: |settings, value| {
                settings.$field = Some(<$type as Read>::read(value)?);
                Some(())
            },
            given: |settings| settings.$field.is_some(),
        }),+];
    };
}

settings! {
    /// L2 regularisation [default: by n, d and the budget where strongly convex, 0.001 without privacy, else none]
    lambda: f64 = "lambda", "NUMBER", FROM_0, true;
    /// Passes over the records [default: 10, more on small tables where strongly convex or without privacy]
    passes: u64 = "passes", "NUMBER", Kind::Count { least: 1, most: u32::MAX as u64 }, true;
    /// Steps, for algorithms that count steps and not passes; of dp-svrg those after each gradient of all records, of which
    /// `passes` is the number
    steps: u64 = "steps", "NUMBER", COUNT, false;
    /// Records in a batch
    batch_size: u64 = "batch-size", "NUMBER", COUNT, true;
    /// How the records of a step are drawn
    sampling: BatchSampling = "sampling", "HOW", Kind::OneOf(names::<BatchSampling>), false;
    /// Another form of the algorithm [default: that with the least noise]
    variant: Variant = "variant", "NAME", Kind::OneOf(names::<Variant>), false;
    /// Share of the cost spent on the point that the regulariser pulls to, from noisy moments [default: 0, no such point]
    centre_share: f64 = "centre-share", "SHARE", Kind::Number(Range::ShareOrNone), false;
    /// The minimiser is certified once the mean objective's gradient is no longer than this; the less exact, the more noise on
    /// it [default: as exact as rounding lets be certified]
    tolerance: f64 = "tolerance", "NORM", ABOVE_0, false;
    /// Share of the cost spent on gradients of all records, where steps on batches have the rest [default: 0.7]
    full_share: f64 = "full-share", "SHARE", Kind::Number(Range::Share), false;
    /// Each record's gradient is clipped to this norm
    clip: f64 = "clip", "NORM", ABOVE_0, false;
    /// A penalty that makes weights zero: l1:NUMBER, elastic-net:NUMBER:RIDGE, group:NUMBER:SIZES, nuclear:NUMBER,
    /// scad:NUMBER:A or mcp:NUMBER:GAMMA, of which SIZES, A and GAMMA may be omitted; the intercept's is not shrunk [default:
    /// none; l1:0.001 for ADMM]
    penalty: Penalty = "penalty", "KIND:NUMBER", Kind::Penalty, false;
    /// Short for `penalty` l1:NUMBER
    l1: f64 = "l1", "NUMBER", FROM_0, false;
    /// How strongly the copies of ADMM draw each other [default: 0.25 for ss-admm, 0.5 for mp-admm, 0.05 for dp-admm, by n, d
    /// and the budget for admm-obj-pert]
    rho: f64 = "rho", "NUMBER", ABOVE_0, false;
    /// Where the curvature comes from [default: each-step]
    curvature: CurvatureSource = "curvature", "WHERE", Kind::OneOf(names::<CurvatureSource>), false;
    /// Share of the cost that is the curvature's [default: 0.4, which costs nothing for the logistic loss; 0.2 if released once]
    curvature_share: f64 = "curvature-share", "SHARE", Kind::Number(Range::InnerShare), false;
    /// Over how many steps noise is correlated [default: as many as serve best]
    bands: u64 = "bands", "STEPS", COUNT, false;
    /// Take the records in the order in which they come, which may be known to anyone but must not depend on what they
    /// hold; else in a random one
    in_order: bool = "in-order", "", Kind::Flag, false;
    /// Parties of dp-admm, each with an equal part of the records [default: 2]
    parties: u64 = "parties", "NUMBER", COUNT, false;
    /// Each record's loss is clamped to this
    clip_loss: f64 = "clip-loss", "NUMBER", ABOVE_0, false;
    /// How the length of a step is found
    line_search: LineSearch = "line-search", "HOW", Kind::OneOf(names::<LineSearch>), false;
    /// The weights are kept within this distance of 0 [default: 2 for bolt-on with the squared loss]
    radius: f64 = "radius", "NUMBER", ABOVE_0, false;
    /// First step size
    step_size: f64 = "step-size", "NUMBER", ABOVE_0, false;
    /// How the step size changes
    schedule: Steps = "schedule", "HOW", Kind::OneOf(names::<Steps>), false;
    /// Which of the iterates is released
    averaging: Average = "averaging", "HOW", Kind::OneOf(names::<Average>), false;
    /// Go on from the mean of every so many passes [default: half of them for rsgd-ar]
    restart_every: u64 = "restart-every", "PASSES", COUNT, false;
    /// The order of the records
    order: Order = "order", "HOW", Kind::OneOf(names::<Order>), false;
    /// When training stops
    stop: Stop = "stop", "WHEN", Kind::OneOf(names::<Stop>), false;
    /// Look for a certified minimiser with at least so many gradients, so that time tells of no record unless more are needed
    gradients: u64 = "gradients", "N", Kind::Count { least: 0, most: u64::MAX }, false;
    /// The distribution of the noise: on the released model, on each update, or in the objective
    output_noise: NoiseLaw = "output-noise", "LAW", Kind::OneOf(names::<NoiseLaw>), false;
}

impl Settings {
    /// Returns the requested penalty, by either setting.
    pub fn any_penalty(&self) -> Option<Penalty> {
        self.l1.map(|lambda| Penalty::L1 { lambda }).or_else(|| self.penalty.clone())
    }

    /// Returns the names of the given settings.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        PARAMETERS.iter().filter(|parameter| parameter.is_given(self)).map(|parameter| parameter.name)
    }
}
