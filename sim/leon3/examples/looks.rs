//! What looking on costs: instructions a second with each tool beside none.
//!
//! `cargo run --release -p metes-leon3 --example looks -- IMAGE [CORES]`

use std::error::Error;
use std::time::Instant;

use metes_leon3::tools::{Coverage, Depth, Point, Profile, Trace, Watch};
use metes_leon3::{Configuration, Image, Machine, Observer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: looks IMAGE [CORES]")?;
    let cores = arguments.next().map_or(Ok(1), |cores| cores.parse())?;
    let image = Image::read(&std::fs::read(path)?)?;
    let configuration = Configuration {
        cores,
        ..Configuration::default()
    };
    let run = |name: &str, observer: &mut dyn FnMut(&mut Machine)| -> Result<(), Box<dyn Error>> {
        let mut machine = Machine::with_image(&configuration, &image)?;
        let begin = Instant::now();
        observer(&mut machine);
        let seconds = begin.elapsed().as_secs_f64();
        let rate = machine.instructions() as f64 / seconds / 1e6;
        println!("{name}: {rate:.1} million instructions a second");
        Ok(())
    };
    run("none", &mut |machine| look(machine, ()))?;
    let sink = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    run("trace", &mut |machine| {
        look(machine, Trace::new(&sink, false))
    })?;
    run("profile", &mut |machine| {
        look(machine, Profile::new(&image))
    })?;
    run("coverage", &mut |machine| {
        look(machine, Coverage::new(&image))
    })?;
    run("depth", &mut |machine| look(machine, Depth::new(&image)))?;
    let memory = vec![Point::parse("w:0x40ff0000", &image)?];
    run("watch memory", &mut |machine| {
        look(machine, Watch::new(memory.clone()))
    })?;
    Ok(())
}

fn look(machine: &mut Machine, mut observer: impl Observer) {
    machine.run(200_000_000, &mut observer);
}
