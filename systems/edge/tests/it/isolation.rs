//! Nothing of one invocation reaches the next.

use metes_edge::{Limits, Outcome, Reset, State, Tiers, Worker};

use crate::guests::{COUNTER, LONG, SPIN, TIERS, binary, engine, limits, status};

/// Looks at all its memory but the first word, and at its globals, table and passive segment; gives how
/// much is not as it was at the beginning; then leaves secrets everywhere, and ends as it is told.
fn spy(end: &str) -> String {
    format!(
        r#"(module (memory 3) (global $g (mut i64) (i64.const 5)) (global $f (mut f64) (f64.const 1))
        (data (i32.const 1000) "beginning")
        (func (export "spy") (result i32) (local $at i32) (local $found i32)
            (local.set $at (i32.const 16))
            (loop $again
                (if (i32.and (i32.ne (i32.load8_u (local.get $at)) (i32.const 0))
                             (i32.gt_u (i32.sub (local.get $at) (i32.const 1000)) (i32.const 8)))
                    (then (local.set $found (i32.add (local.get $found) (i32.const 1)))))
                (local.set $at (i32.add (local.get $at) (i32.const 1)))
                (br_if $again (i32.lt_u (local.get $at) (i32.const 196608))))
            (if (i32.ne (i32.load8_u (i32.const 1000)) (i32.const 98))
                (then (local.set $found (i32.add (local.get $found) (i32.const 1)))))
            (if (i64.ne (global.get $g) (i64.const 5))
                (then (local.set $found (i32.add (local.get $found) (i32.const 1)))))
            (if (f64.ne (global.get $f) (f64.const 1))
                (then (local.set $found (i32.add (local.get $found) (i32.const 1)))))
            (global.set $g (i64.const 77)) (global.set $f (f64.const 99))
            (if (local.get $found) (then (return (local.get $found))))
            (memory.fill (i32.const 0) (i32.const 0xa5) (i32.const 196608))
            {end}))"#
    )
}

#[test]
fn secrets_are_gone_however_the_invocation_ends() {
    let ends = [
        "(i32.const 0)",
        "(unreachable)",
        "(loop $l (br $l)) (i32.const 0)",
        "(i32.load (i32.const -1))",
    ];
    for (tiers, end) in TIERS.iter().flat_map(|tiers| ends.map(|end| (*tiers, end))) {
        let engine = engine();
        let limits = Limits {
            entry: "spy".to_owned(),
            ..limits(tiers)
        };
        let module = engine
            .compile(&binary(&spy(end)), &limits)
            .expect("a guest of ours");
        assert_eq!(module.reset(), Reset::Restore);
        let mut worker = Worker::new(&engine);
        for _ in 0..3 {
            let invocation = worker.invoke(
                &module,
                &[],
                &mut Vec::new(),
                std::time::Duration::from_millis(300),
            );
            match invocation.outcome {
                Outcome::Done { exit } => assert_eq!((exit, end), (0, ends[0])),
                _ => assert_ne!(end, ends[0], "{invocation:?}"),
            }
        }
    }
}

#[test]
fn secrets_of_one_function_are_not_another_s() {
    let engine = engine();
    let mut worker = Worker::new(&engine);
    let limits = Limits {
        entry: "spy".to_owned(),
        ..Limits::default()
    };
    for _ in 0..4 {
        let module = engine
            .compile(&binary(&spy("(i32.const 0)")), &limits)
            .expect("a guest of ours");
        assert_eq!(status(&mut worker, &module), 0);
        worker.remove(&module);
    }
}

#[test]
fn tables_and_dropped_segments_are_new_each_time() {
    let text = r#"(module (memory 1) (table 2 funcref) (elem (i32.const 0) $one) (type $t (func (result i32)))
        (data $d "\07") (global $g (mut i32) (i32.const 0))
        (func $one (result i32) (i32.const 1)) (func $two (result i32) (i32.const 2)) (elem declare func $two)
        (func (export "f") (result i32) (local $was i32)
            (local.set $was (call_indirect (type $t) (i32.const 0)))
            (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))
            (table.set (i32.const 0) (ref.func $two))
            (data.drop $d)
            (i32.add (i32.mul (local.get $was) (i32.const 10)) (i32.load8_u (i32.const 0)))))"#;
    for tiers in TIERS {
        let engine = engine();
        let limits = Limits {
            entry: "f".to_owned(),
            ..limits(tiers)
        };
        let module = engine
            .compile(&binary(text), &limits)
            .expect("a guest of ours");
        assert_eq!(module.reset(), Reset::Instantiate);
        let mut worker = Worker::new(&engine);
        for _ in 0..3 {
            assert_eq!(status(&mut worker, &module), 17);
        }
    }
}

#[test]
fn active_segments_are_dropped_from_the_beginning() {
    let text = r#"(module (memory 1) (data (i32.const 4) "ab") (data $p "cd")
        (func (export "f") (result i32)
            (memory.init 1 (i32.const 8) (i32.const 0) (i32.const 2))
            (memory.init 0 (i32.const 8) (i32.const 0) (i32.const 0))
            (if (i32.eq (i32.load8_u (i32.const 9)) (i32.const 100)) (then
                (memory.init 0 (i32.const 8) (i32.const 0) (i32.const 1))))
            (i32.const 0)))"#;
    for tiers in TIERS {
        let invocation = crate::guests::once(
            text,
            &Limits {
                entry: "f".to_owned(),
                ..limits(tiers)
            },
        );
        assert_eq!(invocation.outcome, Outcome::Trap(metes_edge::Trap::Memory));
    }
}

#[test]
fn fresh_state_is_fresh_and_kept_state_is_kept() {
    for (state, expected) in [
        (State::Fresh, [6101, 6101, 6101]),
        (State::Kept, [6101, 7102, 8103]),
    ] {
        for tiers in TIERS {
            let engine = engine();
            let limits = Limits {
                entry: "count".to_owned(),
                state,
                ..limits(tiers)
            };
            let module = engine
                .compile(&binary(COUNTER), &limits)
                .expect("a guest of ours");
            let mut worker = Worker::new(&engine);
            assert_eq!([(); 3].map(|()| status(&mut worker, &module)), expected);
        }
    }
}

#[test]
fn initialisation_happens_once_and_is_where_fresh_state_begins() {
    let text = r#"(module (memory 1) (global $g (mut i32) (i32.const 0))
        (func (export "_initialize") (global.set $g (i32.const 3)) (i32.store (i32.const 60000) (i32.const 4)))
        (func (export "f") (result i32)
            (global.set $g (i32.add (global.get $g) (i32.const 1)))
            (i32.store (i32.const 60000) (i32.add (i32.load (i32.const 60000)) (i32.const 1)))
            (i32.add (i32.mul (global.get $g) (i32.const 10)) (i32.load (i32.const 60000)))))"#;
    let engine = engine();
    let limits = Limits {
        entry: "f".to_owned(),
        ..Limits::default()
    };
    let module = engine
        .compile(&binary(text), &limits)
        .expect("a guest of ours");
    let mut worker = Worker::new(&engine);
    assert_eq!([(); 3].map(|()| status(&mut worker, &module)), [45; 3]);
}

#[test]
fn many_invocations_that_fail_leak_no_slots_and_no_memory() {
    let engine = engine();
    let mut worker = Worker::new(&engine);
    let texts = [
        "(unreachable)",
        "(drop (i32.load (i32.const -4)))",
        "(drop (i32.div_u (i32.const 1) (i32.const 0)))",
    ];
    let modules: Vec<_> = texts
        .map(|body| format!(r#"(module (memory 1) (func (export "_start") {body}))"#))
        .iter()
        .map(|text| {
            engine
                .compile(&binary(text), &limits(Tiers::Baseline))
                .expect("a guest of ours")
        })
        .collect();
    let spin = engine
        .compile(&binary(SPIN), &limits(Tiers::Baseline))
        .expect("a guest of ours");
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/statm").expect("Linux");
        status
            .split(' ')
            .nth(1)
            .and_then(|pages| pages.parse::<u64>().ok())
            .expect("Linux")
            * 4096
    };
    let mut run = |rounds: u32| {
        for round in 0..rounds {
            for module in &modules {
                assert!(matches!(
                    worker.invoke(module, &[], &mut Vec::new(), LONG).outcome,
                    Outcome::Trap(_)
                ));
            }
            if round % 500 == 0 {
                let short = std::time::Duration::from_micros(300);
                assert!(matches!(
                    worker.invoke(&spin, &[], &mut Vec::new(), short).outcome,
                    Outcome::Overrun { .. }
                ));
            }
        }
    };
    run(1000);
    let before = resident();
    run(20_000);
    let grown = resident().saturating_sub(before);
    // Other tests share the process; a leak of an instance a call would be more than 100 MB.
    assert!(grown < 64 << 20, "{grown} bytes");
    assert_eq!(engine.slots().taken(), 4 << 16);
}

#[test]
fn workers_of_many_threads_share_a_module_and_nothing_else() {
    let engine = engine();
    let limits = Limits {
        entry: "count".to_owned(),
        state: State::Kept,
        ..Limits::default()
    };
    let module = engine
        .compile(&binary(COUNTER), &limits)
        .expect("a guest of ours");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut worker = Worker::new(&engine);
                // Each has its own count, over the switch of tiers, which comes when it comes.
                for call in 1..200 {
                    let bytes = (5 + call) % 256;
                    assert_eq!(status(&mut worker, &module), 100 + call + 1000 * bytes);
                }
            });
        }
    });
    assert_eq!(engine.slots().taken(), 0);
}
