//! A view as a page: one HTML file that opens from disk and asks the network for nothing; served,
//! it asks its server for the next views.
//!
//! Invariant: a page that is a file may ask nobody, a served one its server alone.

use crate::view::View;

/// Cells of a page's map.
pub const CELLS: usize = 2048;

/// The page of a moment; `every` milliseconds it asks its server for the next.
#[must_use]
pub fn page(view: &View, every: Option<u64>) -> String {
    let document = serde_json::json!({ "view": view, "every": every });
    metes_ui::WATCH.fill_with(every.is_some(), "", &document.to_string())
}
