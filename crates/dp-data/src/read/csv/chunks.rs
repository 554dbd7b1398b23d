//! Reading a table on several threads, in chunks of whole records.

use std::collections::HashMap;

use pulp::{Arch, Simd, WithSimd};

use super::tape::{BLOCK, bits};
use super::{CsvReader, Marks, Splitter, Text, skip_mark};
use crate::error::DataError;
use crate::read::text::{Chunk, ReadsChunks};
use crate::workers::Workers;

impl ReadsChunks for CsvReader {
    fn load(&mut self, chunk: Chunk) -> Vec<u8> {
        self.splitter.slow.reset();
        skip_mark(&mut self.splitter.slow);
        self.splitter.text.load(chunk)
    }

    fn lines(&self) -> u64 {
        self.splitter.text.lines()
    }
}

impl CsvReader {
    /// Passes `part(buffers)` and the number of lines before the chunk to `each` for chunk after chunk, in the order of the
    /// file. Each thread makes its buffers from a reader of its own, which ends after the records of a chunk.
    ///
    /// Afterwards this reader is at the first record that was in no chunk. With one thread there are no chunks.
    ///
    /// # Errors
    /// Those of the first chunk that has one, with the line of the file; those of `each`.
    pub(crate) fn for_each_chunk<B: ReadsChunks, T: Send, E: From<DataError>>(
        &mut self,
        buffers: impl Fn(Self) -> B + Sync,
        part: impl Fn(&mut B) -> Result<T, DataError> + Sync,
        mut each: impl FnMut(T, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { file, splitter: Splitter { text, options, .. }, header, line_ends, workers, .. } = self;
        let (arch, options) = (Arch::new(), *options);
        let reader = || Self {
            file: file.clone(),
            splitter: Splitter::new(Text::empty(), options),
            header: header.clone(),
            positions: HashMap::new(),
            line_ends: line_ends.clone(),
            workers: Workers::ONE,
        };
        let whole = |text: &[u8]| whole_records(arch, text, options);
        let place = |error: DataError, _| error.in_file(file);
        text.for_each_chunk(
            *workers,
            whole,
            || buffers(reader()),
            part,
            place,
            |result, lines_before| each(result.map_err(|error| error.after_lines(lines_before))?, lines_before),
        )
    }
}

/// Returns the length of the whole records with which `text` begins; `None` if a quote is not what RFC 4180 says. `text` begins
/// with a record.
fn whole_records(arch: Arch, text: &[u8], options: Marks) -> Option<usize> {
    if memchr::memchr(options.quote, text).is_none() {
        return Some(memchr::memrchr(b'\n', text).map_or(0, |end| end + 1));
    }
    // Quotes inside cells without quotes, which are text, are rare.
    arch.dispatch(WholeRecords { text, options }).or_else(|| whole_records_by_quote(text, options))
}

/// [`whole_records`], quote by quote.
fn whole_records_by_quote(text: &[u8], Marks { delimiter, quote }: Marks) -> Option<usize> {
    let (mut whole, mut at) = (0, 0);
    loop {
        let found = memchr::memchr(quote, &text[at..]);
        let outside = &text[at..found.map_or(text.len(), |found| at + found)];
        if let Some(line_end) = memchr::memrchr(b'\n', outside) {
            whole = at + line_end + 1;
        }
        let Some(found) = found else { return Some(whole) };
        at += found + 1;
        let before = at.checked_sub(2).map_or(b'\n', |before| text[before]);
        if before != delimiter && before != b'\n' && before != b'\r' {
            // Inside a cell without quotes, a quote is text.
            continue;
        }
        loop {
            let Some(found) = memchr::memchr(quote, &text[at..]) else { return Some(whole) };
            at += found + 1;
            match text.get(at) {
                Some(&next) if next == quote => at += 1,
                Some(&next) if next == delimiter || next == b'\n' || next == b'\r' => break,
                Some(_) => return None,
                None => return Some(whole),
            }
        }
    }
}

/// [`whole_records`] of a text in which every quote opens or closes a cell or is doubled, 64 bytes at a time; `None` for others.
struct WholeRecords<'t> {
    text: &'t [u8],
    options: Marks,
}

impl WithSimd for WholeRecords<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Option<usize> {
        let Self { text, options: Marks { delimiter, quote } } = self;
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        let mut last = [b'\n'; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        // Carried from block to block: all ones inside quotes; whether a quote may open at the first byte; whether a quote that
        // closed at the last byte is yet to be checked.
        let (mut inside, mut may_open, mut closed) = (0_u64, 1_u64, 0_u64);
        let mut whole = 0;
        for (block, start) in blocks.iter().chain([&last]).zip((0..).step_by(BLOCK)) {
            let (mut quotes, mut ends, mut lines) = ([0; BLOCK], [0; BLOCK], [0; BLOCK]);
            for i in 0..BLOCK {
                quotes[i] = u8::from(block[i] == quote);
                lines[i] = u8::from(block[i] == b'\n');
                ends[i] = lines[i] | u8::from(block[i] == delimiter) | u8::from(block[i] == b'\r');
            }
            let (quotes, ends, lines) = (bits(&quotes), bits(&ends), bits(&lines));
            // From each opening quote to the byte before the closing one.
            let quoted = parities(quotes) ^ inside;
            let (opening, closing) = (quotes & quoted, quotes & !quoted);
            let is_opened_well = opening & !(((ends | closing) << 1) | may_open) == 0;
            let goes_on = ends | quotes;
            let is_closed_well = (closing & !(goes_on >> 1) & (u64::MAX >> 1)) | (closed & !goes_on) == 0;
            if !(is_opened_well && is_closed_well) {
                return None;
            }
            let outside = lines & !quoted;
            // Line feeds beyond the text do not count.
            let of_text = if text.len() - start < BLOCK { (1 << (text.len() - start)) - 1 } else { u64::MAX };
            if let Some(line_end) = (outside & of_text).checked_ilog2() {
                whole = start + line_end as usize + 1;
            }
            inside = (quoted >> 63).wrapping_neg();
            may_open = (ends | closing) >> 63;
            closed = closing >> 63;
        }
        Some(whole)
    }
}

/// Returns for each bit whether the number of ones up to it is odd.
#[inline(always)]
fn parities(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::read::CsvOptions;

    #[test]
    fn whole_records_end_with_a_line_outside_quotes() {
        for (text, whole) in [
            ("", Some(0)),
            ("1,2", Some(0)),
            ("1,2\n3", Some(4)),
            ("1,\"2\n3\"", Some(0)),
            ("1,\"2\n3\"\n", Some(8)),
            ("1,\"2\n\"\"", Some(0)),
            ("\"1\"\r\n\"2", Some(5)),
            ("1\"\n2\"\n", Some(6)),
            ("\"1\"2\n", None),
            ("\n\n\"a\"\n\"", Some(6)),
        ] {
            let (text, options) = (text.as_bytes(), CsvOptions::default().marks().unwrap());
            for arch in [Arch::new(), Arch::Scalar] {
                assert_eq!(whole_records(arch, text, options), whole, "{text:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn blocks_of_text_have_the_records_of_single_quotes(
            pieces in prop::collection::vec(prop::sample::select(vec!["\"", "\"\"", "\",\"", "\"\n\"", ",", "\n", "\r", "a", "some text, "]), 0..200),
            ending in 0..70_usize,
        ) {
            let mut text = pieces.concat();
            text.extend(std::iter::repeat_n('x', ending));
            let (text, options) = (text.as_bytes(), CsvOptions::default().marks().unwrap());
            let expected = whole_records_by_quote(text, options);
            for arch in [Arch::new(), Arch::Scalar] {
                // Quotes in the middle of cells are left to the other function.
                let found = arch.dispatch(WholeRecords { text, options });
                prop_assert!(found.is_none() || found == expected, "{:?} {:?} {:?}", String::from_utf8_lossy(text), found, expected);
            }
        }

        #[test]
        fn blocks_of_well_quoted_text_are_cut(cells in prop::collection::vec(("[a,\n]{0,9}(\"\")?[b,\n]{0,90}", any::<bool>()), 1..40), left in 0..30_usize) {
            let text: String = cells.iter().map(|(cell, ends)| format!("\"{cell}\"{}", if *ends { "\n" } else { "," })).collect();
            let text = &text.as_bytes()[..text.len().saturating_sub(left)];
            let options = CsvOptions::default().marks().unwrap();
            let found = Arch::new().dispatch(WholeRecords { text, options });
            prop_assert_eq!(found, whole_records_by_quote(text, options), "{:?}", String::from_utf8_lossy(text));
            prop_assert!(found.is_some());
        }
    }
}
