//! Between release and completion, and while the slot is set back: no system call, no page fault.
//!
//! *Invariant:* the counters that find nothing here find something where there is something.

#![cfg(target_arch = "x86_64")]

use metes_edge::{Engine, Limits, Options, Outcome, Worker};

use crate::guests::{IMPORTS, LONG, NOP, TIERS, binary, echo, engine, limits};
use crate::system_calls::Counter;

#[test]
fn the_counter_counts() {
    let counter = Counter::new();
    counter.begin();
    let quiet = counter.end();
    counter.begin();
    // SAFETY: asks for numbers.
    let (parent, group) = unsafe { (libc::getppid(), libc::getpgrp()) };
    let loud = counter.end();
    assert_eq!((quiet, loud), ((0, -1), (2, libc::SYS_getppid)));
    // SAFETY: as above.
    let again = unsafe { (libc::getppid(), libc::getpgrp()) };
    assert_eq!((parent, group), again, "the calls were made");
}

/// Uses everything that is offered, and writes to all of its memory.
fn busy() -> String {
    format!(
        r#"(module {IMPORTS} (memory (export "memory") 4) (global $g (mut i32) (i32.const 1))
        (data (i32.const 0) "\00\10\00\00\e8\03\00\00")
        (table 2 funcref) (elem (i32.const 0) $one $one) (type $t (func (result i32)))
        (func $one (result i32) (i32.const 1))
        (func (export "f") (result i32)
            (drop (call_indirect (type $t) (i32.const 1)))
            (memory.fill (i32.const 8192) (i32.const 1) (i32.const 250000))
            (drop (call $random (i32.const 70000) (i32.const 1000)))
            (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 80000)))
            (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 80000)))
            (drop (call $args_sizes (i32.const 80000) (i32.const 80004)))
            (drop (call $args (i32.const 80000) (i32.const 80100)))
            (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 20)))
            (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 20)))
            (global.set $g (i32.const 4))
            (i32.load (i32.const 16))))"#
    )
}

#[test]
fn an_invocation_makes_no_system_call() {
    let counter = Counter::new();
    for tiers in TIERS {
        let engine = engine();
        let compile = |text: &str, entry: &str| {
            let limits = Limits {
                entry: entry.to_owned(),
                ..limits(tiers)
            };
            engine
                .compile(&binary(text), &limits)
                .expect("a guest of ours")
        };
        let modules = [
            compile(NOP, "_start"),
            compile(&echo(), "_start"),
            compile(&busy(), "f"),
        ];
        let mut worker = Worker::new(&engine);
        let mut output = Vec::with_capacity(4096);
        for module in &modules {
            worker.prepare(module).expect("there is room");
        }
        // The first of all tells the watching thread of its budget.
        worker.invoke(&modules[0], &[], &mut output, LONG);
        for round in 0..200 {
            let module = &modules[round % modules.len()];
            counter.begin();
            let invocation = worker.invoke(module, &[5; 900], &mut output, LONG);
            let (count, first) = counter.end();
            assert!(
                matches!(invocation.outcome, Outcome::Done { .. }),
                "{invocation:?}"
            );
            assert_eq!(count, 0, "call {first} in round {round}");
        }
    }
}

#[test]
fn an_invocation_takes_no_page_fault() {
    for tiers in TIERS {
        // With locked memory where the machine permits it, as a host would have it.
        let options = |lock| Options {
            slots: 16,
            slot_bytes: 1 << 20,
            lock,
            ..Options::default()
        };
        let engine = Engine::new(options(true)).expect("an engine");
        let engine = match engine.slots().take(1 << 16) {
            Ok(_) => engine,
            Err(_) => Engine::new(options(false)).expect("an engine"),
        };
        let module = engine
            .compile(
                &binary(&busy()),
                &Limits {
                    entry: "f".to_owned(),
                    ..limits(tiers)
                },
            )
            .expect("a guest of ours");
        let mut worker = Worker::new(&engine);
        worker.count_faults(true);
        let mut output = Vec::with_capacity(4096);
        output.resize(4096, 1);
        // The first touches what is the host's own: its code, its heap.
        worker.invoke(&module, &[5; 900], &mut output, LONG);
        for _ in 0..200 {
            let invocation = worker.invoke(&module, &[5; 900], &mut output, LONG);
            assert_eq!(
                (invocation.outcome, invocation.faults),
                (Outcome::Done { exit: 900 }, Some(0))
            );
        }
    }
}

#[test]
fn faults_are_counted() {
    let before = faults();
    let page = vec![1u8; 64 << 20];
    std::hint::black_box(&page);
    assert!(faults() > before + 10);
}

fn faults() -> i64 {
    // SAFETY: zeros are valid, and the structure is ours.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_minflt + usage.ru_majflt
    }
}
