//! Tables of the strip samplers, built and certified in integers at compile time.
//!
//! # Strips
//! The sampler of a decreasing density proportional to `f` with `f(0) = 1` cuts `[0, X)` into strips of width
//! [`1/32`](STRIPS_PER_UNIT). With an integer `U` ("units of height") strip `i` has
//! ```text
//! core   L_i <= U f(right end)           below the curve: whatever point is drawn there is accepted
//! wedge  H_i - L_i,  H_i >= U f(left end)    crossed by the curve: y uniform in [L_i, H_i), accepted iff y < U f(x)
//! tail   T >= 32 U f(X)                  all of [X, inf) under an exponential envelope
//! ```
//! as integer masses in one unit (a height of one over one strip). A symbol (a core, a wedge or the tail) is drawn with
//! probability proportional to its mass, which gives a point (x, y) uniform under the envelope. If it is accepted, which means
//! that it lies under the curve, `x` has density proportional to `f`. No mass is a rounded probability: cores and wedges are
//! bounded by brackets of `f`, and points between the brackets are decided by comparison with `f` itself.
//!
//! # Choosing a symbol
//! Walker's alias method is exact here because all masses are integers and the table's total is a power of two: [`COLUMNS`]
//! columns of [`CAPACITY`] units each, a column split between two symbols at an integer threshold. The part of the total without
//! a mass is padding, which means "draw again". `U` is chosen so that the padding is negligible.
//!
//! # References
//! A. J. Walker, "An efficient method for generating discrete random variables with general distributions", 1977.

/// Base-2 logarithm of the number of strips in an interval of length 1.
pub(crate) const STRIP_BITS: u32 = 5;
/// Number of strips in an interval of length 1.
pub(crate) const STRIPS_PER_UNIT: usize = 1 << STRIP_BITS;
/// Maximum number of strips of a table.
pub(crate) const MOST_STRIPS: usize = 256;
/// Base-2 logarithm of the number of columns of the alias table.
pub(crate) const COLUMN_BITS: u32 = 10;
const COLUMNS: usize = 1 << COLUMN_BITS;
/// Number of digits of a column's threshold that follow the leading ones.
pub(crate) const FINE_BITS: u32 = 16;
/// Number of bits of an alias beside the leading digits of a threshold.
pub(crate) const ALIAS_BITS: u32 = 16;
/// Number of units of mass in a column.
const CAPACITY: u64 = 1 << 32;
/// The unit of the brackets of `f`: 1 is `2^63`.
const ONE: u64 = 1 << 63;
/// The symbol of the tail; cores come first, from 0, then wedges.
pub(crate) const TAIL: usize = 2 * MOST_STRIPS;
const PADDING: usize = TAIL + 1;
const SYMBOLS: usize = PADDING + 1;

/// A density on `[0, inf)`, up to its constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Law {
    /// `f(x) = exp(-x²/2)`.
    HalfNormal,
    /// `f(x) = exp(-x)`.
    Exponential,
}

/// One column: below the threshold the symbol with the column's own number, above it the other one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) threshold: u32,
    pub(crate) alias: u16,
}

/// Bounds on a number in `[0, 1]`, in units of `2^-63`.
#[derive(Clone, Copy)]
pub(crate) struct Bracket {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

impl Bracket {
    pub(crate) const fn times(self, other: Self) -> Self {
        let low = (self.low as u128 * other.low as u128) >> 63;
        let high = (self.high as u128 * other.high as u128 + (ONE as u128 - 1)) >> 63;
        Self { low: low as u64, high: high as u64 }
    }

    /// Returns `exp(-2^-power)` for `power >= 4`, by its alternating series in units of `2^-120`.
    const fn exp_minus_power_of_two(power: u32) -> Self {
        let (mut sum, mut factorial, mut term) = (1u128 << 120, 1u128, 1u32);
        while term <= 20 && power * term <= 120 {
            factorial *= term as u128;
            let size = (1u128 << (120 - power * term)) / factorial;
            sum = if term % 2 == 1 { sum - size } else { sum + size };
            term += 1;
        }
        // At most 20 divisions rounded, each by less than a unit, and a remainder below `2^-84 / 21! < 2^-120`.
        Self { low: ((sum - 32) >> 57) as u64, high: ((sum + 32) >> 57) as u64 + 1 }
    }
}

/// The tables of one law.
pub(crate) struct Table {
    pub(crate) law: Law,
    /// Number of strips in use, a multiple of [`STRIPS_PER_UNIT`].
    pub(crate) strips: usize,
    /// `U`, the height of the density at 0.
    pub(crate) unit: u64,
    /// `f` at the left end of each strip.
    pub(crate) left: [Bracket; MOST_STRIPS + 1],
    /// The masses of the cores.
    pub(crate) core: [u64; MOST_STRIPS],
    /// The masses of the wedges.
    pub(crate) wedge: [u64; MOST_STRIPS],
    /// The mass of the tail.
    pub(crate) tail: u64,
    pub(crate) columns: [Column; COLUMNS],
    /// The leading digits of each column's threshold, and its alias: one number, which a vector instruction can gather.
    pub(crate) leading: [u32; COLUMNS],
}

impl Table {
    /// Creates the table with this many strips, a multiple of 32 in `32..=256`.
    pub(crate) const fn new(law: Law, strips: usize) -> Self {
        assert!(strips >= STRIPS_PER_UNIT && strips <= MOST_STRIPS && strips.is_multiple_of(STRIPS_PER_UNIT));
        let left = heights(law);
        let mut area = left[strips].high as u128 * STRIPS_PER_UNIT as u128;
        let mut i = 0;
        while i < strips {
            area += left[i].high as u128;
            i += 1;
        }
        // Rounding each mass up adds less than one unit per symbol.
        let total = CAPACITY as u128 * COLUMNS as u128;
        let unit = (((total - SYMBOLS as u128) << 63) / area) as u64;
        let (mut core, mut wedge) = ([0; MOST_STRIPS], [0; MOST_STRIPS]);
        i = 0;
        while i < strips {
            core[i] = ((unit as u128 * left[i + 1].low as u128) >> 63) as u64;
            wedge[i] = (unit as u128 * left[i].high as u128).div_ceil(ONE as u128) as u64 - core[i];
            i += 1;
        }
        let tail = (unit as u128 * STRIPS_PER_UNIT as u128 * left[strips].high as u128).div_ceil(ONE as u128) as u64;
        let columns = alias(&core, &wedge, tail);
        let mut leading = [0; COLUMNS];
        i = 0;
        while i < COLUMNS {
            leading[i] = (columns[i].threshold >> FINE_BITS << ALIAS_BITS) | columns[i].alias as u32;
            i += 1;
        }
        Self { law, strips, unit, left, core, wedge, tail, columns, leading }
    }
}

/// Returns `f(i / 32)` for each strip.
const fn heights(law: Law) -> [Bracket; MOST_STRIPS + 1] {
    let one = Bracket { low: ONE, high: ONE };
    let mut heights = [one; MOST_STRIPS + 1];
    // f(i + 1) = f(i) · ratio. Exponential: ratio = exp(-1/32). Half-normal, in strips: exp(-i²/2048), ratio =
    // exp(-(2 i + 1)/2048), which itself shrinks by exp(-2/2048) from strip to strip.
    let (mut ratio, shrink) = match law {
        Law::Exponential => (Bracket::exp_minus_power_of_two(STRIP_BITS), one),
        Law::HalfNormal => {
            (Bracket::exp_minus_power_of_two(2 * STRIP_BITS + 1), Bracket::exp_minus_power_of_two(2 * STRIP_BITS))
        }
    };
    let mut i = 0;
    while i < MOST_STRIPS {
        heights[i + 1] = heights[i].times(ratio);
        ratio = ratio.times(shrink);
        i += 1;
    }
    heights
}

/// Returns the alias table of these masses (Vose's construction).
const fn alias(core: &[u64; MOST_STRIPS], wedge: &[u64; MOST_STRIPS], tail: u64) -> [Column; COLUMNS] {
    // The remaining mass of each symbol; the padding takes the rest.
    let mut left = [0u64; COLUMNS];
    let (mut sum, mut i) = (tail, 0);
    while i < MOST_STRIPS {
        left[i] = core[i];
        left[MOST_STRIPS + i] = wedge[i];
        sum += core[i] + wedge[i];
        i += 1;
    }
    left[TAIL] = tail;
    left[PADDING] = CAPACITY * COLUMNS as u64 - sum;
    let (mut small, mut small_len) = ([0usize; COLUMNS], 0);
    let (mut large, mut large_len) = ([0usize; COLUMNS], 0);
    i = 0;
    while i < COLUMNS {
        if left[i] < CAPACITY {
            small[small_len] = i;
            small_len += 1;
        } else {
            large[large_len] = i;
            large_len += 1;
        }
        i += 1;
    }
    let mut columns = [Column { threshold: 0, alias: 0 }; COLUMNS];
    while small_len > 0 {
        // The remaining masses sum to CAPACITY times the remaining columns: while one is below, one is above.
        small_len -= 1;
        let below = small[small_len];
        let above = large[large_len - 1];
        columns[below] = Column { threshold: left[below] as u32, alias: above as u16 };
        left[above] -= CAPACITY - left[below];
        if left[above] < CAPACITY {
            large_len -= 1;
            small[small_len] = above;
            small_len += 1;
        }
    }
    // The remaining symbols fill their columns: both sides of the threshold are their own.
    while large_len > 0 {
        large_len -= 1;
        columns[large[large_len]].alias = large[large_len] as u16;
    }
    columns
}

/// The half-normal law on `[0, 8)`; its tail has probability below `2^-49`.
pub(crate) static HALF_NORMAL: Table = Table::new(Law::HalfNormal, MOST_STRIPS);
/// The exponential law on `[0, 8)`; its tail has probability `exp(-8)`.
pub(crate) static EXPONENTIAL: Table = Table::new(Law::Exponential, MOST_STRIPS);

#[cfg(test)]
pub(crate) mod tests;
