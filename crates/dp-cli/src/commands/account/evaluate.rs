//! The accountants of `--accountant`, and the accountant behind a theorem.

use dp_accountant::{Evaluator, Theorem};

use crate::args::Accountant;

/// Returns the evaluator for an accountant.
pub fn evaluator(accountant: Accountant) -> Evaluator {
    match accountant {
        Accountant::Auto => Evaluator::Tightest,
        Accountant::Exact => Evaluator::Exact,
        Accountant::Rdp => Evaluator::Renyi,
        Accountant::Zcdp => Evaluator::Zcdp,
        Accountant::Gdp => Evaluator::Gdp,
    }
}

/// Returns the name of an accountant.
pub fn word(accountant: Accountant) -> &'static str {
    match accountant {
        Accountant::Auto => "auto",
        Accountant::Exact => "exact",
        Accountant::Rdp => "rdp",
        Accountant::Zcdp => "zcdp",
        Accountant::Gdp => "gdp",
    }
}

/// Returns the accountant that a theorem belongs to.
pub fn accountant_of(theorem: Theorem) -> &'static str {
    match theorem {
        Theorem::Renyi => "rdp",
        Theorem::ZeroConcentrated => "zcdp",
        Theorem::GaussianDp => "gdp",
        Theorem::PureComposition | Theorem::BasicComposition => "composition",
        Theorem::NothingReleased | Theorem::NoGuarantee => "auto",
        _ => "exact",
    }
}
