//! The bench: the unit, the ground, and what goes wrong, in one time.
//!
//! Telecommands are executed as a ground does: sent, followed by their verification reports, sent again if none comes. All of
//! it happens in mission time, so a script of commands is a run that can be repeated.
//!
//! *Invariant:* every telecommand that was sent is accounted for: verified, refused, or unanswered beside a fault that
//! explains it.

use metes_duster_instrument::faults::{Fault, What, Where};
use metes_duster_instrument::{Impact, Probe};
use metes_duster_protocol::definitions::{Command, Event};
use metes_duster_protocol::telecommand::{Acknowledge, encode};
use metes_duster_protocol::{Failure, MAX_PACKET};

use crate::ground::{Ground, Verification};
use crate::unit::Unit;

/// Milliseconds of a step: how often the ground looks.
const STEP: u64 = 10;
/// Milliseconds until a telecommand of which nothing came is sent again, and how often it is.
const PATIENCE: u64 = 2_000;
const TRIES: u32 = 4;

/// What became of a telecommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was completed.
    Completed,
    /// It failed, and why.
    Failed(Failure),
    /// It was accepted, and the unit was reset before it was over, or it is still under way.
    Open,
    /// Nothing came of it, however often it was sent.
    Silent,
}

/// Counts of telecommands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Commands {
    /// Commands, and packets: those that were sent again, too.
    pub commands: u64,
    /// See [`commands`](Self::commands).
    pub sent: u64,
    /// Completed.
    pub completed: u64,
    /// Refused or failed, with a reason.
    pub failed: u64,
    /// Accepted, and cut off by a reset.
    pub cut: u64,
    /// Of which nothing came, and nothing explains it.
    pub lost: u64,
}

/// Grains, and whether they were detected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Grains {
    /// Grains that samples show.
    pub injected: u64,
    /// Those that were detected within 10 ms.
    pub detected: u64,
    /// The longest time from impact to detection, in cycles.
    pub latest: u64,
    /// Detections without a grain.
    pub spurious: u64,
}

/// The bench.
pub struct Bench {
    /// The unit.
    pub unit: Unit,
    /// The ground.
    pub ground: Ground,
    /// What is yet to go wrong, the last first.
    faults: Vec<Fault>,
    /// Faults that happened, by name.
    pub happened: std::collections::BTreeMap<&'static str, u64>,
    /// Telecommands.
    pub commands: Commands,
    sequence: u16,
    resets: usize,
    /// Mission cycles at which grains were detected.
    detected: Vec<u64>,
    /// Events that came, since they were taken.
    events: Vec<Event>,
    /// Everything that the unit has sent, if it is kept.
    pub telemetry: Option<Vec<u8>>,
    /// Where the partitions lie: first address and bytes.
    partitions: Option<(u32, u32)>,
}

impl Bench {
    /// A bench of `unit`, to which `faults` happen, in the order of their times.
    #[must_use]
    pub fn new(unit: Unit, mut faults: Vec<Fault>) -> Bench {
        faults.reverse();
        let memory = unit.image().symbols().iter();
        let mut memory = memory.filter(|symbol| symbol.name.contains("8memories6MEMORY"));
        let partitions = memory.next().map(|symbol| (symbol.address, symbol.size));
        Bench {
            unit,
            ground: Ground::default(),
            faults,
            happened: Default::default(),
            commands: Commands::default(),
            sequence: 0,
            resets: 0,
            detected: Vec::new(),
            events: Vec::new(),
            telemetry: None,
            partitions,
        }
    }

    /// Mission time, in milliseconds.
    #[must_use]
    pub fn milliseconds(&self) -> u64 {
        self.unit.now() * 1000 / self.unit.frequency()
    }

    /// Lets `milliseconds` pass.
    pub fn pass(&mut self, milliseconds: u64) {
        let end = self.unit.now() + milliseconds * self.unit.frequency() / 1000;
        while self.unit.now() < end {
            self.step(end);
        }
    }

    /// Lets a step pass, or less if `end` comes before.
    fn step(&mut self, end: u64) {
        let milli = self.unit.frequency() / 1000;
        let next = (self.unit.now() + STEP * milli).min(end);
        while let Some(fault) = self.faults.last().copied()
            && fault.at <= next
        {
            self.faults.pop();
            self.unit.advance(fault.at);
            self.suffer(&fault);
        }
        self.unit.advance(next);
        self.look();
    }

    /// The ground looks at what has come.
    fn look(&mut self) {
        let bytes = self.unit.take_telemetry();
        {
            let world = self.unit.world.lock();
            self.ground.take(&bytes, &world.truth);
        }
        if let Some(kept) = &mut self.telemetry {
            kept.extend_from_slice(&bytes);
        }
        self.detected.extend(self.unit.take_detected());
        self.events.extend(self.ground.take_events());
        if self.unit.resets.len() > self.resets {
            self.resets = self.unit.resets.len();
            self.ground.reset();
        }
    }

    fn suffer(&mut self, fault: &Fault) {
        *self.happened.entry(fault.what.name()).or_default() += 1;
        let now = self.unit.now();
        if self.unit.world.lock().suffer(fault, now) {
            return;
        }
        match fault.what {
            What::BitFlip { place, which } => self.flip(place, which),
            What::LostCommandByte => self.unit.lose_byte(),
            What::LostTick => self.unit.spoil_tick(None),
            What::LateTick { cycles } => self.unit.spoil_tick(Some(cycles)),
            What::Reset => self.unit.reset("forced"),
            _ => {}
        }
    }

    fn flip(&mut self, place: Where, which: u64) {
        let machine = self.unit.machine();
        let ram = (machine.bus.base(), machine.bus.ram().len() as u32);
        let (first, size) = match place {
            Where::Anywhere => ram,
            Where::Partition => self.partitions.unwrap_or(ram),
            Where::Image => {
                let segments = self.unit.image().segments().iter();
                let largest = segments.max_by_key(|segment| segment.bytes.len());
                largest.map_or(ram, |it| (it.address, it.bytes.len() as u32))
            }
        };
        let bit = ((u128::from(which) * u128::from(size) * 8) >> 64) as u64;
        self.unit.flip(first + (bit / 8) as u32, (bit % 8) as u32);
    }

    /// Sends `command`; its sequence count.
    pub fn send(&mut self, command: &Command<'_>) -> u16 {
        let mut bytes = [0; MAX_PACKET];
        self.sequence = (self.sequence + 1) & 0x3fff;
        self.ground.verifications.remove(&self.sequence);
        let length = encode(command, self.sequence, Acknowledge::ALL, &mut bytes);
        self.unit.send(&bytes[..length.unwrap_or(0)]);
        self.commands.sent += 1;
        self.sequence
    }

    /// Bits of memory that have flipped.
    #[must_use]
    pub fn flips(&self) -> u64 {
        let flips = self
            .happened
            .iter()
            .filter(|(name, _)| name.starts_with("bit flip"));
        flips.map(|(_, count)| count).sum()
    }

    /// Samples that are missing between others of their acquisition though their front end gave them. What was in memory
    /// only at a reset is at the end of what came, and so is not counted. They are not told again.
    pub fn unexplained(&mut self) -> u64 {
        let world = self.unit.world.lock();
        let mut count = 0;
        for ((_, probe), received) in std::mem::take(&mut self.ground.science.received) {
            let gaps = received.samples.gaps(received.samples.end());
            let Some(run) = world.truth.runs(probe).get(received.run) else {
                continue;
            };
            count += gaps
                .iter()
                .flat_map(|&(from, to)| from..to)
                .filter(|index| {
                    !run.lost
                        .iter()
                        .any(|&(from, to)| (from..to).contains(index))
                })
                .count() as u64;
            *self.ground.science.before.entry(probe).or_default() += received.samples.count();
        }
        count
    }

    /// Sends bytes that are perhaps no telecommand.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.unit.send(bytes);
    }

    /// Executes `command`, for at most `milliseconds`.
    pub fn execute(&mut self, command: &Command<'_>, milliseconds: u64) -> Outcome {
        self.commands.commands += 1;
        let mut known = Verification::default();
        let mut resets = self.resets;
        for _ in 0..TRIES {
            let sequence = self.send(command);
            let end = self.milliseconds() + PATIENCE;
            let last = self.milliseconds() + milliseconds.max(PATIENCE);
            resets = self.resets;
            loop {
                self.pass(STEP);
                known = self
                    .ground
                    .verifications
                    .get(&sequence)
                    .copied()
                    .unwrap_or_default();
                let now = self.milliseconds();
                let silent = known == Verification::default();
                if known.over() || now >= last || silent && now >= end || self.resets > resets {
                    break;
                }
            }
            if known != Verification::default() || self.resets > resets {
                break;
            }
        }
        let outcome = match known {
            Verification {
                completed: true, ..
            } => Outcome::Completed,
            Verification {
                failed: Some(code), ..
            } => Outcome::Failed(code),
            Verification { accepted: true, .. } => Outcome::Open,
            _ if self.resets > resets => Outcome::Open,
            _ => Outcome::Silent,
        };
        match outcome {
            Outcome::Completed => self.commands.completed += 1,
            Outcome::Failed(_) => self.commands.failed += 1,
            Outcome::Open => self.commands.cut += 1,
            Outcome::Silent => self.commands.lost += 1,
        }
        outcome
    }

    /// Waits until an event is one that is looked for, for at most `milliseconds`.
    pub fn wait<T>(
        &mut self,
        milliseconds: u64,
        mut find: impl FnMut(&Event) -> Option<T>,
    ) -> Option<T> {
        let end = self.milliseconds() + milliseconds;
        let resets = self.resets;
        loop {
            let found = self.events.iter().enumerate();
            let found = found.filter_map(|(at, event)| Some((at, find(event)?)));
            if let Some((at, value)) = { found }.next() {
                self.events.drain(..=at);
                return Some(value);
            }
            if self.milliseconds() >= end || self.resets > resets {
                return None;
            }
            self.pass(STEP);
        }
    }

    /// Events that nobody has waited for yet are forgotten.
    pub fn forget_events(&mut self) {
        self.events.clear();
    }

    /// Waits until `holds`, for at most `milliseconds`; whether it does.
    pub fn until(&mut self, milliseconds: u64, mut holds: impl FnMut(&Ground) -> bool) -> bool {
        let end = self.milliseconds() + milliseconds;
        while !holds(&self.ground) {
            if self.milliseconds() >= end {
                return false;
            }
            self.pass(STEP);
        }
        true
    }

    /// Grains so far, beside the detections that the unit's pin has told.
    #[must_use]
    pub fn grains(&self) -> Grains {
        // Asked before the world is held: the unit holds it, too, to tell.
        let now = self.unit.now();
        let limit = self.unit.frequency() / 100;
        let world = self.unit.world.lock();
        let truth = &world.truth;
        let mut grains = Grains::default();
        let mut used = 0;
        for run in 0..truth.runs(Probe::Dust).len() {
            for impact in truth.impacts(run, now.saturating_sub(2 * limit)) {
                let counts = visible(truth, &impact, limit);
                grains.injected += u64::from(counts);
                let at = impact.grain.at;
                let next = self.detected.partition_point(|&detected| detected < at);
                if let Some(&detected) = self.detected.get(next)
                    && detected - at <= limit
                {
                    used += 1;
                    if counts {
                        grains.detected += 1;
                        grains.latest = grains.latest.max(detected - at);
                    }
                }
            }
        }
        grains.spurious = self.detected.len() as u64 - used;
        grains
    }
}

/// Whether the samples of `impact` show it as a jump: that sample and the one before it were taken, and were what the
/// amplifier gave; and the converter ran on for long enough.
fn visible(truth: &metes_duster_instrument::Truth, impact: &Impact, limit: u64) -> bool {
    let run = &truth.runs(Probe::Dust)[impact.run];
    let lost = |index: u64| {
        let ranges = run.lost.iter();
        { ranges }.any(|&(from, to)| (from..to).contains(&index))
    };
    let Some(before) = impact.first.checked_sub(1) else {
        return false;
    };
    let ended = run
        .end
        .is_some_and(|end| run.cycle(impact.first) + 2 * limit > end);
    let stuck = truth.stuck(Probe::Dust, run.cycle(before))
        || truth.stuck(Probe::Dust, run.cycle(impact.first));
    !(ended || stuck || lost(before) || lost(impact.first))
}
