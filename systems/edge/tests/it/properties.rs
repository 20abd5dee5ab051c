//! Whatever bytes arrive, deployment answers, and what it accepts runs within its bounds.

use std::time::Duration;

use metes_edge::{Absent, DeployError, Engine, Limits, Options, Tiers, Worker};
use metes_random::Random;

use crate::guests::{COUNTER, binary, echo};

/// A module with something in each section.
const RICH: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open" (func (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (memory (export "memory") 1 9) (table 3 7 funcref) (elem (i32.const 0) $a $b) (type $t (func (param i32) (result i32)))
    (global (mut i64) (i64.const 7)) (global i32 (i32.const 65536)) (data (i32.const 100) "something") (data "passive")
    (func $a (param i32) (result i32) (local i64 f32) (i32.mul (local.get 0) (memory.grow (i32.const 1))))
    (func $b (param i32) (result i32) (memory.init 1 (i32.const 0) (i32.const 0) (i32.const 7)) (data.drop 1) (memory.size))
    (func (export "_start")
        (drop (call_indirect (type $t) (i32.const 5) (i32.const 1)))
        (drop (call_indirect (type $t) (i32.const 5) (i32.const 0)))
        (global.set 0 (i64.div_s (global.get 0) (i64.load (i32.const 100))))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))"#;

fn engine() -> Engine {
    Engine::new(Options {
        slots: 2,
        slot_bytes: 1 << 20,
        lock: false,
        ..Options::default()
    })
    .expect("an engine")
}

/// Deploys and runs what is accepted.
fn attempt(engine: &Engine, bytes: &[u8], tiers: Tiers) {
    let limits = Limits {
        absent: Absent::Deny,
        memory: 4 << 16,
        tiers,
        ..Limits::default()
    };
    match engine.compile(bytes, &limits) {
        Ok(module) => {
            let mut worker = Worker::new(engine);
            for _ in 0..2 {
                worker.invoke(
                    &module,
                    b"request",
                    &mut Vec::with_capacity(64),
                    Duration::from_millis(2),
                );
            }
        }
        // What verifies is rewritten into something that verifies.
        Err(DeployError::Compile { cause, .. }) => assert_ne!(tiers, Tiers::Optimised, "{cause}"),
        Err(_) => {}
    }
    assert_eq!(engine.slots().taken(), 0);
}

#[test]
fn mutated_modules_never_panic() {
    let engine = engine();
    let modules = [binary(RICH), binary(&echo()), binary(COUNTER)];
    let mut random = Random::new(20);
    for round in 0..600 {
        let mut bytes = modules[round % 3].clone();
        for _ in 0..random.between(1, 4) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes[at] = random.next() as u8,
                1 => bytes[at] = bytes[at].wrapping_add(1),
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, random.next() as u8),
            }
        }
        if random.below(10) == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        attempt(
            &engine,
            &bytes,
            if round % 7 == 0 {
                Tiers::Optimised
            } else {
                Tiers::Baseline
            },
        );
    }
}

#[test]
fn bytes_of_any_kind_never_panic() {
    let engine = engine();
    let mut random = Random::new(21);
    for _ in 0..500 {
        let bytes: Vec<u8> = (0..random.below(200))
            .map(|_| random.next() as u8)
            .collect();
        attempt(&engine, &bytes, Tiers::Baseline);
        let mut named = b"\0asm\x01\0\0\0".to_vec();
        named.extend_from_slice(&bytes);
        attempt(&engine, &named, Tiers::Baseline);
    }
}

#[test]
fn every_single_bit_of_a_rich_module_may_be_wrong() {
    let engine = engine();
    let bytes = binary(RICH);
    attempt(&engine, &bytes, Tiers::Both);
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        attempt(
            &engine,
            &changed,
            if bit % 5 == 0 {
                Tiers::Optimised
            } else {
                Tiers::Baseline
            },
        );
    }
}
