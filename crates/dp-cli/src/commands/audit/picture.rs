//! The trade-off between the two errors of an attacker: the claimed minimum and the errors of the attack.

use dp::wording::{self, one_line};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::exit_code::ExitStatus;
use crate::failure::Failure;

/// Width and height of a panel.
const PANEL: (u32, u32) = (420, 400);

/// Number of panels per row.
const COLUMNS: usize = 3;

/// The colour of the claimed curve.
const CLAIMED: RGBColor = RGBColor(0x1f, 0x4e, 0x9c);

/// The colour of the errors reached.
const REACHED: RGBColor = RGBColor(0xc4, 0x5a, 0x11);

/// The colour of random guessing.
const GUESSING: RGBColor = RGBColor(0xb0, 0xb0, 0xb0);

/// The picture of one audit.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The title.
    pub title: String,
    /// The claimed minimum: type I and type II errors.
    pub claimed: Vec<(f64, f64)>,
    /// The observed errors of the attack at several thresholds.
    pub reached: Vec<(f64, f64)>,
}

/// Draws one panel for each audit.
///
/// # Errors
/// A drawing error.
pub fn svg(panels: &[Panel]) -> Result<String, Failure> {
    let columns = panels.len().clamp(1, COLUMNS);
    let rows = panels.len().div_ceil(columns).max(1);
    let mut text = String::new();
    let drawing = {
        let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32);
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE).and_then(|()| {
            for (panel, area) in panels.iter().zip(area.split_evenly((rows, columns))) {
                draw(&area, panel)?;
            }
            area.present()
        })
    };
    drawing.map_err(|error| Failure::new(ExitStatus::Failed, "output.write", format!("cannot draw: {error}")))?;
    Ok(text)
}

fn draw<'a>(
    area: &DrawingArea<SVGBackend<'a>, Shift>,
    panel: &Panel,
) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>> {
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .caption(one_line(&panel.title), ("sans-serif", 14))
        .x_label_area_size(40)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..1.0, 0.0..1.0)?;
    chart
        .configure_mesh()
        .x_desc("type I error: false accusations")
        .y_desc("type II error: missed")
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|x| tick(*x))
        .y_label_formatter(&|y| tick(*y))
        .light_line_style(WHITE)
        .draw()?;
    chart.draw_series(LineSeries::new([(0.0, 1.0), (1.0, 0.0)], GUESSING))?;
    chart
        .draw_series(LineSeries::new(shown(&panel.claimed), CLAIMED.stroke_width(2)))?
        .label("least by the claim")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], CLAIMED.stroke_width(2)));
    chart
        .draw_series(shown(&panel.reached).map(|point| Circle::new(point, 2, REACHED.filled())))?
        .label("reached (counted)")
        .legend(|(x, y)| Circle::new((x + 9, y), 2, REACHED.filled()));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .border_style(GUESSING)
        .background_style(WHITE)
        .draw()?;
    Ok(())
}

/// Returns the points that can be drawn.
fn shown(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> + '_ {
    points.iter().copied().filter(|(x, y)| (0.0..=1.0).contains(x) && (0.0..=1.0).contains(y))
}

/// Formats a short label for a tick; ticks are sums of rounded steps, such as 0.30000000000000004.
fn tick(value: f64) -> String {
    format!("{value:.6}").parse().map_or_else(|_| value.to_string(), wording::delta)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(title: &str) -> Panel {
        Panel {
            title: title.to_owned(),
            claimed: vec![(0.0, 1.0), (0.3, 0.3), (1.0, 0.0)],
            reached: vec![(0.5, 0.45), (f64::NAN, 0.5), (0.2, f64::INFINITY)],
        }
    }

    #[test]
    fn each_audit_has_its_panel() {
        for count in [1, 2, 5] {
            let panels: Vec<Panel> = (0..count).map(|i| panel(&format!("audit <{i}>"))).collect();
            let text = svg(&panels).unwrap();
            assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
            assert_eq!(text.matches("missed").count(), count);
            // One circle for the point and one for the legend.
            assert_eq!(text.matches("<circle").count(), 2 * count);
            assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("<0>"), "{text}");
        }
    }

    #[test]
    fn nothing_to_draw_is_an_empty_picture() {
        assert!(svg(&[]).unwrap().starts_with("<svg"));
    }
}
