//! Mutations of files: of bytes, lines, tokens, and the tree of a JSON file.

use std::io::Read;

use serde_json::Value;

use crate::support::{Dice, gzip, reseal, xz};

/// Words that readers of numbers, names and categories may misinterpret.
const TOKENS: &[&str] = &[
    "",
    " ",
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "+1",
    "01",
    "1.",
    ".5",
    "1e3",
    "1e400",
    "-1e400",
    "1e-400",
    "1e308",
    "5e-324",
    "nan",
    "NaN",
    "inf",
    "-Infinity",
    "NA",
    "null",
    "true",
    "0x10",
    "1_0",
    "1,5",
    "١",
    "1 ",
    "\"1",
    "\"\"",
    "\"a\"\"b\"",
    "'",
    "\\",
    "18446744073709551615",
    "18446744073709551616",
    "9007199254740993",
    "4294967296",
    "-9223372036854775808",
    "123456789012345678901234567890",
    "yes",
    "no",
    "qid:1",
    "qid:",
    "1:1",
    "0:1",
    "1:",
    ":",
    "4294967295:1",
    "#",
    "baker",
    "São Paulo",
    "\u{feff}",
    "\u{0}",
    "\u{202e}",
    "=cmd",
    "../..",
    "[",
    "]",
    "{",
    "}",
    "[label]",
    "[[label]]",
    "a = 1",
];

/// The characters that end a token.
const ENDS: &[u8] = b",;:\t \n\r\"'=[]{}#";

/// Applies one to three mutations to a file of this name.
pub fn mutate(name: &str, content: &[u8], dice: &mut Dice) -> Vec<u8> {
    if let Some((inner, pack)) = packed(name) {
        // Half of the mutations apply to the decompressed content, so that they reach the reader behind the decompression.
        if dice.below(2) == 0
            && let Some(plain) = unpack(name, content)
        {
            return pack(&mutate(inner, &plain, dice));
        }
    }
    let mut bytes = content.to_vec();
    for _ in 0..1 + dice.below(3) {
        bytes = match dice.below(3) {
            0 if name.ends_with(".json") => in_tree(&bytes, dice).unwrap_or(bytes),
            0 | 1 => in_text(bytes, dice),
            _ => in_bytes(bytes, dice),
        };
    }
    bytes
}

type Pack = fn(&[u8]) -> Vec<u8>;

fn packed(name: &str) -> Option<(&str, Pack)> {
    let gz = name.strip_suffix(".gz").map(|inner| (inner, gzip as Pack));
    gz.or_else(|| name.strip_suffix(".xz").map(|inner| (inner, xz as Pack)))
}

fn unpack(name: &str, content: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    let read = if name.ends_with(".gz") {
        flate2::read::MultiGzDecoder::new(content).read_to_end(&mut plain)
    } else {
        liblzma::read::XzDecoder::new(content).read_to_end(&mut plain)
    };
    read.ok().map(|_| plain)
}

fn pick<'a, T>(items: &'a [T], dice: &mut Dice) -> &'a T {
    &items[dice.below(items.len() as u64) as usize]
}

/// Draws a position in `0..=length`.
fn at(length: usize, dice: &mut Dice) -> usize {
    dice.below(length as u64 + 1) as usize
}

/// Draws a range of positions, usually short.
fn range(length: usize, dice: &mut Dice) -> std::ops::Range<usize> {
    let start = at(length, dice);
    let longest = if dice.below(4) == 0 { length - start } else { (length - start).min(8) };
    start..start + at(longest, dice)
}

/// Mutates bytes regardless of their meaning.
fn in_bytes(mut bytes: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    let odd =
        [0, 0xff, 0x80, 0xc3, b'"', b',', b'\n', b'\r', b' ', b'\t', b'-', b'.', b'e', b'0', b'9', b'{', b'[', b'\\'];
    let length = bytes.len();
    match dice.below(8) {
        0 if length > 0 => bytes[dice.below(length as u64) as usize] ^= 1 << dice.below(8),
        1 if length > 0 => bytes[dice.below(length as u64) as usize] = *pick(&odd, dice),
        2 => bytes.insert(at(length, dice), *pick(&odd, dice)),
        3 => drop(bytes.drain(range(length, dice))),
        4 => {
            let again = bytes[range(length, dice)].to_vec();
            let place = at(length, dice);
            bytes.splice(place..place, again);
        }
        5 => bytes.truncate(at(length, dice)),
        6 => {
            let place = at(length, dice);
            let many = 1 << dice.below(17);
            bytes.splice(place..place, std::iter::repeat_n(*pick(&odd, dice), many));
        }
        _ => {
            let tail: Vec<u8> = (0..dice.below(64)).map(|_| dice.next() as u8).collect();
            bytes.extend(tail);
        }
    }
    bytes
}

/// Mutates lines and tokens.
fn in_text(bytes: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return pick(TOKENS, dice).as_bytes().to_vec();
    }
    let line = dice.below(lines.len() as u64) as usize;
    match dice.below(12) {
        0 => drop(lines.remove(line)),
        1 => lines.insert(line, lines[line].clone()),
        2 => {
            let other = dice.below(lines.len() as u64) as usize;
            lines.swap(line, other);
        }
        3 => lines.iter_mut().for_each(|line| {
            if line.ends_with(b"\n") && !line.ends_with(b"\r\n") {
                line.insert(line.len() - 1, b'\r');
            }
        }),
        4 => lines.insert(0, b"\xef\xbb\xbf".to_vec()),
        5 => lines.insert(line, b"\n".to_vec()),
        _ => {
            let text = &mut lines[line];
            let middle = at(text.len().saturating_sub(1), dice);
            let start = text[..middle].iter().rposition(|byte| ENDS.contains(byte)).map_or(0, |place| place + 1);
            let end =
                text[middle..].iter().position(|byte| ENDS.contains(byte)).map_or(text.len(), |place| middle + place);
            let word = pick(TOKENS, dice);
            let word = if dice.below(64) == 0 { word.repeat(10_000) } else { (*word).to_owned() };
            text.splice(start..end.max(start), word.into_bytes());
        }
    }
    lines.concat()
}

/// Collects the pointers to all nodes below the root.
fn nodes(value: &Value, path: &str, found: &mut Vec<String>) {
    let mut visit = |name: &str, child: &Value| {
        let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        found.push(path.clone());
        nodes(child, &path, found);
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(i, child)| visit(&i.to_string(), child)),
        Value::Object(object) => object.iter().for_each(|(name, child)| visit(name, child)),
        _ => {}
    }
}

/// Mutates a node of a JSON file; half of the time the hashes of a model are repaired.
fn in_tree(bytes: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let mut tree: Value = serde_json::from_slice(bytes).ok()?;
    let mut found = Vec::new();
    nodes(&tree, "", &mut found);
    if found.is_empty() {
        return None;
    }
    let path = pick(&found, dice).clone();
    match dice.below(6) {
        0 => {
            let (parent, name) = path.rsplit_once('/')?;
            match tree.pointer_mut(parent)? {
                Value::Object(object) => drop(object.remove(name)),
                Value::Array(items) => drop(items.remove(name.parse().ok()?)),
                _ => {}
            }
        }
        1 => {
            let other = tree.pointer(pick::<String>(&found, dice))?.clone();
            *tree.pointer_mut(&path)? = other;
        }
        2 => {
            if let Value::Array(items) = tree.pointer_mut(&path)?
                && let Some(item) = items.first().cloned()
            {
                items.extend(std::iter::repeat_n(item, 1 << dice.below(12)));
            }
        }
        3 => {
            if let Value::Object(object) = tree.pointer_mut(&path)? {
                object.insert((*pick(TOKENS, dice)).to_owned(), Value::Null);
            }
        }
        _ => *tree.pointer_mut(&path)? = odd(dice),
    }
    if dice.below(2) == 0 && tree["certificate"].is_object() {
        reseal(&mut tree);
    }
    serde_json::to_vec(&tree).ok()
}

/// Draws a value of any kind.
fn odd(dice: &mut Dice) -> Value {
    let deep = |depth| (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    match dice.below(16) {
        0 => Value::Null,
        1 => true.into(),
        2 => (-1).into(),
        3 => 0.into(),
        4 => 1.into(),
        5 => u64::MAX.into(),
        6 => i64::MIN.into(),
        7 => f64::MAX.into(),
        8 => 5e-324.into(),
        9 => dice.unit().into(),
        10 => "".into(),
        11 => (*pick(TOKENS, dice)).into(),
        12 => Value::Array(vec![]),
        13 => Value::Object(serde_json::Map::new()),
        14 => deep(100),
        _ => (1_u64 << dice.below(63)).into(),
    }
}
