//! What was found, as a document and as a page.
//!
//! Invariant: the page shows the document and nothing else.

use std::time::SystemTime;

use metes_explore::report::Interleaved;
use serde::Serialize;

/// What `metes interleave` prints with `--json`, and its page shows.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// Of its form.
    pub version: u32,
    /// `interleaved`.
    pub kind: &'static str,
    /// In words.
    pub title: String,
    /// When, RFC 3339.
    pub created: String,
    /// The recording.
    pub trace: String,
    /// The figures.
    #[serde(flatten)]
    pub found: Interleaved,
}

impl Document {
    /// Of a recording's file, made now.
    #[must_use]
    pub fn of(trace: String, found: Interleaved) -> Self {
        Document {
            version: 1,
            kind: "interleaved",
            title: format!("{} threads in any order", found.threads),
            created: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            trace,
            found,
        }
    }

    /// The page: one file that opens from disk.
    ///
    /// # Errors
    /// When the document cannot be written as JSON.
    pub fn page(&self) -> serde_json::Result<String> {
        Ok(metes_ui::INTERLEAVED.fill(&serde_json::to_string(self)?))
    }
}
