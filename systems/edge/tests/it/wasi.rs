//! The guest's world: streams, clocks, numbers, arguments; and pointers that lie.

use metes_edge::{Limits, Outcome, Refusal, Worker};

use crate::guests::{IMPORTS, LONG, TIERS, binary, echo, engine, limits, once};

#[test]
fn the_request_is_stdin_and_stdout_the_response() {
    for tiers in TIERS {
        let engine = engine();
        let module = engine
            .compile(&binary(&echo()), &limits(tiers))
            .expect("a guest of ours");
        let mut worker = Worker::new(&engine);
        for length in [0usize, 1, 999, 1000, 1001, 60_000] {
            let input: Vec<u8> = (0..length).map(|byte| (byte % 251) as u8).collect();
            let mut output = Vec::with_capacity(60_000);
            let invocation = worker.invoke(&module, &input, &mut output, LONG);
            assert_eq!(invocation.outcome, Outcome::Done { exit: 0 });
            assert_eq!(output, input);
            assert_eq!(
                invocation.host_calls as usize,
                2 * length.div_ceil(1000) + 1
            );
        }
    }
}

#[test]
fn a_response_stops_at_its_limit_and_does_not_grow() {
    let engine = engine();
    let module = engine
        .compile(
            &binary(&echo()),
            &Limits {
                output: 1500,
                ..Limits::default()
            },
        )
        .expect("a guest of ours");
    let mut worker = Worker::new(&engine);
    for capacity in [0, 10, 5000] {
        let mut output = Vec::with_capacity(capacity);
        let place = output.as_ptr();
        let invocation = worker.invoke(&module, &[7; 3000], &mut output, LONG);
        assert!(invocation.output_refused);
        assert_eq!((output.len(), output.as_ptr()), (capacity.min(1500), place));
    }
}

#[test]
fn a_request_beyond_the_limit_is_refused() {
    let engine = engine();
    let module = engine
        .compile(
            &binary(&echo()),
            &Limits {
                input: 10,
                ..Limits::default()
            },
        )
        .expect("a guest of ours");
    let invocation = Worker::new(&engine).invoke(&module, &[0; 11], &mut Vec::new(), LONG);
    assert_eq!(
        invocation.outcome,
        Outcome::Refused(Refusal::Input {
            bytes: 11,
            limit: 10
        })
    );
}

#[test]
fn complaints_are_kept_up_to_their_limit_and_forgotten_by_the_next() {
    let text = format!(
        r#"(module {IMPORTS} (memory 1) (data (i32.const 0) "\10\00\00\00\05\00\00\00") (data (i32.const 16) "alarm")
        (func (export "_start") (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
            (call $exit (i32.load (i32.const 8)))))"#
    );
    let engine = engine();
    let limits = Limits {
        errors: 3,
        ..Limits::default()
    };
    let module = engine
        .compile(&binary(&text), &limits)
        .expect("a guest of ours");
    let mut worker = Worker::new(&engine);
    for _ in 0..2 {
        let invocation = worker.invoke(&module, &[], &mut Vec::new(), LONG);
        assert_eq!(
            (invocation.outcome, invocation.output_refused),
            (Outcome::Done { exit: 5 }, true)
        );
        assert_eq!(worker.errors(&module), b"ala");
    }
}

#[test]
fn a_status_is_passed_through() {
    for tiers in TIERS {
        for status in [0, 1, 255, -1] {
            let text = format!(
                "(module {IMPORTS} (memory 1) (func (export \"_start\") (call $exit (i32.const {status})) unreachable))"
            );
            assert_eq!(
                once(&text, &limits(tiers)).outcome,
                Outcome::Done { exit: status }
            );
        }
    }
}

#[test]
fn pointers_that_lie_are_told_so() {
    // Each call with pointers outside the memory gives 21, and the host goes on.
    let calls = [
        "(call $read (i32.const 0) (i32.const 65533) (i32.const 1) (i32.const 0))",
        "(call $read (i32.const 0) (i32.const -8) (i32.const 2) (i32.const 0))",
        "(call $write (i32.const 1) (i32.const 0) (i32.const -1) (i32.const 0))",
        "(call $random (i32.const 65535) (i32.const 2))",
        "(call $random (i32.const 1) (i32.const -1))",
        "(call $clock (i32.const 1) (i64.const 0) (i32.const 65529))",
        "(call $args_sizes (i32.const 65534) (i32.const 0))",
        "(call $args (i32.const 65536) (i32.const 0))",
    ];
    for call in calls {
        let text = format!(
            r#"(module {IMPORTS} (memory 1) (data (i32.const 0) "\ff\ff\00\00\05\00\00\00")
            (func (export "f") (result i32) {call}))"#
        );
        let limits = Limits {
            entry: "f".to_owned(),
            ..Limits::default()
        };
        assert_eq!(
            once(&text, &limits).outcome,
            Outcome::Done { exit: 21 },
            "{call}"
        );
    }
}

#[test]
fn random_numbers_come_of_the_seed_and_differ_between_invocations() {
    let text = format!(
        r#"(module {IMPORTS} (memory 1) (data (i32.const 0) "\10\00\00\00\0b\00\00\00")
        (func (export "_start") (drop (call $random (i32.const 16) (i32.const 11)))
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#
    );
    let drawn = |seed| {
        let engine = engine();
        let module = engine
            .compile(
                &binary(&text),
                &Limits {
                    seed,
                    ..Limits::default()
                },
            )
            .expect("a guest of ours");
        let mut worker = Worker::new(&engine);
        [(); 3].map(|()| {
            let mut output = Vec::with_capacity(16);
            worker.invoke(&module, &[], &mut output, LONG);
            output
        })
    };
    let first = drawn(1);
    assert_eq!(first, drawn(1));
    assert!(first[0] != first[1] && first[1] != first[2] && first[0].len() == 11);
    assert_ne!(first, drawn(2));
}

#[test]
fn arguments_arrive_with_their_zeros() {
    let text = format!(
        r#"(module {IMPORTS} (memory 1)
        (func (export "_start")
            (drop (call $args_sizes (i32.const 0) (i32.const 4)))
            (drop (call $args (i32.const 100) (i32.const 200)))
            (i32.store (i32.const 8) (i32.load (i32.const 104)))
            (i32.store (i32.const 12) (i32.const 4))
            (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 16)))
            (call $exit (i32.add (i32.mul (i32.load (i32.const 0)) (i32.const 100)) (i32.load (i32.const 4))))))"#
    );
    let engine = engine();
    let arguments = vec!["name".to_owned(), "two".to_owned()];
    let module = engine
        .compile(
            &binary(&text),
            &Limits {
                arguments,
                ..Limits::default()
            },
        )
        .expect("a guest of ours");
    let mut output = Vec::with_capacity(16);
    let invocation = Worker::new(&engine).invoke(&module, &[], &mut output, LONG);
    assert_eq!(
        (invocation.outcome, output.as_slice()),
        (Outcome::Done { exit: 209 }, &b"two\0"[..])
    );
}
