use num_bigint::BigInt;
use proptest::prelude::*;

use super::super::{Divisor, Growth};
use super::*;
use crate::averaging::Averaging;
use crate::schedule::Schedule;

/// `mantissa 2^exponent`.
#[derive(Clone)]
struct Dyadic {
    mantissa: BigInt,
    exponent: i64,
}

impl Dyadic {
    const ZERO: Self = Self { mantissa: BigInt::ZERO, exponent: 0 };

    fn of(x: f64) -> Self {
        let bits = x.to_bits();
        let (biased, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
        let mantissa = BigInt::from(if biased == 0 { fraction } else { fraction | 1 << 52 });
        let exponent = biased.max(1) as i64 - 1075;
        Self { mantissa: if x < 0.0 { -mantissa } else { mantissa }, exponent }
    }

    fn times(&self, other: &Self) -> Self {
        Self { mantissa: &self.mantissa * &other.mantissa, exponent: self.exponent + other.exponent }
    }

    fn plus(&self, other: &Self, sign: i8) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let shifted = |x: &Self| &x.mantissa << (x.exponent - exponent) as u64;
        Self { mantissa: shifted(self) + shifted(other) * sign, exponent }
    }

    fn size(self) -> Self {
        Self { mantissa: self.mantissa.magnitude().clone().into(), ..self }
    }

    fn larger(self, other: Self) -> Self {
        if other.is_above(&self) { other } else { self }
    }

    fn is_above(&self, other: &Self) -> bool {
        self.plus(other, -1).mantissa > BigInt::ZERO
    }
}

proptest! {
    /// The certified bounds are not below the recursion in exact arithmetic by a single unit in the last place.
    #[test]
    fn certified_bounds_are_above_the_exact_recursion(
        n in 1u64..9, passes in 1u64..4, step in 0.05f64..2.5, beta in 0.5f64..2.0, convexity in prop_oneof![Just(0.0), 0.01f64..1.0],
        difference in 0.5f64..2.0, falling: bool, average in 0..3,
    ) {
        let step = step / beta;
        let growth = Growth {
            n,
            batch_size: 1,
            passes,
            schedule: if falling { Schedule::InverseSqrt { step } } else { Schedule::Constant { step } },
            averaging: match average { 0 => Averaging::Last, 1 => Averaging::Uniform, _ => Averaging::Polynomial },
            order: OrderPolicy::Fixed,
            divisor: Divisor::Nominal,
            smoothness: beta,
            strong_convexity: beta * convexity,
            gradient_difference: difference,
            radius: None,
            rounding: None,
        };
        let checked = growth.check().unwrap();
        let run = certified(&checked).unwrap();
        // From the last update to the first: `A_t = |a_t| + ρ_(t+1) A_(t+1)`, and `η_t A_t G` for the position of `t`.
        let one = Dyadic::of(1.0);
        let mut moved = vec![Dyadic::ZERO; n as usize];
        let (mut ahead, mut factor) = (Dyadic::ZERO, Dyadic::ZERO);
        for t in (1..=n * passes).rev() {
            let step = Dyadic::of(checked.steps.at(t));
            ahead = Dyadic::of(checked.weights.at(t)).size().plus(&factor.times(&ahead), 1);
            let position = ((t - 1) % n) as usize;
            moved[position] = moved[position].plus(&step.times(&ahead).times(&Dyadic::of(difference)), 1);
            let away = |constant: f64| one.plus(&step.times(&Dyadic::of(constant)), -1).size();
            factor = away(growth.strong_convexity).larger(away(beta));
        }
        for (found, exact) in run.by_position.iter().zip(&moved) {
            prop_assert!(!exact.is_above(&Dyadic::of(*found)));
            prop_assert!(!exact.is_above(&Dyadic::of(run.distance)));
            prop_assert!(exact.is_above(&Dyadic::of(found * (1.0 - 1e-12))));
        }
    }
}

/// If steps contract so long that an early effect would underflow, the bound stays a normal number above it.
#[test]
fn what_dies_out_stays_a_normal_number() {
    let growth = Growth {
        n: 10_000,
        batch_size: 1,
        passes: 1,
        schedule: Schedule::Constant { step: 0.5 },
        averaging: Averaging::Last,
        order: OrderPolicy::Fixed,
        divisor: Divisor::Nominal,
        smoothness: 1.0,
        strong_convexity: 0.5,
        gradient_difference: 2.0,
        radius: None,
        rounding: None,
    };
    let run = certified(&growth.check().unwrap()).unwrap();
    assert!((run.distance - 1.0).abs() < 1e-9, "{}", run.distance);
    for (i, moved) in run.by_position.iter().rev().enumerate() {
        assert!(moved.is_normal() && *moved >= 0.75f64.powi(i as i32), "{i} before the last: {moved:e}");
    }
}
