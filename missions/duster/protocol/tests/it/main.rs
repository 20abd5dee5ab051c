//! Tests of the protocol over all of its tables: each row written and read, any bytes read, packets that other decoders
//! read, the stream of telecommands.

mod framing;
mod golden;
mod packets;
mod samples;
mod tables;

use metes_duster_protocol::definitions::Message;
use metes_duster_protocol::value::Writer;

/// The content of a message, by numbers that are chosen one after the other: from 0 to the greatest.
fn content<K, E>(row: &Message<K, E>, mut next: impl FnMut() -> u64) -> Vec<u8> {
    let mut bytes = vec![0; 1100];
    let mut writer = Writer::new(&mut bytes);
    let mut choose =
        |least: i64, greatest: i64| least + (next() % (greatest - least + 1) as u64) as i64;
    metes_duster_protocol::generate::fields(row.fields, &mut choose, &mut writer);
    let length = writer.length().expect("it fits");
    bytes.truncate(length);
    bytes
}

/// Numbers out of drawn words; when they are used up, 0.
fn drawn(words: &[u64]) -> impl FnMut() -> u64 + '_ {
    let mut words = words.iter().copied();
    move || words.next().unwrap_or(0)
}

/// Numbers of a pattern.
fn pattern(mut state: u32) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u64::from(state >> 8)
    }
}
