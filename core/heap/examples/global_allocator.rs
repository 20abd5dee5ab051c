//! The shortest program whose every allocation is a Metes heap's.
//!
//! `cargo run -p metes-heap --example global_allocator`

use std::collections::BTreeMap;

use metes_heap::global::StaticHeap;
use metes_heap::lock::Spin;
use metes_heap::{State, Tlsf};

/// TLSF in 4 MiB: every operation takes constant time.
#[global_allocator]
static HEAP: StaticHeap<Spin, Tlsf<16>, { 4 << 20 }> = StaticHeap::new(Spin::new(), Tlsf::new());

fn main() {
    let mut words: BTreeMap<String, usize> = BTreeMap::new();
    for word in include_str!("global_allocator.rs").split(|c: char| !c.is_alphanumeric()) {
        *words.entry(word.to_lowercase()).or_default() += 1;
    }
    let statistics = HEAP.statistics();
    println!("{} distinct words", words.len());
    println!(
        "{} bytes live in {} blocks",
        statistics.live, statistics.blocks
    );
    println!("{} bytes live at the peak", statistics.peak_live);
    println!("{} bytes of records", statistics.record_bytes);
    println!(
        "{} bytes is the largest request that fits",
        statistics.largest_free
    );
    HEAP.check().expect("the heap is sound");

    // Walking holds the heap's lock: count, and print afterwards.
    let mut used = 0;
    HEAP.visit(|block| used += usize::from(matches!(block.state, State::Used(_))));
    println!("{used} blocks in use when walked");
}
