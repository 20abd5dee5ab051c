//! Events per second and core of replays, over every named heap.
//!
//! The trace is made, not recorded, so that the bench needs no program: 600 000
//! events in the manner of a database filling a table (many small short-lived
//! blocks, page buffers that stay, a few growing arrays).

#![allow(missing_docs, reason = "the macro makes a public function")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use metes_explore::{Events, EventsBuilder, Operation, Options, Replayer, catalogue};

/// A xorshift generator: the bench must not depend on a random crate's version.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn database_like(events: usize) -> Events {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut builder = EventsBuilder::new();
    let mut short: Vec<u64> = Vec::new();
    let mut pages: Vec<u64> = Vec::new();
    let mut count = 0;
    let mut serial = 0;
    let mut push = |operation, block, size| {
        builder
            .push(operation, block, size, 16)
            .expect("a sound trace");
        count += 1;
        count
    };
    loop {
        serial += 1;
        let done = match random.below(100) {
            0..46 => {
                short.push(serial);
                let size = match random.below(10) {
                    0..4 => 16 + random.below(48),
                    4..7 => 64 + random.below(64),
                    7..9 => 128 + random.below(400),
                    _ => 500 + random.below(3000),
                };
                push(Operation::Allocate, serial, size)
            }
            46..48 => {
                pages.push(serial);
                push(Operation::Allocate, serial, 4368)
            }
            48..50 if pages.len() > 400 => {
                let index = random.below(pages.len() as u64) as usize;
                push(Operation::Free, pages.swap_remove(index), 0)
            }
            50..54 if !short.is_empty() => {
                let index = random.below(short.len() as u64) as usize;
                push(Operation::Resize, short[index], 32 + random.below(600))
            }
            _ if short.len() > 200 || (!short.is_empty() && random.below(3) == 0) => {
                // Mostly the latest, sometimes any.
                let index = match random.below(4) {
                    0 => random.below(short.len() as u64) as usize,
                    _ => short.len() - 1 - random.below(short.len().min(8) as u64) as usize,
                };
                push(Operation::Free, short.swap_remove(index), 0)
            }
            _ => continue,
        };
        if done == events {
            return builder.finish();
        }
    }
}

fn replay(criterion: &mut Criterion) {
    let events = database_like(600_000);
    let mut group = criterion.benchmark_group("replay");
    group.throughput(Throughput::Elements(events.len() as u64));
    group.sample_size(10);
    let mut replayer = Replayer::new();
    for named in catalogue() {
        let id = BenchmarkId::from_parameter(named.name);
        group.bench_function(id, |bencher| {
            bencher.iter(|| replayer.outcome(&named.description, &events, &Options::default()));
        });
    }
    group.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
