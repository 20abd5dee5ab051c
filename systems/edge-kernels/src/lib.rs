//! The laboratory's kernels: one source for native code and WebAssembly, with checksums.
//!
//! A kernel allocates its arrays, fills them, computes, takes a checksum of what it computed and frees the arrays, as a
//! program that is invoked does. [`KERNELS`] lists them; [`main`] is the program around them, for this file is also the
//! root of one: `rustc --crate-type bin lib.rs` makes it for any target that has a standard library, and [`SOURCES`]
//! holds the files.
//!
//! *Invariant:* a kernel computes with `+ - * /`, square roots and comparisons of IEEE 754 alone, in a written order and
//! without a number that is not finite, so that its checksum is the same bit by bit on every machine and engine.

mod algebra;
mod arrays;
mod filters;
mod programming;
mod solvers;
mod statistics;
mod stencils;

use std::fmt;
use std::io::Write;
use std::time::Instant;

/// The files of this crate, by name: what a compiler needs to make the program.
pub const SOURCES: [(&str, &str); 8] = [
    ("lib.rs", include_str!("lib.rs")),
    ("algebra.rs", include_str!("algebra.rs")),
    ("arrays.rs", include_str!("arrays.rs")),
    ("filters.rs", include_str!("filters.rs")),
    ("programming.rs", include_str!("programming.rs")),
    ("solvers.rs", include_str!("solvers.rs")),
    ("statistics.rs", include_str!("statistics.rs")),
    ("stencils.rs", include_str!("stencils.rs")),
];

/// The name under which the program does nothing: what is left is its start.
pub const NOTHING: &str = "nothing";

/// What a kernel is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Products of matrices and vectors.
    Algebra,
    /// Decompositions, and systems of equations.
    Solver,
    /// Grids whose points follow from their neighbours.
    Stencil,
    /// Dynamic programming.
    Programming,
    /// Filters of images.
    Filter,
    /// Moments of data.
    Statistics,
}

impl Family {
    /// In a word or two.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Family::Algebra => "linear algebra",
            Family::Solver => "solvers",
            Family::Stencil => "stencils",
            Family::Programming => "dynamic programming",
            Family::Filter => "filters",
            Family::Statistics => "statistics",
        }
    }
}

/// How much a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Microseconds.
    Mini,
    /// Tenths of a millisecond.
    Small,
    /// Milliseconds.
    Medium,
    /// Tenths of a second.
    Large,
}

impl Size {
    /// All, the smallest first.
    pub const ALL: [Size; 4] = [Size::Mini, Size::Small, Size::Medium, Size::Large];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Size::Mini => "mini",
            Size::Small => "small",
            Size::Medium => "medium",
            Size::Large => "large",
        }
    }

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Size> {
        Size::ALL.into_iter().find(|size| size.name() == name)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kernel.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: &'static str,
    /// What it is of.
    pub family: Family,
    /// What it computes, in a line.
    pub about: &'static str,
    /// Its extent by [`Size`].
    extents: [usize; 4],
    run: fn(usize) -> u64,
}

impl Kernel {
    /// Runs it once, and answers the checksum of what it computed.
    ///
    /// # Panics
    /// When memory does not suffice.
    #[must_use]
    pub fn run(&self, size: Size) -> u64 {
        (self.run)(self.extents[size as usize])
    }

    /// Its extent: rows of its matrices, points along an axis.
    #[must_use]
    pub fn extent(&self, size: Size) -> usize {
        self.extents[size as usize]
    }
}

/// The kernel of a name.
#[must_use]
pub fn kernel(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

macro_rules! kernels {
    ($($family:ident $name:literal $about:literal $extents:tt $run:path;)*) => {
        /// All kernels, by family.
        pub const KERNELS: &[Kernel] = &[$(Kernel {
            name: $name,
            family: Family::$family,
            about: $about,
            extents: $extents,
            run: $run,
        }),*];
    };
}

kernels! {
    Algebra "gemm" "C = α A B + β C" [16, 64, 220, 700] algebra::gemm;
    Algebra "2mm" "D = α A B C + β D" [16, 56, 180, 560] algebra::two_products;
    Algebra "3mm" "G = (A B)(C D)" [16, 48, 160, 480] algebra::three_products;
    Algebra "atax" "y = Aᵀ A x" [40, 120, 400, 1900] algebra::atax;
    Algebra "bicg" "q = A p, s = Aᵀ r" [40, 120, 400, 1900] algebra::bicg;
    Algebra "mvt" "x += A y, z += Aᵀ w" [40, 120, 400, 2000] algebra::mvt;
    Algebra "gesummv" "y = α A x + β B x" [30, 90, 250, 1300] algebra::gesummv;
    Algebra "syrk" "C = α A Aᵀ + β C, lower triangle" [20, 72, 230, 800] algebra::syrk;
    Algebra "trmm" "B = α Aᵀ B, A triangular" [20, 72, 230, 800] algebra::trmm;
    Solver "lu" "A = L U" [24, 88, 300, 900] solvers::lu;
    Solver "cholesky" "A = L Lᵀ" [24, 96, 340, 1000] solvers::cholesky;
    Solver "gramschmidt" "A = Q R" [20, 64, 200, 560] solvers::gramschmidt;
    Solver "durbin" "a Toeplitz system" [40, 240, 1200, 8000] solvers::durbin;
    Solver "trisolv" "L x = b" [40, 120, 400, 2000] solvers::trisolv;
    Stencil "jacobi-1d" "three points, by turns in two arrays" [60, 2000, 20_000, 200_000] stencils::jacobi_1d;
    Stencil "jacobi-2d" "five points, by turns in two grids" [24, 80, 240, 700] stencils::jacobi_2d;
    Stencil "seidel-2d" "nine points, in place" [24, 80, 200, 440] stencils::seidel_2d;
    Stencil "heat-3d" "seven points, by turns in two volumes" [10, 22, 40, 80] stencils::heat_3d;
    Stencil "fdtd-2d" "an electric and a magnetic field" [20, 64, 200, 560] stencils::fdtd_2d;
    Programming "floyd-warshall" "shortest paths of all pairs" [24, 80, 240, 700] programming::floyd_warshall;
    Programming "nussinov" "pairs of a folded sequence" [32, 120, 360, 1100] programming::nussinov;
    Filter "deriche" "edges of an image by recursion" [48, 160, 560, 2400] filters::deriche;
    Statistics "correlation" "of all pairs of columns" [20, 72, 220, 720] statistics::correlation;
    Statistics "covariance" "of all pairs of columns" [20, 72, 220, 720] statistics::covariance;
}

/// What the program says when it is started wrongly.
const USAGE: &str = "usage: KERNEL mini|small|medium|large RUNS";

/// The program: runs a kernel so many times and prints its checksum, then the nanoseconds of each run, a line each.
/// Status 2 where arguments are wrong, 1 where two runs differ.
pub fn main() {
    std::process::exit(program(&std::env::args().skip(1).collect::<Vec<_>>()));
}

fn program(arguments: &[String]) -> i32 {
    let [name, size, runs] = arguments else {
        eprintln!("{USAGE}");
        return 2;
    };
    let (Some(size), Ok(runs)) = (Size::named(size), runs.parse::<usize>()) else {
        eprintln!("{USAGE}");
        return 2;
    };
    if name == NOTHING {
        return print(0, &[]);
    }
    let Some(kernel) = kernel(name) else {
        eprintln!("there is no kernel named {name}; {USAGE}");
        return 2;
    };
    let mut times = Vec::with_capacity(runs);
    let mut checksum = None;
    for _ in 0..runs {
        let begin = Instant::now();
        let found = kernel.run(size);
        times.push(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        if *checksum.get_or_insert(found) != found {
            eprintln!("two runs of {name} differ");
            return 1;
        }
    }
    print(checksum.unwrap_or(0), &times)
}

/// One write, so that a run costs no system call more than another.
fn print(checksum: u64, times: &[u64]) -> i32 {
    let mut text = format!("{checksum:016x}\n");
    for time in times {
        text += &format!("{time}\n");
    }
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_words_that_differ() {
        let names: BTreeSet<&str> = KERNELS.iter().map(|kernel| kernel.name).collect();
        assert_eq!(names.len(), KERNELS.len());
        assert!(KERNELS.len() >= 20);
        assert!(!names.contains(NOTHING));
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(names.iter().all(|name| name.chars().all(plain)));
    }

    #[test]
    fn a_checksum_tells_kernels_and_sizes_apart_and_is_the_same_again() {
        let mut seen = BTreeSet::new();
        for kernel in KERNELS {
            for size in [Size::Mini, Size::Small] {
                let checksum = kernel.run(size);
                assert_eq!(checksum, kernel.run(size), "{} {size}", kernel.name);
                assert!(seen.insert(checksum), "{} {size}", kernel.name);
            }
            assert!(kernel.extents.is_sorted(), "{}", kernel.name);
        }
    }

    #[test]
    fn every_file_is_a_source() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let files: BTreeSet<String> = std::fs::read_dir(directory)
            .expect("the sources")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        let named: BTreeSet<String> = SOURCES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(files, named);
    }
}
