//! Emission: a described heap as source code, specialised to its constants.
//!
//! A directory of C (an allocator and a library that replaces malloc) and of
//! Rust (a crate over `metes-heap`). The C is a library of this crate's folder `c`, copied as it is,
//! with one generated file of parameters; files that a description does not need are not emitted, and
//! every parameter is a constant of the emitted code.
//!
//! Invariant: emitted code decides every placement as [`metes_heap::Composite`]
//! decides it for the same description, byte for byte.

use std::path::{Path, PathBuf};

use metes_heap::Description;
use metes_heap::description::{GENERAL, Invalid, LEVELS};
use metes_heap::store::Geometry;

mod build;
mod config;
mod model;
pub mod recorder;
mod rust;

pub use build::{BuildError, build_preload, build_preload_with, build_program, try_compiler};
pub use rust::METES_HEAP;

/// What accompanies the code.
#[derive(Clone, Debug)]
pub struct Options {
    /// The text of `heap.toml`, copied to the directory as it is.
    pub heap_toml: String,
    /// Bytes that the pools of each memory level may take together, where the
    /// level has a size.
    pub levels: [Option<usize>; LEVELS],
    /// Bytes by which the emitted library takes memory, a multiple of 16.
    pub increment: usize,
    /// Whether records are verified. Then only Rust is emitted: C has no verification.
    pub hardened: bool,
    /// From what size on the emitted library maps blocks, by the rule of [`metes_heap::mapped`].
    /// Allocators that are emitted to be called, in C and Rust, have their memory from their
    /// caller and map nothing.
    pub mapped: Option<usize>,
    /// Whose malloc the C replaces.
    pub home: Home,
}

/// Where the emitted C replaces malloc, and with which memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Home {
    /// In programs on Linux, by a library that is loaded before; it takes memory as it needs it.
    #[default]
    Host,
    /// In a WebAssembly module, in ranges of its memory.
    Wasi(Ranges),
    /// In an image for a machine without an operating system, in an array.
    Bare(Ranges),
}

impl Home {
    /// The memory that it has from the start.
    pub const fn ranges(self) -> Option<Ranges> {
        match self {
            Home::Host => None,
            Home::Wasi(ranges) | Home::Bare(ranges) => Some(ranges),
        }
    }
}

/// The memory that an emitted heap has and that does not grow: the range of each general pool, one behind the other, and
/// the slabs of the object pools behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// What the first range begins at a multiple of, a power of two.
    pub beginning: usize,
    /// Bytes of each general pool, multiples of `beginning`: blocks lie in all as if it lay at 0.
    pub pools: [usize; GENERAL],
    /// Slabs that the object pools may have together; at least one where there are object pools.
    pub slabs: usize,
    /// Bytes that the indexes are laid out for: no block is larger.
    pub span: usize,
}

impl Ranges {
    /// Memory for a heap of one general pool.
    pub const fn single(bytes: usize, beginning: usize, span: usize) -> Ranges {
        let mut pools = [0; GENERAL];
        pools[0] = bytes;
        Ranges {
            beginning,
            pools,
            slabs: 0,
            span,
        }
    }

    /// Bytes of all ranges. The records of slabs are not among them: they are data of their own.
    pub fn bytes(&self, description: &Description) -> usize {
        self.pools.iter().sum::<usize>() + self.slabs * description.slabs().bytes()
    }
}

/// What blocks of C begin at multiples of on wasm32, as `max_align_t` of that target needs.
const WASI_GRANULE: usize = 16;

impl Options {
    /// The sizes of records in words of so many bytes.
    fn geometry(&self, word: usize) -> Geometry {
        match self.hardened {
            true => Geometry::hardened(word),
            false => Geometry::tagged(word),
        }
    }

    /// The sizes of records of the emitted C on 32 bits.
    fn narrow(&self) -> Geometry {
        let narrow = Geometry::tagged(4);
        match self.home {
            Home::Wasi(_) => Geometry {
                granule: WASI_GRANULE,
                minimum: 2 * WASI_GRANULE,
                ..narrow
            },
            Home::Host | Home::Bare(_) => narrow,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            heap_toml: String::new(),
            levels: [None; LEVELS],
            increment: 4096,
            hardened: false,
            mapped: None,
            home: Home::Host,
        }
    }
}

/// One file of the emission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmittedFile {
    /// Where it belongs, below the output directory.
    pub path: PathBuf,
    /// Its text.
    pub contents: String,
}

/// Why nothing was emitted.
#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    /// The description is not a heap.
    #[error("the heap cannot be emitted: {0}")]
    Invalid(Invalid),
    /// Memory cannot come by so many bytes.
    #[error("the heap cannot be emitted: it grows by {0} bytes, which is no multiple of 16")]
    Increment(usize),
    /// A template does not render: a fault of this crate.
    #[error("the template of the emitted code is broken: {0}")]
    Template(#[from] minijinja::Error),
}

/// The templates of the Rust crate and of the README, by the names under which they include one
/// another.
const TEMPLATES: [(&str, &str); 3] = [
    ("lib.rs.j2", include_str!("templates/lib.rs.j2")),
    ("global.rs.j2", include_str!("templates/global.rs.j2")),
    ("README.md.j2", include_str!("templates/README.md.j2")),
];

/// The heap as source code: `c/heap.h`, `c/heap.c` and its parts, `c/heap_config.h`,
/// `c/preload.c` (for a WebAssembly module `c/wasi.c`, for an image `c/bare.c`, with `c/heap_ranges.h`), a crate in `rust/` with the crate `metes-heap` in it, `heap.toml` and `README.md`. No C where the heap is hardened.
///
/// # Errors
/// [`EmitError::Invalid`] when the description is not a heap.
pub fn emit(description: &Description, options: &Options) -> Result<Vec<EmittedFile>, EmitError> {
    let geometry = match options.home {
        Home::Host => options.geometry(8),
        Home::Wasi(_) | Home::Bare(_) => options.narrow(),
    };
    description
        .validate(geometry.granule, geometry.header)
        .map_err(EmitError::Invalid)?;
    if options.increment == 0 || !options.increment.is_multiple_of(geometry.granule) {
        return Err(EmitError::Increment(options.increment));
    }
    let mut environment = minijinja::Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    let context = model::context(description, options);
    let render = |template: &str| -> Result<String, EmitError> {
        let text = environment.get_template(template)?.render(&context)?;
        Ok(tidy(&text))
    };
    let file = |path: &str, contents: String| EmittedFile {
        path: path.into(),
        contents,
    };
    let mut files = Vec::new();
    if !options.hardened {
        let text = config::heap_config(description, options);
        files.push(file("c/heap_config.h", text));
        for (name, text) in config::library(description, options) {
            files.push(file(&format!("c/{name}"), text.to_string()));
        }
    }
    files.push(file("rust/Cargo.toml", rust::manifest()));
    files.push(file("rust/src/lib.rs", render("lib.rs.j2")?));
    files.extend(rust::metes_heap());
    files.push(file("heap.toml", options.heap_toml.clone()));
    files.push(file("README.md", render("README.md.j2")?));
    Ok(files)
}

/// Writes emitted files below `directory`, which is created.
///
/// # Errors
/// When a directory or file cannot be written.
pub fn write(files: &[EmittedFile], directory: &Path) -> std::io::Result<()> {
    for file in files {
        let path = directory.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, &file.contents)?;
    }
    Ok(())
}

/// Takes out what templates leave behind: trailing blanks and runs of empty lines.
fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut empty = 1;
    for line in text.lines().map(str::trim_end) {
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty <= 1 {
            tidy.push_str(line);
            tidy.push('\n');
        }
    }
    tidy
}
