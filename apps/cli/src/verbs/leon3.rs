//! `metes leon3`.

mod bound;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use metes_leon3::gdb::{self, Options, Parting};
use metes_leon3::{Configuration, Core, End, Image, Machine, Model, NoImage, Observer, Stop};
use serde_json::{Value, json};

use crate::arguments::{
    Leon3, Leon3Action, Leon3Engine, Leon3Gdb, Leon3Machine, Leon3Model, Leon3Trace,
};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output;
use crate::quantity::grouped;

/// Instructions between two looks at what was printed.
const PORTION: u64 = 5_000_000;

pub(crate) fn run(arguments: &Leon3, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        Leon3Action::Run(arguments) => run_image(&arguments.machine, arguments.engine, json),
        Leon3Action::Trace(arguments) => trace(arguments),
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

/// Runs `machine` in portions; after each, `between` may look at it, and end the run.
fn in_portions<O: Observer>(
    machine: &mut Machine,
    most: Option<u64>,
    observer: &mut O,
    mut between: impl FnMut(&mut Machine) -> Result<(), Failure>,
) -> Result<Stop, Failure> {
    let mut left = most.unwrap_or(u64::MAX);
    loop {
        let before = machine.instructions();
        let portion = left.min(PORTION);
        let stop = machine.run(portion, observer);
        // Where every core sleeps, events count, so that a limit ends that, too.
        left -= match machine.instructions() - before {
            0 => portion,
            executed => executed,
        };
        between(machine)?;
        if stop != Stop::Limit || left == 0 {
            return Ok(stop);
        }
    }
}

fn run_image(arguments: &Leon3Machine, engine: Leon3Engine, json: bool) -> Result<u8, Failure> {
    let (image, mut machine) = build(arguments)?;
    if engine == Leon3Engine::Interpret {
        machine.translate_after(None);
    }
    let mut printed = vec![Vec::new(); arguments.uarts];
    let most = arguments.max_instructions;
    let stop = in_portions(&mut machine, most, &mut (), |machine| {
        for (number, all) in printed.iter_mut().enumerate() {
            let new = machine.printed(number);
            if number == 0 && !json {
                print(&new)?;
            } else {
                all.extend(new);
            }
        }
        Ok(())
    })?;
    if json {
        output::json(&document(&image, &machine, &stop, &printed))?;
    } else {
        for note in machine.bus.notes() {
            output::note(note);
        }
        output::note(&closing(&image, &machine, &stop));
    }
    Ok(match stop {
        Stop::End(End::Halt { .. }) | Stop::Limit | Stop::Observer { .. } => 0,
        Stop::End(_) => DOES_NOT_HOLD,
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

/// How the run ended, in a word.
fn word(stop: &Stop) -> &'static str {
    match stop {
        Stop::End(End::Halt { .. }) => "halt",
        Stop::End(_) => "error",
        Stop::Limit | Stop::Observer { .. } => "limit",
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
            let at = place(image, machine.cores()[*core].pc);
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

fn closing(image: &Image, machine: &Machine, stop: &Stop) -> String {
    let counts = format!(
        "{} instructions, {} cycles ({})",
        grouped(machine.instructions()),
        grouped(machine.cycles()),
        machine.timing()
    );
    match (stop, reason(image, machine, stop)) {
        (_, Some((reason, core))) => {
            let registers = core.map(|core| registers(&machine.cores()[core]));
            format!("{reason}; {counts}{}", registers.unwrap_or_default())
        }
        (Stop::End(_), None) => format!("halted; {counts}"),
        _ => format!("the limit of instructions is reached; {counts}"),
    }
}

/// Registers of a core as a table.
fn registers(core: &Core) -> String {
    let all = core.registers.all();
    let mut text = format!(
        "\npc {:08x} npc {:08x} psr {:08x} wim {:08x} tbr {:08x} y {:08x}",
        core.pc,
        core.npc,
        core.psr(),
        core.wim,
        core.tbr,
        core.y
    );
    for (name, values) in ["g", "o", "l", "i"].iter().zip(all.chunks(8)) {
        let values: Vec<String> = values.iter().map(|value| format!("{value:08x}")).collect();
        text += &format!("\n{name}0-7 {}", values.join(" "));
    }
    text
}

fn document(image: &Image, machine: &Machine, stop: &Stop, printed: &[Vec<u8>]) -> Value {
    let uart: Vec<_> = printed
        .iter()
        .map(|text| String::from_utf8_lossy(text))
        .collect();
    let cores: Vec<Value> = machine.cores().iter().map(core_document).collect();
    let mut document = json!({
        "uart": uart,
        "instructions": machine.instructions(),
        "cycles": machine.cycles(),
        "end": word(stop),
        "model": machine.timing(),
        "cores": cores,
        "notes": machine.bus.notes(),
    });
    if let Some((reason, core)) = reason(image, machine, stop) {
        document["reason"] = reason.into();
        if let Some(core) = core {
            document["registers"] = register_document(&machine.cores()[core]);
        }
    }
    document
}

fn core_document(core: &Core) -> Value {
    json!({
        "instructions": core.instructions,
        "cycles": core.cycles,
        "traps": core.taken,
    })
}

/// Registers by their names, in hexadecimal.
fn register_document(core: &Core) -> Value {
    let mut document = serde_json::Map::new();
    let mut add = |name: String, value: u32| document.insert(name, format!("{value:08x}").into());
    for (name, value) in [
        ("pc", core.pc),
        ("npc", core.npc),
        ("psr", core.psr()),
        ("wim", core.wim),
        ("tbr", core.tbr),
        ("y", core.y),
    ] {
        add(name.to_owned(), value);
    }
    for (number, value) in core.registers.all().into_iter().enumerate() {
        let group = ["g", "o", "l", "i"][number / 8];
        add(format!("{group}{}", number % 8), value);
    }
    document.into()
}

fn trace(arguments: &Leon3Trace) -> Result<u8, Failure> {
    let (image, mut machine) = build(&arguments.machine)?;
    let mut trace =
        metes_leon3::tools::Trace::new(BufWriter::new(io::stdout().lock()), arguments.traps);
    let most = arguments.machine.max_instructions;
    let stop = in_portions(&mut machine, most, &mut trace, |_| Ok(()))?;
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
