//! The report: its document and its page on disk.
//!
//! Invariant: the document is written beside the page, so that the page can be
//! rendered again; both are replaced whole.

use std::path::{Path, PathBuf};

use metes_explore::report::{Document, Material, PlacementFigures, Usage};
use metes_explore::{
    Choice, Compared, Events, Options, Replay, catalogue, write_json, write_whole,
};
use metes_trace::{Profile, Trace};

use crate::check::Difference;
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

/// What a run on the emitted heap measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// Most requested bytes live at once.
    pub peak_live: u64,
    /// Bytes that the heap took.
    pub footprint: u64,
    /// Predicted = measured.
    pub equal: bool,
    /// Each block lay where it was predicted.
    pub placements_equal: bool,
    /// Events of the run.
    pub events: u64,
    /// Where it differs first from what was predicted.
    pub difference: Option<&'a Difference>,
}

/// Puts what was predicted, measured and emitted into a document.
pub fn tell(
    document: &mut Document,
    predicted: &Replay,
    measured: Option<&Measured<'_>>,
    emitted: &[PathBuf],
) {
    let Some(chosen) = document.chosen.as_mut() else {
        return;
    };
    chosen.predicted = Usage {
        peak_live: predicted.peak_live,
        footprint: predicted.footprint,
    };
    chosen.measured = measured.map(|measured| Usage {
        peak_live: measured.peak_live,
        footprint: measured.footprint,
    });
    chosen.equal = measured.map(|measured| measured.equal);
    chosen.placements = measured.map(|measured| PlacementFigures {
        events: measured.events,
        equal: measured.placements_equal,
        first_difference: measured
            .difference
            .and_then(|difference| serde_json::to_value(difference).ok()),
    });
    chosen.emitted = { emitted.iter() }
        .map(|path| path.display().to_string())
        .collect();
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
