//! A map from declared texts, such as categories, to values.

use core::hash::{Hash, Hasher};
use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

/// Declared texts, in their order, with their values. If two texts are the same, the first of them counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextMap<T> {
    entries: Vec<(Box<str>, T)>,
    /// The texts of up to 16 bytes, hashed and compared as words.
    short: HashMap<Words, T, FxBuildHasher>,
    long: HashMap<Box<[u8]>, T, FxBuildHasher>,
}

impl<T: Copy> TextMap<T> {
    pub(super) fn new<'t>(texts: impl Iterator<Item = (&'t str, T)>) -> Self {
        let mut map = Self { entries: Vec::new(), short: HashMap::default(), long: HashMap::default() };
        for (text, value) in texts {
            let bytes = text.as_bytes();
            if map.get(bytes).is_some() {
                continue;
            }
            match Words::of(bytes) {
                Some(words) => map.short.insert(words, value),
                None => map.long.insert(bytes.into(), value),
            };
            map.entries.push((text.into(), value));
        }
        map
    }

    /// Returns the value of a text, if it is declared.
    #[inline]
    pub(super) fn get(&self, text: &[u8]) -> Option<T> {
        match Words::of(text) {
            Some(words) => self.short.get(&words).copied(),
            None => self.long.get(text).copied(),
        }
    }

    /// Returns the texts with their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, T)> {
        self.entries.iter().map(|(text, value)| (&**text, *value))
    }
}

/// A text of at most 16 bytes: its length, and two words that contain all of its bytes. Equal texts have equal words, and no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Words {
    first: u64,
    last: u64,
    length: usize,
}

impl Words {
    #[inline]
    fn of(text: &[u8]) -> Option<Self> {
        let short = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
        let (first, last) = match text.len() {
            17.. => return None,
            8.. => (u64::from_le_bytes(*text.first_chunk()?), u64::from_le_bytes(*text.last_chunk()?)),
            4.. => (short(text.first_chunk()?), short(text.last_chunk()?)),
            1.. => (u64::from(text[0]) << 8 | u64::from(text[text.len() / 2]), u64::from(text[text.len() - 1])),
            0 => (0, 0),
        };
        Some(Self { first, last, length: text.len() })
    }
}

/// Digits of pi, with which words of zeros do not make the product 0.
const DIGITS: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

impl Hash for Words {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Both halves of the product depend on all bytes; the hasher's own products would leave the last bytes of a word in the
        // highest bits.
        let product = u128::from(self.first ^ DIGITS[0]) * u128::from(self.last ^ DIGITS[1]);
        state.write_u64(product as u64 ^ (product >> 64) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_lengths_have_their_values() {
        // Texts that differ in one byte, and prefixes of one another.
        let mut texts: Vec<String> = Vec::new();
        for length in 0..40 {
            let text: String = (0..length).map(|i| char::from(b'a' + i % 26)).collect();
            for place in 0..usize::from(length) {
                let mut other = text.clone().into_bytes();
                other[place] = b'Z';
                texts.push(String::from_utf8(other).unwrap());
            }
            texts.push(text);
        }
        texts.extend(["\0", "\0\0", "\0\0\0", "a\0", "\0a"].map(String::from));
        let declared = texts.iter().map(String::as_str).zip(0..).step_by(2);
        let map = TextMap::new(declared.clone());
        assert!(map.iter().eq(declared));
        for (i, text) in texts.iter().enumerate() {
            assert_eq!(map.get(text.as_bytes()), (i % 2 == 0).then_some(i), "{text:?}");
        }
        assert_eq!(TextMap::new([("a", 1), ("a", 2)].into_iter()).get(b"a"), Some(1));
    }
}
