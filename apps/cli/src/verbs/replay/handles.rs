//! `metes replay` on heaps of handles.

use metes_config::HandleHeap;
use metes_explore::{BlockCount, Events, HandleReplay, replay_block_table, replay_handles};
use metes_heap::{compact, fragmented};

use super::requests;
use crate::arguments::Replay;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::quantity::{bytes, grouped, ratio};
use crate::{output, tracefile};

pub(super) fn run(heap: &HandleHeap, arguments: &Replay, json: bool) -> Result<u8, Failure> {
    if arguments.levels.is_some() {
        return Err(Failure::input(format!(
            "{} lies in one memory: leave out --levels",
            heap.spec()
        )));
    }
    let trace = tracefile::read(&arguments.trace)?;
    let events = tracefile::events(&trace)?;
    let replay = match heap {
        HandleHeap::Fragmented(options) => replay(heap, options, arguments.arena, &events),
        HandleHeap::BlockTable(options) => in_table(heap, options, arguments.arena, &events)?,
    };
    if json {
        output::json(&replay)?;
    } else {
        show(&replay)?;
    }
    if replay.failed > 0 {
        output::note(&match heap {
            HandleHeap::Fragmented(_) => verdict(arguments.arena, &replay),
            HandleHeap::BlockTable(options) => format!(
                "{} failed, above the largest class of {} bytes or more aligned than any: raise \
                 `page` and `largest`",
                requests(replay.failed),
                grouped(options.partition.largest as u64)
            ),
        });
        return Ok(DOES_NOT_HOLD);
    }
    Ok(0)
}

/// Replays on compact-fit behind a block table.
fn in_table(
    heap: &HandleHeap,
    options: &compact::Options,
    arena: Option<u64>,
    events: &Events,
) -> Result<HandleReplay, Failure> {
    if arena.is_some() {
        return Err(Failure::input(format!(
            "{} is replayed on memory without end: leave out --arena",
            heap.spec()
        )));
    }
    replay_block_table(&heap.spec(), options, events)
        .map_err(|unfit| Failure::input(unfit.to_string()))
}

fn replay(
    heap: &HandleHeap,
    options: &fragmented::Options,
    arena: Option<u64>,
    events: &Events,
) -> HandleReplay {
    let counted = |arena| {
        let mut blocks = BlockCount::new(*options, arena);
        replay_handles(&heap.spec(), &mut blocks, events)
    };
    let mut replay = counted(arena);
    // What it takes where it may is what it needs: only blocks that are in use count.
    let grown = match arena {
        Some(_) => counted(None),
        None => replay.clone(),
    };
    replay.smallest_arena = (grown.failed == 0).then_some(grown.footprint);
    replay
}

fn verdict(arena: Option<u64>, replay: &HandleReplay) -> String {
    let failed = requests(replay.failed);
    match (arena, replay.smallest_arena) {
        (Some(arena), Some(least)) => format!(
            "arena too small by {} bytes: the trace needs {} on this heap; {failed} failed",
            grouped(least.saturating_sub(arena)),
            grouped(least),
        ),
        _ => format!(
            "{failed} failed: the trace needs more than 16 777 215 blocks; take larger blocks"
        ),
    }
}

fn show(replay: &HandleReplay) -> Result<(), Failure> {
    let mut text = String::new();
    let mut line = |name: &str, value: String| text += &format!("{name:<18} {value}\n");
    let with_bytes = |number: u64| format!("{} = {} B", bytes(number), grouped(number));
    line("heap", replay.heap.clone());
    line(
        "events",
        format!(
            "{} ({} allocations, {} frees, {} resizes)",
            grouped(replay.events),
            grouped(replay.allocations),
            grouped(replay.frees),
            grouped(replay.resizes)
        ),
    );
    line("peak live", with_bytes(replay.peak_live));
    let beside = |number: u64| {
        format!(
            "{}, {} × peak live",
            with_bytes(number),
            ratio(number, replay.peak_live)
        )
    };
    line("footprint", beside(replay.footprint));
    if let Some(least) = replay.smallest_arena {
        line("smallest arena", beside(least));
    }
    line("failed", grouped(replay.failed));
    line(
        "replayed",
        format!(
            "{} events per second",
            grouped(replay.events_per_second as u64)
        ),
    );
    output::text(&text)
}
