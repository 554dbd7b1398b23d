//! Coordinates and ticks of an axis, linear or logarithmic.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::statistics::number;

/// An axis in its own coordinate: the value, or its decimal logarithm.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    log: bool,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) ticks: Vec<f64>,
}

impl Scale {
    /// Creates an axis with a tick at each point if there are few, as for the values of a grid.
    pub(super) fn of_points(log: bool, points: impl Iterator<Item = f64>) -> Self {
        let mut places: Vec<f64> = points.filter(|x| x.is_finite() && (!log || *x > 0.0)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mut scale = Self::of_values(log, places.iter().copied());
        let places: Vec<f64> = places.iter().map(|&x| scale.place(x)).collect();
        let width = scale.most - scale.least;
        // Labels must not overlap.
        if places.len() <= 8 && places.windows(2).all(|pair| pair[1] - pair[0] > 0.07 * width) {
            scale.ticks = places;
        }
        scale
    }

    /// Creates an axis with round ticks.
    pub(super) fn of_values(log: bool, values: impl Iterator<Item = f64>) -> Self {
        let mut scale = Self { log, least: f64::INFINITY, most: f64::NEG_INFINITY, ticks: Vec::new() };
        for place in values.filter(|value| !log || *value > 0.0).map(|value| scale.place(value)).collect::<Vec<_>>() {
            if place.is_finite() {
                scale.least = scale.least.min(place);
                scale.most = scale.most.max(place);
            }
        }
        if !(scale.least <= scale.most) {
            (scale.least, scale.most) = (0.0, 1.0);
        }
        let margin = match scale.most - scale.least {
            0.0 => scale.most.abs().max(1.0) * 0.1,
            width => 0.05 * width,
        };
        scale.least -= margin;
        scale.most += margin;
        scale.ticks = if log { logarithmic(scale.least, scale.most) } else { round(scale.least, scale.most) };
        scale
    }

    /// Returns the coordinate of a value.
    pub(super) fn place(&self, value: f64) -> f64 {
        if !self.log {
            value
        } else if value > 0.0 {
            value.log10()
        } else {
            f64::NEG_INFINITY
        }
    }

    /// Returns the label of a tick.
    pub(super) fn label(&self, place: f64) -> String {
        let value = if self.log { 10f64.powf(place) } else { place };
        // Rounded, so that 0.30000000000000004 is shown as 0.3 and -1e-17 as 0.
        let width = self.most - self.least;
        let value = if !self.log && value.abs() < 1e-9 * width { 0.0 } else { value };
        if value != 0.0 && !(1e-3..1e5).contains(&value.abs()) {
            return number(value).replace(".00e", "e");
        }
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (first, last): (i32, i32)) -> i32 {
        first + (f64::from(last - first) * (place - self.least) / (self.most - self.least)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> core::ops::Range<f64> {
        self.least..self.most
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, place: &f64) -> String {
        self.label(*place)
    }
}

/// Returns about five multiples of 1, 2 or 5 times a power of ten.
fn round(least: f64, most: f64) -> Vec<f64> {
    let raw = (most - least) / 5.0;
    let power = 10f64.powf(raw.log10().floor());
    let step = power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|&factor| factor * power >= raw).unwrap_or(10.0);
    let (first, last) = ((least / step).ceil() as i64, (most / step).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Returns powers of ten; also twice and five times them if there are fewer than three; and linear ticks if there are still
/// fewer than three.
fn logarithmic(least: f64, most: f64) -> Vec<f64> {
    let powers = || (least.floor() as i32..=most.ceil() as i32).map(f64::from);
    let within = |place: &f64| (least..=most).contains(place);
    let tens: Vec<f64> = powers().filter(within).collect();
    if tens.len() >= 3 {
        return tens;
    }
    let factors = [1.0, 2.0, 5.0].map(f64::log10);
    let ticks: Vec<f64> = powers().flat_map(|power| factors.map(|factor| power + factor)).filter(within).collect();
    if ticks.len() >= 3 {
        return ticks;
    }
    round(10f64.powf(least), 10f64.powf(most))
        .into_iter()
        .filter(|&value| value > 0.0)
        .map(f64::log10)
        .filter(within)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let linear = Scale::of_values(false, [0.43, 0.97].into_iter());
        let labels: Vec<String> = linear.ticks.iter().map(|&tick| linear.label(tick)).collect();
        assert_eq!(labels, ["0.6", "0.8"]);
        let log = Scale::of_values(true, [0.01, 20.0, 0.0, f64::INFINITY].into_iter());
        let labels: Vec<String> = log.ticks.iter().map(|&tick| log.label(tick)).collect();
        assert_eq!(labels, ["0.01", "0.1", "1", "10"]);
        let grid = Scale::of_points(true, [0.1, 0.2, 0.5, 1.0, 2.0, 4.0].into_iter());
        let labels: Vec<String> = grid.ticks.iter().map(|&tick| grid.label(tick)).collect();
        assert_eq!(labels, ["0.1", "0.2", "0.5", "1", "2", "4"]);
    }

    #[test]
    fn a_short_logarithmic_axis_has_ticks() {
        for (least, most) in [(0.57, 0.77), (0.6, 1.4), (3.1, 3.2), (1e-7, 1.1e-7), (900.0, 2000.0)] {
            let scale = Scale::of_values(true, [least, most].into_iter());
            assert!((3..20).contains(&scale.ticks.len()), "{least} to {most}: {:?}", scale.ticks);
            assert!(scale.ticks.iter().all(|tick| (scale.least..=scale.most).contains(tick)));
        }
    }

    #[test]
    fn nothing_or_one_value_still_has_an_axis() {
        for values in [vec![], vec![3.0], vec![f64::NAN]] {
            for log in [false, true] {
                let scale = Scale::of_values(log, values.iter().copied());
                assert!(scale.least < scale.most && scale.ticks.len() < 20, "{values:?} {scale:?}");
            }
        }
    }
}
