//! Lines of the form `label index:value index:value ...`.

use super::{BYTE_ORDER_MARK, Input, read_error};
use crate::encode::{LibsvmFormat, MAX_FEATURES, RowBuffer, parse_number};
use crate::error::{DataError, DataErrorKind};
use crate::memory;
use std::io::{BufReader, Read};

/// Largest length of a line.
const LONGEST: usize = 64 * 1024 * 1024;

/// Reads libsvm lines, skipping blank lines and comments.
pub(super) struct LibsvmReader {
    file: String,
    source: BufReader<Box<dyn Read + Send>>,
    line_bytes: Vec<u8>,
    line: u64,
}

/// The label and the features of one line, not yet checked.
pub(super) struct LibsvmLine<'a> {
    pub(super) label: &'a [u8],
    features: &'a [u8],
    pub(super) line: u64,
}

impl LibsvmReader {
    pub(super) fn new(input: Input) -> Self {
        let (file, source, _) = input.into_parts();
        Self { file, source: BufReader::with_capacity(256 * 1024, source), line_bytes: Vec::new(), line: 0 }
    }

    pub(super) fn file(&self) -> &str {
        &self.file
    }

    pub(super) fn next_line(&mut self) -> Result<Option<LibsvmLine<'_>>, DataError> {
        loop {
            self.line_bytes.clear();
            self.line += 1;
            let read = memory::read_line(&mut self.source, LONGEST, &mut self.line_bytes)
                .map_err(|source| read_error(source).in_file(&self.file).at_line(self.line))?;
            if read == 0 {
                return Ok(None);
            }
            if read == LONGEST {
                return Err(syntax("a line is longer than 64 MiB").in_file(&self.file).at_line(self.line));
            }
            if self.line == 1 && self.line_bytes.starts_with(BYTE_ORDER_MARK) {
                self.line_bytes.drain(..BYTE_ORDER_MARK.len());
            }
            let length = memchr::memchr(b'#', &self.line_bytes).unwrap_or(self.line_bytes.len());
            self.line_bytes.truncate(length);
            if !self.line_bytes.trim_ascii().is_empty() {
                break;
            }
        }
        let content = self.line_bytes.trim_ascii();
        let end = content.iter().position(u8::is_ascii_whitespace).unwrap_or(content.len());
        let (label, features) = content.split_at(end);
        Ok(Some(LibsvmLine { label, features, line: self.line }))
    }
}

impl LibsvmLine<'_> {
    /// Collects the features in `row`, with indices counted from 0, and returns the number of features that they need.
    pub(super) fn collect(&self, format: &LibsvmFormat, row: &mut RowBuffer) -> Result<u32, DataError> {
        self.collect_features(format, row).map_err(|error| error.at_line(self.line))
    }

    fn collect_features(&self, format: &LibsvmFormat, row: &mut RowBuffer) -> Result<u32, DataError> {
        let limit = format.features.unwrap_or(MAX_FEATURES);
        // A feature takes at least four characters, including the blank before it; there may be an intercept.
        row.reserve(self.features.len() / 4 + 2)?;
        let mut next = 0_u32;
        let tokens = self.features.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty());
        for token in tokens {
            let colon = memchr::memchr(b':', token)
                .ok_or_else(|| syntax("a feature is not of the form index:value").found_cell(token))?;
            let (name, value) = (&token[..colon], &token[colon + 1..]);
            let index = parse_index(name, format.zero_based).filter(|&index| index < limit).ok_or_else(|| {
                let (first, last) = if format.zero_based { (0, limit - 1) } else { (1, limit) };
                DataError::new(DataErrorKind::LibsvmBadIndex, "a feature index is out of range")
                    .found_cell(name)
                    .expected(format!("a whole number from {first} to {last}"))
                    .help("check --zero-based and the declared number of features")
            })?;
            if index < next {
                return Err(DataError::new(DataErrorKind::LibsvmIndexOrder, "feature indices do not increase")
                    .found_cell(name)
                    .expected("strictly increasing indices"));
            }
            let value = parse_number(value).ok_or_else(|| {
                DataError::new(DataErrorKind::LibsvmBadValue, "a value is not a finite number")
                    .found_cell(value)
                    .expected("a decimal number; nan and inf are refused")
            })?;
            row.push(index, value);
            next = index + 1;
        }
        Ok(next)
    }
}

/// Returns the index counted from 0.
fn parse_index(name: &[u8], zero_based: bool) -> Option<u32> {
    let text = std::str::from_utf8(name).ok()?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let index: u32 = text.parse().ok()?;
    if zero_based { Some(index) } else { index.checked_sub(1) }
}

fn syntax(message: &str) -> DataError {
    DataError::new(DataErrorKind::LibsvmSyntax, message).expected("label index:value index:value ...")
}
