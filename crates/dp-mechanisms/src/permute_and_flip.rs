//! Permute-and-flip: selection under pure differential privacy, never worse than the exponential mechanism.
