//! The campaign: every heap on every backend under random operations.
//!
//!     cargo run --release -p metes-device --example campaign -- [--operations N] [--seed N]
//!         [--heap NAME]… [--backend NAME]…
//!
//! CUDA is the model of its driver, and with METES_CUDA=1 the first GPU.
//!
//! Prints a line for every combination; the first thing that does not hold ends it with status 1
//! and says with which seed it comes again.

mod clock;
#[path = "../../tests/it/common/mod.rs"]
mod common;
mod device;
mod matrix;
mod model;
mod streams;
mod trial;

use std::cell::Cell;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use device::{Device, again_on, newer_lavapipe};
use matrix::{HEAPS, HeapKind, Work, impossible};

const USAGE: &str =
    "usage: campaign [--operations N] [--seed N] [--heap NAME]... [--backend NAME]...";

const DEVICES: [Device; 5] = [
    Device::Offsets,
    Device::Guarded,
    Device::Cuda,
    Device::OpenCl,
    Device::Vulkan,
];

/// What is to be tried.
struct Options {
    operations: u64,
    seed: u64,
    heaps: Vec<&'static HeapKind>,
    devices: Vec<Device>,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("campaign: {wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // The system's lavapipe may bind nothing sparsely, and the one that scripts/setup lays does.
    if options.devices.contains(&Device::Vulkan)
        && Device::Vulkan.open(false).is_ok()
        && Device::Vulkan.open(true).is_err()
        && let Some(lavapipe) = newer_lavapipe()
    {
        return match again_on(&lavapipe)
            .and_then(|mut again| again.args(std::env::args().skip(1)).status())
        {
            Ok(status) => ExitCode::from(status.code().map_or(1, |code| code as u8)),
            Err(error) => {
                eprintln!("campaign: {error}");
                ExitCode::from(1)
            }
        };
    }
    // What a heap's own checks find is said below.
    std::panic::set_hook(Box::new(|_| {}));
    campaign(&options)
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        operations: 10_000_000,
        seed: 1,
        heaps: Vec::new(),
        devices: Vec::new(),
    };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(format!("{name} needs a value"))?;
        let number = || {
            let number = value.parse();
            number.map_err(|_| format!("{name} {value}: give a whole number"))
        };
        match name.as_str() {
            "--operations" => options.operations = number()?,
            "--seed" => options.seed = number()?,
            "--heap" => {
                let found = HEAPS.iter().find(|heap| heap.name == value);
                let names: Vec<&str> = HEAPS.iter().map(|heap| heap.name).collect();
                options.heaps.push(found.ok_or(format!(
                    "there is no heap '{value}': choose one of '{}'",
                    names.join("', '")
                ))?);
            }
            "--backend" => {
                let found = DEVICES.into_iter().find(|one| one.name() == value);
                let names = DEVICES.map(Device::name).join(", ");
                options.devices.push(found.ok_or(format!(
                    "there is no backend '{value}': choose one of {names}"
                ))?);
            }
            _ => return Err(format!("there is no option {name}")),
        }
    }
    if options.heaps.is_empty() {
        options.heaps = HEAPS.iter().collect();
    }
    if options.devices.is_empty() {
        options.devices = DEVICES.to_vec();
    }
    if options.operations == 0 {
        return Err("--operations 0: give one at least".to_owned());
    }
    Ok(options)
}

fn campaign(options: &Options) -> ExitCode {
    println!(
        "| heap | backend | operations | allocations | refused | frees | bad frees found / tried | peak blocks | leaks reported | maps | seconds |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let mut left_out = Vec::new();
    for heap in &options.heaps {
        for &device in &options.devices {
            let pair = format!("{} on {}", heap.name, device.name());
            if let Some(reason) = impossible(heap, device) {
                left_out.push(format!("{pair}: {reason}"));
                continue;
            }
            if let Err(reason) = device.open(heap.paged) {
                left_out.push(format!("{pair}: {reason}"));
                continue;
            }
            let at = Cell::new(0);
            let work = Work {
                operations: options.operations,
                seed: options.seed,
                at: &at,
            };
            let start = Instant::now();
            match (heap.run)(device, &work) {
                Ok(tally) => println!(
                    "| {} | {} | {} | {} | {} | {} | {} / {} | {} | {} | {} | {:.1} |",
                    heap.name,
                    device.name(),
                    tally.operations,
                    tally.allocations,
                    tally.refusals,
                    tally.frees,
                    tally.bad_frees_found,
                    tally.bad_frees,
                    tally.peak_blocks,
                    tally.leaks,
                    tally.maps,
                    start.elapsed().as_secs_f64()
                ),
                Err(wrong) => {
                    eprintln!(
                        "campaign: {pair}, {wrong}\nagain: --heap '{}' --backend {} --operations {} --seed {}",
                        heap.name,
                        device.name(),
                        options.operations,
                        options.seed
                    );
                    return ExitCode::from(1);
                }
            }
            std::io::stdout().flush().ok();
        }
    }
    for reason in left_out {
        println!("not tried: {reason}");
    }
    ExitCode::SUCCESS
}
