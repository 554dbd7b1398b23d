//! Ranking metrics.
#![forbid(unsafe_code)]
