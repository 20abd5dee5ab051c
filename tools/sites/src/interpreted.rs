//! Stacks of interpreted programs as their authors know them.
//!
//! A stack of Python has some ten calls of the interpreter for each of the program. Those of functions that were made
//! at run time, and have names, are the program's.
//!
//! *Invariant:* every request keeps its figures: a stack without such a call stays as it is.

use metes_trace::{Stacks, StacksBuilder, Trace};

/// Leaves of each stack the named calls of code that was made at run time, where there are some. O(events + calls of all
/// stacks).
pub fn interpreted(trace: &mut Trace) {
    let old = &trace.stacks;
    let is_interpreted =
        |place: u32, module: Option<u32>| module.is_none() && old.names(place).next().is_some();
    let mut builder = StacksBuilder::default();
    let modules: Vec<u32> = old
        .modules()
        .iter()
        .map(|module| builder.module(module.clone()))
        .collect();
    let mut sites = vec![0];
    for site in 1..=old.len() as u64 {
        let places = old
            .calls(site)
            .filter_map(|node| Some(old.nodes().get(node as usize)?.place));
        let calls: Vec<(bool, (Option<u32>, u64))> = places
            .filter_map(|place| {
                let own = old.places().get(place as usize)?;
                let module = own.module.and_then(|module| modules.get(module as usize));
                let call = (module.copied(), own.address);
                Some((is_interpreted(place, own.module), call))
            })
            .collect();
        let any = calls.iter().any(|(interpreted, _)| *interpreted);
        let kept: Vec<_> = calls
            .into_iter()
            .filter(|(interpreted, _)| *interpreted || !any)
            .map(|(_, call)| call)
            .collect();
        let ending = old
            .stack(site)
            .map_or(metes_trace::stacks::Ending::Whole, |stack| stack.ending);
        sites.push(builder.stack(&kept, ending));
    }
    let mut stacks = builder.finish();
    rename(&mut stacks, old, &modules);
    trace.restack(stacks, |site| {
        sites.get(site as usize).copied().unwrap_or(0)
    });
}

/// Gives places the names that they have among the old ones.
fn rename(stacks: &mut Stacks, old: &Stacks, modules: &[u32]) {
    let names: std::collections::HashMap<(Option<u32>, u64), u32> = (0..)
        .zip(old.places())
        .map(|(number, own)| {
            let module = own.module.and_then(|module| modules.get(module as usize));
            ((module.copied(), own.address), number)
        })
        .collect();
    stacks.name(|_, place| {
        let number = names.get(&(place.module, place.address));
        let names = number.map(|&number| old.names(number));
        names
            .into_iter()
            .flatten()
            .map(|name| (name.function.to_owned(), name.file.to_owned(), name.line))
            .collect()
    });
}
