use std::sync::Barrier;
use std::thread::ThreadId;

use dp_data::{Alternatives, Examples};
use dp_mechanisms::SeededRng;
use rand::Rng as _;

use super::*;
use crate::memory::MemorySource;

fn workers(threads: usize) -> Workers {
    Workers::new(NonZeroUsize::new(threads).unwrap())
}

fn source() -> MemorySource<f64> {
    MemorySource::new(Examples::dense(vec![0.5; 10], vec![1.0; 10], 1).unwrap(), 1.0, 1.0)
}

fn trainings(number: u64) -> Trainings<'static> {
    let sizes = Some(Sizes { records: 10, records_of_each: 5, rows: &|i| 10 * (i + 1) });
    Trainings { number, memory: 0, sizes }
}

fn until_cancelled(control: &Control<'_>) -> Result<(), Error> {
    loop {
        control.check()?;
        thread::yield_now();
    }
}

/// Numbers, words of the generators, threads of each training.
fn words(source: &mut dyn RowSource<f64>, number: u64, threads: usize) -> Vec<(u64, u64, ThreadId, usize)> {
    let mut rng = SeededRng::new(4);
    let control = &mut Control { workers: workers(threads), ..Control::default() };
    let found = trainings(number).collect(source, &mut rng.lend(), control, |i, source, rng, control| {
        assert_eq!(source.describe()?.n, 10);
        Ok((i, rng.next_u64(), thread::current().id(), control.workers.threads()))
    });
    found.unwrap()
}

#[test]
fn no_training_draws_what_depends_on_the_threads_or_on_another_training() {
    let here = thread::current().id();
    let without_thread = |found: Vec<(u64, u64, ThreadId, usize)>| -> Vec<(u64, u64)> {
        found.into_iter().map(|(i, word, ..)| (i, word)).collect()
    };
    let one = words(&mut source(), 20, 1);
    assert!(one.iter().all(|&(_, _, thread, workers)| thread == here && workers == 1));
    let mut children = SeededRng::new(4);
    let one: Vec<(u64, u64)> = without_thread(one);
    assert!(one.iter().zip(0..).all(|(&(i, word), k)| i == k && word == children.lend().child().next_u64()));
    for threads in [2, 3, 8, 100] {
        let several = words(&mut source(), 20, threads);
        assert!(several.iter().all(|&(_, _, thread, _)| thread != here));
        assert_eq!(without_thread(several), one, "{threads}");
        let alone = words(&mut Alternatives::new(&mut source(), Vec::new()), 20, threads);
        assert!(alone.iter().all(|&(_, _, thread, workers)| thread == here && workers == threads));
        assert_eq!(without_thread(alone), one, "{threads}");
    }
    assert!(words(&mut source(), 0, 3).is_empty());
}

/// No more threads compute than there may be, and few trainings have several each.
#[test]
fn threads_are_divided_among_the_trainings() {
    for (number, threads, of_each) in [(3, 2, 1), (2, 8, 4), (3, 8, 2), (10, 4, 1), (1, 5, 5), (5, 5, 1)] {
        let found = words(&mut source(), number, threads);
        assert!(found.iter().all(|&(.., threads)| threads == of_each), "{number} trainings, {threads} threads");
    }
}

/// Fewer trainings run side by side, or one, where there is no memory for more.
#[test]
fn trainings_without_memory_wait_for_one_another() {
    let without = |memory| {
        let control = &mut Control { workers: workers(4), ..Control::default() };
        let found = Trainings { memory, ..trainings(4) };
        let found = found.collect(&mut source(), &mut SeededRng::new(1).lend(), control, |_, _, _, control| {
            Ok((thread::current().id(), control.workers.threads()))
        });
        found.unwrap()
    };
    let here = thread::current().id();
    assert!(without(u64::MAX).into_iter().all(|(thread, workers)| thread == here && workers == 4));
    assert!(without(1000).into_iter().all(|(thread, workers)| thread != here && workers == 1));
}

#[test]
fn trainings_run_at_the_same_time() {
    let both = Barrier::new(2);
    let control = &mut Control { workers: workers(2), ..Control::default() };
    let run = trainings(6).run(&mut source(), &mut SeededRng::new(1).lend(), control, &|_, _, _, _| {
        both.wait();
        Ok(())
    });
    assert!(run.is_ok());
}

/// An error ends the others, which learn of it as of a cancellation, and is the one that is returned.
#[test]
fn the_first_error_ends_all_trainings() {
    for threads in [1, 2, 4] {
        let begun = Mutex::new(Vec::new());
        let control = &mut Control { workers: workers(threads), ..Control::default() };
        let found = trainings(1000).run(&mut source(), &mut SeededRng::new(1).lend(), control, &|i, _, _, control| {
            begun.lock().unwrap().push(i);
            if i == 3 {
                return Err(Error::Count { name: "third", value: i, range: "none" });
            }
            // Those after it wait for the cancellation.
            if i > 3 { until_cancelled(control) } else { Ok(()) }
        });
        assert!(matches!(found, Err(Error::Count { name: "third", .. })), "{found:?}");
        assert!(begun.into_inner().unwrap().len() <= 3 + threads);
    }
}

#[test]
fn a_caller_cancels_all_trainings() {
    for threads in [1, 3] {
        let cancelled = AtomicBool::new(false);
        let control = &mut Control { cancelled: Some(&cancelled), workers: workers(threads), ..Control::default() };
        let found = trainings(1000).run(&mut source(), &mut SeededRng::new(1).lend(), control, &|_, _, _, control| {
            cancelled.store(true, Ordering::Relaxed);
            until_cancelled(control)
        });
        assert!(matches!(found, Err(Error::Interrupted)), "{found:?}");
    }
}

/// Rows of all trainings are added up, on the thread of the caller.
#[test]
fn progress_is_that_of_all_trainings() {
    for threads in [1, 2, 3] {
        let (here, mut shown) = (thread::current().id(), Vec::new());
        let mut show = |at: Progress| {
            assert_eq!(thread::current().id(), here);
            shown.push(10 * at.pass + at.rows);
        };
        let control = &mut Control { progress: Some(&mut show), workers: workers(threads), ..Control::default() };
        let run = trainings(4).run(&mut source(), &mut SeededRng::new(1).lend(), control, &|i, _, _, control| {
            for pass in 0..=i {
                control.report(Progress { pass: 2 * pass + 1, rows: 0 });
            }
            Ok(())
        });
        run.unwrap();
        assert!(shown.is_sorted(), "{shown:?}");
        assert!(threads > 1 || (shown.len() == 10 + 4 && shown[..3] == [5, 10, 15]), "{shown:?}");
        assert_eq!(shown.last(), Some(&(10 + 20 + 30 + 40)));
    }
}

/// Without progress no training is asked to report any.
#[test]
fn nothing_is_reported_to_nobody() {
    for threads in [1, 2] {
        let control = &mut Control { workers: workers(threads), ..Control::default() };
        let run = trainings(3).run(&mut source(), &mut SeededRng::new(1).lend(), control, &|_, _, _, control| {
            assert!(control.progress.is_none());
            Ok(())
        });
        run.unwrap();
    }
}

#[test]
fn a_panic_in_a_training_is_that_of_the_caller() {
    for threads in [1, 2] {
        let run = std::panic::catch_unwind(|| {
            let control = &mut Control { workers: workers(threads), ..Control::default() };
            let _ = trainings(1000).run(&mut source(), &mut SeededRng::new(1).lend(), control, &|i, _, _, control| {
                assert_ne!(i, 1, "the second training");
                if i > 1 { until_cancelled(control) } else { Ok(()) }
            });
        });
        let message = run.unwrap_err();
        assert!(message.downcast_ref::<String>().is_some_and(|text| text.contains("the second training")));
    }
}

/// A training that reports nothing, since its time depends on records, does not report its end either.
#[test]
fn quiet_trainings_report_nothing() {
    for threads in [1, 2] {
        let mut show = |at: Progress| panic!("{at:?}");
        let control = &mut Control { progress: Some(&mut show), workers: workers(threads), ..Control::default() };
        let run = trainings(3).run(&mut source(), &mut SeededRng::new(1).lend(), control, &|_, _, _, _| Ok(()));
        run.unwrap();
    }
}

/// The caller's panic, here in a report, stops the trainings.
#[test]
fn a_panic_in_a_report_stops_the_trainings() {
    let run = std::panic::catch_unwind(|| {
        let mut show = |at: Progress| assert!(at.rows == 7, "a report");
        let control = &mut Control { progress: Some(&mut show), workers: workers(2), ..Control::default() };
        let _ = trainings(1000).run(&mut source(), &mut SeededRng::new(1).lend(), control, &|_, _, _, control| {
            control.report(Progress { pass: 0, rows: 1 });
            until_cancelled(control)
        });
    });
    assert!(run.is_err_and(|panic| panic.downcast_ref::<&str>() == Some(&"a report")));
}
