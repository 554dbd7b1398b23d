//! Loss laws with finitely many outcomes.

use super::{Between, LossLaw, Tails};
use crate::logspace::CompensatedSum;

/// One outcome, or all outcomes of one loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Atom {
    /// `ln(p/q)`, finite.
    pub(crate) loss: f64,
    /// Its probability under `P`.
    pub(crate) p: f64,
    /// Its probability under `Q`.
    pub(crate) q: f64,
}

impl Atom {
    /// Creates an outcome of positive probabilities, with its loss.
    pub(crate) fn new(p: f64, q: f64) -> Self {
        Self { loss: ((p - q) / q).ln_1p(), p, q }
    }
}

/// Maximum number of atoms for which aligning a grid is useful.
const FEW: usize = 4096;

/// A law of finitely many losses, any of which may be infinite.
#[derive(Debug, Clone, Default)]
pub(crate) struct Atoms {
    losses: Vec<f64>,
    /// Probabilities of each under both laws, and their relative error.
    atoms: Vec<(f64, f64, f64)>,
    /// `above[i]`: probabilities under both laws of the atoms from i on, including infinite losses of P.
    above: Vec<(f64, f64)>,
    /// `below[i]`: probabilities of the atoms before i, including outcomes that P cannot produce.
    below: Vec<(f64, f64)>,
    p_infinite: f64,
    q_infinite: f64,
    /// `errors[i]`: bound on the relative error of those.
    errors: Vec<f64>,
    relative_error: f64,
    is_symmetric: bool,
}

impl Atoms {
    /// Creates the law of `atoms`, whose probabilities are known up to `relative_error`, and of outcomes that only one of the
    /// laws has.
    pub(crate) fn new(atoms: Vec<Atom>, p_infinite: f64, q_infinite: f64, relative_error: f64) -> Self {
        Self::with_errors(atoms, p_infinite, q_infinite, |_| relative_error)
    }

    /// As [`new`](Self::new), with an error for each atom.
    pub(crate) fn with_errors(
        mut atoms: Vec<Atom>,
        p_infinite: f64,
        q_infinite: f64,
        relative_error: impl Fn(&Atom) -> f64,
    ) -> Self {
        // An outcome whose probability underflows under one law counts as an infinite loss.
        let is_finite = |atom: &Atom| atom.p > 0.0 && atom.q > 0.0 && atom.loss.is_finite();
        let (mut p_infinite, mut q_infinite) = (p_infinite, q_infinite);
        for atom in atoms.iter().filter(|atom| !is_finite(atom)) {
            p_infinite += atom.p * (1.0 + 2.0 * f64::EPSILON);
            q_infinite += atom.q * (1.0 + 2.0 * f64::EPSILON);
        }
        atoms.retain(is_finite);
        atoms.sort_by(|left, right| left.loss.total_cmp(&right.loss));
        let erring = |atom: &Atom| (*atom, relative_error(atom));
        let (above, errors_above) = cumulative(atoms.iter().rev().map(erring), p_infinite, 0.0);
        let (below, errors_below) = cumulative(atoms.iter().map(erring), 0.0, q_infinite);
        let errors = errors_above.iter().rev().zip(&errors_below).map(|(above, below)| above.max(*below)).collect();
        let likeliest = atoms.iter().max_by(|left, right| left.p.total_cmp(&right.p));
        Self {
            losses: atoms.iter().map(|atom| atom.loss).collect(),
            atoms: atoms.iter().map(|atom| (atom.p, atom.q, relative_error(atom))).collect(),
            above: above.into_iter().rev().collect(),
            below,
            p_infinite,
            q_infinite,
            errors,
            relative_error: likeliest.map_or(0.0, relative_error) + SUM_ERROR,
            is_symmetric: false,
        }
    }

    /// Declares the reversed law to be the same.
    pub(crate) fn symmetric(self) -> Self {
        Self { is_symmetric: true, ..self }
    }
}

/// Rounding of a compensated sum of positive terms, and of the infinite part.
const SUM_ERROR: f64 = 4.0 * f64::EPSILON;

/// Returns the cumulative probabilities under both laws, starting from the given ones (one entry more than there are atoms), and
/// the larger of their relative errors.
fn cumulative(atoms: impl Iterator<Item = (Atom, f64)>, p_start: f64, q_start: f64) -> (Vec<(f64, f64)>, Vec<f64>) {
    let (mut p, mut q) = (CompensatedSum::default(), CompensatedSum::default());
    p.add(p_start);
    q.add(q_start);
    let (mut sums, mut errors) = (vec![(p_start, q_start)], vec![SUM_ERROR]);
    let (mut p_error, mut q_error) = (0.0, 0.0);
    for (atom, error) in atoms {
        p.add(atom.p);
        q.add(atom.q);
        p_error += error * atom.p;
        q_error += error * atom.q;
        sums.push((p.value(), q.value()));
        errors.push(SUM_ERROR + 2.0 * f64::max(p_error / p.value(), q_error / q.value()));
    }
    (sums, errors)
}

impl LossLaw for Atoms {
    fn tails(&self, loss: f64) -> Tails {
        let above = self.losses.partition_point(|&atom| atom <= loss);
        let ((p_above, q_above), (p_below, q_below)) = (self.above[above], self.below[above]);
        Tails { p_above, p_below, q_above, q_below }
    }

    fn between(&self, low: f64, high: f64) -> Option<Between> {
        let index = |loss: f64| self.losses.partition_point(|&atom| atom <= loss);
        let inside = self.atoms.get(index(low)..index(high)).unwrap_or_default();
        let (mut p, mut q, mut error) = (0.0, 0.0, 0.0f64);
        for (atom_p, atom_q, atom_error) in inside {
            p += atom_p;
            q += atom_q;
            error = error.max(*atom_error);
        }
        Some(Between { p, q, relative_error: error + inside.len() as f64 * f64::EPSILON })
    }

    fn knows_cells(&self) -> bool {
        true
    }

    fn support(&self) -> (f64, f64) {
        (self.losses.first().copied().unwrap_or(0.0), self.losses.last().copied().unwrap_or(0.0))
    }

    fn relative_error(&self) -> f64 {
        self.relative_error
    }

    fn relative_error_at(&self, loss: f64) -> f64 {
        self.errors[self.losses.partition_point(|&atom| atom <= loss)]
    }

    fn threshold_error(&self, loss: f64) -> f64 {
        // Largest distance of a stated loss from the logarithm of the true ratio.
        self.relative_error + 2.0 * f64::EPSILON * loss.abs()
    }

    fn p_infinite(&self) -> f64 {
        self.p_infinite
    }

    fn q_infinite(&self) -> f64 {
        self.q_infinite
    }

    fn atoms(&self) -> (Vec<f64>, bool) {
        if self.losses.len() <= FEW { (self.losses.clone(), true) } else { (Vec::new(), false) }
    }

    fn is_symmetric(&self) -> bool {
        self.is_symmetric
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_underflows_is_not_lost() {
        let law = Atoms::new(vec![Atom { loss: 800.0, p: 0.75, q: 0.0 }, Atom::new(0.25, 0.25)], 0.0, 0.75, 0.0);
        assert!(law.p_infinite() >= 0.75 && law.tails(0.1).p_above >= 0.75);
        let total = law.tails(0.1).p_above + law.tails(0.1).p_below;
        assert!((total - 1.0).abs() < 1e-15);
    }

    #[test]
    fn tails_add_up_from_either_end() {
        let atoms = vec![Atom::new(0.5, 0.25), Atom::new(0.2, 0.4), Atom::new(0.2, 0.2)];
        let law = Atoms::new(atoms, 0.1, 0.15, 0.0);
        let tails = law.tails(0.1);
        assert!((tails.p_above - 0.6).abs() < 1e-15 && (tails.p_below - 0.4).abs() < 1e-15);
        assert!((tails.q_above - 0.25).abs() < 1e-15 && (tails.q_below - 0.75).abs() < 1e-15);
        assert_eq!(law.support(), (-(2f64.ln()), 2f64.ln()));
        assert_eq!(law.tails(5.0).p_above, 0.1);
        assert_eq!(law.tails(-5.0).q_below, 0.15);
    }
}
