//! `metes completions`.

use clap::CommandFactory as _;
use serde::Serialize;

use crate::arguments::{self, Arguments};
use crate::error::Failure;
use crate::output;

#[derive(Serialize)]
struct Document {
    shell: String,
    script: String,
}

pub(crate) fn run(arguments: &arguments::Completions, json: bool) -> Result<u8, Failure> {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "metes", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    if json {
        output::json(&Document {
            shell: arguments.shell.to_string(),
            script,
        })?;
    } else {
        output::text(&script)?;
    }
    Ok(0)
}
