//! The declaration as constants: tasks, partitions, capacities of buffers, clocks.
//!
//! *Invariant:* what is compiled in is what `system.toml` says, and nothing else is.

use std::fmt::Write as _;
use std::path::Path;

use metes_duster_system::{System, spi_clock, uart_scaler};

fn main() {
    let out = std::env::var_os("OUT_DIR").expect("cargo says where");
    let file = Path::new(&out).join("declared.rs");
    std::fs::write(file, declared(&System::of_mission())).expect("the file can be written");
    println!("cargo:rerun-if-changed=build.rs");
}

fn declared(system: &System) -> String {
    let mut text = String::new();
    let out = &mut text;
    let name = |name: &str| name.to_uppercase().replace('-', "_");
    constant(
        out,
        "Hertz of the cores.",
        "FREQUENCY: u32",
        system.platform.frequency,
    );
    constant(out, "Bytes of RAM.", "MEMORY: u32", system.platform.memory);
    constant(out, "Bytes of flash.", "FLASH: u32", system.platform.flash);
    constant(
        out,
        "Bytes of a core's stack.",
        "STACK: usize",
        system.platform.stack,
    );
    constant(
        out,
        "Microseconds of a tick.",
        "TICK: u32",
        system.platform.tick,
    );
    constant(
        out,
        "Microseconds to a reset.",
        "WATCHDOG: u32",
        system.platform.watchdog,
    );
    constant(
        out,
        "Bytes of code and constants that are looked at in an activation.",
        "IMAGE_CHECK: usize",
        system.platform.image_check,
    );
    constant(
        out,
        "Samples in a science packet.",
        "SAMPLES_A_PACKET: usize",
        system.science.samples_a_packet,
    );
    for it in &system.buffers {
        let what = format!("Capacity of the buffer `{}`.", it.name);
        constant(
            out,
            &what,
            &format!("{}_CAPACITY: usize", name(&it.name)),
            it.capacity,
        );
    }
    tasks(out, system);
    partitions(out, system);
    let buses = system.buses.iter().map(|it| {
        let clock = spi_clock(system.platform.frequency, it.clock).expect("a clock that the controller can have");
        format!(
            "Bus {{ frames: {}, rate: {}, rate_min: {}, fifo: {}, modulus: {}, halved: {}, sixteenth: {} }}",
            it.frames, it.rate, it.rate_min, it.fifo, clock.modulus, clock.halved, clock.sixteenth
        )
    });
    table(
        out,
        "The probes' buses, in the order of [`crate::Probe`].",
        "BUSES: [Bus; 3]",
        buses,
    );
    let lines = system.lines.iter().map(|it| {
        let (scaler, _) = uart_scaler(system.platform.frequency, it.baud);
        format!("Line {{ uart: {}, scaler: {scaler} }}", it.uart)
    });
    table(
        out,
        "The serial lines: telemetry, high voltage, low voltage, log.",
        &format!("LINES: [Line; {}]", system.lines.len()),
        lines,
    );
    text
}

fn tasks(out: &mut String, system: &System) {
    for core in 0..2 {
        let all: Vec<_> = system
            .tasks
            .iter()
            .filter(|task| task.core == core)
            .collect();
        let rows = all.iter().map(|it| {
            format!(
                "Timing {{ name: {:?}, period: {}, offset: {}, deadline: {}, budget: {} }}",
                it.name,
                it.period / system.platform.tick,
                it.offset / system.platform.tick,
                it.deadline,
                it.budget
            )
        });
        let what = format!("The tasks of core {core}, the most urgent first.");
        table(
            out,
            &what,
            &format!("TASKS_{core}: [Timing; {}]", all.len()),
            rows,
        );
        for (number, it) in all.iter().enumerate() {
            let what = format!("Where `{}` stands among the tasks of core {core}.", it.name);
            let name = it.name.to_uppercase().replace('-', "_");
            constant(out, &what, &format!("TASK_{name}: usize"), number);
        }
    }
}

fn partitions(out: &mut String, system: &System) {
    let rows = system.partitions.iter().map(|it| {
        let demands: Vec<_> = it
            .demands
            .iter()
            .map(|demand| (demand.size, demand.live))
            .collect();
        format!(
            "Extent {{ name: {:?}, size: {}, demands: &{demands:?} }}",
            it.name, it.size
        )
    });
    let count = system.partitions.len();
    table(
        out,
        "The partitions.",
        &format!("PARTITIONS: [Extent; {count}]"),
        rows,
    );
    for (number, it) in system.partitions.iter().enumerate() {
        let what = format!("The partition `{}`.", it.name);
        let name = it.name.to_uppercase().replace('-', "_");
        constant(out, &what, &format!("PARTITION_{name}: usize"), number);
        assert_eq!(
            it.heap, "tlsf:second_level=8",
            "the flight software is compiled with one heap"
        );
    }
}

fn constant(out: &mut String, what: &str, name: &str, value: impl std::fmt::Display) {
    writeln!(out, "/// {what}\npub const {name} = {value};").expect("text");
}

fn table(out: &mut String, what: &str, name: &str, rows: impl Iterator<Item = String>) {
    writeln!(out, "/// {what}\npub const {name} = [").expect("text");
    for row in rows {
        writeln!(out, "    {row},").expect("text");
    }
    writeln!(out, "];").expect("text");
}
