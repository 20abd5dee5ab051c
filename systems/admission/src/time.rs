//! Times of a certificate in documents: a number where 64 bits hold it, else its digits as a string.
//!
//! *Invariant:* what is written is read again as it was.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(time: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    match u64::try_from(*time) {
        Ok(time) => serializer.serialize_u64(time),
        Err(_) => serializer.serialize_str(&time.to_string()),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
    deserializer.deserialize_any(Time)
}

struct Time;

impl Visitor<'_> for Time {
    type Value = u128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, or its digits")
    }

    fn visit_u64<E: Error>(self, time: u64) -> Result<u128, E> {
        Ok(time.into())
    }

    fn visit_str<E: Error>(self, digits: &str) -> Result<u128, E> {
        digits
            .parse()
            .map_err(|_| E::custom("a time has other characters than digits"))
    }
}
