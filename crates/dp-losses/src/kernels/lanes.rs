//! Vector registers of a float, so that one kernel serves `f32` and `f64` on every instruction set.

use pulp::Simd;

/// The operations that the kernels need from a float. Sealed by its private module.
pub trait Lanes: Copy + Sized + 'static {
    /// A register of this float on the instruction set `S`.
    type Vector<S: Simd>: Copy;

    /// Returns the number of floats in a register.
    fn lanes<S: Simd>() -> usize;
    /// Returns the leading whole registers of a slice.
    fn whole<S: Simd>(slice: &[Self]) -> &[Self::Vector<S>];
    /// Returns the leading whole registers of a slice.
    fn whole_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::Vector<S>];
    /// Returns the last `lanes` floats of a slice that has at least that many; zeros for a shorter one.
    fn last<S: Simd>(simd: S, slice: &[Self]) -> Self::Vector<S>;
    /// Returns a register with the same float in every lane.
    fn broadcast<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// Returns `a + b`.
    fn plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// Returns `a - b`.
    fn minus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// Returns `a · b`.
    fn times<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// Returns `a · b + c`, rounded once if the instruction set allows it, otherwise twice.
    fn times_plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
    /// Returns the sum of all lanes.
    fn total<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
}

macro_rules! lanes {
    ($float:ty, $vector:ident, $lanes:ident, $whole:ident, $whole_mut:ident, $from_end:ident, $splat:ident, $add:ident, $sub:ident,
     $mul:ident, $mul_add:ident, $sum:ident) => {
        impl Lanes for $float {
            type Vector<S: Simd> = S::$vector;

            #[inline(always)]
            fn lanes<S: Simd>() -> usize {
                S::$lanes
            }

            #[inline(always)]
            fn whole<S: Simd>(slice: &[Self]) -> &[S::$vector] {
                S::$whole(slice).0
            }

            #[inline(always)]
            fn whole_mut<S: Simd>(slice: &mut [Self]) -> &mut [S::$vector] {
                S::$whole_mut(slice).0
            }

            #[inline(always)]
            fn last<S: Simd>(simd: S, slice: &[Self]) -> S::$vector {
                S::$from_end(slice).1.last().copied().unwrap_or_else(|| simd.$splat(0.0))
            }

            #[inline(always)]
            fn broadcast<S: Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }

            #[inline(always)]
            fn plus<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }

            #[inline(always)]
            fn minus<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$sub(a, b)
            }

            #[inline(always)]
            fn times<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$mul(a, b)
            }

            #[inline(always)]
            fn times_plus<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$mul_add(a, b, c)
            }

            #[inline(always)]
            fn total<S: Simd>(simd: S, a: S::$vector) -> Self {
                simd.$sum(a)
            }
        }
    };
}

lanes!(
    f32,
    f32s,
    F32_LANES,
    as_simd_f32s,
    as_mut_simd_f32s,
    as_rsimd_f32s,
    splat_f32s,
    add_f32s,
    sub_f32s,
    mul_f32s,
    mul_add_e_f32s,
    reduce_sum_f32s
);
lanes!(
    f64,
    f64s,
    F64_LANES,
    as_simd_f64s,
    as_mut_simd_f64s,
    as_rsimd_f64s,
    splat_f64s,
    add_f64s,
    sub_f64s,
    mul_f64s,
    mul_add_e_f64s,
    reduce_sum_f64s
);
