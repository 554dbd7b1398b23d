//! The trade-off between the two errors of an attacker: the claimed minimum and the errors of the attack.

use crate::chart::{self, Axis, BLUE, Chart, GREY, Mark, ORANGE, Series};
use crate::failure::Failure;

/// Width and height of a panel.
const PANEL: (u32, u32) = (420, 400);

/// Number of panels per row.
const COLUMNS: usize = 3;

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
    chart::svg(&panels.iter().map(of_panel).collect::<Vec<_>>(), COLUMNS, PANEL)
}

fn of_panel(panel: &Panel) -> Chart {
    let series =
        |label: Option<&str>, colour, mark, points| Series { label: label.map(str::to_owned), colour, mark, points };
    Chart {
        title: panel.title.clone(),
        x: Axis::rate("type I error: false accusations"),
        y: Axis::rate("type II error: missed"),
        band: None,
        series: vec![
            series(None, GREY, Mark::Thin, vec![(0.0, 1.0), (1.0, 0.0)]),
            series(Some("least by the claim"), BLUE, Mark::Line, panel.claimed.clone()),
            series(Some("reached (counted)"), ORANGE, Mark::Dots, panel.reached.clone()),
        ],
        legend_right: true,
        legend_low: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_audit_has_its_panel() {
        let panel = |i: usize| Panel {
            title: format!("audit <{i}>"),
            claimed: vec![(0.0, 1.0), (0.3, 0.3), (1.0, 0.0)],
            reached: vec![(0.5, 0.45), (f64::NAN, 0.5), (0.2, f64::INFINITY)],
        };
        for count in [1, 2, 5] {
            let text = svg(&(0..count).map(panel).collect::<Vec<_>>()).unwrap();
            assert_eq!(text.matches("missed").count(), count);
            // One circle for the point and one for the legend.
            assert_eq!(text.matches("<circle").count(), 2 * count);
        }
        assert!(svg(&[]).unwrap().starts_with("<svg"));
    }
}
