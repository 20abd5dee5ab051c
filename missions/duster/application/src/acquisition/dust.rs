//! Grains of dust in the current of their probe.
//!
//! An impact lets the current jump within a sample and fall again by a time constant. A jump by more than the threshold
//! from one sample to the next is a grain, detected there and then; a later jump is another grain, however near. Its
//! peak and its charge (the sum above the sample before it) are those of the samples until the next grain, [`PULSE`] at
//! most, and are told when these have come; so are the samples around it, in a block.
//!
//! *Invariant:* each sample is looked at once, in order; each jump above the threshold between two consecutive ones is
//! told once.

use super::stream::{Header, Kind, Stream, block_size, data, hand_over};
use super::{FrontEnds, Partitions, add, tell};
use crate::shared::{Probe, Report, Shared};
use metes_duster_protocol::samples;

/// Samples that are looked at from one finding to the next, and findings of an activation, at most.
const MOST: usize = 32;
const FINDINGS: usize = 2;
/// The last samples that are kept, a power of two.
const KEPT: usize = 512;
/// Samples of a pulse.
const PULSE: u32 = 40;
/// Samples before a grain, and in all, that are told.
const BEFORE: u32 = 16;
const TOLD: usize = 64;
/// Bytes of data before the samples: when detected, peak, charge.
const FOUND: usize = 16;
/// What a sample is above the one before it, by default, when a grain is found.
const THRESHOLD: i32 = 20_000;

struct Pulse {
    sample: u32,
    detected: u64,
    base: i32,
    peak: i32,
    charge: i32,
}

impl Pulse {
    fn add(&mut self, sample: i32) {
        let above = sample - self.base;
        self.peak = self.peak.max(above);
        self.charge = self.charge.saturating_add(above);
    }
}

/// What a sample is.
#[derive(Clone, Copy)]
enum Found {
    /// The first of a pulse.
    Grain,
    /// The last that counts of one.
    End,
}

pub(super) struct Detector {
    threshold: i32,
    kept: [i32; KEPT],
    /// Numbers of the sample that comes next, and of the one that is to be looked at.
    put: u32,
    looked: u32,
    last: Option<i32>,
    /// The sample before the last.
    before: i32,
    pulse: Option<Pulse>,
    /// A pulse that was told and whose samples are to be sent when they have come.
    told: Option<(u32, u64, i32, i32)>,
}

impl Default for Detector {
    fn default() -> Self {
        Detector {
            threshold: THRESHOLD,
            kept: [0; KEPT],
            put: 0,
            looked: 0,
            last: None,
            before: 0,
            pulse: None,
            told: None,
        }
    }
}

/// The first sample that is told of a grain.
fn before(grain: u32) -> u32 {
    grain.saturating_sub(BEFORE)
}

impl Detector {
    pub(super) fn set_threshold(&mut self, threshold: i32) {
        self.threshold = threshold.max(1);
    }

    pub(super) fn begin(&mut self) {
        let threshold = self.threshold;
        (self.put, self.looked) = (0, 0);
        (self.last, self.pulse, self.told) = (None, None, None);
        self.threshold = threshold;
    }

    pub(super) fn sample(&mut self, index: u32, sample: i32) {
        if index != self.put {
            // A gap: what was before it is no neighbour.
            self.looked = index;
            self.last = None;
            self.pulse = None;
            self.told = None;
        }
        self.kept[index as usize % KEPT] = sample;
        self.put = index.wrapping_add(1);
    }

    #[inline(never)]
    pub(super) fn look(&mut self, stream: &Stream, shared: &Shared, front: &mut impl FrontEnds) {
        for _ in 0..FINDINGS {
            match self.scan() {
                Some(Found::Grain) => self.begin_pulse(stream, shared, front),
                Some(Found::End) => self.tell(stream, shared, front),
                None => break,
            }
        }
    }

    /// Sends the samples around a grain, if they have come.
    pub(super) fn send_when_there(
        &mut self,
        stream: &Stream,
        partitions: &mut Partitions,
        shared: &Shared,
    ) {
        if self
            .told
            .is_some_and(|(grain, ..)| self.looked >= before(grain) + TOLD as u32)
        {
            self.send(stream, partitions, shared);
        }
    }

    /// Looks at samples until one of them is a finding.
    #[inline(never)]
    fn scan(&mut self) -> Option<Found> {
        for _ in 0..MOST {
            if self.looked == self.put {
                return None;
            }
            let index = self.looked;
            let sample = self.kept[index as usize % KEPT];
            self.looked = index.wrapping_add(1);
            if let Some(found) = self.one(index, sample) {
                return Some(found);
            }
        }
        None
    }

    #[inline(always)]
    fn one(&mut self, index: u32, sample: i32) -> Option<Found> {
        let last = self.last.replace(sample)?;
        self.before = last;
        if sample - last > self.threshold {
            return Some(Found::Grain);
        }
        let pulse = self.pulse.as_mut()?;
        pulse.add(sample);
        (index.wrapping_sub(pulse.sample) + 1 >= PULSE).then_some(Found::End)
    }

    /// The sample that was looked at last begins a pulse; one before it is over.
    #[inline(never)]
    fn begin_pulse(&mut self, stream: &Stream, shared: &Shared, front: &mut impl FrontEnds) {
        self.tell(stream, shared, front);
        front.detected();
        let mut pulse = Pulse {
            sample: self.looked.wrapping_sub(1),
            detected: front.now(),
            base: self.before,
            peak: 0,
            charge: 0,
        };
        pulse.add(self.last.unwrap_or(self.before));
        self.pulse = Some(pulse);
    }

    /// A pulse is over: it is reported.
    #[inline(never)]
    fn tell(&mut self, stream: &Stream, shared: &Shared, front: &mut impl FrontEnds) {
        let Some(pulse) = self.pulse.take() else {
            return;
        };
        let rate = stream.rate().max(1);
        let since = (front.now()).saturating_sub(
            u64::from(self.put.wrapping_sub(pulse.sample)) * u64::from(1_000_000 / rate),
        );
        add(&shared.status.events, 1);
        tell(
            shared,
            Report::Dust {
                sample: pulse.sample,
                time: since,
                detected: pulse.detected,
                peak: pulse.peak,
                charge: pulse.charge,
            },
        );
        // Of grains that come one upon the other the samples around the first are sent.
        if self.told.is_none() {
            self.told = Some((pulse.sample, pulse.detected, pulse.peak, pulse.charge));
        }
    }

    /// Sends the samples around a grain.
    #[inline(never)]
    fn send(&mut self, stream: &Stream, partitions: &mut Partitions, shared: &Shared) {
        let Some((sample, detected, peak, charge)) = self.told.take() else {
            return;
        };
        let Some(mut block) = partitions.allocate(
            Probe::Dust,
            block_size(FOUND + samples::packed(TOLD)),
            shared,
        ) else {
            return;
        };
        let first = before(sample);
        let at = data(&mut block);
        at[..8].copy_from_slice(&detected.to_be_bytes());
        at[8..12].copy_from_slice(&peak.to_be_bytes());
        at[12..16].copy_from_slice(&charge.to_be_bytes());
        for number in 0..TOLD {
            let sample = self.kept[(first as usize + number) % KEPT];
            samples::put(&mut at[FOUND..], number, sample);
        }
        let header = Header {
            kind: Kind::Event,
            probe: Probe::Dust,
            acquisition: stream.acquisition(),
            rate: stream.rate(),
            first,
            time: detected,
            count: TOLD as u16,
        };
        hand_over(
            block,
            header,
            FOUND + samples::packed(TOLD),
            partitions,
            shared,
        );
    }
}
