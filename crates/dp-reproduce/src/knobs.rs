//! Parameters that only some algorithms have.

use core::fmt;

/// Parameters that only some algorithms have; by default each is the algorithm's own.
///
/// # Examples
/// ```
/// use dp_reproduce::Knobs;
/// assert_eq!(Knobs::default().to_string(), "");
/// assert_eq!(Knobs { restart_every: Some(5), falling: true, ..Knobs::default() }.to_string(), "; restart every 5; falling steps");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Knobs {
    /// τ of RSGD-AR: passes after which it goes on from the average; 0 is never.
    pub restart_every: Option<u64>,
    /// RSGD-AR's steps do not start again with long ones where it restarts.
    pub falling: bool,
    /// a of a line search: the share of the decrease promised that a step has to reach.
    pub armijo: Option<f64>,
    /// β of a line search: each candidate's length over the one before.
    pub shrink: Option<f64>,
    /// C_o of a line search: each record's loss is clamped to this.
    pub most_loss: Option<f64>,
    /// ζ of a line search: the share by which clipping norms shrink where gradients disagree.
    pub clip_decay: Option<f64>,
    /// The line search is a choice by the exponential mechanism.
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
