//! Science on the ground, beside the truth: every sample that came is computed again.
//!
//! A packet says of which probe its samples are, and the number of the first. Of which start of the converter they are
//! follows from the samples themselves: noise makes no two alike.
//!
//! *Invariant:* a sample counts as received when its packet was bit for bit what the instrument gave; a packet that fits
//! nowhere is wrong, and is told.

use std::collections::BTreeMap;

use metes_duster_instrument::{Probe, Truth};
use metes_duster_protocol::definitions::{EventHeader, FieldWindow, ScienceKind, SweepStep};
use metes_duster_protocol::value::{Reader, Value};
use metes_duster_protocol::{ScienceHeader, samples};

/// Wrong packets that are told in words.
const TOLD: usize = 8;

/// Ranges of numbers that do not touch, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Adds those from `from` to below `to`; how many are new.
    pub fn add(&mut self, from: u64, to: u64) -> u64 {
        let before = self.count();
        let begin = self.0.partition_point(|&(_, end)| end < from);
        let end = self.0.partition_point(|&(begin, _)| begin <= to);
        let within = &self.0[begin..end];
        let from = within.first().map_or(from, |&(first, _)| first.min(from));
        let to = within.last().map_or(to, |&(_, last)| last.max(to));
        self.0.splice(begin..end, [(from, to)]);
        self.count() - before
    }

    /// How many numbers there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }

    /// One more than the greatest.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.0.last().map_or(0, |&(_, to)| to)
    }

    /// What is not there below `end`.
    #[must_use]
    pub fn gaps(&self, end: u64) -> Vec<(u64, u64)> {
        let mut at = 0;
        let mut gaps = Vec::new();
        for &(from, to) in &self.0 {
            if from.min(end) > at {
                gaps.push((at, from.min(end)));
            }
            at = to;
        }
        if at < end {
            gaps.push((at, end));
        }
        gaps
    }
}

/// What came of a probe in an acquisition.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// The run of its converter.
    pub run: usize,
    /// The samples.
    pub samples: Ranges,
    /// How many should have come, where that is known.
    pub expected: Option<u64>,
}

/// A sweep as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Steps, each of which is what the instrument gave.
    pub steps: u64,
    /// Their codes, in the order in which they came.
    pub codes: Vec<i16>,
}

/// All that came.
#[derive(Debug, Default)]
pub struct Science {
    /// By acquisition and probe.
    pub received: BTreeMap<(u16, Probe), Received>,
    /// Samples of acquisitions that were looked at and left.
    pub before: BTreeMap<Probe, u64>,
    /// Sweeps by acquisition.
    pub sweeps: BTreeMap<u16, Swept>,
    /// Packets that were right.
    pub packets: u64,
    /// Windows of the field, and samples around events, that were right.
    pub windows: u64,
    /// See [`windows`](Self::windows).
    pub events: u64,
    /// Packets that were not.
    pub wrong: u64,
    /// The first of them, in words.
    pub told: Vec<String>,
}

/// What a packet of science holds.
enum Content {
    Samples(Vec<i32>),
    Sweep(Vec<SweepStep>),
    Event(Vec<i32>),
    Windows(Vec<FieldWindow>),
}

fn all<T: for<'a> Value<'a>>(reader: &mut Reader<'_>, count: u16) -> Option<Vec<T>> {
    (0..count).map(|_| T::read(reader).ok()).collect()
}

fn content(header: &ScienceHeader, data: &[u8]) -> Option<Content> {
    let reader = &mut Reader::new(data);
    let unpack = |packed: &[u8]| -> Option<Vec<i32>> {
        (0..usize::from(header.count))
            .map(|index| samples::get(packed, index))
            .collect()
    };
    Some(match header.kind {
        ScienceKind::Samples => Content::Samples(unpack(data)?),
        ScienceKind::Sweep => Content::Sweep(all(reader, header.count)?),
        ScienceKind::Event => {
            EventHeader::read(reader).ok()?;
            Content::Event(unpack(reader.rest())?)
        }
        ScienceKind::Field => Content::Windows(all(reader, header.count)?),
    })
}

impl Content {
    /// Whether it is what run `run` gave.
    fn fits(&self, header: &ScienceHeader, truth: &Truth, probe: Probe, run: usize) -> bool {
        let sample = |index: u64| truth.sample(probe, run, index);
        match self {
            Content::Samples(samples) | Content::Event(samples) => {
                let numbers = u64::from(header.first)..;
                samples
                    .iter()
                    .zip(numbers)
                    .all(|(&own, index)| own == sample(index))
            }
            Content::Sweep(steps) => steps.iter().all(|step| {
                let numbers = u64::from(step.first)..u64::from(step.first) + u64::from(step.count);
                let run = &truth.runs(probe)[run];
                let sum: i64 = numbers.clone().map(|index| i64::from(sample(index))).sum();
                let dac = |index| truth.dac(probe, run.cycle(index));
                sum == i64::from(step.sum)
                    && step.count > 0
                    && numbers.into_iter().all(|index| dac(index) == step.code)
            }),
            Content::Windows(windows) => windows.iter().all(|window| {
                let numbers = u64::from(window.first)..u64::from(window.first) + 100;
                let samples: Vec<i64> = numbers.map(|index| i64::from(sample(index))).collect();
                let squares: u64 = samples.iter().map(|one| (one * one) as u64).sum();
                let mean = samples.iter().sum::<i64>() / 100;
                let least = samples.iter().min().copied();
                let greatest = samples.iter().max().copied();
                i64::from(window.mean) == mean
                    && Some(i64::from(window.least)) == least
                    && Some(i64::from(window.greatest)) == greatest
                    && u64::from(window.rms) == (squares / 100).isqrt()
            }),
        }
    }
}

impl Science {
    /// A packet of science has come.
    pub fn take(&mut self, header: &ScienceHeader, data: &[u8], truth: &Truth) {
        let Some(probe) = Probe::of(header.probe as u8) else {
            return;
        };
        let Some(content) = content(header, data) else {
            self.wrong(header, "is shorter than it says");
            return;
        };
        let key = (header.acquisition, probe);
        // Most likely that of the packet before, or else a late one.
        let known = self.received.get(&key).map(|received| received.run);
        let runs = truth.runs(probe).len();
        let rate = |run: &usize| truth.runs(probe)[*run].rate == u32::from(header.rate);
        let mut candidates = known.into_iter().chain((0..runs).rev().filter(rate));
        let Some(run) = candidates.find(|&run| content.fits(header, truth, probe, run)) else {
            self.wrong(header, "is not what the instrument gave");
            return;
        };
        self.packets += 1;
        let received = self.received.entry(key).or_default();
        received.run = run;
        match content {
            Content::Samples(samples) => {
                let first = u64::from(header.first);
                received.samples.add(first, first + samples.len() as u64);
            }
            Content::Sweep(steps) => {
                let swept = self.sweeps.entry(header.acquisition).or_default();
                for step in steps {
                    // What comes again, out of the store, is not counted again.
                    if !swept.codes.contains(&step.code) {
                        swept.codes.push(step.code);
                        swept.steps += 1;
                    }
                }
            }
            Content::Event(_) => self.events += 1,
            Content::Windows(windows) => self.windows += windows.len() as u64,
        }
    }

    fn wrong(&mut self, header: &ScienceHeader, why: &str) {
        self.wrong += 1;
        if self.told.len() < TOLD {
            self.told.push(format!(
                "{:?} of {:?}, acquisition {}, from {} on: it {why}",
                header.kind, header.probe, header.acquisition, header.first
            ));
        }
    }

    /// So many samples of `probe` should come in an acquisition.
    pub fn expect(&mut self, acquisition: u16, probe: Probe, samples: u64) {
        let received = self.received.entry((acquisition, probe)).or_default();
        received.expected = Some(samples);
    }

    /// Samples of `probe` that came.
    #[must_use]
    pub fn samples(&self, probe: Probe) -> u64 {
        let own = self.received.iter().filter(|((_, of), _)| *of == probe);
        let before = self.before.get(&probe).copied().unwrap_or(0);
        before
            + own
                .map(|(_, received)| received.samples.count())
                .sum::<u64>()
    }

    /// Samples that should have come and did not: of each acquisition those between others, and those up to its end.
    #[must_use]
    pub fn missing(&self) -> u64 {
        let of = |received: &Received| -> u64 {
            let end = received.expected.unwrap_or(received.samples.end());
            let gaps = received.samples.gaps(end);
            gaps.iter().map(|(from, to)| to - from).sum()
        };
        self.received.values().map(of).sum()
    }
}

#[cfg(test)]
mod tests;
