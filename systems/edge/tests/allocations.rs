//! Counts the allocations of an invocation: there are none. A process of its own, as it replaces the allocator.
//!
//! *Invariant:* all that this process allocates on the counting thread is counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use metes_edge::{Engine, Limits, Options, Outcome, Tiers, Worker};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator, which keeps the contract; the counter is plain.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn an_invocation_allocates_nothing() {
    let text = r#"(module
        (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
        (memory 2) (global $g (mut i32) (i32.const 1)) (data (i32.const 0) "\00\10\00\00\e8\03\00\00")
        (func (export "f") (result i32)
            (global.set $g (i32.const 5))
            (drop (call $random (i32.const 70000) (i32.const 100)))
            (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 20)))
            (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 20)))
            (memory.grow (i32.const 1))))"#;
    let options = Options {
        slots: 4,
        slot_bytes: 1 << 20,
        lock: false,
        ..Options::default()
    };
    let engine = Engine::new(options).expect("an engine");
    for tiers in [Tiers::Baseline, Tiers::Optimised] {
        let limits = Limits {
            entry: "f".to_owned(),
            memory: 4 << 16,
            tiers,
            ..Limits::default()
        };
        let module = engine
            .compile(&wat::parse_str(text).expect("a guest of ours"), &limits)
            .expect("as above");
        let mut worker = Worker::new(&engine);
        worker.prepare(&module).expect("there is room");
        let mut output = Vec::with_capacity(4096);
        let input = [7; 900];
        let before = COUNT.get();
        for _ in 0..100 {
            let invocation = worker.invoke(&module, &input, &mut output, Duration::from_secs(10));
            assert_eq!(
                (invocation.outcome, output.len()),
                (Outcome::Done { exit: 2 }, 1000)
            );
        }
        assert_eq!(COUNT.get(), before);
        drop(std::hint::black_box(Box::new(1)));
        assert_eq!(COUNT.get(), before + 2, "what allocates is counted");
    }
}
