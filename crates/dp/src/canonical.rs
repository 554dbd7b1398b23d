//! Canonical JSON and its SHA-256, and a strict parser.
//!
//! In canonical form, members are sorted by name (byte order), there are no blanks, and numbers are in the shortest form that
//! reads back to the same double. Two files with the same content have the same hash whatever their layout.

use std::fmt;

use serde::Serializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// Returns the canonical text of a value.
pub fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// Serializes a number that may be infinite: infinity becomes a string, since JSON cannot represent it.
///
/// # Errors
/// Those of the serializer.
pub fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() { serializer.serialize_f64(*value) } else { serializer.serialize_str(&value.to_string()) }
}

/// Returns the SHA-256 of the canonical text, in hexadecimal.
pub fn sha256(value: &Value) -> String {
    Sha256::digest(text(value).as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses JSON and rejects repeated members, which readers may interpret differently. Skips a leading byte order mark.
///
/// # Errors
/// Text that is not JSON, or a repeated member.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Strict>(text.strip_prefix('\u{feff}').unwrap_or(text)).map(|strict| strict.0)
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            // Sorted here: the order of the map depends on a feature that any crate may enable.
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| name.as_bytes());
            text.push('{');
            for (i, (name, member)) in members.into_iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(member, text);
            }
            text.push('}');
        }
        leaf => text.push_str(&leaf.to_string()),
    }
}

/// A JSON value without repeated members.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Strict(member))) = members.next_entry::<String, Strict>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("the member `{name}` is duplicate")));
            }
            object.insert(name, member);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_is_sorted_and_tight() {
        let value =
            parse("{ \"b\": [1, 2.50, 1e-300, null, true],\n \"a\": {\"z\": \"\\u00e9\\n\", \"y\": -0.0} }").unwrap();
        assert_eq!(text(&value), "{\"a\":{\"y\":-0.0,\"z\":\"é\\n\"},\"b\":[1,2.5,1e-300,null,true]}");
        assert_eq!(parse(&text(&value)).unwrap(), value);
        assert_eq!(text(&parse("[-3, -9007199254740993]").unwrap()), "[-3,-9007199254740993]");
    }

    #[test]
    fn hash_of_a_known_text() {
        // printf '{"a":1}' | sha256sum
        let expected = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862";
        assert_eq!(sha256(&parse("{ \"a\" : 1 }").unwrap()), expected);
    }

    #[test]
    fn a_member_that_is_there_twice_is_refused() {
        assert!(parse("{\"a\":1,\"b\":{\"c\":1,\"c\":2}}").unwrap_err().to_string().contains("`c` is duplicate"));
    }

    #[test]
    fn deep_nesting_is_refused_without_overflow() {
        assert!(parse(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn every_double_survives() {
        for value in [5e-324, f64::MAX, 0.1, 1.0 / 3.0, -2.5e-17, 123_456_789.123_456_79] {
            let text = text(&Value::from(value));
            assert_eq!(parse(&text).unwrap().as_f64().unwrap().to_bits(), value.to_bits(), "{text}");
        }
    }
}
