//! What is compared: an engine in a mode, behind a layer, with an allocator, with or without vectors.
//!
//! *Invariant:* every subject runs the same kernels as a process that is started for it and gone behind it; one that
//! cannot be had here says why.

mod container;
mod list;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use metes_edge_kernels::{NOTHING, Size};

use crate::engine::Mode;
use crate::process;
use crate::programs::Build;
use crate::suite::{Printed, Suite};
pub(crate) use container::Container;
pub use list::all;

/// What stands between a program and the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// A process.
    Process,
    /// A process with namespaces of its own.
    Namespaces,
    /// A container, by an OCI runtime.
    Runtime,
    /// A container, by an engine that runs images.
    Engine,
    /// A sandbox of WebAssembly in a process.
    Sandbox,
}

impl Layer {
    /// In a word or two.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Process => "process",
            Layer::Namespaces => "namespaces",
            Layer::Runtime => "OCI runtime",
            Layer::Engine => "container engine",
            Layer::Sandbox => "WebAssembly",
        }
    }
}

/// How a subject's process is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Launch {
    /// As it is, with changes to its environment.
    Plain(Vec<(&'static str, OsString)>),
    /// The runner of ours and nothing in it.
    Floor,
    /// An engine of ours.
    Ours(Mode),
    /// A runner that is built in a workspace of its own, beside the runner of ours, and the mode of its engine.
    Apart {
        program: &'static str,
        mode: &'static str,
    },
    /// V8, by Node, with options.
    Node(&'static [&'static str]),
    /// A command on the path: words before the module, and behind it.
    Command {
        program: &'static str,
        before: &'static [&'static str],
        behind: &'static [&'static str],
    },
    /// A container.
    Container(Container),
}

/// What is compared.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    /// Whose code runs the kernel.
    pub engine: &'static str,
    /// In which mode.
    pub mode: &'static str,
    /// What stands between it and the machine.
    pub layer: Layer,
    /// Whether code is compiled when it starts (`cold`) or was before (`cached`).
    pub start: &'static str,
    /// Which allocator serves the kernel.
    pub allocator: &'static str,
    /// Which vectors the kernel's code may use.
    pub vectors: &'static str,
    /// Whether only its start is looked at: behind it runs what another subject runs, too.
    pub start_only: bool,
    /// What is built for it.
    pub build: Build,
    pub(crate) launch: Launch,
    /// Why it cannot be had here.
    pub absent: Option<String>,
}

impl Subject {
    /// Whether its code is WebAssembly.
    #[must_use]
    pub fn is_wasm(&self) -> bool {
        matches!(self.build, Build::Wasm | Build::WasmSimd | Build::WasmHeap)
    }
}

/// The runner of ours: a program and the words behind which its own arguments come.
#[derive(Clone, Debug)]
pub struct Runner {
    /// The program.
    pub program: PathBuf,
    /// What comes first.
    pub words: Vec<OsString>,
}

impl Runner {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.words);
        command
    }

    /// A runner that is built apart and lies beside this one.
    fn beside(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.program.with_file_name(name);
        let lacks =
            || format!("{name} is not beside this command: build it with `scripts/engines`");
        path.is_file().then_some(path).ok_or_else(lacks)
    }
}

/// Where subjects are put together.
pub struct Workshop<'a> {
    /// The kernels.
    pub suite: &'a dyn Suite,
    /// The runner of ours.
    pub runner: Runner,
    /// A directory for programs, kept while it is used.
    pub directory: &'a Path,
}

impl Drop for Workshop<'_> {
    fn drop(&mut self) {
        container::forget_image();
    }
}

const NODE: &str = include_str!("subject/node.mjs");

impl Workshop<'_> {
    /// What starts a kernel so many times in one process.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub fn command(
        &self,
        subject: &Subject,
        kernel: &str,
        size: Size,
        runs: usize,
    ) -> Result<Command, String> {
        let program = self
            .suite
            .program(subject.build, kernel, size, self.directory)
            .map_err(|error| error.to_string())?;
        let mut command = match &subject.launch {
            Launch::Plain(environment) => {
                let mut command = Command::new(&program);
                command.envs(environment.iter().map(|(name, value)| (name, value)));
                command
            }
            Launch::Floor => {
                let mut command = self.runner.command();
                command.arg("floor");
                return Ok(command);
            }
            Launch::Ours(mode) => {
                let file = match mode {
                    Mode::Ahead => self.compiled(&program)?,
                    _ => program,
                };
                let mut command = self.runner.command();
                command.args(["run", mode.name()]).arg(file);
                command
            }
            Launch::Apart {
                program: name,
                mode,
            } => {
                let mut command = Command::new(self.runner.beside(name)?);
                command.args(["run", *mode]).arg(program);
                command
            }
            Launch::Node(options) => {
                let script = self.directory.join("node.mjs");
                std::fs::write(&script, NODE)
                    .map_err(|error| format!("{}: {error}", script.display()))?;
                let mut command = Command::new("node");
                command
                    .args(["--no-warnings"])
                    .args(*options)
                    .arg(script)
                    .arg(program);
                command
            }
            Launch::Command {
                program: name,
                before,
                behind,
            } => {
                let mut command = Command::new(name);
                command.args(*before).arg(program).args(*behind);
                command
            }
            Launch::Container(container) => {
                let words = [kernel, size.name(), &runs.to_string()].map(str::to_owned);
                return container.command(&program, &words, self.directory);
            }
        };
        command.args([kernel, size.name(), &runs.to_string()]);
        Ok(command)
    }

    /// The code of a module, made once.
    pub(crate) fn compiled(&self, module: &Path) -> Result<PathBuf, String> {
        let code = module.with_extension("cwasm");
        if !code.is_file() {
            let mut command = self.runner.command();
            command.arg("compile").arg(module).arg(&code);
            crate::programs::compile(&mut command).map_err(|error| error.to_string())?;
        }
        Ok(code)
    }

    /// Tries a subject; why it cannot be had, if it cannot.
    #[must_use]
    pub fn trial(&self, subject: &Subject) -> Option<String> {
        let tried = self.tried(subject).err();
        match (&subject.launch, tried) {
            (Launch::Container(container), Some(why)) => {
                container.remedy(&why, || self.tried(subject))
            }
            (_, tried) => tried,
        }
    }

    fn tried(&self, subject: &Subject) -> Result<(), String> {
        let mut command = self.command(subject, NOTHING, Size::Mini, 1)?;
        let run = process::run(&mut command).map_err(|error| error.reason())?;
        if run.status != 0 {
            return Err(run.complaint());
        }
        let printed = Printed::read(&run.output).is_some();
        (printed || subject.launch == Launch::Floor)
            .then_some(())
            .ok_or_else(|| "it printed something else than a kernel does".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_built_apart_is_looked_for_beside_ours() {
        let directory = tempfile::tempdir().expect("a directory");
        let runner = Runner {
            program: directory.path().join("metes"),
            words: Vec::new(),
        };
        let lacks = runner
            .beside("metes-edge-wasmer")
            .expect_err("none is there");
        assert!(lacks.contains("scripts/engines"), "{lacks}");
        let path = directory.path().join("metes-edge-wasmer");
        std::fs::write(&path, "").expect("room");
        assert_eq!(runner.beside("metes-edge-wasmer"), Ok(path));
    }
}
