//! A mission in short: begin, high voltage, two sweeps, an acquisition of all probes, and a dump of what is missing.
//!
//! *Invariant:* each step waits for what it began; what does not come is told, and the mission goes on as far as it can.

use metes_duster_instrument::Probe;
use metes_duster_protocol::Mode;
use metes_duster_protocol::definitions::{Command, Event, Rates, SupplyState};

use crate::bench::{Bench, Outcome};

/// What a scenario was about.
#[derive(Clone, Debug, Default)]
pub struct Flown {
    /// Sweeps: acquisition, and steps that were asked for.
    pub sweeps: Vec<(u16, u64)>,
    /// What did not go as it should, in words.
    pub troubles: Vec<String>,
}

/// Volts of the acquisition.
const VOLTS: u16 = 5000;
/// Milliseconds that a telecommand may take which only asks, and one that lets the high voltage ramp.
const SOON: u64 = 5_000;
const RAMP: u64 = 15_000;

/// Flies the mission with `seconds` of acquisition, sweeps of so many `steps`.
pub fn fly(bench: &mut Bench, seconds: u64, steps: &[u16]) -> Flown {
    let mut flown = Flown::default();
    if !bench.until(10_000, |ground| ground.mode == Some(Mode::Safe)) {
        flown
            .troubles
            .push("the unit does not come to safe mode within 10 s".to_owned());
        return flown;
    }
    run(bench, &mut flown, &Command::Ping {}, SOON);
    mode(bench, &mut flown, Mode::Standby);
    for &steps in steps {
        sweep(bench, &mut flown, steps);
    }
    if seconds > 0 {
        acquire(bench, &mut flown, seconds);
    }
    bench.pass(1_000);
    dump(bench, &mut flown);
    // The last housekeeping of the memory.
    let structure = metes_duster_protocol::definitions::Structure::Memory;
    run(
        bench,
        &mut flown,
        &Command::ReportHousekeeping { structure },
        SOON,
    );
    bench.pass(500);
    flown
}

fn run(bench: &mut Bench, flown: &mut Flown, command: &Command<'_>, milliseconds: u64) -> bool {
    let outcome = bench.execute(command, milliseconds);
    if outcome != Outcome::Completed {
        let at = bench.milliseconds() as f64 / 1000.0;
        flown
            .troubles
            .push(format!("{command:?} at {at} s: {outcome:?}"));
    }
    outcome == Outcome::Completed
}

fn mode(bench: &mut Bench, flown: &mut Flown, mode: Mode) -> bool {
    run(bench, flown, &Command::SetMode { mode }, SOON)
}

fn sweep(bench: &mut Bench, flown: &mut Flown, steps: u16) {
    if !mode(bench, flown, Mode::Sweep) {
        return;
    }
    bench.forget_events();
    let command = Command::StartSweep {
        steps,
        from: -30_000,
        to: 30_000,
        dwell: 10,
    };
    if !run(bench, flown, &command, u64::from(steps) * 10 + SOON) {
        return;
    }
    let finished = |event: &Event| match *event {
        Event::SweepFinished { acquisition, .. } => Some(acquisition),
        _ => None,
    };
    match bench.wait(u64::from(steps) * 10 + SOON, finished) {
        Some(acquisition) => flown.sweeps.push((acquisition, steps.into())),
        None => flown
            .troubles
            .push(format!("a sweep of {steps} steps does not end")),
    }
    back(bench, flown);
}

/// What has ended goes to standby by itself.
fn back(bench: &mut Bench, flown: &mut Flown) {
    if !bench.until(2_000, |ground| ground.mode == Some(Mode::Standby)) {
        mode(bench, flown, Mode::Standby);
    }
}

fn acquire(bench: &mut Bench, flown: &mut Flown, seconds: u64) {
    run(bench, flown, &Command::ArmHighVoltage {}, SOON);
    let command = Command::SetHighVoltage { voltage: VOLTS };
    run(bench, flown, &command, RAMP);
    let stable = |ground: &crate::ground::Ground| {
        ground
            .supply
            .is_some_and(|(state, _)| state == SupplyState::Stable)
    };
    if !bench.until(RAMP, stable) {
        flown
            .troubles
            .push("the high voltage does not become stable".to_owned());
    }
    if !mode(bench, flown, Mode::AcqFull) {
        return;
    }
    bench.forget_events();
    let duration = seconds.clamp(60, 3600);
    let command = Command::StartAcquisition {
        probes: 7,
        rates: Rates::Objective,
        duration: duration as u16,
    };
    let sequence = bench.send(&command);
    bench.commands.commands += 1;
    let began = |event: &Event| match *event {
        Event::AcquisitionStarted { acquisition } => Some(acquisition),
        _ => None,
    };
    let Some(acquisition) = bench.wait(SOON, began) else {
        let what = bench.ground.verifications.get(&sequence);
        flown
            .troubles
            .push(format!("the acquisition does not begin: {what:?}"));
        bench.commands.failed += 1;
        return;
    };
    bench.commands.completed += 1;
    if seconds >= 60 {
        for (probe, rate) in Probe::ALL.into_iter().zip([5_000, 1_000, 10_000]) {
            bench
                .ground
                .science
                .expect(acquisition, probe, rate * duration);
        }
    } else {
        bench.pass(seconds * 1000);
        run(bench, flown, &Command::StopAcquisition {}, SOON);
    }
    let finished = |event: &Event| match *event {
        Event::AcquisitionFinished { acquisition, .. } => Some(acquisition),
        _ => None,
    };
    if bench.wait(seconds * 1000 + SOON, finished).is_none() {
        flown
            .troubles
            .push("the acquisition does not end".to_owned());
    }
    back(bench, flown);
    run(bench, flown, &Command::SafeHighVoltage {}, SOON);
}

/// Asks for what has not come, acquisition by acquisition.
fn dump(bench: &mut Bench, flown: &mut Flown) {
    if bench.ground.science.missing() == 0 {
        return;
    }
    if !mode(bench, flown, Mode::Dump) {
        return;
    }
    bench.forget_events();
    let command = Command::DumpScience {
        acquisition: 0,
        first: 0,
        count: u32::MAX,
    };
    run(bench, flown, &command, 120_000);
    let finished = |event: &Event| matches!(event, Event::DumpFinished { .. }).then_some(());
    if bench.wait(600_000, finished).is_none() {
        flown.troubles.push("the dump does not end".to_owned());
    }
    mode(bench, flown, Mode::Standby);
}
