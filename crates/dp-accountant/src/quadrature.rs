//! Quadrature of smooth functions with an error estimate.

/// Positive abscissae, Kronrod's weights, Gauss's weights (0 if Gauss has no node), and the weights of the rule with the other
/// nodes; Kronrod 1965, 21 and 10 nodes.
const NODES: [(f64, f64, f64, f64); 10] = [
    (0.995_657_163_025_808_1, 0.011_694_638_867_371_874, 0.0, 0.022_516_403_409_274_72),
    (0.973_906_528_517_171_7, 0.032_558_162_307_964_725, 0.066_671_344_308_688_14, 0.0),
    (0.930_157_491_355_708_2, 0.054_755_896_574_351_995, 0.0, 0.108_975_712_411_808_85),
    (0.865_063_366_688_984_5, 0.075_039_674_810_919_96, 0.149_451_349_150_580_6, 0.0),
    (0.780_817_726_586_416_9, 0.093_125_454_583_697_6, 0.0, 0.186_776_259_414_532),
    (0.679_409_568_299_024_4, 0.109_387_158_802_297_64, 0.219_086_362_515_982_04, 0.0),
    (0.562_757_134_668_604_7, 0.123_491_976_262_065_85, 0.0, 0.246_505_652_687_868_1),
    (0.433_395_394_129_247_2, 0.134_709_217_311_473_34, 0.269_266_719_309_996_35, 0.0),
    (0.294_392_862_701_460_2, 0.142_775_938_577_060_09, 0.0, 0.285_999_222_352_610_6),
    (0.148_874_338_981_631_22, 0.147_739_104_901_338_49, 0.295_524_224_714_752_87, 0.0),
];

/// Kronrod's weight at the midpoint, and that of the rule with the other nodes; Gauss has no node there.
const MIDDLE: (f64, f64) = (0.149_445_554_002_916_9, 0.298_453_499_447_811_6);

/// Maximum total number of halvings; if rounding hides the integrand's smoothness, no number suffices.
const MAX_HALVINGS: u32 = 60;

/// An integral with a bound on its error.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

impl Estimate {
    /// Returns an upper bound on the integral, for a non-negative integrand.
    pub(crate) fn upper(self) -> f64 {
        (self.value + self.error).next_up()
    }

    /// Returns a lower bound on the integral.
    pub(crate) fn lower(self) -> f64 {
        (self.value - self.error).next_down().max(0.0)
    }
}

impl core::ops::Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { value: self.value + other.value, error: self.error + other.error }
    }
}

/// Returns the integral of `f` by Kronrod's rule on one panel; the caller knows that `f` is smooth there.
pub(crate) fn panel(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    both_rules(low, high, &f).value
}

/// As [`panel`], with its error estimate.
pub(crate) fn panel_with_error(low: f64, high: f64, f: impl Fn(f64) -> f64) -> Estimate {
    both_rules(low, high, &f)
}

/// Returns the mean of `f` over a short interval, by Gauss's rule with 5 nodes.
pub(crate) fn short(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
    let pair = |x: f64| f(middle - half * x) + f(middle + half * x);
    0.284_444_444_444_444_44 * f(middle)
        + 0.239_314_335_249_683_23 * pair(0.538_469_310_105_683_1)
        + 0.118_463_442_528_094_54 * pair(0.906_179_845_938_664)
}

/// Returns the integral of a non-negative function over `[low, high]`, from `panels` equal panels, each halved until its error is
/// below `tolerance` relative to the whole.
///
/// **The error estimate** is that of rules inferior to Kronrod's, whose value is returned. For an integrand that is analytic
/// within an ellipse about the panel whose semi-axes have the sum r, in half-widths, the rules with 10, 11 and 21 nodes have
/// errors of the order of `r^-20`, `r^-12` and `r^-32` (Trefethen 2008, Theorem 4.5). The estimate is the difference of the first
/// rule from the last, plus the squared relative difference of the second, of the order of `r^-24`: both are far above the last
/// rule's error, and are unlikely to vanish together.
pub(crate) fn integrate(low: f64, high: f64, panels: u32, tolerance: f64, f: impl Fn(f64) -> f64) -> Estimate {
    if !(high > low) {
        return Estimate::default();
    }
    let width = (high - low) / f64::from(panels);
    let end = |i: u32| if i == panels { high } else { low + width * f64::from(i) };
    refine((0..panels).map(|i| (end(i), end(i + 1), both_rules(end(i), end(i + 1), &f))).collect(), tolerance, f)
}

/// As [`integrate`], from these panels.
pub(crate) fn refine(first: Vec<(f64, f64, Estimate)>, tolerance: f64, f: impl Fn(f64) -> f64) -> Estimate {
    let rough: f64 = first.iter().map(|(_, _, estimate)| estimate.value).sum();
    let allowed = tolerance * rough / first.len() as f64;
    let mut total = Estimate::default();
    let mut halvings = 0;
    let mut open = first;
    while let Some((low, high, estimate)) = open.pop() {
        if estimate.error <= allowed || halvings == MAX_HALVINGS {
            total = total + estimate;
        } else {
            halvings += 1;
            let middle = 0.5 * (low + high);
            for (low, high) in [(low, middle), (middle, high)] {
                open.push((low, high, both_rules(low, high, &f)));
            }
        }
    }
    // Sums of positive terms, so that the rounding error is relative.
    Estimate { error: total.error + 64.0 * f64::EPSILON * total.value, ..total }
}

fn both_rules(low: f64, high: f64, f: &impl Fn(f64) -> f64) -> Estimate {
    of_values(low, high, &points(low, high).map(f))
}

/// Number of values of a panel.
pub(crate) const POINTS: usize = 2 * NODES.len() + 1;

/// Returns the points of a panel at which its integrand is evaluated, the middle first.
pub(crate) fn points(low: f64, high: f64) -> [f64; POINTS] {
    let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
    core::array::from_fn(|i| match i.checked_sub(1) {
        None => middle,
        Some(i) => middle + half * if i % 2 == 0 { -NODES[i / 2].0 } else { NODES[i / 2].0 },
    })
}

/// Returns the integral over a panel from the values at its [`points`].
pub(crate) fn of_values(low: f64, high: f64, values: &[f64; POINTS]) -> Estimate {
    let (half, [at_middle, others @ ..]) = (0.5 * (high - low), values);
    let (mut kronrod, mut gauss, mut other) = (MIDDLE.0 * at_middle, 0.0, MIDDLE.1 * at_middle);
    for (&(_, weight, of_gauss, of_other), pair) in NODES.iter().zip(others.chunks_exact(2)) {
        let pair = pair[0] + pair[1];
        kronrod += weight * pair;
        gauss += of_gauss * pair;
        other += of_other * pair;
    }
    let squared = if other == kronrod { 0.0 } else { ((other - kronrod) / kronrod).powi(2) * kronrod.abs() };
    Estimate { value: half * kronrod, error: half * ((kronrod - gauss).abs() + squared) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_exact_rules() {
        // Kronrod's rule is exact to degree 31, Gauss's to 19: even powers up to there.
        for power in 0..16 {
            let exact = 2.0 / f64::from(2 * power + 1);
            let kronrod = both_rules(-1.0, 1.0, &|x: f64| x.powi(2 * power)).value;
            assert!((kronrod / exact - 1.0).abs() < 4e-15, "{power}: {kronrod}");
            if power < 10 {
                let gauss: f64 = NODES.iter().map(|(x, _, weight, _)| 2.0 * weight * x.powi(2 * power)).sum();
                assert!((gauss / exact - 1.0).abs() < 4e-15, "{power}: {gauss}");
            }
            if power < 6 {
                let middle = if power == 0 { MIDDLE.1 } else { 0.0 };
                let other: f64 = NODES.iter().map(|(x, _, _, weight)| 2.0 * weight * x.powi(2 * power)).sum();
                assert!(((other + middle) / exact - 1.0).abs() < 4e-15, "{power}: {other}");
            }
        }
    }

    #[test]
    fn the_truth_lies_within_the_stated_error() {
        type Case = (fn(f64) -> f64, f64, f64, f64);
        let cases: [Case; 3] = [
            (|x| (-x).exp(), 0.0, 50.0, 1.0 - (-50f64).exp()),
            (|x| 1.0 / (1.0 + x * x), 0.0, 100.0, 100f64.atan()),
            (|x| (x - 0.3).abs(), 0.0, 1.0, 0.5 * (0.09 + 0.49)),
        ];
        for (f, low, high, exact) in cases {
            let estimate = integrate(low, high, 4, 1e-12, f);
            assert!((estimate.value - exact).abs() <= estimate.error, "{estimate:?} {exact}");
            assert!(estimate.error < 1e-9 * exact && estimate.lower() <= exact && exact <= estimate.upper());
        }
    }
}
