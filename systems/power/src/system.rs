//! What is asked: tasks and jobs with deadlines, and the processor that runs them, from TOML.
//!
//! *Invariant:* a system that was read has an answer or a typed error: no figure of it makes an analysis panic,
//! overflow or divide by zero.

mod document;
mod units;
mod verify;

use num_traits::{One, Zero};

use crate::rational::Rational;
pub use units::Units;

/// A system that there cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", line.map_or_else(String::new, |line| format!("line {line}: ")))]
pub struct SystemError {
    /// The line of the text, from 1; none where there is no text.
    pub line: Option<usize>,
    /// What is wrong, and what to write.
    pub problem: String,
}

/// Most tasks of a system.
pub const MOST_TASKS: usize = 1024;
/// Most jobs that come once.
pub const MOST_JOBS: usize = 200_000;
/// Most frequencies of a list.
pub const MOST_FREQUENCIES: usize = 1024;
/// Most characters of a name.
pub const MOST_CHARACTERS: usize = 128;

/// Tasks, jobs and their processor. Times are of one unit, frequencies of one unit, work is time × frequency.
///
/// ```
/// let system = metes_power::System::parse(
///     "scheduler = \"fixed-priority\"\n\
///      [[task]]\nname = \"a\"\nperiod = 4\ntime = 1\npriority = 1\n\
///      [[task]]\nname = \"b\"\nperiod = 6\ntime = \"5/2\"\npriority = 2\n",
/// )?;
/// let verdict = metes_power::check(&system, None)?;
/// assert!(verdict.schedulable);
/// assert_eq!(verdict.tasks[1].response.as_ref().unwrap().to_string(), "7/2");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// Who goes first.
    pub scheduler: Scheduler,
    /// What its numbers count, where that is said.
    pub units: Option<Units>,
    /// What comes again and again.
    pub tasks: Vec<Task>,
    /// What comes once.
    pub jobs: Vec<Job>,
    /// What runs them.
    pub processor: Processor,
}

/// Who goes first, always preemptively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The smallest priority; of equal ones what stands first.
    FixedPriority,
    /// The earliest deadline; of equal ones any, and responses are those of the worst choice.
    Edf,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name, of which there is one.
    pub name: String,
    /// Its core.
    pub core: u32,
    /// 1 is the highest; 0 where the scheduler has no priorities.
    pub priority: u64,
    /// From one arrival to the next, or the least distance where no offset is given.
    pub period: Rational,
    /// From an arrival to its end.
    pub deadline: Rational,
    /// The first arrival. As long as no task has one above 0, tasks may begin at any time.
    pub offset: Rational,
    /// Longest time from an arrival until the task is ready.
    pub jitter: Rational,
    /// Longest time for which less urgent work may hold the core against it.
    pub blocking: Cost,
    /// What it takes.
    pub cost: Cost,
}

/// What an activation takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// So much time, whatever the frequencies; work of speed 1 where any speed can be had.
    Time(Rational),
    /// cpu / fp + memory / fm + constant.
    Model {
        /// Cycles of the processor.
        cpu: Rational,
        /// Cycles of the memory.
        memory: Rational,
        /// What no frequency changes.
        constant: Rational,
    },
}

impl Cost {
    /// The time at a pair of frequencies.
    #[must_use]
    pub fn time(&self, pair: &Pair) -> Rational {
        match self {
            Cost::Time(time) => time.clone(),
            Cost::Model {
                cpu,
                memory,
                constant,
            } => cpu / &pair.cpu + memory / &pair.memory + constant,
        }
    }

    /// Whether it is nothing.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match self {
            Cost::Time(time) => time.is_zero(),
            Cost::Model {
                cpu,
                memory,
                constant,
            } => cpu.is_zero() && memory.is_zero() && constant.is_zero(),
        }
    }

    /// Whether it is the same at all frequencies.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        match self {
            Cost::Time(_) => true,
            Cost::Model { cpu, memory, .. } => cpu.is_zero() && memory.is_zero(),
        }
    }

    /// The work, where it is one of the processor's speed alone.
    #[must_use]
    pub fn work(&self) -> Option<&Rational> {
        match self {
            Cost::Time(time) => Some(time),
            Cost::Model {
                cpu,
                memory,
                constant,
            } => (memory.is_zero() && constant.is_zero()).then_some(cpu),
        }
    }
}

/// A job that comes once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name, of which there is one.
    pub name: String,
    /// Its core.
    pub core: u32,
    /// 1 is the highest; 0 where the scheduler has no priorities.
    pub priority: u64,
    /// When it may begin.
    pub release: Rational,
    /// When it must have ended, on the same clock.
    pub deadline: Rational,
    /// Time × speed that it takes.
    pub work: Rational,
}

/// What runs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Frequencies that rise; none: any speed.
    pub cpu: Vec<Rational>,
    /// Frequencies of the memory that rise; none: 1.
    pub memory: Vec<Rational>,
    /// What it takes.
    pub power: Power,
    /// Power while nothing runs and it is awake, less the floor; none unless declared.
    pub idle: Rational,
    /// A state to sleep in.
    pub sleep: Option<Sleep>,
    /// What a change of frequency takes.
    pub switch: Switch,
}

/// Power = floor + (while something runs) cpu_cubed · fp³ + memory · fm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Power {
    /// Always.
    pub floor: Rational,
    /// Times the cube of the processor's frequency.
    pub cpu_cubed: Rational,
    /// Times the memory's frequency.
    pub memory: Rational,
}

impl Power {
    /// Power while something runs, less the floor.
    #[must_use]
    pub fn running(&self, pair: &Pair) -> Rational {
        let square = &pair.cpu * &pair.cpu;
        &self.cpu_cubed * square * &pair.cpu + &self.memory * &pair.memory
    }
}

/// A state in which nothing runs and less is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// Power in it, in place of floor and idle.
    pub power: Rational,
    /// Energy to go there and back.
    pub energy: Rational,
    /// Time to go there and back.
    pub time: Rational,
}

/// What a change of frequency takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Energy.
    pub energy: Rational,
    /// Time in which nothing runs.
    pub time: Rational,
}

/// Frequencies of processor and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Of the processor.
    pub cpu: Rational,
    /// Of the memory.
    pub memory: Rational,
}

impl Default for Processor {
    fn default() -> Self {
        let zero = Rational::zero;
        Processor {
            cpu: Vec::new(),
            memory: Vec::new(),
            power: Power::default(),
            idle: zero(),
            sleep: None,
            switch: Switch {
                energy: zero(),
                time: zero(),
            },
        }
    }
}

impl Default for Power {
    fn default() -> Self {
        Power {
            floor: Rational::zero(),
            cpu_cubed: Rational::one(),
            memory: Rational::zero(),
        }
    }
}

impl Processor {
    /// The highest frequencies; 1 where none are given.
    #[must_use]
    pub fn fastest(&self) -> Pair {
        let last = |list: &[Rational]| list.last().cloned().unwrap_or_else(Rational::one);
        Pair {
            cpu: last(&self.cpu),
            memory: last(&self.memory),
        }
    }

    /// Whether frequencies change at no cost.
    #[must_use]
    pub fn switch_is_free(&self) -> bool {
        self.switch.energy.is_zero() && self.switch.time.is_zero()
    }

    /// All pairs, the slowest first; 1 stands for a list that is not there.
    #[must_use]
    pub fn pairs(&self) -> Vec<Pair> {
        let one = [Rational::one()];
        let list = |list: &'_ [Rational]| -> Vec<Rational> {
            if list.is_empty() {
                one.to_vec()
            } else {
                list.to_vec()
            }
        };
        let (cpus, memories) = (list(&self.cpu), list(&self.memory));
        let pair = |cpu: &Rational, memory: &Rational| Pair {
            cpu: cpu.clone(),
            memory: memory.clone(),
        };
        cpus.iter()
            .flat_map(|cpu| memories.iter().map(move |memory| pair(cpu, memory)))
            .collect()
    }
}

impl System {
    /// Reads a system from TOML.
    ///
    /// # Errors
    /// [`SystemError`] names the line, what is wrong there, and what to write.
    pub fn parse(text: &str) -> Result<System, SystemError> {
        document::read(text)
    }

    /// Whether there can be such a system.
    ///
    /// # Errors
    /// [`SystemError`] says what to change.
    pub fn verify(&self) -> Result<(), SystemError> {
        verify::system(self, &|_| None)
    }

    /// The same system with priorities that say of tasks of equal ones, too, who goes first: what stands first. Jobs that come
    /// once keep equal ones, and go behind tasks of theirs.
    pub(crate) fn ranked(&self) -> System {
        let mut ranked = self.clone();
        let tasks = ranked.tasks.iter_mut().enumerate();
        let tasks = tasks.map(|(place, task)| ((task.priority, place), &mut task.priority));
        let jobs = ranked.jobs.iter_mut();
        let jobs = jobs.map(|job| ((job.priority, usize::MAX), &mut job.priority));
        let mut all: Vec<((u64, usize), &mut u64)> = tasks.chain(jobs).collect();
        all.sort_by_key(|(key, _)| *key);
        let (mut rank, mut before) = (0, None);
        for (key, priority) in all {
            rank += u64::from(before != Some(key));
            before = Some(key);
            *priority = rank;
        }
        ranked
    }

    /// The cores on which something runs, in order.
    #[must_use]
    pub fn cores(&self) -> Vec<u32> {
        let cores = self.tasks.iter().map(|task| task.core);
        let cores = cores.chain(self.jobs.iter().map(|job| job.core));
        std::collections::BTreeSet::from_iter(cores)
            .into_iter()
            .collect()
    }
}
