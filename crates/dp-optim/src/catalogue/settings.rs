//! The settings of all algorithms, each with its name, help and range.

use dp_losses::Penalty;

use super::choice::{
    Average, BatchSampling, Choice, ClipRule, CurvatureSource, LineSearch, NoiseLaw, Order, Steps, Stop, Variant,
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
    /// L2 regularisation: coefficient of (lambda/2)|w|^2 in the mean loss [default: from n, d and the budget for
    /// strongly convex algorithms, 1/(10 n) without privacy, otherwise 0]
    lambda: f64 = "lambda", "NUMBER", FROM_0, true;
    /// Number of passes (epochs) over the records [default: chosen by the algorithm: 10 for bolt-on, more on small tables
    /// if strongly convex; 20 for dp-sgd and networks]
    passes: u64 = "passes", "NUMBER", Kind::Count { least: 1, most: u32::MAX as u64 }, true;
    /// Number of steps, for algorithms that count steps instead of passes; for dp-svrg the number of inner steps after
    /// each full gradient, where `passes` is the number of full gradients
    steps: u64 = "steps", "NUMBER", COUNT, false;
    /// Batch size
    batch_size: u64 = "batch-size", "NUMBER", COUNT, true;
    /// Sampling of each step's batch
    sampling: BatchSampling = "sampling", "HOW", Kind::OneOf(names::<BatchSampling>), false;
    /// Published form of the algorithm or of its noise [default: the one with the least noise]
    variant: Variant = "variant", "NAME", Kind::OneOf(names::<Variant>), false;
    /// Share of the privacy cost for the centre of the regulariser, computed from noisy moments [default: 0, the centre
    /// is 0]
    centre_share: f64 = "centre-share", "SHARE", Kind::Number(Range::ShareOrNone), false;
    /// Largest gradient norm of the mean objective at a certified minimiser; a larger one needs more noise on the
    /// minimiser [default: the smallest that rounding errors allow]
    tolerance: f64 = "tolerance", "NORM", ABOVE_0, false;
    /// Share of the privacy cost for full gradients; the rest is for steps on batches [default: 0.7]
    full_share: f64 = "full-share", "SHARE", Kind::Number(Range::Share), false;
    /// Clipping norm of each record's gradient
    clip: f64 = "clip", "NORM", ABOVE_0, false;
    /// Clipping rule of networks [default: flat]
    clip_rule: ClipRule = "clip-rule", "RULE", Kind::OneOf(names::<ClipRule>), false;
    /// Nesterov's momentum, for networks under dp-sgd [default: 0.9]
    momentum: f64 = "momentum", "NUMBER", Kind::Number(Range::ShareOrNone), false;
    /// Sparsity penalty: l1:NUMBER, elastic-net:NUMBER:RIDGE, group:NUMBER:SIZES, nuclear:NUMBER, scad:NUMBER:A or
    /// mcp:NUMBER:GAMMA; SIZES, A and GAMMA are optional, and the intercept is not penalised [default: none; l1:0.001
    /// for ADMM]
    penalty: Penalty = "penalty", "KIND:NUMBER", Kind::Penalty, false;
    /// Short for `penalty` l1:NUMBER
    l1: f64 = "l1", "NUMBER", FROM_0, false;
    /// Penalty parameter of ADMM's augmented Lagrangian [default: 0.25 for ss-admm, 0.5 for mp-admm, 0.05 for dp-admm,
    /// from n, d and the budget for admm-obj-pert]
    rho: f64 = "rho", "NUMBER", ABOVE_0, false;
    /// Source of the curvature [default: each-step]
    curvature: CurvatureSource = "curvature", "WHERE", Kind::OneOf(names::<CurvatureSource>), false;
    /// Share of the privacy cost for the curvature [default: 0.4, which is free for the logistic loss; 0.2 if released
    /// once]
    curvature_share: f64 = "curvature-share", "SHARE", Kind::Number(Range::InnerShare), false;
    /// Number of bands of the factor that correlates the noise [default: the number with the least error]
    bands: u64 = "bands", "STEPS", COUNT, false;
    /// Process the records in the order of the file, which may be known but must not depend on their values [default: a
    /// random order]
    in_order: bool = "in-order", "", Kind::Flag, false;
    /// Number of parties of dp-admm, each with an equal part of the records [default: 2]
    parties: u64 = "parties", "NUMBER", COUNT, false;
    /// Clipping bound of each record's loss
    clip_loss: f64 = "clip-loss", "NUMBER", ABOVE_0, false;
    /// Line search for the step length
    line_search: LineSearch = "line-search", "HOW", Kind::OneOf(names::<LineSearch>), false;
    /// Radius of the ball around 0 onto which the weights are projected [default: chosen by bst14-*, phased-sgd and
    /// phased-erm; 2 for bolt-on with the squared loss; otherwise none]
    radius: f64 = "radius", "NUMBER", ABOVE_0, false;
    /// Learning rate (initial step size)
    step_size: f64 = "step-size", "NUMBER", ABOVE_0, false;
    /// Learning-rate schedule
    schedule: Steps = "schedule", "HOW", Kind::OneOf(names::<Steps>), false;
    /// Averaging of the iterates
    averaging: Average = "averaging", "HOW", Kind::OneOf(names::<Average>), false;
    /// Number of passes between restarts from the average [default: half of the passes for rsgd-ar]
    restart_every: u64 = "restart-every", "PASSES", COUNT, false;
    /// Order of the records
    order: Order = "order", "HOW", Kind::OneOf(names::<Order>), false;
    /// Stopping rule
    stop: Stop = "stop", "WHEN", Kind::OneOf(names::<Stop>), false;
    /// Minimum number of gradients for a certified minimiser, so that the running time depends on the records only if
    /// more are needed
    gradients: u64 = "gradients", "N", Kind::Count { least: 0, most: u64::MAX }, false;
    /// Noise distribution: on the released model, on each update, or in the objective
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
