//! Two ways of doing one thing, timed in turn, so that whatever slows the machine down slows both.

use crate::cpu_time::now;

/// The least processor seconds of each of the two over `repetitions` turns, after one warm-up each.
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
