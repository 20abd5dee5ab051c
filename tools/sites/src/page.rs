//! The page of sites: a flame graph, sites and functions.
//!
//! *Invariant:* the flame graph's root is everything, and no call is less than what it calls together; what is too
//! narrow to be seen is left out, and counted.

use std::collections::HashMap;

use metes_trace::Trace;
use serde::Serialize;
use serde_json::json;

use crate::By;
use crate::figures::{Figures, Sites};
use crate::names::nameless;
use crate::tree::{at, calls, functions};

/// Version of the page's document.
pub const VERSION: u32 = 2;
/// Sites and functions that the page lists, by each figure.
const MOST_LISTED: usize = 100;
/// A call that is less than this part of everything, by every figure, is not drawn.
const LEAST_PART: u64 = 4000;
/// Calls that are drawn.
const MOST_DRAWN: usize = 20_000;

/// A call of the flame graph, in the context of those that led to it.
struct Drawn {
    parent: usize,
    name: usize,
    /// By [`By::ALL`], with all that it calls.
    figures: [u64; By::ALL.len()],
}

/// A site on the page.
#[derive(Serialize)]
struct Listed<'a> {
    site: usize,
    calls: Vec<String>,
    #[serde(flatten)]
    figures: &'a Figures,
}

/// The page of a trace's sites, first by one figure. O(stacks and their calls).
///
/// # Errors
/// When it cannot be written as JSON, which is not met.
pub fn page(trace: &Trace, sites: &Sites, by: By) -> serde_json::Result<String> {
    let (names, nodes, left_out) = flames(trace, sites);
    let mut listed: Vec<usize> = Vec::new();
    for by in By::ALL {
        let most = sites.ordered(|figures| by.of(figures)).into_iter();
        listed.extend(most.take(MOST_LISTED));
    }
    listed.sort_unstable();
    listed.dedup();
    let listed: Vec<Listed<'_>> = listed
        .into_iter()
        .map(|site| Listed {
            site,
            calls: calls(&trace.stacks, site as u64)
                .iter()
                .map(crate::Call::text)
                .collect(),
            figures: &sites.figures[site],
        })
        .collect();
    let functions = By::ALL.map(|by| {
        let mut functions = functions(&trace.stacks, sites, |figures| by.of(figures));
        functions.truncate(MOST_LISTED);
        functions
    });
    let document = json!({
        "version": VERSION,
        "command": trace.provenance.command.join(" "),
        "events": trace.len(),
        "by": by,
        "timed": sites.timed,
        "peak_live": sites.peak_live,
        "leaked": sites.leaked,
        "allocations": sites.total(|figures| figures.allocations),
        "resizes": sites.total(|figures| figures.resizes),
        "bytes": sites.total(|figures| figures.bytes),
        "sites": listed,
        "all_sites": sites.ordered(|figures| figures.allocations + figures.resizes).len(),
        "functions": functions,
        "names": names,
        "nodes": nodes,
        "left_out": left_out,
        "calls": trace.stacks.places().len(),
        "nameless": nameless(&trace.stacks),
    });
    Ok(metes_ui::SITES.fill(&serde_json::to_string(&document)?))
}

/// Names; calls as parent, name and figures, a parent before what it calls, the root first; how many are left out.
fn flames(trace: &Trace, sites: &Sites) -> (Vec<String>, Vec<Vec<u64>>, usize) {
    let stacks = &trace.stacks;
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    let mut number = |name: String| {
        *numbers.entry(name.clone()).or_insert_with(|| {
            names.push(name);
            names.len() - 1
        })
    };
    let everything = number("everything".to_owned());
    let unknown = number("[stack not known]".to_owned());
    let places: Vec<Vec<usize>> = (0..stacks.places().len())
        .map(|place| {
            at(stacks, place as u32)
                .into_iter()
                .map(|call| number(call.function))
                .collect()
        })
        .collect();
    let mut drawn = vec![Drawn {
        parent: 0,
        name: everything,
        figures: [0; By::ALL.len()],
    }];
    let mut known: HashMap<(usize, usize), usize> = HashMap::new();
    for (site, figures) in (0u64..).zip(&sites.figures) {
        let figures = By::ALL.map(|by| by.of(figures));
        if figures == [0; By::ALL.len()] {
            continue;
        }
        let nodes = stacks.calls(site);
        let own =
            nodes.filter_map(|node| places.get(stacks.nodes().get(node as usize)?.place as usize));
        let mut path: Vec<usize> = own.flatten().copied().collect();
        path.reverse();
        if path.is_empty() {
            path.push(unknown);
        }
        let add = |node: &mut Drawn| {
            for (sum, figure) in node.figures.iter_mut().zip(figures) {
                *sum = sum.saturating_add(figure);
            }
        };
        let mut parent = 0;
        add(&mut drawn[0]);
        for name in path {
            parent = *known.entry((parent, name)).or_insert_with(|| {
                drawn.push(Drawn {
                    parent,
                    name,
                    figures: [0; By::ALL.len()],
                });
                drawn.len() - 1
            });
            add(&mut drawn[parent]);
        }
    }
    let total = drawn[0].figures;
    let seen = |node: &Drawn| {
        let mut parts = node.figures.iter().zip(total);
        parts.any(|(&figure, total)| figure > 0 && figure >= total / LEAST_PART)
    };
    let mut places: Vec<Option<u64>> = vec![None; drawn.len()];
    let mut kept = Vec::new();
    for (index, node) in drawn.iter().enumerate() {
        let parent = places[node.parent];
        let wanted = index == 0 || (parent.is_some() && seen(node));
        if wanted && kept.len() < MOST_DRAWN {
            places[index] = Some(kept.len() as u64);
            let mut row = vec![parent.unwrap_or(0), node.name as u64];
            row.extend(node.figures);
            kept.push(row);
        }
    }
    let left_out = drawn.len() - kept.len();
    // Of the names only those that are drawn.
    let mut used: Vec<Option<u64>> = vec![None; names.len()];
    let mut kept_names = Vec::new();
    for node in &mut kept {
        let name = node[1] as usize;
        node[1] = *used[name].get_or_insert_with(|| {
            kept_names.push(names[name].clone());
            kept_names.len() as u64 - 1
        });
    }
    (kept_names, kept, left_out)
}
