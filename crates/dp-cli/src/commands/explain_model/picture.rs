//! Contributions of columns as a picture (SVG): one panel for each column, all on the same vertical scale.

use dp::shapes::{Points, Shape, Shapes};
use dp::wording::one_line;
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::exit_code::ExitStatus;
use crate::failure::Failure;

/// Panels in a row.
const ACROSS: usize = 3;
/// Maximum number of panels.
const MOST: usize = 30;
/// Width and height of a panel.
const PANEL: (u32, u32) = (320, 220);
/// Height of the title.
const TITLE: u32 = 36;
/// Maximum number of characters of a label.
const LONGEST: usize = 10;

/// 0.975 quantile of the normal distribution.
const QUANTILE: f64 = 1.96;

const COLOUR: RGBColor = RGBColor(0x1f, 0x4e, 0x9c);
const FAINT: RGBColor = RGBColor(0xcc, 0xcc, 0xcc);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// Draws the columns with the largest effects.
///
/// # Errors
/// A picture that cannot be drawn.
pub(super) fn svg(shapes: &Shapes) -> Result<String, Failure> {
    let shown = &shapes.columns[..shapes.columns.len().min(MOST)];
    let down = shown.len().div_ceil(ACROSS).max(1);
    let size = (PANEL.0 * ACROSS as u32, PANEL.1 * down as u32 + TITLE);
    let mut text = String::new();
    draw(&mut text, size, down, shapes, shown)
        .map_err(|error| Failure::new(ExitStatus::Failed, "output.write", format!("cannot draw: {error}")))?;
    Ok(text)
}

fn draw<'a>(text: &'a mut String, size: (u32, u32), down: usize, shapes: &Shapes, shown: &[Shape]) -> Drawn<'a> {
    let area = SVGBackend::with_string(text, size).into_drawing_area();
    area.fill(&WHITE)?;
    let of = shapes
        .class
        .as_ref()
        .map_or("to the prediction".to_owned(), |class| format!("to the score of {}", shortened(&one_line(class), 40)));
    let hidden = match shapes.columns.len() - shown.len() {
        0 => String::new(),
        hidden => format!(" ({hidden} weaker ones are not shown)"),
    };
    let band = if shapes.has_standard_errors { ", with 95% intervals of the privacy noise" } else { "" };
    let area = area.titled(&format!("Contribution of each column {of}{hidden}{band}"), ("sans-serif", 18))?;
    let ends = shown.iter().flat_map(|shape| {
        let [low, high] = [-1.0, 1.0].map(|side| end_of_band(shape, side));
        low.into_iter().chain(high)
    });
    let most = ends.fold(0.0_f64, |most, value| most.max(value.abs()));
    let height = if most > 0.0 { 1.05 * most } else { 1.0 };
    for (panel, shape) in area.split_evenly((down, ACROSS)).iter().zip(shown) {
        draw_panel(panel, shape, height)?;
    }
    area.present()
}

fn draw_panel<'a>(area: &Area<'a>, shape: &Shape, height: f64) -> Drawn<'a> {
    let contributions = shape.points.contributions();
    let [low, high] = [-1.0, 1.0].map(|side| end_of_band(shape, side));
    let bars = matches!(shape.points, Points::Bars { .. });
    let last = contributions.len().saturating_sub(1).max(1) as f64;
    let width = if bars { -0.5..last.max(1.0) + 0.5 } else { 0.0..last };
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .caption(shortened(&one_line(&shape.column), 36), ("sans-serif", 14))
        .x_label_area_size(24)
        .y_label_area_size(40)
        .build_cartesian_2d(width, -height..height)?;
    let label = |x: &f64| {
        let position = x.round();
        let on_a_point = (x - position).abs() < 1e-9 || !bars;
        if on_a_point && position >= 0.0 {
            shortened(&one_line(&shape.points.label(position as usize)), LONGEST)
        } else {
            String::new()
        }
    };
    chart
        .configure_mesh()
        .x_labels(if bars { contributions.len().min(4) } else { 5 })
        .y_labels(5)
        .x_label_formatter(&label)
        .y_label_formatter(&|y| format!("{y:.2}"))
        .light_line_style(WHITE)
        .bold_line_style(FAINT)
        .draw()?;
    if bars {
        let bar = |(i, value): (usize, &f64)| {
            Rectangle::new([(i as f64 - 0.35, 0.0), (i as f64 + 0.35, *value)], COLOUR.mix(0.6).filled())
        };
        chart.draw_series(contributions.iter().enumerate().map(bar))?;
        if !shape.standard_errors.is_empty() {
            let ends = low.iter().zip(&high).enumerate();
            chart.draw_series(ends.map(|(i, (low, high))| {
                PathElement::new([(i as f64, *low), (i as f64, *high)], BLACK.stroke_width(1))
            }))?;
        }
    } else {
        if !shape.standard_errors.is_empty() {
            let outline = high.iter().copied().enumerate().chain(low.iter().copied().enumerate().rev());
            let outline: Vec<(f64, f64)> = outline.map(|(i, value)| (i as f64, value)).collect();
            chart.draw_series([Polygon::new(outline, COLOUR.mix(0.2).filled())])?;
        }
        let points = contributions.iter().enumerate().map(|(i, value)| (i as f64, *value));
        chart.draw_series(LineSeries::new(points, COLOUR.stroke_width(2)))?;
    }
    Ok(())
}

/// Returns each contribution with 1.96 standard errors added on this side, if they are known.
fn end_of_band(shape: &Shape, side: f64) -> Vec<f64> {
    let errors = shape.standard_errors.iter().copied().chain(std::iter::repeat(0.0));
    shape.points.contributions().iter().zip(errors).map(|(value, error)| value + side * QUANTILE * error).collect()
}

/// Returns at most `most` characters of a text.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(column: &str, points: Points) -> Shape {
        let standard_errors = vec![0.1; points.contributions().len()];
        let (column, effect, standard_error, is_within_noise) = (column.to_owned(), 1.0, Some(0.2), Some(false));
        Shape { column, effect, standard_error, is_within_noise, per_unit: None, points, standard_errors }
    }

    #[test]
    fn every_column_has_a_panel_and_names_are_escaped() {
        let curve = Points::Curve {
            values: (0..101).map(f64::from).collect(),
            dates: false,
            contributions: (0..101).map(|i| (f64::from(i) / 20.0).sin()).collect(),
        };
        let bars = Points::Bars { categories: vec!["<b>".into(), "other".into()], contributions: vec![-0.5, 0.5] };
        let one = Points::Bars { categories: vec!["only".into()], contributions: vec![0.0] };
        for count in [1, 3, 40] {
            let mut columns = vec![shape("pay & <tax>", curve.clone()), shape("town", bars.clone())];
            columns.push(shape("one", one.clone()));
            columns.extend((0..count).map(|i| shape(&format!("c{i}"), curve.clone())));
            let shapes = Shapes {
                class: Some("yes".into()),
                reference_norm: 1.0,
                has_pairs: false,
                has_fourier: false,
                has_standard_errors: true,
                columns,
            };
            let text = svg(&shapes).unwrap();
            assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
            assert!(text.contains("pay &amp; &lt;tax&gt;") && text.contains("the score of yes"), "{text}");
            assert!(!text.contains("NaN") && !text.contains("<b>"));
            assert_eq!(text.contains("weaker ones are not shown"), count == 40);
        }
        let none = Shapes {
            class: None,
            reference_norm: 1.0,
            has_pairs: false,
            has_fourier: false,
            has_standard_errors: false,
            columns: Vec::new(),
        };
        assert!(svg(&none).unwrap().contains("to the prediction"));
    }
}
