//! `metes emit`.

use metes_config::StoreKind;
use serde_json::json;

use crate::arguments::Emit;
use crate::error::Failure;
use crate::{emitted, heap, output};

pub(crate) fn run(arguments: &Emit, json: bool) -> Result<u8, Failure> {
    let config = heap::resolve(&arguments.heap)?;
    if arguments.build && config.store == StoreKind::Hardened {
        return Err(Failure::input(format!(
            "{} is emitted as Rust alone, and `--build` builds C: use `metes run`, whose library \
             verifies, or leave out `--build` or the `store`",
            config.name()
        )));
    }
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
