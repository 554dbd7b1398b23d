//! The figures that can be reproduced.
//!
//! # References
//! Wu, Li, Kumar, Chaudhuri, Jha, Naughton, "Bolt-on differential privacy for scalable stochastic gradient descent-based
//! analytics", SIGMOD 2017. Hardwarsing, "Stochastic gradient descent with differentially private updates", Erasmus
//! University Rotterdam 2018, after Song, Chaudhuri, Sarwate, GlobalSIP 2013. Chen, "Adaptive and efficient optimization
//! algorithms for differentially private machine learning", dissertation 2020, chapters 3 to 6.

mod bolt_on;
mod bolt_on_time;
mod renyi;
mod renyi_3;
mod renyi_4;
mod renyi_5;
mod renyi_5_networks;
mod renyi_6;
mod renyi_6_claims;
mod renyi_table;
pub mod table;
#[cfg(test)]
mod tests;
mod thesis;

pub use renyi_6::MADE_UP_LISTS;

use crate::error::Error;
use crate::figure::Figure;

/// The amount of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// The grids and repetitions of the papers.
    Full,
    /// Coarser grids and few repetitions: minutes for everything on two cores.
    Quick,
}

impl Effort {
    fn repetitions(self, full: u32) -> u32 {
        if self == Self::Quick { 3 } else { full }
    }

    /// Returns a grid, or its first, middle and last value for quick runs.
    fn thin(self, grid: &[f64]) -> Vec<f64> {
        match (self, grid) {
            (Self::Quick, [first, .., last]) => vec![*first, grid[grid.len() / 2], *last],
            _ => grid.to_vec(),
        }
    }
}

/// Returns all figures, in the order of the papers.
pub fn all(effort: Effort) -> Vec<Figure> {
    let mut figures = bolt_on_time::scalability(effort);
    figures.extend(bolt_on::all(effort));
    figures.extend(bolt_on_time::overhead(effort));
    figures.extend(renyi::all(effort));
    figures.extend(thesis::all(effort));
    figures.sort_by_key(|figure| {
        let (paper, number) = figure.id.rsplit_once('-').unwrap_or((figure.id, "0"));
        (paper, number.parse::<u32>().unwrap_or(0))
    });
    figures
}

/// Returns the figures of these names; `all` selects all.
///
/// # Errors
/// [`Error::UnknownFigure`].
pub fn named(names: &[String], effort: Effort) -> Result<Vec<Figure>, Error> {
    let mut figures = all(effort);
    if names.iter().any(|name| name == "all") {
        return Ok(figures);
    }
    if let Some(name) = names.iter().find(|name| !figures.iter().any(|figure| figure.id == name.as_str())) {
        return Err(Error::UnknownFigure { name: name.clone() });
    }
    figures.retain(|figure| names.iter().any(|name| name == figure.id));
    Ok(figures)
}
