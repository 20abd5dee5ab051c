//! `metes device bench --cuda`.

use metes_lab::device::bench::Effort;
use metes_lab::device::cuda::{CudaBench, MODEL, bench, reasons, tables};

use super::bench::{printed, recorded};
use crate::arguments::DeviceBench;
use crate::error::Failure;
use crate::output::{self, BOLD, POOR};
use crate::progress;

pub(crate) fn run(ordinal: u32, arguments: &DeviceBench, json: bool) -> Result<u8, Failure> {
    let recorded = recorded(&arguments.traces)?;
    let effort = match arguments.quick {
        true => Effort::QUICK,
        false => Effort::WHOLE,
    };
    let wheel = progress::spinner("device");
    let found = bench(ordinal, recorded, effort, &|what| {
        wheel.set_message(what.to_owned());
    });
    wheel.finish_and_clear();
    let found = found.map_err(|error| Failure::input(error.to_string()))?;
    match json {
        true => output::json(&found)?,
        false => show(&found)?,
    }
    Ok(0)
}

fn show(found: &CudaBench) -> Result<(), Failure> {
    let device = &found.device;
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let mut text = format!(
        "{BOLD}{}{BOLD:#}: device {}, CUDA {}, compute capability {}, {:.1} of {:.1} GiB free\n\n",
        device.name,
        device.ordinal,
        device.cuda,
        device.capability,
        gib(device.free),
        gib(device.total)
    );
    if !found.measured {
        text += &format!("{POOR}{MODEL}{POOR:#}\n\n");
    }
    text += &printed(tables(found));
    for assumption in &found.assumptions {
        text += &format!("  - {assumption}\n");
    }
    for reason in reasons(found) {
        text += &format!("{POOR}not measured: {reason}{POOR:#}\n");
    }
    output::text(&text)
}
