//! Numeric columns of some rows of a text or of typed cells, parsed and scaled together.
//!
//! Features, counts and errors equal those of [`NumericPlan::encode`](super::plan::NumericPlan): short decimals are parsed by
//! [`short_decimals`](super::short_decimals), numbers are taken as they are, every other cell by the plan, and the scaling
//! performs the plan's operations in the same order.

use core::ops::Range;

use pulp::{Arch, Simd, WithSimd};
#[cfg(target_arch = "x86_64")]
use pulp::{NullaryFnOnce, x86::V3};

use super::plan::{CellOutcome, ColumnPlan, Scaling};
use super::row::{ColumnTally, RowBuffer};
#[cfg(target_arch = "x86_64")]
use super::short_decimals::parse_8_by_bytes;
use super::short_decimals::{BLANK, LANES, LONGEST, parse_8, parse_16};
use super::{Cell, parse_number};
use super::{Encoder, Stage};
use crate::error::DataError;

/// Cells parsed together.
const CELLS: usize = 256;

/// Some rows, whose numeric cells are encoded together.
pub(crate) struct NumericBlock {
    arch: Arch,
    /// The columns of this block: positions in the schema.
    columns: Vec<usize>,
    /// All columns with features, in the order of the schema.
    pieces: Vec<Piece>,
    scaling: Columns,
    tallies: Tallies,
    cells: Cells,
    /// `numbers[k * row + j]`: the number, then the feature, of column `j`; NaN for none.
    numbers: Vec<f64>,
    rows: Vec<RowState>,
}

/// Consecutive columns.
enum Piece {
    /// Numeric columns, positions in the block, whose features begin here.
    Numbers { first: u32, columns: Range<usize> },
    /// A column that is encoded by itself: its position in the schema.
    Single(usize),
}

/// The public numbers of each column.
#[derive(Default)]
struct Columns {
    min: Vec<f64>,
    max: Vec<f64>,
    half_low: Vec<f64>,
    half_width: Vec<f64>,
    factor: Vec<f64>,
    offset: Vec<f64>,
    with_log1p: Vec<usize>,
    /// True if no number is a marker of missing values.
    takes_numbers: Vec<bool>,
}

/// Statistics of each column since they were last taken.
struct Tallies {
    clamped: Vec<u64>,
    first: Vec<f64>,
    varies: Vec<u64>,
}

/// The cells of a block: their ends in the text, their lengths, and the 16 bytes before their ends as two words.
#[derive(Default)]
struct Cells {
    ends: Vec<usize>,
    lengths: Vec<u64>,
    low: Vec<u64>,
    high: Vec<u64>,
    /// Not 0 for cells that are not short decimals.
    marks: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum RowState {
    Valid,
    Null,
    Refused,
}

impl NumericBlock {
    pub(crate) fn new(encoder: &Encoder) -> Self {
        let (mut columns, mut pieces, mut scaling) = (Vec::new(), Vec::new(), Columns::default());
        for (position, plan) in encoder.columns.iter().enumerate().filter(|(_, plan)| plan.width() > 0) {
            let Some(of_column) = plan.scaling() else {
                pieces.push(Piece::Single(position));
                continue;
            };
            scaling.push(of_column);
            columns.push(position);
            match pieces.last_mut() {
                Some(Piece::Numbers { columns, .. }) => columns.end += 1,
                _ => pieces.push(Piece::Numbers { first: plan.first(), columns: columns.len() - 1..columns.len() }),
            }
        }
        let count = columns.len();
        let mut block = Self {
            arch: Arch::new(),
            columns,
            pieces,
            scaling,
            tallies: Tallies { clamped: vec![0; count], first: vec![f64::NAN; count], varies: vec![0; count] },
            cells: Cells::default(),
            numbers: Vec::new(),
            rows: Vec::new(),
        };
        let room = (block.rows_at_once() * count).next_multiple_of(LANES);
        let Cells { ends, lengths, low, high, marks } = &mut block.cells;
        ends.resize(room, 0);
        [lengths, low, high, marks].into_iter().for_each(|words| words.resize(room, 0));
        block.numbers.resize(room, 0.0);
        block
    }

    /// Returns the columns of the block, as positions in the schema.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Returns the number of rows that are best encoded together.
    pub(crate) fn rows_at_once(&self) -> usize {
        (CELLS / self.columns.len().max(1)).max(1)
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Adds a row, given the places of its cells in `text`; at most [`rows_at_once`](Self::rows_at_once) rows.
    #[inline]
    pub(crate) fn push(&mut self, text: &[u8], places: impl Iterator<Item = (usize, usize)>) {
        let row = self.begin_row();
        let mut longest = 0;
        let Cells { ends, lengths, .. } = &mut self.cells;
        let cells = ends[row.clone()].iter_mut().zip(&mut lengths[row.clone()]);
        for ((start, end), (place, length)) in places.zip(cells) {
            (*place, *length) = (end, (end - start) as u64);
            longest = longest.max(end - start);
        }
        self.cells.read_words(text, row, longest);
    }

    /// Begins a valid row, and returns the places of its cells.
    fn begin_row(&mut self) -> Range<usize> {
        let first = self.columns.len() * self.rows.len();
        self.rows.push(RowState::Valid);
        first..first + self.columns.len()
    }

    /// As [`push`](Self::push) for cells without quotes, given the columns' runs of consecutive cells: of each run the end of the
    /// cell before it and the ends of its cells, from `first` on.
    #[inline]
    pub(crate) fn push_runs<'e>(&mut self, text: &[u8], first: usize, runs: impl Iterator<Item = &'e [u32]>) {
        let mut column = self.begin_row().start;
        for ends in runs {
            let (before, ends) = (&ends[..ends.len() - 1], &ends[1..]);
            let run = column..column + ends.len();
            column = run.end;
            let Cells { ends: places, lengths, .. } = &mut self.cells;
            let (places, lengths) = (&mut places[run.clone()], &mut lengths[run.clone()]);
            let mut longest = 0;
            for i in 0..ends.len() {
                let length = ends[i].wrapping_sub(before[i]).wrapping_sub(1);
                longest = if length > longest { length } else { longest };
                (places[i], lengths[i]) = (first + ends[i] as usize, u64::from(length));
            }
            self.cells.read_words(text, run, longest as usize);
        }
    }

    /// Encodes the rows that were added since [`clear`](Self::clear).
    pub(crate) fn encode(&mut self, encoder: &Encoder, text: &[u8], row: &mut RowBuffer) {
        let count = self.columns.len() * self.rows.len();
        let padded = count.next_multiple_of(LANES);
        let Cells { ends, lengths, low, high, marks } = &mut self.cells;
        lengths[count..padded].fill(1);
        high[count..padded].fill(BLANK);
        let (lengths, low, high, marks) = (&lengths[..padded], &low[..padded], &high[..padded], &mut marks[..padded]);
        Parse { lengths, low, high, marks: &mut *marks, numbers: &mut self.numbers[..padded] }.dispatch(self.arch);
        let width = self.columns.len();
        if marks[..count].iter().fold(0, |any, mark| any | mark) != 0 {
            row.prepare(encoder.columns.len());
            for (r, state) in self.rows.iter_mut().enumerate() {
                for (j, i) in (width * r..width * (r + 1)).enumerate().filter(|&(_, i)| marks[i] != 0) {
                    let cell = &text[ends[i] - lengths[i] as usize..ends[i]];
                    let plain = if self.scaling.takes_numbers[j] { parse_number(cell) } else { None };
                    let other = || number(encoder, self.columns[j], cell.into(), row, state);
                    self.numbers[i] = plain.unwrap_or_else(other);
                }
            }
        }
        self.scale();
    }

    /// Adds a row of typed cells, given the cell of each column of the schema; at most [`rows_at_once`](Self::rows_at_once)
    /// rows. [`scale`](Self::scale) encodes them.
    #[inline]
    pub(crate) fn push_cells<'c>(&mut self, encoder: &Encoder, cell: impl Fn(usize) -> Cell<'c>, row: &mut RowBuffer) {
        let first = self.columns.len() * self.rows.len();
        let mut state = RowState::Valid;
        for (j, &position) in self.columns.iter().enumerate() {
            self.numbers[first + j] = match cell(position) {
                Cell::Number(number) if self.scaling.takes_numbers[j] && number.is_finite() => number,
                cell => {
                    row.prepare(encoder.columns.len());
                    number(encoder, position, cell, row, &mut state)
                }
            };
        }
        self.rows.push(state);
    }

    /// Clamps and scales the numbers of the rows.
    pub(crate) fn scale(&mut self) {
        let width = self.columns.len();
        let count = width * self.rows.len();
        let (columns, tallies) = (&self.scaling, &mut self.tallies);
        self.arch.dispatch(Clamp { columns, tallies, numbers: &mut self.numbers[..count] });
        for &column in &columns.with_log1p {
            self.numbers[..count].iter_mut().skip(column).step_by(width).for_each(|number| *number = number.ln_1p());
        }
        self.arch.dispatch(Scale { columns, numbers: &mut self.numbers[..count] });
    }

    /// Adds the statistics to those of `row`, and starts anew.
    pub(crate) fn give_tallies(&mut self, row: &mut RowBuffer) {
        let Tallies { clamped, first, varies } = &mut self.tallies;
        for (j, &position) in self.columns.iter().enumerate() {
            row.tally(position).append(&ColumnTally::of_numbers(clamped[j], first[j], varies[j] != 0));
        }
        clamped.fill(0);
        first.fill(f64::NAN);
        varies.fill(0);
    }
}

impl Cells {
    /// Reads the words before the ends of these cells, of which the longest has this many characters. The first words of cells of up
    /// to 8 characters are not used. Zeros, which are no digits, stand where the text begins later.
    #[inline]
    fn read_words(&mut self, text: &[u8], cells: Range<usize>, longest: usize) {
        let Self { ends, low, high, .. } = self;
        let ends = &ends[cells.clone()];
        let read = |bytes: usize, words: &mut [u64]| {
            for (end, word) in ends.iter().zip(words) {
                let found = end.checked_sub(bytes).and_then(|first| text.get(first..)?.first_chunk());
                *word = found.map_or(0, |bytes| u64::from_le_bytes(*bytes));
            }
        };
        read(LONGEST / 2, &mut high[cells.clone()]);
        if longest > LONGEST / 2 {
            read(LONGEST, &mut low[cells]);
        }
    }
}

/// Returns the number in a cell of a column; NaN and another state of the row if there is none.
fn number(encoder: &Encoder, position: usize, cell: Cell<'_>, row: &mut RowBuffer, state: &mut RowState) -> f64 {
    match encoder.columns[position].number(cell, row, position) {
        Ok(number) => number,
        Err(outcome) => {
            if *state != RowState::Refused {
                *state = if let CellOutcome::Refused(_) = outcome { RowState::Refused } else { RowState::Null };
            }
            f64::NAN
        }
    }
}

impl Encoder {
    /// Encodes row `i` of a block; `cell` returns its cells by their column.
    pub(crate) fn encode_row_of_block<'c, C: Into<Cell<'c>>>(
        &self,
        (block, i): (&NumericBlock, usize),
        stage: Stage,
        cell: impl Fn(usize) -> C,
        label: Option<C>,
        row: &mut RowBuffer,
    ) -> Result<(), DataError> {
        if block.rows[i] == RowState::Refused {
            // The first cell in the order of the columns is reported.
            return self.encode_stage(stage, cell, label, row);
        }
        let width = block.columns.len();
        let numbers = &block.numbers[width * i..width * (i + 1)];
        row.prepare(self.columns.len());
        let mut is_null = block.rows[i] == RowState::Null;
        for piece in &block.pieces {
            match piece {
                Piece::Numbers { first, columns } => row.push_all(*first, &numbers[columns.clone()]),
                Piece::Single(position) => is_null |= self.encode_cell(*position, cell(*position).into(), row)?,
            }
        }
        self.encode_label(label.map(Into::into), is_null, row)?;
        if let Stage::Features = stage {
            self.finish_features(row);
        }
        Ok(())
    }
}

impl ColumnPlan {
    fn scaling(&self) -> Option<Scaling> {
        if let Self::Numeric(plan) = self { plan.scaling() } else { None }
    }

    /// Returns the number in a cell of a numeric column.
    fn number(&self, cell: Cell<'_>, row: &mut RowBuffer, position: usize) -> Result<f64, CellOutcome> {
        match self {
            Self::Numeric(plan) => plan.number(cell, row.tally(position)),
            Self::Drop | Self::Categorical(_) => Ok(f64::NAN),
        }
    }
}

impl Columns {
    fn push(&mut self, scaling: Scaling) {
        let Scaling { range, log1p, half_low, half_width, factor, offset, takes_numbers } = scaling;
        self.takes_numbers.push(takes_numbers);
        if log1p {
            self.with_log1p.push(self.min.len());
        }
        self.min.push(range.0);
        self.max.push(range.1);
        self.half_low.push(half_low);
        self.half_width.push(half_width);
        self.factor.push(factor);
        self.offset.push(offset);
    }
}

struct Parse<'b> {
    lengths: &'b [u64],
    low: &'b [u64],
    high: &'b [u64],
    marks: &'b mut [u64],
    numbers: &'b mut [f64],
}

impl Parse<'_> {
    /// Parses, groups of short cells by `short`.
    #[inline(always)]
    fn run(self, short: impl Fn(&[u64; LANES], &[u64; LANES], &mut [f64; LANES], &mut [u64; LANES])) {
        let Self { lengths, low, high, marks, numbers } = self;
        let cells = lengths.as_chunks::<LANES>().0.iter().zip(low.as_chunks().0).zip(high.as_chunks().0);
        let results = marks.as_chunks_mut::<LANES>().0.iter_mut().zip(numbers.as_chunks_mut().0);
        for (((lengths, low), high), (marks, numbers)) in cells.zip(results) {
            let (mut shortest, mut longest) = (u64::MAX, 0);
            for &length in lengths {
                shortest = if length < shortest { length } else { shortest };
                longest = if length > longest { length } else { longest };
            }
            if longest <= 8 {
                short(high, lengths, numbers, marks);
            } else if shortest > LONGEST as u64 {
                marks.fill(1);
            } else {
                parse_16(low, high, lengths, numbers, marks);
            }
        }
    }

    /// Parses with the instructions of the machine.
    fn dispatch(self, arch: Arch) {
        // Long cells are parsed by the widest instructions, which the code for AVX2 would not use.
        #[cfg(target_arch = "x86_64")]
        let by_bytes = match arch {
            Arch::V3(simd) => Some(simd),
            Arch::V4(simd) if self.lengths.iter().all(|&length| length <= 8) => Some(*simd),
            _ => None,
        };
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = by_bytes {
            return simd.vectorize(ByBytes { simd, parse: self });
        }
        arch.dispatch(self);
    }
}

impl WithSimd for Parse<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        self.run(parse_8);
    }
}

/// Cells to parse with AVX2.
#[cfg(target_arch = "x86_64")]
struct ByBytes<'b> {
    simd: V3,
    parse: Parse<'b>,
}

#[cfg(target_arch = "x86_64")]
impl NullaryFnOnce for ByBytes<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, parse } = self;
        parse.run(|words, lengths, out, marks| parse_8_by_bytes(simd, words, lengths, out, marks));
    }
}

/// Clamps numbers to the ranges of their columns, and counts.
struct Clamp<'b> {
    columns: &'b Columns,
    tallies: &'b mut Tallies,
    numbers: &'b mut [f64],
}

impl WithSimd for Clamp<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { columns: Columns { min, max, .. }, tallies: Tallies { clamped, first, varies }, numbers } = self;
        let width = min.len();
        if width == 0 {
            return;
        }
        let (min, max) = (&min[..width], &max[..width]);
        let (clamped, first, varies) = (&mut clamped[..width], &mut first[..width], &mut varies[..width]);
        for row in numbers.chunks_exact_mut(width) {
            for j in 0..width {
                let number = row[j];
                // NaN is neither below nor above.
                let (is_below, is_above) = (number < min[j], number > max[j]);
                let value = if is_below { min[j] } else { number };
                let value = if is_above { max[j] } else { value };
                clamped[j] += u64::from(is_below | is_above);
                let seen = if first[j].is_nan() { value } else { first[j] };
                varies[j] |= u64::from((value < seen) | (value > seen));
                first[j] = seen;
                row[j] = value;
            }
        }
    }
}

/// Turns clamped and transformed numbers into features.
struct Scale<'b> {
    columns: &'b Columns,
    numbers: &'b mut [f64],
}

impl WithSimd for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { columns: Columns { half_low, half_width, factor, offset, .. }, numbers } = self;
        let width = half_low.len();
        if width == 0 {
            return;
        }
        let (half_low, half_width) = (&half_low[..width], &half_width[..width]);
        let (factor, offset) = (&factor[..width], &offset[..width]);
        for row in numbers.chunks_exact_mut(width) {
            for j in 0..width {
                let share = (0.5 * row[j] - half_low[j]) / half_width[j];
                let share = if share < 0.0 { 0.0 } else { share };
                let share = if share > 1.0 { 1.0 } else { share };
                row[j] = factor[j] * share + offset[j];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Encoding;
    use crate::schema::Schema;

    #[test]
    fn features_have_the_same_bits_with_every_instruction_set() {
        let schema = "missing = ['']\n\
            label = { column = 'y', positive = '1', negative = '0' }\n\
            columns.a = { type = 'numeric', min = -3, max = 700 }\n\
            columns.b = { type = 'numeric', min = 0, max = 1e9, log1p = true }\n\
            columns.c = { type = 'numeric', min = 0.1, max = 0.7, on_missing = 'neutral' }";
        let encoder = Encoder::new(&Schema::parse("s.toml", schema).unwrap(), Encoding::UNIT_ROWS).unwrap();
        let rows = [
            "-12.5,1234567.25,0.3",
            "699.999,0,0.1",
            "0.1,123456789012345678,0.7000001",
            "1e2,-7,",
            "3,.5,-0",
            "1,2,3",
            "-4,55.5,0.6",
            "7,8.,.9",
        ];
        let text = format!("0123456789abcdef{}", rows.join(","));
        let (mut places, mut start) = (Vec::new(), 16);
        for cell in rows.iter().flat_map(|row| row.split(',')) {
            places.push((start, start + cell.len()));
            start += cell.len() + 1;
        }
        let bits = |arch: Arch| {
            let mut block = NumericBlock { arch, ..NumericBlock::new(&encoder) };
            places.chunks(3).for_each(|places| block.push(text.as_bytes(), places.iter().copied()));
            let mut row = RowBuffer::new(&encoder);
            block.encode(&encoder, text.as_bytes(), &mut row);
            block.give_tallies(&mut row);
            let counts: Vec<_> = row.tallies().iter().map(|tally| (tally.clamped, tally.neutral)).collect();
            (block.numbers[..24].iter().map(|number| number.to_bits()).collect::<Vec<_>>(), counts)
        };
        let expected = bits(Arch::Scalar);
        assert_eq!(expected.1, [(2, 0), (2, 0), (4, 1)]);
        assert_eq!(bits(Arch::new()), expected);
        #[cfg(target_arch = "x86_64")]
        if let Some(v3) = V3::try_new() {
            assert_eq!(bits(Arch::V3(v3)), expected);
        }
    }
}
