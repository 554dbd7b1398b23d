//! Parameters of specific algorithms.

use core::fmt;

/// Parameters of specific algorithms; by default each has the algorithm's own value.
///
/// # Examples
/// ```
/// use dp_reproduce::Knobs;
/// assert_eq!(Knobs::default().to_string(), "");
/// assert_eq!(Knobs { restart_every: Some(5), falling: true, ..Knobs::default() }.to_string(), "; restart every 5; falling steps");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Knobs {
    /// τ of RSGD-AR: number of passes between restarts from the average; 0 for none.
    pub restart_every: Option<u64>,
    /// True if the step sizes of RSGD-AR continue to decrease across restarts.
    pub falling: bool,
    /// a of a line search: the share of the predicted decrease that a step must reach.
    pub armijo: Option<f64>,
    /// β of a line search: ratio of each candidate's length to the previous one.
    pub shrink: Option<f64>,
    /// C_o of a line search: the bound to which each record's loss is clamped.
    pub most_loss: Option<f64>,
    /// ζ of a line search: the share by which clipping norms shrink when gradients disagree.
    pub clip_decay: Option<f64>,
    /// True if the line search selects by the exponential mechanism.
    pub selection: bool,
}

impl fmt::Display for Knobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.restart_every {
            Some(0) => f.write_str("; no restart")?,
            Some(passes) => write!(f, "; restart every {passes}")?,
            None => {}
        }
        f.write_str(if self.falling { "; falling steps" } else { "" })?;
        for (name, value) in [
            ("armijo", self.armijo),
            ("shrink", self.shrink),
            ("most loss", self.most_loss),
            ("clip decay", self.clip_decay),
        ] {
            if let Some(value) = value {
                write!(f, "; {name} {value}")?;
            }
        }
        f.write_str(if self.selection { "; selection" } else { "" })
    }
}
