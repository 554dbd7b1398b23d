//! Pictures of figures, laid out as in the papers: panels in rows, one colour per algorithm, error bars.

mod axis;
#[cfg(feature = "png")]
mod bitmap;

use plotters::coord::Shift;
use plotters::prelude::*;

#[cfg(feature = "png")]
pub use bitmap::png;

use crate::error::Error;
use crate::figure::{Bars, Panel};
use crate::results::{Measured, Results};
use axis::Scale;

/// Width and height of a panel.
const PANEL: (u32, u32) = (380, 300);
/// Height of the title.
const HEADING: u32 = 34;
/// Height of a row of the legend, and width of an entry.
const LEGEND: (u32, u32) = (26, 380);

/// Colours distinguishable with any kind of colour vision (Okabe and Ito 2008).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x8c, 0x8c, 0x30),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// Draws a figure as SVG.
///
/// # Errors
/// [`Error::Drawing`].
pub fn svg(results: &Results<'_>) -> Result<String, Error> {
    let figure = results.figure;
    let columns = figure.columns.clamp(1, figure.panels.len().max(1));
    let rows = figure.panels.len().div_ceil(columns).max(1);
    let names = names(&figure.panels);
    let width = PANEL.0 * columns as u32;
    let entries = (width / LEGEND.1).max(1);
    let legend = LEGEND.0 * (names.len() as u32).div_ceil(entries) + 8;
    let height = HEADING + PANEL.1 * rows as u32 + legend;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
        let draw = || {
            area.fill(&WHITE)?;
            area.draw(&Text::new(figure.title, (12, 9), ("sans-serif", 18)))?;
            let (_, below) = area.split_vertically(HEADING);
            let (panels, below) = below.split_vertically(PANEL.1 * rows as u32);
            let places = panels.split_evenly((rows, columns));
            for ((panel, measured), place) in figure.panels.iter().zip(&results.measured).zip(&places) {
                draw_panel(place, panel, measured, &names)?;
            }
            draw_legend(&below, &names, entries)?;
            area.present()
        };
        draw().map_err(Error::drawing)?;
    }
    Ok(text)
}

/// Returns the names of all series, in order of appearance.
fn names(panels: &[Panel]) -> Vec<&str> {
    let mut names = Vec::new();
    for series in panels.iter().flat_map(|panel| &panel.series) {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    names
}

fn colour(names: &[&str], name: &str) -> RGBColor {
    let index = names.iter().position(|known| *known == name).unwrap_or_default();
    COLOURS[index % COLOURS.len()]
}

/// Returns the style of points: discs, or rings for names beyond the number of colours.
fn mark(names: &[&str], name: &str) -> ShapeStyle {
    let index = names.iter().position(|known| *known == name).unwrap_or_default();
    let colour = colour(names, name);
    if (index / COLOURS.len()).is_multiple_of(2) { colour.filled() } else { colour.stroke_width(1) }
}

fn draw_legend<'a>(area: &Area<'a>, names: &[&str], entries: u32) -> Drawn<'a> {
    for (i, name) in (0u32..).zip(names) {
        let (x, y) = ((LEGEND.1 * (i % entries) + 24) as i32, (LEGEND.0 * (i / entries) + 14) as i32);
        let colour = colour(names, name);
        area.draw(&PathElement::new([(x, y), (x + 26, y)], colour.stroke_width(2)))?;
        area.draw(&Circle::new((x + 13, y), 3, mark(names, name)))?;
        area.draw(&Text::new(*name, (x + 34, y - 7), ("sans-serif", 14)))?;
    }
    Ok(())
}

fn draw_panel<'a>(area: &Area<'a>, panel: &Panel, measured: &[Vec<Option<Measured>>], names: &[&str]) -> Drawn<'a> {
    let xs = panel.series.iter().flat_map(|series| &series.points).map(|point| point.x);
    let ends = measured.iter().flatten().flatten().flat_map(|measured| {
        let half = bar(panel.bars, measured);
        let mean = measured.sample.mean;
        // On a logarithmic axis a bar that would reach 0 is cut at the bottom.
        [mean, mean + half, if panel.log_y && half >= mean { mean } else { mean - half }]
    });
    let across = Scale::of_points(panel.x.log, xs);
    let up = Scale::of_values(panel.log_y, ends);
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .margin_right(16)
        .caption(&panel.title, ("sans-serif", 15))
        .x_label_area_size(38)
        .y_label_area_size(58)
        .build_cartesian_2d(across.clone(), up.clone())?;
    chart
        .configure_mesh()
        .x_desc(panel.x.label)
        .y_desc(panel.measure.label())
        .bold_line_style(RGBColor(0xe4, 0xe4, 0xe4))
        .light_line_style(WHITE)
        .draw()?;
    for (series, measured) in panel.series.iter().zip(measured) {
        let colour = colour(names, &series.name);
        let points: Vec<(f64, f64, f64, f64)> = series
            .points
            .iter()
            .zip(measured)
            .filter_map(|(point, measured)| {
                let measured = measured.as_ref()?;
                let (mean, half) = (measured.sample.mean, bar(panel.bars, measured));
                let y = |value: f64| up.place(value).clamp(up.least, up.most);
                mean.is_finite().then(|| (across.place(point.x), y(mean - half), y(mean), y(mean + half)))
            })
            .collect();
        chart.draw_series(LineSeries::new(points.iter().map(|p| (p.0, p.2)), colour.stroke_width(2)))?;
        chart.draw_series(points.iter().map(|p| PathElement::new([(p.0, p.1), (p.0, p.3)], colour)))?;
        let mark = mark(names, &series.name);
        chart.draw_series(points.iter().map(|p| Circle::new((p.0, p.2), 3, mark)))?;
    }
    Ok(())
}

/// Returns half the length of an error bar.
fn bar(bars: Bars, measured: &Measured) -> f64 {
    match bars {
        Bars::StdDev => measured.sample.std_dev,
        Bars::Confidence => 1.96 * measured.sample.std_error(),
    }
}

#[cfg(test)]
mod tests;
