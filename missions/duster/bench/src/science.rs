//! Science on the ground, beside the truth: every sample that came is computed again.
//!
//! A packet says of which probe its samples are, and the number of the first. Of which start of the converter they are
//! follows from the samples themselves: noise makes no two alike.
//!
//! *Invariant:* a sample counts as received when its packet was bit for bit what the instrument gave; a packet that fits
//! nowhere is wrong, and is told.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use metes_duster_instrument::{Probe, Truth};
use metes_duster_protocol::definitions::{EventHeader, FieldWindow, ScienceKind, SweepStep};
use metes_duster_protocol::value::{Reader, Value};
use metes_duster_protocol::{ScienceHeader, samples};

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
    /// The samples.
    pub samples: Ranges,
    /// How many should have come, where that is known.
    pub expected: Option<u64>,
}

/// A run that was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The acquisition, by its packets with the last samples.
    pub acquisition: u16,
    /// The probe.
    pub probe: Probe,
    /// Which run of its converter.
    pub run: usize,
    /// Samples that did not come, though later ones did.
    pub gaps: Vec<(u64, u64)>,
}

/// A sweep as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Steps, each of which is what the instrument gave.
    pub steps: u64,
    /// Their codes, in the order in which they came.
    pub codes: Vec<i16>,
}

/// A packet that is not what the instrument gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Its header, if it has one, and whether it came out of the store.
    pub header: Option<ScienceHeader>,
    /// See [`header`](Self::header).
    pub stored: bool,
    /// In words.
    pub what: String,
}

/// All that came.
#[derive(Debug, Default)]
pub struct Science {
    /// By acquisition, probe and the run of its converter: a unit that has forgotten all counts acquisitions anew.
    pub received: BTreeMap<(u16, Probe, usize), Received>,
    /// The acquisition and probe of which so many samples should come.
    expected: BTreeMap<(u16, Probe), u64>,
    /// Samples of runs that were looked at and left, and up to where: what comes late, or under another acquisition's number, is
    /// of the run whose samples it holds.
    before: BTreeMap<(Probe, usize), (Ranges, u64)>,
    /// Sweeps by acquisition.
    pub sweeps: BTreeMap<u16, Swept>,
    /// Packets that were right.
    pub packets: u64,
    /// Windows of the field, and samples around events, that were right.
    pub windows: u64,
    /// See [`windows`](Self::windows).
    pub events: u64,
    /// Packets that were not; one that came again out of the store counts once.
    pub wrong: u64,
    /// Those since they were taken.
    judge: Vec<Wrong>,
    /// What tells the content of one from that of another.
    seen: HashSet<u64>,
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
    /// A packet of science has come, `stored` or as it was acquired.
    pub fn take(&mut self, header: &ScienceHeader, data: &[u8], stored: bool, truth: &Truth) {
        let Some(probe) = Probe::of(header.probe as u8) else {
            return;
        };
        let Some(content) = content(header, data) else {
            self.wrong(header, data, stored, "is shorter than it says");
            return;
        };
        // Most likely that of the packet before, or else a late one.
        let own = (header.acquisition, probe, 0)..=(header.acquisition, probe, usize::MAX);
        let known = self.received.range(own).next_back();
        let known = known.map(|(&(.., run), _)| run);
        let runs = truth.runs(probe).len();
        let rate = |run: &usize| truth.runs(probe)[*run].rate == u32::from(header.rate);
        let mut candidates = known.into_iter().chain((0..runs).rev().filter(rate));
        let Some(run) = candidates.find(|&run| content.fits(header, truth, probe, run)) else {
            self.wrong(header, data, stored, "is not what the instrument gave");
            return;
        };
        self.packets += 1;
        let key = (header.acquisition, probe, run);
        let received = self.received.entry(key).or_default();
        if let Some(samples) = self.expected.remove(&(header.acquisition, probe)) {
            received.expected = Some(samples);
        }
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

    /// Leaves all that came: what is missing of it between others, by acquisition and run, and was not told before.
    pub fn leave(&mut self) -> Vec<Left> {
        let received = std::mem::take(&mut self.received);
        let mut ends: BTreeMap<(Probe, usize), (u16, u64)> = BTreeMap::new();
        for ((acquisition, probe, run), received) in received {
            let (ranges, _) = self.before.entry((probe, run)).or_default();
            for &(from, to) in &received.samples.0 {
                ranges.add(from, to);
            }
            let end = received.samples.end();
            let known = ends.entry((probe, run)).or_insert((acquisition, end));
            if end > known.1 {
                *known = (acquisition, end);
            }
        }
        let mut left = Vec::new();
        for ((probe, run), (acquisition, end)) in ends {
            let (ranges, told) = self.before.entry((probe, run)).or_default();
            let gaps = ranges.gaps(end).into_iter();
            let gaps: Vec<(u64, u64)> = gaps
                .map(|(from, to)| (from.max(*told), to))
                .filter(|(from, to)| from < to)
                .collect();
            *told = end.max(*told);
            left.push(Left {
                acquisition,
                probe,
                run,
                gaps,
            });
        }
        left
    }

    fn wrong(&mut self, header: &ScienceHeader, data: &[u8], stored: bool, why: &str) {
        let mut content = DefaultHasher::new();
        (header.acquisition, header.first, header.time, data).hash(&mut content);
        if !self.seen.insert(content.finish()) {
            return;
        }
        let what = format!(
            "{:?} of {:?}, acquisition {}, from {} on: it {why}",
            header.kind, header.probe, header.acquisition, header.first
        );
        self.is_wrong(Wrong {
            header: Some(*header),
            stored,
            what,
        });
    }

    /// A packet is wrong.
    pub fn is_wrong(&mut self, wrong: Wrong) {
        self.wrong += 1;
        self.judge.push(wrong);
    }

    /// Wrong packets since the last call.
    pub fn take_wrong(&mut self) -> Vec<Wrong> {
        std::mem::take(&mut self.judge)
    }

    /// So many samples of `probe` should come in an acquisition.
    pub fn expect(&mut self, acquisition: u16, probe: Probe, samples: u64) {
        let own = (acquisition, probe, 0)..=(acquisition, probe, usize::MAX);
        match self.received.range_mut(own).next_back() {
            Some((_, received)) => received.expected = Some(samples),
            None => drop(self.expected.insert((acquisition, probe), samples)),
        }
    }

    /// Samples of `probe` that came.
    #[must_use]
    pub fn samples(&self, probe: Probe) -> u64 {
        let own = self.received.iter().filter(|((_, of, _), _)| *of == probe);
        let before = self.before.range((probe, 0)..=(probe, usize::MAX));
        before.map(|(_, (ranges, _))| ranges.count()).sum::<u64>()
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
        // Of what should come and has not begun to, all.
        let nothing: u64 = self.expected.values().sum();
        nothing + self.received.values().map(of).sum::<u64>()
    }
}

#[cfg(test)]
mod tests;
