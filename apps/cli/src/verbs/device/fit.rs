//! `metes device fit`: becomes `metes.dry` of the Python package, which runs the script.
//!
//! Invariant: this process is that of `metes.dry` in the end, so that signals and the exit status
//! are its own; it does not become a Python that could not begin.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::arguments::Fit;
use crate::error::Failure;
use crate::libraries::PATH_VARIABLE;

/// Where the package lies beside a command that was built in the repository.
const SOURCES: &str = "../../python";

pub(crate) fn run(arguments: &Fit, json: bool) -> Result<u8, Failure> {
    let environment = environment();
    check(&arguments.python, &environment)?;
    let mut command = Command::new(&arguments.python);
    command.args(["-m", "metes.dry"]).envs(environment);
    command.arg("--memory").arg(arguments.memory.to_string());
    for (name, size) in [
        ("--reserve", arguments.reserve),
        ("--smallest", arguments.smallest),
    ] {
        if let Some(size) = size {
            command.arg(name).arg(size.to_string());
        }
    }
    for (name, file) in [
        ("--trace", &arguments.trace),
        ("--snapshot", &arguments.snapshot),
        ("--report", &arguments.report),
    ] {
        if let Some(file) = file {
            command.arg(name).arg(file);
        }
    }
    for rule in &arguments.reads {
        command.arg("--reads").arg(rule);
    }
    if let Some(most) = arguments.most_reads {
        command.arg("--most-reads").arg(most.to_string());
    }
    if let Some(capability) = &arguments.capability {
        command.arg("--capability").arg(capability);
    }
    if json {
        command.arg("--json");
    }
    let error = command.arg("--").args(&arguments.script).exec();
    Err(Failure::io("run", &arguments.python, error))
}

/// What lets the package find this command and the library beside it, and Python the package.
fn environment() -> Vec<(&'static str, OsString)> {
    let Ok(own) = std::env::current_exe() else {
        return Vec::new();
    };
    let beside = own.parent().unwrap_or(Path::new("."));
    let mut places: Vec<PathBuf> = paths(PATH_VARIABLE);
    places.push(beside.to_owned());
    let mut packages = paths("PYTHONPATH");
    packages.push(beside.join(SOURCES));
    // Neither has a colon in it, as both come from such lists or the system.
    let joined = |paths| std::env::join_paths(paths).unwrap_or_default();
    vec![
        (PATH_VARIABLE, joined(places)),
        ("PYTHONPATH", joined(packages)),
        ("METES", own.into_os_string()),
    ]
}

fn paths(variable: &str) -> Vec<PathBuf> {
    let list = std::env::var_os(variable).filter(|list| !list.is_empty());
    list.map(|list| std::env::split_paths(&list).collect())
        .unwrap_or_default()
}

/// That this Python is one, and has the package.
fn check(python: &Path, environment: &[(&'static str, OsString)]) -> Result<(), Failure> {
    let mut command = Command::new(python);
    command.args(["-c", "import metes.dry"]);
    command
        .envs(environment.iter().cloned())
        .stdin(Stdio::null());
    let output = command.output().map_err(|error| {
        Failure::input(format!(
            "cannot run {}: {error}; name the Python that has the framework with --python",
            python.display()
        ))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::input(format!(
        "{} cannot import metes.dry ({}): install the package with `pip install ./python` there, \
         or name another Python with --python",
        python.display(),
        said.lines().last().unwrap_or("it says nothing")
    )))
}
