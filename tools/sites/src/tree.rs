//! Stacks as people read them: calls by names, functions inlined among them.
//!
//! *Invariant:* every place has one call at least.

use std::collections::HashMap;

use metes_trace::Stacks;
use serde::Serialize;

use crate::figures::{Figures, Sites};

/// A call by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// The function; `module+0x1234` where it has no name.
    pub function: String,
    /// The source file; empty if not known.
    pub file: String,
    /// The line; 0 if not known.
    pub line: u32,
    /// The file of the module; empty where none lay.
    pub module: String,
    /// It is inlined into the one after it.
    pub inlined: bool,
}

impl Call {
    /// Function, file and line, in a line.
    #[must_use]
    pub fn text(&self) -> String {
        let file = self.file.rsplit('/').next().unwrap_or(&self.file);
        match (self.line, file.is_empty()) {
            (_, true) => self.function.clone(),
            (0, false) => format!("{} ({file})", self.function),
            (line, false) => format!("{} ({file}:{line})", self.function),
        }
    }
}

/// The calls of a site, the innermost first; none if its stack is not known.
#[must_use]
pub fn calls(stacks: &Stacks, site: u64) -> Vec<Call> {
    let places = stacks
        .calls(site)
        .filter_map(|node| Some(stacks.nodes().get(node as usize)?.place));
    places.flat_map(|place| at(stacks, place)).collect()
}

/// The calls at a place, the innermost first.
pub(crate) fn at(stacks: &Stacks, place: u32) -> Vec<Call> {
    let own = stacks.places().get(place as usize);
    let module = own.and_then(|own| stacks.modules().get(own.module? as usize));
    let module = module.map_or("", |module| &*module.path);
    let mut calls: Vec<Call> = stacks
        .names(place)
        .map(|name| Call {
            function: name.function.to_owned(),
            file: name.file.to_owned(),
            line: name.line,
            module: module.to_owned(),
            inlined: true,
        })
        .collect();
    if calls.is_empty() {
        calls.push(Call {
            function: stacks.plain(place),
            file: String::new(),
            line: 0,
            module: module.to_owned(),
            inlined: true,
        });
    }
    if let Some(last) = calls.last_mut() {
        last.inlined = false;
    }
    calls
}

/// What was asked for in a function, or in what it called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inclusive {
    /// The function.
    pub function: String,
    /// The file of the module.
    pub module: String,
    /// The figure, over all stacks in which the function is, however often.
    pub all: u64,
    /// The figure over those in which it is the innermost.
    pub own: u64,
}

/// Functions by a figure of the stacks they are in, the most first. O(calls of all stacks).
#[must_use]
pub fn functions(stacks: &Stacks, sites: &Sites, by: impl Fn(&Figures) -> u64) -> Vec<Inclusive> {
    let mut numbers: HashMap<(String, String), usize> = HashMap::new();
    let mut functions: Vec<Inclusive> = Vec::new();
    let places: Vec<Vec<usize>> = (0..stacks.places().len())
        .map(|place| {
            let calls = at(stacks, place as u32).into_iter();
            calls
                .map(|call| {
                    let key = (call.function, call.module);
                    *numbers.entry(key.clone()).or_insert_with(|| {
                        let (function, module) = key;
                        functions.push(Inclusive {
                            function,
                            module,
                            all: 0,
                            own: 0,
                        });
                        functions.len() - 1
                    })
                })
                .collect()
        })
        .collect();
    // Counted once a stack: by the last stack that counted it.
    let mut counted = vec![0u64; functions.len()];
    for (site, figures) in (0u64..).zip(&sites.figures).skip(1) {
        let figure = by(figures);
        if figure == 0 {
            continue;
        }
        let nodes = stacks.calls(site);
        let own =
            nodes.filter_map(|node| places.get(stacks.nodes().get(node as usize)?.place as usize));
        for (depth, &function) in own.flatten().enumerate() {
            if depth == 0 {
                functions[function].own = functions[function].own.saturating_add(figure);
            }
            if counted[function] != site {
                counted[function] = site;
                functions[function].all = functions[function].all.saturating_add(figure);
            }
        }
    }
    functions.retain(|function| function.all > 0);
    functions.sort_by(|one, other| (other.all, &one.function).cmp(&(one.all, &other.function)));
    functions
}
