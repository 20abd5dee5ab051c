//! A user's own directory of PolyBench/C as a suite: its programs, with a `main` of ours around theirs.
//!
//! *Invariant:* nothing of the directory is changed, and no file of it is carried by Metes. Its programs tell no checksum,
//! so there is none to compare.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use metes_edge_kernels::{NOTHING, Size};

use crate::measure::LabError;
use crate::programs::{Build, BuildError, compile};
use crate::suite::Suite;

const DRIVER: &str = include_str!("polybench/driver.c");
/// How deep a program lies below the directory.
const DEPTH: usize = 4;

/// A directory of PolyBench/C.
#[derive(Clone, Debug)]
pub struct PolyBench {
    directory: PathBuf,
    /// The source of each kernel.
    sources: Vec<(String, PathBuf)>,
}

impl PolyBench {
    /// Reads a directory.
    ///
    /// # Errors
    /// When it is none of PolyBench/C.
    pub fn open(directory: &Path) -> Result<PolyBench, LabError> {
        let error = |why: &str| LabError::Suite {
            path: directory.to_owned(),
            why: why.to_owned(),
        };
        if !directory.join("utilities/polybench.c").is_file() {
            return Err(error("it has no utilities/polybench.c"));
        }
        let mut sources = Vec::new();
        collect(directory, DEPTH, &mut sources);
        if sources.is_empty() {
            return Err(error("it has no NAME/NAME.c beside a NAME.h"));
        }
        sources.sort();
        Ok(PolyBench {
            directory: directory.to_owned(),
            sources,
        })
    }
}

/// Every `NAME/NAME.c` beside a `NAME.h`.
fn collect(directory: &Path, depth: usize, found: &mut Vec<(String, PathBuf)>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    // What cannot be read has no kernel.
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let source = path.join(format!("{name}.c"));
        if source.is_file() && source.with_extension("h").is_file() {
            found.push((name, source));
        }
        collect(&path, depth, found);
    }
}

/// The first of these that is on the path.
fn first(names: &[&'static str]) -> Option<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |name: &&&str| std::env::split_paths(&path).any(|place| place.join(name).is_file());
    names.iter().find(there).copied()
}

fn words(build: Build) -> Result<&'static [&'static str], BuildError> {
    Ok(match build {
        Build::Native => &[],
        Build::Scalar => &["-fno-vectorize", "-fno-slp-vectorize"],
        Build::Static => &["-static"],
        Build::Wasm => &["--target=wasm32-wasi"],
        Build::WasmSimd => &["--target=wasm32-wasi", "-msimd128"],
        Build::Musl | Build::WasmHeap => return Err(BuildError::NotInC),
    })
}

impl Suite for PolyBench {
    fn name(&self) -> String {
        format!("PolyBench/C of {}", self.directory.display())
    }

    fn kernels(&self) -> Vec<String> {
        self.sources.iter().map(|(name, _)| name.clone()).collect()
    }

    fn checksum(&self, _: &str, _: Size) -> Option<u64> {
        None
    }

    fn program(
        &self,
        build: Build,
        kernel: &str,
        size: Size,
        directory: &Path,
    ) -> Result<PathBuf, BuildError> {
        let own = words(build)?;
        let program = directory.join(format!("{kernel}-{size}-{build:?}"));
        if program.is_file() {
            return Ok(program);
        }
        let driver = directory.join("driver.c");
        fs::write(&driver, DRIVER).map_err(|source| BuildError::File {
            path: driver.clone(),
            source,
        })?;
        let compiler = first(&[
            "clang", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15",
            "clang-14",
        ]);
        let mut command = Command::new(compiler.unwrap_or("clang"));
        command
            .arg("-O3")
            .args(own)
            .arg("-o")
            .arg(&program)
            .arg(driver);
        if let Some((_, source)) = self.sources.iter().find(|(name, _)| kernel == name) {
            let utilities = self.directory.join("utilities");
            command.args(["-Dmain=kernel_main", "-D_WASI_EMULATED_PROCESS_CLOCKS"]);
            command.arg(format!("-D{}_DATASET", size.name().to_uppercase()));
            command
                .arg("-I")
                .arg(&utilities)
                .arg("-I")
                .arg(source.parent().unwrap_or(source));
            command.arg(source).arg(utilities.join("polybench.c"));
        } else if kernel == NOTHING {
            command.arg("-DNOTHING");
        }
        command.arg("-lm");
        if matches!(build, Build::Wasm | Build::WasmSimd) {
            command.arg("-lwasi-emulated-process-clocks");
        }
        compile(&mut command).map(|()| program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_known_by_what_lies_in_it() {
        let place = tempfile::tempdir().expect("a directory");
        let told = |place: &Path| PolyBench::open(place).expect_err("it is none").to_string();
        assert!(told(place.path()).ends_with("it has no utilities/polybench.c"));
        fs::create_dir_all(place.path().join("utilities")).expect("a directory");
        fs::write(place.path().join("utilities/polybench.c"), "").expect("a file");
        assert!(told(place.path()).ends_with("beside a NAME.h"));
        let kernel = place.path().join("linear-algebra/kernels/twice");
        fs::create_dir_all(&kernel).expect("a directory");
        for name in ["twice.c", "twice.h", "other.c"] {
            fs::write(kernel.join(name), "").expect("a file");
        }
        let suite = PolyBench::open(place.path()).expect("it is one");
        assert_eq!(suite.kernels(), ["twice"]);
        assert_eq!(suite.checksum("twice", Size::Mini), None);
    }

    /// A suite as small as can be: what a user's is, in form.
    #[test]
    fn programs_of_a_directory_are_built_and_print_their_times() {
        let place = tempfile::tempdir().expect("a directory");
        let (utilities, kernel) = (
            place.path().join("utilities"),
            place.path().join("stencils/twice"),
        );
        for directory in [&utilities, &kernel] {
            fs::create_dir_all(directory).expect("a directory");
        }
        fs::write(
            utilities.join("polybench.c"),
            "int utility(void) { return 2; }\n",
        )
        .expect("a file");
        fs::write(
            kernel.join("twice.h"),
            "#ifdef SMALL_DATASET\n#define N 7\n#endif\n",
        )
        .expect("a file");
        let text = "#include <twice.h>\nint utility(void);\nint main(int c, char **v) { return utility() * N == 14 ? 0 : 9; }\n";
        fs::write(kernel.join("twice.c"), text).expect("a file");
        let suite = PolyBench::open(place.path()).expect("it is one");
        let out = tempfile::tempdir().expect("a directory");
        let run = |name: &str, runs: &str| {
            let program = suite
                .program(Build::Native, name, Size::Small, out.path())
                .expect("clang is there");
            let run = crate::process::run(Command::new(program).args([name, "small", runs]))
                .expect("it runs");
            (run.status, crate::suite::Printed::read(&run.output))
        };
        let (status, printed) = run("twice", "3");
        assert_eq!(
            (status, printed.map(|printed| printed.times.len())),
            (0, Some(3))
        );
        let (status, printed) = run(NOTHING, "3");
        assert_eq!(
            (status, printed.map(|printed| printed.times.len())),
            (0, Some(0))
        );
        assert!(matches!(
            suite.program(Build::Musl, "twice", Size::Small, out.path()),
            Err(BuildError::NotInC)
        ));
    }
}
