//! Parsing of numbers.

/// Parses the finite decimal number in `cell`, with optional surrounding blanks, to the nearest double.
///
/// # Examples
/// ```
/// use dp_data::encode::parse_number;
/// assert_eq!(parse_number(b" -1.5e3 "), Some(-1500.0));
/// assert_eq!(parse_number(b"1e999").or(parse_number(b"nan")).or(parse_number(b"1,5")), None);
/// ```
pub fn parse_number(cell: &[u8]) -> Option<f64> {
    if let Some(number) = short_integer(cell) {
        return Some(number);
    }
    let trimmed = cell.trim_ascii();
    let number: f64 = fast_float2::parse(trimmed).ok()?;
    number.is_finite().then_some(number)
}

/// Parses a whole number that consists of digits only.
///
/// # Examples
/// ```
/// use dp_data::encode::parse_whole;
/// assert_eq!(parse_whole(b"0042"), Some(42));
/// assert_eq!(parse_whole(b"").or(parse_whole(b"+1")).or(parse_whole(b"18446744073709551616")), None);
/// ```
pub fn parse_whole(cell: &[u8]) -> Option<u64> {
    let digits = (!cell.is_empty()).then_some(cell)?;
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { number.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
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
