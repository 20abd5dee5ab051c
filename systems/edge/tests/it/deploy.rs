//! Modules that are not deployed, and what is said to those who brought them.

use metes_edge::{Absent, DeployError, Limits, Outcome, State};

use crate::guests::{LONG, NOP, binary, engine, once};

fn refused(text: &str, limits: &Limits) -> DeployError {
    engine()
        .compile(&binary(text), limits)
        .expect_err("it must be refused")
}

fn entry(name: &str) -> Limits {
    Limits {
        entry: name.to_owned(),
        ..Limits::default()
    }
}

#[test]
fn what_is_no_module() {
    let engine = engine();
    let cut = binary(NOP);
    for bytes in [&b""[..], b"\0asm", b"#!/bin/sh", &cut[..cut.len() - 1]] {
        let error = engine
            .compile(bytes, &Limits::default())
            .expect_err("it must be refused");
        assert!(matches!(error, DeployError::Invalid { .. }), "{error}");
    }
    assert!(engine.compile(&cut, &Limits::default()).is_ok());
}

#[test]
fn what_does_not_verify() {
    let error = refused(
        "(module (func (export \"_start\") (result i32)))",
        &Limits::default(),
    );
    assert!(error.to_string().contains("wasm32-wasip1"), "{error}");
    for feature in [
        "(module (memory i64 1) (func (export \"_start\")))",
        "(module (memory 1) (memory 1) (func (export \"_start\")))",
        "(module (memory 1 1 shared) (func (export \"_start\")))",
        "(module (func $f (export \"_start\") (return_call $f)))",
    ] {
        assert!(
            matches!(
                refused(feature, &Limits::default()),
                DeployError::Invalid { .. }
            ),
            "{feature}"
        );
    }
}

#[test]
fn what_cannot_be_called() {
    let error = refused(
        r#"(module (func (export "run")) (func (export "walk")))"#,
        &Limits::default(),
    );
    assert_eq!(
        error,
        DeployError::MissingEntry {
            entry: "_start".to_owned(),
            exported: vec!["run".to_owned(), "walk".to_owned()]
        }
    );
    assert!(error.to_string().contains("run, walk"), "{error}");
    for text in [
        r#"(module (func (export "f") (param i32)))"#,
        r#"(module (func (export "f") (result i64) (i64.const 0)))"#,
        r#"(module (func (export "f") (result i32 i32) (i32.const 0) (i32.const 0)))"#,
    ] {
        assert!(
            matches!(refused(text, &entry("f")), DeployError::EntryType { .. }),
            "{text}"
        );
    }
    assert!(matches!(
        refused(r#"(module (memory (export "f") 1))"#, &entry("f")),
        DeployError::MissingEntry { .. }
    ));
}

#[test]
fn what_asks_for_more_than_is_offered() {
    for (import, contains) in [
        (r#"(import "env" "f" (func))"#, "wasm32-wasip1"),
        (
            r#"(import "wasi_snapshot_preview1" "memory" (memory 1))"#,
            "define its own memory",
        ),
        (
            r#"(import "wasi_snapshot_preview1" "fly" (func))"#,
            "no such function",
        ),
        (
            r#"(import "wasi_snapshot_preview1" "poll_oneoff" (func (param i32 i32 i32 i32) (result i32)))"#,
            "denied",
        ),
        (
            r#"(import "wasi_snapshot_preview1" "fd_close" (func (param i64) (result i32)))"#,
            "another type",
        ),
        (
            r#"(import "wasi_snapshot_preview1" "proc_exit" (func (param i32) (result i32)))"#,
            "another type",
        ),
    ] {
        let error = refused(
            &format!(r#"(module {import} (func (export "_start")))"#),
            &Limits::default(),
        );
        assert!(error.to_string().contains(contains), "{error}");
    }
}

#[test]
fn files_can_be_denied_instead() {
    let text = r#"(module (import "wasi_snapshot_preview1" "fd_sync" (func $sync (param i32) (result i32)))
        (memory 1) (func (export "f") (result i32) (call $sync (i32.const 1))))"#;
    let limits = Limits {
        absent: Absent::Deny,
        ..entry("f")
    };
    let invocation = once(text, &limits);
    assert_eq!(
        (invocation.outcome, invocation.host_calls),
        (Outcome::Done { exit: 76 }, 1)
    );
}

#[test]
fn memory_that_is_not_there() {
    let one = 1 << 16;
    let error = refused(
        r#"(module (memory 3) (func (export "_start")))"#,
        &Limits {
            memory: 2 * one,
            ..Limits::default()
        },
    );
    assert_eq!(
        error,
        DeployError::Memory {
            needed: 3 * one,
            limit: 2 * one
        }
    );
    let error = refused(
        r#"(module (memory 17) (func (export "_start")))"#,
        &Limits::default(),
    );
    assert_eq!(
        error,
        DeployError::Memory {
            needed: 17 * one,
            limit: 16 * one
        }
    );
    let error = refused(
        NOP,
        &Limits {
            memory: 32 * one,
            ..Limits::default()
        },
    );
    assert_eq!(
        error,
        DeployError::Slot {
            asked: 32 * one,
            slot: 16 * one
        }
    );
    let error = refused(
        r#"(module (memory 1) (data (i32.const 65535) "ab") (func (export "_start")))"#,
        &Limits::default(),
    );
    assert_eq!(
        error,
        DeployError::Data {
            index: 0,
            end: one + 1,
            memory: one
        }
    );
}

#[test]
fn code_that_would_run_before_its_budget() {
    let error = refused(
        r#"(module (func $f) (start $f) (func (export "_start")))"#,
        &Limits::default(),
    );
    assert_eq!(error, DeployError::StartFunction);
    let spin = r#"(module (memory 1) (func (export "_initialize") (loop $l (br $l))) (func (export "f")))"#;
    let error = refused(spin, &entry("f"));
    assert!(matches!(error, DeployError::Initialise { .. }), "{error}");
}

#[test]
fn tables_beyond_measure() {
    let tables = "(table 1 funcref)".repeat(5);
    for text in [tables.as_str(), "(table 100000 funcref)"] {
        let error = refused(
            &format!(r#"(module {text} (func (export "_start")))"#),
            &Limits::default(),
        );
        assert!(matches!(error, DeployError::Tables { .. }), "{error}");
    }
    let text = r#"(module (table 1 funcref) (elem (i32.const 1) $f) (func $f (export "_start")))"#;
    assert!(matches!(
        refused(text, &Limits::default()),
        DeployError::Unsupported { .. }
    ));
}

#[test]
fn names_that_are_ours() {
    let text = r#"(module (global (export "metes.global.0") (mut i32) (i32.const 0)) (func (export "_start")))"#;
    assert!(matches!(
        refused(text, &Limits::default()),
        DeployError::Unsupported { .. }
    ));
}

#[test]
fn more_functions_than_slots() {
    let engine = engine();
    let mut worker = metes_edge::Worker::new(&engine);
    let limits = Limits {
        memory: 1 << 20,
        state: State::Kept,
        ..Limits::default()
    };
    let text = r#"(module (memory 16) (func (export "_start")))"#;
    let mut modules = Vec::new();
    for _ in 0..16 {
        let module = engine
            .compile(&binary(text), &limits)
            .expect("there is room");
        worker.prepare(&module).expect("there is room");
        modules.push(module);
    }
    let error = engine
        .compile(&binary(text), &limits)
        .expect_err("the pool is used up");
    assert!(matches!(error, DeployError::NoSlot(_)), "{error}");
    worker.remove(&modules[3]);
    let module = engine
        .compile(&binary(text), &limits)
        .expect("there is room again");
    assert_eq!(
        worker.invoke(&module, &[], &mut Vec::new(), LONG).outcome,
        Outcome::Done { exit: 0 }
    );
    // Where it was removed, it is prepared again, if there is room.
    let invocation = worker.invoke(&modules[3], &[], &mut Vec::new(), LONG);
    assert!(
        matches!(invocation.outcome, Outcome::Refused(_)),
        "{invocation:?}"
    );
}
