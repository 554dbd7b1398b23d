//! `reading TABLE SCHEMA [--threads N] [--times 5]`: the shortest of some times in which a table is read into rows, in seconds.
//!
//! `benches/peers/speed.py` prints them beside those of other readers.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

use dp_data::read::{CsvOptions, Input, load_csv};
use dp_data::{Encoder, Encoding, Schema, Workers};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut files, mut threads, mut times) = (Vec::new(), NonZeroUsize::MIN, 5);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--threads" => threads = arguments.next().ok_or("a number of threads is missing")?.parse()?,
            "--times" => times = arguments.next().ok_or("a number of times is missing")?.parse()?,
            _ => files.push(argument),
        }
    }
    let [table, schema] = &files[..] else {
        return Err("usage: reading TABLE SCHEMA [--threads N] [--times 5]".into());
    };
    let encoder = Encoder::new(&Schema::parse(schema, &std::fs::read_to_string(schema)?)?, Encoding::UNIT_ROWS)?;
    let mut shortest = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        let input = Input::open(table)?.with_workers(Workers::new(threads));
        black_box(load_csv::<f64>(input, &encoder, &CsvOptions::default())?);
        shortest = shortest.min(start.elapsed().as_secs_f64());
    }
    println!("{shortest:.4}");
    Ok(())
}
