//! The grammar of quantities, by the examples that the Python package is held to as well.

use metes_quantity::{read_bytes, read_positive_bytes, read_seconds, spell_bytes};
use serde_json::Value;

fn table() -> Value {
    serde_json::from_str(include_str!("quantities.json")).expect("a table")
}

/// The members of a table of texts and what they mean.
fn meanings(of: &str) -> Vec<(String, Value)> {
    let table = table();
    let members = table[of].as_object().expect("an object");
    assert!(members.len() > 10);
    members.clone().into_iter().collect()
}

fn texts(of: &str) -> Vec<String> {
    serde_json::from_value(table()[of].clone()).expect("texts")
}

#[test]
fn sizes_are_read_as_people_write_them() {
    for (text, bytes) in meanings("sizes") {
        assert_eq!(read_bytes(&text).ok(), bytes.as_u64(), "{text}");
    }
    for text in texts("no_sizes") {
        let said = read_bytes(&text).expect_err(&text).to_string();
        assert!(said.contains(&format!("`{text}` is not a size")), "{said}");
    }
    assert!(read_positive_bytes("0").is_err());
    assert_eq!(read_positive_bytes("1k"), Ok(1024));
}

#[test]
fn times_are_read_as_people_write_them() {
    for (text, seconds) in meanings("times") {
        let read = read_seconds(&text).expect(&text);
        let seconds = seconds.as_f64().expect("a number");
        assert!((read / seconds - 1.0).abs() < 1e-12, "{text}: {read}");
    }
    for text in texts("no_times") {
        assert!(read_seconds(&text).is_err(), "{text}");
    }
}

#[test]
fn spelt_sizes_are_read_back() {
    let sizes = [
        0,
        1,
        1000,
        1023,
        1024,
        1536,
        4096,
        1 << 36,
        1 << 63,
        u64::MAX,
    ];
    for size in sizes {
        assert_eq!(read_bytes(&spell_bytes(size)), Ok(size));
    }
    assert_eq!(spell_bytes(3 << 20), "3 MiB");
}
