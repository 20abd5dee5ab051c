//! `metes reproduce hypervolume`: how many evaluations searches need.
//!
//! Invariant: every share is of the hypervolume of the whole space, which is
//! replayed to the end in the same run.

use std::time::Instant;

use metes_cases::packets::{Options, packets, trace};
use metes_explore::engine::contest::{Ground, Run};
use metes_explore::engine::{Explorer, Method, Plan};
use metes_explore::{Events, PROTOTYPE, Space, SpaceDescription};
use serde_json::json;

use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, BOLD, GOOD, POOR, Table};
use crate::quantity::grouped;
use crate::{interrupt, progress};

const METHODS: [Method; 3] = [Method::Random, Method::Local, Method::Nsga2];
const SEEDS: u64 = 10;
/// Evaluations of a search at most.
const MOST: u64 = 3000;
/// Within so many evaluations every seed of one search is to reach 99 %.
const TARGET: u64 = 1000;

const ASSUMPTIONS: [&str; 4] = [
    "the packets are generated: sizes and shares of the paper, not its captures",
    "objectives are footprint and accesses by logarithm, between the best and the worst outcome of the whole space",
    "an evaluation is a replay of a configuration not replayed before; dead parameters are folded before the search for all methods alike",
    "the searches see outcomes of replays to the end",
];

pub(super) fn run(quick: bool, json: bool) -> Result<u8, Failure> {
    let stop = interrupt::flag()?;
    let start = Instant::now();
    let options = Options {
        packets: if quick { 1500 } else { 12_000 },
        ..Options::default()
    };
    let trace = trace(&packets(&options));
    let events = Events::try_from(&trace).map_err(|error| Failure::input(error.to_string()))?;
    let description = SpaceDescription::parse(PROTOTYPE, "prototype").map_err(Failure::Heap)?;
    let space = Space::new(&description, &events, PROTOTYPE, "prototype")?;
    let explorer = Explorer::new(&space, &events, Plan::default(), 0);
    let wheel = progress::spinner("replaying the whole space");
    let ground = Ground::new(&explorer, &stop);
    let runs = match &ground {
        Some(ground) => ground.runs(&explorer, &METHODS, SEEDS, MOST),
        None => Vec::new(),
    };
    wheel.finish_and_clear();
    let Some(ground) = ground else {
        return Err(Failure::input("interrupted before the space was replayed"));
    };
    let within = |method: Method| {
        let own = runs.iter().filter(|run| run.method == method.name());
        own.filter(|run| run.reached[1].is_some_and(|count| count < TARGET))
            .count() as u64
    };
    let holds = METHODS.into_iter().any(|method| within(method) == SEEDS);
    if json {
        let row = |method: Method| {
            let reached = |share| figures(&runs, method, share).1;
            json!({
                "what": format!("{}: evaluations to 99 % of the hypervolume, median of {SEEDS} seeds", method.name()),
                "paper": null,
                "ours": reached(1),
                "ratio": null,
                "note": format!("95 %: {:?}; 100 %: {:?}; {} of {SEEDS} seeds below {TARGET}", reached(0), reached(2), within(method)),
            })
        };
        output::json(&json!({
            "experiment": "hypervolume",
            "rows": METHODS.map(row),
            "assumptions": ASSUMPTIONS,
            "raw": space.raw().to_string(),
            "space": space.size(),
            "distinct": ground.distinct,
            "front": ground.front.len(),
            "events": events.len(),
            "runs": runs,
            "seconds": start.elapsed().as_secs_f64(),
            "holds": holds,
        }))?;
    } else {
        let mut table = Table::new(&["search", "95 %", "99 %", "100 %", "99 % below 1 000"]);
        for method in METHODS {
            let mut cells = vec![method.name().to_owned()];
            cells.extend((0..3).map(|share| figures(&runs, method, share).0));
            cells.push(format!("{} of {SEEDS}", within(method)));
            table.row(anstyle::Style::new(), cells);
        }
        let mut text = format!(
            "{BOLD}hypervolume{BOLD:#}: {} grid points, {} configurations, {} outcomes, {} unbeaten; {} events\nevaluations until a share of the exact hypervolume is reached: median [least..most], seeds\n\n{table}\n",
            grouped(space.raw()),
            grouped(space.size()),
            grouped(ground.distinct as u64),
            ground.front.len(),
            grouped(events.len() as u64),
        );
        for assumption in ASSUMPTIONS {
            text += &format!("  - {assumption}\n");
        }
        text += &match holds {
            true => format!(
                "\n{GOOD}one search reaches 99 % in fewer than {TARGET} evaluations on every seed{GOOD:#}\n"
            ),
            false => format!(
                "\n{POOR}no search reaches 99 % in fewer than {TARGET} evaluations on every seed{POOR:#}\n"
            ),
        };
        output::text(&text)?;
    }
    Ok(if holds { 0 } else { DOES_NOT_HOLD })
}

/// In words, and the median where every second seed got there.
fn figures(runs: &[Run], method: Method, share: usize) -> (String, Option<u64>) {
    let own = runs.iter().filter(|run| run.method == method.name());
    let mut reached: Vec<u64> = own.filter_map(|run| run.reached[share]).collect();
    reached.sort_unstable();
    let (Some(least), Some(most)) = (reached.first(), reached.last()) else {
        return ("- 0".to_owned(), None);
    };
    // Seeds that did not get there took longer than all that did.
    let median = reached.get((SEEDS as usize - 1) / 2).copied();
    let text = match median {
        Some(median) => format!("{median} [{least}..{most}] {}", reached.len()),
        None => format!("- [{least}..] {}", reached.len()),
    };
    (text, median)
}
