//! What was done to the instrument, and every sample that follows from it.
//!
//! A front end records when its converter was started and stopped, what its DAC was set to and its mode; a supply its ramps.
//! That is little, however long a mission lasts, and with the physics it is every sample.
//!
//! *Invariant:* a sample at a cycle depends on nothing that was recorded for a later one.

use crate::physics::{Grain, LIFTING, Physics, code, noise};

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Probe {
    /// Langmuir, SPI 0.
    Langmuir,
    /// Electric field, SPI 1.
    Efield,
    /// Dust, SPI 2.
    Dust,
}

impl Probe {
    /// All, in the order of their buses.
    pub const ALL: [Probe; 3] = [Probe::Langmuir, Probe::Efield, Probe::Dust];

    /// The probe of a number in telemetry.
    #[must_use]
    pub fn of(number: u8) -> Option<Probe> {
        Probe::ALL.get(usize::from(number)).copied()
    }

    /// Its name, as `system.toml` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["langmuir", "efield", "dust"][self as usize]
    }
}

/// What is sampled: nominal or monitor.
pub const NOMINAL: u8 = 0;
/// The DAC's voltage, or the high voltage.
pub const MONITOR: u8 = 1;

/// A converter that runs at one rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Samples a second.
    pub rate: u32,
    /// Cycles between samples, and the cycle of sample 0.
    pub period: u64,
    /// See [`period`](Self::period).
    pub start: u64,
    /// The cycle at which it was stopped.
    pub end: Option<u64>,
    /// Samples that the unit has taken.
    pub taken: u64,
    /// Those that found the FIFO full: first, and one behind the last.
    pub lost: Vec<(u64, u64)>,
}

impl Run {
    /// The cycle of sample `index`.
    #[must_use]
    pub fn cycle(&self, index: u64) -> u64 {
        self.start + index * self.period
    }
}

/// The high voltage from a cycle on: it moves from one value to another (mV).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ramp {
    at: u64,
    from: u64,
    to: u64,
    at_once: bool,
}

/// A converter that gives one code whatever it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Whose.
    pub probe: Probe,
    /// The first cycle, and one behind the last.
    pub from: u64,
    /// See [`from`](Self::from).
    pub until: u64,
    /// What it gives.
    pub code: i32,
}

/// A grain that has hit the probe while its converter ran in its nominal mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impact {
    /// When, and what.
    pub grain: Grain,
    /// The run, and the index of the first sample that shows it.
    pub run: usize,
    /// See [`run`](Self::run).
    pub first: u64,
}

/// The truth about the instrument.
#[derive(Clone, Debug)]
pub struct Truth {
    /// The world.
    pub physics: Physics,
    seed: u64,
    frequency: u64,
    runs: [Vec<Run>; 3],
    dac: [Vec<(u64, i16)>; 3],
    mode: [Vec<(u64, u8)>; 3],
    ramps: Vec<Ramp>,
    stuck: Vec<Stuck>,
}

/// The last that was recorded up to a cycle.
fn last<T: Copy>(history: &[(u64, T)], cycle: u64) -> Option<T> {
    let behind = history.partition_point(|&(at, _)| at <= cycle);
    behind.checked_sub(1).map(|index| history[index].1)
}

impl Truth {
    /// Nothing was done yet.
    #[must_use]
    pub fn new(seed: u64, frequency: u32) -> Truth {
        Truth {
            physics: Physics::new(seed, frequency),
            seed,
            frequency: frequency.into(),
            runs: Default::default(),
            dac: Default::default(),
            mode: Default::default(),
            ramps: Vec::new(),
            stuck: Vec::new(),
        }
    }

    /// The runs of a converter, in their order.
    #[must_use]
    pub fn runs(&self, probe: Probe) -> &[Run] {
        &self.runs[probe as usize]
    }

    pub(crate) fn runs_mut(&mut self, probe: Probe) -> &mut Vec<Run> {
        &mut self.runs[probe as usize]
    }

    /// The DAC of `probe` at `cycle`: 0 until it was set.
    #[must_use]
    pub fn dac(&self, probe: Probe, cycle: u64) -> i16 {
        last(&self.dac[probe as usize], cycle).unwrap_or(0)
    }

    /// Whether `probe` is in a monitor mode.
    #[must_use]
    pub fn mode(&self, probe: Probe, cycle: u64) -> u8 {
        last(&self.mode[probe as usize], cycle).unwrap_or(NOMINAL)
    }

    pub(crate) fn set_dac(&mut self, probe: Probe, cycle: u64, dac: i16) {
        if self.dac(probe, cycle) != dac {
            self.dac[probe as usize].push((cycle, dac));
        }
    }

    pub(crate) fn set_mode(&mut self, probe: Probe, cycle: u64, mode: u8) {
        if self.mode(probe, cycle) != mode {
            self.mode[probe as usize].push((cycle, mode));
        }
    }

    /// Lets the high voltage move to `to` mV from `cycle` on.
    pub(crate) fn ramp(&mut self, cycle: u64, to: u64, at_once: bool) {
        let from = self.high_voltage(cycle);
        self.ramps.push(Ramp {
            at: cycle,
            from,
            to,
            at_once,
        });
    }

    /// The high voltage at `cycle`, mV.
    #[must_use]
    pub fn high_voltage(&self, cycle: u64) -> u64 {
        let behind = self.ramps.partition_point(|ramp| ramp.at <= cycle);
        let Some(ramp) = behind.checked_sub(1).map(|index| self.ramps[index]) else {
            return 0;
        };
        // 2000 V/s, and no move takes longer than four seconds.
        let since = (cycle - ramp.at).min(4 * self.frequency);
        let moved = since * 2_000_000 / self.frequency;
        if ramp.at_once || moved >= ramp.from.abs_diff(ramp.to) {
            ramp.to
        } else if ramp.to > ramp.from {
            ramp.from + moved
        } else {
            ramp.from - moved
        }
    }

    /// Lets a converter be stuck.
    pub fn stick(&mut self, stuck: Stuck) {
        self.stuck.push(stuck);
    }

    /// Whether the converter of `probe` is stuck at `cycle`.
    #[must_use]
    pub fn stuck(&self, probe: Probe, cycle: u64) -> bool {
        self.held(probe, cycle).is_some()
    }

    /// The code at which the converter of `probe` is stuck.
    fn held(&self, probe: Probe, cycle: u64) -> Option<i32> {
        let stuck = self
            .stuck
            .iter()
            .find(|stuck| stuck.probe == probe && (stuck.from..stuck.until).contains(&cycle));
        stuck.map(|stuck| stuck.code)
    }

    /// What the converter of `probe` would give at `cycle`, without grains.
    #[must_use]
    pub fn at(&self, probe: Probe, cycle: u64) -> i32 {
        self.sample_at(probe, cycle, None)
    }

    /// Sample `index` of run `run` of `probe`.
    ///
    /// # Panics
    /// There was no such run.
    #[must_use]
    pub fn sample(&self, probe: Probe, run: usize, index: u64) -> i32 {
        let run = &self.runs[probe as usize][run];
        self.sample_at(probe, run.cycle(index), Some(run))
    }

    fn sample_at(&self, probe: Probe, cycle: u64, run: Option<&Run>) -> i32 {
        if let Some(code) = self.held(probe, cycle) {
            return code;
        }
        let dac = self.dac(probe, cycle);
        let noise = |codes| noise(self.seed ^ 3, cycle, codes);
        match (probe, self.mode(probe, cycle)) {
            (Probe::Langmuir, NOMINAL) => self.physics.langmuir(cycle, dac),
            (Probe::Efield, NOMINAL) => self.physics.efield(cycle, dac),
            (Probe::Dust, NOMINAL) => {
                let pulses = run.map_or(0.0, |run| self.pulses(run, cycle));
                code(self.physics.quiet(cycle, dac) + pulses)
            }
            (Probe::Dust, _) => code(self.high_voltage(cycle) as f64 / 12.0 + noise(40)),
            (_, _) => code(f64::from(dac) * 15.0 + noise(5)),
        }
    }

    /// What grains add at `cycle`: that of its slot, and that of the one before.
    fn pulses(&self, run: &Run, cycle: u64) -> f64 {
        let slot = self.physics.slot();
        let slots = [Some(cycle), cycle.checked_sub(slot)];
        let grains = slots.into_iter().flatten();
        let grains = grains.filter_map(|cycle| self.lifted(cycle));
        grains
            .filter_map(|grain| {
                let first = first_sample(run, grain.at).map_or(grain.at, |index| run.cycle(index));
                let since = cycle.checked_sub(first)?;
                Some(self.physics.pulse(grain, since))
            })
            .sum()
    }

    /// The grain of the slot of `cycle`, if high voltage lifts it.
    fn lifted(&self, cycle: u64) -> Option<Grain> {
        let grain = self.physics.grain(cycle)?;
        (self.high_voltage(grain.at) >= LIFTING).then_some(grain)
    }

    /// The grains that samples of the DUST probe's run `run` show, up to `cycle`.
    #[must_use]
    pub fn impacts(&self, run: usize, cycle: u64) -> Vec<Impact> {
        let it = &self.runs[Probe::Dust as usize][run];
        let end = it.end.unwrap_or(cycle).min(cycle);
        let slot = self.physics.slot();
        let mut found = Vec::new();
        let mut at = it.start / slot * slot;
        while at < end {
            if let Some(grain) = self.lifted(at)
                && let Some(first) = first_sample(it, grain.at)
                && it.cycle(first) < end
                && self.mode(Probe::Dust, it.cycle(first)) == NOMINAL
            {
                found.push(Impact { grain, run, first });
            }
            at += slot;
        }
        found
    }
}

/// The first sample at or behind `cycle`; none if the run begins later.
fn first_sample(run: &Run, cycle: u64) -> Option<u64> {
    let since = cycle.checked_sub(run.start)?;
    Some(since.div_ceil(run.period))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_voltage_ramps_and_falls() {
        let mut truth = Truth::new(1, 100_000_000);
        let at = |truth: &Truth, millis: u64| truth.high_voltage(millis * 100_000);
        truth.ramp(100_000_000, 5_000_000, false);
        let rising = [999, 1000, 1500, 3499, 3500, 9000].map(|millis| at(&truth, millis));
        assert_eq!(rising, [0, 0, 1_000_000, 4_998_000, 5_000_000, 5_000_000]);
        truth.ramp(1_000_000_000, 1_000_000, false);
        assert_eq!(at(&truth, 11_000), 3_000_000);
        truth.ramp(1_100_000_000, 0, true);
        assert_eq!(at(&truth, 11_000), 0);
        assert_eq!(at(&truth, 10_999), 3_002_000);
    }

    #[test]
    fn a_grain_is_seen_from_its_first_sample_on() {
        let mut truth = Truth::new(11, 100_000_000);
        truth.ramp(0, 6_000_000, false);
        let run = Run {
            rate: 10_000,
            period: 10_000,
            start: 500_000_000,
            end: Some(2_500_000_000),
            taken: 0,
            lost: Vec::new(),
        };
        truth.runs_mut(Probe::Dust).push(run);
        let impacts = truth.impacts(0, u64::MAX);
        assert!(impacts.len() > 10, "{}", impacts.len());
        for impact in impacts {
            let quiet = |index: u64| {
                let cycle = truth.runs(Probe::Dust)[0].cycle(index);
                truth.at(Probe::Dust, cycle)
            };
            let added = |index: u64| truth.sample(Probe::Dust, 0, index) - quiet(index);
            let peak = added(impact.first);
            assert!(peak > 25_000, "{peak}");
            assert!(added(impact.first - 1).abs() < 10, "nothing before");
            // Ten samples of 0.1 ms later: 1 / e, where the amplifier was not saturated.
            if peak < 400_000 {
                let ratio = f64::from(added(impact.first + 10)) / f64::from(peak);
                assert!((ratio - 0.3679).abs() < 0.001, "{ratio}");
            }
        }
    }

    #[test]
    fn what_is_done_later_changes_nothing_before() {
        let mut truth = Truth::new(2, 100_000_000);
        let before = truth.at(Probe::Langmuir, 999);
        truth.set_dac(Probe::Langmuir, 1000, 20_000);
        assert_eq!(truth.at(Probe::Langmuir, 999), before);
        assert!(truth.at(Probe::Langmuir, 1000) > before + 1000);
        truth.set_mode(Probe::Langmuir, 2000, MONITOR);
        let bias = truth.at(Probe::Langmuir, 2000);
        assert!((299_900..300_100).contains(&bias), "{bias}");
        truth.stick(Stuck {
            probe: Probe::Langmuir,
            from: 3000,
            until: 4000,
            code: -77,
        });
        let codes = [2999, 3000, 3999, 4000].map(|cycle| truth.at(Probe::Langmuir, cycle) == -77);
        assert_eq!(codes, [false, true, true, false]);
    }
}
