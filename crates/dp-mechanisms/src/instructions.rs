//! The choice of the machine's instructions.

use pulp::Arch;

/// The length up to which vectors are short.
pub(crate) const SHORT: usize = 16;

/// Returns the instructions for vectors of this length: for short ones a call of code for the machine's own takes longer than it
/// saves. Results have the same bits with any.
pub(crate) fn arch_for(length: usize) -> Arch {
    if length <= SHORT { Arch::Scalar } else { Arch::new() }
}
