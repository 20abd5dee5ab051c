//! The report: its document and its page on disk.
//!
//! Invariant: the document is written beside the page, so that the page can be
//! rendered again; both are replaced whole.

use std::path::{Path, PathBuf};

use metes_explore::report::{Document, Material};
use metes_explore::{Choice, Compared, Events, Options, catalogue, write_json, write_whole};
use metes_trace::{Profile, Trace};

use crate::error::Error;
use crate::search::Searched;

/// File name of the document.
pub const DOCUMENT: &str = "report.json";
/// File name of the page.
pub const PAGE: &str = "report.html";

/// What a report is of.
#[derive(Debug)]
pub struct Content<'a> {
    trace: &'a Trace,
    searched: &'a Searched,
    profile: Profile,
    /// The named heaps and the chosen one.
    pub(crate) compared: Vec<Compared>,
    choice: Option<&'a Choice>,
}

impl<'a> Content<'a> {
    /// The named heaps that were replayed and the chosen one, with all there is to
    /// know about each: O(heaps × events), within what the search left of its budget.
    pub fn new(
        trace: &'a Trace,
        events: &Events,
        searched: &'a Searched,
        choice: Option<&'a Choice>,
    ) -> Content<'a> {
        let unfinished = &searched.found.unfinished;
        let named = catalogue()
            .into_iter()
            .filter(|named| unfinished.iter().all(|heap| heap.named != Some(named.name)));
        let mut heaps: Vec<_> = named
            .map(|named| (named.name.to_owned(), named.description))
            .collect();
        if let Some(Choice { outcome, .. }) = choice
            && heaps
                .iter()
                .all(|(_, description)| *description != outcome.description)
        {
            heaps.push((outcome.heap.clone(), outcome.description));
        }
        Content {
            trace,
            searched,
            profile: metes_trace::profile(trace),
            compared: searched.compare(&heaps, events),
            choice,
        }
    }

    /// How the heaps were replayed.
    pub(crate) fn options(&self) -> Options {
        self.searched.options
    }

    /// The document so far; what was measured is filled in by the caller.
    pub fn document(&self, deterministic: Option<bool>) -> Document {
        Document::new(&Material {
            trace: self.trace,
            profile: &self.profile,
            deterministic,
            exploration: &self.searched.found,
            budget: &self.searched.budget,
            options: &self.searched.options,
            compared: &self.compared,
            choice: self.choice,
        })
    }
}

/// Writes document and page below `directory`; the path of the page.
///
/// # Errors
/// When the files cannot be written.
pub fn write(directory: &Path, document: &Document) -> Result<PathBuf, Error> {
    let page = document
        .page()
        .map_err(|error| Error::Page(error.to_string()))?;
    write_json(&directory.join(DOCUMENT), document)?;
    let path = directory.join(PAGE);
    write_whole(&path, page.as_bytes())?;
    Ok(path)
}
