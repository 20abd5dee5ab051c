//! How quick the simulator is: instructions a second on an image, under each model of time.
//!
//! `cargo run --release -p metes-leon3 --example speed -- IMAGE [CORES]`

use std::time::Instant;

use metes_leon3::{Configuration, Image, Machine, Model};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: speed IMAGE [CORES]")?;
    let cores = arguments.next().map_or(Ok(1), |cores| cores.parse())?;
    let image = Image::read(&std::fs::read(path)?)?;
    for model in [Model::Uniform, Model::Flat, Model::Caches] {
        let configuration = Configuration {
            cores,
            model,
            ..Configuration::default()
        };
        let mut machine = Machine::with_image(&configuration, &image)?;
        let begin = Instant::now();
        let stop = machine.run(u64::MAX, &mut ());
        let seconds = begin.elapsed().as_secs_f64();
        let text = machine.printed(0);
        let instructions = machine.instructions();
        println!(
            "{model:?}: {stop:?}, {instructions} instructions, {} cycles, {seconds:.3} s, {:.1} million a second",
            machine.cycles(),
            instructions as f64 / seconds / 1e6
        );
        for note in machine.bus.notes() {
            println!("note: {note}");
        }
        if model == Model::Uniform {
            print!("{}", String::from_utf8_lossy(&text));
        }
    }
    Ok(())
}
