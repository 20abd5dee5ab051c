//! What setting a memory back takes, by its size: where nothing was written, where everything was, and
//! beside reading all of it, which is what looking for
//! differences would take at least.
//!
//! *Invariant:* the times are those that the host reports of its own invocations.

use std::time::{Duration, Instant};

use metes_edge::{Engine, Limits, Options, Tiers, Worker};

use crate::samples::Samples;

pub(crate) fn measure() {
    let options = Options {
        slots: 4,
        slot_bytes: 16 << 20,
        lock: false,
        ..Options::default()
    };
    let engine = Engine::new(options).expect("an engine");
    for pages in [1u64, 16, 64, 256] {
        let bytes = pages << 16;
        let mut column = Vec::new();
        for written in [0, bytes] {
            let text = format!(
                r#"(module (memory {pages}) (func (export "_start")
                (memory.fill (i32.const 0) (i32.const 1) (i32.const {written}))))"#
            );
            let wasm = wat::parse_str(&text).expect("a module of ours");
            let limits = Limits {
                tiers: Tiers::Optimised,
                ..Limits::default()
            };
            let module = engine.compile(&wasm, &limits).expect("a module of ours");
            let mut worker = Worker::new(&engine);
            let times = (0..300)
                .map(|_| {
                    worker
                        .invoke(&module, &[], &mut Vec::new(), Duration::from_secs(1))
                        .scrub_ns
                })
                .collect();
            column.push(Samples::of(times).at(500_000));
        }
        let memory = vec![0u8; bytes as usize];
        let times = (0..300)
            .map(|_| {
                let begin = Instant::now();
                std::hint::black_box(read(std::hint::black_box(&memory)));
                begin.elapsed().as_nanos() as u64
            })
            .collect();
        let looked = Samples::of(times).at(500_000);
        println!(
            "{:>6} KiB   nothing written {:>8.2}   everything written {:>8.2}   reading alone {looked:>8.2} us",
            bytes >> 10,
            column[0],
            column[1]
        );
    }
}

/// All bits of it together, by the widest loads that there are.
fn read(memory: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function asks for.
        return unsafe { read_wide(memory) };
    }
    all(memory)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn read_wide(memory: &[u8]) -> u64 {
    all(memory)
}

#[inline(always)]
fn all(memory: &[u8]) -> u64 {
    let mut sum = [0u64; 16];
    for block in memory.as_chunks::<128>().0 {
        for (sum, word) in sum.iter_mut().zip(block.as_chunks::<8>().0) {
            *sum |= u64::from_ne_bytes(*word);
        }
    }
    sum.iter().fold(0, |all, word| all | word)
}
