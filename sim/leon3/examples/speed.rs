//! How quick the simulator is: instructions a second on an image, under each model of time, by each engine.
//!
//! `cargo run --release -p metes-leon3 --features translate --example speed -- IMAGE [CORES]`

use std::time::Instant;

use metes_leon3::{Configuration, Image, Machine, Model};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: speed IMAGE [CORES]")?;
    let cores = arguments.next().map_or(Ok(1), |cores| cores.parse())?;
    let image = Image::read(&std::fs::read(path)?)?;
    for (number, model) in [Model::Uniform, Model::Flat, Model::Caches]
        .into_iter()
        .enumerate()
    {
        let configuration = Configuration {
            cores,
            model,
            ..Configuration::default()
        };
        let machine = || Machine::with_image(&configuration, &image);
        #[cfg(feature = "translate")]
        if model != Model::Caches {
            let mut machine = machine()?;
            machine.translate_after(None);
            run("interpreted", model, machine, false);
        }
        let how = if cfg!(feature = "translate") && model != Model::Caches {
            "translated"
        } else {
            "interpreted"
        };
        run(how, model, machine()?, number == 0);
    }
    Ok(())
}

fn run(how: &str, model: Model, mut machine: Machine, shows: bool) {
    let begin = Instant::now();
    let stop = machine.run(u64::MAX, &mut ());
    let seconds = begin.elapsed().as_secs_f64();
    let instructions = machine.instructions();
    println!(
        "{model:?}, {how}: {stop:?}, {instructions} instructions, {} cycles, {seconds:.3} s, {:.1} million a second",
        machine.cycles(),
        instructions as f64 / seconds / 1e6
    );
    if shows {
        for note in machine.bus.notes() {
            println!("note: {note}");
        }
        print!("{}", String::from_utf8_lossy(&machine.printed(0)));
    }
}
