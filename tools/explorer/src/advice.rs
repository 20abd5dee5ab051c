//! Which heap of a folder we would take, why, and what is proven of it.
//!
//! Invariant: what `metes tune` or `metes explore` chose is what is advised where the folder says so; the rule
//! otherwise is one that can be said in a sentence, of figures of the folder.

use metes_explore::report::DemandFigures;
use metes_heap::bounds::Bound;
use serde::Serialize;
use serde_json::Value;

use crate::columns::{Columns, Values};
use crate::folder::Folder;

/// How much more accesses than the fewest a heap may cost: half as many again.
const SLACK: (u64, u64) = (3, 2);

/// The heap that we would take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Advice {
    /// Its number.
    number: u64,
    /// Why it is this one.
    why: String,
    /// Bytes that are proven to suffice for every program of the trace's demand; none where no size is known.
    heap_bytes: Option<u64>,
    /// Declared times of its operations; none where its demand is not known.
    time: Option<Times>,
}

/// Times in the notation of complexity.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Times {
    allocate: String,
    free: String,
}

/// The advice of a folder; none where its front is empty. O(configurations).
pub(crate) fn advise(folder: &Folder) -> Option<Advice> {
    let (number, why) = chosen(folder).or_else(|| by_rule(&folder.columns))?;
    let bound = folder
        .heap(number)
        .and_then(|toml| bound(toml, folder.profile.as_ref()?));
    let heap_bytes = bound.as_ref().and_then(|bound| bound.heap_bytes);
    Some(Advice {
        number,
        why,
        heap_bytes: heap_bytes.and_then(|bytes| u64::try_from(bytes).ok()),
        time: bound.map(|bound| Times {
            allocate: bound.time.allocate.to_string(),
            free: bound.time.free.to_string(),
        }),
    })
}

/// The heap that the program chose which filled the folder, and its reason.
fn chosen(folder: &Folder) -> Option<(u64, String)> {
    let (spec, why) = folder.chosen.as_ref()?;
    let list = |name| folder.exploration.get(name).and_then(Value::as_array);
    let all = [list("front"), list("named")];
    let heap = { all.into_iter().flatten().flatten() }
        .find(|heap| heap.get("heap").and_then(Value::as_str) == Some(spec))?;
    Some((heap.get("number")?.as_u64()?, why.clone()))
}

/// Of those of the front that cost at most half as many accesses again as the cheapest, the smallest.
fn by_rule(columns: &Columns) -> Option<(u64, String)> {
    let figures = |name| match columns.get(name) {
        Some(Values::Integers(values)) => Some(values),
        _ => None,
    };
    let [numbers, front] = [figures("number")?, figures("front")?];
    let [footprints, accesses] = [figures("footprint")?, figures("accesses")?];
    let rows = (0..front.len()).filter(|&row| front[row] == Some(1));
    let rows: Vec<usize> = rows.collect();
    let fewest = rows.iter().filter_map(|&row| accesses[row]).min()?;
    let limit = u128::from(fewest) * u128::from(SLACK.0) / u128::from(SLACK.1);
    let affordable = |row: &&usize| accesses[**row].is_some_and(|own| u128::from(own) <= limit);
    let best = { rows.iter().filter(affordable) }
        .filter(|&&row| footprints[row].is_some())
        .min_by_key(|&&row| (footprints[row], accesses[row]))?;
    let why = format!(
        "Of the {} that nothing beats it has the smallest footprint among those that cost at most \
         half as many accesses again as the cheapest.",
        rows.len()
    );
    Some((numbers[*best]?, why))
}

/// What is proven of a heap for the demand of the profiled trace.
fn bound(toml: &str, profile: &Value) -> Option<Bound> {
    let demand = profile.get("demand")?;
    let demand: DemandFigures = serde_json::from_value(demand.clone()).ok()?;
    let config = metes_config::parse(toml, "heap.toml").ok()?;
    let mut bound = metes_config::guarantee(&config, &demand.demand()).ok()?;
    if let Some(from) = config
        .arena
        .mapped
        .filter(|&from| demand.largest >= from as u64)
    {
        bound.heap_bytes = bound
            .heap_bytes
            .map(|pools| metes_heap::mapped::most(from, pools, demand.live));
    }
    Some(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Column;

    fn columns(figures: [(&str, &[u64]); 4]) -> Columns {
        let list = figures.map(|(name, values)| Column {
            name: name.to_owned(),
            values: Values::Integers(values.iter().copied().map(Some).collect()),
        });
        Columns { list: list.into() }
    }

    #[test]
    fn the_rule_takes_the_smallest_of_those_that_cost_little_more() {
        let found = by_rule(&columns([
            ("number", &[11, 12, 13, 14, 15]),
            ("front", &[1, 1, 1, 1, 0]),
            ("footprint", &[100, 120, 130, 200, 1]),
            ("accesses", &[1000, 150, 149, 100, 1]),
        ]));
        let (number, why) = found.unwrap();
        assert_eq!(number, 12);
        assert!(why.contains("Of the 4"), "{why}");
    }

    #[test]
    fn an_empty_front_has_no_advice() {
        let none: [(&str, &[u64]); 4] =
            ["number", "front", "footprint", "accesses"].map(|name| (name, &[0_u64][..]));
        assert_eq!(by_rule(&columns(none)), None);
    }

    #[test]
    fn the_bound_is_that_of_the_demand() {
        let demand = serde_json::json!({"demand": {"live": 1 << 20, "largest": 4096, "smallest": 16, "alignment": 1, "resizes": false}});
        let toml = metes_config::resolve("tlsf").unwrap().to_toml();
        let bytes = bound(&toml, &demand).unwrap().heap_bytes.unwrap();
        assert!(bytes > 1 << 20, "{bytes}");
        assert!(bound(&toml, &serde_json::json!({})).is_none());
    }
}
