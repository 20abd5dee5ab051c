//! The report that a process leaves at its exit (`METES_REPORT`).
//!
//! Invariant: two runs with the same events have the same `requests`, and with
//! the same heap also the same `placements`; a replay computes both alike.

use std::ffi::CString;
use std::fmt::Write;

use metes_heap::Statistics;

use crate::pages::Managed;
use crate::process::{append, reason, say};

/// What a program did with a block.
#[derive(Clone, Copy)]
pub(crate) enum Event {
    Allocate = 1,
    Free = 2,
    Resize = 3,
}

/// A rolling hash over words.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    const NEW: Hash = Hash(0xcbf2_9ce4_8422_2325);

    #[inline(always)]
    fn word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x100_0000_01b3);
        self.0 = mixed ^ (mixed >> 29);
    }
}

/// What all events so far amount to.
#[derive(Clone, Copy)]
pub(crate) struct Digest {
    placements: Hash,
    requests: Hash,
    events: u64,
}

impl Digest {
    /// Of events whose places nobody looks at: all zeros, but for their number.
    pub(crate) fn of_number(events: u64) -> Self {
        Digest {
            placements: Hash(0),
            requests: Hash(0),
            events,
        }
    }

    /// Takes in an event. `size` is what was requested of the heap (a request
    /// of zero bytes is served as one byte), zero for a free.
    #[inline(always)]
    pub(crate) fn note(&mut self, event: Event, offset: u64, size: u64) {
        let event = event as u64;
        for word in [event, offset, size] {
            self.placements.word(word);
        }
        for word in [event, size] {
            self.requests.word(word);
        }
        self.events += 1;
    }
}

/// The report to be.
pub(crate) struct Report {
    pattern: Vec<u8>,
    pub(crate) digest: Digest,
}

impl Report {
    /// A report to the path that `pattern` gives; `%p` stands for the process.
    pub(crate) fn new(pattern: Vec<u8>) -> Self {
        Report {
            pattern,
            digest: Digest {
                placements: Hash::NEW,
                requests: Hash::NEW,
                events: 0,
            },
        }
    }

    /// The path for process `pid`.
    pub(crate) fn path(&self, pid: i32) -> Vec<u8> {
        let mut path = Vec::new();
        let mut rest = self.pattern.as_slice();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match (byte, after.first()) {
                (b'%', Some(b'p')) => {
                    path.extend_from_slice(pid.to_string().as_bytes());
                    rest = &after[1..];
                }
                _ => path.push(byte),
            }
        }
        path
    }
}

/// What became of pages, in bytes, and the worst times of a free of regions, in nanoseconds.
fn spell(managed: &Managed) -> String {
    let Managed { policy, statistics } = managed;
    let bytes = |pages: usize| pages * metes_regions::PAGE;
    format!(
        ",\"pages\":{{\"policy\":\"{policy}\",\"most_waiting\":{},\"waiting\":{},\"released\":{},\
         \"unmaps\":{},\"at_once\":{},\"worst_unmap_cpu_ns\":{},\"worst_unmap_ns\":{},\
         \"worst_map_cpu_ns\":{},\"worst_map_ns\":{}}}",
        bytes(statistics.most_waiting),
        bytes(statistics.waiting),
        bytes(statistics.released),
        statistics.unmap.calls,
        statistics.fallbacks,
        statistics.unmap.worst_cpu,
        statistics.unmap.worst_wall,
        statistics.map.worst_cpu,
        statistics.map.worst_wall,
    )
}

/// Appends the report of process `pid` to the file at `path`, as one line.
/// `levels` are the footprints of the memory levels, `managed` what became of pages of mapped blocks.
pub(crate) fn write(
    path: Vec<u8>,
    pid: i32,
    statistics: &Statistics,
    levels: &[usize],
    managed: Option<Managed>,
    digest: &Digest,
) {
    let Statistics {
        allocations,
        frees,
        resizes,
        failures,
        peak_live,
        live,
        footprint,
        ..
    } = statistics;
    let Digest {
        placements,
        requests,
        events,
    } = digest;
    let mut line = String::new();
    // Writing to a string cannot fail.
    let mut footprints = String::new();
    for (number, footprint) in levels.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(footprints, "{comma}{{\"footprint\":{footprint}}}");
    }
    let managed = managed.map_or(String::new(), |managed| spell(&managed));
    let _ = writeln!(
        line,
        "{{\"pid\":{pid},\"allocations\":{allocations},\"frees\":{frees},\
         \"resizes\":{resizes},\"failures\":{failures},\"peak_live\":{peak_live},\
         \"live\":{live},\"footprint\":{footprint},\"placements\":\"{:016x}\",\
         \"requests\":\"{:016x}\",\"events\":{events},\"levels\":[{footprints}]{managed}}}",
        placements.0, requests.0,
    );
    let written = match CString::new(path) {
        Ok(path) => append(&path, line.as_bytes()),
        Err(_) => Err(libc::EINVAL),
    };
    if let Err(errno) = written {
        say(&format!(
            "metes: METES_REPORT: cannot write: {}\n",
            reason(errno)
        ));
    }
}
