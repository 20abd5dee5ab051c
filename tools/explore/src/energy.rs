//! Energy and time of a replay on a hierarchy of memory levels.
//!
//! A model, stated in full:
//!
//! - *Accesses.* A level is accessed by words of its `word_bits`. A record word
//!   of 8 bytes takes two accesses of a 32-bit memory, a word of the program as
//!   many as it needs. A resize that moves a block reads it in one level and
//!   writes it in another, word by word.
//! - *Energy* of a level: reads × energy of a read + writes × energy of a write.
//! - *Time*: base cycles of the operations and the program's instructions, where
//!   known, one a cycle of the clock; and accesses × latency, one after another.
//! - *Leakage* of a level: its power × the time of the whole run, whether it is
//!   used or not. It is a line of its own and no part of `energy_fj`.
//!
//! Integers throughout (fJ, ps, µW), so that results are the same everywhere.
//!
//! Invariant: [`Pricer::least`] of what was counted so far is never above
//! [`Pricer::price`] of the whole replay, provided that no request fails.

mod error;
mod explain;
mod own;
mod read;
mod table;

use metes_heap::Description;
use metes_heap::description::LEVELS;

use crate::cost::CostModel;
use crate::events::{Accesses, Events};
use crate::hierarchy::{Counts, Hierarchy};

pub use error::EnergyError;
pub use explain::{LevelReport, PriceReport};
pub use table::{Figures, Leakage};

/// Bytes of a record word: the replay's records have the host's geometry.
pub const RECORD_WORD: u32 = 8;

/// Widest words in which accesses of a program can be counted, bytes.
const WIDEST_WORD: u32 = 256;

/// What the processor does besides accessing memory; the same on every heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Straight-line cycles of all allocations, frees and resizes.
    pub operation_cycles: u64,
    /// The program's instructions outside of the heap, one a cycle; 0 if unknown.
    pub instructions: u64,
    /// What the program reads and writes in its blocks.
    pub application: Accesses,
}

impl Work {
    /// The work of a trace, with operations as a cost model has them.
    pub fn of(events: &Events, cost: &CostModel) -> Self {
        Work {
            operation_cycles: events.allocations() * cost.allocate
                + events.frees() * cost.free
                + events.resizes() * cost.resize,
            instructions: events.instructions(),
            application: events.application(),
        }
    }
}

/// Energy and time of one level. Zero for levels that the hierarchy lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelPrice {
    /// Size of the level, bytes.
    pub size: u64,
    /// Accesses that read, in words of the level.
    pub reads: u64,
    /// Accesses that write.
    pub writes: u64,
    /// Energy of these accesses, femtojoule.
    pub energy_fj: u64,
    /// Energy that leaks over the run, femtojoule.
    pub leakage_fj: u64,
    /// Time of these accesses, picoseconds.
    pub time_ps: u64,
}

/// Energy and time of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// By level.
    pub levels: [LevelPrice; LEVELS],
    /// Energy of all accesses, without leakage, femtojoule.
    pub energy_fj: u64,
    /// Energy that leaks over the run, femtojoule.
    pub leakage_fj: u64,
    /// Time of the whole run, picoseconds.
    pub time_ps: u64,
    /// The part of it in which the processor computes, picoseconds.
    pub compute_ps: u64,
}

/// The least that a replay will have cost at its end, whatever is still to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Least {
    /// At most the final [`Price::energy_fj`].
    pub energy_fj: u64,
    /// At most the final [`Price::leakage_fj`].
    pub leakage_fj: u64,
    /// At most the final [`Price::time_ps`].
    pub time_ps: u64,
}

/// A size of a level, with what it costs and what it and larger ones cost at least.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    size: u64,
    figures: Figures,
    least: Figures,
    /// Which memory of the hierarchy's level it is.
    memory: usize,
}

/// A level as one heap uses it.
#[derive(Clone, Debug)]
struct Priced {
    /// By rising size, at least one.
    steps: Vec<Step>,
    word_bits: u32,
    /// Accesses of the level that a record word and a program's word take.
    per_record: u64,
    per_word: u64,
    /// Whether the heap has a pool here.
    used: bool,
}

/// Prices replays of one heap on a hierarchy.
#[derive(Clone, Debug)]
pub struct Pricer<'h> {
    hierarchy: &'h Hierarchy,
    levels: Vec<Priced>,
    clock_hz: u64,
}

impl Hierarchy {
    /// Prices replays of `heap`, whose pools keep to `sizes` where given, on
    /// traces whose accesses were counted in words of `access_word` bytes.
    ///
    /// A level with a range of sizes gets the smallest that is at least the size
    /// given; without one, the smallest that holds what the pools took.
    ///
    /// # Errors
    /// [`EnergyError`] when heap and hierarchy do not go together.
    pub fn pricer(
        &self,
        heap: &Description,
        sizes: &[Option<usize>; LEVELS],
        access_word: u32,
    ) -> Result<Pricer<'_>, EnergyError> {
        if access_word > WIDEST_WORD {
            return Err(EnergyError::WideWord { access_word });
        }
        let used = levels_of(heap);
        if let Some(&level) = used.iter().find(|&&level| level >= self.levels.len()) {
            let names = self.levels.iter().map(|level| level.name.clone());
            return Err(EnergyError::NoLevel {
                level,
                names: names.collect(),
            });
        }
        let mut levels = Vec::with_capacity(self.levels.len());
        for (number, level) in self.levels.iter().enumerate() {
            let memories = level.memories.iter().enumerate();
            let mut steps: Vec<Step> = memories
                .map(|(memory, of)| Step {
                    size: of.size,
                    figures: of.figures,
                    least: of.figures,
                    memory,
                })
                .collect();
            if let Some(size) = sizes[number].map(|size| size as u64) {
                steps.retain(|step| step.size >= size);
                steps.truncate(1);
                if steps.is_empty() {
                    return Err(EnergyError::TooLarge {
                        level: level.name.clone(),
                        size,
                        most: level.most(),
                    });
                }
            }
            for index in (1..steps.len()).rev() {
                steps[index - 1].least = steps[index - 1].figures.min(steps[index].least);
            }
            let accesses = |bytes: u32| u64::from((bytes * 8).div_ceil(level.word_bits));
            levels.push(Priced {
                steps,
                word_bits: level.word_bits,
                per_record: accesses(RECORD_WORD),
                per_word: accesses(access_word),
                used: used.contains(&number),
            });
        }
        Ok(Pricer {
            hierarchy: self,
            levels,
            clock_hz: self.clock_hz,
        })
    }
}

/// The levels that a valid heap has pools in, some of them more than once.
fn levels_of(heap: &Description) -> Vec<usize> {
    // Object pools share a range of slabs and so a level.
    let slabs = heap.slabs();
    let slabs = (!slabs.is_empty()).then(|| slabs.level());
    let general = heap.general.iter().map(|pool| pool.level);
    general.chain(slabs).map(usize::from).collect()
}

impl Figures {
    fn min(self, other: Figures) -> Figures {
        Figures {
            read_fj: self.read_fj.min(other.read_fj),
            write_fj: self.write_fj.min(other.write_fj),
            latency_ps: self.latency_ps.min(other.latency_ps),
            leakage_uw: self.leakage_uw.min(other.leakage_uw),
        }
    }
}

impl Priced {
    /// Accesses that read and that write.
    fn accesses(&self, counts: &Counts) -> (u128, u128) {
        let records = u128::from(self.per_record);
        let words = u128::from(self.per_word);
        let bytes = u64::from(self.word_bits / 8);
        let sum = |record: u64, application: u64, copied: u64| {
            u128::from(record) * records
                + u128::from(application) * words
                + u128::from(copied.div_ceil(bytes))
        };
        (
            sum(
                counts.record_reads,
                counts.application_reads,
                counts.copied_from,
            ),
            sum(
                counts.record_writes,
                counts.application_writes,
                counts.copied_to,
            ),
        )
    }

    /// The size that holds what the pools took, if one does.
    fn step(&self, footprint: u64) -> Option<&Step> {
        self.steps.iter().find(|step| step.size >= footprint)
    }
}

/// Energy (fJ) and time (ps) of accesses.
fn cost_of(figures: &Figures, (reads, writes): (u128, u128)) -> (u128, u128) {
    let energy = reads * u128::from(figures.read_fj) + writes * u128::from(figures.write_fj);
    (energy, (reads + writes) * u128::from(figures.latency_ps))
}

/// Femtojoule of so many microwatt over so many picoseconds.
fn leaked(power_uw: u64, time_ps: u128) -> u128 {
    u128::from(power_uw) * time_ps / 1000
}

impl Pricer<'_> {
    /// Time in which the processor computes, picoseconds.
    fn compute(&self, work: &Work) -> u128 {
        let cycles = u128::from(work.operation_cycles) + u128::from(work.instructions);
        cycles * 1_000_000_000_000 / u128::from(self.clock_hz)
    }

    /// Energy and time of a replay that counted this. O(levels).
    ///
    /// # Errors
    /// [`EnergyError::TooSmall`] when pools took more than their level has, and
    /// [`EnergyError::Overflow`] beyond 2⁶⁴ fJ or ps.
    pub fn price(&self, counts: &[Counts; LEVELS], work: &Work) -> Result<Price, EnergyError> {
        let whole = |value: u128| u64::try_from(value).map_err(|_| EnergyError::Overflow);
        let mut price = Price::default();
        let compute = self.compute(work);
        let (mut energy, mut time) = (0, compute);
        let mut powers = [0; LEVELS];
        for (number, level) in self.levels.iter().enumerate() {
            let counts = &counts[number];
            let Some(step) = level.step(counts.footprint) else {
                return Err(EnergyError::TooSmall {
                    level: self.hierarchy.levels[number].name.clone(),
                    size: level.steps.last().map_or(0, |step| step.size),
                    taken: counts.footprint,
                });
            };
            let (reads, writes) = level.accesses(counts);
            let (own_energy, own_time) = cost_of(&step.figures, (reads, writes));
            (energy, time) = (energy + own_energy, time + own_time);
            powers[number] = step.figures.leakage_uw;
            price.levels[number] = LevelPrice {
                size: step.size,
                reads: whole(reads)?,
                writes: whole(writes)?,
                energy_fj: whole(own_energy)?,
                leakage_fj: 0,
                time_ps: whole(own_time)?,
            };
        }
        price.energy_fj = whole(energy)?;
        price.time_ps = whole(time)?;
        price.compute_ps = whole(compute)?;
        let mut leakage = 0;
        for (level, power) in price.levels.iter_mut().zip(powers) {
            let own = leaked(power, time);
            level.leakage_fj = whole(own)?;
            leakage += own;
        }
        price.leakage_fj = whole(leakage)?;
        Ok(price)
    }

    /// The least that a replay costs which has counted this so far, and whose
    /// heap will read and write at least so many more record words.
    ///
    /// What was counted is charged at the level's present size or a larger one,
    /// whichever is cheaper; the program's remaining accesses and the record
    /// words go to the cheapest level that the heap uses. Never falls while a
    /// replay runs. O(levels).
    pub fn least(
        &self,
        counts: &[Counts; LEVELS],
        work: &Work,
        record_reads: u64,
        record_writes: u64,
    ) -> Least {
        let (mut energy, mut time) = (0, self.compute(work));
        let mut powers = [0; LEVELS];
        let mut rest = work.application;
        let mut cheapest: [u128; 6] = [u128::MAX; 6];
        for ((level, counts), power) in self.levels.iter().zip(counts).zip(&mut powers) {
            // Pools that outgrew their level fail; its largest size bounds still.
            let step = level.step(counts.footprint).or(level.steps.last());
            let Some(Step { least, .. }) = step else {
                continue;
            };
            let (own_energy, own_time) = cost_of(least, level.accesses(counts));
            (energy, time) = (energy + own_energy, time + own_time);
            *power = least.leakage_uw;
            rest.reads = rest.reads.saturating_sub(counts.application_reads);
            rest.writes = rest.writes.saturating_sub(counts.application_writes);
            if level.used {
                let Figures {
                    read_fj,
                    write_fj,
                    latency_ps,
                    ..
                } = *least;
                let figures = [read_fj, write_fj, latency_ps].map(u128::from);
                for (kind, accesses) in [level.per_word, level.per_record].into_iter().enumerate() {
                    for (index, figure) in figures.into_iter().enumerate() {
                        let own = &mut cheapest[3 * kind + index];
                        *own = (*own).min(figure * u128::from(accesses));
                    }
                }
            }
        }
        if cheapest[0] != u128::MAX {
            let [read, write, word, record_read, record_write, record] = cheapest;
            let [reads, writes] = [rest.reads, rest.writes].map(u128::from);
            let [record_reads, record_writes] = [record_reads, record_writes].map(u128::from);
            energy += reads * read + writes * write;
            energy += record_reads * record_read + record_writes * record_write;
            time += (reads + writes) * word + (record_reads + record_writes) * record;
        }
        let whole = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        // Rounded level by level, as a price is.
        let leakage = powers.map(|power| leaked(power, whole(time).into()));
        Least {
            energy_fj: whole(energy),
            leakage_fj: whole(leakage.into_iter().sum()),
            time_ps: whole(time),
        }
    }
}

#[cfg(test)]
#[path = "energy/tests.rs"]
mod tests;
