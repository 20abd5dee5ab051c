//! Grains of dust in the current of their probe.
//!
//! An impact lets the current jump within a sample and fall again by a time constant. A jump by more than the threshold
//! from one sample to the next is a grain, detected there and then; a later jump is another grain, however near. Its
//! peak and its charge (the sum above the baseline) are those of the samples until the next grain, [`PULSE`] at most,
//! and are told when these have come; so are the samples around it, in a block. The baseline follows the current where
//! there is no pulse, by a 256th of the difference a sample.
//!
//! *Invariant:* each sample is looked at once, in order; each jump above the threshold between two consecutive ones is
//! told once.

use super::stream::{Header, Kind, Stream, block_size, data, hand_over, put_sample};
use super::{FrontEnds, Partitions, tell};
use crate::shared::{Probe, Report, Shared};
use core::sync::atomic::Ordering;

/// Samples that are looked at in one activation, at most.
const MOST: usize = 128;
/// The last samples that are kept, a power of two.
const KEPT: usize = 512;
/// Samples of a pulse.
const PULSE: u32 = 40;
/// Samples before a grain, and in all, that are told.
const BEFORE: u32 = 16;
const TOLD: usize = 64;
/// Bytes of data before the samples: when detected, peak, charge.
const FOUND: usize = 16;
/// Binary digits of the baseline behind the point, and of its inertia.
const POINT: u32 = 8;
/// What is above the baseline by default when a grain is found.
const THRESHOLD: i32 = 20_000;

struct Pulse {
    sample: u32,
    detected: u64,
    base: i32,
    peak: i32,
    charge: i32,
}

pub(super) struct Detector {
    threshold: i32,
    kept: [i32; KEPT],
    /// Numbers of the sample that comes next, and of the one that is to be looked at.
    put: u32,
    looked: u32,
    last: Option<i32>,
    /// In parts of 2⁻⁸ of a code; as of the first sample.
    baseline: Option<i32>,
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
            baseline: None,
            pulse: None,
            told: None,
        }
    }
}

impl Detector {
    pub(super) fn set_threshold(&mut self, threshold: i32) {
        self.threshold = threshold.max(1);
    }

    pub(super) fn begin(&mut self) {
        let threshold = self.threshold;
        (self.put, self.looked) = (0, 0);
        (self.last, self.baseline, self.pulse, self.told) = (None, None, None, None);
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

    pub(super) fn look(
        &mut self,
        stream: &Stream,
        partitions: &mut Partitions,
        shared: &Shared,
        front: &mut impl FrontEnds,
    ) {
        for _ in 0..MOST {
            if self.looked == self.put {
                return;
            }
            let index = self.looked;
            let sample = self.kept[index as usize % KEPT];
            self.looked = index.wrapping_add(1);
            self.one(index, sample, stream, partitions, shared, front);
        }
    }

    fn one(
        &mut self,
        index: u32,
        sample: i32,
        stream: &Stream,
        partitions: &mut Partitions,
        shared: &Shared,
        front: &mut impl FrontEnds,
    ) {
        let last = self.last.replace(sample);
        let Some(last) = last else {
            self.baseline.get_or_insert(sample << POINT);
            return;
        };
        if sample - last > self.threshold {
            self.tell(stream, shared, front);
            front.detected();
            self.pulse = Some(Pulse {
                sample: index,
                detected: front.now(),
                base: last,
                peak: 0,
                charge: 0,
            });
        }
        match &mut self.pulse {
            Some(pulse) => {
                pulse.peak = pulse.peak.max(sample - pulse.base);
                pulse.charge = pulse.charge.saturating_add(sample - pulse.base);
                if index.wrapping_sub(pulse.sample) + 1 == PULSE {
                    self.tell(stream, shared, front);
                }
            }
            None => {
                let baseline = self.baseline.get_or_insert(sample << POINT);
                *baseline += ((sample << POINT) - *baseline) >> POINT;
            }
        }
        if let Some((first, ..)) = self.told
            && index.wrapping_sub(first) + BEFORE + 1 >= TOLD as u32
        {
            self.send(stream, partitions, shared);
        }
    }

    /// A pulse is over: it is reported.
    fn tell(&mut self, stream: &Stream, shared: &Shared, front: &mut impl FrontEnds) {
        let Some(pulse) = self.pulse.take() else {
            return;
        };
        let rate = stream.rate().max(1);
        let since = (front.now()).saturating_sub(
            u64::from(self.put.wrapping_sub(pulse.sample)) * u64::from(1_000_000 / rate),
        );
        shared.status.events.fetch_add(1, Ordering::Relaxed);
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
    fn send(&mut self, stream: &Stream, partitions: &mut Partitions, shared: &Shared) {
        let Some((sample, detected, peak, charge)) = self.told.take() else {
            return;
        };
        let Some(mut block) =
            partitions.allocate(Probe::Dust, block_size(FOUND + TOLD * 5 / 2), shared)
        else {
            return;
        };
        let first = sample.saturating_sub(BEFORE);
        let at = data(&mut block);
        at[..8].copy_from_slice(&detected.to_be_bytes());
        at[8..12].copy_from_slice(&peak.to_be_bytes());
        at[12..16].copy_from_slice(&charge.to_be_bytes());
        for number in 0..TOLD {
            let sample = self.kept[(first as usize + number) % KEPT];
            put_sample(&mut at[FOUND..], number, sample);
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
        hand_over(block, header, FOUND + TOLD * 5 / 2, partitions, shared);
    }
}
