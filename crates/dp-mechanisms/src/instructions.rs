//! The choice of the machine's instructions.

use pulp::Arch;

/// The length up to which vectors are short.
pub(crate) const SHORT: usize = 16;

/// Returns the instructions for vectors of this length: for short ones, calling code for the machine's own instructions
/// takes longer than it saves. All instructions give the same bits.
pub(crate) fn arch_for(length: usize) -> Arch {
    if length <= SHORT { Arch::Scalar } else { Arch::new() }
}
