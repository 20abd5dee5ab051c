//! Translated code beside the interpreter: the same machine, whatever is executed.
//!
//! Programs are random words of all kinds over few registers, with loads and stores in a window of RAM, at devices, and
//! into the program itself; traps are skipped or, where windows are short, served; a timer interrupts. Then what
//! chance seldom meets: each way to overwrite what is translated, from inside and outside; snapshots; observers; images.
//!
//! Invariant: both machines are asked for the same portions; what is compared is all that a snapshot holds.

use metes_leon3::{Bus, Configuration, Core, End, Image, Machine, Model, Observer, Stop};
use metes_random::Random;
use proptest::prelude::*;

use crate::images::{image, sized};
use crate::stream::stream;

const BASE: u32 = 0x4000_0000;
/// Where the program begins, behind the trap table; data lies on the program's page and on the next one.
const PROGRAM: u32 = BASE + 0x1000;
const DATA: u32 = BASE + 0x1c00;

/// Counts what is shown to it: the interpreter goes instruction by instruction for it.
struct Looks(u64);

impl Observer for Looks {
    fn before(&mut self, _: &Core, _: &Bus) -> bool {
        self.0 += 1;
        false
    }
}

struct Dice(Random);

impl Dice {
    fn below(&mut self, sides: u32) -> u32 {
        self.0.below(u64::from(sides)) as u32
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

/// A branch by so many words.
fn branch(condition: u32, words: i32) -> u32 {
    condition << 25 | 2 << 22 | words as u32 & 0x3f_ffff
}

const ALWAYS: u32 = 8;
const EQUAL: u32 = 1;

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
    let mut dice = Dice(Random::new(seed));
    let mut words = trap_table();
    let prologue = prologue(&mut dice);
    let begin = prologue.len() as u32;
    words.extend(&prologue);
    words.extend((0..length).map(|at| word(&mut dice, begin + at, begin + length)));
    // Once more, not from the very beginning.
    words.push(branch(ALWAYS, -(length as i32)));
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

/// The cores, as text that tells where they differ.
fn cores(machine: &Machine) -> String {
    let cores = machine.cores().iter();
    cores.map(|core| format!("{core:?}\n")).collect()
}

/// All that decides how a machine goes on.
fn taken(machine: &Machine) -> Vec<u8> {
    let mut bytes = Vec::new();
    machine.snapshot(&mut bytes).expect("memory");
    bytes
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
        prop_assert_eq!(cores(&translated), cores(&rows));
        prop_assert_eq!(&stop, &looked.run(next, &mut Looks(0)));
        prop_assert_eq!(cores(&translated), cores(&looked));
        translations = translations.max(translated.translations());
        if stop != Stop::Limit {
            break;
        }
    }
    prop_assert_eq!(translated.bus.notes(), rows.bus.notes());
    prop_assert!(taken(&translated) == taken(&rows), "memory or devices");
    prop_assert!(taken(&translated) == taken(&looked), "memory or devices");
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

    /// A file knows nothing of translations: one that goes on from it translates anew.
    #[test]
    fn random_programs_go_on_from_a_snapshot(
        seed in any::<u64>(),
        length in 4u32..120,
        cores in 1usize..4,
        uniform in any::<bool>(),
        first in 200u64..3000,
    ) {
        let configuration = Configuration {
            cores,
            memory: 1 << 16,
            model: if uniform { Model::Uniform } else { Model::Flat },
            ..Configuration::default()
        };
        let words = program(seed, length);
        let mut whole = machine(&configuration, &words, None);
        let mut translated = machine(&configuration, &words, Some(2));
        prop_assert_eq!(whole.run(first, &mut ()), translated.run(first, &mut ()));
        let file = taken(&translated);
        prop_assert!(file == taken(&whole));
        let mut resumed = Machine::resume(file.as_slice()).expect("a whole file");
        resumed.translate_after(Some(2));
        let stop = whole.run(3000, &mut ());
        prop_assert_eq!(&stop, &translated.run(3000, &mut ()));
        prop_assert_eq!(&stop, &resumed.run(3000, &mut ()));
        prop_assert!(taken(&translated) == taken(&whole));
        prop_assert!(taken(&resumed) == taken(&whole));
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
        branch(ALWAYS, -7),
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

/// A machine of 64 KiB.
fn small(cores: usize, quantum: u64) -> Configuration {
    Configuration {
        cores,
        quantum,
        memory: 1 << 16,
        ..Configuration::default()
    }
}

/// An instruction that adds to %o0, and what it is turned into and back by `xor 3`.
const COUNT: u32 = 0x9002_2001;

/// Stores of %o2, or of %o2 and %o3, over the instruction at %l1 that is [`COUNT`].
fn stores() -> Vec<Vec<u32>> {
    let to_l0 = format_3(2, 2, 16, 0, 10);
    vec![
        vec![format_3(3, 4, 10, 17, immediate(0))],
        vec![format_3(3, 5, 10, 17, immediate(3))],
        vec![format_3(3, 6, 10, 17, immediate(2))],
        vec![format_3(3, 7, 10, 17, immediate(0))],
        // swap of a copy
        vec![to_l0, format_3(3, 0xf, 16, 17, immediate(0))],
        // ldstub, then st
        vec![
            format_3(3, 0xd, 16, 17, immediate(3)),
            format_3(3, 4, 10, 17, immediate(0)),
        ],
        // casa of what is there, into an alternate space likewise
        vec![
            to_l0,
            format_3(3, 0, 18, 17, immediate(0)),
            format_3(3, 0x3c, 16, 17, 0xa << 5 | 18),
        ],
        vec![format_3(3, 0x14, 10, 17, 0xb << 5)],
    ]
}

/// A loop that turns %o2 and stores it over the instruction at its beginning, right behind the store, behind two more,
/// or in the delay slot of its branch; each is executed, too.
fn overwrites(store: &[u32], place: usize) -> Vec<u32> {
    let begin = PROGRAM + 6 * 4;
    let turn = format_3(2, 3, 10, 10, immediate(3));
    let mut body = vec![COUNT, COUNT, turn];
    body.extend(store);
    let behind = body.len();
    // An even number of words, so that each place can be one that takes two.
    body.extend([COUNT; 6]);
    let at = [0, behind, behind + 2, body.len()][place].next_multiple_of(2);
    body.resize(body.len().next_multiple_of(2) - 1, COUNT);
    body.push(branch(ALWAYS, -(body.len() as i32)));
    body.extend([COUNT, NOP]);
    let target = begin + 4 * at as u32;
    let mut words = trap_table();
    words.extend([
        sethi(10, COUNT),
        format_3(2, 2, 10, 10, immediate(COUNT & 0x3ff)),
        sethi(17, target),
        format_3(2, 2, 17, 17, immediate(target & 0x3ff)),
        sethi(11, NOP),
        NOP,
    ]);
    // What a doubleword has behind the instruction is what stands there.
    let behind = body[at + 1];
    words[1024 + 4] = sethi(11, behind);
    words[1024 + 5] = format_3(2, 2, 11, 11, immediate(behind & 0x3ff));
    words.extend(body);
    words
}

#[test]
fn every_store_over_translated_code_is_executed() {
    for store in stores() {
        for place in 0..4 {
            let words = overwrites(&store, place);
            let translations = same(&small(1, 64), &words, &[1, 10, 500], 5000).expect("the same");
            assert!(translations > 0, "{store:08x?} at {place}");
        }
    }
}

/// Core 0 turns the instruction that the others execute in a loop.
#[test]
fn a_store_of_another_core_is_executed() {
    let target = PROGRAM + 4 * 11;
    let mut words = trap_table();
    words.extend([
        format_3(2, 0x28, 1, 17, 0), // rd %asr17, %g1
        sethi(10, COUNT),
        format_3(2, 2, 10, 10, immediate(COUNT & 0x3ff)),
        sethi(17, target),
        format_3(2, 2, 17, 17, immediate(target & 0x3ff)),
        sethi(6, 0x8000_0000),
        format_3(2, 0x26, 1, 1, immediate(28)), // srl
        format_3(2, 0x14, 0, 1, immediate(0)),  // subcc
        branch(EQUAL, 6),
        format_3(2, 2, 2, 0, immediate(14)), // mov 14, %g2
        NOP,
        COUNT, // the target
        format_3(2, 0, 9, 9, immediate(1)),
        branch(ALWAYS, -2),
        // core 0: some turns without a store, then one
        format_3(3, 4, 2, 6, immediate(0x210)),
        format_3(2, 2, 3, 0, immediate(30)),   // mov 30, %g3
        format_3(2, 0x14, 3, 3, immediate(1)), // subcc
        branch(9, -1),                         // bne
        NOP,
        format_3(2, 3, 10, 10, immediate(3)),
        branch(ALWAYS, -5),
        format_3(3, 4, 10, 17, immediate(0)),
    ]);
    for (cores, quantum) in [(2, 1), (2, 64), (4, 7), (4, 100)] {
        let configuration = small(cores, quantum);
        let translations = same(&configuration, &words, &[1, 3000], 40_000).expect("the same");
        assert!(translations > 1, "{cores} cores");
        let mut end = machine(&configuration, &words, Some(2));
        end.run(40_000, &mut ());
        let [added, turns] = [8, 9].map(|number| end.cores()[1].registers.get(number));
        // Ones and twos.
        assert!(turns < added && added < 2 * turns, "{added} of {turns}");
    }
}

/// add %o0, 1, %o0, and back.
fn counting() -> Vec<u32> {
    let mut words = trap_table();
    words.extend([COUNT, branch(ALWAYS, -1), NOP]);
    words
}

#[test]
fn what_is_written_from_outside_is_executed() {
    let configuration = small(1, 64);
    let mut translated = machine(&configuration, &counting(), Some(1));
    let mut plain = machine(&configuration, &counting(), None);
    let two = (COUNT + 1).to_be_bytes();
    let four = (COUNT + 3).to_be_bytes();
    let bits: [(u32, &[u8], usize); 4] = [
        (DATA, &[1; 64], 1),
        (PROGRAM, &two, 0),
        (PROGRAM + 3, &four[3..], 0),
        (PROGRAM - 4, &[1, 0, 0, 0, 0x90, 2, 0x20, 1], 0),
    ];
    for (address, bytes, left) in bits {
        for machine in [&mut translated, &mut plain] {
            assert_eq!(machine.run(300, &mut ()), Stop::Limit);
        }
        assert_eq!((translated.translations(), plain.translations()), (1, 0));
        for machine in [&mut translated, &mut plain] {
            machine.bus.write_image(address, bytes).expect("RAM");
        }
        assert_eq!(translated.translations(), left, "{address:#x}");
    }
    for machine in [&mut translated, &mut plain] {
        machine.run(300, &mut ());
    }
    assert!(taken(&translated) == taken(&plain));
    // 100 turns each, of 1, 1, 2, 4 and 1.
    assert_eq!(translated.cores()[0].registers.get(8), 900);
}

/// A debugger changes registers, and codes may have bits that no instruction sets.
#[test]
fn what_is_set_from_outside_is_used() {
    let mut words = trap_table();
    words.extend([
        format_3(2, 8, 8, 8, immediate(1)), // addx
        branch(6, 5),                       // bneg
        format_3(2, 8, 9, 9, immediate(0)),
        branch(ALWAYS, -3),
        format_3(2, 0, 10, 10, immediate(1)),
        NOP,
        branch(ALWAYS, -6),
        NOP,
    ]);
    let configuration = small(1, 64);
    let mut translated = machine(&configuration, &words, Some(1));
    let mut plain = machine(&configuration, &words, None);
    for icc in [0, 1, 9, 8, 0x10, 0x18, 0xffff_fff7] {
        for machine in [&mut translated, &mut plain] {
            machine.core_mut(0).icc = icc;
            machine.core_mut(0).registers.set(9, icc);
            machine.run(600, &mut ());
        }
        assert_eq!(cores(&translated), cores(&plain));
    }
    assert!(translated.translations() > 0);
}

/// Also where translated code would do, before and afterwards.
#[test]
fn an_observer_sees_every_instruction() {
    let mut machine = machine(&small(1, 64), &counting(), Some(1));
    machine.run(1000, &mut ());
    assert_eq!(machine.translations(), 1);
    for observer in [Looks(0), Looks(0)] {
        let (mut looks, mut both) = (observer, ((), Looks(0)));
        machine.run(777, &mut looks);
        machine.run(777, &mut both);
        assert_eq!((looks.0, both.1.0), (777, 777));
        machine.run(1000, &mut ());
    }
}

#[test]
fn the_threshold_is_what_is_said() {
    let at = |after, most| {
        let mut machine = machine(&small(1, 64), &counting(), after);
        machine.run(most, &mut ());
        machine.translations()
    };
    assert_eq!([10, 1000].map(|most| at(None, most)), [0, 0]);
    assert_eq!([60, 3000].map(|most| at(Some(100), most)), [0, 1]);
    assert_eq!(at(Some(0), 30), 1);
    // One that comes down is heard, too.
    let mut machine = machine(&small(1, 64), &counting(), Some(5000));
    machine.run(9000, &mut ());
    assert_eq!(machine.translations(), 0);
    machine.translate_after(Some(10));
    machine.run(30, &mut ());
    assert_eq!(machine.translations(), 1);
}

#[test]
fn with_caches_all_is_interpreted() {
    let configuration = Configuration {
        model: Model::Caches,
        ..small(1, 64)
    };
    let mut cached = machine(&configuration, &counting(), Some(1));
    cached.run(3000, &mut ());
    assert_eq!(cached.translations(), 0);
}

/// To the end, and what was printed.
fn whole(configuration: &Configuration, image: &Image, after: Option<u16>) -> (Machine, Stop) {
    let mut machine = Machine::with_image(configuration, image).expect("a machine");
    machine.translate_after(after);
    // Two portions, the first of which ends anywhere.
    let mut stop = machine.run(123_457, &mut ());
    if stop == Stop::Limit {
        stop = machine.run(300_000_000, &mut ());
    }
    (machine, stop)
}

/// With everything translated that is executed twice.
fn does_the_same(name: &str, bytes: &[u8], configuration: &Configuration) {
    let image = Image::read(bytes).expect("an image");
    let (mut translated, stop) = whole(configuration, &image, Some(1));
    let (mut plain, expected) = whole(configuration, &image, None);
    let name = format!("{name} on {configuration:?}");
    assert_eq!(stop, expected, "{name}");
    assert_eq!(cores(&translated), cores(&plain), "{name}");
    let counts = |machine: &Machine| (machine.instructions(), machine.cycles());
    assert_eq!(counts(&translated), counts(&plain), "{name}");
    let [printed, must] = [&mut translated, &mut plain].map(|machine| machine.printed(0));
    assert_eq!(
        String::from_utf8_lossy(&printed),
        String::from_utf8_lossy(&must),
        "{name}"
    );
    assert!(taken(&translated) == taken(&plain), "{name}");
    assert!(translated.translations() > 0, "{name}");
}

#[test]
fn images_do_the_same() {
    for (name, word, value) in [
        ("arithmetic", "", 0),
        ("traps", "", 0),
        ("interrupts", "", 0),
        ("floats", "", 0),
        ("casa", "", 0),
        ("heap", "", 0),
        ("heaps", "", 0),
        ("kernel", "iterations", 50),
        ("kernel-short", "", 0),
        ("records", "iterations", 500),
        ("records-short", "", 0),
        ("deep", "rounds", 5000),
        ("deep-short", "", 0),
    ] {
        let sizes: &[_] = if word.is_empty() {
            &[]
        } else {
            &[(word, value)]
        };
        let bytes = sized(name, sizes);
        for model in [Model::Uniform, Model::Flat] {
            let configuration = Configuration {
                model,
                memory: 16 << 20,
                ..Configuration::default()
            };
            does_the_same(name, &bytes, &configuration);
        }
    }
}

#[test]
fn images_of_several_cores_do_the_same() {
    for (name, turns, cores, quantum, model) in [
        ("casa", 300, 2, 1, Model::Flat),
        ("casa", 300, 4, 64, Model::Flat),
        ("casa", 300, 4, 7, Model::Uniform),
        ("casa", 100, 16, 1000, Model::Flat),
        ("casa-64", 10, 64, 64, Model::Uniform),
    ] {
        let configuration = Configuration {
            model,
            memory: 16 << 20,
            ..small(cores, quantum)
        };
        does_the_same(name, &sized(name, &[("turns", turns)]), &configuration);
    }
}

/// As they are compared with QEMU.
#[test]
fn streams_do_the_same() {
    for seed in 0..4 {
        let configuration = Configuration {
            memory: 16 << 20,
            ..Configuration::default()
        };
        does_the_same(
            &format!("stream {seed}"),
            &stream(seed, 20_000),
            &configuration,
        );
    }
}

#[test]
fn an_image_ends_where_it_did() {
    let bytes = std::fs::read(image("heap")).expect("it was built");
    let image = Image::read(&bytes).expect("an image");
    let (mut machine, stop) = whole(&Configuration::default(), &image, Some(1000));
    assert_eq!(stop, Stop::End(End::Halt { core: 0 }));
    let printed = String::from_utf8(machine.printed(0)).expect("text");
    assert!(printed.contains("heap 0x2c0f5f06"), "{printed}");
}
