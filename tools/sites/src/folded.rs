//! Folded stacks: a line a stack, the outermost call first, and its figure: what makers of flame graphs read.
//!
//! *Invariant:* a line has one space before its figure and none of the separators within a name; figures of all
//! lines together are those of the trace.

use metes_trace::Stacks;

use crate::figures::{Figures, Sites};
use crate::tree::calls;

/// The stacks, folded. Stacks that read the same are one line; requests without a stack are `[unknown]`.
#[must_use]
pub fn folded(stacks: &Stacks, sites: &Sites, by: impl Fn(&Figures) -> u64) -> String {
    let mut lines = std::collections::BTreeMap::<String, u64>::new();
    for (site, figures) in (0u64..).zip(&sites.figures) {
        let figure = by(figures);
        if figure == 0 {
            continue;
        }
        let mut names: Vec<String> = calls(stacks, site)
            .iter()
            .map(|call| plain(&call.function))
            .collect();
        names.reverse();
        if names.is_empty() {
            names.push("[unknown]".to_owned());
        }
        let line = lines.entry(names.join(";")).or_default();
        *line = line.saturating_add(figure);
    }
    lines
        .iter()
        .map(|(names, figure)| format!("{names} {figure}\n"))
        .collect()
}

/// A name without separators and what controls a terminal.
fn plain(name: &str) -> String {
    let name = name.replace(';', ":").replace(['\n', '\r', '\t'], " ");
    metes_quantity::printable(&name).into_owned()
}
