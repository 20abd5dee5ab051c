//! Images for a LEON3, run and recorded in the simulator.
//!
//! *Invariant:* what the heap in an image says of itself is read where its map, `metes_heap_map` of `bare.c`, says.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use metes_leon3::{End, Image, Stop};
use metes_trace::{CallCount, FirmwareOptions, FirmwareRecording, HeapState, record_firmware};

use super::Error;
use super::machine::{Counted, Instructions, Patience, Recording};

/// The symbol of the map.
const MAP: &str = "metes_heap_map";
/// Words of the map.
const WORDS: usize = 9;
/// Most pools of a heap; a map that tells of more is none.
const MOST_POOLS: u32 = 64;

/// Runs an image; what it prints goes to standard output.
pub(super) fn record(path: &Path, patience: Patience<'_>) -> Result<Recording, Error> {
    let begun = Instant::now();
    let mut ends_at = None;
    let mut between = |machine: &mut metes_leon3::Machine| {
        let mut out = std::io::stdout().lock();
        // Who does not read it any more does not want it.
        let _ = out
            .write_all(&machine.printed(0))
            .and_then(|()| out.flush());
        let stopped = patience.stop.load(Ordering::Relaxed);
        if stopped || begun.elapsed() > patience.limit {
            ends_at = Some(stopped);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let found = record_firmware(path, &FirmwareOptions::default(), &mut between)?;
    let status = match &found.stop {
        Some(Stop::End(End::Halt { .. } | End::Idle)) => 0,
        None if ends_at == Some(true) => return Err(Error::Stopped),
        None => {
            return Err(Error::Endless {
                path: path.to_owned(),
                seconds: patience.limit.as_secs_f64(),
            });
        }
        Some(stop) => {
            return Err(Error::Failed {
                path: path.to_owned(),
                how: match stop {
                    Stop::End(End::Error { core, trap }) => {
                        format!("core {core} is in error mode: {}", trap.reason())
                    }
                    Stop::End(End::Watchdog) => "the watchdog ran out".to_owned(),
                    _ => "it was ended".to_owned(),
                },
            });
        }
    };
    if found.trace.is_empty() {
        return Err(Error::Nothing {
            path: path.to_owned(),
        });
    }
    let [allocate, free, resize] = found.counted.map(instructions);
    Ok(Recording {
        heap: state(&found),
        counted: Some(Counted {
            allocate,
            free,
            resize,
        }),
        trace: found.trace,
        places: found.places,
        status,
    })
}

fn instructions(count: CallCount) -> Instructions {
    Instructions {
        calls: count.calls,
        all: count.instructions,
        most: count.most,
    }
}

/// What the emitted heap of an image says of itself, if it has one.
fn state(found: &FirmwareRecording) -> Option<HeapState> {
    let bus = &found.machine.bus;
    let map = symbol(&found.image, MAP)?;
    let mut words = [0; WORDS];
    for (word, address) in words.iter_mut().zip((map..).step_by(4)) {
        *word = bus.word(address)?;
    }
    let [
        memory,
        bytes,
        tables,
        peak_live,
        pools,
        first,
        stride,
        slabs,
        slab,
    ] = words;
    let mut footprint = 0_u32;
    for pool in (0..pools).take_while(|_| pools <= MOST_POOLS) {
        let taken = bus.word(first.checked_add(pool.checked_mul(stride)?)?)?;
        footprint = footprint.checked_add(taken)?;
    }
    if slabs != 0 {
        footprint = footprint.checked_add(bus.word(slabs)?.checked_mul(slab)?)?;
    }
    Some(HeapState {
        memory,
        bytes,
        footprint,
        peak_live: bus.word(peak_live)?,
        tables,
    })
}

fn symbol(image: &Image, name: &str) -> Option<u32> {
    let mut symbols = image.symbols().iter();
    symbols
        .find(|symbol| symbol.name == name)
        .map(|symbol| symbol.address)
}
