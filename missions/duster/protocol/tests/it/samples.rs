//! Packed samples, time, frames of the supplies.

use metes_duster_protocol::samples::{get, packed, put};
use metes_duster_protocol::supply::{self, Order, Reply};
use metes_duster_protocol::{Time, checksum, samples, time};
use proptest::prelude::*;

proptest! {
    #[test]
    fn samples_stand_as_a_stream_of_bits(values in prop::collection::vec(samples::RANGE, 0..400)) {
        let mut bits = String::new();
        for value in &values {
            bits += &format!("{:020b}", value & 0xf_ffff);
        }
        while !bits.len().is_multiple_of(8) {
            bits.push('0');
        }
        let naive: Vec<u8> = (0..bits.len() / 8)
            .map(|byte| u8::from_str_radix(&bits[byte * 8..][..8], 2).unwrap())
            .collect();
        let mut bytes = vec![0; packed(values.len())];
        for (index, value) in values.iter().enumerate() {
            put(&mut bytes, index, *value);
        }
        prop_assert_eq!(&bytes, &naive);
        for (index, value) in values.iter().enumerate() {
            prop_assert_eq!(get(&bytes, index), Some(*value));
        }
        prop_assert_eq!(get(&bytes, values.len() + 1), None);
    }

    #[test]
    fn a_sample_changes_no_other(
        mut bytes in prop::collection::vec(any::<u8>(), 20),
        index in 0..8_usize,
        value in samples::RANGE,
    ) {
        let before: Vec<_> = (0..8).map(|other| get(&bytes, other)).collect();
        put(&mut bytes, index, value);
        for (other, before) in before.into_iter().enumerate() {
            let now = get(&bytes, other);
            prop_assert_eq!(now, if other == index { Some(value) } else { before });
        }
        let same = bytes.clone();
        put(&mut bytes, 8 + index, value);
        prop_assert_eq!(bytes, same, "outside, nothing is written");
    }

    #[test]
    fn a_checksum_goes_on(bytes in prop::collection::vec(any::<u8>(), 0..100), at in 0..100_usize) {
        let (one, two) = bytes.split_at(at.min(bytes.len()));
        prop_assert_eq!(checksum::of_more(checksum::of(one), two), checksum::of(&bytes));
    }

    #[test]
    fn a_time_of_microseconds_comes_back(microseconds in 0..(1_u64 << 32) * 1_000_000, step in 0..1000_u64) {
        let time = Time::from_microseconds(microseconds);
        prop_assert!(time.microseconds().abs_diff(microseconds) <= 16);
        prop_assert!(Time::from_microseconds(microseconds.saturating_sub(step)) <= time);
        prop_assert_eq!(time.units() >> 16, microseconds / 1_000_000);
    }

    #[test]
    fn a_division_is_one(number in any::<u64>(), by in 1..=u16::MAX, shift in 0..64_u32) {
        let number = number >> shift;
        let (quotient, rest) = time::divide(number, by);
        prop_assert_eq!((quotient, u64::from(rest)), (number / u64::from(by), number % u64::from(by)));
        prop_assert_eq!(time::milliseconds(number), number / 1000);
        let units = (u128::from(number) << 16) / 1_000_000;
        prop_assert_eq!(u128::from(Time::from_microseconds(number).units()), units & 0xffff_ffff_ffff);
    }

    #[test]
    fn frames_of_supplies_are_read_as_they_were_written(
        argument in any::<u16>(), status in any::<u8>(), voltage in any::<u16>(), current in any::<u16>(),
        bit in 0..64_usize,
    ) {
        for number in 1..=5 {
            let order = Order::of(number).unwrap();
            let mut frame = supply::request(order, argument);
            prop_assert_eq!(supply::read_request(&frame), Some((number, argument)));
            frame[bit / 8 % 5] ^= 1 << (bit % 8);
            prop_assert_eq!(supply::read_request(&frame), None);
            let reply = Reply { order: number, status, voltage, current };
            let mut frame = supply::reply(reply);
            prop_assert_eq!(supply::read_reply(&frame), Some(reply));
            frame[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(supply::read_reply(&frame), None);
        }
    }
}

#[test]
fn the_checksum_is_that_of_the_catalogue() {
    assert_eq!(checksum::of(b"123456789"), 0x29b1);
}
