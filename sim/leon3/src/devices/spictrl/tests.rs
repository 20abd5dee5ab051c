use super::*;
use crate::devices::beside::{Do, Plain, compare};
use proptest::prelude::*;

/// What a peripheral was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Told {
    Selected(usize, bool, u64),
    Word(u32, u8, u64),
}

/// Answers the n-th word with a number that depends on n.
#[derive(Default)]
struct Echo {
    told: Vec<Told>,
    words: u32,
}

fn answer(number: u32) -> u32 {
    (number + 1).wrapping_mul(0x9e37_79b9)
}

impl SpiSlave for Echo {
    fn selected(&mut self, slave: usize, selected: bool, at: u64) {
        self.told.push(Told::Selected(slave, selected, at));
    }

    fn exchange(&mut self, word: u32, bits: u8, at: u64) -> u32 {
        self.told.push(Told::Word(word, bits, at));
        self.words += 1;
        answer(self.words - 1) >> (32 - bits)
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_stdvec(&(&self.told, self.words)).unwrap()
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        (self.told, self.words) = postcard::from_bytes(bytes).map_err(|e| e.to_string())?;
        Ok(())
    }
}

/// The line: half periods of SCK, bit by bit.
struct Line {
    /// Bits to send, and bits that came.
    out: Vec<bool>,
    back: Vec<bool>,
    slot: usize,
    /// Cycles before its first bit, and before the next half period is over.
    wait: u64,
    left: u64,
    half: u64,
    halves: usize,
    lost: bool,
}

/// A controller that lives cycle by cycle.
struct Bits {
    depth: usize,
    mode: u32,
    event: u32,
    mask: u32,
    last: bool,
    select: u32,
    other: u32,
    fifo: Vec<u32>,
    received: Vec<u32>,
    line: Option<Line>,
    /// Cycles until SCK is idle, TIP ends, the slave selects are exchanged.
    busy: u64,
    closing: u64,
    swaps: Vec<u64>,
    told: Vec<Told>,
    words: u32,
    configuration: u32,
    active: bool,
    period: u32,
    /// The counter of the period, and whether it was zero.
    count: u32,
    over: bool,
    set: Vec<bool>,
    wanted: Vec<bool>,
    send: Vec<u32>,
    to_go: Vec<usize>,
    filling: Vec<u32>,
    full: bool,
    skip: bool,
    queue: Vec<u32>,
    unread: Vec<bool>,
    locked: bool,
    triggers: Vec<u64>,
    pulse: bool,
}

impl Bits {
    fn new(depth: usize) -> Bits {
        Bits {
            depth,
            mode: 0,
            event: 0,
            mask: 0,
            last: false,
            select: 15,
            other: 0,
            fifo: vec![],
            received: vec![],
            line: None,
            busy: 0,
            closing: 0,
            swaps: vec![],
            told: vec![],
            words: 0,
            configuration: 0,
            active: false,
            period: 0,
            count: 0,
            over: false,
            set: vec![false; depth],
            wanted: vec![true; depth],
            send: vec![0; depth],
            to_go: vec![],
            filling: vec![0; depth],
            full: false,
            skip: false,
            queue: vec![0; depth],
            unread: vec![false; depth],
            locked: false,
            triggers: vec![],
            pulse: false,
        }
    }

    fn on(&self, bit: u32) -> bool {
        self.mode >> bit & 1 == 1
    }

    fn half(&self) -> u64 {
        let mut half = 2 * (u64::from(self.mode >> 16 & 15) + 1);
        if self.on(13) {
            half /= 2;
        }
        if self.on(27) {
            half *= 16;
        }
        half
    }

    fn raise(&mut self, bit: u32) {
        if self.event >> bit & 1 == 0 {
            self.event |= 1 << bit;
            self.pulse |= self.mask >> bit & 1 == 1;
        }
    }

    fn choose(&mut self, select: u32, now: u64) {
        for slave in 0..4 {
            let bit = select >> slave & 1;
            if self.select >> slave & 1 != bit {
                self.told.push(Told::Selected(slave, bit == 0, now));
            }
        }
        self.select = select;
    }

    fn swap(&mut self, now: u64) {
        let select = self.other;
        self.other = self.select;
        self.choose(select, now);
    }

    fn next_value(&self) -> Option<(usize, u32)> {
        if self.on(31) {
            let &slot = self.to_go.first()?;
            self.active.then(|| (slot, self.send[slot]))
        } else {
            self.fifo.first().map(|&value| (0, value))
        }
    }

    fn put(&mut self, wait: u64) {
        let (slot, value) = self.next_value().unwrap();
        let bits = if self.mode >> 20 & 15 == 0 {
            32
        } else {
            (self.mode >> 20 & 15) as usize + 1
        };
        let out = (0..bits).map(|bit| {
            let place = if self.on(26) { 31 - bit } else { bit };
            value >> place & 1 == 1
        });
        let half = self.half();
        self.line = Some(Line {
            out: out.collect(),
            back: vec![],
            slot,
            wait,
            left: half,
            half,
            halves: 0,
            lost: false,
        });
    }

    fn try_to_begin(&mut self, now: u64) {
        let free = self.line.is_none() && self.busy == 0 && self.closing == 0;
        if free && self.on(24) && self.on(25) && self.next_value().is_some() {
            self.raise(31);
            let mut wait = 0;
            if self.on(14) {
                self.swap(now);
                wait = u64::from(self.mode >> 5 & 3) * self.half();
            }
            self.put(wait);
        }
    }

    /// The line in a cycle.
    fn shift(&mut self, now: u64) {
        let Some(mut line) = self.line.take() else {
            return;
        };
        if line.wait > 0 {
            line.wait -= 1;
            self.line = Some(line);
            return;
        }
        line.left -= 1;
        if line.left > 0 {
            self.line = Some(line);
            return;
        }
        line.left = line.half;
        line.halves += 1;
        let bits = line.out.len();
        if line.halves == 2 * (bits - 1) {
            if self.on(31) {
                self.to_go.remove(0);
            } else {
                self.fifo.remove(0);
            }
        }
        if line.halves % 2 == 1 {
            if line.halves == 1 {
                line.lost = if self.on(31) {
                    self.skip
                } else {
                    self.received.len() > self.depth
                };
                if line.lost {
                    self.raise(12);
                }
            }
            let bit = line.halves / 2;
            line.back.push(answer(self.words) >> (31 - bit) & 1 == 1);
            if line.back.len() == bits {
                self.arrived(line, now);
                return;
            }
        }
        self.line = Some(line);
    }

    fn arrived(&mut self, mut line: Line, now: u64) {
        let number = |bits: &[bool]| {
            bits.iter()
                .fold(0u32, |all, &bit| all << 1 | u32::from(bit))
        };
        let bits = line.out.len();
        if self.on(30) {
            line.back = line.out.clone();
        } else {
            self.told
                .push(Told::Word(number(&line.out), bits as u8, now));
            self.words += 1;
        }
        let mut value = 0;
        for (i, &bit) in line.back.iter().enumerate() {
            // Where the i-th bit that came is read.
            let place = match (self.on(26), bits) {
                (true, 32) => 31 - i,
                (true, _) => 16 + bits - 1 - i,
                (false, 32) => i,
                (false, _) => 16 - bits + i,
            };
            value |= u32::from(bit) << place;
        }
        if !line.lost {
            if self.on(31) {
                self.filling[line.slot] = value;
            } else {
                self.received.push(value);
            }
        }
        let rest = line.half;
        if self.next_value().is_some() {
            let gap = u64::from(self.mode >> 7 & 31) * 2 * self.half();
            let mut wait = rest + gap;
            if self.on(14) && self.on(4) && gap > 0 {
                self.swaps = vec![rest, rest + gap];
                wait += u64::from(self.mode >> 5 & 3) * self.half();
            }
            self.put(wait);
            return;
        }
        self.busy = rest;
        if self.on(1) {
            self.closing = rest;
        } else {
            self.end_of_transfer(now);
        }
        if self.on(31) {
            self.full = true;
            self.active &= self.configuration & 2 != 0;
            self.event &= !(1 << 15);
            self.pulse |= self.mask >> 15 & 1 == 1;
        }
    }

    fn end_of_transfer(&mut self, now: u64) {
        self.event &= !(1 << 31);
        if self.on(14) {
            self.swap(now);
        }
    }

    fn begin_set(&mut self) {
        self.count = self.period;
        self.over = false;
        self.skip = self.full && self.configuration & 4 != 0;
        if !self.skip {
            self.full = false;
            self.set = self.wanted.clone();
        }
        self.to_go = (0..self.depth).filter(|&slot| self.set[slot]).collect();
        if !self.to_go.is_empty() {
            self.event |= 1 << 15;
        }
    }

    fn try_next_set(&mut self) {
        if !self.active || self.event & (1 << 31 | 1 << 15) != 0 {
            return;
        }
        let strict = self.configuration & 16 != 0;
        let blocks = self.configuration & 8 != 0;
        if self.full && strict && blocks {
            self.count = self.period;
            self.over = false;
        } else if !self.full || strict {
            self.begin_set();
        }
    }

    fn activate(&mut self) {
        self.active = true;
        self.full = false;
        self.configuration = self.configuration & !1 | 2;
        self.begin_set();
    }

    fn settle(&mut self, now: u64) {
        let any = |unread: &[bool]| unread.contains(&true);
        if self.on(24) && self.on(31) {
            let keeps = any(&self.unread) && (self.locked || self.configuration & 32 != 0);
            if self.full && !keeps {
                self.queue = self.filling.clone();
                self.unread = self.set.clone();
                self.full = false;
            }
            if self.over {
                self.try_next_set();
            }
        }
        if self.last && self.line.is_none() && self.next_value().is_none() {
            self.last = false;
            self.raise(14);
        }
        self.try_to_begin(now);
        if self.on(24) {
            if self.fifo.len() < self.depth + 1 {
                self.raise(8);
            } else {
                self.event &= !(1 << 8);
            }
            let some = if self.on(31) {
                any(&self.unread)
            } else {
                !self.received.is_empty()
            };
            if some {
                self.raise(9);
            } else {
                self.event &= !(1 << 9);
                self.locked = false;
            }
        }
    }

    fn stop(&mut self) {
        self.fifo.clear();
        self.received.clear();
        self.line = None;
        self.busy = 0;
        self.closing = 0;
        self.swaps.clear();
        self.last = false;
        self.event &= !(1 << 31 | 1 << 15);
        self.active = false;
        self.over = false;
        self.full = false;
        self.to_go.clear();
        self.unread = vec![false; self.depth];
        self.configuration &= !3;
    }

    fn pulses(&mut self) -> u32 {
        u32::from(std::mem::take(&mut self.pulse)) << 13
    }
}

impl Plain for Bits {
    fn tick(&mut self, now: u64) -> u32 {
        self.busy = self.busy.saturating_sub(1);
        if self.closing > 0 {
            self.closing -= 1;
            if self.closing == 0 {
                self.end_of_transfer(now);
            }
        }
        for swap in &mut self.swaps {
            *swap -= 1;
        }
        if self.swaps.first() == Some(&0) {
            self.swaps.remove(0);
            self.swap(now);
        }
        self.shift(now);
        if self.active && !self.over {
            if self.count > 0 {
                self.count -= 1;
            } else if self.configuration & 64 == 0 {
                self.over = true;
            }
        }
        self.settle(now);
        while self.triggers.first() == Some(&now) {
            self.triggers.remove(0);
            self.settle(now);
            if self.event >> 15 & 1 == 0 && self.on(31) && self.on(24) {
                if !self.active {
                    if self.configuration & 1 != 0 {
                        self.activate();
                    }
                } else if self.configuration & 64 != 0 {
                    self.try_next_set();
                }
            }
            self.settle(now);
        }
        self.pulses()
    }

    fn read(&mut self, offset: u32, now: u64) -> (u32, u32) {
        let slot = (offset as usize & 0x1ff) / 4;
        let value = match offset {
            0 => 0x0407_0005 | (self.depth as u32) << 8,
            0x20 => self.mode,
            0x24 => self.event,
            0x28 => self.mask,
            0x34 if !self.on(31) && !self.received.is_empty() => self.received.remove(0),
            0x38 => self.select,
            0x3c => self.other,
            0x40 => self.configuration & !2 | u32::from(self.active) << 1,
            0x44 => self.period,
            0x50 => (0..self.depth)
                .map(|slot| u32::from(self.wanted[slot]) << slot)
                .sum(),
            0x200..0x400 if slot < self.depth => self.send[slot],
            0x400..0x600 if slot < self.depth => {
                if self.unread[slot] {
                    self.unread[slot] = false;
                    self.locked = self.configuration & 128 != 0;
                }
                self.queue[slot]
            }
            _ => 0,
        };
        self.settle(now);
        (value, self.pulses())
    }

    fn write(&mut self, offset: u32, value: u32, now: u64) -> u32 {
        let slot = (offset as usize & 0x1ff) / 4;
        match offset {
            0x20 => {
                let before = self.mode;
                self.mode = value & !0x8009;
                if value >> 24 & 1 == 0 || (before ^ value) & 0x8200_0000 != 0 {
                    self.stop();
                }
            }
            0x24 => self.event &= !(value & 0x5c00),
            0x28 => self.mask = value & 0x8000_df00,
            0x2c => self.last |= value >> 22 & 1 == 1 && self.on(24),
            0x30 if self.on(24) && !self.on(31) && self.fifo.len() <= self.depth => {
                self.fifo.push(value);
            }
            0x38 => self.choose(value & 15, now),
            0x3c => self.other = value & 15,
            0x40 => {
                self.configuration = value & 0xff;
                if value & 2 == 0 {
                    self.active &= self.event >> 15 & 1 == 1;
                } else if !self.active && self.on(31) && self.on(24) {
                    self.activate();
                }
            }
            0x44 => self.period = value,
            0x50 => {
                for slot in 0..self.depth {
                    self.wanted[slot] = value >> slot & 1 == 1;
                }
            }
            0x200..0x400 if slot < self.depth => self.send[slot] = value,
            _ => {}
        }
        self.settle(now);
        self.pulses()
    }
}

/// A mode with quick clocks, on and a master most of the time.
fn mode(automatic: bool) -> impl Strategy<Value = u32> {
    let bits = (any::<u32>(), 0u32..3, 0u32..3, 0u32..16, 0u32..100);
    bits.prop_map(move |(any, pm, gap, length, rare)| {
        let length = if length < 3 { 0 } else { length };
        let kept = any & (1 << 30 | 1 << 29 | 1 << 28 | 1 << 26 | 0x7e7f);
        let div = if rare == 0 { 1 << 27 } else { 0 };
        let on = if rare < 95 { 3 << 24 } else { any & 3 << 24 };
        let mode = kept | div | on | length << 20 | pm << 16 | gap << 7;
        mode | u32::from(automatic) << 31
    })
}

fn act(automatic: bool) -> impl Strategy<Value = (u64, Do)> {
    let registers = prop_oneof![
        Just(0u32),
        Just(0x20),
        Just(0x24),
        Just(0x24),
        Just(0x28),
        Just(0x34),
        Just(0x34),
        Just(0x38),
        Just(0x3c),
        Just(0x40),
        Just(0x44),
        Just(0x50),
        (0u32..9).prop_map(|slot| 0x200 + slot * 4),
        (0u32..9).prop_map(|slot| 0x400 + slot * 4),
        (0u32..9).prop_map(|slot| 0x400 + slot * 4),
    ];
    let word = if automatic { 1 } else { 12 };
    let set = if automatic { 4 } else { 1 };
    let acts = prop_oneof![
        12 => registers.prop_map(Do::Read),
        1 => mode(automatic).prop_map(|mode| Do::Write(0x20, mode)),
        1 => any::<u32>().prop_map(|value| Do::Write(0x24, value)),
        1 => any::<u32>().prop_map(|value| Do::Write(0x28, value)),
        1 => Just(Do::Write(0x2c, LST)),
        word => any::<u32>().prop_map(|value| Do::Write(0x30, value)),
        1 => (0u32..16).prop_map(|value| Do::Write(0x38, value)),
        1 => (0u32..16).prop_map(|value| Do::Write(0x3c, value)),
        set => (0u32..256).prop_map(|value| Do::Write(0x40, value | 2)),
        1 => (0u32..256).prop_map(|value| Do::Write(0x40, value)),
        set => (0u32..400).prop_map(|value| Do::Write(0x44, value)),
        1 => (0u32..256).prop_map(|value| Do::Write(0x50, value)),
        set => (0u32..9, any::<u32>()).prop_map(|(slot, value)| Do::Write(0x200 + slot * 4, value)),
    ];
    (prop_oneof![0u64..6, 0u64..300], acts)
}

fn both(automatic: bool, depth: u8, mode: u32, all: &[(u64, Do)], triggers: Vec<u64>) {
    let mut spi = Spictrl::new(13, depth, 4);
    spi.attach(Box::new(Echo::default()));
    let mut plain = Bits::new(1 << depth);
    let mut triggers = triggers;
    triggers.sort_unstable();
    for &at in &triggers {
        spi.trigger(at);
    }
    plain.triggers = triggers;
    let begin = [
        (0, Do::Write(0x28, u32::MAX)),
        (0, Do::Write(0x44, 150)),
        (0, Do::Write(0x20, mode)),
        (3, Do::Write(0x40, u32::from(automatic) * 2)),
    ];
    let all = [&begin, all].concat();
    compare(&mut spi, &mut plain, &all, 2000);
    // A set that nobody is interrupted by is caught up when somebody looks.
    let end = all.iter().map(|&(gap, _)| gap).sum::<u64>() + 2000;
    spi.read(0x20, &mut Access::new(end - 1, 0));
    assert_eq!(spi.slave::<Echo>().unwrap().told, plain.told);
}

proptest! {
    #[test]
    fn words_go_as_if_bit_by_bit(
        depth in 1u8..4, mode in mode(false), all in proptest::collection::vec(act(false), 1..150),
    ) {
        both(false, depth, mode, &all, vec![]);
    }

    #[test]
    fn sets_go_as_if_cycle_by_cycle(
        depth in 1u8..4, mode in mode(true), all in proptest::collection::vec(act(true), 1..150),
        triggers in proptest::collection::vec(0u64..10000, 0..50),
    ) {
        both(true, depth, mode, &all, triggers);
    }
}

/// The cycles from the first write to the last word received, of `words` words.
fn duration(mode: u32, words: usize) -> u64 {
    let mut spi = Spictrl::new(13, 4, 1);
    spi.write(0x20, mode | MS | EN, &mut Access::new(0, 0));
    for _ in 0..words {
        spi.write(0x30, 0, &mut Access::new(0, 0));
    }
    let mut last = 0;
    while spi.next() != NEVER {
        last = spi.next();
        spi.advance(&mut Access::new(last, 0));
    }
    last
}

/// The divisors that the manual gives: a word ends half a period before its last period does.
#[test]
fn the_clock_is_divided_as_the_manual_says() {
    for (bits, cycles) in [
        (0x70_0000, 4),
        (0x70_0000 | FACT, 2),
        (0x73_0000, 16),
        (0x73_0000 | FACT, 8),
        (0x73_0000 | DIV16, 256),
        (0x73_0000 | DIV16 | FACT, 128),
    ] {
        assert_eq!(duration(bits, 1), 8 * cycles - cycles / 2);
        assert_eq!(duration(bits, 5), 40 * cycles - cycles / 2);
        let gaps = duration(bits | 3 << 7, 5);
        assert_eq!(gaps, 40 * cycles + 4 * 3 * cycles - cycles / 2);
    }
}

/// A set each 100 cycles, read late: with STRICT and OVDB the sets in between are lost and said to be.
#[test]
fn two_sets_are_kept_and_a_third_overruns() {
    let sets = |configuration: u32| {
        let mut spi = Spictrl::new(13, 3, 1);
        spi.attach(Box::new(Echo::default()));
        let mut access = Access::new(0, 0);
        for (offset, value) in [
            (0x44, 99),
            (0x50, 3),
            (0x20, AMEN | MS | EN | REV | 0xf0_0000 | FACT),
        ] {
            spi.write(offset, value, &mut access);
        }
        spi.write(0x40, configuration | ACT, &mut access);
        spi.advance(&mut Access::new(480, 0));
        let mut access = Access::new(480, 0);
        let event = spi.read(0x24, &mut access);
        let mut first = || spi.read(0x400, &mut access) >> 16;
        let (mut values, mut last) = (vec![first()], Access::new(480, 0));
        spi.read(0x404, &mut last);
        values.push(spi.read(0x400, &mut last) >> 16);
        let words = spi.slave::<Echo>().unwrap().words;
        let number = |value: &u32| (0..20).find(|&n| answer(n) >> 16 == *value).unwrap() / 2;
        (
            event & OV != 0,
            values.iter().map(number).collect::<Vec<_>>(),
            words / 2,
        )
    };
    assert_eq!(sets(0), (false, vec![4, 4], 5), "the latest set");
    assert_eq!(sets(SEQ), (false, vec![0, 1], 2), "the third waits");
    assert_eq!(sets(SEQ | STRICT | OVDB), (true, vec![0, 1], 5), "skipped");
    assert_eq!(sets(SEQ | STRICT), (false, vec![0, 4], 5), "overwritten");
    assert_eq!(
        sets(SEQ | STRICT | OVTB),
        (false, vec![0, 1], 2),
        "left out"
    );
}
