//! The arguments of `metes record --target leon3`.
//!
//! Invariant: none of them has a default, so that one given without the target is told.

use clap::Args;
use metes_leon3::calls::Shape;

#[derive(Args)]
#[command(next_help_heading = "Firmware (--target leon3)")]
pub(crate) struct Firmware {
    /// A function called as malloc, by its symbol or address (0x40001000). With one of these seven
    /// given, only those given are looked for, else malloc and its kin of C, newlib and Rust
    #[arg(long, value_name = "NAME")]
    malloc: Vec<String>,
    /// A function called as calloc
    #[arg(long, value_name = "NAME")]
    calloc: Vec<String>,
    /// A function called as free
    #[arg(long, value_name = "NAME")]
    free: Vec<String>,
    /// A function called as realloc
    #[arg(long, value_name = "NAME")]
    realloc: Vec<String>,
    /// A function called as reallocarray
    #[arg(long, value_name = "NAME")]
    reallocarray: Vec<String>,
    /// A function called as memalign and aligned_alloc
    #[arg(long, value_name = "NAME")]
    memalign: Vec<String>,
    /// A function called as posix_memalign
    #[arg(long, value_name = "NAME")]
    posix_memalign: Vec<String>,
    /// Most instructions, of all cores together [default: no end]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_instructions: Option<u64>,
    /// Cores, 1 to 64 [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub(crate) cores: Option<usize>,
}

impl Firmware {
    /// The functions named, and how they are called.
    pub(crate) fn functions(&self) -> Vec<(Shape, String)> {
        let named = [
            (Shape::Malloc, &self.malloc),
            (Shape::Calloc, &self.calloc),
            (Shape::Free, &self.free),
            (Shape::Realloc, &self.realloc),
            (Shape::Reallocarray, &self.reallocarray),
            (Shape::Memalign, &self.memalign),
            (Shape::PosixMemalign, &self.posix_memalign),
        ];
        let each = |(shape, names): (Shape, &Vec<String>)| {
            let names = names.clone().into_iter();
            names.map(move |name| (shape, name)).collect::<Vec<_>>()
        };
        named.into_iter().flat_map(each).collect()
    }

    /// Whether one of them is given.
    pub(crate) fn is_given(&self) -> bool {
        self.max_instructions.is_some() || self.cores.is_some() || !self.functions().is_empty()
    }
}
