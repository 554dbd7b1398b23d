//! A curve as a picture (SVG).

use super::curve::{Point, Points, Sides};
use crate::chart::{self, Axis, BLUE, Chart, GREY, Mark, Series};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;

/// Width and height.
const SIZE: (u32, u32) = (800, 500);

/// Draws the curve.
///
/// # Errors
/// A curve without a point that can be drawn.
pub fn svg(points: &Points) -> Result<String, Failure> {
    let (x, y) = (&points.x, &points.y);
    let shown = |axis: &super::curve::Axis, value: f64| value.is_finite() && (value > 0.0 || !axis.logarithmic);
    let drawn: Vec<Point> =
        points.points.iter().copied().filter(|point| shown(x, point.x) && shown(y, points.promise(point))).collect();
    let ends = drawn.first().zip(drawn.last()).filter(|(first, last)| first.x < last.x);
    let Some((first, last)) = ends else {
        return Err(Failure::new(
            ExitStatus::Privacy,
            "privacy.refused",
            "there is nothing to draw: fewer than two points of the curve are finite",
        )
        .at_flag("--curve")
        .help("ask for CSV to see the points"));
    };
    let highest = drawn.iter().map(|point| points.promise(point)).fold(0.0, f64::max);
    // Without a certified lower bound there is no second line.
    let two_sided = drawn.iter().filter(|point| points.sides == Sides::Both && point.lower > 0.0);
    let certified: Vec<(f64, f64)> = two_sided.map(|point| (point.x, point.lower)).collect();
    let certified = (!certified.is_empty()).then(|| Series {
        label: Some("certified from below".to_owned()),
        colour: GREY,
        mark: Mark::Thin,
        points: certified,
    });
    let promised = Series {
        label: Some("promised".to_owned()),
        colour: BLUE,
        mark: Mark::Line,
        points: drawn.iter().map(|point| (point.x, points.promise(point))).collect(),
    };
    let chart = Chart {
        title: String::new(),
        x: Axis { logarithmic: x.logarithmic, ..Axis::linear(x.title, (first.x, last.x)) },
        y: Axis::linear(y.title, (0.0, if highest > 0.0 { 1.05 * highest } else { 1.0 })),
        band: None,
        series: certified.into_iter().chain([promised]).collect(),
        legend_right: points.promise(first) >= points.promise(last),
        legend_low: false,
    };
    chart::svg(&[chart], 1, SIZE)
}

#[cfg(test)]
mod tests {
    use super::super::curve;
    use super::*;

    fn axis(logarithmic: bool) -> curve::Axis {
        curve::Axis { name: "a", title: "axis <of> things", logarithmic }
    }

    #[test]
    fn a_curve_becomes_a_picture_with_its_axes() {
        let point = |x: f64| Point { x, lower: 0.0, upper: 1.0 / x };
        for logarithmic in [true, false] {
            let points = Points {
                x: axis(logarithmic),
                y: axis(false),
                sides: Sides::Both,
                points: [0.25, 0.5, 1.0].map(point).to_vec(),
            };
            let text = svg(&points).unwrap();
            assert!(text.contains("<polyline") && text.contains("promised") && !text.contains("<of>"), "{text}");
            assert!(!text.contains("certified"));
        }
    }

    #[test]
    fn infinite_points_are_left_out_and_none_are_refused() {
        let point = |x: f64, upper: f64| Point { x, lower: 0.0, upper };
        let mut points = Points {
            x: axis(true),
            y: axis(false),
            sides: Sides::Both,
            points: vec![point(0.0, 1.0), point(1e-5, f64::INFINITY), point(1e-4, 2.0), point(1e-3, 1.0)],
        };
        assert!(svg(&points).unwrap().contains("<polyline"));
        points.points.pop();
        assert_eq!(svg(&points).unwrap_err().code, "privacy.refused");
    }
}
