//! Differentially private optimisers.
#![forbid(unsafe_code)]
