//! `metes replay`.

mod handles;
mod moving;

use metes_config::{AnyHeap, Config, StoreKind};
use metes_explore::{
    Events, Hierarchy, LEVELS, Options, PriceReport, Replayer, shortages, smallest_arena,
};
use metes_trace::Trace;
use serde_json::{Value, json};

use crate::arguments::Replay;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::quantity::{bytes, grouped, ratio};
use crate::{energy, heap, output, progress, tracefile};

pub(crate) fn run(arguments: &Replay, json: bool) -> Result<u8, Failure> {
    let config = match heap::named(&arguments.heap)? {
        AnyHeap::Pointers(config) => *config,
        AnyHeap::Handles(heap) => return handles::run(&heap, arguments, json),
    };
    let trace = tracefile::read(&arguments.trace)?;
    let events = tracefile::events(&trace)?;
    if let StoreKind::Moving(blocks) = config.store {
        return moving::run(arguments, &config, blocks, &events, json);
    }
    let description = &config.heap;
    let name = config.name();
    let hierarchy = hierarchy(arguments, &config, &trace, &events)?;
    let mut growing = Options::of(&config);
    let own_sizes = growing.arena.levels;
    if let Some(hierarchy) = &hierarchy {
        // A heap that does not go with the levels need not be replayed.
        hierarchy.pricer(description, &own_sizes, events.access_word())?;
        if arguments.levels.is_some() {
            energy::limit(&mut growing.arena, hierarchy)?;
        }
    }
    let mut replayer = Replayer::new();

    // Pools that share a level, or spill into the next, have no least memory each.
    let smallest = match growing.arena.levels == [None; LEVELS] {
        true => {
            let wheel = progress::spinner("smallest arena");
            let smallest = smallest_arena(&mut replayer, description, &events, &growing);
            wheel.finish_and_clear();
            smallest
        }
        false => None,
    };

    let mut options = growing;
    if let Some(arena) = arguments.arena {
        fix(&mut options, &config, arena)?;
    }
    let (mut replay, _) = replayer.replay(&name, description, &events, &options);
    replay.smallest_arena = smallest.map(|smallest| smallest.bytes);
    let incomplete = replay.events < events.len() as u64;
    let fails = replay.failed > 0 || incomplete;
    let price = match &hierarchy {
        Some(hierarchy) if !fails => Some(energy::price(
            hierarchy,
            &config,
            &own_sizes,
            &events,
            &options,
            &replay,
            arguments.records_only,
        )?),
        _ => None,
    };
    let lacking = match fails && options.arena.levels != [None; LEVELS] {
        true => shortages(&mut replayer, description, &events, &options),
        false => Vec::new(),
    };
    if json {
        let mut document =
            serde_json::to_value(&replay).map_err(|error| Failure::input(error.to_string()))?;
        if let Value::Object(fields) = &mut document {
            if let Some(arena) = arguments.arena {
                fields.insert("arena".into(), arena.into());
                let least = replay.smallest_arena;
                let lacking = least.map(|least| least.saturating_sub(arena));
                fields.insert("lacking".into(), lacking.into());
            }
            if hierarchy.is_some() {
                fields.insert("price".into(), json!(price));
            }
            let too_small = lacking.iter().map(|shortage| {
                json!({
                    "level": shortage.level,
                    "size": shortage.size,
                    "lacking": shortage.needed - shortage.size as u64,
                })
            });
            if !lacking.is_empty() {
                fields.insert("too_small".into(), too_small.collect());
            }
        }
        output::json(&document)?;
    } else {
        show(&replay, price.as_ref())?;
    }
    if fails {
        match lacking.is_empty() {
            true => output::note(&verdict(arguments.arena, &replay, incomplete)),
            false => energy::too_small(&energy::names(&config, hierarchy.as_ref()), &lacking)
                .iter()
                .for_each(|line| output::note(line)),
        }
        return Ok(DOES_NOT_HOLD);
    }
    Ok(0)
}

/// What prices the replay: the levels of the command line, else those of the heap
/// where it gives them figures.
fn hierarchy(
    arguments: &Replay,
    config: &Config,
    trace: &Trace,
    events: &Events,
) -> Result<Option<Hierarchy>, Failure> {
    let command = &trace.provenance.command;
    if let Some(levels) = &arguments.levels {
        let hierarchy = energy::resolve(levels, &energy::own_levels(config))?;
        if !arguments.records_only {
            energy::need_accesses(&arguments.trace, command, events)?;
        }
        if matches!(Hierarchy::of_heap(config, &arguments.heap), Ok(Some(_))) {
            output::note("the figures of --levels count, not those of the heap's own levels");
        }
        return Ok(Some(hierarchy));
    }
    let own = Hierarchy::of_heap(config, &arguments.heap)?;
    if own.is_none() && arguments.records_only {
        return Err(Failure::input(
            "--records-only is about energy and time: add --levels, or give the levels of the \
             heap.toml `read_energy`, `write_energy` and `latency`",
        ));
    }
    if own.is_some() && arguments.arena.is_some() {
        output::note(
            "a fixed arena lies in no memory level: leave --arena out for energy and time",
        );
        return Ok(None);
    }
    if own.is_some()
        && !arguments.records_only
        && let Err(error) = energy::need_accesses(&arguments.trace, command, events)
    {
        // The heap's file asks for no price, it only allows for one.
        output::note(&error.to_string());
        return Ok(None);
    }
    Ok(own)
}

/// One region of `arena` bytes.
fn fix(options: &mut Options, config: &metes_config::Config, arena: u64) -> Result<(), Failure> {
    if config.heap.general.len() > 1 || !config.heap.slabs().is_empty() {
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

fn show(replay: &metes_explore::Replay, price: Option<&PriceReport>) -> Result<(), Failure> {
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
    if let Some(price) = price {
        text += &energy::show(price);
    }
    output::text(&text)
}
