//! The four kernels on a picture: figures of what they allocate, or the operations of one for `metes mesh run`.
//!
//!     kernels [PICTURE] [--crop SIDE] [--operations KERNEL --nodes N]
//!
//! A picture is a PNG or PGM file, or a folder in which scikit-image is installed, of which it takes `camera.png`;
//! without one a picture is drawn. Of a picture the square of SIDE pixels from its upper left corner is taken (256).
//!
//! *Invariant:* what is printed was computed in this run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use metes_kernels::{Figures, NAMES, Picture, TILE, master_peak, operations, record_named};

/// What is asked for.
struct Asked {
    picture: Option<PathBuf>,
    crop: usize,
    operations: Option<String>,
    nodes: usize,
}

fn main() -> ExitCode {
    match asked().and_then(|asked| answer(&asked)) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("kernels: {error}");
            ExitCode::from(2)
        }
    }
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked {
        picture: None,
        crop: 256,
        operations: None,
        nodes: 4,
    };
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        let mut number = |least: usize| {
            let given = words.next().and_then(|word| word.to_str()?.parse().ok());
            let name = word.display();
            given
                .filter(|number| *number >= least)
                .ok_or(format!("{name} needs a number, {least} at least"))
        };
        match word.to_str() {
            Some("--crop") => asked.crop = number(TILE)?,
            Some("--nodes") => asked.nodes = number(2)?,
            Some("--operations") => {
                let kernel = words.next().and_then(|word| word.into_string().ok());
                let kernel = kernel.filter(|kernel| NAMES.contains(&kernel.as_str()));
                let kernel = kernel.ok_or(format!("--operations needs one of {NAMES:?}"))?;
                asked.operations = Some(kernel);
            }
            Some(option) if option.starts_with('-') => {
                return Err(format!(
                    "{option} is no option: give --crop SIDE, --operations KERNEL, --nodes N"
                ));
            }
            _ if asked.picture.is_none() => asked.picture = Some(word.into()),
            _ => return Err(format!("{}: give one picture", word.display())),
        }
    }
    Ok(asked)
}

fn answer(asked: &Asked) -> Result<String, String> {
    let picture = match &asked.picture {
        Some(path) => {
            let whole = Picture::read(&file(path)).map_err(|error| error.to_string())?;
            let part = whole.cropped(0, 0, asked.crop, asked.crop);
            part.map_err(|error| error.to_string())?
        }
        None => Picture::generated(asked.crop, asked.crop, 1),
    };
    let workload = |name: &str| {
        let workload = record_named(name, &picture).map_err(|error| error.to_string())?;
        Ok::<_, String>(workload.expect("a name of the four"))
    };
    if let Some(kernel) = &asked.operations {
        return Ok(operations(&workload(kernel)?, asked.nodes).expect("two nodes at least"));
    }
    let mut text = String::from(
        "kernel     allocations (master)  remote frees  bytes to 2^k: n              master peak, 4 / 16 / 64 nodes  \
         instructions, master / slaves\n",
    );
    for name in NAMES {
        let workload = workload(name)?;
        let figures = Figures::of(&workload);
        let sizes = figures.sizes.iter();
        let sizes = sizes.map(|(class, count)| format!("{class}:{count}"));
        let peaks = [4, 16, 64].map(|nodes| master_peak(&workload, nodes).to_string());
        text += &format!(
            "{name:<10} {:>11} {:>8}  {:>10.1} %  {:<28} {:>31}  {} / {}\n",
            figures.allocations,
            format!("({})", figures.master_allocations),
            100.0 * figures.remote_frees as f64 / figures.allocations as f64,
            sizes.collect::<Vec<_>>().join(" "),
            peaks.join(" / "),
            figures.master_instructions,
            figures.slave_instructions,
        );
    }
    Ok(text)
}

/// The file of a picture: in a folder of scikit-image, its `camera.png`.
fn file(path: &Path) -> PathBuf {
    let places = ["skimage/data/camera.png", "data/camera.png", "camera.png"];
    let mut within = places.iter().map(|place| path.join(place));
    let found = within.find(|file| path.is_dir() && file.is_file());
    found.unwrap_or_else(|| path.to_owned())
}
