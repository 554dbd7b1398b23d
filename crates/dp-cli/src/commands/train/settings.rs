//! Settings of algorithms, as given: each algorithm takes some of them.

use dp_losses::Penalty;
use dp_optim::growth::OrderPolicy;
use dp_optim::recipes::Stopping;
use dp_optim::tuning::MOST_CANDIDATES;

use crate::args::{self, TrainArgs};
use crate::failure::Failure;
use crate::input::conflict;

/// Every value that was given, or that none was.
fn each<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    if values.is_empty() { vec![None] } else { values.iter().copied().map(Some).collect() }
}

/// Settings that were given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// L2 regularisation.
    pub lambda: Option<f64>,
    /// Passes over the records.
    pub passes: Option<u64>,
    /// Records in a batch.
    pub batch_size: Option<u64>,
    /// Radius of the ball that weights stay in.
    pub radius: Option<f64>,
    /// First step size.
    pub step_size: Option<f64>,
    /// How the step size changes.
    pub schedule: Option<args::Schedule>,
    /// Which iterates are released.
    pub averaging: Option<args::Averaging>,
    /// After how many passes training goes on from their mean.
    pub restart_every: Option<u64>,
    /// Order of the records.
    pub order: Option<OrderPolicy>,
    /// When training stops.
    pub stopping: Option<Stopping>,
    /// Least number of gradients of a certified minimiser.
    pub gradients: Option<u64>,
    /// Steps of stochastic gradient descent, for algorithms that count steps and not passes.
    pub steps: Option<u64>,
    /// How the records of a step are drawn.
    pub sampling: Option<args::BatchSampling>,
    /// A form of the algorithm other than that of today.
    pub variant: Option<args::Variant>,
    /// Share of the cost that is spent on a centre.
    pub centre_share: Option<f64>,
    /// Largest gradient at a certified minimiser.
    pub tolerance: Option<f64>,
    /// Share of the cost that is spent on gradients of all records.
    pub full_share: Option<f64>,
    /// The norm that each record's gradient is clipped to.
    pub clip: Option<f64>,
    /// Where the curvature comes from.
    pub curvature: Option<args::Curvature>,
    /// Share of the cost that is the curvature's.
    pub curvature_share: Option<f64>,
    /// Over how many steps noise is correlated.
    pub bands: Option<u64>,
    /// Whether records are taken in the order in which they come.
    pub in_order: bool,
    /// What each record's loss is clamped to.
    pub clip_loss: Option<f64>,
    /// How the length of a step is found.
    pub line_search: Option<args::LineSearch>,
    /// The distribution of the noise on the released model.
    pub output_noise: Option<args::OutputNoise>,
    /// The penalty.
    pub penalty: Option<Penalty>,
    /// λ of an L1 penalty, in place of `penalty`.
    pub l1: Option<f64>,
    /// ρ of ADMM.
    pub rho: Option<f64>,
    /// Parties of ADMM.
    pub parties: Option<u64>,
}

impl Settings {
    /// Checks the flags, each by itself.
    ///
    /// # Errors
    /// `usage.value`; `usage.conflict` for several values of one flag.
    pub fn new(args: &TrainArgs) -> Result<Self, Failure> {
        let several =
            [("--lambda", args.lambda.len()), ("--passes", args.passes.len()), ("--batch-size", args.batch_size.len())];
        if let Some((flag, count)) = several.into_iter().find(|(_, count)| *count > 1) {
            return Err(conflict(flag, format!("{flag} has {count} values"))
                .expected("one")
                .help("`dp tune` chooses among several"));
        }
        let first = |grid: Vec<Self>| grid.into_iter().next().unwrap_or_default();
        Self::grid(args).map(first)
    }

    /// Checks the flags, each by itself, for every combination of the values of those that take several.
    ///
    /// # Errors
    /// `usage.value`.
    pub fn grid(args: &TrainArgs) -> Result<Vec<Self>, Failure> {
        let lambdas = each(&args.lambda);
        let (passes, batch_sizes) = (each(&args.passes), each(&args.batch_size));
        // Before memory is asked for: as many as are ever accepted, and a few.
        let combinations = lambdas.len().saturating_mul(passes.len()).saturating_mul(batch_sizes.len());
        if combinations > MOST_CANDIDATES {
            return Err(Failure::usage("--lambda", format!("there are {combinations} combinations"))
                .expected(format!("at most {MOST_CANDIDATES}")));
        }
        let mut grid = Vec::with_capacity(combinations);
        for &lambda in &lambdas {
            for &passes in &passes {
                for &batch_size in &batch_sizes {
                    grid.push(Self::with(args, lambda, passes.map(u64::from), batch_size)?);
                }
            }
        }
        Ok(grid)
    }

    fn with(
        args: &TrainArgs,
        lambda: Option<f64>,
        passes: Option<u64>,
        batch_size: Option<u64>,
    ) -> Result<Self, Failure> {
        let number = |flag: &str, value: Option<f64>, zero: bool| match value {
            Some(x) if !(x.is_finite() && (x > 0.0 || (zero && x == 0.0))) => {
                let range = if zero { "a finite number, 0 or above" } else { "a finite number greater than 0" };
                Err(Failure::usage(flag, format!("{flag} is {x}")).expected(range))
            }
            _ => Ok(value),
        };
        let count = |flag: &str, value: Option<u64>| match value {
            Some(0) => Err(Failure::usage(flag, format!("{flag} is 0")).expected("1 or more")),
            _ => Ok(value),
        };
        Ok(Self {
            lambda: number("--lambda", lambda, true)?,
            passes: count("--passes", passes)?,
            batch_size: count("--batch-size", batch_size)?,
            radius: number("--radius", args.radius, false)?,
            step_size: number("--step-size", args.step_size, false)?,
            schedule: args.schedule,
            averaging: args.averaging,
            restart_every: count("--restart-every", args.restart_every)?,
            order: args.order.map(|order| match order {
                args::Order::Fixed => OrderPolicy::Fixed,
                args::Order::Fresh => OrderPolicy::Fresh,
            }),
            steps: count("--steps", args.steps)?,
            sampling: args.sampling,
            variant: args.variant,
            centre_share: match args.centre_share {
                Some(share) if !(0.0..1.0).contains(&share) => {
                    let said = format!("--centre-share is {share}");
                    return Err(Failure::usage("--centre-share", said).expected("a share, from 0 to below 1"));
                }
                share => share,
            },
            tolerance: number("--tolerance", args.tolerance, false)?,
            full_share: match args.full_share {
                Some(share) if !(share > 0.0 && share < 1.0) => {
                    let said = format!("--full-share is {share}");
                    return Err(Failure::usage("--full-share", said).expected("a share, above 0 and below 1"));
                }
                share => share,
            },
            clip: number("--clip", args.clip, false)?,
            curvature: args.curvature,
            curvature_share: match args.curvature_share {
                Some(share) if !(1e-6..=1.0 - 1e-6).contains(&share) => {
                    let said = format!("--curvature-share is {share}");
                    return Err(Failure::usage("--curvature-share", said).expected("a share between 0 and 1"));
                }
                share => share,
            },
            bands: count("--bands", args.bands)?,
            in_order: args.in_order,
            clip_loss: number("--clip-loss", args.clip_loss, false)?,
            line_search: args.line_search,
            output_noise: args.output_noise,
            penalty: args.penalty.clone(),
            l1: number("--l1", args.l1, true)?,
            rho: number("--rho", args.rho, false)?,
            parties: count("--parties", args.parties)?,
            gradients: args.gradients,
            stopping: args.stop.map(|stop| match stop {
                args::Stop::Passes => Stopping::Passes,
                args::Stop::Certified => Stopping::CertifiedMinimiser { tolerance: None },
            }),
        })
    }

    /// Each flag, and whether it was given.
    pub(super) fn flags(&self) -> impl Iterator<Item = (&'static str, bool)> {
        [
            ("--lambda", self.lambda.is_some()),
            ("--passes", self.passes.is_some()),
            ("--steps", self.steps.is_some()),
            ("--batch-size", self.batch_size.is_some()),
            ("--sampling", self.sampling.is_some()),
            ("--variant", self.variant.is_some()),
            ("--centre-share", self.centre_share.is_some()),
            ("--tolerance", self.tolerance.is_some()),
            ("--full-share", self.full_share.is_some()),
            ("--clip", self.clip.is_some()),
            ("--curvature", self.curvature.is_some()),
            ("--curvature-share", self.curvature_share.is_some()),
            ("--bands", self.bands.is_some()),
            ("--in-order", self.in_order),
            ("--clip-loss", self.clip_loss.is_some()),
            ("--line-search", self.line_search.is_some()),
            ("--radius", self.radius.is_some()),
            ("--step-size", self.step_size.is_some()),
            ("--schedule", self.schedule.is_some()),
            ("--averaging", self.averaging.is_some()),
            ("--restart-every", self.restart_every.is_some()),
            ("--order", self.order.is_some()),
            ("--stop", self.stopping.is_some()),
            ("--gradients", self.gradients.is_some()),
            ("--output-noise", self.output_noise.is_some()),
            ("--penalty", self.penalty.is_some()),
            ("--l1", self.l1.is_some()),
            ("--rho", self.rho.is_some()),
            ("--parties", self.parties.is_some()),
        ]
        .into_iter()
    }

    /// The penalty that was asked for, by either flag.
    pub(super) fn any_penalty(&self) -> Option<Penalty> {
        self.l1.map(|lambda| Penalty::L1 { lambda }).or_else(|| self.penalty.clone())
    }

    /// The flags that were given.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        self.flags().filter(|(_, given)| *given).map(|(flag, _)| flag)
    }
}
