//! What is counted is what was asked for.

use std::hint::black_box;

use metes_peak::{Counting, peak};

#[global_allocator]
static COUNTED: Counting = Counting;

#[test]
fn the_most_that_is_held_is_counted() {
    let ((), most) = peak(|| {
        drop(black_box(vec![1_u8; 5_000]));
        let kept = black_box(vec![1_u8; 2_000]);
        drop(black_box(vec![0_u8; 1_000]));
        drop(kept);
    });
    assert_eq!(most, 5_000);
    let ((), nothing) = peak(|| ());
    assert_eq!(nothing, 0);
}

#[test]
fn growing_counts_both_places() {
    let (_, most) = peak(|| {
        let mut grown: Vec<u8> = black_box(Vec::with_capacity(1_000));
        grown.reserve_exact(3_000);
        black_box(grown)
    });
    assert_eq!(most, 4_000);
}
