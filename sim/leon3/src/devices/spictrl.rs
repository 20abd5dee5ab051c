//! SPICTRL, the SPI controller (GRLIB IP core manual, "SPICTRL"), as a master, with its automated mode.
//!
//! | offset | register |
//! | --- | --- |
//! | 0x00 | capability |
//! | 0x20 | mode |
//! | 0x24, 0x28 | event, mask |
//! | 0x2c | command: bit 22, the last word (LST) |
//! | 0x30, 0x34 | transmit, receive |
//! | 0x38, 0x3c | slave select, automatic slave select (a zero selects) |
//! | 0x40, 0x44 | automated mode: configuration, period |
//! | 0x50 to 0x5c | automated mode: mask |
//! | 0x200, 0x400 ... | automated mode: words to send, words received |
//!
//! **Time.** A period of SCK is 4 (PM + 1) cycles, 2 (PM + 1) with FACT, 16 times that with DIV16. A word of *n* bits takes
//! *n* periods; between words of one transfer lie CG periods. The *k*-th bit is sampled half a period after its period
//! began; the word is received at its last sample, and the transfer in progress (TIP) ends there, or with CITE half
//! a period later, when SCK is idle. With ASEL the automatic slave select is exchanged with the slave select where TIP
//! begins and ends, and with TAC in each gap; SCK then waits ASELDEL half periods. Left out: the two or three cycles of
//! synchronisers and registers on the way.
//!
//! **Words.** LEN is 0 for 32 bits, else the number of bits less one. Without REV the lowest bit goes first, and
//! words of at most 16 bits are sent from bits 15 to 0, right aligned, and received with their highest bit in bit 15. With
//! REV the highest bit goes first, words are sent left aligned, and received with their lowest bit in bit 16.
//!
//! **Queues.** A FIFO and a register: one word more than the depth, either way. A word that is sent leaves its place
//! when its last bit begins. A word that finds the receive queue full at its first sample is lost, with the overrun event.
//!
//! **Automated mode** (AMEN). A set is the words whose bits are set in the mask, sent one behind the other; sets begin
//! AMPER + 1 cycles apart. A complete set is received in a FIFO of its own and moved from there to the queue
//! that software reads: at once, if the queue has been read, or if neither SEQ is set nor (with LOCK) reading has begun;
//! what was unread is then gone. While it cannot be moved, the next set waits (the period stretches); with STRICT it
//! begins nevertheless, and its words overwrite those that wait, or with OVDB are skipped with the overrun event; with
//! OVTB it is left out. The mask changes between sets. A set under way when ACT is cleared is completed (an assumption).
//! EACT and ERPT let an outside event ([`Spictrl::trigger`]) begin the first set or every one.
//!
//! LOOP, REV, CG and what is about selects are looked at when a word ends, LEN and the clock when it begins.
//!
//! The interrupt is pulsed when an event that is not masked is set; AT's when a set is complete.
//!
//! Not there: slave mode (nobody outside is a master, so nothing happens, and there are no underruns and no
//! multiple-master errors), three wires (TW and TTO read as zero, as the capability says), dual and quad lines. CPOL and
//! CPHA are kept; words and times do not depend on them, and OD changes nothing without other drivers.
//!
//! Invariant: words leave and arrive in their order; each is exchanged once, at its last sample.

use std::any::Any;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Access, Device, GAISLER, Identity, NEVER};

const AMEN: u32 = 1 << 31;
const LOOP: u32 = 1 << 30;
const DIV16: u32 = 1 << 27;
const REV: u32 = 1 << 26;
const MS: u32 = 1 << 25;
const EN: u32 = 1 << 24;
const ASEL: u32 = 1 << 14;
const FACT: u32 = 1 << 13;
const TAC: u32 = 1 << 4;
const CITE: u32 = 1 << 1;
/// Bits of the mode register that are not there: three wires, and bit 0.
const NO_MODE: u32 = 1 << 15 | 1 << 3 | 1;

const TIP: u32 = 1 << 31;
const AT: u32 = 1 << 15;
const LT: u32 = 1 << 14;
const OV: u32 = 1 << 12;
const UN: u32 = 1 << 11;
const MME: u32 = 1 << 10;
const NE: u32 = 1 << 9;
const NF: u32 = 1 << 8;
/// Events that software clears by a one.
const CLEARED: u32 = LT | OV | UN | MME;
const EVENTS: u32 = TIP | AT | CLEARED | NE | NF;

const LST: u32 = 1 << 22;

const EACT: u32 = 1;
const ACT: u32 = 1 << 1;
const OVDB: u32 = 1 << 2;
const OVTB: u32 = 1 << 3;
const STRICT: u32 = 1 << 4;
const SEQ: u32 = 1 << 5;
const ERPT: u32 = 1 << 6;
const LOCK: u32 = 1 << 7;
/// Bits of the configuration that are kept as written; the external clock gap (bit 8) is not there.
const CONFIGURATION: u32 = 0xfd;

/// Automated mode, automatic slave select and slave select are there; 32-bit words; revision 5.
const CAPABILITY: u32 = 1 << 18 | 1 << 17 | 1 << 16 | 5;

/// What stands on the other side of an SPI controller: one or several peripherals.
pub trait SpiSlave: Any + Send {
    /// Slave select `slave` has changed at cycle `at`.
    fn selected(&mut self, slave: usize, selected: bool, at: u64);

    /// A word of `bits` bits has been shifted out, its last bit sampled at cycle `at`; returns what came back. In
    /// both the first bit on the wire is the highest. It is called whether or not a slave is selected: a board may hold
    /// a select line by itself.
    fn exchange(&mut self, word: u32, bits: u8, at: u64) -> u32;

    /// Everything it holds, as bytes.
    fn save(&self) -> Vec<u8>;

    /// Holds what [`SpiSlave::save`] gave.
    ///
    /// # Errors
    /// The bytes are none of this peripheral's.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), String>;
}

/// A word on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Word {
    /// Its bits, the first one highest.
    wire: u32,
    bits: u8,
    /// Which word of the set it is, in automated mode.
    slot: u8,
    /// The cycle at which its first bit begins, and half a period of SCK.
    start: u64,
    half: u64,
    stage: Stage,
    /// It finds no place where it is received.
    lost: bool,
}

/// What happens to a word next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// Its first bit is sampled.
    Sample,
    /// Its last bit begins.
    Leave,
    /// Its last bit is sampled.
    Arrive,
}

impl Word {
    /// The cycle at which [`Word::stage`] is over.
    fn due(&self) -> u64 {
        let halves = match self.stage {
            Stage::Sample => 1,
            Stage::Leave => 2 * (u64::from(self.bits) - 1),
            Stage::Arrive => 2 * (u64::from(self.bits) - 1) + 1,
        };
        self.start + halves * self.half
    }

    fn end(&self) -> u64 {
        self.start + 2 * u64::from(self.bits) * self.half
    }
}

/// The automated mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Automatic {
    configuration: u32,
    period: u32,
    /// The mask of the set under way, and what software has written.
    mask: u128,
    written: u128,
    active: bool,
    /// The cycle at which the period is over.
    due: u64,
    /// The period is over, and the next set waits.
    late: bool,
    to_send: Vec<u32>,
    /// Words of the set under way that are to be sent.
    left: u128,
    /// What the set under way is received in, and whether it is complete.
    filling: Vec<u32>,
    full: bool,
    /// The set under way is not received.
    skips: bool,
    /// What software reads, and which of it is unread.
    queue: Vec<u32>,
    unread: u128,
    locked: bool,
    triggers: VecDeque<u64>,
}

impl Automatic {
    fn has(&self, bit: u32) -> bool {
        self.configuration & bit != 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    interrupt: u8,
    /// Words of a FIFO.
    depth: usize,
    slaves: u8,
    mode: u32,
    event: u32,
    mask: u32,
    last: bool,
    select: u32,
    automatic_select: u32,
    sending: VecDeque<u32>,
    received: VecDeque<u32>,
    word: Option<Word>,
    /// The cycle from which the line is free.
    free: u64,
    /// When TIP ends, where that is later than the last word.
    closing: Option<u64>,
    /// When slave selects are exchanged, in gaps.
    swaps: VecDeque<u64>,
    automatic: Automatic,
}

/// An SPI controller.
pub struct Spictrl {
    it: State,
    slave: Option<Box<dyn SpiSlave>>,
}

impl Spictrl {
    /// A controller that interrupts on `interrupt`, with FIFOs of `1 << depth` words (`depth` 1 to 7) and `slaves` (1 to
    /// 32) slave selects.
    pub fn new(interrupt: u8, depth: u8, slaves: u8) -> Spictrl {
        let words = 1 << depth.clamp(1, 7);
        let slaves = slaves.clamp(1, 32);
        Spictrl {
            it: State {
                interrupt,
                depth: words,
                slaves,
                mode: 0,
                event: 0,
                mask: 0,
                last: false,
                select: u32::MAX >> (32 - slaves),
                automatic_select: 0,
                sending: VecDeque::new(),
                received: VecDeque::new(),
                word: None,
                free: 0,
                closing: None,
                swaps: VecDeque::new(),
                automatic: Automatic {
                    written: u128::MAX >> (128 - words),
                    to_send: vec![0; words],
                    filling: vec![0; words],
                    queue: vec![0; words],
                    ..Automatic::default()
                },
            },
            slave: None,
        }
    }

    /// Lets `slave` stand on the other side. Without one, what comes back is ones.
    pub fn attach(&mut self, slave: Box<dyn SpiSlave>) {
        self.slave = Some(slave);
    }

    /// What stands on the other side, if it is an `S`.
    pub fn slave<S: SpiSlave>(&mut self) -> Option<&mut S> {
        let slave: &mut dyn Any = &mut **self.slave.as_mut()?;
        slave.downcast_mut()
    }

    /// An outside event at cycle `at`, which the automated mode may wait for (EACT, ERPT).
    pub fn trigger(&mut self, at: u64) {
        let triggers = &mut self.it.automatic.triggers;
        let at = at.max(triggers.back().copied().unwrap_or(0));
        triggers.push_back(at);
    }

    fn is(&self, bit: u32) -> bool {
        self.it.mode & bit != 0
    }

    /// Half a period of SCK, in cycles.
    fn half(&self) -> u64 {
        let divisor = u64::from(self.it.mode >> 16 & 15) + 1;
        let fact = if self.is(FACT) { 1 } else { 2 };
        divisor * fact * if self.is(DIV16) { 16 } else { 1 }
    }

    fn bits(&self) -> u8 {
        match (self.it.mode >> 20 & 15) as u8 {
            0 => 32,
            length => length + 1,
        }
    }

    /// Cycles between a slave select and SCK.
    fn select_delay(&self) -> u64 {
        u64::from(self.it.mode >> 5 & 3) * self.half()
    }

    fn happens(&mut self, event: u32, access: &mut Access) {
        if self.it.event & event == 0 && self.it.mask & event != 0 {
            access.interrupt(self.it.interrupt);
        }
        self.it.event |= event;
    }

    /// Sets or clears NF and NE, which a disabled controller leaves as they were.
    fn renew_events(&mut self, access: &mut Access) {
        if !self.is(EN) {
            return;
        }
        let not_empty = if self.is(AMEN) {
            self.it.automatic.unread != 0
        } else {
            !self.it.received.is_empty()
        };
        let conditions = [
            (NF, self.it.sending.len() <= self.it.depth),
            (NE, not_empty),
        ];
        for (event, holds) in conditions {
            if holds {
                self.happens(event, access);
            } else {
                self.it.event &= !event;
            }
        }
        self.it.automatic.locked &= not_empty;
    }

    fn set_selects(&mut self, select: u32, at: u64) {
        let changed = self.it.select ^ select;
        self.it.select = select;
        if let Some(slave) = &mut self.slave {
            for number in 0..usize::from(self.it.slaves) {
                if changed >> number & 1 == 1 {
                    slave.selected(number, select >> number & 1 == 0, at);
                }
            }
        }
    }

    fn swap_selects(&mut self, at: u64) {
        let select = std::mem::replace(&mut self.it.automatic_select, self.it.select);
        self.set_selects(select, at);
    }

    /// The word to be sent next: its place in the set, and itself.
    fn first(&self) -> Option<(u8, u32)> {
        let automatic = &self.it.automatic;
        if !self.is(AMEN) {
            return self.it.sending.front().map(|&value| (0, value));
        }
        let slot = automatic.left.trailing_zeros() as usize;
        (automatic.active && automatic.left != 0).then(|| (slot as u8, automatic.to_send[slot]))
    }

    fn can_begin(&self) -> bool {
        self.it.word.is_none() && self.is(EN) && self.is(MS) && self.first().is_some()
    }

    /// Begins a transfer, if there is something to send and the line is free.
    fn begin(&mut self, now: u64, access: &mut Access) {
        if !self.can_begin() || now < self.it.free || self.it.closing.is_some() {
            return;
        }
        self.happens(TIP, access);
        let mut start = now;
        if self.is(ASEL) {
            self.swap_selects(now);
            start += self.select_delay();
        }
        self.send(start);
    }

    /// Puts the next word on the line.
    fn send(&mut self, start: u64) {
        let (bits, half) = (self.bits(), self.half());
        self.it.word = self.first().map(|(slot, value)| Word {
            wire: to_wire(value, bits, self.is(REV)),
            bits,
            slot,
            start,
            half,
            stage: Stage::Sample,
            lost: false,
        });
    }

    /// What is due for the word on the line.
    fn step(&mut self, mut word: Word, access: &mut Access) {
        match word.stage {
            Stage::Sample => {
                word.lost = if self.is(AMEN) {
                    self.it.automatic.skips
                } else {
                    self.it.received.len() > self.it.depth
                };
                if word.lost {
                    self.happens(OV, access);
                }
                word.stage = Stage::Leave;
                self.it.word = Some(word);
            }
            Stage::Leave => {
                if self.is(AMEN) {
                    self.it.automatic.left &= !(1 << word.slot);
                } else {
                    self.it.sending.pop_front();
                }
                word.stage = Stage::Arrive;
                self.it.word = Some(word);
            }
            Stage::Arrive => self.arrive(word, access),
        }
    }

    fn arrive(&mut self, word: Word, access: &mut Access) {
        let at = word.due();
        self.receive(word, at);
        self.it.word = None;
        if self.first().is_some() {
            self.follow(word.end());
            return;
        }
        self.it.free = word.end();
        if self.is(CITE) {
            self.it.closing = Some(word.end());
        } else {
            self.close(at);
        }
        if self.is(AMEN) {
            self.complete(access);
        }
    }

    fn receive(&mut self, word: Word, at: u64) {
        let all = u32::MAX >> (32 - word.bits);
        let looped = self.is(LOOP);
        let wire = match &mut self.slave {
            _ if looped => word.wire,
            Some(slave) => slave.exchange(word.wire, word.bits, at) & all,
            None => all,
        };
        let value = from_wire(wire, word.bits, self.is(REV));
        if self.is(AMEN) && !word.lost {
            self.it.automatic.filling[usize::from(word.slot)] = value;
        } else if !word.lost {
            self.it.received.push_back(value);
        }
    }

    /// Sends the next word of the same transfer, behind the gap.
    fn follow(&mut self, end: u64) {
        let gap = u64::from(self.it.mode >> 7 & 31) * 2 * self.half();
        let mut start = end + gap;
        if self.is(ASEL) && self.is(TAC) && gap > 0 {
            self.it.swaps.extend([end, start]);
            start += self.select_delay();
        }
        self.send(start);
    }

    /// The transfer is no longer in progress.
    fn close(&mut self, at: u64) {
        self.it.event &= !TIP;
        if self.is(ASEL) {
            self.swap_selects(at);
        }
    }

    /// A set is complete.
    fn complete(&mut self, access: &mut Access) {
        let automatic = &mut self.it.automatic;
        automatic.full = true;
        automatic.active &= automatic.has(ACT);
        self.it.event &= !AT;
        if self.it.mask & AT != 0 {
            access.interrupt(self.it.interrupt);
        }
    }

    /// Moves a complete set to where software reads it, if that may be overwritten.
    fn hand_over(&mut self) {
        let automatic = &mut self.it.automatic;
        let kept = automatic.unread != 0 && (automatic.locked || automatic.has(SEQ));
        if automatic.full && !kept {
            automatic.queue.copy_from_slice(&automatic.filling);
            automatic.unread = automatic.mask;
            automatic.full = false;
        }
    }

    /// Begins automated mode.
    fn activate(&mut self, now: u64) {
        let automatic = &mut self.it.automatic;
        automatic.active = true;
        automatic.full = false;
        automatic.configuration = automatic.configuration & !EACT | ACT;
        self.begin_set(now);
    }

    /// Begins a set whose time has come, unless it must wait.
    fn next_set(&mut self, now: u64) {
        if !self.it.automatic.active || self.it.event & (TIP | AT) != 0 {
            return;
        }
        let automatic = &mut self.it.automatic;
        if automatic.full && !automatic.has(STRICT) {
            return;
        }
        if automatic.full && automatic.has(OVTB) {
            automatic.restart(now);
        } else {
            self.begin_set(now);
        }
    }

    fn begin_set(&mut self, now: u64) {
        let automatic = &mut self.it.automatic;
        automatic.restart(now);
        automatic.skips = automatic.full && automatic.has(OVDB);
        if !automatic.skips {
            automatic.full = false;
            automatic.mask = automatic.written;
        }
        automatic.left = automatic.mask;
        if automatic.left != 0 {
            self.it.event |= AT;
        }
    }

    /// What follows from what has happened by `now`.
    fn settle(&mut self, now: u64, access: &mut Access) {
        if self.is(EN) && self.is(AMEN) {
            self.hand_over();
            if self.it.automatic.late {
                self.next_set(now);
            }
        }
        if self.it.last && self.it.word.is_none() && self.first().is_none() {
            self.it.last = false;
            self.happens(LT, access);
        }
        self.begin(now, access);
        self.renew_events(access);
    }

    /// The controller is off: nothing is under way or queued. Slave selects stay as they are.
    fn stop(&mut self, now: u64) {
        let it = &mut self.it;
        it.sending.clear();
        it.received.clear();
        it.word = None;
        it.free = now;
        it.closing = None;
        it.swaps.clear();
        it.last = false;
        it.event &= !(TIP | AT);
        it.automatic.active = false;
        it.automatic.late = false;
        it.automatic.full = false;
        it.automatic.left = 0;
        it.automatic.unread = 0;
        it.automatic.configuration &= !(ACT | EACT);
    }

    fn set_mode(&mut self, value: u32, now: u64) {
        let value = value & !NO_MODE;
        // Taking the mode or the role away in the midst of a word is an end to it, too (an assumption).
        let changed = (self.it.mode ^ value) & (AMEN | MS);
        self.it.mode = value;
        if value & EN == 0 || changed != 0 {
            self.stop(now);
        }
    }

    fn set_configuration(&mut self, value: u32, now: u64) {
        let automatic = &mut self.it.automatic;
        automatic.configuration = value & CONFIGURATION | value & ACT;
        // Where outside events no longer begin the sets, a period that is over does.
        automatic.due = automatic.due.max(now + 1);
        if value & ACT == 0 {
            automatic.active &= self.it.event & AT != 0;
        } else if !automatic.active && self.is(AMEN) && self.is(EN) {
            self.activate(now);
        }
    }

    fn triggered(&mut self, now: u64) {
        let automatic = &self.it.automatic;
        if self.it.event & AT != 0 || !self.is(AMEN) || !self.is(EN) {
            return;
        }
        if !automatic.active {
            if automatic.has(EACT) {
                self.activate(now);
            }
        } else if automatic.has(ERPT) {
            self.next_set(now);
        }
    }

    fn read_received(&mut self, slot: usize) -> u32 {
        let automatic = &mut self.it.automatic;
        let Some(&value) = automatic.queue.get(slot) else {
            return 0;
        };
        if automatic.unread >> slot & 1 == 1 {
            automatic.unread &= !(1 << slot);
            automatic.locked = automatic.has(LOCK);
        }
        value
    }

    /// What is due at cycle `at`, the first thing of all.
    fn act(&mut self, at: u64, access: &mut Access) {
        if self.it.closing == Some(at) {
            self.it.closing = None;
            self.close(at);
        } else if self.it.swaps.front() == Some(&at) {
            self.it.swaps.pop_front();
            self.swap_selects(at);
        } else if self.it.automatic.due_at() == at {
            self.it.automatic.late = true;
        } else if let Some(word) = self.it.word.filter(|word| word.due() == at) {
            self.step(word, access);
        } else if self.it.automatic.triggers.front() == Some(&at) {
            self.it.automatic.triggers.pop_front();
            self.settle(at, access);
            self.triggered(at);
        }
        self.settle(at, access);
    }
}

impl Automatic {
    fn restart(&mut self, now: u64) {
        self.due = now + u64::from(self.period) + 1;
        self.late = false;
    }

    fn due_at(&self) -> u64 {
        if self.active && !self.late && !self.has(ERPT) {
            self.due
        } else {
            NEVER
        }
    }
}

/// The bits of `value` that are sent, the first one highest.
fn to_wire(value: u32, bits: u8, reversed: bool) -> u32 {
    let first_highest = if reversed {
        value
    } else {
        value.reverse_bits()
    };
    first_highest >> (32 - bits)
}

/// What software reads of bits that were received, the first one highest.
fn from_wire(wire: u32, bits: u8, reversed: bool) -> u32 {
    match (bits, reversed) {
        (32, true) => wire,
        (32, false) => wire.reverse_bits(),
        (_, true) => wire << 16,
        // The lowest bit came first, and the highest is bit 15.
        (_, false) => wire.reverse_bits() >> 16,
    }
}

impl Device for Spictrl {
    fn name(&self) -> &'static str {
        "SPICTRL"
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity {
            vendor: GAISLER,
            device: 0x02d,
            version: 5,
            interrupt: self.it.interrupt,
        })
    }

    fn read(&mut self, offset: u32, access: &mut Access) -> u32 {
        self.catch_up(access);
        let it = &mut self.it;
        let slot = (offset >> 2 & 0x7f) as usize;
        let value = match offset {
            0x00 => u32::from(it.slaves) << 24 | CAPABILITY | (it.depth as u32) << 8,
            0x20 => it.mode,
            0x24 => it.event,
            0x28 => it.mask,
            0x34 if it.mode & AMEN == 0 => it.received.pop_front().unwrap_or(0),
            0x38 => it.select,
            0x3c => it.automatic_select,
            0x40 => it.automatic.configuration & !ACT | u32::from(it.automatic.active) << 1,
            0x44 => it.automatic.period,
            0x50..0x60 => (it.automatic.written >> ((offset & 0xc) * 8)) as u32,
            0x200..0x400 => it.automatic.to_send.get(slot).copied().unwrap_or(0),
            0x400..0x600 => self.read_received(slot),
            _ => 0,
        };
        self.settle(access.now, access);
        value
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        self.catch_up(access);
        let now = access.now;
        let slot = (offset >> 2 & 0x7f) as usize;
        let it = &mut self.it;
        match offset {
            0x20 => self.set_mode(value, now),
            0x24 => it.event &= !(value & CLEARED),
            0x28 => it.mask = value & EVENTS,
            0x2c => it.last |= value & LST != 0 && it.mode & EN != 0,
            // What is written while there is no room, or to a disabled controller, is lost.
            0x30 if it.mode & (EN | AMEN) == EN && it.sending.len() <= it.depth => {
                it.sending.push_back(value);
            }
            0x38 => self.set_selects(value & u32::MAX >> (32 - self.it.slaves), now),
            0x3c => it.automatic_select = value & u32::MAX >> (32 - it.slaves),
            0x40 => self.set_configuration(value, now),
            0x44 => it.automatic.period = value,
            0x50..0x60 => {
                let shift = (offset & 0xc) * 8;
                let others = it.automatic.written & !(u128::from(u32::MAX) << shift);
                let all = u128::MAX >> (128 - it.depth);
                it.automatic.written = (others | u128::from(value) << shift) & all;
            }
            0x200..0x400 => {
                if let Some(word) = it.automatic.to_send.get_mut(slot) {
                    *word = value;
                }
            }
            _ => {}
        }
        self.settle(now, access);
    }

    fn next(&self) -> u64 {
        // Where nothing interrupts, nobody sees what happens in the midst of a set before its end, but software that
        // looks, for whom it is caught up.
        let it = &self.it;
        match it.word {
            Some(word) if it.mask == 0 && self.is(AMEN) => {
                let under_way = u32::from(word.stage == Stage::Arrive);
                let left = (it.automatic.left.count_ones() + under_way).max(1);
                let later = u64::from(left - 1) * (word.end() - word.start);
                let last = Word {
                    stage: Stage::Arrive,
                    ..word
                };
                last.due() + later
            }
            _ => self.due(),
        }
    }

    fn advance(&mut self, access: &mut Access) {
        self.catch_up(access);
    }

    fn save(&self) -> Vec<u8> {
        let slave = self.slave.as_ref().map(|slave| slave.save());
        postcard::to_stdvec(&(&self.it, slave)).expect("plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let read: Result<(State, Option<Vec<u8>>), _> = postcard::from_bytes(bytes);
        let (it, bytes) = read.map_err(|error| error.to_string())?;
        match (&mut self.slave, bytes) {
            (Some(slave), Some(bytes)) => slave.restore(&bytes)?,
            (None, None) => {}
            _ => return Err("one has a peripheral, the other has none".into()),
        }
        self.it = it;
        Ok(())
    }
}

impl Spictrl {
    /// The cycle at which something is due.
    fn due(&self) -> u64 {
        let it = &self.it;
        let waits = self.can_begin() && it.closing.is_none();
        let begin = if waits { it.free } else { NEVER };
        let word = it.word.map_or(NEVER, |word| word.due());
        let first = |queue: &VecDeque<u64>| queue.front().copied().unwrap_or(NEVER);
        let selects = it.closing.unwrap_or(NEVER).min(first(&it.swaps));
        let automatic = it.automatic.due_at().min(first(&it.automatic.triggers));
        begin.min(word).min(selects).min(automatic)
    }

    /// Does what is due by now.
    fn catch_up(&mut self, access: &mut Access) {
        loop {
            let at = self.due();
            if at > access.now {
                return;
            }
            self.act(at, access);
        }
    }
}

#[cfg(test)]
mod tests;
