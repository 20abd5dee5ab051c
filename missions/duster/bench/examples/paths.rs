//! The longest paths of the flight software's tasks: `cargo run -p metes-duster --example paths -- IMAGE [SYSTEM.toml]`.

use metes_duster_system::System;
use metes_leon3::Image;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("say which image")?;
    let image = Image::read(&std::fs::read(file)?)?;
    let system = match arguments.next() {
        Some(file) => System::read_file(file.as_ref())?,
        None => System::of_mission(),
    };
    for bound in metes_duster::check::paths(&system, &image) {
        match bound.path {
            Ok(path) => println!(
                "{:12} {:7} instructions {:8} cycles, stack {:?}",
                bound.task, path.instructions, path.cycles, path.stack
            ),
            Err(why) => println!("{:12} {why}", bound.task),
        }
    }
    Ok(())
}
