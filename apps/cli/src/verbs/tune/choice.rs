//! What `tune --json` says of a choice, whatever was tuned: a program, a module, an image.
//!
//! Invariant: the keys of every document are these and those of its kind.

use std::path::{Path, PathBuf};

use metes_config::Config;
use metes_explore::report::Document;
use metes_explore::{Exploration, Outcome};
use serde_json::{Value, json};

use crate::error::Failure;
use crate::output;
use crate::search::outcomes;

pub(super) struct Choice<'a> {
    pub(super) config: &'a Config,
    pub(super) why: &'a str,
    pub(super) found: &'a Exploration,
    pub(super) document: &'a Document,
    pub(super) outcome: &'a Outcome,
    pub(super) front: &'a [PathBuf],
    pub(super) page: &'a Path,
    pub(super) emitted: &'a [PathBuf],
}

impl Choice<'_> {
    /// Prints the document, `own` with it: what only this kind of tuning has to say.
    pub(super) fn print(&self, own: Value) -> Result<(), Failure> {
        let (found, document, outcome) = (self.found, self.document, self.outcome);
        let mut all = json!({
            "heap": self.config.name(),
            "mapped": self.config.arena.mapped,
            "pages": self.config.arena.pages.map(|pages| pages.to_string()),
            "why": self.why,
            "bounds": document.heaps.iter().find(|heap| heap.chosen).map(|heap| &heap.bounds),
            "bounded": document.configurations.bounded,
            "guarantee": document.guarantee,
            "cycles_max": outcome.cycles_max,
            "own_cycles_max": outcome.own_cycles_max,
            "copy_cycles_max": outcome.copy_cycles_max,
            "threads": document.trace.threads,
            "pareto": outcomes(&found.pareto, self.front)?,
            "sampled": found.sampled,
            "unfinished": found.unfinished,
            "configurations": found.configurations,
            "distinct": found.distinct,
            "seconds": found.seconds,
            "report": output::name(self.page),
            "emitted": output::names(self.emitted),
        });
        if let (Value::Object(all), Value::Object(own)) = (&mut all, own) {
            all.extend(own);
        }
        output::json(&all)
    }
}
