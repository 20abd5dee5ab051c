//! `metes profile`.

use crate::arguments::Profile;
use crate::error::Failure;
use crate::{output, tracefile};

pub(crate) fn run(arguments: &Profile, json: bool) -> Result<u8, Failure> {
    let trace = tracefile::read(&arguments.trace)?;
    let profile = metes_trace::profile(&trace);
    if json {
        output::json(&profile)?;
    } else {
        let command = trace.provenance.command.join(" ");
        if !command.is_empty() {
            output::text(&format!("{:<18} {command}\n", "command"))?;
        }
        output::text(&profile.to_string())?;
    }
    Ok(0)
}
