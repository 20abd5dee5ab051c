//! A master and its slaves on the many-core platform, their cores simulated: the image of the heap space map does what the
//! Gaussian blur of an image does, and asks the platform's manager, or runs the paper's in C.
//!
//!     platform IMAGE [SIDE] [PIXELS]
//!
//! Exit status: 0 done, 2 bad arguments or a program that went astray.
//!
//! *Invariant:* a figure is printed only if it was counted in this run.

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use metes_kernels::{Picture, record_named};
use metes_leon3::Image;
use metes_leon3_mesh::{Managed, leon3_programs, steps};
use metes_platform::managers::FIRST_FIT;
use metes_platform::programs::master_and_slaves;
use metes_platform::{Faults, ManagerKind, Parameters, Setup, run};

fn main() -> ExitCode {
    match compare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("platform: {error}");
            ExitCode::from(2)
        }
    }
}

fn compare() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let usage = "usage: platform IMAGE [SIDE] [PIXELS]; sim/leon3/images/build makes hsm.elf";
    let image = Image::read(&std::fs::read(words.next().ok_or(usage)?)?)?;
    let mut number = |unless: u16| match words.next() {
        None => Ok(unless),
        Some(word) => word.parse().map_err(|_| usage),
    };
    let (side, pixels) = (number(8)?, number(128)?);
    if !(2..=16).contains(&side) {
        return Err("a side is 2 to 16 nodes".into());
    }
    let picture = Picture::generated(pixels.into(), pixels.into(), 1);
    let workload = record_named("gaussian", &picture)?.ok_or("no such kernel")?;
    let tasks = workload.tasks.len();
    let lists = steps::master_and_slaves(&workload, side * side, tasks);
    let workload = std::rc::Rc::new(workload);
    let mut parameters = Parameters::sized(side.into(), side.into());
    parameters.heap = 16384;
    println!(
        "{side} x {side} nodes, {tasks} tasks, heaps of {} bytes",
        parameters.heap
    );
    for manager in [
        ManagerKind::Proposed,
        ManagerKind::Microcoded,
        ManagerKind::Metes,
    ] {
        let setup = Setup {
            parameters: parameters.clone(),
            manager,
            heaps: FIRST_FIT,
            faults: Faults::default(),
            limit: 1 << 40,
            every: 0,
        };
        let programs = master_and_slaves(&workload, usize::from(side * side), tasks)?;
        let modelled = run(&setup, programs)?;
        let mean = modelled.cycles_an_event().unwrap_or(0.0);
        println!(
            "{manager}, cost model: {} cycles, {mean:.1} a call",
            modelled.cycles
        );
        let by_code = manager == ManagerKind::Proposed;
        let all = [Managed::ByPlatform, Managed::ByNobody, Managed::ByCode];
        for managed in &all[..1 + 2 * usize::from(by_code)] {
            let (programs, seen) = leon3_programs(&image, &setup.parameters, &lists, *managed)?;
            let begun = Instant::now();
            let run = run(&setup, programs)?;
            let seconds = begun.elapsed().as_secs_f64();
            let seen = seen.borrow();
            if let Some(astray) = seen.astray.first() {
                return Err(astray.clone().into());
            }
            let instructions: u64 = seen.instructions.iter().sum();
            println!(
                "{manager}, LEON3, {managed:?}: {} cycles, {:.1} a call; {instructions} instructions in {seconds:.2} s, {:.1} \
                 million a second",
                run.cycles,
                seen.cycles_a_call().unwrap_or(0.0),
                instructions as f64 / seconds / 1e6,
            );
        }
    }
    Ok(())
}
