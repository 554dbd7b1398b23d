//! Penalties for sparse or simple models, and their proximal maps.
//!
//! ```text
//! kind         P(w)                                              what it makes zero
//! l1           λ Σ_j |w_j|                                       weights
//! elastic-net  λ Σ_j |w_j| + (ridge/2) Σ_j w_j²                  weights, correlated ones together
//! group        λ Σ_g √|g| ‖w_g‖                                  groups of features, for all outputs at once
//! nuclear      λ Σ_i σ_i(W)                                      singular values of the weights of several outputs
//! scad         Σ_j scad(|w_j|)                                   weights; large ones are not shrunk
//! mcp          Σ_j mcp(|w_j|)                                    weights; large ones are not shrunk
//! ```
//! A penalty has no gradient at zero; optimisers use its [`ProximalMap`].

mod nuclear;
mod separable;

#[cfg(test)]
mod tests;

use core::fmt;
use core::str::FromStr;

use nalgebra::{RealField, convert};

use crate::error::{Error, non_negative};
use separable::{mcp, mcp_value, scad, scad_value, soft_threshold};

/// A penalty on the weights, with its parameters.
///
/// # Formula
/// On `x = |w_j|`, the derivative of the two penalties that are not convex decreases from λ at 0 to 0:
/// ```text
/// scad'(x) = λ                      x <= λ            mcp'(x) = λ - x/γ     x <= γλ
///            (aλ - x)/(a - 1)       λ < x <= aλ                 0           beyond
///            0                      beyond
/// ```
///
/// # Examples
/// ```
/// use dp_losses::penalty::{Layout, Penalty};
/// let penalty: Penalty = "l1:0.5".parse()?;
/// let mut w = [3.0_f64, -0.4, 1.0];
/// // The last feature is the intercept, which no penalty shrinks.
/// let layout = Layout { features: 3, outputs: 1, intercept: true };
/// penalty.prox(layout, 1.0, &mut w)?;
/// assert_eq!(w, [2.5, 0.0, 1.0]);
/// # Ok::<(), dp_losses::Error>(())
/// ```
///
/// # References
/// Tibshirani, JRSS B 1996; Zou and Hastie, JRSS B 2005; Yuan and Lin, JRSS B 2006; Fan and Li, JASA 2001 (SCAD); Zhang,
/// Annals of Statistics 2010 (MCP).
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum Penalty {
    /// The sum of the weights' absolute values.
    L1 {
        /// λ >= 0.
        lambda: f64,
    },
    /// The L1 penalty plus half the sum of squares.
    ElasticNet {
        /// λ >= 0.
        lambda: f64,
        /// The coefficient of the squares, at least 0.
        ridge: f64,
    },
    /// Norms of groups: consecutive features, with their weights for all outputs.
    Group {
        /// λ >= 0.
        lambda: f64,
        /// Number of features of each group, from the first feature on; each further feature is its own group.
        sizes: Vec<u32>,
    },
    /// The sum of the singular values of the matrix of features by outputs.
    Nuclear {
        /// λ >= 0.
        lambda: f64,
    },
    /// Smoothly clipped absolute deviation.
    Scad {
        /// λ >= 0.
        lambda: f64,
        /// a > 2; 3.7 is usual.
        a: f64,
    },
    /// Minimax concave penalty.
    Mcp {
        /// λ >= 0.
        lambda: f64,
        /// γ > 0; 3 is usual.
        gamma: f64,
    },
}

/// The layout of a flat parameter vector: the weights of all features for the first output, then those for the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Number of features of a row, including an intercept.
    pub features: usize,
    /// Number of outputs: the classes of softmax regression, otherwise 1.
    pub outputs: usize,
    /// True if the last feature is an intercept, whose weights no penalty includes or changes: predictions should not depend on
    /// the zero point of the targets.
    pub intercept: bool,
}

impl Layout {
    /// Returns the number of penalised features.
    fn penalised(&self) -> usize {
        self.features.saturating_sub(usize::from(self.intercept))
    }

    /// Returns the penalised weights, one slice for each output.
    fn columns<'p, F>(&self, parameters: &'p [F]) -> impl Iterator<Item = &'p [F]> {
        let penalised = self.penalised();
        parameters.chunks_exact(self.features.max(1)).map(move |column| &column[..penalised])
    }

    fn columns_mut<'p, F>(&self, parameters: &'p mut [F]) -> impl Iterator<Item = &'p mut [F]> {
        let penalised = self.penalised();
        parameters.chunks_exact_mut(self.features.max(1)).map(move |column| &mut column[..penalised])
    }

    /// Refuses a vector of a different length.
    fn check(&self, parameters: usize) -> Result<(), Error> {
        if self.features.checked_mul(self.outputs) != Some(parameters) {
            let range = "features times outputs";
            return Err(Error::OutOfRange { name: "number of parameters", value: parameters as f64, range });
        }
        Ok(())
    }
}

impl Penalty {
    /// Returns λ.
    pub fn lambda(&self) -> f64 {
        match *self {
            Self::L1 { lambda }
            | Self::ElasticNet { lambda, .. }
            | Self::Group { lambda, .. }
            | Self::Nuclear { lambda }
            | Self::Scad { lambda, .. }
            | Self::Mcp { lambda, .. } => lambda,
        }
    }

    /// Returns the coefficient of the squares; 0 for all penalties except the elastic net.
    pub fn ridge(&self) -> f64 {
        if let Self::ElasticNet { ridge, .. } = *self { ridge } else { 0.0 }
    }

    /// Returns whether the penalty is convex, so that its proximal map is non-expansive.
    pub fn is_convex(&self) -> bool {
        !matches!(self, Self::Scad { .. } | Self::Mcp { .. })
    }

    /// Returns a bound on the distance by which the proximal map of step `t` moves `parameters` weights, divided by `t`; for the
    /// elastic net, by its part without the [ridge](Self::ridge).
    ///
    /// # Formula
    /// `λ √p`: each weight moves by `tλ` at most, each group by `tλ√|g|`, each of at most p singular values by `tλ`.
    pub fn pull(&self, parameters: usize) -> f64 {
        self.lambda() * (parameters as f64).sqrt()
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// λ or the ridge outside `[0, 1e100]`, a not above 2, γ not above 0, an empty group, NaN.
    pub fn check(&self) -> Result<(), Error> {
        non_negative("lambda of the penalty", self.lambda())?;
        non_negative("ridge of the elastic net", self.ridge())?;
        match *self {
            Self::Scad { a, .. } if !(a > 2.0 && a <= 1e100) => {
                Err(Error::OutOfRange { name: "a of scad", value: a, range: "(2, 1e100]" })
            }
            Self::Mcp { gamma, .. } if !(gamma > 0.0 && gamma <= 1e100) => {
                Err(Error::OutOfRange { name: "gamma of mcp", value: gamma, range: "(0, 1e100]" })
            }
            Self::Group { ref sizes, .. } if sizes.contains(&0) => {
                Err(Error::OutOfRange { name: "size of a group", value: 0.0, range: "[1, features]" })
            }
            _ => Ok(()),
        }
    }

    /// Checks the numbers for maps of steps up to `longest`.
    ///
    /// # Errors
    /// As [`check`](Self::check); a step below 0 or above 1e100, and one for which the map of a penalty that is not convex has
    /// several values: `1 + t >= a`, `t >= γ`.
    pub fn check_step(&self, longest: f64) -> Result<(), Error> {
        self.check()?;
        non_negative("step of the proximal map", longest)?;
        let refused = |range| Err(Error::OutOfRange { name: "step of the proximal map", value: longest, range });
        match *self {
            Self::Scad { a, .. } if !(1.0 + longest < a) => refused("[0, a - 1) for scad"),
            Self::Mcp { gamma, .. } if !(longest < gamma) => refused("[0, gamma) for mcp"),
            _ => Ok(()),
        }
    }

    /// Checks the numbers for vectors of this layout.
    ///
    /// # Errors
    /// As [`check`](Self::check); groups of more features than there are.
    pub fn check_layout(&self, layout: Layout) -> Result<(), Error> {
        self.check()?;
        if let Self::Group { sizes, .. } = self {
            let grouped = sizes.iter().fold(0u64, |sum, &size| sum.saturating_add(u64::from(size)));
            if grouped > layout.penalised() as u64 {
                let range = "at most as many as features, an intercept not counted";
                return Err(Error::OutOfRange { name: "features in groups", value: grouped as f64, range });
            }
        }
        Ok(())
    }

    /// Returns `P(w)`.
    ///
    /// # Errors
    /// As [`check_layout`](Self::check_layout); a vector of a different length.
    pub fn value<F: RealField + Copy>(&self, layout: Layout, parameters: &[F]) -> Result<f64, Error> {
        self.check_layout(layout)?;
        layout.check(parameters.len())?;
        let each = |value: &dyn Fn(f64) -> f64| {
            layout.columns(parameters).flatten().map(|&weight| value(wide(weight).abs())).sum::<f64>()
        };
        Ok(match self {
            Self::L1 { lambda } => each(&|x| lambda * x),
            Self::ElasticNet { lambda, ridge } => each(&|x| lambda * x + 0.5 * ridge * x * x),
            Self::Scad { lambda, a } => each(&|x| scad_value(x, *lambda, *a)),
            Self::Mcp { lambda, gamma } => each(&|x| mcp_value(x, *lambda, *gamma)),
            Self::Group { lambda, sizes } => groups(sizes, layout.penalised())
                .map(|(start, size)| {
                    let squared: f64 = layout
                        .columns(parameters)
                        .flat_map(|column| &column[start..start + size])
                        .map(|&weight| wide(weight).powi(2))
                        .sum();
                    lambda * ((size * layout.outputs) as f64 * squared).sqrt()
                })
                .sum(),
            Self::Nuclear { lambda } => {
                let (mut columns, mut rotations) = (Vec::new(), Vec::new());
                columns.extend(layout.columns(parameters).flatten().map(|&weight| wide(weight)));
                lambda * nuclear::singular_values(&mut columns, layout.outputs, &mut rotations).iter().sum::<f64>()
            }
        })
    }

    /// Replaces `parameters` by `prox_{tP}` of them; for repeated use see [`ProximalMap`].
    ///
    /// # Errors
    /// As [`check_step`](Self::check_step) and [`check_layout`](Self::check_layout); a vector of a different length, or one with
    /// a number that is not finite.
    pub fn prox<F: RealField + Copy>(&self, layout: Layout, step: f64, parameters: &mut [F]) -> Result<(), Error> {
        layout.check(parameters.len())?;
        if let Some(&weight) = parameters.iter().find(|weight| !weight.is_finite()) {
            return Err(Error::OutOfRange { name: "weight", value: wide(weight), range: "(-inf, inf)" });
        }
        ProximalMap::new(self.clone(), layout, step)?.apply(step, parameters);
        Ok(())
    }
}

fn wide<F: RealField + Copy>(weight: F) -> f64 {
    weight.to_subset_unchecked()
}

/// Returns the first feature and the size of each group.
fn groups(sizes: &[u32], features: usize) -> impl Iterator<Item = (usize, usize)> {
    let sizes = sizes.iter().map(|&size| size as usize).chain(core::iter::repeat(1));
    sizes.scan(0, move |start, size| {
        let first = *start;
        *start += size;
        (*start <= features).then_some((first, size))
    })
}

/// The proximal map of a penalty, checked for all its steps.
///
/// # Formula
/// ```text
/// prox_{tP}(x) = argmin_w  P(w) + ‖w - x‖² / (2t)
///
/// S(x, s) = sign(x) max(|x| - s, 0)
/// l1           S(x, tλ)
/// elastic-net  S(x, tλ) / (1 + t ridge)
/// group        x_g max(1 - tλ√|g| / ‖x_g‖, 0)
/// nuclear      X with each singular value s replaced by S(s, tλ)
/// scad         |x| <= (1 + t)λ: S(x, tλ);   |x| <= aλ: ((a - 1)x - sign(x) a tλ)/(a - 1 - t);   else x
/// mcp          |x| <= γλ: S(x, tλ)/(1 - t/γ);   else x
/// ```
/// No map makes a weight, group or singular value larger. They are computed in double precision.
///
/// # References
/// Parikh and Boyd, "Proximal algorithms", 2014, section 6; Cai, Candès and Shen, SIAM J. Optimization 2010, Theorem 2.1
/// (singular values); Breheny and Huang, Annals of Applied Statistics 2011, section 2 (SCAD and MCP with t = 1).
#[derive(Debug, Clone, PartialEq)]
pub struct ProximalMap {
    penalty: Penalty,
    layout: Layout,
    longest: f64,
    columns: Vec<f64>,
    rotations: Vec<f64>,
}

impl ProximalMap {
    /// Creates the map for steps of at most `longest`.
    ///
    /// # Errors
    /// As [`Penalty::check_step`] and [`Penalty::check_layout`].
    pub fn new(penalty: Penalty, layout: Layout, longest: f64) -> Result<Self, Error> {
        penalty.check_step(longest)?;
        penalty.check_layout(layout)?;
        Ok(Self { penalty, layout, longest, columns: Vec::new(), rotations: Vec::new() })
    }

    /// Replaces `parameters` by `prox_{tP}` of them, with `t` the step, clamped to the checked range.
    ///
    /// It never fails: weights that are not finite give weights that are not finite or zero, and numbers beyond the last whole
    /// output are unchanged.
    pub fn apply<F: RealField + Copy>(&mut self, step: f64, parameters: &mut [F]) {
        // NaN gives 0.
        let t = step.max(0.0).min(self.longest);
        let layout = self.layout;
        let each = |parameters: &mut [F], map: &dyn Fn(f64) -> f64| {
            layout.columns_mut(parameters).flatten().for_each(|weight| *weight = convert(map(wide(*weight))));
        };
        match &self.penalty {
            Penalty::L1 { lambda } => each(parameters, &|x| soft_threshold(x, t * lambda)),
            Penalty::ElasticNet { lambda, ridge } => {
                each(parameters, &|x| soft_threshold(x, t * lambda) / (1.0 + t * ridge));
            }
            Penalty::Scad { lambda, a } => each(parameters, &|x| scad(x, t, *lambda, *a)),
            Penalty::Mcp { lambda, gamma } => each(parameters, &|x| mcp(x, t, *lambda, *gamma)),
            Penalty::Group { lambda, sizes } => {
                for (start, size) in groups(sizes, layout.penalised()) {
                    let group = start..start + size;
                    let squared: f64 = layout
                        .columns(parameters)
                        .flat_map(|column| &column[group.clone()])
                        .map(|&weight| wide(weight).powi(2))
                        .sum();
                    let threshold = t * lambda * ((size * layout.outputs) as f64).sqrt();
                    let norm = squared.sqrt();
                    let kept = if norm <= threshold { 0.0 } else { 1.0 - threshold / norm };
                    for weight in layout.columns_mut(parameters).flat_map(|column| &mut column[group.clone()]) {
                        *weight = convert(kept * wide(*weight));
                    }
                }
            }
            Penalty::Nuclear { lambda } => {
                self.columns.clear();
                self.columns.extend(layout.columns(parameters).flatten().map(|&weight| wide(weight)));
                nuclear::shrink(&mut self.columns, layout.outputs, t * lambda, &mut self.rotations);
                for (weight, &shrunk) in layout.columns_mut(parameters).flatten().zip(&self.columns) {
                    *weight = convert(shrunk);
                }
            }
        }
    }
}

/// Writes the form of the command line: `l1:0.01`, `elastic-net:0.01:0.1`, `group:0.01:3,2`, `nuclear:0.05`, `scad:0.01:3.7`,
/// `mcp:0.01:3`.
impl fmt::Display for Penalty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::L1 { lambda } => write!(f, "l1:{lambda}"),
            Self::ElasticNet { lambda, ridge } => write!(f, "elastic-net:{lambda}:{ridge}"),
            Self::Nuclear { lambda } => write!(f, "nuclear:{lambda}"),
            Self::Scad { lambda, a } => write!(f, "scad:{lambda}:{a}"),
            Self::Mcp { lambda, gamma } => write!(f, "mcp:{lambda}:{gamma}"),
            Self::Group { lambda, sizes } => {
                write!(f, "group:{lambda}")?;
                let mut before = ':';
                for size in sizes {
                    write!(f, "{before}{size}")?;
                    before = ',';
                }
                Ok(())
            }
        }
    }
}

/// Parses the form written by [`Display`](fmt::Display). Without their last numbers `scad` has a = 3.7, `mcp` γ = 3, and the
/// groups of `group` are single features.
impl FromStr for Penalty {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownPenalty { text: text.to_owned() };
        let mut parts = text.split(':');
        let (name, lambda, last) = (parts.next(), parts.next(), parts.next());
        let number = |part: Option<&str>| part.and_then(|part| part.parse::<f64>().ok()).ok_or_else(unknown);
        let or = |usual| if last.is_none() { Ok(usual) } else { number(last) };
        let penalty = match (name, last) {
            (Some("l1"), None) => Self::L1 { lambda: number(lambda)? },
            (Some("elastic-net"), Some(_)) => Self::ElasticNet { lambda: number(lambda)?, ridge: number(last)? },
            (Some("nuclear"), None) => Self::Nuclear { lambda: number(lambda)? },
            (Some("scad"), _) => Self::Scad { lambda: number(lambda)?, a: or(3.7)? },
            (Some("mcp"), _) => Self::Mcp { lambda: number(lambda)?, gamma: or(3.0)? },
            (Some("group"), _) => {
                let sizes = last.map(|last| last.split(',').map(|size| size.parse().map_err(|_| unknown())).collect());
                Self::Group { lambda: number(lambda)?, sizes: sizes.transpose()?.unwrap_or_default() }
            }
            _ => return Err(unknown()),
        };
        if parts.next().is_some() {
            return Err(unknown());
        }
        penalty.check()?;
        Ok(penalty)
    }
}
