//! What every backend must do, tried by random calls: for whoever writes one.
//!
//! [`check`] makes calls, good and bad, and compares each answer with that of a naive model:
//! lists that are searched from end to end. A refusal must be of the kind that [`Backend`]
//! promises and must have changed nothing, which the calls after it would show.

use core::fmt;
use core::mem::discriminant;
use std::collections::BTreeMap;

use super::{Backend, Error, Memory, Range};

/// How a backend is to be tried.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Decides the calls: the same seed makes the same calls, if ranges come to the same places.
    pub seed: u64,
    /// How many calls.
    pub calls: usize,
    /// How many pages of memory exist at a time at most. The device must have them.
    pub pages: u64,
    /// Whether nobody else uses the device's memory, so that what is free can be compared.
    pub alone: bool,
}

/// How often each answer came: `map: done`, `map: mapped already`, ….
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(pub BTreeMap<String, usize>);

impl Tally {
    /// How often an answer came.
    pub fn times(&self, answer: &str) -> usize {
        self.0.get(answer).copied().unwrap_or(0)
    }

    /// Adds another's answers.
    pub fn add(&mut self, other: &Tally) {
        for (answer, times) in &other.0 {
            *self.0.entry(answer.clone()).or_default() += times;
        }
    }
}

/// A backend did not do what it must.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("call {number}, {call}: expected {expected}, got {got} (seed {seed})")]
pub struct Failure {
    /// The plan's seed.
    pub seed: u64,
    /// Which call, from 0.
    pub number: usize,
    /// The call.
    pub call: String,
    /// What the model answers.
    pub expected: String,
    /// What the backend answered.
    pub got: String,
}

/// Tries a backend that has no memory and no ranges yet, and leaves it so.
///
/// # Errors
/// The first answer that differs from the model's.
pub fn check(backend: &mut dyn Backend, plan: Plan) -> Result<Tally, Failure> {
    let mut trial = Trial {
        plan,
        number: 0,
        random: Random(metes_random::Random::new(plan.seed)),
        granularity: backend.granularity(),
        whole: !backend.paged(),
        total: 0,
        free: 0,
        ranges: Vec::new(),
        memories: Vec::new(),
        dead: Vec::new(),
        tally: Tally::default(),
    };
    let granularity = backend.granularity();
    trial.hold(
        "granularity",
        "a power of two",
        granularity.is_power_of_two(),
        &granularity,
    )?;
    let alignment = backend.alignment();
    trial.hold(
        "alignment",
        "a power of two",
        alignment.is_power_of_two(),
        &alignment,
    )?;
    let capacity = trial.capacity(backend)?;
    (trial.total, trial.free) = (capacity.total, capacity.free);
    for number in 0..plan.calls {
        trial.number = number;
        trial.call(backend)?;
        trial.account(backend)?;
    }
    trial.take_down(backend)?;
    Ok(trial.tally)
}

#[derive(Clone, Copy, Debug)]
struct Existing {
    memory: Memory,
    bytes: u64,
    at: Option<u64>,
}

struct Trial {
    plan: Plan,
    number: usize,
    random: Random,
    granularity: u64,
    whole: bool,
    total: u64,
    free: u64,
    ranges: Vec<Range>,
    memories: Vec<Existing>,
    /// Memories that were released.
    dead: Vec<Memory>,
    tally: Tally,
}

impl Trial {
    fn call(&mut self, backend: &mut dyn Backend) -> Result<(), Failure> {
        match self.random.below(12) {
            0 => self.reserve(backend),
            1 => self.unreserve(backend),
            2..5 => self.create(backend),
            5..8 => self.map(backend),
            8..10 => self.unmap(backend),
            _ => self.release(backend),
        }
    }

    fn reserve(&mut self, backend: &mut dyn Backend) -> Result<(), Failure> {
        let bytes = match self.random.below(10) {
            0 => 0,
            1 => self.granularity + self.granularity / 2,
            2 => !(self.granularity - 1),
            _ if self.ranges.len() >= 8 => return Ok(()),
            _ => self.pages(8),
        };
        let expected = if bytes == 0 {
            Some(Error::Empty(""))
        } else if !bytes.is_multiple_of(self.granularity) {
            Some(granularity())
        } else if bytes > i64::MAX as u64 {
            Some(Error::Addresses { wanted: bytes })
        } else {
            None
        };
        let call = format!("reserve({bytes})");
        let Some(range) = self.compare(&call, expected, backend.reserve(bytes))? else {
            return Ok(());
        };
        let aligned = range.start.is_multiple_of(self.granularity) && range.bytes == bytes;
        self.hold(&call, "an aligned range of that length", aligned, &range)?;
        let apart = |other: &Range| range.end() <= other.start || other.end() <= range.start;
        let disjoint = self.ranges.iter().all(apart);
        self.hold(&call, "a range that overlaps none", disjoint, &range)?;
        self.ranges.push(range);
        Ok(())
    }

    fn unreserve(&mut self, backend: &mut dyn Backend) -> Result<(), Failure> {
        let mut range = self.random.pick(&self.ranges).unwrap_or(Range {
            start: self.granularity,
            bytes: self.granularity,
        });
        match self.random.below(6) {
            0 => range.bytes += self.granularity,
            1 => range.start += self.granularity,
            _ => {}
        }
        let expected = if !self.ranges.contains(&range) {
            Some(Error::NotReserved {
                address: 0,
                bytes: 0,
            })
        } else if self.overlaps(range.start, range.bytes) {
            Some(mapped())
        } else {
            None
        };
        let call = format!("unreserve({range:?})");
        if self
            .compare(&call, expected, backend.unreserve(range))?
            .is_some()
        {
            self.ranges.retain(|other| *other != range);
        }
        Ok(())
    }

    fn create(&mut self, backend: &mut dyn Backend) -> Result<(), Failure> {
        let used: u64 = self.memories.iter().map(|one| one.bytes).sum();
        let left = self.plan.pages - used / self.granularity;
        let beyond = self.total.saturating_add(self.granularity) & !(self.granularity - 1);
        let bytes = match self.random.below(10) {
            0 => 0,
            1 => self.granularity + self.granularity / 2,
            2 => beyond,
            _ if left == 0 => return Ok(()),
            // As long as a range, so that whole ranges are mapped, too.
            3..6 if !self.ranges.is_empty() => {
                let range = self
                    .random
                    .pick(&self.ranges)
                    .map_or(0, |range| range.bytes);
                range.min(left * self.granularity)
            }
            _ => self.pages(left.min(4)),
        };
        let expected = if bytes == 0 {
            Some(Error::Empty(""))
        } else if !bytes.is_multiple_of(self.granularity) {
            Some(granularity())
        } else if bytes == beyond {
            Some(Error::OutOfMemory {
                wanted: 0,
                free: 0,
                total: 0,
            })
        } else {
            None
        };
        let call = format!("create({bytes})");
        let answer = backend.create(bytes);
        let Some(memory) = self.compare(&call, expected, answer)? else {
            return Ok(());
        };
        let new = self.memories.iter().all(|other| other.memory != memory);
        self.hold(&call, "a number of its own", new, &memory)?;
        self.dead.retain(|dead| *dead != memory);
        self.memories.push(Existing {
            memory,
            bytes,
            at: None,
        });
        Ok(())
    }

    fn map(&mut self, backend: &mut dyn Backend) -> Result<(), Failure> {
        let unmapped: Vec<Existing> = self.with(|one| one.at.is_none());
        let existing = match self.random.below(8) {
            0 => self.random.pick(&self.memories),
            _ => self.random.pick(&unmapped),
        };
        let memory = match existing {
            Some(one) if self.random.below(12) > 0 => one.memory,
            _ => self.never_or_dead(),
        };
        let bytes = existing.map_or(0, |one| one.bytes);
        // A range in which the memory fits exactly, every other time.
        let mut fitting = self.ranges.clone();
        if self.whole || self.random.below(2) == 0 {
            fitting.retain(|range| range.bytes == bytes);
        }
        let any = self.random.pick(&self.ranges);
        let range = self.random.pick(&fitting).or(any).unwrap_or(Range {
            start: 0,
            bytes: self.granularity,
        });
        let page = match self.random.below(4) {
            0 => 0,
            // One page beyond the range's end, too.
            _ => self.random.below(range.bytes / self.granularity + 1),
        };
        let mut address = range.start + page * self.granularity;
        if self.random.below(12) == 0 {
            address += self.granularity / 2;
        }
        let expected = self.refuses_map(address, memory);
        let call = format!("map({address:#x}, {memory:?})");
        if self
            .compare(&call, expected, backend.map(address, memory))?
            .is_some()
        {
            for one in &mut self.memories {
                if one.memory == memory {
                    one.at = Some(address);
                }
            }
        }
        Ok(())
    }

    fn refuses_map(&self, address: u64, memory: Memory) -> Option<Error> {
        let Some(one) = self.memories.iter().find(|one| one.memory == memory) else {
            return Some(Error::NoMemory(memory));
        };
        if one.at.is_some() {
            return Some(Error::InUse(memory));
        }
        if !address.is_multiple_of(self.granularity) {
            return Some(granularity());
        }
        let holds = |range: &&Range| range.start <= address && address + one.bytes <= range.end();
        let Some(range) = self.ranges.iter().find(holds) else {
            return Some(Error::NotReserved {
                address: 0,
                bytes: 0,
            });
        };
        if self.whole && one.bytes != range.bytes {
            return Some(Error::NotPaged(""));
        }
        self.overlaps(address, one.bytes).then(mapped)
    }

    fn unmap(&mut self, backend: &mut dyn Backend) -> Result<(), Failure> {
        let candidates = self.with(|one| one.at.is_some());
        let (mut address, mut bytes, mut owner) = match self.random.pick(&candidates) {
            Some(one) => (one.at.unwrap_or(0), one.bytes, Some(one.memory)),
            None => (self.granularity, self.granularity, None),
        };
        match self.random.below(8) {
            0 => (bytes, owner) = (bytes + self.granularity, None),
            1 => (bytes, owner) = (bytes - self.granularity, None),
            2 => {
                address += self.granularity;
                let there = candidates
                    .iter()
                    .find(|one| one.at == Some(address) && one.bytes == bytes);
                owner = there.map(|one| one.memory);
            }
            _ => {}
        }
        let expected = owner.is_none().then_some(Error::NotMapped {
            address: 0,
            bytes: 0,
        });
        let call = format!("unmap({address:#x}, {bytes})");
        if let Some(memory) = self.compare(&call, expected, backend.unmap(address, bytes))? {
            self.hold(
                &call,
                "what was mapped there",
                owner == Some(memory),
                &memory,
            )?;
            for one in &mut self.memories {
                if one.memory == memory {
                    one.at = None;
                }
            }
        }
        Ok(())
    }

    fn release(&mut self, backend: &mut dyn Backend) -> Result<(), Failure> {
        let any = self.random.pick(&self.memories).map(|one| one.memory);
        let memory = match any {
            Some(memory) if self.random.below(6) > 0 => memory,
            _ => self.never_or_dead(),
        };
        let expected = match self.memories.iter().find(|one| one.memory == memory) {
            None => Some(Error::NoMemory(memory)),
            Some(one) if one.at.is_some() => Some(Error::InUse(memory)),
            Some(_) => None,
        };
        let call = format!("release({memory:?})");
        if self
            .compare(&call, expected, backend.release(memory))?
            .is_some()
        {
            self.memories.retain(|one| one.memory != memory);
            self.dead.push(memory);
        }
        Ok(())
    }

    /// Gives everything back, which must leave the device as it was.
    fn take_down(&mut self, backend: &mut dyn Backend) -> Result<(), Failure> {
        for one in self.memories.clone() {
            if let Some(address) = one.at {
                let call = format!("unmap({address:#x}, {}) at the end", one.bytes);
                let answer = backend.unmap(address, one.bytes);
                self.hold(&call, "done", answer == Ok(one.memory), &answer)?;
            }
            let answer = backend.release(one.memory);
            let call = format!("release({:?}) at the end", one.memory);
            self.hold(&call, "done", answer == Ok(()), &answer)?;
        }
        self.memories.clear();
        for range in core::mem::take(&mut self.ranges) {
            let answer = backend.unreserve(range);
            let call = format!("unreserve({range:?}) at the end");
            self.hold(&call, "done", answer == Ok(()), &answer)?;
        }
        self.account(backend)
    }

    /// What is free must be what was free but for the memory that exists.
    fn account(&mut self, backend: &mut dyn Backend) -> Result<(), Failure> {
        let capacity = self.capacity(backend)?;
        let total = capacity.total == self.total;
        self.hold("capacity", "the same total", total, &capacity)?;
        if self.plan.alone {
            let used: u64 = self.memories.iter().map(|one| one.bytes).sum();
            let free = capacity.free == self.free - used;
            self.hold("capacity", "what is not used free", free, &capacity)?;
        }
        Ok(())
    }

    fn capacity(&self, backend: &mut dyn Backend) -> Result<super::Capacity, Failure> {
        let answer = backend.capacity();
        match &answer {
            Ok(capacity) => Ok(*capacity),
            Err(_) => Err(self.failure("capacity", "done", &answer)),
        }
    }

    fn overlaps(&self, address: u64, bytes: u64) -> bool {
        self.memories.iter().any(|one| {
            one.at
                .is_some_and(|at| at < address + bytes && address < at + one.bytes)
        })
    }

    fn with(&self, condition: impl Fn(&Existing) -> bool) -> Vec<Existing> {
        let matching = |one: &&Existing| condition(one);
        self.memories.iter().filter(matching).copied().collect()
    }

    fn never_or_dead(&mut self) -> Memory {
        let dead = self.random.pick(&self.dead);
        dead.unwrap_or(Memory(u64::MAX - self.random.below(4)))
    }

    fn pages(&mut self, most: u64) -> u64 {
        (1 + self.random.below(most)) * self.granularity
    }

    /// Compares an answer with the model's; `None` if both refuse.
    fn compare<T: fmt::Debug>(
        &mut self,
        call: &str,
        expected: Option<Error>,
        answer: Result<T, Error>,
    ) -> Result<Option<T>, Failure> {
        let name = call.split('(').next().unwrap_or(call);
        let same = match (&expected, &answer) {
            (None, Ok(_)) => true,
            // A device of which one memory cannot be that large need not count what is free.
            (Some(Error::OutOfMemory { .. }), Err(Error::TooLarge { .. })) => true,
            (Some(expected), Err(got)) => discriminant(expected) == discriminant(got),
            _ => false,
        };
        if !same {
            let expected = expected.as_ref().map_or("done", kind);
            return Err(self.failure(call, expected, &answer));
        }
        let outcome = answer.as_ref().err().map_or("done", kind);
        *self
            .tally
            .0
            .entry(format!("{name}: {outcome}"))
            .or_default() += 1;
        Ok(answer.ok())
    }

    fn hold(
        &self,
        call: &str,
        expected: &str,
        holds: bool,
        got: &dyn fmt::Debug,
    ) -> Result<(), Failure> {
        if holds {
            Ok(())
        } else {
            Err(self.failure(call, expected, got))
        }
    }

    fn failure(&self, call: &str, expected: &str, got: &dyn fmt::Debug) -> Failure {
        Failure {
            seed: self.plan.seed,
            number: self.number,
            call: call.to_owned(),
            expected: expected.to_owned(),
            got: format!("{got:?}"),
        }
    }
}

fn granularity() -> Error {
    Error::Granularity {
        what: "",
        value: 0,
        granularity: 1,
    }
}

fn mapped() -> Error {
    Error::Mapped {
        address: 0,
        bytes: 0,
    }
}

/// What kind of error it is, in words.
fn kind(error: &Error) -> &'static str {
    match error {
        Error::Absent { .. } => "absent",
        Error::OutOfMemory { .. } => "out of memory",
        Error::Addresses { .. } => "no addresses",
        Error::Granularity { .. } => "granularity",
        Error::Empty(_) => "empty",
        Error::NotReserved { .. } => "not reserved",
        Error::Mapped { .. } => "mapped",
        Error::NotMapped { .. } => "not mapped",
        Error::NoMemory(_) => "no memory",
        Error::InUse(_) => "in use",
        Error::TooLarge { .. } => "too large",
        Error::Process { .. } => "another process",
        Error::NotPaged(_) => "not paged",
        Error::Device { .. } => "device",
    }
}

/// What the suite draws by.
struct Random(metes_random::Random);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.remainder(bound)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        if list.is_empty() {
            return None;
        }
        let place = self.below(list.len() as u64);
        Some(list[place as usize])
    }
}
