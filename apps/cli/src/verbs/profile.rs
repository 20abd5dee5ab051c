//! `metes profile`.

use metes_config::Config;
use metes_explore::fitted_sizes;
use metes_heap::{Description, IndexKind};
use serde::Serialize;

use crate::arguments::Profile;
use crate::error::Failure;
use crate::{output, tracefile};

/// The profile, and what of it only a heap can say.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    profile: &'a metes_trace::Profile,
    /// The heap of fixed sizes that suits the requests best.
    fixed_sizes: &'a str,
}

pub(crate) fn run(arguments: &Profile, json: bool) -> Result<u8, Failure> {
    let trace = tracefile::read(&arguments.trace)?;
    let profile = metes_trace::profile(&trace);
    let sizes = fitted_sizes(&tracefile::events(&trace)?);
    let fixed_sizes = Config::of(Description::of(IndexKind::FixedSizes { sizes })).name();
    if json {
        output::json(&Document {
            profile: &profile,
            fixed_sizes: &fixed_sizes,
        })?;
    } else {
        let command = trace.provenance.command.join(" ");
        let command = metes_quantity::printable(&command);
        if !command.is_empty() {
            output::text(&format!("{:<18} {command}\n", "command"))?;
        }
        output::text(&profile.to_string())?;
        output::text(&format!("\n{:<18} {fixed_sizes}\n", "fixed sizes"))?;
    }
    Ok(0)
}
