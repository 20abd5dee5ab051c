//! Described spaces: by the name of a built-in one, or from a file.

use std::path::Path;

use metes_explore::{Events, PAPER, PROTOTYPE, Space, SpaceDescription};

use crate::error::Failure;

/// The text of a space, and what errors call it.
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Finds the text of a space.
pub(crate) fn find(space: &str) -> Result<Text, Failure> {
    let built_in = match space {
        "paper" => Some(PAPER),
        "prototype" => Some(PROTOTYPE),
        _ => None,
    };
    if let Some(text) = built_in {
        return Ok(Text {
            name: space.to_owned(),
            text: text.to_owned(),
        });
    }
    if ["all", "constant-time", "named"].contains(&space) {
        return Err(Failure::input(format!(
            "`{space}` is searched, and has no parameters to ask by: give a described space, --space \
             paper or --space FILE.toml"
        )));
    }
    let path = Path::new(space);
    if path.extension().is_none() && !path.exists() {
        let known = ["all", "constant-time", "named", "paper", "prototype"];
        let help = metes_config::suggest(space, known).unwrap_or_default();
        return Err(Failure::input(format!(
            "there is no space `{space}` ({help}); or give a file, as in --space my.toml"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))?;
    Ok(Text {
        name: space.to_owned(),
        text,
    })
}

/// The space of a text for a trace.
pub(crate) fn read(Text { name, text }: &Text, events: &Events) -> Result<Space, Failure> {
    let description = SpaceDescription::parse(text, name).map_err(Failure::Heap)?;
    Ok(Space::new(&description, events, text, name)?)
}
