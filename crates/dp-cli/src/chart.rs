//! Line charts (SVG): curves, points and bands on two axes, one or several charts in a picture.

use dp::wording::{self, one_line};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::exit_code::ExitStatus;
use crate::failure::Failure;

/// The colour of the main curve.
pub const BLUE: RGBColor = RGBColor(0x1f, 0x4e, 0x9c);
/// The colour of the second one. All differ in lightness also.
pub const ORANGE: RGBColor = RGBColor(0xc4, 0x5a, 0x11);
/// The colour of the third one.
pub const GREEN: RGBColor = RGBColor(0x5b, 0xb0, 0x8a);
/// The colour of references.
pub const GREY: RGBColor = RGBColor(0x9a, 0x9a, 0x9a);

/// Length of a line in the legend.
const SAMPLE: i32 = 18;
/// Number of decades up to which 2 and 5 times a power of ten have a tick.
const FEW_DECADES: i32 = 4;
/// Largest number of ticks of a logarithmic axis.
const MOST_TICKS: usize = 16;
/// Opacity of a band.
const FAINT: f64 = 0.15;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Its title.
    pub title: String,
    /// Its ends.
    pub range: (f64, f64),
    /// True if it is logarithmic; horizontal axes only.
    pub logarithmic: bool,
    /// True if fractions are shown in percent.
    pub percent: bool,
}

impl Axis {
    /// Creates a linear axis.
    pub fn linear(title: &str, range: (f64, f64)) -> Self {
        Self { title: title.to_owned(), range, logarithmic: false, percent: false }
    }

    /// Creates an axis for rates.
    pub fn rate(title: &str) -> Self {
        Self::linear(title, (0.0, 1.0))
    }

    fn tick(&self, value: f64) -> String {
        // Ticks are sums of rounded steps, such as 0.30000000000000004.
        let tick = |value: f64| {
            format!("{value:.6e}").parse().map_or_else(
                |_| value.to_string(),
                |value: f64| match value.abs() < 1e-9 {
                    true if !self.logarithmic => "0".to_owned(),
                    _ => wording::delta(value),
                },
            )
        };
        if self.percent { format!("{}%", tick(100.0 * value)) } else { tick(value) }
    }
}

/// The mark of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// As a line.
    Line,
    /// As a thin line.
    Thin,
    /// As dots.
    Dots,
}

/// A series of points; those that are not finite or outside the axes are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend; `None` for none.
    pub label: Option<String>,
    /// Its colour.
    pub colour: RGBColor,
    /// Its mark.
    pub mark: Mark,
    /// The points.
    pub points: Vec<(f64, f64)>,
}

/// An area between two curves.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// Its name in the legend.
    pub label: String,
    /// Its colour.
    pub colour: RGBColor,
    /// `x`, lower and upper end, from left to right.
    pub points: Vec<(f64, f64, f64)>,
}

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Its title; empty for none.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The area behind the series.
    pub band: Option<Band>,
    /// The series.
    pub series: Vec<Series>,
    /// True if the legend is on the right.
    pub legend_right: bool,
    /// True if the legend is at the bottom.
    pub legend_low: bool,
}

/// Draws charts of this size in so many columns.
///
/// # Errors
/// A picture that cannot be drawn.
pub fn svg(charts: &[Chart], columns: usize, (width, height): (u32, u32)) -> Result<String, Failure> {
    let columns = charts.len().clamp(1, columns.max(1));
    let rows = charts.len().div_ceil(columns).max(1);
    let mut text = String::new();
    let drawing = {
        let size = (width * columns as u32, height * rows as u32);
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw_all(&area, charts, (rows, columns))
    };
    drawing.map_err(|error| Failure::new(ExitStatus::Failed, "output.write", format!("cannot draw: {error}")))?;
    Ok(text)
}

fn draw_all<'a>(area: &Area<'a>, charts: &[Chart], grid: (usize, usize)) -> Drawn<'a> {
    area.fill(&WHITE)?;
    for (chart, area) in charts.iter().zip(area.split_evenly(grid)) {
        let ((left, right), height) = (chart.x.range, chart.y.range.0..chart.y.range.1);
        if chart.x.logarithmic {
            draw(&area, chart, (left..right).log_scale().with_key_points(logarithmic_ticks(left, right)), height)?;
        } else {
            draw(&area, chart, left..right, height)?;
        }
    }
    area.present()
}

fn draw<'a, X>(area: &Area<'a>, chart: &Chart, width: X, height: std::ops::Range<f64>) -> Drawn<'a>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let Chart { title, x, y, band, series, .. } = chart;
    let mut builder = ChartBuilder::on(area);
    builder.margin(16).x_label_area_size(44).y_label_area_size(64);
    if !title.is_empty() {
        builder.caption(one_line(title), ("sans-serif", 15));
    }
    let mut drawn = builder.build_cartesian_2d(width, height)?;
    drawn
        .configure_mesh()
        .x_desc(&x.title)
        .y_desc(&y.title)
        .x_label_formatter(&|value| x.tick(*value))
        .y_label_formatter(&|value| y.tick(*value))
        .light_line_style(WHITE)
        .draw()?;
    let is_shown = |at: f64, height: f64| {
        let within = |value: f64, (low, high): (f64, f64)| (low..=high).contains(&value);
        within(at, x.range) && within(height, y.range)
    };
    if let Some(band) = band {
        let clamp = |height: f64| height.clamp(y.range.0, y.range.1);
        let forth = band.points.iter().map(|&(at, _, high)| (at, clamp(high)));
        let back = band.points.iter().rev().map(|&(at, low, _)| (at, clamp(low)));
        let outline: Vec<(f64, f64)> = forth.chain(back).filter(|&(at, height)| is_shown(at, height)).collect();
        let style = band.colour.mix(FAINT).filled();
        drawn
            .draw_series([Polygon::new(outline, style)])?
            .label(one_line(&band.label))
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + SAMPLE, y + 4)], style));
    }
    for Series { label, colour, mark, points } in series {
        let shown = points.iter().copied().filter(|&(at, height)| is_shown(at, height));
        let width = if *mark == Mark::Thin { 1 } else { 2 };
        let style = colour.stroke_width(width);
        let dot = colour.filled();
        let annotation = match mark {
            Mark::Dots => drawn.draw_series(shown.map(|point| Circle::new(point, 2, dot)))?,
            Mark::Line | Mark::Thin => drawn.draw_series(LineSeries::new(shown, style))?,
        };
        if let Some(label) = label {
            let annotation = annotation.label(one_line(label));
            match mark {
                Mark::Dots => annotation.legend(move |(x, y)| Circle::new((x + SAMPLE / 2, y), 2, dot)),
                _ => annotation.legend(move |(x, y)| PathElement::new([(x, y), (x + SAMPLE, y)], style)),
            };
        }
    }
    if series.iter().any(|series| series.label.is_some()) || band.is_some() {
        let position = match (chart.legend_right, chart.legend_low) {
            (false, false) => SeriesLabelPosition::UpperLeft,
            (true, false) => SeriesLabelPosition::UpperRight,
            (false, true) => SeriesLabelPosition::LowerLeft,
            (true, true) => SeriesLabelPosition::LowerRight,
        };
        drawn
            .configure_series_labels()
            .position(position)
            .border_style(GREY)
            .background_style(WHITE.mix(0.85))
            .draw()?;
    }
    Ok(())
}

/// Returns the ticks of a logarithmic axis: powers of ten, and on a short axis 2 and 5 times these.
fn logarithmic_ticks(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let factors: &[u32] = if last - first <= FEW_DECADES { &[1, 2, 5] } else { &[1] };
    // Parsed, because products with negative powers of ten are not exact.
    let tick = |power: i32, factor: &u32| format!("{factor}e{power}").parse::<f64>().ok();
    let ticks = (first..=last).flat_map(|power| factors.iter().filter_map(move |factor| tick(power, factor)));
    let ticks: Vec<f64> = ticks.filter(|tick| (low..=high).contains(tick)).collect();
    let step = ticks.len().div_ceil(MOST_TICKS).max(1);
    ticks.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(title: &str, logarithmic: bool) -> Chart {
        let points = [0.01, 0.25, f64::NAN, 0.5, 1.0].map(|x| (x, x)).to_vec();
        let series = |label: Option<&str>, mark| Series {
            label: label.map(str::to_owned),
            colour: BLUE,
            mark,
            points: points.clone(),
        };
        Chart {
            title: title.to_owned(),
            x: Axis { logarithmic, range: (0.01, 1.0), ..Axis::rate("axis <of> things") },
            y: Axis { percent: true, ..Axis::rate("share") },
            band: Some(Band {
                label: "range".to_owned(),
                colour: GREEN,
                points: vec![(0.01, 0.0, 0.5), (1.0, 0.5, f64::INFINITY)],
            }),
            series: vec![
                series(Some("lines & co"), Mark::Line),
                series(None, Mark::Thin),
                series(Some("dots"), Mark::Dots),
            ],
            legend_right: false,
            legend_low: logarithmic,
        }
    }

    #[test]
    fn every_chart_has_its_axes_series_and_legend() {
        for count in [1, 2, 5] {
            let charts: Vec<Chart> = (0..count).map(|i| chart(&format!("chart <{i}>"), i % 2 == 0)).collect();
            let text = svg(&charts, 3, (400, 300)).unwrap();
            assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
            assert_eq!(text.matches("lines &amp; co").count(), count);
            assert_eq!(text.matches("range").count(), count);
            // Four points and one in the legend.
            assert_eq!(text.matches("<circle").count(), 5 * count);
            assert!(text.contains("100%") && !text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(!text.contains("<of>") && !text.contains("<0>"));
        }
        assert!(svg(&[], 3, (400, 300)).unwrap().starts_with("<svg"));
    }

    #[test]
    fn logarithmic_axes_have_ticks_at_round_numbers() {
        assert_eq!(logarithmic_ticks(0.1, 5.0), [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]);
        assert_eq!(logarithmic_ticks(1e-8, 0.1), [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1]);
        assert!(logarithmic_ticks(1e-300, 1.0).len() <= MOST_TICKS);
    }

    #[test]
    fn ticks_are_short() {
        let axis = Axis::linear("x", (0.0, 1.0));
        assert_eq!([0.1 + 0.2, 1e-12, 1e4].map(|tick| axis.tick(tick)), ["0.3", "0", "10000"]);
        assert_eq!(Axis { logarithmic: true, ..axis.clone() }.tick(1e-12), "1e-12");
        assert_eq!(Axis { percent: true, ..axis }.tick(0.1 + 0.2), "30%");
    }
}
