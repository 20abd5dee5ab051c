//! What came of a run: measured figures, each beside its bound where the certificate has one.
//!
//! *Invariant:* a report is a function of the run alone, so two runs of one seed print the same; how long the host took is
//! not in it.

use metes_duster_instrument::Probe;
use metes_duster_system::System;
use serde::Serialize;

use crate::bench::{Bench, Commands};
use crate::check;
use crate::judge::Verdicts;
use crate::unit::Reset;

/// Samples that came to the ground and are what the instrument gave.
#[derive(Clone, Debug, Serialize)]
pub struct Samples {
    /// Of the Langmuir probe.
    pub langmuir: u64,
    /// Of the electric field.
    pub efield: u64,
    /// Of the dust.
    pub dust: u64,
}

/// Grains.
#[derive(Clone, Debug, Serialize)]
pub struct Dust {
    /// That the samples show.
    pub injected: u64,
    /// Detected within 10 ms, as a pin tells.
    pub detected: u64,
    /// The longest time from impact to detection, in milliseconds.
    pub latest_ms: f64,
    /// Detections without a grain.
    pub spurious: u64,
    /// Event reports that came to the ground.
    pub reported: u64,
}

/// A task.
#[derive(Clone, Debug, Serialize)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Its core.
    pub core: usize,
    /// How often it ran.
    pub runs: u64,
    /// The longest time from release to end, in seconds, seen at the pins.
    pub response: f64,
    /// What the certificate says that it is at most.
    pub bound: Option<f64>,
    /// By when it must be done.
    pub deadline: f64,
    /// How often it was not.
    pub missed: u64,
}

/// A partition.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// Its name.
    pub name: String,
    /// The most bytes in use, as housekeeping tells.
    pub peak: u64,
    /// Bytes with which its heap refuses nothing that is declared.
    pub bound: Option<u64>,
    /// Its bytes.
    pub size: u64,
    /// Blocks refused.
    pub refusals: u64,
    /// The longest time that a block was given or taken in, in seconds.
    pub worst: f64,
}

/// A sweep.
#[derive(Clone, Debug, Serialize)]
pub struct Sweep {
    /// Its acquisition.
    pub acquisition: u16,
    /// Steps that were asked for.
    pub asked: u64,
    /// Steps that came and are exact.
    pub exact: u64,
}

/// What came of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Simulated seconds of acquisition that were asked for.
    pub seconds: u64,
    /// Simulated seconds in all.
    pub elapsed: f64,
    /// The model of time.
    pub model: &'static str,
    /// Samples.
    pub samples: Samples,
    /// Samples that should have come and did not.
    pub lost: u64,
    /// Packets of science that are not what the instrument gave.
    pub wrong: u64,
    /// Those by what explains them.
    pub wrong_by: Verdicts,
    /// The first of each kind, in words.
    pub differences: Vec<String>,
    /// Sweeps.
    pub sweeps: Vec<Sweep>,
    /// Windows of the field that are exact.
    pub windows: u64,
    /// Grains.
    pub dust: Dust,
    /// Tasks.
    pub tasks: Vec<Task>,
    /// Partitions.
    pub partitions: Vec<Memory>,
    /// Telecommands.
    pub commands: Commands,
    /// Packets of telemetry, those that are missing by their counts, and bytes of none.
    pub packets: u64,
    /// See [`packets`](Self::packets).
    pub packets_missing: u64,
    /// See [`packets`](Self::packets).
    pub bytes_skipped: u64,
    /// Resets.
    pub resets: Vec<Reset>,
    /// Faults, by kind.
    pub faults: std::collections::BTreeMap<&'static str, u64>,
    /// Instructions of both cores.
    pub instructions: u64,
    /// Cycles.
    pub cycles: u64,
    /// What was not as it should be, in words.
    pub violations: Vec<String>,
}

/// What was asked of a run.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The seed.
    pub seed: u64,
    /// Seconds of acquisition.
    pub seconds: u64,
    /// The name of the model of time.
    pub model: &'static str,
    /// Whether faults were: what they break is no violation.
    pub faults: bool,
}

/// The most that is detected late, in milliseconds.
const LATEST: f64 = 10.0;

impl Report {
    /// Of `bench`, after what was `asked`; `sweeps` are those that were asked for.
    #[must_use]
    pub fn of(bench: &Bench, system: &System, asked: Asked, sweeps: &[(u16, u64)]) -> Report {
        let ground = &bench.ground;
        let frequency = bench.unit.frequency() as f64;
        let grains = bench.grains();
        let samples = |probe| ground.science.samples(probe);
        let exact = |acquisition: u16| {
            let swept = ground.science.sweeps.get(&acquisition);
            swept.map_or(0, |swept| swept.steps)
        };
        let dust_events = ground.counts.get(&3).copied().unwrap_or(0);
        let mut report = Report {
            seed: asked.seed,
            seconds: asked.seconds,
            elapsed: bench.unit.now() as f64 / frequency,
            model: asked.model,
            samples: Samples {
                langmuir: samples(Probe::Langmuir),
                efield: samples(Probe::Efield),
                dust: samples(Probe::Dust),
            },
            lost: ground.science.missing(),
            wrong: ground.science.wrong,
            wrong_by: bench.judge.verdicts,
            differences: bench.judge.told.clone(),
            sweeps: sweeps
                .iter()
                .map(|&(acquisition, asked)| Sweep {
                    acquisition,
                    asked,
                    exact: exact(acquisition),
                })
                .collect(),
            windows: ground.science.windows,
            dust: Dust {
                injected: grains.injected,
                detected: grains.detected,
                latest_ms: grains.latest as f64 / frequency * 1000.0,
                spurious: grains.spurious,
                reported: dust_events,
            },
            tasks: tasks(bench, system, frequency),
            partitions: partitions(bench, system),
            commands: bench.commands,
            packets: ground.packets,
            packets_missing: ground.missing,
            bytes_skipped: ground.skipped,
            resets: bench.unit.resets.clone(),
            faults: bench.happened.clone(),
            instructions: bench.unit.instructions(),
            cycles: bench.unit.now(),
            violations: Vec::new(),
        };
        report.judge(asked.faults);
        report
    }

    /// What is not as it should be.
    fn judge(&mut self, faults: bool) {
        let mut violations = Vec::new();
        for task in &self.tasks {
            let over = |limit: f64| task.response > limit;
            if let Some(bound) = task.bound.filter(|&bound| over(bound)) {
                let (name, response) = (&task.name, task.response);
                violations.push(format!(
                    "task {name} responded after {response} s, above its bound of {bound} s"
                ));
            }
            if task.missed > 0 {
                let (name, missed) = (&task.name, task.missed);
                violations.push(format!("task {name} missed {missed} deadlines"));
            }
        }
        for it in &self.partitions {
            if let Some(bound) = it.bound.filter(|&bound| it.peak > bound) {
                let (name, peak) = (&it.name, it.peak);
                violations.push(format!(
                    "partition {name} had {peak} bytes in use, above its bound of {bound}"
                ));
            }
            if it.refusals > 0 {
                violations.push(format!(
                    "partition {} refused {} blocks",
                    it.name, it.refusals
                ));
            }
        }
        // What a flipped bit explains nobody could have told: it was before a checksum, or is found by the next look at code.
        let wrong = self.wrong_by.unexplained;
        if wrong > 0 {
            violations.push(format!("{wrong} packets of science are wrong"));
        }
        if self.commands.lost > 0 {
            violations.push(format!("{} telecommands were lost", self.commands.lost));
        }
        if !faults {
            if self.lost > 0 {
                violations.push(format!("{} samples were lost", self.lost));
            }
            for it in self.sweeps.iter().filter(|it| it.asked != it.exact) {
                violations.push(format!(
                    "a sweep of {} steps has {} exact",
                    it.asked, it.exact
                ));
            }
            if self.dust.detected < self.dust.injected || self.dust.latest_ms > LATEST {
                let missed = self.dust.injected - self.dust.detected;
                violations.push(format!("{missed} grains were not detected within 10 ms"));
            }
            if !self.resets.is_empty() {
                violations.push(format!("the unit was reset {} times", self.resets.len()));
            }
        }
        self.violations = violations;
    }
}

fn tasks(bench: &Bench, system: &System, frequency: f64) -> Vec<Task> {
    let bounds = check::bounds(system);
    let seen = bench.unit.analyser.tasks.iter();
    seen.map(|seen| {
        let bound = bounds.iter().find(|bound| bound.name == seen.name);
        let declared = system.task(&seen.name);
        Task {
            name: seen.name.clone(),
            core: seen.core,
            runs: seen.runs,
            response: seen.response as f64 / frequency,
            bound: bound
                .and_then(|bound| bound.response)
                .map(|nanoseconds| nanoseconds as f64 / 1e9),
            deadline: declared.map_or(0.0, |task| task.deadline as f64 / 1e6),
            missed: seen.missed,
        }
    })
    .collect()
}

fn partitions(bench: &Bench, system: &System) -> Vec<Memory> {
    let bounds = check::partitions(system);
    let told = bench.ground.partitions.iter();
    let declared = system.partitions.iter().zip(bounds).zip(told);
    declared
        .map(|((partition, bound), told)| Memory {
            name: partition.name.clone(),
            peak: told.peak.into(),
            bound: bound.heap_bytes.ok(),
            size: partition.size as u64,
            refusals: told.refusals.into(),
            worst: f64::from(told.worst) / 1e9,
        })
        .collect()
}
