//! Rows in a temporary file: filling it, the order under a key, one pass and single rows, in microseconds a row, beside the same
//! bytes written to and read from a plain file of the same folder in the same run.
//!
//! `DP_SPOOL_ROWS` is the number of rows (a million by default), of 51 numbers each. Files that the system keeps in memory are
//! read from there: for the disk itself, take more rows than memory.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::time::Instant;

use dp_data::spool::{Spool, SpoolOptions, SpoolWriter};
use dp_data::{Examples, Order, PassRequest, RowSource};
use dp_mechanisms::SeededRng;
use rand::RngExt as _;

const DIM: usize = 51;
/// Rows that are generated, and then appended again and again.
const PART: usize = 10_000;
/// Rows that are gathered at a time, from places about 130 rows apart, as batches of DP-SGD are.
const BATCH: usize = 7_688;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Returns microseconds a row.
fn timed(rows: usize, work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64() * 1e6 / rows as f64)
}

fn filled(options: &SpoolOptions, part: &Examples<f64>, n: usize) -> Outcome<Spool<f64>> {
    let mut writer = SpoolWriter::create(options, DIM, false)?.with_bounds(1.0, 1.0);
    for _ in 0..n / PART {
        writer.append(part.clone())?;
    }
    Ok(writer.finish()?)
}

fn pass(spool: &mut Spool<f64>, order: Order) -> Outcome<()> {
    let mut pass = spool.open_pass(&PassRequest { pass: 0, order })?;
    while let Some(block) = pass.next_block()? {
        black_box(block.targets);
    }
    Ok(())
}

/// Writes and reads as many bytes as the rows have.
fn plain(n: usize) -> Outcome<(f64, f64)> {
    let mut bytes = vec![1u8; 1 << 20];
    let chunks = (n * (DIM + 1) * 8).div_ceil(bytes.len());
    let mut file: File = tempfile::tempfile()?;
    let write = timed(n, || Ok((0..chunks).try_for_each(|_| file.write_all(&bytes))?))?;
    file.seek(SeekFrom::Start(0))?;
    let read = timed(n, || Ok((0..chunks).try_for_each(|_| file.read_exact(&mut bytes))?))?;
    Ok((write, read))
}

#[allow(clippy::print_stdout)]
fn main() -> Outcome<()> {
    let asked = std::env::var("DP_SPOOL_ROWS").ok().and_then(|n| n.parse().ok());
    let n: usize = asked.unwrap_or(1_000_000usize).next_multiple_of(PART);
    let mut rng = SeededRng::new(1);
    let values = (0..PART * DIM).map(|_| rng.random_range(-0.1..0.1)).collect();
    let part = Examples::dense(values, vec![1.0; PART], DIM)?;
    let (write, read) = plain(n)?;
    println!("{n} rows of {DIM} numbers, microseconds a row; a plain file: written {write:.2}, read {read:.2}");
    println!("{:<10}{:>8}{:>10}{:>8}{:>8}", "", "fill", "shuffle", "pass", "gather");
    for encrypted in [false, true] {
        let options = SpoolOptions { encrypted, ..SpoolOptions::default() };
        let mut spool = None;
        let fill = timed(n, || {
            spool = Some(filled(&options, &part, n)?);
            Ok(())
        })?;
        let Some(mut spool) = spool else { continue };
        let order = Order::Keyed { key: [1; 32], fresh_each_pass: false };
        let shuffle = timed(n, || {
            drop(spool.open_pass(&PassRequest { pass: 0, order })?);
            Ok(())
        })?;
        let pass = timed(n, || pass(&mut spool, order))?;
        let batches = (n / BATCH).clamp(1, 100);
        let gather = timed(batches * BATCH, || {
            for _ in 0..batches {
                let mut positions: Vec<u32> = (0..BATCH).map(|_| rng.random_range(0..n as u32)).collect();
                positions.sort_unstable();
                black_box(spool.gather(&positions)?.targets);
            }
            Ok(())
        })?;
        let name = if encrypted { "encrypted" } else { "plain" };
        println!("{name:<10}{fill:>8.2}{shuffle:>10.2}{pass:>8.2}{gather:>8.2}");
    }
    Ok(())
}
