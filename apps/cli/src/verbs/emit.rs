//! `metes emit`.

use std::path::Path;

use metes_config::StoreKind;
use metes_emit::METES_HEAP;
use serde_json::json;

use crate::arguments::Emit;
use crate::error::Failure;
use crate::{emitted, heap, output};

pub(crate) fn run(arguments: &Emit, json: bool) -> Result<u8, Failure> {
    let Some(heap) = &arguments.heap else {
        return recorder(&arguments.output, json);
    };
    let config = heap::resolve(heap)?;
    if arguments.build && config.store == StoreKind::Hardened {
        return Err(Failure::input(format!(
            "{} is emitted as Rust alone, and `--build` builds C: use `metes run`, whose library \
             verifies, or leave out `--build` or the `store`",
            config.name()
        )));
    }
    let files = emitted::into(&config, &arguments.output, arguments.build)?;
    if json {
        output::json(&json!({ "heap": config.name(), "emitted": output::names(&files) }))?;
    } else {
        let mut text = format!("{}\n", config.name());
        // What the crate is made of is many files, and one thing.
        let folder = arguments.output.join(METES_HEAP);
        let (parts, files): (Vec<_>, Vec<_>) =
            files.iter().partition(|file| file.starts_with(&folder));
        for file in files {
            text += &format!("  {}\n", file.display());
        }
        if !parts.is_empty() {
            text += &format!("  {} ({} files)\n", folder.display(), parts.len());
        }
        output::text(&text)?;
    }
    Ok(0)
}

/// The recorder for firmware.
fn recorder(place: &Path, json: bool) -> Result<u8, Failure> {
    let files = emitted::recorder(place)?;
    if json {
        output::json(&json!({ "emitted": output::names(&files) }))?;
    } else {
        let lines = files.iter().map(|file| format!("{}\n", file.display()));
        output::text(&lines.collect::<String>())?;
    }
    Ok(0)
}
