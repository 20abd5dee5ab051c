//! The same image, both cores, on QEMU and on the simulator: the telemetry line says the same, byte for byte.
//!
//! QEMU's LEON3 has the cores, the timers, the interrupt controller and the first UART of the unit; where the unit has
//! more, both read zeros: no probes, no supplies, no flash. The simulator follows QEMU's clock (an instruction takes 32 ns,
//! timers tick at 40 MHz), so every time in every packet is the same, too.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use metes_leon3::{Configuration, Machine, Model, Stop};

/// Bytes that are compared: some three minutes of housekeeping.
const BYTES: usize = 20_000;

/// QEMU 10, beside the build, where `scripts/setup` lays it.
fn qemu() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let found = test.ancestors().skip(1).take(4).find_map(|folder| {
        let program = folder.join("qemu-sparc/qemu-system-sparc");
        program.is_file().then_some(program)
    });
    found.expect("QEMU 10 for SPARC is missing; run scripts/setup")
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn telemetry_is_that_of_qemu() {
    let (image, path) = metes_duster::image(None).expect("the flight software is built");
    let folder = tempfile::tempdir().expect("a folder");
    let line = folder.path().join("line");
    let child = Command::new(qemu())
        .args(["-M", "leon3_generic", "-smp", "2", "-m", "64M"])
        .args([
            "-nographic",
            "-monitor",
            "none",
            "-icount",
            "shift=5,sleep=off",
        ])
        .arg("-serial")
        .arg(format!("file:{}", line.display()))
        .arg("-kernel")
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("QEMU starts");
    let running = Running(child);
    let begun = Instant::now();
    let expected = loop {
        let bytes = std::fs::read(&line).unwrap_or_default();
        if bytes.len() >= BYTES {
            break bytes;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "QEMU has printed {} bytes",
            bytes.len()
        );
        std::thread::sleep(Duration::from_millis(100));
    };
    drop(running);

    let configuration = Configuration {
        cores: 2,
        memory: 64 << 20,
        model: Model::Uniform,
        frequency: 31_250_000,
        timer_frequency: 40_000_000,
        uart_depth: 32,
        ..Configuration::default()
    };
    let mut machine = Machine::with_image(&configuration, &image).expect("the image fits");
    let mut printed = Vec::new();
    while printed.len() < BYTES {
        assert_eq!(machine.run(10_000_000, &mut ()), Stop::Limit);
        printed.extend(machine.printed(0));
        assert!(
            machine.cycles() < 31_250_000 * 1000,
            "it has printed {} bytes",
            printed.len()
        );
    }
    let differs = expected
        .iter()
        .zip(&printed)
        .position(|(theirs, ours)| theirs != ours);
    let around =
        |bytes: &[u8], at: usize| bytes[at.saturating_sub(64)..(at + 64).min(BYTES)].to_vec();
    let differs = differs.map(|at| (at, around(&expected, at), around(&printed, at)));
    assert_eq!(differs, None);
    // Packets of both cores' life are in it: one that only boots would say less.
    assert!(
        expected
            .windows(4)
            .any(|bytes| bytes == [0x20, 0x03, 0x19, 0x00])
    );
}
