//! `metes replay`.

use metes_explore::{Options, Replayer, smallest_arena};
use serde_json::Value;

use crate::arguments::Replay;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::quantity::{bytes, grouped, ratio};
use crate::{heap, output, progress, tracefile};

pub(crate) fn run(arguments: &Replay, json: bool) -> Result<u8, Failure> {
    let config = heap::resolve(&arguments.heap)?;
    let trace = tracefile::read(&arguments.trace)?;
    let events = tracefile::events(&trace)?;
    let description = &config.heap;
    let name = config.name();
    let growing = options_of(&config);
    let mut replayer = Replayer::new();

    let wheel = progress::spinner("smallest arena");
    let smallest = smallest_arena(&mut replayer, description, &events, &growing);
    wheel.finish_and_clear();

    let mut options = growing;
    if let Some(arena) = arguments.arena {
        fix(&mut options, &config, arena)?;
    }
    let (mut replay, _) = replayer.replay(&name, description, &events, &options);
    replay.smallest_arena = smallest.map(|smallest| smallest.bytes);
    let incomplete = replay.events < events.len() as u64;
    let fails = replay.failed > 0 || incomplete;
    if json {
        let mut document =
            serde_json::to_value(&replay).map_err(|error| Failure::input(error.to_string()))?;
        if let (Some(arena), Value::Object(fields)) = (arguments.arena, &mut document) {
            fields.insert("arena".into(), arena.into());
            let lacking = replay
                .smallest_arena
                .map(|least| least.saturating_sub(arena));
            fields.insert("lacking".into(), lacking.into());
        }
        output::json(&document)?;
    } else {
        show(&replay)?;
    }
    if fails {
        output::note(&verdict(arguments.arena, &replay, incomplete));
        return Ok(DOES_NOT_HOLD);
    }
    Ok(0)
}

/// Replays as the heap's own arena grows.
pub(crate) fn options_of(config: &metes_config::Config) -> Options {
    let mut options = Options::default();
    options.arena.increment = config.arena.increment;
    options.arena.levels = config.level_sizes();
    options
}

/// One region of `arena` bytes.
fn fix(options: &mut Options, config: &metes_config::Config, arena: u64) -> Result<(), Failure> {
    if config.heap.general.len() > 1 || !config.heap.objects.is_empty() {
        return Err(Failure::input(format!(
            "{} has several pools, and --arena is for heaps of one: leave it out and look at \
             `smallest_arena`",
            config.name()
        )));
    }
    let most = options.arena.span as u64;
    if arena > most {
        return Err(Failure::input(format!(
            "an arena of {} bytes is beyond the {} that a heap is laid out for: give less",
            grouped(arena),
            grouped(most)
        )));
    }
    // Below the largest address range, so it fits a word.
    options.arena.fixed[0] = Some(arena as usize);
    Ok(())
}

fn verdict(arena: Option<u64>, replay: &metes_explore::Replay, incomplete: bool) -> String {
    match (arena, replay.smallest_arena) {
        (Some(arena), Some(least)) if least > arena => format!(
            "arena too small by {} bytes: the trace needs {} on this heap and it has {}{}",
            grouped(least - arena),
            grouped(least),
            grouped(arena),
            match incomplete {
                true => ", not even room for the control structure".to_owned(),
                false => format!("; {} failed", requests(replay.failed)),
            }
        ),
        (_, Some(least)) => format!(
            "{} failed, though {} bytes suffice: more memory does not always help",
            requests(replay.failed),
            grouped(least)
        ),
        (_, None) => format!(
            "{} failed for being larger than any arena: no memory suffices",
            requests(replay.failed)
        ),
    }
}

fn requests(number: u64) -> String {
    match number {
        1 => "1 request".to_owned(),
        number => format!("{} requests", grouped(number)),
    }
}

fn show(replay: &metes_explore::Replay) -> Result<(), Failure> {
    let mut text = String::new();
    let mut line = |name: &str, value: String| text += &format!("{name:<18} {value}\n");
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
    let with_bytes = |number: u64| format!("{} = {} B", bytes(number), grouped(number));
    line("peak live", with_bytes(replay.peak_live));
    line(
        "footprint",
        format!(
            "{}, {} × peak live",
            with_bytes(replay.footprint),
            ratio(replay.footprint, replay.peak_live)
        ),
    );
    if let Some(least) = replay.smallest_arena {
        line(
            "smallest arena",
            format!(
                "{}, {} × peak live",
                with_bytes(least),
                ratio(least, replay.peak_live)
            ),
        );
    }
    line("failed", grouped(replay.failed));
    line("record reads", grouped(replay.record_reads));
    line("record writes", grouped(replay.record_writes));
    line(
        "modelled cycles",
        format!(
            "mean {:.1}, maximum {}",
            replay.cycles_mean,
            grouped(replay.cycles_max)
        ),
    );
    line(
        "replayed",
        format!(
            "{} events per second",
            grouped(replay.events_per_second as u64)
        ),
    );
    output::text(&text)
}
