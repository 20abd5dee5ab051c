//! Heap calls of programs written by hand: jumps as a function's last deed, calls without a stack frame, calls that
//! are left without a return. What compiled programs do is tried by the tests of recordings (`tools/trace`).

use metes_leon3::calls::{Function, HeapCall, HeapCalls, Kind, Shape};
use metes_leon3::{Configuration, End, Image, Machine, Stop};

const BASE: u32 = 0x4000_0000;
const NOP: u32 = 0x0100_0000;
const RETL: u32 = 0x81c3_e008;
const HALT: u32 = 0x91d0_2000;
/// sethi %hi(0x40001000), %o0
const BLOCK_TO_O0: u32 = 0x1110_0004;
/// mov %o7, %g1
const KEEP_O7: u32 = 0x8210_000f;
/// jmp %g1 + 8
const TO_KEPT: u32 = 0x81c0_6008;

/// mov `number`, register
fn set(register: u32, number: u32) -> u32 {
    0x8010_2000 | register << 25 | number
}

/// A call at word `from` of the function at word `to`.
fn call(from: u32, to: u32) -> u32 {
    1 << 30 | to.wrapping_sub(from) & 0x3fff_ffff
}

/// A branch, with its condition's word, at word `from` to word `to`.
fn branch(condition: u32, from: u32, to: u32) -> u32 {
    condition | to.wrapping_sub(from) & 0x3f_ffff
}
const ALWAYS: u32 = 0x1080_0000;
const NOT_EQUAL: u32 = 0x1280_0000;

/// A function at word `at`, of `words` words.
fn function(name: &str, at: u32, words: u32, shape: Shape) -> Function {
    Function {
        name: name.to_owned(),
        address: BASE + 4 * at,
        size: 4 * words,
        shape,
        before: 0,
    }
}

/// The calls of a program that runs to its end in portions, and those that never returned.
fn calls(words: &[u32], functions: &[Function], portion: u64) -> (Vec<HeapCall>, Vec<HeapCall>) {
    let image = Image::of_words(BASE, words);
    let mut machine = Machine::with_image(&Configuration::default(), &image).unwrap();
    let mut calls = HeapCalls::new(functions.to_vec(), Vec::new());
    let stop = (0..1000)
        .map(|_| machine.run(portion, &mut calls))
        .find(|stop| *stop != Stop::Limit);
    assert_eq!(stop, Some(Stop::End(End::Halt { core: 0 })));
    calls.finish()
}

/// What is of interest here: function, kind, size, the block before and after, and the word of the call.
fn told(calls: &[HeapCall]) -> Vec<(usize, Kind, u64, u32, u32, u32)> {
    let told = calls.iter().map(|call| {
        (
            call.function,
            call.kind,
            call.size,
            call.old_address,
            call.address,
            (call.site - BASE) / 4,
        )
    });
    told.collect()
}

#[test]
fn what_a_function_jumps_to_or_calls_without_a_frame_is_part_of_it() {
    let program = [
        // 0: the wrapper, which jumps to malloc; then free of what it gave.
        set(8, 24),
        call(1, 12),
        NOP,
        call(3, 16),
        NOP,
        // 5: calloc, which calls malloc and has no frame; malloc by itself.
        set(8, 3),
        set(9, 5),
        call(7, 20),
        NOP,
        call(9, 14),
        set(8, 7),
        HALT,
        // 12: the wrapper.
        branch(ALWAYS, 12, 14),
        NOP,
        // 14: malloc.
        RETL,
        BLOCK_TO_O0,
        // 16: free.
        RETL,
        NOP,
        NOP,
        NOP,
        // 20: calloc.
        KEEP_O7,
        call(21, 14),
        NOP,
        TO_KEPT,
        NOP,
    ];
    let functions = [
        function("wrapper", 12, 2, Shape::Malloc),
        function("malloc", 14, 2, Shape::Malloc),
        function("free", 16, 2, Shape::Free),
        function("calloc", 20, 5, Shape::Calloc),
    ];
    let block = BASE + 0x1000;
    let (all, never) = calls(&program, &functions, u64::MAX);
    assert_eq!(
        told(&all),
        [
            (0, Kind::Allocate, 24, 0, block, 1),
            (2, Kind::Free, 0, block, 0, 3),
            (3, Kind::Allocate, 15, 0, block, 7),
            (1, Kind::Allocate, 7, 0, block, 9),
        ]
    );
    assert_eq!(never, []);
    // From its first instruction to the one behind the call: a branch, malloc, and their slots.
    let end = all[0].end.unwrap();
    assert_eq!(end.instructions - all[0].begin.instructions, 4);
    for portion in [1, 2, 5] {
        assert_eq!(calls(&program, &functions, portion), (all.clone(), vec![]));
    }
    // Of those that are not looked for nothing is told, and what they call counts by itself.
    let (all, _) = calls(&program, &functions[1..3], u64::MAX);
    let by_itself: Vec<_> = told(&all).iter().map(|call| (call.0, call.5)).collect();
    assert_eq!(by_itself, [(0, 1), (1, 3), (0, 21), (0, 9)]);
}

#[test]
fn calls_that_are_left_never_returned() {
    // Twice malloc jumps back to before its call; the third time it returns. Then one is under way at the end.
    let program = [
        set(16, 0),
        call(1, 5),
        set(8, 9),
        call(3, 11),
        NOP,
        // 5: malloc: add %l0, 1, %l0; cmp %l0, 3
        0xa004_2001,
        0x80a4_2003,
        branch(NOT_EQUAL, 7, 1),
        NOP,
        RETL,
        NOP,
        // 11: free, which ends the program.
        HALT,
    ];
    let functions = [
        function("malloc", 5, 6, Shape::Malloc),
        function("free", 11, 1, Shape::Free),
    ];
    for portion in [1, u64::MAX] {
        let (all, never) = calls(&program, &functions, portion);
        assert_eq!(told(&all), [(0, Kind::Allocate, 9, 0, 9, 1)]);
        assert_eq!(
            told(&never),
            [
                (0, Kind::Allocate, 9, 0, 0, 1),
                (0, Kind::Allocate, 9, 0, 0, 1),
                (1, Kind::Free, 0, 9, 0, 3),
            ]
        );
        assert!(never.iter().all(|call| call.end.is_none()));
    }
}
