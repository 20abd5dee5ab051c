//! `metes man`: the manual pages, from the command line's own description.
//!
//! Invariant: a page for the command and one for each verb, `metes-VERB.1`, verbs of verbs too;
//! none replaces a file that is no page of Metes, and none is written if one may not be.

use std::path::PathBuf;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use serde::Serialize;

use crate::arguments::{self, Arguments};
use crate::error::Failure;
use crate::output;
use crate::own::{self, Form};

#[derive(Serialize)]
struct Document {
    files: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &arguments::Man, json: bool) -> Result<u8, Failure> {
    let directory = &arguments.output;
    let mut pages = Vec::new();
    let mut command = Arguments::command();
    command.build();
    render(command, "metes".to_owned(), &mut pages)
        .map_err(|error| Failure::io("write a page of", directory, error))?;
    for (name, _) in &pages {
        own::may_write(&directory.join(name), Form::Manual, None)?;
    }
    output::directory(directory)?;
    let mut files = Vec::with_capacity(pages.len());
    for (name, page) in pages {
        let path = directory.join(name);
        output::export(&path, Form::Manual, &page)?;
        files.push(path);
    }
    if json {
        output::json(&Document { files })?;
    } else {
        let first = directory.join("metes.1");
        output::text(&format!(
            "{} manual pages in {}: man {}\n",
            files.len(),
            directory.display(),
            first.display()
        ))?;
    }
    Ok(0)
}

/// Appends the page of a command and those of its verbs. Names become `metes-device-fit`, as
/// `man` and the pages of other programs have them.
fn render(
    command: Command,
    name: String,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> std::io::Result<()> {
    let verbs: Vec<Command> = (command.get_subcommands())
        .filter(|verb| verb.get_name() != "help" && !verb.is_hide_set())
        .cloned()
        .collect();
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(".\\\" Metes {version}\n").into_bytes();
    // A page's name is the command's: it has no spaces.
    let titled = command.name(name.clone()).version(version);
    Man::new(titled)
        .source(format!("metes {version}"))
        .manual("Metes")
        .render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    for verb in verbs {
        let name = format!("{name}-{}", verb.get_name());
        render(verb, name, pages)?;
    }
    Ok(())
}
