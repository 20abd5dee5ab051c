//! A trace so small that a person can follow every record word.
//!
//! Allocate 100 and 200 bytes, free the first, allocate 50. The counts below
//! were worked out with pencil and paper from the algorithms, not copied from a run.

use metes_explore::{Events, EventsBuilder, Operation, Options, Replayer};
use metes_heap::{Description, Fit, IndexKind, Order};

fn tiny() -> Events {
    let mut builder = EventsBuilder::new();
    builder.push(Operation::Allocate, 1, 100, 0).unwrap();
    builder.push(Operation::Allocate, 2, 200, 0).unwrap();
    builder.push(Operation::Free, 1, 0, 0).unwrap();
    builder.push(Operation::Allocate, 3, 50, 0).unwrap();
    builder.finish()
}

/// Blocks are 112, 208 and 64 bytes. One list head of two words: control is 16 +
/// 16 bytes, the first header at 40, a sentinel of 8; a first region of one page.
///
/// Both first allocations: two words of the index's state and the list's head
/// read, no block in it; the wilderness' header read and its mark changed (1
/// read, 1 write); the rest gets header and footer (2 writes), the block after it
/// shows that it is the new wilderness (1 read), which is noted (1, 1); the
/// header of the used block (1 write): 7, 5. The free reads the header and the
/// next one, marks that (1 write), writes header and footer, links behind the
/// head (1 read, 4 writes), updates the length (1, 1): 4, 8. The last one: state
/// (2), head, the candidate's header, links out (2, 2), length (2, 1); then the
/// rest of 48 bytes: header, footer, link in (1, 4), length (1, 1); the used
/// header: 10, 11.
#[test]
fn first_fit_by_hand() {
    let heap = Description::of(IndexKind::list(Fit::First, Order::Lifo));
    let (replay, curve) = Replayer::new().replay("first-fit", &heap, &tiny(), &Options::default());
    assert_eq!(
        (replay.peak_live, replay.peak_blocks, replay.failed),
        (300, 2, 0)
    );
    assert_eq!(replay.footprint, 4096);
    assert_eq!(replay.record_reads, 7 + 7 + 4 + 10);
    assert_eq!(replay.record_writes, 5 + 5 + 8 + 11);
    assert_eq!(
        (replay.most_accesses.allocate, replay.most_accesses.free),
        (21, 12)
    );
    // 3 allocations and a free at 20, a read at 4, a write at 1.
    assert_eq!(replay.cycles, 4 * 20 + 4 * 28 + 29);
    assert_eq!(replay.cycles_max, 20 + 4 * 10 + 11);
    assert_eq!(replay.record_bytes, 48 + 2 * 8);
    assert_eq!(curve.last(), Some(&(3, 4096, 250)));
}

/// 2³² granules in 32 classes a power of two need 897 heads: control is 16 bytes and
/// 897 times 16, the first header at 14376; a first region of four pages leaves a
/// block of 2000 bytes, class 94, bit 30 of the bitmap's third word.
///
/// First two allocations: the word of the request's class, the top word, the
/// third word (3 reads), the head and its block's link (2), both neighbours
/// written (2), class and word become empty (2, 2), the header for the size (1);
/// the rest gets header and footer, is linked (1, 4) and its bits set (2, 2); the
/// used header: 11, 13. The free: two headers read, a mark, header, footer, link
/// in (1, 4), bits of the first word (2, 2): 5, 9. The last finds class 7 in the
/// word of its own class (1 read instead of 3): 9, 13.
#[test]
fn tlsf_by_hand() {
    let heap = Description::of(IndexKind::tlsf(32));
    let (replay, _) = Replayer::new().replay("tlsf", &heap, &tiny(), &Options::default());
    assert_eq!(replay.footprint, 16384);
    assert_eq!(replay.record_reads, 11 + 11 + 5 + 9);
    assert_eq!(replay.record_writes, 13 + 13 + 9 + 13);
    assert_eq!(
        (replay.most_accesses.allocate, replay.most_accesses.free),
        (24, 14)
    );
    assert_eq!(replay.record_bytes, 14384 + 2 * 8);
}

/// Control 48 bytes for first fit; the blocks lie at 40 (112 bytes) and 152
/// (208 bytes), and the third goes into the first hole: up to 360, and a
/// sentinel of 8. 368 bytes suffice, and 16 less do not.
#[test]
fn the_smallest_arena_by_hand() {
    let heap = Description::of(IndexKind::list(Fit::First, Order::Lifo));
    let mut replayer = Replayer::new();
    let found =
        metes_explore::smallest_arena(&mut replayer, &heap, &tiny(), &Options::default()).unwrap();
    assert_eq!((found.bytes, found.regions), (368, vec![368]));
}
