//! Epsilon and delta of a tree by the accountant that was asked for, with what is certified from below.

use std::cell::OnceCell;

use dp_accountant::bound::{self, Bound};
use dp_accountant::exact::{Bracket, Engine, PrivacyCurve};
use dp_accountant::rdp::RdpCurve;
use dp_accountant::{AdjacencyKind, Delta, DpEvent, Error, Theorem, gaussian, gdp, zcdp};

use crate::args::Accountant;

/// Two ends within this of each other, relatively, leave nothing for another theorem to gain.
const TIGHT: f64 = 1e-6;

/// A number between two certified bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certified {
    /// The true value is at least this; 0 where nothing is known.
    pub lower: f64,
    /// What is promised.
    pub upper: f64,
    /// The theorem behind `upper`.
    pub theorem: Cited,
    /// Who answered.
    pub accountant: &'static str,
}

/// A theorem with its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cited {
    /// One that the tightest bound may choose.
    Bound(Theorem),
    /// The best conversion of a zCDP parameter.
    Zcdp,
    /// The exact curve of a Gaussian-DP parameter.
    Gdp,
}

impl std::fmt::Display for Cited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bound(theorem) => theorem.fmt(f),
            Self::Zcdp => f.write_str(
                "zero-concentrated differential privacy (Bun and Steinke 2016; Canonne, Kamath and Steinke 2020, \
                 Proposition 12)",
            ),
            Self::Gdp => f.write_str("Gaussian differential privacy (Dong, Roth and Su 2022, Corollary 3.3)"),
        }
    }
}

/// The word for an accountant.
pub fn word(accountant: Accountant) -> &'static str {
    match accountant {
        Accountant::Auto => "auto",
        Accountant::Exact => "exact",
        Accountant::Rdp => "rdp",
        Accountant::Zcdp => "zcdp",
        Accountant::Gdp => "gdp",
    }
}

/// Which accountant a theorem belongs to; `auto` answers with this.
fn accountant_of(theorem: Theorem) -> &'static str {
    match theorem {
        Theorem::Renyi => "rdp",
        Theorem::PureComposition | Theorem::BasicComposition => "composition",
        Theorem::NothingReleased | Theorem::NoGuarantee => "auto",
        _ => "exact",
    }
}

/// A tree as one accountant reads it, for several questions: what they have in common is computed once.
#[derive(Debug)]
pub struct Reading<'a> {
    accountant: Accountant,
    event: &'a DpEvent,
    relation: AdjacencyKind,
    exact: OnceCell<Result<PrivacyCurve, Error>>,
}

impl<'a> Reading<'a> {
    /// Nothing is computed yet.
    pub fn new(accountant: Accountant, event: &'a DpEvent, relation: AdjacencyKind) -> Self {
        Self { accountant, event, relation, exact: OnceCell::new() }
    }

    fn exact(&self) -> Result<&PrivacyCurve, Error> {
        self.exact.get_or_init(|| PrivacyCurve::new_under(self.event, self.relation)).as_ref().map_err(Clone::clone)
    }

    /// Epsilon at `delta`.
    ///
    /// # Errors
    /// A number out of range, a relation that the theorems do not hold under, an event that the accountant has no theorem
    /// for.
    pub fn epsilon(&self, delta: Delta) -> Result<Certified, Error> {
        let exact = || self.exact()?.epsilon(delta);
        let (event, by) = (self.event, word(self.accountant));
        match self.accountant {
            Accountant::Auto => tightest(exact(), |known| bound::epsilon_beside(event, delta, known)),
            Accountant::Exact => exact().map(|bracket| by_exact(&bracket)),
            Accountant::Rdp => {
                let upper = RdpCurve::new(event)?.epsilon(delta);
                Ok(Certified { lower: 0.0, upper, theorem: Cited::Bound(Theorem::Renyi), accountant: by })
            }
            Accountant::Zcdp => {
                let rho = zcdp::rho(event)?;
                let upper = if rho.is_finite() { zcdp::epsilon(rho, delta)? } else { f64::INFINITY };
                Ok(Certified { lower: 0.0, upper, theorem: Cited::Zcdp, accountant: by })
            }
            Accountant::Gdp => {
                let mu = gdp::mu(event)?;
                let upper = if mu.is_finite() { gaussian::epsilon(mu, delta)? } else { f64::INFINITY };
                let lower = exact().map_or(0.0, |bracket| bracket.lower.min(upper));
                Ok(Certified { lower, upper, theorem: Cited::Gdp, accountant: by })
            }
        }
    }

    /// Delta at `epsilon`.
    ///
    /// # Errors
    /// As [`epsilon`](Self::epsilon).
    pub fn delta(&self, epsilon: f64) -> Result<Certified, Error> {
        let exact = || self.exact()?.delta(epsilon);
        let (event, by) = (self.event, word(self.accountant));
        match self.accountant {
            Accountant::Auto => tightest(exact(), |known| bound::delta_beside(event, epsilon, known)),
            Accountant::Exact => exact().map(|bracket| by_exact(&bracket)),
            Accountant::Rdp => {
                let upper = RdpCurve::new(event)?.delta(epsilon)?;
                Ok(Certified { lower: 0.0, upper, theorem: Cited::Bound(Theorem::Renyi), accountant: by })
            }
            Accountant::Zcdp => {
                let rho = zcdp::rho(event)?;
                let upper = if rho.is_finite() { zcdp::delta(rho, epsilon)? } else { 1.0 };
                Ok(Certified { lower: 0.0, upper, theorem: Cited::Zcdp, accountant: by })
            }
            Accountant::Gdp => {
                let mu = gdp::mu(event)?;
                let upper = if mu.is_finite() { gaussian::delta(mu, epsilon)? } else { 1.0 };
                let lower = exact().map_or(0.0, |bracket| bracket.lower.min(upper));
                Ok(Certified { lower, upper, theorem: Cited::Gdp, accountant: by })
            }
        }
    }
}

fn by_exact(bracket: &Bracket) -> Certified {
    Certified {
        lower: bracket.lower,
        upper: bracket.upper,
        theorem: Cited::Bound(bracket.engine.into()),
        accountant: word(Accountant::Exact),
    }
}

/// The exact interval where it is narrow, else the smaller of its upper end and what other theorems give.
fn tightest(
    exact: Result<Bracket, Error>,
    bound: impl FnOnce(Option<Bracket>) -> Result<Bound, Error>,
) -> Result<Certified, Error> {
    let exact = exact.ok().filter(|bracket| bracket.lower <= bracket.upper);
    if let Some(bracket) = &exact
        && bracket.engine != Engine::ClosedForm
        && bracket.upper - bracket.lower <= TIGHT * bracket.upper
    {
        return Ok(by_exact(bracket));
    }
    // A closed form has its own name among the bounds.
    let Bound { value, theorem } = bound(exact)?;
    match exact {
        Some(bracket) if !(value <= bracket.upper * (1.0 + 1e-12)) => Ok(by_exact(&bracket)),
        exact => Ok(Certified {
            lower: exact.map_or(0.0, |bracket| bracket.lower.min(value)),
            upper: value,
            theorem: Cited::Bound(theorem),
            accountant: accountant_of(theorem),
        }),
    }
}
