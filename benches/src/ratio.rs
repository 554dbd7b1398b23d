//! Alternating timing of two implementations, so that load on the machine affects both.

use crate::cpu_time::now;

/// Returns the minimum processor seconds of each over `repetitions` turns, after one warm-up each.
pub fn best_of(repetitions: usize, mut ours: impl FnMut(), mut baseline: impl FnMut()) -> (f64, f64) {
    let time = |f: &mut dyn FnMut()| {
        let start = now();
        f();
        (now() - start).as_secs_f64()
    };
    time(&mut ours);
    time(&mut baseline);
    (0..repetitions)
        .fold((f64::INFINITY, f64::INFINITY), |(a, b), _| (a.min(time(&mut ours)), b.min(time(&mut baseline))))
}
