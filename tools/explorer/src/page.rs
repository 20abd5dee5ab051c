//! The explorer as one HTML file.
//!
//! The columns lie in the page as compressed bytes, the plotting library too, so
//! that the file asks the network for nothing. `ui/README.md` says what the page
//! does with them.
//!
//! Invariant: each marker of the skeleton occurs once and in no part; data goes
//! in last, so that no string of it is taken for a marker.

use std::path::Path;
use std::sync::OnceLock;

use serde::Serialize;
use serde_json::{Map, Value};

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
    };
    let json = serde_json::to_string(&document)
        .map_err(|error| Error::Content(format!("the explorer cannot be rendered: {error}")))?;
    let connect = if served { "'self'" } else { "'none'" };
    let marks = [
        ("CONNECT", connect),
        ("PLOTLY", plotly()),
        ("BYTES", &bytes),
    ];
    Ok(metes_ui::EXPLORER.fill(&marks, &json))
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

/// The plotting library, compressed, as base64.
fn plotly() -> &'static str {
    static PACKED: OnceLock<String> = OnceLock::new();
    PACKED.get_or_init(|| pack::compressed(plotly_source().as_bytes()))
}

/// The script of the plotting library alone, without the typesetter for formulas
/// that the crate gives along with it.
fn plotly_source() -> String {
    const TAG: &str = "<script type=\"text/javascript\">";
    let scripts = plotly::Plot::offline_js_sources();
    scripts
        .split(TAG)
        .map(|script| script.trim_end().trim_end_matches("</script>"))
        .find(|script| script.contains("* plotly.js v"))
        .expect("the crate embeds its library")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plotting_library_is_there_whole_and_alone() {
        let source = plotly_source();
        assert!(
            source.starts_with("/**\n* plotly.js v"),
            "{}",
            &source[..40]
        );
        assert!(source.contains("Licensed under the MIT license"));
        assert!(!source.contains("<script") && !source.contains("</script"));
        assert!((4_000_000..6_000_000).contains(&source.len()));
    }
}
