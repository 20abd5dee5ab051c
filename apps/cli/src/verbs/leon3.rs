//! `metes leon3`.

mod bound;
mod looks;
mod run;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use metes_leon3::gdb::{self, Options, Parting};
use metes_leon3::tools::disassemble;
use metes_leon3::{Configuration, End, Image, Machine, Model, NoImage, Observer, Stop};
use serde_json::json;

use crate::arguments::{Leon3, Leon3Action, Leon3Gdb, Leon3Machine, Leon3Model, Leon3Trace};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::quantity::grouped;
use crate::{interrupt, output};

/// Instructions between two looks at what was printed.
const PORTION: u64 = 5_000_000;

pub(crate) fn run(arguments: &Leon3, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        Leon3Action::Run(arguments) => run::run(arguments, json),
        Leon3Action::Trace(arguments) => trace(arguments),
        Leon3Action::Profile(arguments) => looks::profile(arguments, json),
        Leon3Action::Cover(arguments) => looks::cover(arguments, json),
        Leon3Action::Stack(arguments) => looks::stack(arguments, json),
        Leon3Action::Gdb(arguments) => debug(arguments, json),
        Leon3Action::Bound(arguments) => bound::run(arguments, json),
    }
}

/// What is wrong with a file, by its name.
fn about(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::input(format!("{}: {error}", output::name(path)))
}

fn read(path: &Path) -> Result<Image, Failure> {
    let bytes = std::fs::read(path).map_err(|error| Failure::io("read", path, error))?;
    Image::read(&bytes).map_err(|error| about(path, error))
}

/// The image, and the machine with it.
fn build(arguments: &Leon3Machine) -> Result<(Image, Machine), Failure> {
    let path = &arguments.image;
    let image = read(path)?;
    let configuration = configuration(arguments)?;
    let machine = Machine::with_image(&configuration, &image).map_err(|error| match error {
        NoImage::Impossible(error) => Failure::input(error.to_string()),
        error => about(path, error),
    })?;
    Ok((image, machine))
}

fn configuration(arguments: &Leon3Machine) -> Result<Configuration, Failure> {
    let memory = usize::try_from(arguments.memory)
        .map_err(|_| Failure::input("so much memory no machine has; give --memory up to 1GiB"))?;
    Ok(Configuration {
        cores: arguments.cores,
        windows: arguments.windows,
        memory,
        model: match arguments.model {
            Leon3Model::Uniform => Model::Uniform,
            Leon3Model::Flat => Model::Flat,
            Leon3Model::Caches => Model::Caches,
        },
        quantum: arguments.quantum,
        frequency: arguments.frequency,
        timer_frequency: arguments.timer_frequency.unwrap_or(arguments.frequency),
        timer_interrupt: arguments.timer_interrupt,
        uarts: arguments.uarts,
        uart_depth: arguments.uart_depth,
        extended_interrupt: arguments.extended_interrupt,
        watchdog: arguments.watchdog,
        float: !arguments.no_float,
        mac: arguments.mac,
        ..Configuration::default()
    })
}

/// Goes on, unless a signal has asked for the end.
fn unless(asked: &AtomicBool) -> ControlFlow<()> {
    if asked.load(Ordering::Relaxed) {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// Runs `machine` in portions of so many instructions; after each, `between` may look at it and at `observer`, and end
/// the run.
fn in_portions<O: Observer>(
    machine: &mut Machine,
    most: Option<u64>,
    portion: u64,
    observer: &mut O,
    mut between: impl FnMut(&mut Machine, &mut O) -> Result<ControlFlow<()>, Failure>,
) -> Result<Stop, Failure> {
    let mut left = most.unwrap_or(u64::MAX);
    loop {
        // What was allowed is used up, by instructions or, where every core sleeps, by events.
        let portion = left.min(portion);
        let stop = machine.run(portion, observer);
        left -= portion;
        let go_on = between(machine, observer)?.is_continue();
        if stop != Stop::Limit || left == 0 || !go_on {
            return Ok(stop);
        }
    }
}

/// As [`in_portions`], for a tool whose findings go to stdout: what the image prints goes to stderr. A signal ends the run,
/// and what was found until then is told.
fn look<O: Observer>(
    machine: &mut Machine,
    most: Option<u64>,
    observer: &mut O,
) -> Result<Stop, Failure> {
    let asked = interrupt::flag()?;
    in_portions(machine, most, PORTION, observer, |machine, _| {
        // A closed stderr leaves nobody to tell.
        let _ = io::stderr().write_all(&machine.printed(0));
        Ok(unless(&asked))
    })
}

/// Bytes of a serial line as they are; of a terminal nothing is controlled but lines and tabs.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let shown: Vec<u8> = if stdout.is_terminal() {
        let plain = |byte: &u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
        bytes.iter().copied().filter(plain).collect()
    } else {
        bytes.to_vec()
    };
    match stdout.write_all(&shown).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::io("write to", Path::new("standard output"), error))
        }
        _ => Ok(()),
    }
}

/// Why it ended, in words, and on which core.
pub(crate) fn reason(
    image: &Image,
    machine: &Machine,
    stop: &Stop,
) -> Option<(String, Option<usize>)> {
    match stop {
        Stop::End(End::Error { core, trap }) => {
            let pc = machine.cores()[*core].pc;
            let mut at = place(image, pc);
            if let Some(word) = machine.bus.word(pc) {
                at += &format!(" ({})", disassemble(word, pc));
            }
            let why = trap.reason();
            let number = trap.0;
            Some((
                format!(
                    "error mode of core {core} at {at}: {why} (trap {number:#04x}) while traps were off"
                ),
                Some(*core),
            ))
        }
        Stop::End(End::Idle) => Some((
            "every core sleeps, and no device or timer will wake one".to_owned(),
            None,
        )),
        Stop::End(End::Watchdog) => Some(("the watchdog ran out".to_owned(), None)),
        _ => None,
    }
}

/// An address, and the function that it is in.
pub(crate) fn place(image: &Image, address: u32) -> String {
    match image.symbol_at(address) {
        Some(symbol) => {
            let name = metes_quantity::printable(&symbol.name);
            format!("{address:#010x} <{name}+{:#x}>", address - symbol.address)
        }
        None => format!("{address:#010x}"),
    }
}

fn trace(arguments: &Leon3Trace) -> Result<u8, Failure> {
    let (image, mut machine) = build(&arguments.machine)?;
    let mut trace =
        metes_leon3::tools::Trace::new(BufWriter::new(io::stdout().lock()), arguments.traps);
    let most = arguments.machine.max_instructions;
    let go_on = |_: &mut Machine, _: &mut _| Ok(ControlFlow::Continue(()));
    let stop = in_portions(&mut machine, most, PORTION, &mut trace, go_on)?;
    match trace.finish() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(Failure::io("write to", Path::new("standard output"), error));
        }
        _ => {}
    }
    if let Some((reason, _)) = reason(&image, &machine, &stop) {
        output::note(&reason);
        return Ok(DOES_NOT_HOLD);
    }
    Ok(0)
}

/// Stdout, as a serial line prints to it.
struct Printer;

impl Write for Printer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        print(bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn debug(arguments: &Leon3Gdb, json: bool) -> Result<u8, Failure> {
    let (image, mut machine) = build(&arguments.machine)?;
    let configuration = machine.configuration().clone();
    let options = Options {
        address: arguments.listen,
        listening: Box::new(|address| {
            output::note(&format!("waiting for gdb: target remote {address}"));
        }),
        uart: if json {
            Box::new(io::stderr())
        } else {
            Box::new(Printer)
        },
        reset: Some(Box::new(|| {
            Machine::with_image(&configuration, &image).expect("it was made before")
        })),
    };
    let parting =
        gdb::serve(&mut machine, options).map_err(|error| Failure::input(error.to_string()))?;
    let parting = match parting {
        Parting::Ended { signal: 0 } => "halt",
        Parting::Ended { .. } => "error",
        Parting::Detached => "detached",
        Parting::Killed => "killed",
        Parting::Lost => "lost",
    };
    if json {
        output::json(&json!({
            "end": parting,
            "instructions": machine.instructions(),
            "cycles": machine.cycles(),
        }))?;
    } else {
        let instructions = grouped(machine.instructions());
        output::note(&format!(
            "gdb and the machine parted: {parting}, after {instructions} instructions"
        ));
    }
    Ok(0)
}
