//! Running `metes` in a directory of its own, with the preloaded libraries of
//! this build.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const METES: &str = env!("CARGO_BIN_EXE_metes");

pub(crate) use metes_libraries::beside as libraries;

/// A directory that is gone at the end of the test.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place {
            directory: tempfile::tempdir().expect("a directory for the test"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the file can be written");
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.path(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// A C program, compiled with `flags`.
    pub(crate) fn compile(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let file = self.write(&format!("{name}.c"), source);
        let program = self.path(name);
        let status = Command::new("cc")
            .args(flags)
            .arg("-o")
            .arg(&program)
            .arg(file)
            .status();
        assert!(
            status.expect("a C compiler: apt install gcc").success(),
            "{name}.c compiles"
        );
        program
    }

    /// The command `metes` with `arguments`, not yet run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.script(Path::new(METES));
        command.args(arguments);
        command
    }

    /// A program that runs `metes`, here in its variable `METES`.
    pub(crate) fn script(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // What these tests' parent ignores (`nohup`, a shell's background) would stay ignored.
        // SAFETY: between fork and exec only `signal` is called, which may be called there.
        unsafe {
            command.pre_exec(|| {
                for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            });
        }
        command
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .env("METES", METES)
            .env("METES_LIBRARY_PATH", libraries())
            .env_remove("LD_PRELOAD")
            .env_remove("CC")
            .env_remove("METES_HEAP")
            .env_remove("METES_REPORT");
        command
    }

    pub(crate) fn metes(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("metes runs")
    }

    /// Runs with `--json`; the exit status and the one document.
    pub(crate) fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let mut with = vec!["--json"];
        with.extend(arguments);
        parsed(&self.metes(&with))
    }
}

pub(crate) fn parsed(output: &Output) -> (i32, Value) {
    let text = stdout(output);
    let document = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("one document: {error}\n{text}\n{}", stderr(output)));
    (status(output), document)
}

pub(crate) fn status(output: &Output) -> i32 {
    output
        .status
        .code()
        .expect("metes was not ended by a signal")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Exit status 2, nothing on stdout, and every fragment on stderr.
#[track_caller]
pub(crate) fn refused(output: &Output, fragments: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(stdout(output), "", "{said}");
    for fragment in fragments {
        assert!(
            said.contains(fragment),
            "{fragment:?} is missing in: {said}"
        );
    }
    assert!(!said.contains("panicked"), "{said}");
}

#[track_caller]
pub(crate) fn has_keys(document: &Value, keys: &[&str]) {
    for key in keys {
        assert!(
            document.get(key).is_some(),
            "key {key} is missing in {document}"
        );
    }
}

/// A program that asks for the same in each run.
pub(crate) const STEADY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    char *block[64];
    unsigned long sum = 0;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 64; i++) {
            size_t size = (size_t)(i * 37 % 900 + round);
            block[i] = malloc(size + 1);
            memset(block[i], i, size + 1);
        }
        for (int i = 0; i < 64; i += 2) {
            block[i] = realloc(block[i], (size_t)(i * 53 % 1500 + 8));
            sum += (unsigned char)block[i][0];
        }
        for (int i = 0; i < 64; i++) free(block[(i * 7) % 64]);
    }
    char *last = calloc(1000, 3);
    printf("sum %lu\n", sum + (unsigned long)last[2999]);
    return 0;
}
"#;

/// A place with the trace of that program in `t.trace.parquet`.
pub(crate) fn recorded() -> Place {
    let place = Place::new();
    place.compile("steady", STEADY, &[]);
    let output = place.metes(&["record", "-o", "t.trace.parquet", "--", "./steady"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    place
}
