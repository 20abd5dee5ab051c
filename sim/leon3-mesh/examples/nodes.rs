//! Runs an image whose cores are nodes of one heap (`boards/leon3`, `metes-leon3-mesh`), in RAM that all share or in the memory
//! of a mesh, and says how quickly.
//!
//!     nodes IMAGE [--cores N] [--mesh] [--rounds N] [--quantum CYCLES] [--model uniform|flat|caches] [--interpret]
//!
//! Hot code is translated, unless `--interpret` says otherwise.
//!
//! What the image prints goes to stdout, figures of the run to stderr. Exit status: 0 halted, 1 any other end, 2 bad
//! arguments.
//!
//! *Invariant:* a figure is printed only if it was counted in this run.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use metes_leon3::{Configuration, End, Image, Machine, Model, Stop};
use metes_leon3_mesh::{MeshMemory, Settings, attach, memory};

/// What is asked for.
struct Asked {
    image: String,
    cores: usize,
    mesh: bool,
    rounds: Option<u32>,
    quantum: u64,
    model: Model,
    interpret: bool,
}

fn main() -> ExitCode {
    match asked().and_then(|asked| run(&asked)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("nodes: {error}");
            ExitCode::from(2)
        }
    }
}

fn asked() -> Result<Asked, String> {
    let mut words = std::env::args().skip(1);
    let mut asked = Asked {
        image: String::new(),
        cores: 4,
        mesh: false,
        rounds: None,
        quantum: 64,
        model: Model::Flat,
        interpret: false,
    };
    while let Some(word) = words.next() {
        let mut number = || {
            let given = words.next().and_then(|word| word.parse::<u32>().ok());
            given.ok_or(format!("{word} needs a number"))
        };
        match word.as_str() {
            "--cores" => asked.cores = number()? as usize,
            "--rounds" => asked.rounds = Some(number()?),
            "--quantum" => asked.quantum = number()?.into(),
            "--mesh" => asked.mesh = true,
            "--interpret" => asked.interpret = true,
            "--model" => {
                asked.model = match words.next().as_deref() {
                    Some("uniform") => Model::Uniform,
                    Some("flat") => Model::Flat,
                    Some("caches") => Model::Caches,
                    _ => return Err("--model needs one of: uniform, flat, caches".to_owned()),
                }
            }
            option if option.starts_with('-') => return Err(format!("{option} is no option")),
            _ if asked.image.is_empty() => asked.image = word,
            _ => return Err(format!("{word}: give one image")),
        }
    }
    if asked.image.is_empty() {
        return Err("give an image; boards/run leon3 builds one".to_owned());
    }
    Ok(asked)
}

fn run(asked: &Asked) -> Result<ExitCode, String> {
    let tell = |error: &dyn std::error::Error| format!("{}: {error}", asked.image);
    let bytes = std::fs::read(&asked.image).map_err(|error| tell(&error))?;
    let image = Image::read(&bytes).map_err(|error| tell(&error))?;
    let configuration = Configuration {
        cores: asked.cores,
        quantum: asked.quantum,
        model: asked.model,
        memory: 16 << 20,
        ..Configuration::default()
    };
    let mut machine = Machine::with_image(&configuration, &image).map_err(|error| tell(&error))?;
    let mut set = |symbol: &str, word: u32| {
        let place = image.symbol(symbol);
        let place = place.ok_or(format!("{} has no word {symbol}", asked.image))?;
        let written = machine.bus.write_image(place.address, &word.to_be_bytes());
        written.map_err(|error| tell(&error))
    };
    set("NODES", asked.cores as u32)?;
    if let Some(rounds) = asked.rounds {
        set("ROUNDS", rounds)?;
    }
    if asked.mesh {
        set("SHARED", memory::BASE)?;
        set("HOMES", memory::REGISTERS)?;
        let columns = (1..).find(|side| side * side >= asked.cores).unwrap_or(1);
        let settings = Settings::new(columns, asked.cores.div_ceil(columns), 4 << 20);
        attach(&mut machine, &settings).map_err(|error| tell(&error))?;
    }
    if asked.interpret {
        machine.translate_after(None);
    }
    let begun = Instant::now();
    let stop = machine.run(u64::MAX, &mut ());
    let seconds = begun.elapsed().as_secs_f64();
    let printed = machine.printed(0);
    std::io::stdout()
        .write_all(&printed)
        .map_err(|error| tell(&error))?;
    let instructions = machine.instructions();
    let engine = if asked.interpret {
        "interpreted"
    } else {
        "translated"
    };
    eprintln!(
        "{engine}: {instructions} instructions, {} cycles, {seconds:.3} s: {:.1} million instructions a second",
        machine.cycles(),
        instructions as f64 / seconds / 1e6,
    );
    if let Some(memory) = machine.bus.device::<MeshMemory>(0) {
        eprintln!("{:?}", memory.counts());
    }
    for note in machine.bus.notes() {
        eprintln!("nodes: {note}");
    }
    Ok(match stop {
        Stop::End(End::Halt { .. }) => ExitCode::SUCCESS,
        stop => {
            eprintln!("nodes: {stop:?}");
            ExitCode::FAILURE
        }
    })
}
