//! `metes mission storm`.

use std::time::Instant;

use metes_duster::report::Asked;
use metes_duster::storm::{Storm, storm};
use metes_duster::{Bench, Report};
use metes_duster_instrument::faults;
use metes_duster_system::System;
use serde::Serialize;

use super::{fly, model, unit};
use crate::arguments::MissionStorm;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output;

/// The storm, and what came of the unit.
#[derive(Serialize)]
struct Document {
    hours: f64,
    storm: Storm,
    #[serde(flatten)]
    report: Report,
}

pub(super) fn run(arguments: &MissionStorm, json: bool) -> Result<u8, Failure> {
    let system = System::of_mission();
    let unit = unit(&arguments.unit, &system)?;
    let (seed, hours) = (arguments.unit.seed, arguments.hours);
    let frequency = system.platform.frequency;
    let until = (hours * 3600.0 * f64::from(frequency)) as u64;
    let faults = faults::plan(
        seed,
        arguments.faults as usize,
        u64::from(frequency),
        until.max(u64::from(frequency) + 1),
        frequency,
    );
    let mut bench = Bench::new(unit, faults);
    let begin = Instant::now();
    let told = storm(&mut bench, hours, seed, |hour, bench, storm| {
        let (commands, ground) = (&bench.commands, &bench.ground);
        output::note(&format!(
            "hour {hour}: {} telecommands, {} lost, {} acquisitions, {} packets of science right, {} wrong ({} unexplained), \
             {} of the stored lost, {} resets, {} power cycles, stuck {}, after {:.0} s",
            commands.commands,
            commands.lost,
            storm.acquisitions,
            ground.science.packets,
            ground.science.wrong,
            bench.judge.verdicts.unexplained,
            storm.lost_stored,
            bench.unit.resets.len(),
            storm.power_cycles,
            storm.stuck,
            begin.elapsed().as_secs_f64()
        ));
    });
    let asked = Asked {
        seed,
        seconds: (hours * 3600.0) as u64,
        model: model(arguments.unit.model).1,
        faults: true,
    };
    let mut report = Report::of(&bench, &system, asked, &[]);
    if told.stuck > 0 {
        report
            .violations
            .push(format!("the unit was stuck {} times", told.stuck));
    }
    if told.lost_stored > 0 {
        let lost = told.lost_stored;
        report
            .violations
            .push(format!("{lost} samples of stored science were lost"));
    }
    if told.unexplained_resets > 0 {
        let resets = told.unexplained_resets;
        report
            .violations
            .push(format!("nothing explains {resets} resets"));
    }
    let holds = report.violations.is_empty();
    if json {
        output::json(&Document {
            hours,
            storm: told,
            report,
        })?;
    } else {
        output::text(&format!(
            "{hours} hours: {} acquisitions and sweeps, {} dumps; {} ended late\n\
             {} silences that the unit ended, {} power cycles\n\
             flips in code and constants: {}, {} with a reset in time, the latest after {:.1} s\n\
             wrong packets by flips in the image {}, in data {}, in partitions {}, by nothing {}\n{}",
            told.acquisitions,
            told.dumps,
            told.late_ends,
            told.silences,
            told.power_cycles,
            told.image_flips,
            told.image_resets,
            told.image_seconds,
            report.wrong_by.image,
            report.wrong_by.data,
            report.wrong_by.partition,
            report.wrong_by.unexplained,
            fly::shown(&report)
        ))?;
    }
    Ok(if holds { 0 } else { DOES_NOT_HOLD })
}
