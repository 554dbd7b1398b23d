//! Reading numbers.

/// Powers of ten that double precision holds exactly, as far as they are needed.
const POWERS_OF_TEN: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// The finite decimal number that `cell` holds, blanks around it allowed.
#[inline]
pub(crate) fn parse_number(cell: &[u8]) -> Option<f64> {
    match short_decimal(cell) {
        Some(number) => Some(number),
        None => any_decimal(cell),
    }
}

fn any_decimal(cell: &[u8]) -> Option<f64> {
    let number: f64 = fast_float2::parse(cell.trim_ascii()).ok()?;
    number.is_finite().then_some(number)
}

/// Numbers of up to 15 digits without exponent: most cells of most tables.
///
/// The digits without their point and the power of ten are both exact in double precision, so that one division, which
/// rounds correctly, gives the nearest number (Clinger 1990, the fast case).
#[inline]
fn short_decimal(cell: &[u8]) -> Option<f64> {
    let unsigned = match cell.split_first() {
        Some((b'-', rest)) => rest,
        _ => cell,
    };
    // Fifteen digits and a point; a longer cell is left to the general parser.
    if unsigned.is_empty() || unsigned.len() > 16 {
        return None;
    }
    let (mut mantissa, mut digits) = (0_u64, 0);
    let mut point = None;
    for (place, &byte) in unsigned.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa * 10 + u64::from(digit);
            digits += 1;
        } else if byte == b'.' && point.is_none() {
            point = Some(place);
        } else {
            return None;
        }
    }
    if digits == 0 || digits > 15 {
        return None;
    }
    let mut magnitude = mantissa as f64;
    if let Some(place) = point {
        magnitude /= POWERS_OF_TEN[unsigned.len() - place - 1];
    }
    Some(if unsigned.len() < cell.len() { -magnitude } else { magnitude })
}
