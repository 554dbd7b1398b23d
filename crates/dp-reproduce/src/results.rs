//! A figure with its numbers.

use crate::cell::{Cell, Experiment};
use crate::figure::{Figure, Measure, Panel, Point};
use crate::statistics::Sample;
use crate::store::Store;

/// What was measured at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The setting that is shown, the best if there were several.
    pub setting: Experiment,
    /// Its repetitions.
    pub sample: Sample,
}

/// A figure with what was measured; points that have not been run are absent.
#[derive(Debug, Clone)]
pub struct Results<'f> {
    /// The figure.
    pub figure: &'f Figure,
    /// Panel by panel, series by series, point by point.
    pub measured: Vec<Vec<Vec<Option<Measured>>>>,
}

/// A point of a figure by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Number of the panel.
    pub panel: usize,
    /// Number of the series in it.
    pub series: usize,
    /// Number of the point in that.
    pub point: usize,
}

impl<'f> Results<'f> {
    /// Collects the figure's runs from the store, so many repetitions of each.
    pub fn collect(figure: &'f Figure, store: &Store, repetitions: u32) -> Self {
        let of_panel = |panel: &Panel| -> Vec<Vec<Option<Measured>>> {
            let of_point = |point| measure(point, panel.measure, store, repetitions);
            panel.series.iter().map(|series| series.points.iter().map(of_point).collect()).collect()
        };
        Self { figure, measured: figure.panels.iter().map(of_panel).collect() }
    }

    /// What was measured at `place`.
    pub fn at(&self, place: Place) -> Option<&Measured> {
        self.measured.get(place.panel)?.get(place.series)?.get(place.point)?.as_ref()
    }
}

fn measure(point: &Point, measure: Measure, store: &Store, repetitions: u32) -> Option<Measured> {
    let samples = point.settings.iter().filter_map(|&setting| {
        let outcomes = (0..repetitions).filter_map(|repetition| store.get(&Cell::new(setting, repetition)));
        // An overflowed objective has no mean; infinity says so.
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
