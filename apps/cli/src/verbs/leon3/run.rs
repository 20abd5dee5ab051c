//! `metes leon3 run`: an image, from its beginning or from a snapshot, to its end or to a place that is watched.

use std::fs::File;
use std::io;
use std::path::Path;

use metes_leon3::tools::{Point, Watch, watch::Hit};
use metes_leon3::{Core, End, Image, Machine, Observer, Stop};
use metes_trace::whole;
use serde_json::{Value, json};

use super::{PORTION, about, build, in_portions, place, print, read, reason, unless};
use crate::arguments::{Leon3Engine, Leon3Run};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::own::Form;
use crate::quantity::grouped;
use crate::{interrupt, output};

/// Instructions between two looks at what was watched: what happens in between is kept.
const WATCHED_PORTION: u64 = 100_000;
/// Hits that a document holds; all are counted.
const MOST_HITS: usize = 10_000;

pub(super) fn run(arguments: &Leon3Run, json: bool) -> Result<u8, Failure> {
    let (image, mut machine) = begin(arguments)?;
    if arguments.engine == Leon3Engine::Interpret {
        machine.translate_after(None);
    }
    let points = points(arguments, &image)?;
    if let Some(path) = &arguments.snapshot {
        output::writable(path, Form::Snapshot)?;
    }
    let mut run = Run {
        image: &image,
        json,
        most: arguments.machine.max_instructions,
        printed: vec![Vec::new(); machine.configuration().uarts],
        hits: Vec::new(),
        hit: 0,
    };
    let stop = if points.is_empty() {
        run.go_to_end(&mut machine, PORTION, &mut (), |()| Vec::new())?
    } else {
        let mut watch = Watch::new(points);
        run.go_to_end(&mut machine, WATCHED_PORTION, &mut watch, Watch::hits)?
    };
    if json {
        output::json(&run.document(&machine, &stop))?;
    } else {
        for note in machine.bus.notes() {
            output::note(note);
        }
        output::note(&closing(&image, &machine, &stop));
    }
    // Last, so that a full disk takes nothing from what the run has to tell.
    if let Some(path) = &arguments.snapshot {
        whole::replace(path, |part| machine.snapshot(File::create(part)?))
            .map_err(|error: io::Error| Failure::io("write", path, error))?;
    }
    Ok(match stop {
        Stop::End(End::Halt { .. }) | Stop::Limit | Stop::Observer { .. } => 0,
        Stop::End(_) => DOES_NOT_HOLD,
    })
}

/// The image, and the machine as the run finds it.
fn begin(arguments: &Leon3Run) -> Result<(Image, Machine), Failure> {
    let (image, mut machine) = match &arguments.resume {
        Some(path) => (read(&arguments.machine.image)?, resume(path)?),
        None => build(&arguments.machine)?,
    };
    if let Some(path) = &arguments.uart_input {
        let bytes = std::fs::read(path).map_err(|error| Failure::io("read", path, error))?;
        let frequency = u64::from(machine.configuration().frequency);
        let begin = machine.cycles();
        if let Some(uart) = machine.uart(0) {
            for (number, byte) in (1..).zip(bytes) {
                // Ten bits each: a start bit, eight of data, a stop bit.
                let cycles = 10 * number * frequency / u64::from(arguments.uart_rate);
                uart.arrive(begin + cycles, byte);
            }
        }
    }
    Ok((image, machine))
}

fn resume(path: &Path) -> Result<Machine, Failure> {
    let file = File::open(path).map_err(|error| Failure::io("read", path, error))?;
    Machine::resume(file).map_err(|error| about(path, error))
}

fn points(arguments: &Leon3Run, image: &Image) -> Result<Vec<Point>, Failure> {
    let point = |text: &String, pauses| match Point::parse(text, image) {
        Ok(point) => Ok(Point { pauses, ..point }),
        Err(error) => Err(Failure::input(error.to_string())),
    };
    let watched = arguments.watch.iter().map(|text| point(text, false));
    let stops = arguments.stop.iter().map(|text| point(text, true));
    watched.chain(stops).collect()
}

/// A run under way, and what it has said.
struct Run<'a> {
    image: &'a Image,
    json: bool,
    most: Option<u64>,
    /// Of each serial line, but for what is on stdout.
    printed: Vec<Vec<u8>>,
    hits: Vec<Hit>,
    /// All hits.
    hit: u64,
}

impl Run<'_> {
    fn go_to_end<O: Observer>(
        &mut self,
        machine: &mut Machine,
        portion: u64,
        observer: &mut O,
        hits: impl Fn(&mut O) -> Vec<Hit>,
    ) -> Result<Stop, Failure> {
        let asked = interrupt::flag()?;
        in_portions(
            machine,
            self.most,
            portion,
            observer,
            |machine, observer| {
                self.take(machine, hits(observer))?;
                Ok(unless(&asked))
            },
        )
    }

    fn take(&mut self, machine: &mut Machine, hits: Vec<Hit>) -> Result<(), Failure> {
        for (number, all) in self.printed.iter_mut().enumerate() {
            let new = machine.printed(number);
            if number == 0 && !self.json {
                print(&new)?;
            } else {
                all.extend(new);
            }
        }
        self.hit += hits.len() as u64;
        if self.json {
            let room = MOST_HITS - self.hits.len();
            self.hits.extend(hits.into_iter().take(room));
        } else {
            for hit in hits {
                output::note(&hit.line(self.image));
            }
        }
        Ok(())
    }

    fn document(&self, machine: &Machine, stop: &Stop) -> Value {
        let uart: Vec<_> = self
            .printed
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
        if self.hit > 0 {
            let lines: Vec<String> = self.hits.iter().map(|hit| hit.line(self.image)).collect();
            document["hits"] = lines.into();
            document["hits_in_all"] = self.hit.into();
        }
        if let Some((reason, core)) = reason(self.image, machine, stop) {
            document["reason"] = reason.into();
            if let Some(core) = core {
                document["registers"] = register_document(&machine.cores()[core]);
            }
        }
        document
    }
}

/// How the run ended, in a word.
fn word(stop: &Stop) -> &'static str {
    match stop {
        Stop::End(End::Halt { .. }) => "halt",
        Stop::End(_) => "error",
        Stop::Observer { .. } => "stop",
        Stop::Limit => "limit",
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
        (Stop::Observer { core }, None) => {
            let at = place(image, machine.cores()[*core].pc);
            format!("stopped before core {core} executes {at}; {counts}")
        }
        _ => format!("the run was ended before the image was; {counts}"),
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
