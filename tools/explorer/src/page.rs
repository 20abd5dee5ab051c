//! The explorer as one HTML file.
//!
//! The columns lie in the page as compressed bytes, so that the file asks the
//! network for nothing. The page's own README says what it does with them.
//!
//! Invariant: only a served page tells where its folder lies.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::advice::{Advice, advise};
use crate::error::Error;
use crate::folder::Folder;
use crate::pack::{self, Packed};

/// What the page is told, beside the columns' bytes.
#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    directory: String,
    /// Whether a server stands behind the page, which emits heaps.
    served: bool,
    rows: usize,
    columns: Vec<Packed>,
    exploration: &'a Value,
    profile: Option<&'a Value>,
    provenance: &'a Map<String, Value>,
    /// The heap that we would take.
    advice: Option<Advice>,
}

/// The page of a folder; `served` when this program answers its requests.
/// O(configurations).
///
/// # Errors
/// [`Error::Content`] when the document cannot be written as JSON.
pub fn page(folder: &Folder, served: bool) -> Result<String, Error> {
    let (columns, bytes) = pack::pack(&folder.columns);
    let name = folder.directory.canonicalize();
    let name = name.as_deref().unwrap_or(&folder.directory);
    let document = Document {
        version: 1,
        directory: match served {
            // A file that is passed on need not tell where it was made.
            false => name
                .file_name()
                .map_or("".into(), |name| name.to_string_lossy().into_owned()),
            true => name.display().to_string(),
        },
        served,
        rows: folder.columns.rows(),
        columns,
        exploration: &folder.exploration,
        profile: folder.profile.as_ref(),
        provenance: &folder.provenance,
        advice: advise(folder),
    };
    let json = serde_json::to_string(&document)
        .map_err(|error| Error::Content(format!("the explorer cannot be rendered: {error}")))?;
    Ok(metes_ui::EXPLORER.fill_with(served, &bytes, &json))
}

/// Writes the page of a folder, whole or not at all; its bytes.
///
/// # Errors
/// [`Error::Content`], [`Error::Io`].
pub fn write(folder: &Folder, path: &Path) -> Result<usize, Error> {
    let page = page(folder, false)?;
    crate::export::whole(path, page.as_bytes())?;
    Ok(page.len())
}
