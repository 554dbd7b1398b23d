//! The exit codes of `dp`.

use std::process::ExitCode;

/// The outcome of a run of `dp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// Success.
    Success = 0,
    /// Run-time failure.
    Failed = 1,
    /// Usage error: flags, their values, or a file named twice.
    Usage = 2,
    /// Input data or schema rejected.
    Input = 3,
    /// Refused for privacy.
    Privacy = 4,
    /// A certificate or model does not hold, or an audit refuted a claim.
    Verification = 5,
    /// Interrupted by a signal.
    Interrupted = 130,
}

impl ExitStatus {
    /// Every status, in numerical order.
    pub const ALL: [Self; 7] =
        [Self::Success, Self::Failed, Self::Usage, Self::Input, Self::Privacy, Self::Verification, Self::Interrupted];

    /// Returns the numeric exit code.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the meaning in one line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Success => {
                "success; also when the reader of predictions, answers of a batch or help closed the pipe (`dp predict … | head -1`)"
            }
            Self::Failed => "failed at run time: a file could not be read or written, a full disk, out of memory",
            Self::Usage => "wrong usage: an unknown flag, a missing flag, a value outside its range",
            Self::Input => {
                "input data, schema, model file or tree of events refused; a question of a batch was answered with an error"
            }
            Self::Privacy => {
                "refused for privacy: no guarantee is possible, or the algorithm has no proof under the relation asked for"
            }
            Self::Verification => {
                "verification failed: the certificate does not hold for this model, or an audit refuted a claim"
            }
            Self::Interrupted => "interrupted; nothing half-written is left",
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.number())
    }
}

/// Returns the table for `dp help exit-codes` and the man page.
pub fn table() -> String {
    ExitStatus::ALL.iter().map(|status| format!("{:>5}  {}\n", status.number(), status.meaning())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinct_and_rising() {
        let numbers: Vec<u8> = ExitStatus::ALL.iter().map(|status| status.number()).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 130]);
    }
}
