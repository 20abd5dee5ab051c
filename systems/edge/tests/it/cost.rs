//! Counts of operators, which are exact: the same on every machine.

use metes_edge::{Cost, CostError, Counts, Limits, Outcome, Table, Tier, Trap};

use crate::guests::{IMPORTS, binary, echo, engine};

fn count(text: &str, input: &[u8]) -> Cost {
    let engine = engine();
    let module = engine
        .compile(&binary(text), &Limits::default())
        .expect("a guest of ours");
    let cost = engine.count(&module, input, 1 << 30).expect("it ends");
    assert_eq!(engine.slots().taken(), 0);
    cost
}

#[test]
fn operators_are_counted_by_class() {
    // Entering a function counts one; so does each operator but blocks, ends, nops and drops.
    let text = r#"(module (memory 1) (func $f (param i32) (result i32) (local.get 0)) (func (export "_start")
        (i32.store (i32.const 0) (i32.load (i32.const 8)))
        (drop (i32.div_u (i32.const 6) (i32.const 3)))
        (drop (call $f (i32.const 1)))
        (memory.fill (i32.const 0) (i32.const 0) (i32.const 1000))))"#;
    let cost = count(text, &[]);
    let Counts {
        memory,
        division,
        call,
        other,
        bytes,
    } = cost.counts;
    assert_eq!((memory, division, call, bytes), (2, 1, 1, 1000), "{cost:?}");
    // Nine constants, one local, the filling, and two entries.
    assert_eq!(other, 2 + 2 + 1 + 1 + 3 + 1 + 2, "{cost:?}");
    assert!(cost.repeatable);
}

#[test]
fn a_loop_counts_in_proportion() {
    let text = |rounds: u32| {
        format!(
            r#"(module (func (export "_start") (local i32) (local.set 0 (i32.const {rounds}))
            (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))"#
        )
    };
    let operators = |rounds| count(&text(rounds), &[]).counts.operators();
    let (ten, twenty, thousand) = (operators(10), operators(20), operators(1000));
    assert_eq!((twenty - ten, thousand - ten), (10 * 5, 990 * 5));
}

#[test]
fn counts_depend_on_the_request_alone() {
    let short = count(&echo(), &[1; 10]);
    let long = count(&echo(), &[2; 5000]);
    assert_eq!(short, count(&echo(), &[9; 10]));
    assert!(long.counts.operators() > 3 * short.counts.operators() && long.repeatable);
}

#[test]
fn functions_that_trap_or_end_themselves_are_counted_up_to_there() {
    let text = r#"(module (func (export "_start") (drop (i32.const 1)) unreachable (drop (i32.const 1))))"#;
    assert_eq!(count(text, &[]).outcome, Outcome::Trap(Trap::Unreachable));
    let text = format!(
        "(module {IMPORTS} (memory 1) (func (export \"_start\") (call $exit (i32.const 3))))"
    );
    assert_eq!(count(&text, &[]).outcome, Outcome::Done { exit: 3 });
}

#[test]
fn what_does_not_end_is_said_so() {
    let engine = engine();
    let module = engine
        .compile(&binary(crate::guests::SPIN), &Limits::default())
        .expect("a guest of ours");
    assert_eq!(
        engine.count(&module, &[], 10_000),
        Err(CostError::Limit { limit: 10_000 })
    );
    assert_eq!(engine.slots().taken(), 0);
}

#[test]
fn a_table_has_a_rate_for_each_class_and_adds_up() {
    let engine = engine();
    for tier in [Tier::Baseline, Tier::Optimised] {
        let table = Table::measure(&engine, tier).expect("there is room");
        for span in [
            table.memory,
            table.division,
            table.call,
            table.other,
            table.bytes,
        ] {
            assert!(
                span.least >= 0.0 && span.least <= span.most && span.most.is_finite(),
                "{table:?}"
            );
        }
        let one = table.span(&Counts {
            other: 1_000_000,
            ..Counts::default()
        });
        assert!(table.other.most > 0.0);
        assert_eq!(one.most, table.entry + 1_000_000.0 * table.other.most);
        assert_eq!(table.span(&Counts::default()).least, table.entry);
    }
}
