//! An event's numbers and parts by name, for every variant.

use super::{DpEvent, MarginLoss, Repetitions};

/// The contents of one node of the tree, in a fixed order; the names are the serialised ones.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a> {
    /// Names of laws and losses.
    pub(crate) words: Vec<(&'static str, &'static str)>,
    /// Integers, including lengths of lists.
    pub(crate) integers: Vec<(&'static str, u64)>,
    /// Real numbers, including those in lists.
    pub(crate) numbers: Vec<(&'static str, f64)>,
    /// The events inside.
    pub(crate) events: Vec<&'a DpEvent>,
}

impl<'a> Fields<'a> {
    fn number(mut self, name: &'static str, value: f64) -> Self {
        self.numbers.push((name, value));
        self
    }

    fn integer(mut self, name: &'static str, value: u64) -> Self {
        self.integers.push((name, value));
        self
    }

    fn list(mut self, name: &'static str, values: &[f64]) -> Self {
        self.numbers.extend(values.iter().map(|&value| (name, value)));
        self.integer(name, values.len() as u64)
    }

    fn word(mut self, name: &'static str, value: &'static str) -> Self {
        self.words.push((name, value));
        self
    }

    fn event(mut self, event: &'a DpEvent) -> Self {
        self.events.push(event);
        self
    }

    fn events(mut self, events: &'a [DpEvent]) -> Self {
        self.events.extend(events);
        self.integer("events", events.len() as u64)
    }
}

impl DpEvent {
    /// Returns the node's fields.
    pub(crate) fn fields(&self) -> Fields<'_> {
        let none = Fields::default();
        match self {
            Self::NoOp | Self::NonPrivate => none,
            Self::Gaussian { std_dev, sensitivity } => {
                none.number("std_dev", *std_dev).number("sensitivity", *sensitivity)
            }
            Self::Laplace { scale, sensitivity } => none.number("scale", *scale).number("sensitivity", *sensitivity),
            Self::LaplaceBall { scale, sensitivity, dim } => {
                none.number("scale", *scale).number("sensitivity", *sensitivity).integer("dim", *dim)
            }
            Self::PureDp { epsilon } | Self::BoundedRange { epsilon } => none.number("epsilon", *epsilon),
            Self::ApproximateDp { epsilon, delta } => none.number("epsilon", *epsilon).number("delta", *delta),
            Self::Zcdp { rho } => none.number("rho", *rho),
            Self::GaussianMixture { std_dev, sensitivities, weights } => {
                none.number("std_dev", *std_dev).list("sensitivities", sensitivities).list("weights", weights)
            }
            Self::DiscreteGaussian { scale, sensitivity, dim } => {
                none.number("scale", *scale).number("sensitivity", *sensitivity).integer("dim", *dim)
            }
            Self::DiscreteLaplace { scale, sensitivity } => {
                none.number("scale", *scale).integer("sensitivity", *sensitivity)
            }
            Self::RandomizedResponse { buckets, noise } => none.integer("buckets", *buckets).number("noise", *noise),
            Self::Gdp { mu } => none.number("mu", *mu),
            Self::RenyiDp { orders, divergences } => none.list("orders", orders).list("divergences", divergences),
            Self::DominatingPair { p, q } => none.list("p", p).list("q", q),
            Self::PoissonSampled { sampling_rate, event }
            | Self::SampledWithoutReplacement { sampling_rate, event } => {
                none.number("sampling_rate", *sampling_rate).event(event)
            }
            Self::PoissonSampledReplacement { sampling_rate, std_dev, distance, radius } => none
                .number("sampling_rate", *sampling_rate)
                .number("std_dev", *std_dev)
                .number("distance", *distance)
                .number("radius", *radius),
            Self::Shuffled { epsilon, records } => none.number("epsilon", *epsilon).integer("records", *records),
            Self::AmplifiedByIteration { sensitivities, std_devs, contraction } => {
                none.list("sensitivities", sensitivities).list("std_devs", std_devs).number("contraction", *contraction)
            }
            Self::AboveThresholdLaplace { threshold_scale, query_scale, sensitivity } => none
                .number("threshold_scale", *threshold_scale)
                .number("query_scale", *query_scale)
                .number("sensitivity", *sensitivity),
            Self::AboveThresholdGaussian {
                threshold_std_dev,
                query_std_dev,
                sensitivity,
                max_queries,
                range_bounded,
            } => none
                .number("threshold_std_dev", *threshold_std_dev)
                .number("query_std_dev", *query_std_dev)
                .number("sensitivity", *sensitivity)
                .integer("max_queries", *max_queries)
                .word("range_bounded", if *range_bounded { "yes" } else { "no" }),
            Self::Parallel { events }
            | Self::ParallelByValue { events }
            | Self::OneOf { events }
            | Self::Composed { events } => none.events(events),
            Self::Group { size, event } => none.integer("size", *size).event(event),
            Self::AddRemoveTwice { event } => none.event(event),
            Self::RandomStopping { repetitions, event } => match *repetitions {
                Repetitions::TruncatedNegativeBinomial { eta, gamma } => {
                    none.word("repetitions", "truncated-negative-binomial").number("eta", eta).number("gamma", gamma)
                }
                Repetitions::Poisson { mean } => none.word("repetitions", "poisson").number("mean", mean),
            }
            .event(event),
            Self::ObjectivePerturbation { std_dev, regularization, loss } => {
                let none = none.number("std_dev", *std_dev).number("regularization", *regularization);
                match *loss {
                    MarginLoss::Logistic => none.word("loss", "logistic"),
                    MarginLoss::HuberSvm { width } => none.word("loss", "huber-svm").number("width", width),
                    MarginLoss::LogCosh { width } => none.word("loss", "log-cosh").number("width", width),
                    MarginLoss::BoundedSlope { slope, curvature } => {
                        none.word("loss", "bounded-slope").number("slope", slope).number("curvature", curvature)
                    }
                    MarginLoss::Softmax { classes } => {
                        none.word("loss", "softmax").integer("classes", u64::from(classes))
                    }
                }
            }
            Self::SelfComposed { event, count } => none.integer("count", *count).event(event),
        }
    }
}
