//! Lower bounds from counts of hits, one bound per file.
//!
//! | bound | of what | valid as |
//! |---|---|---|
//! | [`Limits`] | an attack's two rates | confidence limits (Clopper-Pearson) |
//! | [`Limits::epsilon_lower`] | epsilon at one delta | confidence bound |
//! | [`Limits::mu_lower`] | mu, where the claim is Gaussian-DP | refutation of such a claim |
//! | [`trade_off::refutes`] | the whole trade-off curve of a claim | refutation |
//! | [`one_run`] | epsilon, from one run with many canaries | confidence bound |
//! | [`credible`] | epsilon, from the posterior of the two rates | description only |
//!
//! All bounds from one pair of [`Limits`] hold simultaneously: they share one failure probability.

mod binomial;
mod clopper_pearson;
pub mod credible;
mod gdp;
pub mod one_run;
pub mod trade_off;

pub use binomial::Rate;
pub(crate) use binomial::likely_lower;
pub use clopper_pearson::{Hits, Limits};
