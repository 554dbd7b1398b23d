//! Parsing of numbers.

/// Parses the finite decimal number in `cell`, with optional surrounding blanks.
pub(crate) fn parse_number(cell: &[u8]) -> Option<f64> {
    if let Some(number) = short_integer(cell) {
        return Some(number);
    }
    let trimmed = cell.trim_ascii();
    let number: f64 = fast_float2::parse(trimmed).ok()?;
    number.is_finite().then_some(number)
}

/// Parses integers of up to 15 digits, which are exact in double precision: most cells of most tables.
fn short_integer(cell: &[u8]) -> Option<f64> {
    let digits = match cell.split_first() {
        Some((b'-', digits)) => digits,
        _ => cell,
    };
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    let mut magnitude = 0_u64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit);
    }
    let number = magnitude as f64;
    Some(if digits.len() < cell.len() { -number } else { number })
}
