//! A bucket against every window.

use metes_monitor::{Bucket, Class, Monitor, Window};
use proptest::prelude::*;

/// Whether some closed window holds more than burst + amount / per · length.
fn exceeds(arrivals: &[(u64, u64)], burst: u64, amount: u64, per: u64) -> bool {
    (0..arrivals.len()).any(|first| {
        (first..arrivals.len()).any(|last| {
            let bytes: u64 = arrivals[first..=last].iter().map(|(_, bytes)| bytes).sum();
            let length = arrivals[last].0 - arrivals[first].0;
            bytes * per > burst * per + amount * length
        })
    })
}

proptest! {
    #[test]
    fn a_bucket_refuses_when_a_window_holds_too_much(
        steps in prop::collection::vec((0_u64..5, 0_u64..20), 1..40),
        burst in 0_u64..60, amount in 0_u64..9, per in 1_u64..5,
    ) {
        let mut time = 0;
        let arrivals: Vec<_> = steps.iter().map(|(wait, bytes)| { time += wait; (time, *bytes) }).collect();
        let mut bucket = Bucket::new(burst, amount, per).unwrap();
        for (index, (now, bytes)) in arrivals.iter().enumerate() {
            match bucket.take(*now, *bytes) {
                Ok(()) => prop_assert!(!exceeds(&arrivals[..=index], burst, amount, per)),
                Err(Window { from, to, bytes }) => {
                    let inside = arrivals[..=index].iter().filter(|(time, _)| (from..=to).contains(time));
                    prop_assert!(bytes <= inside.map(|(_, bytes)| u128::from(*bytes)).sum());
                    prop_assert!(bytes * u128::from(per) > u128::from(burst * per + amount * (to - from)));
                    return Ok(());
                }
            }
        }
        prop_assert!(!exceeds(&arrivals, burst, amount, per));
    }
}

#[test]
fn the_largest_numbers_are_no_special_case() {
    let mut bucket = Bucket::new(u64::MAX, u64::MAX, u64::MAX).unwrap();
    assert_eq!(bucket.take(0, u64::MAX), Ok(()));
    assert!(bucket.take(0, u64::MAX).is_err());
    // A rate of 1: only after as many ticks there is room again.
    assert!(bucket.take(u64::MAX - 1, u64::MAX).is_err());
    assert!(Bucket::new(1, 1, 0).is_none());
}

#[test]
fn classes_ascend_and_are_found_by_size() {
    let class = |largest| Class::new(largest, 10, 0, 1, None).unwrap();
    assert!(Monitor::new(&mut [class(8), class(8)]).is_none());
    let mut classes = [class(8), class(64)];
    let monitor = Monitor::new(&mut classes).unwrap();
    let found = [0, 8, 9, 64, 65].map(|size| monitor.class_of(size));
    assert_eq!(found, [Some(0), Some(0), Some(1), Some(1), None]);
}
