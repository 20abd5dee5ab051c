//! What a host measures: of itself when it starts, of a function when it is deployed.
//!
//! *Invariant:* what admission rests on is processor time of the thread that measures, so that others who hold it up do not count.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Deployed, HostError, LOOK};
use crate::clock;
use crate::engine::Engine;
use crate::manifest::{Hosted as _, Manifest};
use crate::module::Module;
use crate::outcome::Outcome;
use crate::overheads::Overheads;
use crate::station::Station;
use crate::worker::Worker;

/// How long the thread that looks is waited for to have measured itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest that an empty request took of ten, on this thread; none is made of a function that keeps its state.
pub(super) fn longest(
    worker: &mut Worker,
    manifest: &Manifest,
    module: &Module,
) -> Result<Option<u64>, HostError> {
    if manifest.kept {
        return Ok(None);
    }
    let mut output = Vec::with_capacity(module.limits().output);
    let time = Duration::from_nanos(manifest.budget);
    let mut longest = None;
    let mut late = true;
    for _ in 0..10 {
        let invocation = worker.invoke(module, &[], &mut output, time);
        if !matches!(invocation.outcome, Outcome::Overrun { .. }) {
            late = false;
            longest = longest.max(Some(invocation.time_ns));
        }
    }
    match late {
        true => Err(HostError::Budget {
            budget: manifest.budget,
        }),
        false => Ok(longest),
    }
}

/// A function that does nothing: `(module (func (export "_start")))`.
pub(super) fn nothing(engine: &Engine) -> Result<Arc<Deployed>, HostError> {
    const WASM: &[u8] = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x07\x0a\x01\x06_start\0\0\x0a\x04\x01\x02\0\x0b";
    let manifest =
        "name = 'nothing'\nmodule = '-'\nperiod = '1 s'\ndeadline = '1 s'\nbudget = '1 s'\n";
    let manifest = Manifest::parse(manifest)?;
    let module = engine.compile(WASM, &manifest.limits())?;
    Ok(Arc::new(Deployed::new(manifest, module, 0)))
}

/// What the workers and the thread that looks for overruns have measured of themselves.
pub(super) fn overheads(engine: &Engine, stations: &[Station]) -> Result<Overheads, HostError> {
    let dispatch = stations.iter().map(|station| station.dispatch_ns).max();
    let options = engine.options();
    let look = options.look.unwrap_or(LOOK);
    let apart = !options.housekeeping.is_empty()
        && stations.iter().all(|station| {
            let processor = station.obtained.processor;
            processor.is_some_and(|processor| !options.housekeeping.contains(&processor))
        });
    let end = Instant::now() + PATIENCE;
    let cost = loop {
        match engine.watch().cost() {
            Some(cost) => break cost,
            None if Instant::now() > end => return Err(HostError::Ending),
            None => std::thread::sleep(look),
        }
    };
    Ok(Overheads::measured(
        dispatch.unwrap_or(0),
        cost,
        clock::nanoseconds(look),
        apart,
    ))
}
