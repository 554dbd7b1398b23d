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
    if let Some(number) = short_decimal(cell) {
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

/// `10^f`, exact in double precision.
const POWERS: [f64; 16] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Parses decimals of up to 15 digits with at most one point, most cells of most tables: integer and power of ten are exact in
/// double precision, so that their quotient is rounded once.
fn short_decimal(cell: &[u8]) -> Option<f64> {
    let unsigned = match cell.split_first() {
        Some((b'-', unsigned)) => unsigned,
        _ => cell,
    };
    if unsigned.len() > 16 {
        return None;
    }
    let (mut magnitude, mut point) = (0_u64, None);
    for (place, &byte) in unsigned.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            magnitude = magnitude * 10 + u64::from(digit);
        } else if byte == b'.' && point.is_none() {
            point = Some(place);
        } else {
            return None;
        }
    }
    let digits = unsigned.len() - usize::from(point.is_some());
    if !(1..=15).contains(&digits) {
        return None;
    }
    let number = magnitude as f64 / POWERS[point.map_or(0, |place| digits - place)];
    Some(if unsigned.len() < cell.len() { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of another parser, in the same syntax: without a plus sign.
    fn expected(cell: &[u8]) -> Option<u64> {
        let text = std::str::from_utf8(cell).ok()?;
        let is_plain = text.bytes().all(|byte| b"0123456789.-".contains(&byte));
        is_plain.then(|| text.parse::<f64>().ok().map(f64::to_bits)).flatten()
    }

    #[test]
    fn short_decimals_have_the_bits_of_another_parser() {
        let characters = b"0159.-";
        for length in 0..=6 {
            for mut code in 0..characters.len().pow(length) {
                let cell: Vec<u8> = (0..length)
                    .map(|_| {
                        let character = characters[code % characters.len()];
                        code /= characters.len();
                        character
                    })
                    .collect();
                assert_eq!(short_decimal(&cell).map(f64::to_bits), expected(&cell), "{:?}", cell.escape_ascii());
            }
        }
        let mut hash = 1_u64;
        let mut answered = 0;
        for _ in 0..200_000 {
            hash = hash.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let length = 7 + (hash >> 33) as usize % 12;
            let mut cell: Vec<u8> = (0..length).map(|i| b'0' + ((hash >> (i * 3 + 5)) % 10) as u8).collect();
            let place = (hash >> 40) as usize % (length + 4);
            cell.iter_mut().skip(place).take(1).for_each(|byte| *byte = b'.');
            if hash >> 63 == 1 {
                cell.insert(0, b'-');
            }
            let found = short_decimal(&cell);
            answered += u32::from(found.is_some());
            let digits = cell.iter().filter(|byte| byte.is_ascii_digit()).count();
            assert_eq!(found.is_some(), digits <= 15, "{:?}", cell.escape_ascii());
            assert!(found.is_none_or(|found| Some(found.to_bits()) == expected(&cell)), "{:?}", cell.escape_ascii());
        }
        assert!(answered > 100_000);
    }
}
