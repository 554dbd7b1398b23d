//! Loops over slices, compiled for the instruction set of the machine.
//!
//! Inside of [`vectorised`] loops are written with `for`: a closure that is passed to `for_each` can become a function of its
//! own, which is compiled for the least instruction set.

use pulp::Arch;

use crate::float::Float;

/// Runs `f`, which must be inlined, as code for the instruction set that the machine has.
#[inline(always)]
pub(crate) fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(f)
}

/// Number of partial sums of [`squared_norm`].
const LANES: usize = 16;

/// Returns `Σ v_j²`, added in double precision, in which the squares of `f32` are exact.
#[inline(always)]
pub(crate) fn squared_norm<F: Float>(v: &[F]) -> f64 {
    let mut sums = [0.0_f64; LANES];
    let (whole, rest) = v.as_chunks::<LANES>();
    for chunk in whole {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            let x = x.wide();
            *sum += x * x;
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        let x = x.wide();
        *sum += x * x;
    }
    sums.iter().sum()
}

/// Returns a bound on the roundings of [`squared_norm`] of `n` numbers: one square, and the additions of one partial sum and of
/// the partial sums.
pub(crate) fn squared_norm_roundings(n: usize) -> f64 {
    (1 + n.div_ceil(LANES) + LANES) as f64
}

/// Returns whether all numbers are finite.
#[inline(always)]
pub(crate) fn is_finite<F: Float>(v: &[F]) -> bool {
    // A product with 0 is NaN for all others.
    let mut sums = [F::zero(); LANES];
    let (whole, rest) = v.as_chunks::<LANES>();
    for chunk in whole {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum += x * F::zero();
        }
    }
    for (sum, &x) in sums.iter_mut().zip(rest) {
        *sum += x * F::zero();
    }
    sums.iter().all(|&sum| sum == F::zero())
}

/// Computes `sum += v`.
#[inline(always)]
pub(crate) fn add<F: Float>(v: &[F], sum: &mut [F]) {
    for (sum, &x) in sum.iter_mut().zip(v) {
        *sum += x;
    }
}

/// Computes `sum += v` in double precision.
#[inline(always)]
pub(crate) fn add_wide<F: Float>(v: &[F], sum: &mut [f64]) {
    for (sum, &x) in sum.iter_mut().zip(v) {
        *sum += x.wide();
    }
}

/// Computes `sum += coefficient · v`, each product rounded to `F`.
#[inline(always)]
pub(crate) fn add_scaled<F: Float>(coefficient: F, v: &[F], sum: &mut [F]) {
    for (sum, &x) in sum.iter_mut().zip(v) {
        *sum += coefficient * x;
    }
}

/// Computes `sum += coefficient · v`, each product rounded to `F` and added in double precision.
#[inline(always)]
pub(crate) fn add_scaled_wide<F: Float>(coefficient: F, v: &[F], sum: &mut [f64]) {
    for (sum, &x) in sum.iter_mut().zip(v) {
        *sum += (coefficient * x).wide();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squared_norms_and_finiteness_see_every_entry() {
        for n in [0, 1, 15, 16, 17, 40] {
            let mut v = vec![1.0_f32; n];
            assert_eq!(squared_norm(&v), n as f64);
            assert!(is_finite(&v));
            for j in 0..n {
                for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    v[j] = bad;
                    assert!(!is_finite(&v) && !squared_norm(&v).is_finite());
                }
                v[j] = 1.0;
            }
        }
        assert!(
            vectorised(
                #[inline(always)]
                || squared_norm(&[f32::MAX; 3])
            )
            .is_finite()
        );
    }
}
