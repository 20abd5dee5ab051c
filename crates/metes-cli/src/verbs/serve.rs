//! `metes serve`.

use std::path::Path;

use metes_explorer::Folder;
use metes_explorer::serve::{Server, interrupted};
use serde_json::json;

use crate::arguments::Serve;
use crate::emitted;
use crate::error::Failure;
use crate::output;

pub(crate) fn run(arguments: &Serve, json: bool) -> Result<u8, Failure> {
    let folder = Folder::read(&arguments.directory)?;
    let configurations = folder.columns.rows();
    let emit = |toml: &str, directory: &Path| {
        let config = metes_config::parse(toml, "heap.toml").map_err(|error| error.to_string())?;
        emitted::write(&config, directory).map_err(|failure| failure.to_string())
    };
    let describe = |_| None;
    let server = Server::bind(folder, arguments.port, Box::new(emit), Box::new(describe))?;
    let url = format!("http://{}/", server.address());
    if json {
        output::json(&json!({ "url": url, "configurations": configurations }))?;
    } else {
        output::text(&format!("{url}\n"))?;
        output::note("answers until Ctrl-C");
    }
    server.run(interrupted())?;
    Ok(0)
}
