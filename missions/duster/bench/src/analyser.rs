//! What the GPIO lines tell: which task each core runs, and when a grain was detected. A logic analyser at the unit's pins.
//!
//! A task's response is the time from its nominal release (the epoch, its offset, so many periods) to the moment at which its
//! core no longer runs it. The unit is not asked, so it cannot be wrong about itself.
//!
//! *Invariant:* each time that a task runs is of one release, the earliest that none was for and that is not skipped.

use metes_duster_system::System;
use metes_leon3::devices::Driven;

/// Lines.
const EPOCH: u32 = 1 << 18;
const DETECTED: u32 = 1 << 19;
const LATE: u32 = 1 << 20;
const INHIBIT: u32 = 1 << 16;

/// A task, as it was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// Its core.
    pub core: usize,
    /// How often it ran.
    pub runs: u64,
    /// The longest response, in cycles.
    pub response: u64,
    /// Responses beyond the deadline, and releases for which it did not run.
    pub missed: u64,
    period: u64,
    offset: u64,
    deadline: u64,
    /// The release that is due next.
    next: u64,
}

/// The analyser.
#[derive(Debug)]
pub struct Analyser {
    /// The tasks, core by core in the order of their numbers.
    pub tasks: Vec<Seen>,
    /// Where the tasks of each core begin.
    first: [usize; 2],
    /// The machine's cycle at which time began; ticks that were lost since move it.
    epoch: Option<u64>,
    /// What each core runs, and since when.
    running: [Option<(usize, u64)>; 2],
    values: u32,
    /// The machine's cycles at which grains were detected, since they were taken last.
    detected: Vec<u64>,
    /// What began before this cycle is not judged: a tick was spoilt.
    excused: u64,
    /// How often the unit noted a missed deadline itself.
    pub noted: u64,
}

impl Analyser {
    /// One that knows the tasks of `system`.
    #[must_use]
    pub fn new(system: &System) -> Analyser {
        let cycles = u64::from(system.platform.frequency) / 1_000_000;
        let mut tasks = Vec::new();
        let mut first = [0; 2];
        for (core, first) in first.iter_mut().enumerate() {
            *first = tasks.len();
            let own = system.tasks.iter().filter(|task| task.core == core);
            tasks.extend(own.map(|task| Seen {
                name: task.name.clone(),
                core,
                runs: 0,
                response: 0,
                missed: 0,
                period: task.period * cycles,
                offset: task.offset * cycles,
                deadline: task.deadline * cycles,
                next: 0,
            }));
        }
        Analyser {
            tasks,
            first,
            epoch: None,
            running: [None; 2],
            values: 0,
            detected: Vec::new(),
            excused: 0,
            noted: 0,
        }
    }

    /// The unit begins anew, at its cycle 0.
    pub fn reset(&mut self) {
        self.epoch = None;
        self.running = [None; 2];
        self.values = 0;
        self.excused = 0;
    }

    /// What begins before the machine's cycle `until` is late through no fault of the unit.
    pub fn excuse(&mut self, until: u64) {
        self.excused = until;
    }

    /// The unit's clock stands still for so many cycles: a tick was kept from it.
    pub fn delay(&mut self, cycles: u64) {
        self.epoch = self.epoch.map(|epoch| epoch + cycles);
    }

    /// The cycle at which the unit's time began.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// Whether high voltage is inhibited.
    #[must_use]
    pub fn inhibits(&self) -> bool {
        self.values & INHIBIT != 0
    }

    /// When grains were detected since the last call.
    pub fn take_detected(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.detected)
    }

    /// The lines have changed.
    pub fn see(&mut self, driven: Driven) {
        let changed = self.values ^ driven.values;
        self.values = driven.values;
        if changed & EPOCH != 0 && driven.values & EPOCH != 0 {
            self.epoch = Some(driven.at);
            self.tasks.iter_mut().for_each(|task| task.next = 0);
        }
        if changed & DETECTED != 0 {
            self.detected.push(driven.at);
        }
        if changed & LATE != 0 {
            self.noted += 1;
        }
        for core in 0..2 {
            if changed >> (8 * core) & 0xff != 0 {
                self.switch(core, driven.values >> (8 * core) & 0xff, driven.at);
            }
        }
    }

    fn switch(&mut self, core: usize, number: u32, at: u64) {
        if let Some((task, begun)) = self.running[core].take() {
            self.ended(task, begun, at);
        }
        let task = (number as usize).checked_sub(1);
        let task = task.map(|task| self.first[core] + task);
        self.running[core] = task
            .filter(|&task| self.tasks.get(task).is_some_and(|task| task.core == core))
            .map(|task| (task, at));
    }

    fn ended(&mut self, task: usize, begun: u64, at: u64) {
        let Some(epoch) = self.epoch else { return };
        let it = &mut self.tasks[task];
        it.runs += 1;
        // What was due and is more than a period ago when its successor begins was skipped: the executive keeps two.
        let since = begun.saturating_sub(epoch + it.offset);
        let latest = since / it.period;
        if it.next + 1 < latest {
            it.missed += latest - 1 - it.next;
            it.next = latest - 1;
        }
        let release = epoch + it.offset + it.next * it.period;
        it.next += 1;
        if begun < self.excused {
            return;
        }
        let response = at.saturating_sub(release);
        it.response = it.response.max(response);
        it.missed += u64::from(response > it.deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driven(at: u64, values: u32) -> Driven {
        Driven {
            at,
            lines: u32::MAX,
            values,
        }
    }

    fn seen<'a>(analyser: &'a Analyser, name: &str) -> &'a Seen {
        analyser
            .tasks
            .iter()
            .find(|task| task.name == name)
            .unwrap()
    }

    #[test]
    fn responses_are_from_release_to_end() {
        let system = System::of_mission();
        let mut analyser = Analyser::new(&system);
        // Core 1's first task is released each millisecond.
        analyser.see(driven(1000, EPOCH));
        for tick in 0..5u64 {
            let release = 1000 + tick * 100_000;
            analyser.see(driven(release + 500, EPOCH | 1 << 8));
            analyser.see(driven(release + 4000 + 100 * tick, EPOCH));
        }
        let acquire = seen(&analyser, "acquire");
        assert_eq!(
            (acquire.runs, acquire.response, acquire.missed),
            (5, 4400, 0)
        );
        // Late by two periods: one release is skipped, the other late.
        analyser.see(driven(1000 + 720_000, EPOCH | 1 << 8));
        analyser.see(driven(1000 + 730_000, EPOCH));
        let acquire = seen(&analyser, "acquire");
        assert_eq!(
            (acquire.runs, acquire.response, acquire.missed),
            (6, 130_000, 2)
        );
    }

    #[test]
    fn grains_and_misses_are_edges() {
        let mut analyser = Analyser::new(&System::of_mission());
        for (at, values) in [(1, DETECTED), (2, DETECTED | LATE), (3, LATE), (4, INHIBIT)] {
            analyser.see(driven(at, values));
        }
        assert_eq!(analyser.take_detected(), [1, 3]);
        assert!(analyser.take_detected().is_empty());
        assert_eq!((analyser.noted, analyser.inhibits()), (2, true));
    }
}
