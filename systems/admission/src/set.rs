//! What is asked: a host, and the functions that it is to run, from TOML.
//!
//! *Invariant:* a set that passes [`Set::verify`] has an answer: no figure of it makes the admission panic, overflow
//! or divide by zero.

mod document;

use serde::{Deserialize, Serialize};

pub use document::SetError;

/// Most cores of a host.
pub const MOST_CORES: u32 = 1024;
/// Most functions of a set.
pub const MOST_FUNCTIONS: usize = 4096;
/// Most characters of a function's name.
pub const MOST_CHARACTERS: usize = 128;

/// A host, and functions that it is to run. Times are whole numbers of one unit, memory is bytes.
///
/// ```
/// use metes_admission::{Decision, Set, admit};
///
/// let set = Set::parse(
///     "[host]\ncores = 1\nmemory = 8192\n\
///      [[function]]\nname = \"a\"\ncore = 0\nperiod = 10\ndeadline = 8\nbudget = 3\nmemory = 4096\n",
/// )?;
/// let Decision::Admitted(certificate) = admit(&set) else { panic!("it fits") };
/// certificate.check(&set).expect("and is seen to fit");
/// # Ok::<(), metes_admission::SetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// What runs them.
    pub host: Host,
    /// What is to run.
    #[serde(rename = "function")]
    pub functions: Vec<Function>,
}

/// What runs functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Cores, each scheduled by earliest deadline first on its own.
    pub cores: u32,
    /// Bytes for functions.
    pub memory: u64,
    /// Whether an invocation that has begun gives way to one that is due earlier.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// What the host itself takes; nothing unless declared.
    #[serde(default)]
    pub overheads: Overheads,
    /// The reserve in which modules are compiled; none unless declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_server: Option<Server>,
    /// What preempts functions on every core.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<Interference>,
}

/// How a core is scheduled, always the earliest deadline first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// What is due earlier goes first at any time.
    #[default]
    Preemptive,
    /// What has begun goes on to its end.
    NonPreemptive,
}

/// What the host itself takes of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overheads {
    /// Time added to every invocation for its release: timer, queue, preemption and return.
    pub release: u64,
    /// Time added to every invocation for giving its slot back clean.
    pub scrub: u64,
    /// The longest section that is not preempted on a core, as when a function is started up: every deadline may be
    /// blocked by one.
    pub blocking: u64,
}

/// A periodic server: `budget` in each `period`, by its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Time in each period.
    pub budget: u64,
    /// The period, and the deadline.
    pub period: u64,
    /// Bytes that it holds.
    #[serde(default)]
    pub memory: u64,
    /// Its core, else one is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
}

/// What preempts functions again and again, on whatever core: each is charged with all of it, at any time. So does a thread of
/// a higher class that is not bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interference {
    /// Time in each period.
    pub budget: u64,
    /// The period.
    pub period: u64,
}

/// What a host may take from a function that it needs elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Criticality {
    /// It may be suspended when a function of high criticality has used up its `budget` and takes its `budget_high`.
    Low,
    /// It is never given up.
    #[default]
    High,
}

/// The way of a request over a network: a rate-latency service that is guaranteed to this function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Bytes of a request.
    pub bytes: u64,
    /// Time until service begins.
    pub latency: u64,
    /// Bytes in each unit of time from then on.
    pub rate: u64,
}

/// A function, as it is to be admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Its name, of which there is one.
    pub name: String,
    /// Its core, else one is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// The period, or least distance of arrivals in the long run.
    pub period: u64,
    /// From the arrival, before the network if there is one, to the end.
    pub deadline: u64,
    /// Most time of one invocation.
    pub budget: u64,
    /// Bytes that it holds.
    pub memory: u64,
    /// Most requests that arrive at once: a token bucket of so many tokens, of which one comes back each period.
    #[serde(default = "one")]
    pub burst: u64,
    /// The network before the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Whether it may be suspended for others.
    #[serde(default)]
    pub criticality: Criticality,
    /// Most time of one invocation when `budget` was not enough; of high criticality alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_high: Option<u64>,
    /// The host's own time for each invocation of it beyond what all have: added to its budgets.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overhead: u64,
}

fn is_zero(time: &u64) -> bool {
    *time == 0
}

fn one() -> u64 {
    1
}

impl Function {
    /// A function of any core, one arrival at a time, without a network.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        period: u64,
        deadline: u64,
        budget: u64,
        memory: u64,
    ) -> Self {
        Function {
            name: name.into(),
            core: None,
            period,
            deadline,
            budget,
            memory,
            burst: 1,
            network: None,
            criticality: Criticality::default(),
            budget_high: None,
            overhead: 0,
        }
    }

    /// The same on a core.
    #[must_use]
    pub fn on(self, core: u32) -> Self {
        Function {
            core: Some(core),
            ..self
        }
    }
}

impl Host {
    /// A host that declares no overheads.
    #[must_use]
    pub fn new(cores: u32, memory: u64) -> Self {
        Host {
            cores,
            memory,
            scheduling: Scheduling::default(),
            overheads: Overheads::default(),
            compile_server: None,
            interference: Vec::new(),
        }
    }
}

impl Set {
    /// Reads a set from TOML.
    ///
    /// # Errors
    /// [`SetError`] names the line, what is wrong there, and what to write.
    pub fn parse(text: &str) -> Result<Set, SetError> {
        document::read(text)
    }

    /// Whether there can be such a set.
    ///
    /// # Errors
    /// [`SetError`] says what to change.
    pub fn verify(&self) -> Result<(), SetError> {
        document::verify(self, &|_| None)
    }
}
