//! `metes report`.

use serde_json::json;

use crate::arguments::Report;
use crate::error::Failure;
use crate::{output, page};

pub(crate) fn run(arguments: &Report, json: bool) -> Result<u8, Failure> {
    let report = page::render_again(&arguments.directory)?;
    if json {
        output::json(&json!({ "report": report }))?;
    } else {
        output::text(&format!("{}\n", report.display()))?;
    }
    Ok(0)
}
