//! `metes serve`.

use std::path::Path;
use std::sync::OnceLock;

use metes_explore::{Arena, Space, engine};
use metes_explorer::Folder;
use metes_explorer::serve::Server;
use serde_json::json;

use crate::arguments::Serve;
use crate::emitted;
use crate::error::Failure;
use crate::{interrupt, output, results, space, tracefile};

/// The space that a folder was explored in, where its trace is still there.
fn space_of(directory: &Path) -> Result<Space, Failure> {
    let (folder, manifest) = engine::Folder::read(directory)?;
    let origin = folder.origin()?;
    let events = tracefile::events(&tracefile::read(&origin.trace)?)?;
    if manifest.space == Space::SUGGESTED {
        let arena = Arena {
            mapped: manifest.mapped(),
            ..Arena::HOST
        };
        return Ok(Space::suggested(&events, &arena));
    }
    let text = space::Text {
        name: origin.space_name,
        text: origin.space,
    };
    space::read(&text, &events)
}

pub(crate) fn run(arguments: &Serve, json: bool) -> Result<u8, Failure> {
    results::settle(&arguments.directory);
    let folder = Folder::read(&arguments.directory)?;
    let configurations = folder.columns.rows();
    let emit = |toml: &str, directory: &Path| {
        let config = metes_config::parse(toml, "heap.toml").map_err(|error| error.to_string())?;
        emitted::into(&config, directory, false).map_err(|failure| failure.to_string())
    };
    let described = OnceLock::new();
    let directory = arguments.directory.clone();
    let describe = move |number| {
        let space = described.get_or_init(|| space_of(&directory).ok());
        Some(space.as_ref()?.describe(number)?.to_toml())
    };
    let server = Server::bind(folder, arguments.port, Box::new(emit), Box::new(describe))?;
    let url = format!("http://{}/", server.address());
    let ended = interrupt::ended()?;
    if json {
        output::json(&json!({ "url": url, "configurations": configurations }))?;
    } else {
        output::text(&format!("{url}\n"))?;
        output::note("answers until Ctrl-C");
    }
    server.run(ended)?;
    Ok(0)
}
