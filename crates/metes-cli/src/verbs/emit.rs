//! `metes emit`.

use serde_json::json;

use crate::arguments::Emit;
use crate::error::Failure;
use crate::{emitted, heap, output};

pub(crate) fn run(arguments: &Emit, json: bool) -> Result<u8, Failure> {
    let config = heap::resolve(&arguments.heap)?;
    let mut files = emitted::write(&config, &arguments.output)?;
    if arguments.build {
        files.push(emitted::build(&arguments.output)?);
    }
    if json {
        output::json(&json!({ "heap": config.name(), "emitted": files }))?;
    } else {
        let mut text = format!("{}\n", config.name());
        for file in &files {
            text += &format!("  {}\n", file.display());
        }
        output::text(&text)?;
    }
    Ok(0)
}
