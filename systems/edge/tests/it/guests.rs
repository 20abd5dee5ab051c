//! Guests in the text of WebAssembly, and an engine for them.
//!
//! *Invariant:* a guest here does one thing.

use std::time::Duration;

use metes_edge::{Engine, Invocation, Limits, Module, Options, Outcome, Overheads, Tiers, Worker};

/// What a host needs itself, where that is to decide nothing.
pub(crate) const NOTHING: Overheads = Overheads {
    release_ns: 0,
    blocking_ns: 0,
    look_ns: 0,
    look_period_ns: 100_000,
};

pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Modules of preview 1 as far as guests import them.
pub(crate) const IMPORTS: &str = r#"
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
"#;

pub(crate) const NOP: &str = r#"(module (memory (export "memory") 2) (func (export "_start")))"#;

/// Copies stdin to stdout, 1000 bytes at a time.
pub(crate) fn echo() -> String {
    format!(
        r#"(module {IMPORTS} (memory (export "memory") 1)
        (func (export "_start")
            (loop $again
                (i32.store (i32.const 0) (i32.const 1024))
                (i32.store (i32.const 4) (i32.const 1000))
                (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
                (if (i32.load (i32.const 16)) (then
                    (i32.store (i32.const 4) (i32.load (i32.const 16)))
                    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 20)))
                    (br $again))))))"#
    )
}

/// Loops for ever.
pub(crate) const SPIN: &str =
    r#"(module (memory (export "memory") 1) (func (export "_start") (loop $again (br $again))))"#;

/// Counts in a global, a byte of memory that it marks, and gives the count as its status.
pub(crate) const COUNTER: &str = r#"(module (memory (export "memory") 1)
    (global $count (mut i32) (i32.const 100))
    (data (i32.const 8) "\05")
    (func (export "count") (result i32)
        (global.set $count (i32.add (global.get $count) (i32.const 1)))
        (i32.store8 (i32.const 8) (i32.add (i32.load8_u (i32.const 8)) (i32.const 1)))
        (i32.add (global.get $count) (i32.mul (i32.const 1000) (i32.load8_u (i32.const 8))))))"#;

/// A module of the text.
pub(crate) fn binary(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("a guest of ours")
}

/// An engine without locked memory, which the machine of a test may not permit.
pub(crate) fn engine() -> Engine {
    Engine::new(Options {
        slots: 16,
        slot_bytes: 1 << 20,
        lock: false,
        ..Options::default()
    })
    .expect("an engine")
}

pub(crate) fn limits(tiers: Tiers) -> Limits {
    Limits {
        tiers,
        ..Limits::default()
    }
}

pub(crate) const TIERS: [Tiers; 2] = [Tiers::Baseline, Tiers::Optimised];

/// Deploys and calls once with an empty request.
pub(crate) fn once(text: &str, limits: &Limits) -> Invocation {
    let engine = engine();
    let module = engine
        .compile(&binary(text), limits)
        .expect("a guest of ours");
    let mut worker = Worker::new(&engine);
    worker.invoke(&module, &[], &mut Vec::new(), LONG)
}

/// The status of a call that must end well.
pub(crate) fn status(worker: &mut Worker, module: &Module) -> i32 {
    let invocation = worker.invoke(module, &[], &mut Vec::new(), LONG);
    match invocation.outcome {
        Outcome::Done { exit } => exit,
        other => panic!("{other:?}"),
    }
}
