//! A function in Rust with its standard library, built for WASI by the compiler of this toolchain.
//!
//! *Invariant:* what is deployed is what `rustc --target wasm32-wasip1` makes, with a smaller stack.

use std::process::Command;

use metes_edge::{Limits, Outcome, Tier, Trap, Worker};

use crate::guests::{LONG, TIERS, engine, limits};

fn words() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let wasm = directory.path().join("words.wasm");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guests/words.rs");
    let built = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()))
        .args([
            "--edition=2024",
            "--target=wasm32-wasip1",
            "-O",
            "-Cstrip=symbols",
            "-Clink-arg=-zstack-size=32768",
        ])
        .arg(source)
        .arg("-o")
        .arg(&wasm)
        .status()
        .expect("rustc");
    assert!(built.success(), "rustup target add wasm32-wasip1");
    std::fs::read(wasm).expect("it was built")
}

#[test]
fn a_program_with_a_heap_runs_fresh_each_time() {
    let wasm = words();
    let mut answers = Vec::new();
    for tiers in TIERS {
        let engine = engine();
        let limits = Limits {
            memory: 1 << 20,
            ..limits(tiers)
        };
        let module = engine
            .compile(&wasm, &limits)
            .expect("preview 1 is enough for it");
        let mut worker = Worker::new(&engine);
        worker.count_faults(true);
        let mut output = Vec::with_capacity(1 << 10);
        for round in 0..20 {
            let invocation = worker.invoke(
                &module,
                b"to be or not to be that is to be",
                &mut output,
                LONG,
            );
            assert_eq!(
                invocation.outcome,
                Outcome::Done { exit: 0 },
                "{}",
                String::from_utf8_lossy(worker.errors(&module))
            );
            assert_eq!(String::from_utf8_lossy(&output), "be 3\nto 3\nis 1\n");
            assert!(round == 0 || invocation.faults == Some(0), "{invocation:?}");
        }
        let invocation = worker.invoke(&module, b"", &mut output, LONG);
        assert_eq!(invocation.outcome, Outcome::Trap(Trap::Unreachable));
        assert!(String::from_utf8_lossy(worker.errors(&module)).contains("no words"));
        let invocation = worker.invoke(&module, b"\xff", &mut output, LONG);
        assert_eq!(invocation.outcome, Outcome::Done { exit: 3 });
        answers.push(
            engine
                .count(&module, b"one two two", 1 << 32)
                .expect("it ends"),
        );
    }
    assert!(answers[0].repeatable && answers[0] == answers[1]);
}

#[test]
fn it_is_handed_over_while_it_is_used() {
    let engine = engine();
    let module = engine
        .compile(
            &words(),
            &Limits {
                memory: 1 << 20,
                ..Limits::default()
            },
        )
        .expect("as above");
    let mut worker = Worker::new(&engine);
    let mut output = Vec::with_capacity(1 << 10);
    let mut tiers = Vec::new();
    for round in 0..4 {
        let invocation = worker.invoke(&module, b"a b a", &mut output, LONG);
        assert_eq!(
            (invocation.outcome, output.as_slice()),
            (Outcome::Done { exit: 0 }, &b"a 2\nb 1\n"[..])
        );
        tiers.push(invocation.tier);
        if round == 0 {
            engine.settle();
        }
    }
    assert_eq!(tiers[3], Tier::Optimised);
}
