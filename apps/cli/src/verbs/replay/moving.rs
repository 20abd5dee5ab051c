//! `metes replay` on compact-fit whose blocks move.

use metes_config::{Config, Moving};
use metes_explore::Events;
use metes_explore::moving::{MovingReplay, replay};
use metes_heap::compact::{Options, Partition};
use serde_json::json;

use super::requests;
use crate::arguments::Replay;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output;
use crate::quantity::{bytes, grouped, ratio};

/// Replays on the heap of `config`, whose blocks move as `moving` says.
pub(super) fn run(
    arguments: &Replay,
    config: &Config,
    moving: Moving,
    events: &Events,
    json: bool,
) -> Result<u8, Failure> {
    if arguments.arena.is_some() || arguments.levels.is_some() {
        return Err(Failure::input(format!(
            "{} is replayed on pages without end: leave out --arena and --levels",
            config.name()
        )));
    }
    let options = Options {
        partition: config.heap.partition.unwrap_or(Partition::DEFAULT),
        kappa: moving.kappa,
        increment: None,
    };
    let found = replay(&config.name(), &options, events)
        .map_err(|unfit| Failure::input(unfit.to_string()))?;
    if moving.increment.is_some() {
        output::note(
            "a replay has no threads that meet a move half done: each move is made at once, \
             and `increment` changes nothing",
        );
    }
    match json {
        true => output::json(&json!(found))?,
        false => show(&found)?,
    }
    if found.above_largest > 0 {
        output::note(&format!(
            "{} above the largest class of {} bytes, the largest of {}: {}",
            requests(found.above_largest),
            grouped(options.partition.largest as u64),
            grouped(found.largest_refused),
            remedy(&options.partition, found.largest_refused)
        ));
    }
    if found.misaligned > 0 {
        output::note(&format!(
            "{} more aligned than any class",
            requests(found.misaligned)
        ));
    }
    Ok(match found.failed {
        0 => 0,
        _ => DOES_NOT_HOLD,
    })
}

/// What makes a class for requests of `size` bytes.
fn remedy(partition: &Partition, size: u64) -> String {
    use metes_heap::compact::backing::RECORD;
    use metes_heap::compact::options::LARGEST_PAGE;
    let whole = size + RECORD as u64;
    if whole <= partition.page as u64 {
        return format!("raise `largest` to {size}");
    }
    match whole <= LARGEST_PAGE as u64 {
        true => format!(
            "raise `page` to {} and `largest` to {size}",
            whole.next_power_of_two()
        ),
        false => format!(
            "no page holds more than {} bytes, so none serves them: with `moving=no` another \
             heap serves them behind the classes",
            LARGEST_PAGE - RECORD
        ),
    }
}

fn show(found: &MovingReplay) -> Result<(), Failure> {
    let mut text = String::new();
    let mut line = |name: &str, value: String| text += &format!("{name:<20} {value}\n");
    line("heap", found.heap.clone());
    line(
        "events",
        format!(
            "{} ({} allocations, {} frees, {} resizes)",
            grouped(found.events),
            grouped(found.allocations),
            grouped(found.frees),
            grouped(found.resizes)
        ),
    );
    let with_bytes = |number: u64| format!("{} = {} B", bytes(number), grouped(number));
    line("peak live", with_bytes(found.peak_live));
    line(
        "footprint",
        format!(
            "{}, {} × peak live, {} pages",
            with_bytes(found.footprint),
            ratio(found.footprint, found.peak_live),
            grouped(found.pages)
        ),
    );
    line("failed", grouped(found.failed));
    let shares = found.fragmentation;
    let shares = [
        ("page-block-internal", shares.page_block_internal),
        ("page-internal", shares.page_internal),
        ("size-class", shares.size_class),
        ("spare pages", shares.spare),
        ("handles", shares.handles),
        ("records", shares.records),
    ];
    for (name, share) in shares {
        line(name, format!("{} at the peak", with_bytes(share)));
    }
    line(
        "moves",
        format!(
            "{}, {} bytes moved or copied",
            grouped(found.moves),
            grouped(found.moved_bytes)
        ),
    );
    line("record accesses", "not counted".to_owned());
    line(
        "replayed",
        format!(
            "{} events per second",
            grouped(found.events_per_second as u64)
        ),
    );
    output::text(&text)
}
