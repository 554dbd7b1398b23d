//! A figure with its numbers.

use crate::cell::{Cell, Experiment};
use crate::figure::{Figure, Measure, Panel, Point};
use crate::statistics::Sample;
use crate::store::Store;

/// The measurements at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The setting shown: of several, the best.
    pub setting: Experiment,
    /// Its repetitions.
    pub sample: Sample,
}

/// A figure with its measurements; points that have not been run are absent.
#[derive(Debug, Clone)]
pub struct Results<'f> {
    /// The figure.
    pub figure: &'f Figure,
    /// The measurements by panel, series and point.
    pub measured: Vec<Vec<Vec<Option<Measured>>>>,
}

/// The indices of a point in a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of the panel.
    pub panel: usize,
    /// Index of the series in the panel.
    pub series: usize,
    /// Index of the point in the series.
    pub point: usize,
}

impl<'f> Results<'f> {
    /// Collects the figure's runs from the store, with this number of repetitions each.
    pub fn collect(figure: &'f Figure, store: &Store, repetitions: u32) -> Self {
        let of_panel = |panel: &Panel| -> Vec<Vec<Option<Measured>>> {
            let of_point = |point| measure(point, panel.measure, store, repetitions);
            panel.series.iter().map(|series| series.points.iter().map(of_point).collect()).collect()
        };
        Self { figure, measured: figure.panels.iter().map(of_panel).collect() }
    }

    /// Returns the measurements at `place`.
    pub fn at(&self, place: Place) -> Option<&Measured> {
        self.measured.get(place.panel)?.get(place.series)?.get(place.point)?.as_ref()
    }
}

fn measure(point: &Point, measure: Measure, store: &Store, repetitions: u32) -> Option<Measured> {
    let samples = point.settings.iter().filter_map(|&setting| {
        let outcomes = (0..repetitions).filter_map(|repetition| store.get(&Cell::new(setting, repetition)));
        // An overflowed objective has no mean and is shown as infinity.
        let values: Vec<f64> = outcomes.map(|outcome| measure.of(outcome)).collect();
        Some(Measured { setting, sample: Sample::of(&values)? })
    });
    samples.reduce(|best, this| {
        let better = match measure.rises() {
            true => this.sample.mean > best.sample.mean,
            false => this.sample.mean < best.sample.mean,
        };
        if better { this } else { best }
    })
}
