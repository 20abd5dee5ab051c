//! Core 1: the three probes.
//!
//! Each millisecond [`Acquisition::acquire`] takes the set that each SPI controller has received by itself, follows the
//! numbers of the samples, packs them into blocks of their probe's partition and hands on what other tasks look at: the
//! sweep sums the samples of its step (`sweep`), the field's windows are taken from a queue (`field`), grains are
//! found in the last samples of the current (`dust`). Full blocks go to core 0 and come back to be freed.
//!
//! *Invariant:* a sample has the number that the front end gave it; of those between the first and the last of an
//! acquisition each is in a block, or counted as lost.

mod dust;
mod field;
mod orders;
mod stream;
mod sweep;

pub use stream::HEADROOM;

use crate::declared::{BUSES, PARTITION_DUST, PARTITION_EFIELD, PARTITION_LANGMUIR, PARTITIONS};
use crate::partition::{Block, Partition};
use crate::shared::{Probe, Report, Shared};
use core::sync::atomic::{AtomicU32, Ordering};
use dust::Detector;
use field::Field;
use stream::{Following, Stream};
use sweep::Sweep;

/// Most frames of a set.
pub const MOST_FRAMES: usize = 16;
/// A frame that holds a sample.
const VALID: u32 = 1 << 23;

/// The probes' front ends, as core 1 reaches them.
pub trait FrontEnds {
    /// Takes the set that the probe's controller has received, if there is a new one: frames of 24 bits.
    fn take(&mut self, probe: Probe, frames: &mut [u32; MOST_FRAMES]) -> bool;

    /// From the next set on, frame `number` that is sent to the probe is `frame`.
    fn send(&mut self, probe: Probe, number: usize, frame: u32);

    /// Lets sets come each millisecond, or no longer.
    fn run(&mut self, on: bool);

    /// Microseconds since the epoch.
    fn now(&self) -> u64;

    /// A grain was detected: the outside sees it at once.
    fn detected(&mut self);
}

/// What is set at a probe.
#[derive(Clone, Copy, Debug, Default)]
struct Setting {
    code: i16,
    mode: u8,
    rate: u32,
}

impl Setting {
    fn converter(self) -> u32 {
        1 << 20 | u32::from(self.code as u16)
    }

    fn configuration(self) -> u32 {
        2 << 20 | u32::from(self.mode & 15) << 16 | ((self.rate / 10) & 0xffff)
    }
}

/// The partitions of core 1.
pub struct Partitions {
    /// Blocks of the Langmuir probe.
    pub langmuir: Partition,
    /// Blocks of the electric field.
    pub efield: Partition,
    /// Blocks of the dust.
    pub dust: Partition,
}

impl Partitions {
    fn of(&mut self, probe: Probe) -> &mut Partition {
        match probe {
            Probe::Langmuir => &mut self.langmuir,
            Probe::Efield => &mut self.efield,
            Probe::Dust => &mut self.dust,
        }
    }

    fn number(probe: Probe) -> usize {
        match probe {
            Probe::Langmuir => PARTITION_LANGMUIR,
            Probe::Efield => PARTITION_EFIELD,
            Probe::Dust => PARTITION_DUST,
        }
    }

    fn free(&mut self, block: Block) {
        let number = block.partition();
        for probe in Probe::ALL {
            if Self::number(probe) == number {
                self.of(probe).free(block);
                return;
            }
        }
    }

    /// A block of the probe's partition; a refusal is reported.
    fn allocate(&mut self, probe: Probe, size: usize, shared: &Shared) -> Option<Block> {
        let block = self.of(probe).allocate(size);
        if block.is_none() {
            let partition = Self::number(probe) as u8;
            tell(shared, Report::Refused { partition });
        }
        block
    }
}

/// Adds to a count that this core alone writes.
fn add(count: &AtomicU32, more: u32) {
    count.store(
        count.load(Ordering::Relaxed).wrapping_add(more),
        Ordering::Relaxed,
    );
}

/// Reports; where the ring is full it is the counts that tell.
fn tell(shared: &Shared, report: Report) {
    let _ = shared.reports.put(report);
}

/// Where the acquisition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// Front ends stop, for so many ticks: what they held is gone then.
    Stopping(u8),
    Running,
    /// All that is wanted is there; the front ends go on for so many ticks, until what looks at the last samples has
    /// seen what follows them.
    Ending(u8),
}

/// Ticks until controllers rest after a setting: it has reached the probe by then.
const AWAKE: u8 = 5;
/// Ticks of [`Phase::Ending`]: a pulse of the slowest rate, and the longest period of a task that looks.
const ENDING: u8 = 65;

/// What runs on core 1.
pub struct Acquisition {
    shared: &'static Shared,
    partitions: Partitions,
    settings: [Setting; 3],
    following: [Following; 3],
    streams: [Stream; 3],
    phase: Phase,
    /// The acquisition under way; 0 none.
    number: u16,
    sweep: Sweep,
    field: Field,
    detector: Detector,
    survey: usize,
    /// Ticks for which sets come yet where nothing is under way.
    awake: u8,
    /// The set at hand, and its samples: kept, so that nothing clears them each time.
    frames: [u32; MOST_FRAMES],
    run: [i32; MOST_FRAMES],
}

impl Acquisition {
    /// Nothing under way, front ends stopped, converters at zero.
    pub fn new(
        shared: &'static Shared,
        partitions: Partitions,
        front: &mut impl FrontEnds,
    ) -> Self {
        let mut it = Acquisition {
            shared,
            partitions,
            settings: [Setting::default(); 3],
            following: [Following::default(); 3],
            streams: Probe::ALL.map(Stream::new),
            phase: Phase::Idle,
            number: 0,
            sweep: Sweep::default(),
            field: Field::default(),
            detector: Detector::default(),
            survey: 0,
            awake: 0,
            frames: [0; MOST_FRAMES],
            run: [0; MOST_FRAMES],
        };
        for probe in Probe::ALL {
            it.apply(probe, front);
        }
        it
    }

    /// The task `acquire`, each millisecond: takes the sets. Time: O(frames).
    pub fn acquire(&mut self, front: &mut impl FrontEnds) {
        // What ends an acquisition takes the time of the sets, which nobody wants then.
        if self.phase == Phase::Ending(0) {
            self.finish(front);
        } else {
            for probe in Probe::ALL {
                if front.take(probe, &mut self.frames) {
                    self.take_set(probe, front);
                }
            }
            self.advance(front);
        }
        add(&self.shared.status.ticks, 1);
    }

    #[inline(never)]
    fn take_set(&mut self, probe: Probe, front: &mut impl FrontEnds) {
        let number = probe as usize;
        if !self.running() || self.settings[number].rate == 0 {
            return;
        }
        let (first, taken, lost) = self.follow(probe);
        self.look_on(probe, first, taken);
        let run = self.run.get(..taken).unwrap_or(&[]);
        let stream = &mut self.streams[number];
        stream.append(first, run, front.now(), &mut self.partitions, self.shared);
        self.count(probe, taken as u32, lost);
    }

    /// The samples of the set at hand: the number of the first, how many, and how many were lost. What was taken
    /// before a gap is let go, so that a set is one run: losses are told, and rare.
    #[inline(never)]
    fn follow(&mut self, probe: Probe) -> (u32, usize, u32) {
        let following = &mut self.following[probe as usize];
        let (mut first, mut taken, mut lost) = (following.index(), 0usize, 0);
        for &frame in self.frames.iter().take(BUSES[probe as usize].frames) {
            let valid = frame & VALID != 0;
            let gap = if valid {
                following.take((frame >> 20 & 7) as u8)
            } else {
                following.produced(frame & 0xf_ffff)
            };
            if gap > 0 {
                lost += gap + taken as u32;
                taken = 0;
            }
            if valid {
                let index = following.next();
                if taken == 0 {
                    first = index;
                }
                if let Some(place) = self.run.get_mut(taken) {
                    *place = (frame << 12) as i32 >> 12;
                    taken += 1;
                }
            }
        }
        (first, taken, lost)
    }

    /// Each sample of a run to those that look on.
    #[inline(never)]
    fn look_on(&mut self, probe: Probe, first: u32, taken: usize) {
        for (index, &sample) in (first..).zip(self.run.iter().take(taken)) {
            match probe {
                Probe::Langmuir => self.sweep.sample(index, sample),
                Probe::Efield => self.field.sample(index, sample),
                Probe::Dust => self.detector.sample(index, sample),
            }
        }
    }

    fn count(&mut self, probe: Probe, taken: u32, lost: u32) {
        let status = &self.shared.status;
        let number = probe as usize;
        add(&status.samples[number], taken);
        if taken > status.set_peak[number].load(Ordering::Relaxed) {
            status.set_peak[number].store(taken, Ordering::Relaxed);
        }
        if lost > 0 {
            add(&status.lost[number], lost);
            tell(self.shared, Report::Lost { probe, count: lost });
        }
    }

    /// What follows from the time that has passed.
    #[inline(never)]
    fn advance(&mut self, front: &mut impl FrontEnds) {
        match self.phase {
            Phase::Idle => {
                if self.awake == 1 {
                    front.run(false);
                }
                self.awake = self.awake.saturating_sub(1);
            }
            Phase::Stopping(0) => {
                self.phase = Phase::Running;
                for probe in Probe::ALL {
                    self.following[probe as usize] = Following::default();
                    let rate = self.streams[probe as usize].rate();
                    let rate = if probe == Probe::Langmuir && self.sweep.under_way() {
                        BUSES[0].rate
                    } else {
                        rate
                    };
                    self.settings[probe as usize].rate = rate;
                    self.apply(probe, front);
                }
            }
            Phase::Stopping(left) => self.phase = Phase::Stopping(left - 1),
            Phase::Running => {
                let streams = self.streams.iter().all(Stream::done);
                if streams && !self.sweep.under_way() {
                    self.phase = Phase::Ending(ENDING);
                }
            }
            Phase::Ending(left) => self.phase = Phase::Ending(left.saturating_sub(1)),
        }
    }

    /// Whether samples are looked at.
    fn running(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Ending(_))
    }

    /// Stops the front ends and ends what is under way.
    #[inline(never)]
    fn finish(&mut self, front: &mut impl FrontEnds) {
        let mut samples = 0u32;
        let (partitions, shared) = (&mut self.partitions, self.shared);
        for stream in &mut self.streams {
            samples = samples.wrapping_add(stream.end(partitions, shared));
        }
        self.field.end(partitions, shared, self.number);
        for probe in Probe::ALL {
            self.settings[probe as usize].rate = 0;
            self.apply(probe, front);
        }
        self.phase = Phase::Idle;
        let acquisition = core::mem::take(&mut self.number);
        self.shared.status.acquisition.store(0, Ordering::Relaxed);
        match self.sweep.end() {
            Some(steps) => {
                add(&self.shared.status.sweeps, 1);
                tell(self.shared, Report::Swept { acquisition, steps });
            }
            None => tell(
                self.shared,
                Report::Finished {
                    acquisition,
                    samples,
                },
            ),
        }
    }

    #[inline(never)]
    fn apply(&mut self, probe: Probe, front: &mut impl FrontEnds) {
        if self.awake == 0 {
            front.run(true);
        }
        self.awake = AWAKE;
        let setting = self.settings[probe as usize];
        front.send(probe, 0, setting.converter());
        front.send(probe, 1, setting.configuration());
    }

    /// The task `detect`, each 2 milliseconds. Time: O(samples since the last one), at most 32 from one finding to the next.
    pub fn detect(&mut self, front: &mut impl FrontEnds) {
        if self.running() && self.settings[Probe::Dust as usize].rate > 0 {
            let stream = &self.streams[Probe::Dust as usize];
            self.detector.look(stream, self.shared, front);
        }
    }

    /// The task `snapshot`, each 10 milliseconds: the samples around a grain go to core 0. O(1).
    pub fn snapshot(&mut self) {
        if self.running() {
            let (partitions, shared) = (&mut self.partitions, self.shared);
            let stream = &self.streams[Probe::Dust as usize];
            self.detector.send_when_there(stream, partitions, shared);
        }
    }

    /// The task `sweep`, each 10 milliseconds: the next step, if it is time. O(1).
    pub fn sweep(&mut self, front: &mut impl FrontEnds) {
        if self.phase != Phase::Running || !self.sweep.under_way() {
            return;
        }
        let index = self.following[0].index();
        let (partitions, shared) = (&mut self.partitions, self.shared);
        if let Some(code) = self
            .sweep
            .step(index, self.number, front.now(), partitions, shared)
        {
            self.settings[0].code = code;
            self.apply(Probe::Langmuir, front);
        }
    }

    /// The task `field`, each 20 milliseconds: windows of the electric field. O(samples since the last one).
    pub fn field(&mut self, front: &impl FrontEnds) {
        if self.running() {
            let (partitions, shared) = (&mut self.partitions, self.shared);
            self.field
                .look(front.now(), partitions, shared, self.number);
        }
    }

    /// Statistics of a partition of core 1, in turn, to core 0.
    #[inline(never)]
    fn tell_statistics(&mut self) {
        let probe = Probe::ALL[self.survey];
        self.survey = (self.survey + 1) % Probe::ALL.len();
        let statistics = self.partitions.of(probe).statistics();
        let number = Partitions::number(probe);
        debug_assert!(number < PARTITIONS.len());
        self.shared.status.partitions[number].tell(&statistics);
    }
}

#[cfg(test)]
mod tests;
