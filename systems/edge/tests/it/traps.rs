//! What WebAssembly forbids ends the invocation and nothing else, under both compilers.

use metes_edge::{Limits, Outcome, Slots, Trap, Worker};

use crate::guests::{LONG, NOP, TIERS, binary, engine, limits, once};

fn traps(body: &str, expected: Trap) {
    for tiers in TIERS {
        let text = format!(
            r#"(module (memory (export "memory") 1) (table 2 funcref) (type $t (func))
                (func $deep (param i64 i64) (result i64)
                    (i64.add (local.get 0) (call $deep (local.get 1) (i64.add (local.get 0) (i64.const 1)))))
                (func (export "_start") {body}))"#
        );
        let engine = engine();
        let module = engine
            .compile(&binary(&text), &limits(tiers))
            .expect("a guest of ours");
        let nop = engine
            .compile(&binary(NOP), &limits(tiers))
            .expect("a guest of ours");
        let mut worker = Worker::new(&engine);
        for _ in 0..3 {
            assert_eq!(
                worker.invoke(&module, &[], &mut Vec::new(), LONG).outcome,
                Outcome::Trap(expected),
                "{tiers:?}"
            );
            assert_eq!(
                worker.invoke(&nop, &[], &mut Vec::new(), LONG).outcome,
                Outcome::Done { exit: 0 }
            );
        }
        assert_eq!(engine.slots().taken(), 3 << 16);
        drop(worker);
        assert_eq!(engine.slots().taken(), 0);
    }
}

#[test]
fn unreachable_code() {
    traps("unreachable", Trap::Unreachable);
}

#[test]
fn a_load_just_behind_the_end() {
    traps("(drop (i32.load8_u (i32.const 65536)))", Trap::Memory);
    traps("(drop (i32.load (i32.const 65533)))", Trap::Memory);
}

#[test]
fn a_store_at_the_end_of_what_an_address_reaches() {
    traps(
        "(i64.store offset=0xffffffff (i32.const -1) (i64.const 1))",
        Trap::Memory,
    );
}

#[test]
fn the_last_byte_is_there() {
    for tiers in TIERS {
        let text = r#"(module (memory 1) (func (export "_start") (i32.store8 (i32.const 65535) (i32.const 1))))"#;
        assert_eq!(
            once(text, &limits(tiers)).outcome,
            Outcome::Done { exit: 0 }
        );
    }
}

/// A slot whose accessible part is larger than the memory would make this load succeed.
#[test]
fn a_small_memory_behind_a_large_one_has_its_own_guard() {
    let engine = engine();
    let large = r#"(module (memory 8) (func (export "_start") (i32.store (i32.const 65536) (i32.const 7))))"#;
    let small =
        r#"(module (memory 1) (func (export "_start") (drop (i32.load (i32.const 65536)))))"#;
    let large = engine
        .compile(&binary(large), &Limits::default())
        .expect("a guest of ours");
    let small = engine
        .compile(&binary(small), &Limits::default())
        .expect("a guest of ours");
    let mut worker = Worker::new(&engine);
    for _ in 0..3 {
        assert_eq!(
            worker.invoke(&large, &[], &mut Vec::new(), LONG).outcome,
            Outcome::Done { exit: 0 }
        );
        worker.remove(&large);
        assert_eq!(
            worker.invoke(&small, &[], &mut Vec::new(), LONG).outcome,
            Outcome::Trap(Trap::Memory)
        );
        worker.remove(&small);
    }
}

#[test]
fn recursion_without_end() {
    traps(
        "(drop (call $deep (i64.const 1) (i64.const 2)))",
        Trap::StackOverflow,
    );
}

#[test]
fn division_by_zero() {
    traps(
        "(drop (i32.div_u (i32.const 1) (i32.load (i32.const 0))))",
        Trap::DivisionByZero,
    );
}

#[test]
fn a_quotient_that_does_not_fit() {
    traps(
        "(drop (i32.div_s (i32.const 0x80000000) (i32.sub (i32.load (i32.const 0)) (i32.const 1))))",
        Trap::Integer,
    );
}

#[test]
fn an_indirect_call_of_nothing() {
    traps(
        "(call_indirect (type $t) (i32.const 0))",
        Trap::IndirectCall,
    );
    traps("(call_indirect (type $t) (i32.const 9))", Trap::Table);
}

#[test]
fn a_memory_bomb_gets_what_the_function_may_have() {
    let bomb = r#"(module (memory 1) (func (export "count") (result i32)
        (loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
        (i32.store8 (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 1)) (i32.const 1))
        (memory.size)))"#;
    for tiers in TIERS {
        let limits = |memory| Limits {
            entry: "count".to_owned(),
            memory,
            ..limits(tiers)
        };
        assert_eq!(once(bomb, &limits(0)).outcome, Outcome::Done { exit: 1 });
        assert_eq!(
            once(bomb, &limits(5 << 16)).outcome,
            Outcome::Done { exit: 5 }
        );
    }
}

#[test]
fn growth_within_the_slot_starts_anew_each_time() {
    let grow = r#"(module (memory 1) (func (export "grow") (result i32)
        (drop (memory.grow (i32.const 2))) (i32.store (i32.const 70000) (i32.const 5))
        (i32.add (memory.grow (i32.const 0)) (i32.mul (i32.const 100) (memory.grow (i32.const 9999))))))"#;
    let engine = engine();
    for tiers in TIERS {
        let limits = Limits {
            entry: "grow".to_owned(),
            memory: 4 << 16,
            ..limits(tiers)
        };
        let module = engine
            .compile(&binary(grow), &limits)
            .expect("a guest of ours");
        assert!(
            module
                .notes()
                .iter()
                .any(|note| note.contains("no growth of memory")),
            "{:?}",
            module.notes()
        );
        let mut worker = Worker::new(&engine);
        for _ in 0..3 {
            assert_eq!(
                worker.invoke(&module, &[], &mut Vec::new(), LONG).outcome,
                Outcome::Done { exit: 3 - 100 }
            );
        }
    }
}

#[test]
fn a_pool_says_that_it_is_used_up_and_takes_slots_back() {
    let slots = Slots::new(4 << 16, false);
    let first = slots.take(3 << 16).expect("there is room");
    assert!(
        slots
            .take(2 << 16)
            .expect_err("there is none")
            .to_string()
            .contains("more slots")
    );
    let second = slots.take(1 << 16).expect("there is room");
    drop((first, second));
    assert_eq!(slots.taken(), 0);
    // Slots of other sizes make room.
    assert_eq!(slots.take(4 << 16).expect("there is room").bytes(), 4 << 16);
    for wrong in [0, 1, 65537, 5 << 30] {
        assert!(slots.take(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_slot_that_was_written_comes_back_empty() {
    let slots = Slots::new(1 << 16, false);
    slots
        .take(1 << 16)
        .expect("there is room")
        .memory()
        .fill(0xaa);
    assert!(
        slots
            .take(1 << 16)
            .expect("there is room")
            .memory()
            .iter()
            .all(|byte| *byte == 0)
    );
}

#[test]
fn functions_without_a_memory_are_functions() {
    for tiers in TIERS {
        let text = r#"(module (func (export "f") (result i32) (i32.const 9)))"#;
        let limits = Limits {
            entry: "f".to_owned(),
            ..limits(tiers)
        };
        assert_eq!(once(text, &limits).outcome, Outcome::Done { exit: 9 });
    }
}
