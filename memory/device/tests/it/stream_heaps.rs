//! Stream-ordered heaps: waits, captures, reclaiming and streams that are gone.

use metes_device::backend::offsets::Offsets;
use metes_device::backend::timeline::{self, Manual, Stream, Timeline};
use metes_device::heap::{Extent, Refusal};
use metes_device::sparse::{Plan, SparseRefusal};
use metes_device::stream_pages::SparseStreamHeap;
use metes_device::streams::{Crossing, NoStreams, StreamError, StreamHeap, Streams};
use metes_heap::BadFree;

const EXTENT: Extent = Extent {
    bytes: 1 << 20,
    granule: 256,
    blocks: 3000,
};

const PAGE: u64 = 1 << 12;

const WAIT: Streams = Streams {
    batch: 16,
    crossing: Crossing::Wait,
};

#[test]
fn a_single_stream_needs_no_event() {
    let mut device = Manual::new(1);
    let stream = device.join().unwrap();
    let options = Streams {
        batch: u32::MAX,
        crossing: Crossing::Wait,
    };
    let mut heap = StreamHeap::new(EXTENT, device, options).unwrap();
    for _ in 0..1000 {
        let block = heap.allocate(stream, EXTENT.bytes, 1).unwrap();
        heap.free(block.place).unwrap();
    }
    assert_eq!(heap.progress(), Default::default());
}

fn two() -> (StreamHeap<Manual>, Stream, Stream) {
    let mut manual = Manual::new(2);
    let (first, second) = (manual.join().unwrap(), manual.join().unwrap());
    let options = Streams {
        batch: 1,
        crossing: Crossing::Wait,
    };
    (
        StreamHeap::new(EXTENT, manual, options).unwrap(),
        first,
        second,
    )
}

#[test]
fn pages_of_a_captured_stream_are_passed_over() {
    let mut manual = Manual::new(3);
    let streams: Vec<_> = (0..3).map(|_| manual.join().unwrap()).collect();
    let plan = Plan {
        addresses: 16 * PAGE,
        cap: 4 * PAGE,
        page: PAGE,
        granule: 256,
        blocks: 16,
        moves: u64::MAX,
    };
    let backend = Offsets::new(1 << 20, PAGE).unwrap();
    let mut heap = SparseStreamHeap::new(backend, plan, manual, WAIT).unwrap();
    // Two that are freed, and what keeps them apart.
    let blocks: Vec<_> = [0, 2, 1, 2]
        .map(|stream: usize| heap.allocate(streams[stream], PAGE, PAGE).unwrap())
        .into();
    heap.free(blocks[0].place).unwrap();
    heap.free(blocks[2].place).unwrap();
    heap.timeline().capture(streams[0], true).unwrap();
    heap.allocate(streams[2], PAGE, PAGE).unwrap();
    assert_eq!((heap.pages().moved, heap.progress().waits), (1, 1));
    // The other page waits for the stream that is being captured.
    assert!(matches!(
        heap.allocate(streams[2], PAGE, PAGE),
        Err(StreamError::Pages(SparseRefusal::Timeline(
            timeline::Error::Capturing(_)
        )))
    ));
    heap.timeline().capture(streams[0], false).unwrap();
    heap.allocate(streams[2], PAGE, PAGE).unwrap();
    heap.check().unwrap();
}

#[test]
fn waits_end_as_soon_as_the_request_fits() {
    let (mut heap, first, second) = two();
    let blocks: Vec<_> = (0..16)
        .map(|_| heap.allocate(first, EXTENT.bytes / 16, 1).unwrap())
        .collect();
    // Every second, so that nothing merges.
    for block in blocks.iter().step_by(2) {
        heap.free(block.place).unwrap();
    }
    heap.allocate(second, EXTENT.bytes / 16, 1).unwrap();
    // One wait, for the oldest.
    assert_eq!(heap.progress().waits, 1);
    assert_eq!(heap.timeline().completed(first).unwrap(), 1);
}

#[test]
fn what_can_be_reclaimed_is_before_a_refusal() {
    let (mut heap, first, second) = two();
    let cached = heap.allocate(first, EXTENT.bytes, 1).unwrap();
    let mut left = vec![cached.place];
    heap.on_out_of_memory(Box::new(move |heap, wanted| {
        assert_eq!(wanted, 100);
        left.pop().is_some_and(|place| heap.free(place).is_ok())
    }));
    let block = heap.allocate(second, 100, 1).unwrap();
    assert_eq!(heap.free(cached.place), Err(BadFree::NotInUse.into()));
    let rest = heap.allocate(first, EXTENT.bytes - 256, 1).unwrap();
    let refused = heap.allocate(second, 100, 1).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "no block of 100 bytes is left for stream {second}: of 1048576 bytes {} are in use, \
             100 of them by this stream; free some, or make the heap larger",
            EXTENT.bytes - 256 + 100
        )
    );
    let holders: Vec<_> = heap.holders().collect();
    assert_eq!(
        holders,
        [(Some(first), EXTENT.bytes - 256, 1), (Some(second), 100, 1)]
    );
    heap.free(block.place).unwrap();
    heap.free(rest.place).unwrap();
}

#[test]
fn destroyed_streams_are_errors_and_lose_nothing() {
    let (mut heap, first, second) = two();
    let block = heap.allocate(first, EXTENT.bytes, 1).unwrap();
    // The timeline lost the stream, as when it was destroyed under us.
    heap.timeline().leave(first).unwrap();
    assert!(matches!(
        heap.free(block.place),
        Err(StreamError::Timeline(timeline::Error::NoStream(_)))
    ));
    assert!(matches!(
        heap.allocate(second, 1, 1),
        Err(StreamError::Timeline(timeline::Error::NoStream(_)))
    ));
    heap.forget(first);
    let whole = heap.allocate(second, EXTENT.bytes, 1).unwrap();
    assert!(matches!(
        heap.allocate(second, EXTENT.bytes + 1, 1),
        Err(StreamError::Refused(Refusal::TooLarge { .. }))
    ));
    heap.free(whole.place).unwrap();
    heap.check().unwrap();
}

#[test]
fn too_many_streams_are_refused() {
    let options = Streams {
        batch: 1,
        crossing: Crossing::Wait,
    };
    for streams in [0, 65] {
        let made = StreamHeap::new(EXTENT, Manual::new(streams), options);
        assert_eq!(made.map(drop).unwrap_err(), NoStreams::Streams(streams));
    }
}
