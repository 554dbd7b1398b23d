//! The attackers: the information that the representation of an output gives about its input.
//!
//! The *value* of an output also gives information, as the guarantee allows. To isolate the representation, both inputs are run
//! until equally many outputs have fallen into one window, and the attacker sees only data that do not depend on the position in
//! the window. A guess without any information is then right half of the time.

use std::collections::HashMap;

/// Number of outputs shown to the attacker for each input, for learning and again for testing.
pub(crate) const SHOWN: usize = 4_000;

/// The false-alarm rate of one attack on a release that leaks nothing.
pub(crate) const FALSE_ALARM: f64 = 1e-9;

/// Returns the largest distance from one half of the success on `2 SHOWN` guesses by chance: Hoeffding's inequality,
/// `P(|success - 1/2| > t) <= 2 exp(-2 (2 SHOWN) t²)`. The rule was learned from other outputs.
pub(crate) fn chance() -> f64 {
    ((2.0 / FALSE_ALARM).ln() / (4.0 * SHOWN as f64)).sqrt()
}

/// The window of outputs: an interval around a centre.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Window {
    fn holds(self, output: f64) -> bool {
        output > self.from && output < self.to
    }
}

/// Returns `2 SHOWN` outputs within the window, from as many releases as needed; panics if fewer than one in a hundred falls into
/// it.
fn collect(window: Window, mut release: impl FnMut() -> f64) -> Vec<f64> {
    let most = 200 * SHOWN;
    let found: Vec<f64> = (0..most).map(|_| release()).filter(|&y| window.holds(y)).take(2 * SHOWN).collect();
    assert_eq!(found.len(), 2 * SHOWN, "the window is too narrow");
    found
}

/// Runs the attack by least significant bits: the attacker learns the frequency of each exponent of an output's lowest set bit
/// for either input and guesses the more likely input. Returns the fraction of right guesses.
///
/// In a window within one power of two this is the precision-based attack: the low bits of the output given its exponent.
pub(crate) fn success_by_low_bits(window: Window, mut release: impl FnMut(usize) -> f64) -> f64 {
    let outputs = [0, 1].map(|input| collect(window, || release(input)));
    let mut seen: HashMap<i32, [i64; 2]> = HashMap::new();
    for (input, outputs) in outputs.iter().enumerate() {
        for &output in &outputs[..SHOWN] {
            seen.entry(lowest_bit(output)).or_default()[input] += 1;
        }
    }
    let guess = |output: f64| {
        let counts = seen.get(&lowest_bit(output)).copied().unwrap_or_default();
        usize::from(counts[1] > counts[0])
    };
    let right: usize = (0..2).map(|input| outputs[input][SHOWN..].iter().filter(|&&y| guess(y) == input).count()).sum();
    right as f64 / (2 * SHOWN) as f64
}

/// Runs the attack by support: the attacker knows which outputs a sampler can reach from either input and guesses the input that
/// reaches the output; if both or neither does, every other guess is for the second. Returns the fraction of right guesses.
pub(crate) fn success_by_support(
    window: Window,
    mut release: impl FnMut(usize) -> f64,
    reachable: impl Fn(usize, f64) -> bool,
) -> f64 {
    let mut right = 0;
    for input in [0, 1] {
        let outputs = collect(window, || release(input));
        for (i, &output) in outputs[..SHOWN].iter().enumerate() {
            let guess = match (reachable(0, output), reachable(1, output)) {
                (true, false) => 0,
                (false, true) => 1,
                _ => i % 2,
            };
            right += usize::from(guess == input);
        }
    }
    f64::from(right as u32) / (2 * SHOWN) as f64
}

/// Returns the exponent of the lowest set bit of a finite double: `y` is a multiple of `2^lowest_bit(y)` and of no higher power
/// of two.
pub(crate) fn lowest_bit(y: f64) -> i32 {
    if y == 0.0 {
        return i32::MAX;
    }
    let bits = y.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    let mantissa = bits & ((1 << 52) - 1);
    let (mantissa, exponent) = if exponent == 0 { (mantissa, 1) } else { (mantissa | 1 << 52, exponent) };
    exponent - 1075 + mantissa.trailing_zeros() as i32
}

#[test]
fn lowest_bits_of_known_numbers() {
    for (y, expected) in
        [(1.0, 0), (-3.0, 0), (0.75, -2), (1.0 + f64::EPSILON, -52), (5e-324, -1074), (2f64.powi(1000), 1000)]
    {
        assert_eq!(lowest_bit(y), expected, "{y}");
    }
}
