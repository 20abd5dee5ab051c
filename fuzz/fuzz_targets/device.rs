//! Any sequence of operations on a heap over pages whose frees are ordered by streams: no block
//! overlaps another, nothing is lost, and the books agree.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use metes_device::backend::offsets::Offsets;
use metes_device::backend::timeline::{Manual, Stream, Timeline};
use metes_device::sparse::Plan;
use metes_device::stream_pages::SparseStreamHeap;
use metes_device::streams::{Crossing, Streams};

#[derive(Arbitrary, Debug)]
enum Operation {
    Allocate { stream: u8, bytes: u32, align: u8 },
    Free { which: u8 },
    FreeStale { which: u8 },
    Use { which: u8, stream: u8 },
    Complete { stream: u8, back: u8 },
    Capture { stream: u8, begins: bool },
    Leave { stream: u8 },
    Trim { keep: u8 },
    Sleep,
    Wake,
}

#[derive(Arbitrary, Debug)]
struct Input {
    order: bool,
    batch: u8,
    operations: Vec<Operation>,
}

const PAGE: u64 = 1 << 14;
const STREAMS: usize = 3;

fuzz_target!(|input: Input| {
    let mut manual = Manual::new(STREAMS);
    let mut streams: Vec<Stream> = (0..STREAMS).map(|_| manual.join().unwrap()).collect();
    let plan = Plan {
        addresses: 64 * PAGE,
        cap: 24 * PAGE,
        page: PAGE,
        granule: 256,
        blocks: 40,
        moves: 6,
    };
    let options = Streams {
        batch: input.batch.into(),
        crossing: if input.order {
            Crossing::Order
        } else {
            Crossing::Wait
        },
    };
    let backend = Offsets::new(20 * PAGE, PAGE).unwrap();
    let mut heap = SparseStreamHeap::new(backend, plan, manual, options).unwrap();
    let mut held = BTreeMap::new();
    let mut stale = Vec::new();
    let mut last = 0;
    for operation in input.operations {
        match operation {
            Operation::Allocate {
                stream,
                bytes,
                align,
            } => {
                let bytes = u64::from(bytes >> (bytes % 24));
                let align = 1 << (align % 16);
                let stream = streams[usize::from(stream) % STREAMS];
                let Ok(block) = heap.allocate(stream, bytes, align) else {
                    continue;
                };
                assert!(block.offset % align == 0 && block.offset + bytes <= plan.addresses);
                if let Some((start, (_, length))) = held.range(..=block.offset).next_back() {
                    assert!(start + length <= block.offset);
                }
                if let Some((next, _)) = held.range(block.offset..).next() {
                    assert!(block.offset + bytes <= *next);
                }
                held.insert(block.offset, (block.place, bytes));
            }
            Operation::Free { which } if !held.is_empty() => {
                let at = usize::from(which) % held.len();
                let offset = *held.keys().nth(at).unwrap();
                let (place, _) = held.remove(&offset).unwrap();
                // What cannot be marked is freed all the same.
                let _ = heap.free(place);
                stale.push(place);
            }
            Operation::FreeStale { which } if !stale.is_empty() => {
                let place = stale[usize::from(which) % stale.len()];
                assert!(heap.free(place).is_err());
            }
            Operation::Use { which, stream } if !held.is_empty() => {
                let at = usize::from(which) % held.len();
                let (place, _) = *held.values().nth(at).unwrap();
                heap.use_on(place, streams[usize::from(stream) % STREAMS])
                    .unwrap();
            }
            Operation::Complete { stream, back } => {
                last = last.max(heap.progress().marks);
                let ticket = last.saturating_sub(back.into());
                let stream = streams[usize::from(stream) % STREAMS];
                // Beyond what was marked, or held up.
                let _ = heap.timeline().complete(stream, ticket);
            }
            Operation::Capture { stream, begins } => {
                let stream = streams[usize::from(stream) % STREAMS];
                heap.timeline().capture(stream, begins).unwrap();
            }
            Operation::Leave { stream } => {
                let slot = usize::from(stream) % STREAMS;
                if heap.leave(streams[slot]).is_ok() {
                    streams[slot] = heap.timeline().join().unwrap();
                }
            }
            Operation::Trim { keep } => {
                let _ = heap.trim(keep.into());
            }
            Operation::Sleep => {
                let _ = heap.sleep();
            }
            Operation::Wake => {
                let _ = heap.wake();
            }
            _ => {}
        }
        assert_eq!(heap.used(), held.len());
    }
    heap.check().unwrap();
    assert_eq!(heap.in_use().len(), held.len());
    for &stream in &streams {
        heap.timeline().capture(stream, false).unwrap();
    }
    for (place, _) in held.into_values() {
        heap.free(place).unwrap();
    }
    heap.sleep().unwrap();
    heap.wake().unwrap();
    for &stream in &streams {
        heap.leave(stream).unwrap();
    }
    heap.check().unwrap();
    let stream = heap.timeline().join().unwrap();
    let whole = heap.allocate(stream, 6 * PAGE, PAGE).unwrap();
    assert_eq!(whole.offset, 0);
    assert!(heap.timeline().completed(stream).is_ok());
});
