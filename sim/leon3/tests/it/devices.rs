//! Devices as software in a machine meets them.

use metes_leon3::devices::{Access, Clock, Device, Driven, Gptimer, SpiSlave};
use metes_leon3::{Configuration, End, Image, Machine, Stop};

/// The example that `docs/leon3-devices.md` shows.
#[path = "../../examples/device.rs"]
mod example;

#[test]
fn the_example_of_the_documentation_runs() {
    example::main();
}

/// Its parts between `ANCHOR` and `ANCHOR_END` stand there word for word.
#[test]
fn the_documentation_shows_the_example() {
    let documentation = include_str!("../../../../docs/leon3-devices.md");
    let example = include_str!("../../examples/device.rs");
    for part in example.split("// ANCHOR: ").skip(1) {
        let (name, part) = part.split_once('\n').unwrap();
        let (part, _) = part.split_once("// ANCHOR_END").unwrap();
        let part = part.replace("pub(crate) fn main", "fn main");
        assert!(
            documentation.contains(&part),
            "{name} is not as in examples/device.rs"
        );
    }
}

/// Instructions, written as they are read.
mod sparc {
    /// `sethi %hi(value), %rd`.
    pub(super) fn sethi(value: u32, rd: u32) -> u32 {
        0x0100_0000 | rd << 25 | value >> 10
    }

    /// `or %rs, immediate, %rd`.
    pub(super) fn or(rs: u32, immediate: u32, rd: u32) -> u32 {
        0x8010_2000 | rd << 25 | rs << 14 | immediate & 0x1fff
    }

    /// `ld [%rs + offset], %rd`.
    pub(super) fn ld(rs: u32, offset: u32, rd: u32) -> u32 {
        0xc000_2000 | rd << 25 | rs << 14 | offset & 0x1fff
    }

    /// `st %rd, [%rs + offset]`.
    pub(super) fn st(rd: u32, rs: u32, offset: u32) -> u32 {
        0xc020_2000 | rd << 25 | rs << 14 | offset & 0x1fff
    }

    /// `set value, %rd`, in two instructions.
    pub(super) fn set(value: u32, rd: u32) -> [u32; 2] {
        [sethi(value, rd), or(rd, value & 0x3ff, rd)]
    }

    /// `wr %rs, %psr` and three `nop`.
    pub(super) fn psr(rs: u32) -> [u32; 4] {
        [0x8188_0000 | rs << 14, NOP, NOP, NOP]
    }

    /// `wr %g0, %asr19`: sleep until an interrupt.
    pub(super) const SLEEP: u32 = 0xa780_0000;
    /// `ta 0`.
    pub(super) const HALT: u32 = 0x91d0_2000;
    /// `b .`, with `nop` behind it.
    pub(super) const AGAIN: [u32; 2] = [0x1080_0000, NOP];
    pub(super) const NOP: u32 = 0x0100_0000;
}
use sparc::*;

const BASE: u32 = 0x4000_0000;

fn machine(configuration: &Configuration, words: &[u32]) -> Machine {
    Machine::with_image(configuration, &Image::of_words(BASE, words)).unwrap()
}

/// Answers each word with its complement.
struct Complement(Vec<(u32, u8)>);

impl SpiSlave for Complement {
    fn selected(&mut self, _slave: usize, _selected: bool, _at: u64) {}

    fn exchange(&mut self, word: u32, bits: u8, _at: u64) -> u32 {
        self.0.push((word, bits));
        !word
    }

    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    fn restore(&mut self, _bytes: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn software_exchanges_a_word_of_spi() {
    let words = [
        &set(0x8000_5000, 1)[..],
        &set(0x0770_0000, 2), // REV, MS, EN, 8 bits
        &[st(2, 1, 0x20)],
        &set(0xa500_0000, 3),
        &[st(3, 1, 0x30)],
        // Wait for NE, bit 9: andcc %g4, 0x200, %g0; be back.
        &[ld(1, 0x24, 4), 0x8089_2200, 0x02bf_fffe, NOP],
        &[ld(1, 0x34, 5), HALT],
    ]
    .concat();
    let configuration = Configuration {
        spi: 2,
        ..Configuration::default()
    };
    let mut machine = machine(&configuration, &words);
    machine
        .spi(1)
        .unwrap()
        .attach(Box::new(Complement(Vec::new())));
    assert_eq!(machine.run(1000, &mut ()), Stop::End(End::Halt { core: 0 }));
    assert_eq!(machine.cores()[0].registers.get(5), 0x5a << 16);
    let spi = machine.spi(1).unwrap();
    assert_eq!(spi.slave::<Complement>().unwrap().0, [(0xa5, 8)]);
    assert!(machine.spi(2).is_none() && machine.gpio().is_none());
}

#[test]
fn lines_are_driven_and_read() {
    let words = [
        &set(0x8000_0000, 1)[..],
        &[
            or(0, 0xf0, 2),
            st(2, 1, 0x908),
            or(0, 0xa0, 3),
            st(3, 1, 0x904),
            ld(1, 0x900, 4),
        ],
        &[HALT],
    ]
    .concat();
    let configuration = Configuration {
        gpio: true,
        ..Configuration::default()
    };
    let mut machine = machine(&configuration, &words);
    machine.gpio().unwrap().set(2, 0xff, 0x35);
    assert_eq!(machine.run(1000, &mut ()), Stop::End(End::Halt { core: 0 }));
    assert_eq!(machine.cores()[0].registers.get(4), 0xa5);
    let driven = machine.gpio().unwrap().driven();
    let driven: Vec<_> = driven
        .iter()
        .map(|&Driven { lines, values, .. }| (lines, values))
        .collect();
    assert_eq!(driven, [(0xf0, 0), (0xf0, 0xa0)]);
}

/// A core that sleeps for a byte is idle; a byte given from outside wakes it, and time goes on from where it was.
#[test]
fn a_byte_from_outside_wakes_an_idle_machine() {
    for cores in [1, 2] {
        let words = [
            &set(0x8000_0000, 1)[..],
            &[
                st(0, 1, 0x318),
                or(0, 5, 2),
                st(2, 1, 0x108),
                or(0, 8, 3),
                st(3, 1, 0x240),
            ],
            &let_interrupts_through(),
            &[SLEEP, ld(1, 0x100, 5), HALT],
        ]
        .concat();
        let configuration = Configuration {
            cores,
            ..Configuration::default()
        };
        let mut machine = machine(&configuration, &words);
        assert_eq!(machine.run(1000, &mut ()), Stop::End(End::Idle));
        let idle = machine.cycles();
        assert!(idle < 1000, "{idle} cycles");
        machine.uart(0).unwrap().arrive(5000, b'x');
        assert_eq!(machine.run(1000, &mut ()), Stop::End(End::Halt { core: 0 }));
        assert_eq!(machine.cores()[0].registers.get(5), u32::from(b'x'));
        assert!(
            (5000..5200).contains(&machine.cycles()),
            "{} cycles",
            machine.cycles()
        );
    }
}

/// Supervisor, traps off, interrupts of every level let through: a core that sleeps wakes, and takes no trap.
fn let_interrupts_through() -> Vec<u32> {
    [&[or(0, 0xc0, 4)][..], &psr(4)].concat()
}

#[test]
fn a_watchdog_that_software_starts_ends_the_run() {
    let words = [
        &set(0x8000_0000, 1)[..],
        &[
            st(0, 1, 0x318),
            or(0, 100, 2),
            st(2, 1, 0x324),
            or(0, 0xd, 3),
            st(3, 1, 0x328),
        ],
        &AGAIN,
    ]
    .concat();
    let configuration = Configuration {
        watchdog: Some(1_000_000),
        ..Configuration::default()
    };
    let mut machine = machine(&configuration, &words);
    assert_eq!(machine.run(1_000_000, &mut ()), Stop::End(End::Watchdog));
    // 101 ticks of 40 cycles.
    assert!(
        (4000..4200).contains(&machine.cycles()),
        "{} cycles",
        machine.cycles()
    );
}

/// What is read at the very cycle at which a timer underflows is the counter behind that.
#[test]
fn a_device_acts_before_it_is_read() {
    let words = [&set(0x8000_0000, 1)[..], &[ld(1, 0x710, 2); 40], &[HALT]].concat();
    let mut machine = machine(&Configuration::default(), &words);
    let mut timer = Gptimer::new(1, 5, false, None, Clock::SAME);
    let mut access = Access::new(0, 0);
    for (offset, value) in [(0x4, 0), (0x14, 6), (0x18, 7)] {
        timer.write(offset, value, &mut access);
    }
    machine.bus.attach(0x8000_0700, 0x100, Box::new(timer));
    for _ in 0..40 {
        machine.run(1, &mut ());
        let counter = machine.cores()[0].registers.get(2);
        assert!(counter <= 6, "{counter:#x}");
    }
}

/// A level is pending again as soon as software clears it, until its cause is gone.
#[test]
fn a_level_holds_its_interrupt() {
    let words = [
        &set(0x8000_0000, 1)[..],
        &[
            or(0, 4, 2),
            st(2, 1, 0x908), // line 2 is an output,
            st(2, 1, 0x910), // looked at for a high level
            st(2, 1, 0x90c), // that interrupts,
            st(2, 1, 0x904), // and high
            st(2, 1, 0x20c), // cleared
            ld(1, 0x204, 3), // and pending
            st(0, 1, 0x904), // low
            ld(1, 0x204, 4), // still pending
            st(2, 1, 0x20c),
            ld(1, 0x204, 5), // and no longer
            HALT,
        ],
    ]
    .concat();
    let configuration = Configuration {
        gpio: true,
        ..Configuration::default()
    };
    let mut machine = machine(&configuration, &words);
    assert_eq!(machine.run(1000, &mut ()), Stop::End(End::Halt { core: 0 }));
    let pending = [3, 4, 5].map(|register| machine.cores()[0].registers.get(register));
    assert_eq!(pending, [4, 4, 0]);
}
