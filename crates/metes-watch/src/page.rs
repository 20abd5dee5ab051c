//! A view as a page: one HTML file that opens from disk and asks the network for nothing; served,
//! it asks its server for the next views.
//!
//! Invariant: each marker of the skeleton occurs once and in no part; data goes in last, with
//! every `<` escaped, so that no string of it is taken for a marker or ends an element.

use crate::view::View;

const SCRIPTS: [&str; 2] = [
    include_str!("../../../ui/experiment.js"),
    include_str!("../../../ui/watch.js"),
];

/// Cells of a page's map.
pub const CELLS: usize = 2048;

/// The page of a moment; `every` milliseconds it asks its server for the next.
#[must_use]
pub fn page(view: &View, every: Option<u64>) -> String {
    let style = concat!(
        include_str!("../../../ui/report.css"),
        include_str!("../../../ui/watch.css")
    );
    let document = serde_json::json!({ "view": view, "every": every });
    let connect = match every {
        Some(_) => "'self'",
        None => "'none'",
    };
    include_str!("../../../ui/watch.html")
        .replacen("/*METES_STYLE*/", style, 1)
        .replacen("/*METES_CONNECT*/", connect, 1)
        .replacen("/*METES_SCRIPT*/", &SCRIPTS.join("\n"), 1)
        .replacen(
            "/*METES_DATA*/null",
            &document.to_string().replace('<', "\\u003c"),
            1,
        )
}
