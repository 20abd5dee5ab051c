//! A unit of two cores as a mission uses it: one timer for both, extended interrupts, automated SPI, flash.

use metes_leon3::devices::SpiSlave;
use metes_leon3::{Configuration, Image, Machine, Stop};

const BASE: u32 = 0x4000_0000;
/// Where the trap table stands, and where its handlers count.
const TABLE: u32 = BASE + 0x1000;

/// `set value, %rd`.
fn set(value: u32, rd: u32) -> [u32; 2] {
    let sethi = 0x0100_0000 | rd << 25 | value >> 10;
    [sethi, 0x8010_2000 | rd << 25 | rd << 14 | value & 0x3ff]
}

/// Sets the word at `address` to `value`, by %g1 and %g2.
fn store(address: u32, value: u32) -> Vec<u32> {
    [&set(address, 1)[..], &set(value, 2), &[0xc420_6000]].concat()
}

/// `add %rd, 1, %rd; jmp %l1; rett %l2; nop`: counts an interrupt in a global register and returns.
fn count(rd: u32) -> [u32; 4] {
    let add = 0x8000_2001 | rd << 25 | rd << 14;
    [add, 0x81c4_4000, 0x81cc_8000, 0x0100_0000]
}

/// Both cores: their own trap table, traps on, then asleep for ever.
fn sleeper() -> Vec<u32> {
    [
        &set(TABLE, 1)[..],
        &[0x8198_4000],                                        // wr %g1, %tbr
        &[0x8410_20e0, 0x8188_8000],                           // wr 0xe0, %psr: traps on, PIL 0
        &[0x0100_0000; 3],                                     // nop
        &[0xa780_0000, 0x0100_0000, 0x10bf_fffe, 0x0100_0000], // wr %asr19; nop; ba back; nop
    ]
    .concat()
}

fn machine(words: &[u32]) -> Machine {
    let configuration = Configuration {
        cores: 2,
        frequency: 100_000_000,
        timer_frequency: 100_000_000,
        uarts: 5,
        uart_depth: 32,
        spi: 3,
        gpio: true,
        flash: Some(64 << 20),
        extended_interrupt: 12,
        watchdog: Some(30_000_000),
        ..Configuration::default()
    };
    // Core 1 begins at the same entry, so what sets devices up is jumped over by it: its number is in %asr17.
    let skip = [
        0x8744_4000,                            // rd %asr17, %g3
        0x8730_e01c,                            // srl %g3, 28, %g3
        0x80a0_e000,                            // cmp %g3, 0
        0x1280_0000 | (words.len() as u32 + 2), // bne behind the set-up
        0x0100_0000,
    ];
    let mut all = [&skip[..], words, &sleeper()].concat();
    assert!(all.len() < 0x400);
    all.resize(0x400 + 0x400, 0x0100_0000);
    for (trap, register) in [(0x16, 7), (0x1c, 6)] {
        all[0x400 + 4 * trap..][..4].copy_from_slice(&count(register));
    }
    Machine::with_image(&configuration, &Image::of_words(BASE, &all)).unwrap()
}

/// Runs for so many cycles.
fn run(machine: &mut Machine, cycles: u64) {
    let end = machine.cycles() + cycles;
    // Something happens at the end, so that nobody sleeps beyond it.
    machine.gpio().unwrap().set(end, 0, 0);
    while machine.cycles() < end {
        assert_eq!(machine.run(1, &mut ()), Stop::Limit);
    }
}

/// A millisecond a tick at both cores.
fn ticking() -> Vec<u32> {
    [
        store(0x8000_0240, 1 << 6 | 1 << 17 | 1 << 20), // masks of core 0, with two extended lines
        store(0x8000_0244, 1 << 6),
        store(0x8000_0214, 1 << 6), // line 6 to every core
        store(0x8000_0304, 9),      // ticks of 100 ns
        store(0x8000_0314, 9_999),
        store(0x8000_0310, 9_999),
        store(0x8000_0318, 0xb), // on, again and again, with interrupt
        store(0x8000_0210, 2),   // core 1 starts
    ]
    .concat()
}

#[test]
fn both_cores_count_every_tick() {
    let mut machine = machine(&ticking());
    run(&mut machine, 2_050_000);
    let ticks = |machine: &Machine| [0, 1].map(|core| machine.cores()[core].registers.get(7));
    assert_eq!(ticks(&machine), [20, 20]);
    // A byte at the second and at the fifth line: both are extended, and arrive on line 12 at core 0 alone.
    for line in [1, 4] {
        let at = machine.cycles() + 1000 * line as u64;
        let uart = machine.uart(line).unwrap();
        let mut access = metes_leon3::devices::Access::new(at, 0);
        metes_leon3::devices::Device::write(uart, 8, 1 | 1 << 2, &mut access);
        uart.arrive(at, 0x5a);
    }
    run(&mut machine, 100_000);
    assert_eq!(ticks(&machine), [21, 21]);
    let bytes = [0, 1].map(|core| machine.cores()[core].registers.get(6));
    assert_eq!(bytes, [2, 0]);
}

/// The watchdog counts by the scaler that software sets: three seconds.
#[test]
fn nobody_kicks_the_watchdog() {
    let mut machine = machine(&ticking());
    loop {
        match machine.run(1_000_000, &mut ()) {
            Stop::Limit => {}
            stop => {
                assert_eq!(stop, Stop::End(metes_leon3::End::Watchdog));
                break;
            }
        }
    }
    let seconds = machine.cycles() as f64 / 100e6;
    assert!((3.0..3.01).contains(&seconds), "{seconds} s");
}

/// Counts the words of each selection, and answers with their number in it.
#[derive(Default)]
struct Sets(Vec<Vec<(u32, u64)>>, u64);

impl SpiSlave for Sets {
    fn selected(&mut self, slave: usize, selected: bool, at: u64) {
        assert_eq!(slave, 0);
        if selected {
            self.0.push(Vec::new());
            self.1 = at;
        }
    }

    fn exchange(&mut self, word: u32, bits: u8, at: u64) -> u32 {
        assert_eq!(bits, 12);
        let set = self.0.last_mut().unwrap();
        set.push((word, at - self.1));
        set.len() as u32
    }

    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    fn restore(&mut self, _bytes: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// A set of 24 words of 12 bits each millisecond, at 625 kHz, selected as a whole, that software finds whole.
#[test]
fn sets_come_each_millisecond() {
    const SPI: u32 = 0x8000_6000;
    let mut words = Vec::new();
    // AMEN, DIV16, REV, MS, EN, 12 bits, PM 4, ASEL, FACT: a period of 160 cycles.
    let mode =
        1 << 31 | 1 << 27 | 1 << 26 | 1 << 25 | 1 << 24 | 11 << 20 | 4 << 16 | 1 << 14 | 1 << 13;
    words.extend(store(SPI + 0x3c, !1));
    words.extend(store(SPI + 0x20, mode));
    words.extend(store(SPI + 0x50, (1 << 24) - 1));
    words.extend(store(SPI + 0x44, 99_999));
    for slot in 0..24 {
        words.extend(store(SPI + 0x200 + 4 * slot, (0x100 + slot) << 20));
    }
    words.extend(store(SPI + 0x40, 1 << 1 | 1 << 5)); // ACT, SEQ
    let mut machine = machine(&words);
    machine.spi(2).unwrap().attach(Box::new(Sets::default()));
    run(&mut machine, 150_000);
    let received = |machine: &mut Machine, slot: u32| {
        let now = machine.cycles();
        let mut access = metes_leon3::devices::Access::new(now, 0);
        let spi = machine.spi(2).unwrap();
        metes_leon3::devices::Device::read(spi, 0x400 + 4 * slot, &mut access)
    };
    for slot in 0..24 {
        assert_eq!(received(&mut machine, slot), (slot + 1) << 16);
    }
    run(&mut machine, 200_000);
    let sets = &machine.spi(2).unwrap().slave::<Sets>().unwrap().0;
    assert!(sets.len() >= 3, "{} sets", sets.len());
    for set in &sets[..3] {
        let sent: Vec<_> = set.iter().map(|&(word, _)| word).collect();
        assert_eq!(sent, (0x100..0x118).collect::<Vec<_>>());
        // 288 bits of 160 cycles, the last sampled half a period before its end.
        assert_eq!(set.last().map(|&(_, at)| at), Some(288 * 160 - 80));
    }
}
