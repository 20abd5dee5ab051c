//! Translated code beside the interpreter: the same machine, whatever is executed.
//!
//! Programs are random words of all kinds over few registers, with loads and stores in a window of RAM, at devices, and
//! into the program itself; traps are skipped or, where windows are short, served; a timer interrupts.
//!
//! Invariant: both machines are asked for the same portions, and compared after each.

use metes_leon3::{Configuration, Core, Image, Machine, Model, Observer, Stop};
use proptest::prelude::*;

const BASE: u32 = 0x4000_0000;
/// Where the program begins, behind the trap table; data lies on the program's page and on the next one.
const PROGRAM: u32 = BASE + 0x1000;
const DATA: u32 = BASE + 0x1c00;

/// One who looks and does nothing: the interpreter goes instruction by instruction for it.
struct Looks;

impl Observer for Looks {
    fn before(&mut self, _: &Core, _: &metes_leon3::Bus) -> bool {
        false
    }
}

/// Random numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % u64::from(sides)) as u32
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    /// A register that programs may change; %g4 to %g6 are bases.
    fn register(&mut self) -> u32 {
        self.of(&[0, 1, 2, 3, 8, 9, 10, 15, 16, 17, 24, 25, 31])
    }
}

fn format_3(op: u32, op3: u32, rd: u32, rs1: u32, second: u32) -> u32 {
    op << 30 | rd << 25 | op3 << 19 | rs1 << 14 | second
}

fn immediate(value: u32) -> u32 {
    1 << 13 | value & 0x1fff
}

fn sethi(rd: u32, value: u32) -> u32 {
    rd << 25 | 4 << 22 | value >> 10
}

const NOP: u32 = 0x0100_0000;
/// jmp %l1; rett %l2 - again; jmp %l2; rett %l2 + 4 - behind.
const AGAIN: [u32; 2] = [0x81c4_4000, 0x81cc_8000];
const BEHIND: [u32; 2] = [0x81c4_8000, 0x81cc_a004];

fn trap_table() -> Vec<u32> {
    let entry = |number: u32| match number {
        // mov %g0, %wim, and again
        5 | 6 => [0x8190_0000, AGAIN[0], AGAIN[1], NOP],
        0x11..=0x1f => [AGAIN[0], AGAIN[1], NOP, NOP],
        _ => [BEHIND[0], BEHIND[1], NOP, NOP],
    };
    (0..256).flat_map(entry).collect()
}

/// Bases, devices, traps on.
fn prologue(dice: &mut Dice) -> Vec<u32> {
    let store = |offset: u32| format_3(3, 4, 1, 6, immediate(offset));
    let set = |value: u32| format_3(2, 2, 1, 0, immediate(value));
    let period = 20 + dice.below(300);
    vec![
        sethi(4, DATA),
        format_3(2, 2, 4, 4, immediate(DATA & 0x3ff)),
        sethi(5, PROGRAM),
        sethi(6, 0x8000_0000),
        sethi(1, BASE),
        format_3(2, 0x33, 0, 1, immediate(0)), // %tbr
        set(period),
        store(0x314),
        set(3),
        store(0x304),
        store(0x308),
        set(15),
        store(0x318),
        set(0xffe),
        store(0x240),
        store(0x244),
        store(0x248),
        set(6),
        store(0x210),                             // starts the other cores
        format_3(2, 0x31, 0, 0, immediate(0xa0)), // %psr: supervisor, traps on
        NOP,
        NOP,
        NOP,
    ]
}

/// A word, number `at` of `length`.
fn word(dice: &mut Dice, at: u32, length: u32) -> u32 {
    const PLAIN: [u32; 38] = [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27,
        28, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 48,
    ];
    const LOADS: [u32; 9] = [0, 1, 2, 3, 9, 10, 0xd, 0xf, 0];
    const STORES: [u32; 4] = [4, 5, 6, 7];
    let (rd, rs1) = (dice.register(), dice.register());
    let second = if dice.below(2) == 0 {
        dice.register()
    } else {
        immediate(dice.of(&[0, 1, 3, 31, 0xfff, 0x1fff]))
    };
    match dice.below(100) {
        0..40 => match dice.of(&PLAIN) {
            40 => format_3(2, 40, rd, 0, 0),
            48 => format_3(2, 48, 0, rs1, second),
            op3 => format_3(2, op3, rd, rs1, second),
        },
        40..44 => sethi(rd, dice.below(1 << 22) << 10),
        44..52 => {
            let near = dice.below(256) << 3
                | if dice.below(12) == 0 {
                    dice.below(8)
                } else {
                    0
                };
            format_3(3, dice.of(&LOADS), rd, 4, immediate(near))
        }
        52..60 => {
            let near = dice.below(256) << 3
                | if dice.below(12) == 0 {
                    dice.below(8)
                } else {
                    0
                };
            format_3(3, dice.of(&STORES), rd, 4, immediate(near))
        }
        // Anywhere, which mostly is nowhere.
        60 => format_3(3, dice.of(&LOADS), rd, rs1, second),
        // Into the program: a word of it.
        61 => format_3(3, 4, 3, 5, immediate(4 * dice.below(length))),
        62 => format_3(3, 0, 3, 5, immediate(4 * dice.below(length))),
        // The counters of time.
        63 => format_3(3, 0, rd, 6, immediate(dice.of(&[0x300, 0x310, 0x204]))),
        64 => format_3(2, 0x28, rd, dice.of(&[22, 23, 17]), 0),
        65..71 => format_3(2, dice.of(&[0x3c, 0x3d]), rd, rs1, second),
        71 => format_3(2, dice.of(&[0x29, 0x2a, 0x2b]), rd, 0, 0),
        72 => format_3(2, 0x32, 0, rs1, second),
        73 => dice.below(u32::MAX),
        74 => format_3(2, 0x3a, dice.below(16), 0, immediate(3)),
        75 => 1 << 30 | dice.below(length).wrapping_sub(at) & 0x3fff_ffff,
        76 | 77 => format_3(2, 0x38, rd, 5, immediate(4 * dice.below(length))),
        78 => format_3(3, 0x3c, rd, 4, 0xa << 5 | dice.register()),
        79 => NOP,
        _ => {
            let displacement = dice.below(length).wrapping_sub(at) & 0x3f_ffff;
            dice.below(2) << 29 | dice.below(16) << 25 | 2 << 22 | displacement
        }
    }
}

fn program(seed: u64, length: u32) -> Vec<u32> {
    let mut dice = Dice(seed);
    let mut words = trap_table();
    let prologue = prologue(&mut dice);
    let begin = prologue.len() as u32;
    words.extend(&prologue);
    words.extend((0..length).map(|at| word(&mut dice, begin + at, begin + length)));
    // Once more, not from the very beginning.
    words.push(2 << 22 | 8 << 25 | length.wrapping_neg() & 0x3f_ffff);
    words.push(NOP);
    words
}

fn machine(configuration: &Configuration, words: &[u32], after: Option<u16>) -> Machine {
    let image = Image::of_words(BASE, words);
    let mut machine = Machine::with_image(configuration, &image).expect("a machine");
    machine.translate_after(after);
    for number in 0..configuration.cores {
        let core = machine.core_mut(number);
        (core.pc, core.npc) = (PROGRAM, PROGRAM + 4);
    }
    machine
}

/// All that is known of the cores, but for the register that nothing reads.
fn state(machine: &Machine) -> String {
    let cores = machine.cores().iter().cloned().map(|mut core| {
        core.registers.set(metes_leon3::decode::SINK, 0);
        format!("{core:?}\n")
    });
    cores.collect()
}

fn same(
    configuration: &Configuration,
    words: &[u32],
    portions: &[u64],
    most: u64,
) -> Result<usize, TestCaseError> {
    let mut translated = machine(configuration, words, Some(2));
    let mut rows = machine(configuration, words, None);
    let mut looked = machine(configuration, words, None);
    let mut portion = portions.iter().cycle();
    let mut translations = 0;
    while translated.instructions() < most {
        let next = *portion.next().expect("a cycle");
        let stop = translated.run(next, &mut ());
        prop_assert_eq!(&stop, &rows.run(next, &mut ()));
        prop_assert_eq!(state(&translated), state(&rows));
        prop_assert_eq!(&stop, &looked.run(next, &mut Looks));
        prop_assert_eq!(state(&translated), state(&looked));
        translations = translations.max(translated.translations());
        if stop != Stop::Limit {
            break;
        }
    }
    prop_assert!(translated.bus.ram() == rows.bus.ram(), "RAM differs");
    prop_assert!(translated.bus.ram() == looked.bus.ram(), "RAM differs");
    prop_assert_eq!(translated.bus.notes(), rows.bus.notes());
    Ok(translations)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_do_the_same(
        seed in any::<u64>(),
        length in 4u32..120,
        cores in 1usize..4,
        quantum in prop_oneof![Just(1u64), Just(7), Just(64)],
        uniform in any::<bool>(),
        portions in proptest::collection::vec(prop_oneof![1u64..20, 100u64..2000], 1..8),
    ) {
        let configuration = Configuration {
            cores,
            quantum,
            memory: 1 << 16,
            model: if uniform { Model::Uniform } else { Model::Flat },
            ..Configuration::default()
        };
        same(&configuration, &program(seed, length), &portions, 6000)?;
    }
}

/// The property above would hold of nothing translated, too.
#[test]
fn random_programs_are_translated() {
    let configuration = Configuration {
        memory: 1 << 16,
        ..Configuration::default()
    };
    let each = (0..40)
        .map(|seed| same(&configuration, &program(seed, 60), &[500], 20_000).expect("the same"));
    let sum: usize = each.sum();
    assert!(sum > 80, "{sum} translations of 40 programs");
}

/// A loop that changes its own instruction each time: what is translated is what is there.
#[test]
fn what_is_overwritten_is_translated_anew() {
    let words = [
        sethi(5, BASE),
        format_3(3, 0, 8, 5, immediate(28)), // ld [%g5 + 28], %o0
        format_3(2, 0, 8, 8, immediate(1)),  // its immediate grows
        format_3(3, 4, 8, 5, immediate(28)), // st %o0, [%g5 + 28]
        format_3(2, 0, 9, 9, immediate(1)),
        format_3(2, 0, 9, 9, immediate(1)),
        format_3(2, 0, 9, 9, immediate(1)),
        format_3(2, 0, 10, 10, immediate(0)), // add %o2, 0, %o2, and so on
        2 << 22 | 8 << 25 | (-7i32 as u32 & 0x3f_ffff),
        NOP,
    ];
    let configuration = Configuration {
        memory: 1 << 16,
        ..Configuration::default()
    };
    let image = Image::of_words(BASE, &words);
    let mut machine = Machine::with_image(&configuration, &image).expect("a machine");
    machine.translate_after(Some(3));
    assert_eq!(machine.run(1 + 9 * 1000, &mut ()), Stop::Limit);
    assert_eq!(
        machine.cores()[0].registers.get(10),
        (1..=1000).sum::<u32>()
    );
}

/// Images of the folder in `LEON3_IMAGES`, if that is set, on one core and on four.
#[test]
fn images_do_the_same() {
    let Some(folder) = std::env::var_os("LEON3_IMAGES") else {
        return;
    };
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "elf") {
            continue;
        }
        let image = Image::read(&std::fs::read(&path).expect("a file")).expect("an image");
        for (cores, quantum, model) in [
            (1, 64, Model::Flat),
            (1, 64, Model::Uniform),
            (4, 64, Model::Flat),
            (4, 1, Model::Uniform),
        ] {
            let configuration = Configuration {
                cores,
                quantum,
                model,
                ..Configuration::default()
            };
            let run = |after| {
                let mut machine = Machine::with_image(&configuration, &image).expect("a machine");
                machine.translate_after(after);
                let first = (machine.run(1_234_567, &mut ()), state(&machine));
                let last = (
                    machine.run(60_000_000, &mut ()),
                    state(&machine),
                    machine.printed(0),
                );
                (
                    first,
                    last,
                    machine.bus.notes().to_vec(),
                    machine.bus.ram().to_vec(),
                )
            };
            assert!(
                run(Some(50)) == run(None),
                "{} with {cores} cores differs",
                path.display()
            );
        }
    }
}
