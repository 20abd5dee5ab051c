//! A trace so small that a person can follow every record word.
//!
//! Allocate 100 and 200 bytes, free the first, allocate 50. The counts below
//! were worked out with pencil and paper from the algorithms, not copied from a run.

use metes_explore::{Events, EventsBuilder, Operation, Options, Replayer};
use metes_heap::description::DedicatedPool;
use metes_heap::{Description, Fit, IndexKind, Links, Order};

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

/// 2³² granules less the one of a record in 32 classes a power of two need 896 heads: control is
/// 16 bytes and 896 times 16, the first header at 14360; a first region of four pages leaves a
/// block of 2016 bytes, which holds 125 granules, class 94, bit 30 of the bitmap's third word.
///
/// First two allocations: the word of the request's class, the top word, the
/// third word (3 reads), the head and its block's link (2), both neighbours
/// written (2), class and word become empty (2, 2), the header for the size (1);
/// the rest gets header and footer, is linked (1, 4) and its bits set (2, 2); the
/// used header: 11, 13. The free: two headers read, a mark, header, footer, link
/// in (1, 4), bits of the first word (2, 2): 5, 9. The last finds class 6 in the
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
    assert_eq!(replay.record_bytes, 14368 + 2 * 8);
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

/// First fit in LIFO order, linked in one direction.
fn single_links() -> Description {
    Description::of(IndexKind::List {
        fit: Fit::First,
        order: Order::Lifo,
        depth_percent: 100,
        max_fit_percent: 0,
        links: Links::Single,
    })
}

/// Words read and written by the last of some operations.
fn of_the_last(heap: &Description, operations: &[(Operation, u64, u64)]) -> (u64, u64) {
    let counts = |operations: &[(Operation, u64, u64)]| {
        let mut builder = EventsBuilder::new();
        for &(operation, block, size) in operations {
            builder.push(operation, block, size, 0).unwrap();
        }
        let events = builder.finish();
        let (replay, _) = Replayer::new().replay("", heap, &events, &Options::default());
        (replay.record_reads, replay.record_writes)
    };
    let (all, before) = (
        counts(operations),
        counts(&operations[..operations.len() - 1]),
    );
    (all.0 - before.0, all.1 - before.1)
}

/// As `first_fit_by_hand`, but that linking in writes two words instead of four
/// and linking out reads and writes one instead of two.
#[test]
fn single_links_by_hand() {
    let (replay, _) = Replayer::new().replay("", &single_links(), &tiny(), &Options::default());
    assert_eq!(replay.record_reads, 7 + 7 + 4 + (10 - 1));
    assert_eq!(replay.record_writes, 5 + 5 + (8 - 2) + (11 - 1 - 2));
    let (double, _) = Replayer::new().replay(
        "",
        &Description::of(IndexKind::list(Fit::First, Order::Lifo)),
        &tiny(),
        &Options::default(),
    );
    assert_eq!(replay.placements, double.placements);
}

/// Six blocks; the first, third and fifth are free, so the list is 5, 3, 1. Then
/// the second is freed and merges with both neighbours.
///
/// The header, the footer before it and that block's header are read (3), the
/// header behind it (1). Each neighbour leaves the list: index state (1, 0),
/// links (2, 2), length and rover (2, 1). The merged block gets header and footer
/// (2 writes), is linked in (1, 4) and counted (1, 1): 16, 13. With single links
/// block 1 is the third and is found in 3 reads, then block 3 is the second, in 2;
/// leaving reads and writes one link, entering writes two: 19, 9.
#[test]
fn merging_over_single_links_pays_for_the_walk() {
    use Operation::{Allocate, Free};
    let mut operations: Vec<_> = (1..=6).map(|block| (Allocate, block, 100)).collect();
    operations.extend([1, 3, 5, 2].map(|block| (Free, block, 0)));
    let double = Description::of(IndexKind::list(Fit::First, Order::Lifo));
    assert_eq!(of_the_last(&double, &operations), (16, 13));
    assert_eq!(of_the_last(&single_links(), &operations), (19, 9));
}

/// A free into a dedicated list reads the header and the head and writes links and
/// header; a hit reads head, links and header and writes links and header. Double
/// links: 2, 5 and 4, 3. Single links write two links in and one out, and read one
/// out: 2, 3 and 3, 2. In FIFO order the head also names the last block: one
/// write more at either end.
#[test]
fn dedicated_lists_by_hand() {
    use Operation::{Allocate, Free};
    let operations = [
        (Allocate, 1, 100),
        (Allocate, 2, 200),
        (Free, 1, 0),
        (Allocate, 3, 100),
    ];
    for (order, links, free, hit) in [
        (Order::Lifo, Links::Double, (2, 5), (4, 3)),
        (Order::Lifo, Links::Single, (2, 3), (3, 2)),
        (Order::Fifo, Links::Single, (2, 4), (3, 3)),
    ] {
        let mut heap = Description::of(IndexKind::tlsf(32));
        heap.dedicated.push(DedicatedPool {
            order,
            links,
            ..DedicatedPool::new(100, 0)
        });
        assert_eq!(of_the_last(&heap, &operations[..3]), free, "{links:?}");
        assert_eq!(of_the_last(&heap, &operations), hit, "{links:?}");
    }
}
