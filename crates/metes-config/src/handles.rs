//! Heaps that give handles instead of pointers: named by specs as the others, but nothing
//! that needs pointers can run on them.
//!
//! Invariant: [`parse`] of what [`HandleHeap::spec`] says is the same heap.

use metes_heap::fragmented::{self, Shape};

use crate::error::{Error, Source};
use crate::spec::split;

/// Names of heaps of handles that have specs.
pub(crate) const HANDLE_HEAPS: [&str; 1] = ["fragmented"];

const SHAPES: [(&str, Shape); 2] = [("chain", Shape::Chain), ("tree", Shape::Tree)];

/// A heap whose blocks a program reaches by handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleHeap {
    /// Objects as chains or trees of equal blocks.
    Fragmented(fragmented::Options),
}

impl HandleHeap {
    /// The spec that says everything about it. Only what differs from a default is said.
    pub fn spec(&self) -> String {
        let HandleHeap::Fragmented(options) = self;
        let default = fragmented::Options::DEFAULT;
        let mut said = Vec::new();
        if options.block != default.block {
            said.push(format!("block={}", options.block));
        }
        if options.shape != default.shape {
            let word = SHAPES.iter().find(|(_, shape)| *shape == options.shape);
            said.extend(word.map(|(word, _)| format!("shape={word}")));
        }
        match said.is_empty() {
            true => "fragmented".to_owned(),
            false => format!("fragmented:{}", said.join(",")),
        }
    }
}

/// Reads a spec, if it names a heap of handles; `source` is what errors call the text.
pub(crate) fn parse(text: &str, source: &str) -> Option<Result<HandleHeap, Error>> {
    let name = text.split(':').next()?;
    HANDLE_HEAPS
        .contains(&name)
        .then(|| fragmented(Source { name: source, text }))
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
