//! Sums of clipped contributions that are exact in any order.
