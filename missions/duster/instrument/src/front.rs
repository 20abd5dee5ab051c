//! A probe's front end: a converter with a FIFO, a DAC, and SPI.
//!
//! The unit exchanges sets of frames with it, a select each; a frame is 24 bits in two words.
//!
//! | sent | bits |
//! | --- | --- |
//! | command | 4: 0 nothing, 1 the DAC's code, 2 configure |
//! | argument | 4: of configure, the mode (0 nominal, 1 monitor) |
//! | value | 16: the DAC's code in two's complement; of configure, the converter's rate in tens of hertz (0 stops it) |
//!
//! | received | bits |
//! | --- | --- |
//! | valid | 1: 0, the FIFO was empty |
//! | sequence | 3: index of the sample modulo 8 |
//! | sample | 20, two's complement; where there is none, how many were due since the start, lost ones too, modulo 2²⁰ |
//!
//! A frame's answer is what is first in the FIFO when the frame before it has ended, the first one's when it is selected; it
//! leaves the FIFO at the end of its own frame. The DAC changes when
//! its frame has ended; mode and rate when the set has. A rate that is another than before empties the FIFO, and
//! the converter begins with index 0 at the next multiple of its period. A sample that finds 64 in the FIFO is lost, and so is
//! every one after it until a frame has told that the FIFO is empty, and how many were due: so what follows has a number.
//!
//! Nothing samples: a converter knows its next index, and takes what was due when it is asked.
//!
//! *Invariant:* samples leave in the order of their indices, each once; one that was not taken was lost with its run's
//! record of it, or was in the FIFO when that was emptied.

use std::collections::VecDeque;

use metes_leon3::devices::SpiSlave;

use crate::truth::{Probe, Run, Truth};
use crate::world::Shared;

/// Samples that a front end holds.
pub const FIFO: usize = 64;
/// Bits of a word.
const WORD: u8 = 12;
/// A frame's bit that tells a sample from nothing.
const VALID: u32 = 1 << 23;

/// The converter of a probe: what outlives the machine.
#[derive(Clone, Debug)]
pub(crate) struct Converter {
    probe: Probe,
    frequency: u32,
    /// The run under way.
    pub(crate) run: Option<usize>,
    rate: u32,
    /// The index of the next sample.
    next: u64,
    fifo: VecDeque<(u64, i32)>,
    /// A sample was lost, and no frame has told yet.
    overflow: bool,
}

impl Converter {
    pub(crate) fn new(probe: Probe, frequency: u32) -> Converter {
        Converter {
            probe,
            frequency,
            run: None,
            rate: 0,
            next: 0,
            fifo: VecDeque::new(),
            overflow: false,
        }
    }

    /// Takes the samples that are due by `now`.
    fn sample(&mut self, truth: &mut Truth, now: u64) {
        let Some(run) = self.run else { return };
        let it = &truth.runs(self.probe)[run];
        if now < it.start {
            return;
        }
        let due = (now - it.start) / it.period + 1;
        while self.next < due && self.fifo.len() < FIFO && !self.overflow {
            let sample = truth.sample(self.probe, run, self.next);
            self.fifo.push_back((self.next, sample));
            self.next += 1;
        }
        if self.next < due {
            self.overflow = true;
            let lost = &mut truth.runs_mut(self.probe)[run].lost;
            match lost.last_mut() {
                Some((_, end)) if *end == self.next => *end = due,
                _ => lost.push((self.next, due)),
            }
            self.next = due;
        }
    }

    /// The frame that the unit would receive now.
    fn frame(&mut self, truth: &mut Truth, now: u64) -> u32 {
        self.sample(truth, now);
        match self.fifo.front() {
            Some(&(index, sample)) => VALID | (index as u32 & 7) << 20 | sample as u32 & 0xf_ffff,
            None => self.next as u32 & 0xf_ffff,
        }
    }

    /// The unit has received a frame that found the FIFO empty.
    fn told(&mut self, truth: &mut Truth, now: u64) {
        self.sample(truth, now);
        self.overflow = false;
    }

    /// The unit has received the first sample of the FIFO.
    fn taken(&mut self, truth: &mut Truth) {
        self.fifo.pop_front();
        if let Some(run) = self.run {
            truth.runs_mut(self.probe)[run].taken += 1;
        }
    }

    fn configure(&mut self, truth: &mut Truth, rate: u32, now: u64, offset: u64) {
        self.sample(truth, now);
        if rate == self.rate {
            return;
        }
        self.rate = rate;
        self.fifo.clear();
        self.overflow = false;
        self.next = 0;
        if let Some(run) = self.run.take() {
            truth.runs_mut(self.probe)[run].end = Some(now);
        }
        if rate == 0 {
            return;
        }
        let period = u64::from(self.frequency / rate).max(1);
        // Multiples are counted in the machine's cycles, which is what its software knows.
        let start = ((now - offset) / period + 1) * period + offset;
        self.run = Some(truth.runs(self.probe).len());
        truth.runs_mut(self.probe).push(Run {
            rate,
            period,
            start,
            end: None,
            taken: 0,
            lost: Vec::new(),
        });
    }
}

/// A front end as an SPI controller sees it.
#[derive(Debug)]
pub struct FrontEnd {
    world: Shared,
    probe: Probe,
    selected: bool,
    /// The frame that is received.
    answer: u32,
    /// The first word of the frame under way.
    first: Option<u32>,
    /// Mode and rate that take effect at the end of the set.
    wanted: Option<(u8, u32)>,
}

impl FrontEnd {
    /// That of `probe`.
    #[must_use]
    pub fn new(world: Shared, probe: Probe) -> FrontEnd {
        FrontEnd {
            world,
            probe,
            selected: false,
            answer: 0,
            first: None,
            wanted: None,
        }
    }

    /// Loads the next frame that is received.
    fn load(&mut self, at: u64) {
        let world = &mut *self.world.lock();
        let converter = &mut world.converters[self.probe as usize];
        self.answer = converter.frame(&mut world.truth, at + world.offset);
    }

    /// A frame has come.
    fn obey(&mut self, frame: u32, at: u64) {
        let value = frame as u16;
        match frame >> 20 {
            1 => {
                let world = &mut *self.world.lock();
                let now = at + world.offset;
                let converter = &mut world.converters[self.probe as usize];
                // What was due before is of the code before.
                converter.sample(&mut world.truth, now.saturating_sub(1));
                world.truth.set_dac(self.probe, now, value as i16);
            }
            2 => {
                let mode = (frame >> 16 & 15) as u8;
                self.wanted = Some((mode, u32::from(value) * 10));
            }
            _ => {}
        }
    }

    /// A set has ended.
    fn end(&mut self, at: u64) {
        let Some((mode, rate)) = self.wanted.take() else {
            return;
        };
        let world = &mut *self.world.lock();
        let now = at + world.offset;
        let converter = &mut world.converters[self.probe as usize];
        converter.sample(&mut world.truth, now.saturating_sub(1));
        world.truth.set_mode(self.probe, now, mode.min(1));
        converter.configure(&mut world.truth, rate, now, world.offset);
    }
}

impl SpiSlave for FrontEnd {
    fn selected(&mut self, slave: usize, selected: bool, at: u64) {
        if slave != 0 {
            return;
        }
        self.selected = selected;
        self.first = None;
        if selected {
            self.load(at);
        } else {
            self.end(at);
        }
    }

    fn exchange(&mut self, word: u32, bits: u8, at: u64) -> u32 {
        if !self.selected || bits != WORD {
            return 0;
        }
        match self.first.take() {
            None => {
                self.first = Some(word);
                self.answer >> WORD
            }
            Some(first) => {
                let answer = self.answer;
                {
                    let world = &mut *self.world.lock();
                    let converter = &mut world.converters[self.probe as usize];
                    if answer & VALID == 0 {
                        converter.told(&mut world.truth, at + world.offset);
                    } else {
                        converter.taken(&mut world.truth);
                    }
                }
                self.obey(first << WORD | word, at);
                self.load(at);
                answer & 0xfff
            }
        }
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_stdvec(&(self.selected, self.answer, self.first, self.wanted))
            .expect("plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        (self.selected, self.answer, self.first, self.wanted) =
            postcard::from_bytes(bytes).map_err(|error| error.to_string())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
