//! The longest paths of the flight software's tasks: `cargo run -p metes-duster --example paths -- IMAGE [all]`;
//! with `all`, of every function.

use metes_duster_system::System;
use metes_leon3::Image;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("say which image")?;
    let image = Image::read(&std::fs::read(file)?)?;
    for bound in metes_duster::check::paths(&System::of_mission(), &image) {
        match bound.path {
            Ok(path) => println!(
                "{:12} {:7} instructions {:8} cycles, stack {:?}",
                bound.task, path.instructions, path.cycles, path.stack
            ),
            Err(why) => println!("{:12} {why}", bound.task),
        }
    }
    if std::env::args().nth(2).is_some() {
        let system = System::of_mission();
        for symbol in image.symbols() {
            let path = metes_duster::check::path_of(&system, &symbol.name, None, &image);
            match path {
                Ok(path) => println!("{:8} {:8} {}", path.instructions, path.cycles, symbol.name),
                Err(why) => println!("       - {}: {why}", symbol.name),
            }
        }
    }
    Ok(())
}
