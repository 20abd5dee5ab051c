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
use crate::judge::{Judge, Now};
use crate::science::Left;
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
    /// Who judges what is wrong.
    pub judge: Judge,
}

impl Bench {
    /// A bench of `unit`, to which `faults` happen, in the order of their times.
    #[must_use]
    pub fn new(unit: Unit, mut faults: Vec<Fault>) -> Bench {
        faults.reverse();
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
            judge: Judge::default(),
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
        // What came is of the unit as it was before a reset that has just been.
        let now = Now {
            boot: self.resets,
            ..self.now()
        };
        let events = self.ground.take_events();
        events
            .iter()
            .for_each(|event| self.judge.follow(event, now));
        self.events.extend(events);
        for wrong in self.ground.science.take_wrong() {
            let (hits, map) = (&mut self.unit.hits, &self.unit.map);
            self.judge.judge(&wrong, hits, map, now);
        }
        if self.unit.resets.len() > self.resets {
            self.resets = self.unit.resets.len();
            self.judge.reset(now.at);
            self.ground.reset();
        }
    }

    /// The time at the unit.
    fn now(&self) -> Now {
        Now {
            at: self.unit.now(),
            boot: self.unit.resets.len(),
            epoch: self.unit.epoch().unwrap_or(self.unit.offset()),
            frequency: self.unit.frequency(),
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
        let partitions = self.unit.map.partitions();
        let machine = self.unit.machine();
        let ram = (machine.bus.base(), machine.bus.ram().len() as u32);
        let (first, size) = match place {
            Where::Anywhere => ram,
            Where::Partition => partitions.unwrap_or(ram),
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

    /// Samples that are missing between others of their acquisition though their front end gave them, and no
    /// flipped bit explains it. What was in memory only at a reset is at the end of what came, and so is not counted. They
    /// are not told again.
    pub fn unexplained(&mut self) -> u64 {
        let now = self.now();
        let mut count = 0;
        for Left {
            acquisition,
            probe,
            run,
            gaps,
        } in self.ground.science.leave()
        {
            let world = self.unit.world.lock();
            let Some(run) = world.truth.runs(probe).get(run) else {
                continue;
            };
            let given = |index: &u64| {
                let mut lost = run.lost.iter();
                !lost.any(|&(from, to)| (from..to).contains(index))
            };
            let all = gaps.iter().flat_map(|&(from, to)| from..to);
            let lost = all.filter(given).count() as u64;
            drop(world);
            if lost > 0 {
                let what = || {
                    format!(
                        "{lost} samples of {probe:?}, acquisition {acquisition}, are not in the store, in gaps {gaps:?}; \
                         nothing explains it"
                    )
                };
                let (hits, map) = (&mut self.unit.hits, &self.unit.map);
                count += self.judge.lost(acquisition, lost, &what, hits, map, now);
            }
        }
        count
    }

    /// Sends bytes that are perhaps no telecommand.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.unit.send(bytes);
    }

    /// Executes `command`, for at most `milliseconds`.
    pub fn execute(&mut self, command: &Command<'_>, milliseconds: u64) -> Outcome {
        let (_, outcome) = self.follow(command, milliseconds, Verification::over);
        self.count(outcome)
    }

    /// Sends `command`, again if nothing comes of it, until it is accepted, refused or cut off. It is counted then only if it
    /// was not accepted; else [`Bench::end`] is to follow, with its sequence count.
    pub fn begin(&mut self, command: &Command<'_>) -> Result<u16, Outcome> {
        let begun = |known: &Verification| known.over() || known.accepted;
        match self.follow(command, PATIENCE, begun) {
            (sequence, Outcome::Open) if self.known(sequence).accepted => Ok(sequence),
            (_, outcome) => Err(self.count(outcome)),
        }
    }

    /// What has become of a command that was begun, by its sequence count.
    pub fn end(&mut self, sequence: u16) -> Outcome {
        let outcome = outcome(self.known(sequence), false);
        self.count(outcome)
    }

    fn known(&self, sequence: u16) -> Verification {
        let known = self.ground.verifications.get(&sequence);
        known.copied().unwrap_or_default()
    }

    fn count(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Completed => self.commands.completed += 1,
            Outcome::Failed(_) => self.commands.failed += 1,
            Outcome::Open => self.commands.cut += 1,
            Outcome::Silent => self.commands.lost += 1,
        }
        outcome
    }

    /// Sends `command`, again if nothing comes of it, until what is known of it is `enough`, for at most `milliseconds`.
    fn follow(
        &mut self,
        command: &Command<'_>,
        milliseconds: u64,
        enough: impl Fn(&Verification) -> bool,
    ) -> (u16, Outcome) {
        self.commands.commands += 1;
        for _ in 0..TRIES {
            let sequence = self.send(command);
            let end = self.milliseconds() + PATIENCE;
            let last = self.milliseconds() + milliseconds.max(PATIENCE);
            let resets = self.resets;
            loop {
                self.pass(STEP);
                let known = self.known(sequence);
                let now = self.milliseconds();
                let silent = known == Verification::default();
                if enough(&known) || now >= last || silent && now >= end || self.resets > resets {
                    break;
                }
            }
            let cut = self.resets > resets;
            let known = self.known(sequence);
            if known != Verification::default() || cut {
                return (sequence, outcome(known, cut));
            }
        }
        (self.sequence, Outcome::Silent)
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

/// What has become of a telecommand of which so much is known, and that was `cut` off by a reset or not.
fn outcome(known: Verification, cut: bool) -> Outcome {
    match known {
        Verification {
            completed: true, ..
        } => Outcome::Completed,
        Verification {
            failed: Some(code), ..
        } => Outcome::Failed(code),
        Verification { accepted: true, .. } => Outcome::Open,
        _ if cut => Outcome::Open,
        _ => Outcome::Silent,
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
