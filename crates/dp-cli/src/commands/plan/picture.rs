//! The expected loss of each method over epsilon (SVG).

use dp::planning::Planning;
use dp_optim::auto::Method;

use crate::chart::{self, Axis, BLUE, Band, Chart, GREEN, Mark, ORANGE, Series};
use crate::failure::Failure;

/// Width and height.
const SIZE: (u32, u32) = (800, 500);
/// Number of epsilons.
const POINTS: i32 = 60;
/// The factor by which the axis extends a single epsilon on each side.
const AROUND: f64 = 10.0;

/// Draws from the smallest to the largest epsilon.
///
/// # Errors
/// As [`Planning::at`].
pub(super) fn svg(planning: &Planning, n: u64, epsilons: &[f64]) -> Result<String, Failure> {
    let [Some(&least), Some(&most)] = [epsilons.first(), epsilons.last()] else {
        return Err(Failure::usage("--epsilon", "there is nothing to draw"));
    };
    let (low, high) = if least < most { (least, most) } else { (least / AROUND, most * AROUND) };
    let mut range = Vec::new();
    let mut methods: Vec<(Method, Vec<(f64, f64)>)> = Vec::new();
    for i in 0..=POINTS {
        let epsilon = match i {
            POINTS => high,
            _ => low * (high / low).powf(f64::from(i) / f64::from(POINTS)),
        };
        let forecast = planning.at(n, epsilon)?;
        range.push((epsilon, forecast.expected_loss_range[0], forecast.expected_loss_range[1]));
        for method in forecast.methods {
            let point = (epsilon, method.expected_loss);
            match methods.iter_mut().find(|(known, _)| *known == method.method) {
                Some((_, points)) => points.push(point),
                None => methods.push((method.method, vec![point])),
            }
        }
    }
    let highest = methods.iter().flat_map(|(_, points)| points).map(|point| point.1).fold(0.0, f64::max);
    let colour = |method| match method {
        Method::ObjectivePerturbation => BLUE,
        Method::AcceleratedDescent => ORANGE,
        Method::OutputPerturbation => GREEN,
    };
    // The first method, which auto usually takes, is on top.
    let series = methods.into_iter().rev().map(|(method, points)| Series {
        label: Some(method.name().to_owned()),
        colour: colour(method),
        mark: Mark::Line,
        points,
    });
    let chart = Chart {
        title: format!("Expected loss of a private model on {n} rows"),
        x: Axis { logarithmic: true, ..Axis::linear("epsilon", (low, high)) },
        y: Axis { percent: true, ..Axis::linear("expected loss", (0.0, (1.05 * highest).min(1.0))) },
        band: Some(Band { label: "range of auto".to_owned(), colour: BLUE, points: range }),
        series: series.collect(),
        legend_right: true,
        legend_low: false,
    };
    chart::svg(&[chart], 1, SIZE)
}
