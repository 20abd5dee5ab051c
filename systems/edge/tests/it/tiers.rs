//! The optimised code takes over from the baseline code between two calls.

use metes_edge::{
    CompileServer, Engine, Limits, Options, Outcome, Reset, State, Tier, Tiers, Worker,
};

use crate::guests::{COUNTER, IMPORTS, LONG, NOP, binary, engine, status};

#[test]
fn the_first_answer_is_the_baseline_s_and_later_ones_are_optimised() {
    let engine = engine();
    let module = engine
        .compile(&binary(NOP), &Limits::default())
        .expect("a guest of ours");
    let mut worker = Worker::new(&engine);
    assert!(module.has(Tier::Baseline));
    engine.settle();
    assert!(module.has(Tier::Optimised));
    // A worker that was made ready before the code was there takes it over after its next call.
    let tiers = [(); 3].map(|()| worker.invoke(&module, &[], &mut Vec::new(), LONG).tier);
    assert_eq!(tiers[2], Tier::Optimised);
}

#[test]
fn what_was_written_to_stderr_outlives_the_instance() {
    // The second changes its table: each of its invocations has an instance of its own.
    for (changes, reset) in [
        ("", Reset::Restore),
        (
            "(table.set (i32.const 0) (ref.null func))",
            Reset::Instantiate,
        ),
    ] {
        let text = format!(
            r#"(module {IMPORTS} (memory (export "memory") 1) (table 1 funcref) (data (i32.const 64) "no")
            (func (export "_start") {changes}
                (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 2))
                (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
                (call $exit (i32.const 7))))"#
        );
        let engine = engine();
        let module = engine.compile(&binary(&text), &Limits::default());
        let module = module.expect("a guest of ours");
        assert_eq!(module.reset(), reset);
        let mut worker = Worker::new(&engine);
        for _ in 0..3 {
            assert_eq!(status(&mut worker, &module), 7);
            assert_eq!(worker.errors(&module), b"no");
            engine.settle();
        }
        assert_eq!(worker.tier(&module), Some(Tier::Optimised));
    }
}

#[test]
fn kept_state_is_handed_over_where_it_is() {
    let engine = engine();
    let limits = Limits {
        entry: "count".to_owned(),
        state: State::Kept,
        ..Limits::default()
    };
    let module = engine
        .compile(&binary(COUNTER), &limits)
        .expect("a guest of ours");
    let mut worker = Worker::new(&engine);
    // Whether or not the code was ready when the worker was, the count goes on over the switch.
    let mut counts = vec![status(&mut worker, &module)];
    engine.settle();
    for _ in 0..4 {
        counts.push(status(&mut worker, &module));
    }
    assert_eq!(counts, [6101, 7102, 8103, 9104, 10105]);
    assert_eq!(worker.tier(&module), Some(Tier::Optimised));
    assert_eq!(engine.slots().taken(), 1 << 16);
}

#[test]
fn state_of_every_kind_survives_the_switch() {
    let text = r#"(module (memory 1) (table 2 funcref) (elem (i32.const 0) $a $b) (type $t (func (result i32)))
        (global $i (mut i32) (i32.const 1)) (global $l (mut i64) (i64.const 1)) (global $c i32 (i32.const 3))
        (global $f (mut f32) (f32.const 1)) (global $d (mut f64) (f64.const 1))
        (func $a (result i32) (i32.const 1)) (func $b (result i32) (i32.const 2))
        (func (export "f") (result i32)
            (global.set $i (i32.mul (global.get $i) (global.get $c)))
            (global.set $l (i64.mul (global.get $l) (i64.const 3)))
            (global.set $f (f32.mul (global.get $f) (f32.const 3)))
            (global.set $d (f64.mul (global.get $d) (f64.const 3)))
            (drop (memory.grow (i32.const 1)))
            (i32.store (i32.const 65532) (i32.add (i32.load (i32.const 65532)) (call_indirect (type $t) (i32.const 1))))
            (i32.add (i32.add (i32.add (global.get $i) (i32.wrap_i64 (global.get $l)))
                (i32.add (i32.trunc_f32_u (global.get $f)) (i32.trunc_f64_u (global.get $d))))
                (i32.add (i32.mul (memory.size) (i32.const 1000)) (i32.mul (i32.const 10000) (i32.load (i32.const 65532)))))))"#;
    let limits = |tiers| Limits {
        entry: "f".to_owned(),
        state: State::Kept,
        memory: 16 << 16,
        tiers,
        ..Limits::default()
    };
    let run = |tiers, settle_at: usize| {
        let engine = engine();
        let module = engine
            .compile(&binary(text), &limits(tiers))
            .expect("a guest of ours");
        let mut worker = Worker::new(&engine);
        let mut answers = Vec::new();
        for call in 0..6 {
            if call == settle_at {
                engine.settle();
            }
            answers.push(status(&mut worker, &module));
        }
        answers
    };
    let expected = run(Tiers::Optimised, 0);
    assert_eq!(expected[1], 4 * 9 + 3000 + 40_000);
    assert_eq!(run(Tiers::Baseline, 0), expected);
    for settle_at in 1..5 {
        assert_eq!(run(Tiers::Both, settle_at), expected, "{settle_at}");
    }
}

#[test]
fn kept_tables_are_compiled_once_and_for_all() {
    let text = r#"(module (table 1 funcref) (func (export "f") (result i32)
        (table.set (i32.const 0) (ref.null func)) (i32.const 4)))"#;
    let engine = engine();
    let limits = Limits {
        entry: "f".to_owned(),
        state: State::Kept,
        ..Limits::default()
    };
    let module = engine
        .compile(&binary(text), &limits)
        .expect("a guest of ours");
    assert!(module.has(Tier::Optimised) && !module.has(Tier::Baseline));
    assert_eq!(status(&mut Worker::new(&engine), &module), 4);
}

#[test]
fn a_trap_sets_kept_state_back() {
    let text = r#"(module (memory 1) (global $n (mut i32) (i32.const 0)) (func (export "f") (result i32)
        (global.set $n (i32.add (global.get $n) (i32.const 1)))
        (if (i32.eq (global.get $n) (i32.const 3)) (then unreachable)) (global.get $n)))"#;
    let engine = engine();
    let limits = Limits {
        entry: "f".to_owned(),
        state: State::Kept,
        ..Limits::default()
    };
    let module = engine
        .compile(&binary(text), &limits)
        .expect("a guest of ours");
    let mut worker = Worker::new(&engine);
    let outcomes: Vec<_> = (0..4)
        .map(|_| worker.invoke(&module, &[], &mut Vec::new(), LONG).outcome)
        .collect();
    assert!(matches!(outcomes[2], Outcome::Trap(_)));
    assert_eq!(outcomes[3], Outcome::Done { exit: 1 });
}

#[test]
fn a_reserved_budget_is_enough_to_compile() {
    let server = CompileServer {
        budget: std::time::Duration::from_millis(4),
        period: std::time::Duration::from_millis(20),
    };
    let options = Options {
        slots: 2,
        slot_bytes: 1 << 20,
        lock: false,
        compile_server: Some(server),
        ..Options::default()
    };
    let engine = Engine::new(options).expect("an engine");
    let module = engine
        .compile(&binary(NOP), &Limits::default())
        .expect("a guest of ours");
    engine.settle();
    // Whether or not the kernel permits the reservation.
    assert!(module.has(Tier::Optimised));
}

#[test]
fn a_server_that_makes_no_sense_is_refused() {
    let server = CompileServer {
        budget: std::time::Duration::from_millis(2),
        period: std::time::Duration::from_millis(1),
    };
    let error = Engine::new(Options {
        compile_server: Some(server),
        ..Options::default()
    })
    .err()
    .expect("it must be refused");
    assert!(error.to_string().contains("at most its period"), "{error}");
}
