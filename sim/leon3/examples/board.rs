//! Runs an image as QEMU does under `-icount shift=7`: an instruction takes 128 ns, timers tick at 40 MHz.
//!
//! What the first serial line prints goes to stdout. Exit status: 0 halted, 1 any other end.
//! `cargo run --release -p metes-leon3 --example board -- IMAGE [CORES]`

use std::io::Write;
use std::process::ExitCode;

use metes_leon3::{Configuration, End, Image, Machine, Model, Stop};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: board IMAGE [CORES]")?;
    let cores = arguments.next().map_or(Ok(1), |cores| cores.parse())?;
    let image = Image::read(&std::fs::read(path)?)?;
    let configuration = Configuration {
        cores,
        model: Model::Uniform,
        frequency: 7_812_500,
        timer_frequency: 40_000_000,
        ..Configuration::default()
    };
    let mut machine = Machine::with_image(&configuration, &image)?;
    let stop = machine.run(u64::MAX, &mut ());
    std::io::stdout().write_all(&machine.printed(0))?;
    for note in machine.bus.notes() {
        eprintln!("board: {note}");
    }
    match stop {
        Stop::End(End::Halt { .. }) => Ok(ExitCode::SUCCESS),
        stop => {
            eprintln!("board: {stop:?}");
            Ok(ExitCode::FAILURE)
        }
    }
}
