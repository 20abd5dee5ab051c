//! Heaps that give handles instead of pointers: named by specs as the others, but nothing
//! that needs pointers can run on them.
//!
//! Invariant: [`parse`] of what [`HandleHeap::spec`] says is the same heap.

use metes_heap::compact;
use metes_heap::complexity::Declaration;
use metes_heap::fragmented::{self, Shape};

use crate::error::{Error, Source};
use crate::partition;
use crate::quantity::spell_size;
use crate::spec::split;

/// Names of heaps of handles that have specs.
pub(crate) const HANDLE_HEAPS: [&str; 1] = ["fragmented"];

const SHAPES: [(&str, Shape); 2] = [("chain", Shape::Chain), ("tree", Shape::Tree)];

/// A heap whose blocks a program reaches by handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleHeap {
    /// Objects as chains or trees of equal blocks.
    Fragmented(fragmented::Options),
    /// Compact-fit whose blocks move in a table: no byte of them is copied, and none has an
    /// address.
    BlockTable(compact::Options),
}

/// What names compact-fit of that kind.
const TABLE: (&str, &str) = ("moving", "table");

impl HandleHeap {
    /// What the heap declares of its time and fragmentation.
    pub const fn declares(&self) -> Declaration {
        match self {
            HandleHeap::Fragmented(options) => options.shape.declares(),
            HandleHeap::BlockTable(options) => options.declares_with_block_table(),
        }
    }

    /// The spec that says everything about it. Only what differs from a default is said.
    pub fn spec(&self) -> String {
        let (name, said) = match self {
            HandleHeap::Fragmented(options) => ("fragmented", write_fragmented(options)),
            HandleHeap::BlockTable(options) => (partition::NAME, write_table(options)),
        };
        let said: Vec<String> = said
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        match said.is_empty() {
            true => name.to_owned(),
            false => format!("{name}:{}", said.join(",")),
        }
    }
}

fn write_fragmented(options: &fragmented::Options) -> Vec<(&'static str, String)> {
    let default = fragmented::Options::DEFAULT;
    let mut said = Vec::new();
    if options.block != default.block {
        said.push(("block", options.block.to_string()));
    }
    if options.shape != default.shape {
        let word = SHAPES.iter().find(|(_, shape)| *shape == options.shape);
        said.extend(word.map(|(word, _)| ("shape", (*word).to_owned())));
    }
    said
}

fn write_table(options: &compact::Options) -> Vec<(&'static str, String)> {
    let mut said = vec![(TABLE.0, TABLE.1.to_owned())];
    said.extend(partition::write_options(options));
    if options.partition.granule != compact::Partition::DEFAULT.granule {
        said.push(("granule", spell_size(options.partition.granule)));
    }
    said
}

/// Reads a spec, if it names a heap of handles; `source` is what errors call the text.
pub(crate) fn parse(text: &str, source: &str) -> Option<Result<HandleHeap, Error>> {
    let source = Source { name: source, text };
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    if HANDLE_HEAPS.contains(&name) {
        return Some(fragmented(source));
    }
    let in_table = |item: &str| item.split_once('=') == Some(TABLE);
    (name == partition::NAME && parameters.split(',').any(in_table)).then(|| table(source))
}

fn table(source: Source<'_>) -> Result<HandleHeap, Error> {
    let (name, mut fields) = split(source)?;
    fields.choice(TABLE.0, &[(TABLE.1, ())])?;
    let kappa = fields.kappa("kappa")?;
    let granule = fields.size("granule", &[])?;
    let mut options = partition::read_options(0..name.len(), &mut fields, kappa)?;
    if let Some((granule, at)) = granule {
        options.partition.granule = granule;
        options
            .validate(compact::backing::RECORD)
            .map_err(|why| fields.error(at, why.to_string()))?;
    }
    fields.finish()?;
    Ok(HandleHeap::BlockTable(options))
}

fn fragmented(source: Source<'_>) -> Result<HandleHeap, Error> {
    let (_, mut fields) = split(source)?;
    let mut options = fragmented::Options::DEFAULT;
    if let Some((block, at)) = fields.size("block", &[])? {
        options.block = block;
        options
            .validate()
            .map_err(|why| fields.error(at, why.to_string()))?;
    }
    if let Some((shape, _)) = fields.choice("shape", &SHAPES)? {
        options.shape = shape;
    }
    fields.finish()?;
    Ok(HandleHeap::Fragmented(options))
}
