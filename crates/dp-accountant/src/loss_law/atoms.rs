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
        let ratio = p / q;
        let loss = match ratio {
            // The difference is exact.
            0.5..=2.0 => ((p - q) / q).ln_1p(),
            f64::MIN_POSITIVE..=f64::MAX => ratio.ln(),
            _ => p.ln() - q.ln(),
        };
        Self { loss, p, q }
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
    /// The parts of those whose loss is too large for doubles.
    beyond_doubles: (f64, f64),
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
        let mut beyond_doubles = (0.0, 0.0);
        for atom in atoms.iter().filter(|atom| !is_finite(atom)) {
            beyond_doubles.0 += atom.p * (1.0 + 2.0 * f64::EPSILON);
            beyond_doubles.1 += atom.q * (1.0 + 2.0 * f64::EPSILON);
        }
        let (p_infinite, q_infinite) = (p_infinite + beyond_doubles.0, q_infinite + beyond_doubles.1);
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
            beyond_doubles,
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

    fn beyond_doubles(&self) -> (f64, f64) {
        self.beyond_doubles
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
        assert!(law.beyond_doubles().0 >= 0.75 && law.beyond_doubles().1 == 0.0);
        let total = law.tails(0.1).p_above + law.tails(0.1).p_below;
        assert!((total - 1.0).abs() < 1e-15);
    }

    #[test]
    fn losses_are_logarithms_of_ratios_near_and_far_from_one() {
        for (p, q) in
            [(1e-21, 0.75), (0.75, 1e-21), (0.3, 0.3 * (1.0 + 1e-12)), (1e-300, 1.0), (5e-324, 1.0), (0.4, 0.9)]
        {
            let (loss, expected) = (Atom::new(p, q).loss, p.ln() - q.ln());
            assert!((loss - expected).abs() <= 4e-16 * (1.0 + expected.abs()), "{p} {q}: {loss} {expected}");
        }
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
