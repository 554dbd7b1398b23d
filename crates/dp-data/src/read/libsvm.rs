//! Lines of the form `label index:value index:value ...`.

use super::lines::{Line, Lines};
use crate::encode::{LibsvmFormat, MAX_FEATURES, RowBuffer, parse_number, parse_whole};
use crate::error::{DataError, DataErrorKind};

/// The label and the features of one line, not yet checked.
pub(super) struct LibsvmLine<'a> {
    pub(super) label: &'a [u8],
    features: &'a [u8],
    pub(super) line: u64,
}

impl<'a> LibsvmLine<'a> {
    /// Returns the next line that is neither blank nor a comment.
    pub(super) fn next(lines: &'a mut Lines) -> Result<Option<Self>, DataError> {
        loop {
            let Some(place) = lines.next_place()? else { return Ok(None) };
            if !content(lines.line(place.clone())).is_empty() {
                let line = lines.line(place);
                let content = content(line);
                let end = content.iter().position(u8::is_ascii_whitespace).unwrap_or(content.len());
                let (label, features) = content.split_at(end);
                return Ok(Some(Self { label, features, line: line.number }));
            }
        }
    }
}

/// Returns a line without its comment and the blanks around.
fn content(line: Line<'_>) -> &[u8] {
    let end = memchr::memchr(b'#', line.bytes).unwrap_or(line.bytes.len());
    line.bytes[..end].trim_ascii()
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
    let index: u32 = parse_whole(name)?.try_into().ok()?;
    if zero_based { Some(index) } else { index.checked_sub(1) }
}

fn syntax(message: &str) -> DataError {
    DataError::new(DataErrorKind::LibsvmSyntax, message).expected("label index:value index:value ...")
}
