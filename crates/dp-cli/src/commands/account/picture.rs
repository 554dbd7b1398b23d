//! A curve as a picture (SVG).

use dp::wording;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::curve::{Axis, Point, Points, Sides};
use crate::exit_code::ExitStatus;
use crate::failure::Failure;

/// Width and height.
const SIZE: (u32, u32) = (800, 500);

/// The colour of the promised curve.
const PROMISED: RGBColor = RGBColor(0x1f, 0x4e, 0x9c);

/// The colour of the certified bound.
const CERTIFIED: RGBColor = RGBColor(0x8a, 0x8a, 0x8a);

/// Draws the curve.
///
/// # Errors
/// A curve without a point that can be drawn.
pub fn svg(points: &Points) -> Result<String, Failure> {
    let (x, y) = (&points.x, &points.y);
    let shown = |axis: &Axis, value: f64| value.is_finite() && (value > 0.0 || !axis.logarithmic);
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
    let height = 0.0..if highest > 0.0 { 1.05 * highest } else { 1.0 };
    let mut text = String::new();
    let drawing = {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let width = first.x..last.x;
        match x.logarithmic {
            true => draw(&area, points, &drawn, width.log_scale(), height),
            false => draw(&area, points, &drawn, width, height),
        }
    };
    drawing.map_err(|error| Failure::new(ExitStatus::Failed, "output.write", format!("cannot draw: {error}")))?;
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw<'a, X>(
    area: &Area<'a>,
    points: &Points,
    drawn: &[Point],
    width: X,
    height: std::ops::Range<f64>,
) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(width, height)?;
    chart
        .configure_mesh()
        .x_desc(points.x.title)
        .y_desc(points.y.title)
        .x_label_formatter(&|x| tick(*x))
        .y_label_formatter(&|y| tick(*y))
        .light_line_style(WHITE)
        .draw()?;
    // Without a certified lower bound there is no second line.
    let two_sided = drawn.iter().filter(|point| points.sides == Sides::Both && point.lower > 0.0);
    let certified: Vec<(f64, f64)> = two_sided.map(|point| (point.x, point.lower)).collect();
    if !certified.is_empty() {
        chart
            .draw_series(LineSeries::new(certified, &CERTIFIED))?
            .label("certified from below")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], CERTIFIED));
    }
    chart
        .draw_series(LineSeries::new(
            drawn.iter().map(|point| (point.x, points.promise(point))),
            PROMISED.stroke_width(2),
        ))?
        .label("promised")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], PROMISED.stroke_width(2)));
    let rises = drawn.first().map(|point| points.promise(point)) < drawn.last().map(|point| points.promise(point));
    let free = if rises { SeriesLabelPosition::UpperLeft } else { SeriesLabelPosition::UpperRight };
    chart.configure_series_labels().position(free).border_style(CERTIFIED).background_style(WHITE).draw()?;
    area.present()
}

/// Formats a short label for a tick.
fn tick(value: f64) -> String {
    // Ticks are sums of rounded steps, such as 0.30000000000000004.
    format!("{value:.6e}").parse().map_or_else(|_| value.to_string(), wording::delta)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(logarithmic: bool) -> Axis {
        Axis { name: "a", title: "axis <of> things", logarithmic }
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
            assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{text}");
            assert!(text.contains("<polyline") && text.contains("promised") && !text.contains("<of>"), "{text}");
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
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

    #[test]
    fn ticks_are_short() {
        assert_eq!([0.1 + 0.2, 1e-12, 1e4].map(tick), ["0.3", "1e-12", "10000"]);
    }
}
