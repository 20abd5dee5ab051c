//! Corners of the instruction set, by hand.

use metes_leon3::{Image, Model};
use metes_step::longest_on_leon3;
use metes_step::sparc::{Bound, Options, Unbounded, WindowTraps, Work};

use crate::machine::{self, Count};
use crate::words::*;

fn bound_with(words: &[u32], options: &Options) -> Result<Bound, Unbounded> {
    longest_on_leon3(&Image::of_words(BASE, words), BASE, options)
}

fn bound(words: &[u32]) -> Result<Bound, Unbounded> {
    bound_with(words, &Options::default())
}

fn instructions(words: &[u32]) -> u64 {
    bound(words).expect("a bound").untrapped.instructions
}

/// What the code takes if `%o0` is `argument`.
fn run(words: &[u32], argument: u32) -> Count {
    let image = Image::of_words(BASE, words);
    let mut machine = machine::machine(&image, Model::Flat);
    machine::call(&mut machine, BASE, &[argument]).0
}

/// The code's only path: the bound is what is counted.
fn exact(words: &[u32]) {
    let bound = bound(words).expect("a bound");
    let count = run(words, 0);
    assert_eq!(bound.untrapped.instructions, count.instructions);
    assert_eq!(bound.untrapped.cycles, count.cycles);
}

fn message(words: &[u32]) -> String {
    bound(words).expect_err("no bound").to_string()
}

/// `cmp %o0, 0`.
fn test() -> u32 {
    immediate(2, 20, O0, 0, G0)
}

#[test]
fn a_leaf_is_its_instructions() {
    let leaf = [add(O0, 1, O0), retl(), add(O0, 1, O0)];
    exact(&leaf);
    assert_eq!(instructions(&leaf), 3);
}

#[test]
fn a_frame_is_entered_and_left() {
    let framed = [
        save(96),
        multiply(O0, O0),
        load(SP, 64, O0),
        store(O0, SP, 68),
        ret(),
        RESTORE,
    ];
    exact(&framed);
    let bound = bound(&framed).unwrap();
    assert_eq!((bound.saves, bound.restores, bound.windows), (1, 1, 1));
    assert_eq!(bound.stack, Ok(96));
}

/// Six lines of instructions and two of data, none of them in the caches before.
#[test]
fn cold_caches_miss_as_the_bound_has_it() {
    let mut words = vec![NOP; 20];
    words.extend([load(SP, -64, O0), load(SP, -32, O0), retl(), NOP]);
    let image = Image::of_words(BASE, &words);
    let mut machine = machine::machine(&image, Model::Caches);
    let count = machine::call(&mut machine, BASE, &[]).0;
    let bound = bound(&words).unwrap().untrapped;
    // A store before the call may keep the bus for eight cycles: there was none.
    assert_eq!(bound.cycles_with_misses, count.cycles + 8);
}

#[test]
fn annulled_slots_take_a_cycle_and_are_no_instruction() {
    for condition in [EQUAL, NOT_EQUAL, ALWAYS, NEVER] {
        for annul in [false, true] {
            let words = [
                test(),
                branch(condition, annul, 4),
                multiply(O0, O0), // the slot
                NOP,
                NOP,
                retl(), // the target
                NOP,
            ];
            let counts = run(&words, 0).max(run(&words, 1));
            let bound = bound(&words).unwrap().untrapped;
            assert_eq!(
                (bound.instructions, bound.cycles),
                (counts.instructions, counts.cycles),
                "condition {condition}, annul {annul}"
            );
        }
    }
}

#[test]
fn a_call_adds_the_function_and_goes_on_behind_the_slot() {
    let calling = [
        save(96),
        call(4),
        NOP,
        ret(),
        RESTORE,
        // The function.
        add(O0, 1, O0),
        retl(),
        NOP,
    ];
    exact(&calling);
    assert_eq!(instructions(&calling), 8);
}

#[test]
fn a_function_with_a_structure_returns_behind_its_size() {
    let structure = [
        save(96),
        call(6),
        NOP,
        UNIMP,
        ret(),
        RESTORE,
        NOP,
        // The function returns to the call and 12.
        add(O0, 1, O0),
        jump(O7, 12, G0),
        NOP,
    ];
    exact(&structure);
    // Who returns to the size itself does not come back.
    let mut wrong = structure;
    wrong[8] = retl();
    assert!(matches!(bound(&wrong), Err(Unbounded::NeverReturns(_))));
}

#[test]
fn last_calls_return_to_the_caller() {
    let leaf = [add(O0, 1, O0), retl(), NOP];
    // mov %o7, %g1; call; mov %g1, %o7
    let mut moved = vec![copy(O7, G1), call(2), copy(G1, O7)];
    moved.extend(leaf);
    exact(&moved);
    assert_eq!(instructions(&moved), 6);
    // call; restore
    let mut restored = vec![save(96), call(2), RESTORE];
    restored.extend(leaf);
    exact(&restored);
    assert_eq!(bound(&restored).unwrap().stack, Ok(96));
    // By a jump through a constant.
    let target = BASE + 12;
    let mut jumped = vec![
        sethi(target, G1),
        jump(G1, (target & 0x3ff) as i32, G0),
        NOP,
    ];
    jumped.extend(leaf);
    exact(&jumped);
    // The return address kept in a local register, without a frame.
    let mut kept = vec![copy(O7, L0), call(4), NOP, jump(L0, 8, G0), NOP];
    kept.extend(leaf);
    exact(&kept);
    // And not kept at all: it would come back for ever.
    let mut lost = vec![call(4), NOP, retl(), NOP];
    lost.extend(leaf);
    assert!(matches!(bound(&lost), Err(Unbounded::Indirect(_))));
}

#[test]
fn branches_in_delay_slots_are_refused() {
    let couple = [
        test(),
        branch(EQUAL, false, 3),
        branch(ALWAYS, false, 3),
        NOP,
        retl(),
        NOP,
    ];
    assert!(matches!(bound(&couple), Err(Unbounded::Slot(place)) if place.address == BASE + 8));
    // Never executed as a slot, it is a branch like others.
    let never = [
        branch(NEVER, false, 3),
        branch(ALWAYS, false, 2),
        NOP,
        retl(),
        NOP,
    ];
    exact(&never);
}

#[test]
fn loops_need_a_bound() {
    // do { do { %o1-- } while; %o0-- } while
    let nested = [
        add(G0, 5, 9),
        add(G0, 3, 10),              // outer head
        immediate(2, 20, 10, 1, 10), // inner head: subcc
        branch(NOT_EQUAL, false, -1),
        NOP,
        immediate(2, 20, 9, 1, 9),
        branch(NOT_EQUAL, false, -5),
        NOP,
        retl(),
        NOP,
    ];
    assert!(
        message(&nested).contains("0x40000004"),
        "{}",
        message(&nested)
    );
    let mut options = Options::default();
    options.loops.insert(BASE + 4, 5);
    let error = bound_with(&nested, &options).expect_err("no bound");
    assert!(
        matches!(&error, Unbounded::Loop(place) if place.address == BASE + 8),
        "{error}"
    );
    options.loops.insert(BASE + 8, 3);
    let bound = bound_with(&nested, &options).unwrap();
    let count = run(&nested, 0);
    assert_eq!(bound.untrapped.instructions, count.instructions);
    assert_eq!(bound.untrapped.cycles, count.cycles);
}

#[test]
fn a_loop_with_two_entries_is_refused_even_with_bounds() {
    let words = [
        test(),
        branch(EQUAL, false, 3),
        NOP,
        add(O0, 1, O0),
        immediate(2, 20, O0, 1, O0),
        branch(NOT_EQUAL, false, -2),
        NOP,
        retl(),
        NOP,
    ];
    let mut options = Options::default();
    options.loops.extend([(BASE + 12, 5), (BASE + 16, 5)]);
    let found = bound_with(&words, &options);
    assert!(matches!(found, Err(Unbounded::Entries(_))), "{found:?}");
}

#[test]
fn recursion_is_refused() {
    let recursive = [save(96), call(-1), NOP, ret(), RESTORE];
    assert!(matches!(bound(&recursive), Err(Unbounded::Recursion(_))));
}

#[test]
fn jumps_through_registers_need_targets() {
    let words = [
        jump(O0, 0, G0),
        NOP,
        add(O0, 1, O0),
        add(O0, 1, O0),
        retl(),
        NOP,
    ];
    assert!(message(&words).contains("0x40000000"));
    let mut options = Options::default();
    options.targets.insert(BASE, vec![BASE + 8, BASE + 16]);
    let bound = bound_with(&words, &options).unwrap();
    assert_eq!(bound.untrapped.instructions, 6);
    // A call through a register.
    let words = [save(96), jump(O0, 0, O7), NOP, ret(), RESTORE, retl(), NOP];
    options.targets.insert(BASE + 4, vec![BASE + 20]);
    let found = bound_with(&words, &options).unwrap();
    assert_eq!(found.untrapped.instructions, 7);
}

#[test]
fn paths_that_do_not_return_are_left_out() {
    // To `ta 5`, to `unimp`, to a loop for ever.
    for last in [trap(5), UNIMP, branch(ALWAYS, true, 0)] {
        let words = [
            test(),
            branch(EQUAL, false, 4),
            NOP,
            retl(),
            NOP,
            NOP,
            last,
            NOP,
        ];
        assert_eq!(instructions(&words), 5);
    }
    assert!(matches!(bound(&[UNIMP]), Err(Unbounded::NeverReturns(_))));
    // Another software trap may return.
    let system = [trap(9), retl(), NOP];
    assert!(matches!(bound(&system), Err(Unbounded::Instruction(..))));
    // Nor does a function that is named.
    let words = [
        save(96),
        test(),
        branch(EQUAL, false, 4),
        NOP,
        ret(),
        RESTORE,
        call(3),
        NOP,
        NOP,
        jump(O0, 0, G0),
        NOP,
    ];
    assert!(matches!(bound(&words), Err(Unbounded::Indirect(_))));
    let mut options = Options::default();
    options.ending.insert(BASE + 36);
    assert_eq!(
        bound_with(&words, &options).unwrap().untrapped.instructions,
        6
    );
}

#[test]
fn windows_match_on_every_path() {
    let words = [test(), branch(EQUAL, false, 3), NOP, save(96), retl(), NOP];
    assert!(matches!(bound(&words), Err(Unbounded::Windows(_))));
    assert!(matches!(
        bound(&[RESTORE, retl(), NOP]),
        Err(Unbounded::Windows(_))
    ));
    assert!(matches!(
        bound(&[save(96), ret(), NOP]),
        Err(Unbounded::Windows(_))
    ));
}

#[test]
fn code_ends_where_the_image_does() {
    assert!(matches!(bound(&[NOP]), Err(Unbounded::Undecoded(_))));
    let image = Image::of_words(BASE, &[NOP]);
    for function in [BASE + 2, BASE - 4, 0, u32::MAX] {
        let found = longest_on_leon3(&image, function, &Options::default());
        assert!(matches!(found, Err(Unbounded::Undecoded(_))), "{found:?}");
    }
}

#[test]
fn frames_add_up_along_the_deepest_path() {
    let words = [
        save(120),
        call(5), // a leaf that takes 32 bytes
        NOP,
        add(SP, -16, SP),
        ret(),
        RESTORE,
        add(SP, -32, SP),
        retl(),
        add(SP, 32, SP),
    ];
    assert_eq!(bound(&words).unwrap().stack, Ok(152));
    let large = [sethi(-8192i32 as u32, G1), 0x9de3_8001, ret(), RESTORE];
    assert_eq!(bound(&large).unwrap().stack, Ok(8192));
    let dynamic = [0x9de3_8008, ret(), RESTORE];
    let bound = bound(&dynamic).unwrap();
    assert!(matches!(bound.stack, Err(Unbounded::Frame(_))));
}

#[test]
fn window_traps_cost_what_is_said() {
    let handlers = [9, 11].map(|instructions| Work {
        instructions,
        cycles: 2 * instructions,
        cycles_with_misses: 3 * instructions,
    });
    let options = Options {
        window_traps: WindowTraps::Handlers(handlers),
        ..Options::default()
    };
    // Two calls one after the other of a function with a frame.
    let words = [
        save(96),
        call(6),
        NOP,
        call(4),
        NOP,
        ret(),
        RESTORE,
        save(96),
        ret(),
        RESTORE,
    ];
    let bound = bound_with(&words, &options).unwrap();
    assert_eq!((bound.saves, bound.restores, bound.windows), (3, 3, 2));
    let instructions = bound.untrapped.instructions;
    let trapped = bound.trapped.unwrap();
    assert_eq!(
        trapped.instructions,
        instructions + 3 * (9 + 1) + 3 * (11 + 1)
    );
    // An instruction in vain, the trap, the handler.
    assert_eq!(
        trapped.cycles,
        bound.untrapped.cycles + 3 * (1 + 5 + 18) + 3 * (1 + 5 + 22)
    );
    assert_eq!(
        bound.uninterrupted.unwrap().instructions,
        instructions + 2 * (9 + 1)
    );
    // With three windows its own must go.
    let few = Options {
        windows: 3,
        ..options
    };
    let bound = bound_with(&words, &few).unwrap();
    assert_eq!(bound.uninterrupted, bound.trapped);
}

#[test]
fn code_may_ask_where_it_stands() {
    exact(&[copy(O7, L0), call(2), NOP, jump(L0, 8, G0), NOP]);
}

#[test]
fn deep_nests_of_calls_are_refused_rather_than_followed() {
    let mut words = Vec::new();
    for _ in 0..1000 {
        words.extend([save(96), call(4), NOP, ret(), RESTORE]);
    }
    words.extend([retl(), NOP]);
    assert!(matches!(bound(&words), Err(Unbounded::Deep(_))));
    assert_eq!(RETT >> 19 & 63, 57);
}
