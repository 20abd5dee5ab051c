//! `metes run`.

use std::ffi::OsString;

use metes_config::{Config, ThreadHeap};
use metes_explore::constant_time;
use metes_tune::{Scratch, launch, need_addresses, stdout_to_stderr};
use serde_json::json;

use crate::arguments::Run;
use crate::error::{Failure, signal_name};
use crate::quantity::{bytes, grouped, ratio};
use crate::{heap, interrupt, libraries, output};

pub(crate) fn run(arguments: &Run, json: bool) -> Result<u8, Failure> {
    let heap = Heap::of(&arguments.heap, arguments.any_time)?;
    interrupt::flag()?;
    let library = libraries::preload()?;
    let scratch = Scratch::new()?;
    let mut environment = scratch.environment();
    environment.push((OsString::from("METES_HEAP"), heap.said(&scratch)?));
    if arguments.ignore_bad_frees {
        environment.push((OsString::from("METES_BAD_FREE"), OsString::from("ignore")));
    }
    let aside = if json {
        Some(stdout_to_stderr()?)
    } else {
        None
    };
    let ended = launch(&arguments.command, &library, &environment);
    drop(aside);
    let ended = ended?;
    let reports = scratch.reports();
    let main = reports.iter().rfind(|report| report.pid == ended.pid);
    let status = ended.ending.shell_status();
    if json {
        output::json(&json!({
            "heap": heap.name(),
            "status": status,
            "peak_live": main.map(|report| report.peak_live),
            "footprint": main.map(|report| report.footprint),
            "failures": main.map(|report| report.failures),
            "events": main.map(|report| report.events),
            "processes": reports,
        }))?;
    } else {
        for report in &reports {
            output::note(&format!(
                "{}, process {}: {} allocations, peak live {}, footprint {} ({} × peak live){}",
                heap.name(),
                report.pid,
                grouped(report.allocations),
                bytes(report.peak_live),
                bytes(report.footprint),
                ratio(report.footprint, report.peak_live),
                match report.failures {
                    0 => String::new(),
                    failures => format!(", {} requests failed", grouped(failures)),
                }
            ));
            if let Some(pages) = &report.pages {
                output::note(&format!(
                    "pages {}, process {}: {} given back, at most {} waited; unmapping took {} µs at most \
                     ({} µs of processor time)",
                    pages.policy,
                    report.pid,
                    bytes(pages.released),
                    bytes(pages.most_waiting),
                    pages.worst_unmap_ns.div_ceil(1000),
                    pages.worst_unmap_cpu_ns.div_ceil(1000),
                ));
            }
        }
        if let metes_trace::record::Ending::Signal(signal) = ended.ending {
            output::note(&format!("the program was ended by {}", signal_name(signal)));
        } else if main.is_none() {
            output::note("the program left no report: it ended without running its exit handlers");
        }
    }
    Ok(u8::try_from(status).unwrap_or(u8::MAX))
}

/// What a program may run on.
enum Heap {
    One(Box<Config>),
    PerThread(ThreadHeap),
}

impl Heap {
    fn of(text: &str, any_time: bool) -> Result<Heap, Failure> {
        if let Some(found) = metes_config::thread_heap(text) {
            return found.map(Heap::PerThread).map_err(Failure::Heap);
        }
        let config = heap::resolve_on_host(text)?;
        need_addresses(&config)?;
        if !config.store.inside() {
            return Err(Failure::input(format!(
                "{} keeps its records outside the memory, which malloc cannot: leave out the `store`",
                config.name()
            )));
        }
        let times = config.heap.declares().times;
        if !any_time && !constant_time(&config.heap) {
            output::note(&format!(
                "{} is not a heap of constant time (allocate {}, free {}): a program with many free \
                 blocks may run very long; `--heap tlsf` is, `--any-time` silences this",
                config.name(),
                times.allocate,
                times.free
            ));
        }
        Ok(Heap::One(Box::new(config)))
    }

    fn name(&self) -> String {
        match self {
            Heap::One(config) => config.name(),
            Heap::PerThread(heap) => heap.to_string(),
        }
    }

    /// As METES_HEAP says it.
    fn said(&self, scratch: &Scratch) -> Result<OsString, Failure> {
        match self {
            // The library reads a file: any heap has one, few have a spec.
            Heap::One(config) => {
                let description = scratch.path().join("heap.toml");
                output::write_file(&description, config.to_toml().as_bytes())?;
                Ok(description.into_os_string())
            }
            Heap::PerThread(heap) => Ok(heap.to_string().into()),
        }
    }
}
