//! What a search among suggested heaps left (`metes tune`, `metes explore`), in
//! the columns of an exploration: `results.jsonl`, `pareto.json` and the heaps
//! in `pareto/`.
//!
//! Invariant: one row for each outcome of a whole replay; what is no outcome is
//! an error with its line.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::columns::{Column, Columns, Values};
use crate::error::Error;
use crate::folder::document;

/// A line of `results.jsonl`.
#[derive(Deserialize)]
struct Outcome {
    number: u64,
    named: Option<String>,
    heap: String,
    constant_time: bool,
    footprint: u64,
    cycles: u64,
    cycles_max: u64,
    record_reads: u64,
    record_writes: u64,
    failed: u64,
}

/// Columns and document of such a directory; `None` where there is none.
/// O(outcomes).
pub(crate) fn read(directory: &Path) -> Result<Option<(Columns, Value)>, Error> {
    let path = directory.join("results.jsonl");
    let Some(found) = document(&directory.join("pareto.json"))? else {
        return Ok(None);
    };
    let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
    let mut outcomes = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let outcome: Outcome = serde_json::from_str(line)
            .map_err(|error| Error::damaged(&path, format!("line {}: {error}", index + 1)))?;
        outcomes.push(outcome);
    }
    let heaps = heaps(directory, &outcomes);
    let exploration = exploration(&found, &outcomes, &heaps);
    Ok(Some((columns(&found, &outcomes), exploration)))
}

/// The `heap.toml` of each heap that the directory has one of, by its name.
fn heaps(directory: &Path, outcomes: &[Outcome]) -> HashMap<String, String> {
    let named = outcomes.iter().filter(|outcome| outcome.named.is_some());
    let mut heaps: HashMap<String, String> = named
        .filter_map(|outcome| {
            let config = metes_config::resolve(&outcome.heap).ok()?;
            Some((outcome.heap.clone(), config.to_toml()))
        })
        .collect();
    let files = fs::read_dir(directory.join("pareto"));
    for entry in files.into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        if let Ok(config) = metes_config::parse(&text, "heap.toml") {
            heaps.insert(config.name(), text);
        }
    }
    heaps
}

/// The numbers of a list of outcomes.
fn numbers(found: &Value, list: &str) -> HashSet<u64> {
    let outcomes = found.get(list).and_then(Value::as_array);
    let outcomes = outcomes.into_iter().flatten();
    outcomes
        .filter_map(|outcome| outcome.get("number")?.as_u64())
        .collect()
}

fn exploration(found: &Value, outcomes: &[Outcome], heaps: &HashMap<String, String>) -> Value {
    let front = numbers(found, "pareto");
    let list = |keep: &dyn Fn(&Outcome) -> bool| -> Vec<Value> {
        let kept = outcomes.iter().filter(|outcome| keep(outcome));
        kept.map(|outcome| {
            json!({
                "number": outcome.number,
                "named": outcome.named,
                "heap": outcome.heap,
                "toml": heaps.get(&outcome.heap),
                "footprint": outcome.footprint,
                "cycles": outcome.cycles,
                "cycles_max": outcome.cycles_max,
            })
        })
        .collect()
    };
    json!({
        "configurations": found.get("configurations"),
        "space": found.get("space"),
        "distinct": found.get("distinct"),
        "beaten": found.get("beaten"),
        "interrupted": found.get("interrupted"),
        "front": list(&|outcome| front.contains(&outcome.number)),
        "named": list(&|outcome| outcome.named.is_some()),
    })
}

fn columns(found: &Value, outcomes: &[Outcome]) -> Columns {
    let front = numbers(found, "pareto");
    let integers = |name: &str, of: &dyn Fn(&Outcome) -> u64| Column {
        name: name.to_owned(),
        values: Values::Integers(outcomes.iter().map(|own| Some(of(own))).collect()),
    };
    let words = |name: &str, of: &dyn Fn(&Outcome) -> Option<String>| {
        let mut dictionary = Vec::new();
        let mut known = HashMap::new();
        let mut code = |word: String| {
            *known.entry(word.clone()).or_insert_with(|| {
                dictionary.push(word);
                dictionary.len() as u32 - 1
            })
        };
        let codes = outcomes.iter().map(|own| of(own).map(&mut code)).collect();
        Column {
            name: name.to_owned(),
            values: Values::Words { dictionary, codes },
        }
    };
    let status = |own: &Outcome| match own.failed {
        0 => "complete".to_owned(),
        _ => "failed".to_owned(),
    };
    let list = vec![
        integers("number", &|own| own.number),
        words("named", &|own| own.named.clone()),
        words("status", &|own| Some(status(own))),
        integers("front", &|own| u64::from(front.contains(&own.number))),
        words("general", &|own| Some(general(&own.heap))),
        integers("dedicated_pools", &|own| pools(&own.heap, "dedicated ")),
        integers("object_pools", &|own| pools(&own.heap, "objects ")),
        integers("constant_time", &|own| u64::from(own.constant_time)),
        integers("footprint", &|own| own.footprint),
        integers("accesses", &|own| own.record_reads + own.record_writes),
        integers("record_reads", &|own| own.record_reads),
        integers("record_writes", &|own| own.record_writes),
        integers("cycles", &|own| own.cycles),
        integers("cycles_max", &|own| own.cycles_max),
        integers("failed", &|own| own.failed),
    ];
    Columns { list }
}

/// The parts of a heap as its name tells them.
fn parts(heap: &str) -> impl Iterator<Item = &str> {
    heap.split(" + ")
}

/// The kinds of its general pools, without their parameters.
fn general(heap: &str) -> String {
    let general = parts(heap).filter(|part| !part.starts_with("dedicated "));
    let general = general.filter(|part| !part.starts_with("objects "));
    let kinds = general.map(|part| part.split([':', ' ']).next().unwrap_or(part));
    kinds.collect::<Vec<_>>().join(" + ")
}

/// Pools of one size each, which the part `kind` lists.
fn pools(heap: &str, kind: &str) -> u64 {
    let listed = parts(heap).filter_map(|part| part.strip_prefix(kind));
    listed.map(|sizes| sizes.split('/').count() as u64).sum()
}
