//! What a recorder on a target left, as a trace: batches of events that it sent, and the ring in its memory, alone or in the
//! midst of anything else (the log of a console, a dump of all memory), of either byte order.
//!
//! *Invariant:* any bytes give a consistent trace or an error. Each event is taken once, in the order of its number; what is
//! known to be missing is counted and told.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use metes_layout::target::{
    self as layout, ALLOCATED, BATCH_EVENTS, BATCH_MAGIC, EVENT_WORDS, FREED, HEADER_WORDS,
    REFUSED, RESIZED, RESIZING, RING_MAGIC, TOLD, batch, figure, ring,
};

use crate::blocks::{Asked, Blocks, Resizing};
use crate::error::{Inconsistency, TraceError};
use crate::trace::{Provenance, Trace};

/// A recording of a target.
#[derive(Clone, Debug)]
pub struct TargetRecording {
    /// The trace. Threads are contexts, by first appearance.
    pub trace: Trace,
    /// Of each event of the trace, where its block lies: of a free, where it lay.
    pub places: Vec<u32>,
    /// What the target said of its heap and of the time in it.
    pub told: Told,
    /// What is to be said of it.
    pub findings: TargetFindings,
}

/// What a target said at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Of a heap that Metes emitted.
    pub heap: Option<HeapState>,
    /// What allocations, frees and resizes took, in this order, if there is a clock.
    pub spent: Option<[Spent; 3]>,
    /// All was sent: the recording came to its end by itself.
    pub ended: bool,
}

/// The state of a heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapState {
    /// Where its memory begins.
    pub memory: u32,
    /// Bytes of it.
    pub bytes: u32,
    /// Bytes that the heap took.
    pub footprint: u32,
    /// Most requested bytes live at once.
    pub peak_live: u32,
    /// Bytes of its tables beside the memory.
    pub tables: u32,
}

/// Time in functions of the heap, from just before each call to just after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Calls.
    pub calls: u64,
    /// Nanoseconds of all.
    pub nanoseconds: u64,
    /// Nanoseconds of the longest.
    pub most: u64,
}

/// What a recording of a target met and a trace does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetFindings {
    /// Events of the recording.
    pub events: u64,
    /// Events that found no room in the ring, as the target counted.
    pub lost: u64,
    /// When the first of them was lost, nanoseconds; None if none was, or there is no clock.
    pub lost_from: Option<u64>,
    /// Events with a number that are not in the file: sent elsewhere, or damaged.
    pub missing: u64,
    /// Batches that were not taken, as they were cut or their checksum is another one.
    pub damaged: u64,
    /// Events that the target had not written to the end.
    pub unfinished: u64,
    /// Recordings that came before in the same file: the target began anew. They are left out.
    pub before: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Frees of addresses where no block was.
    pub unknown_frees: u64,
    /// Resizes of such; in the trace they are allocations.
    pub unknown_resizes: u64,
    /// Blocks that were given out although one of the trace was still there: it is freed in the trace then.
    pub replaced: u64,
}

/// Most bytes of a file that is read.
const MOST_BYTES: u64 = 1 << 30;

/// Whether a file that begins with `head` begins with a ring or a batch.
#[must_use]
pub fn begins(head: &[u8]) -> bool {
    head.first_chunk()
        .is_some_and(|first| Order::of(*first).is_some())
}

/// Reads the recording in the file `path`.
///
/// # Errors
/// As [`import`], and if the file cannot be read, or is larger than 1 GiB.
pub fn import_file(path: &Path) -> Result<TargetRecording, TraceError> {
    // What has no end is not read to its end.
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|source| TraceError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(TraceError::Target {
            path: path.to_owned(),
            reason: "it is larger than 1 GiB".to_owned(),
        });
    }
    import(&bytes, path)
}

/// Finds the recording in `bytes`; `name` is what errors call them. Of several the last one. O(bytes).
///
/// # Errors
/// [`TraceError::Target`] without any ring or batch, or if it has no event; [`TraceError::Empty`] if no block was asked for.
pub fn import(bytes: &[u8], name: &Path) -> Result<TargetRecording, TraceError> {
    let refused = |reason: &str| TraceError::Target {
        path: name.to_owned(),
        reason: reason.to_owned(),
    };
    let mut runs = Runs::default();
    let mut at = 0;
    let mut damaged = 0;
    while let Some(first) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let Some((order, is_ring)) = Order::of(*first) else {
            at += 1;
            continue;
        };
        let words = Words {
            bytes: &bytes[at..],
            order,
        };
        let read = if is_ring {
            runs.ring(&words)
        } else {
            runs.batch(&words)
        };
        match read {
            Some(words) => at += 4 * words,
            None => {
                damaged += u64::from(!is_ring);
                at += 4;
            }
        }
    }
    let Some(run) = runs.last() else {
        return Err(refused(match damaged {
            0 => "no ring and no batch of a recorder begins in it",
            _ => "all batches of a recorder in it are damaged",
        }));
    };
    if run.events.is_empty() {
        return Err(refused("the recorder in it has no event"));
    }
    let findings = TargetFindings {
        damaged,
        before: runs.0.len() as u64 - 1,
        ..TargetFindings::default()
    };
    let recording = build(run, findings).map_err(|cause| refused(&cause.to_string()))?;
    if recording.trace.is_empty() {
        return Err(TraceError::Empty {
            path: name.to_owned(),
        });
    }
    Ok(recording)
}

/// The order of bytes in words.
#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

impl Order {
    /// That in which four bytes are the first word of a ring (true) or a batch.
    fn of(first: [u8; 4]) -> Option<(Order, bool)> {
        let known = |word| match word {
            RING_MAGIC => Some(true),
            BATCH_MAGIC => Some(false),
            _ => None,
        };
        let little = known(u32::from_le_bytes(first)).map(|is_ring| (Order::Little, is_ring));
        little.or_else(|| known(u32::from_be_bytes(first)).map(|is_ring| (Order::Big, is_ring)))
    }
}

/// Bytes as words.
struct Words<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl Words<'_> {
    fn get(&self, word: usize) -> Option<u32> {
        let bytes = *self.bytes.get(4 * word..)?.first_chunk()?;
        Some(match self.order {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        })
    }

    fn event(&self, word: usize) -> Option<Event> {
        Some([
            self.get(word)?,
            self.get(word + 1)?,
            self.get(word + 2)?,
            self.get(word + 3)?,
        ])
    }
}

type Event = [u32; EVENT_WORDS];

/// One recording, from when the target began.
#[derive(Default)]
struct Run {
    events: Vec<Event>,
    /// The number that comes next.
    next: u32,
    frequency: u32,
    missing: u64,
    unfinished: u64,
    /// Events lost, the ticks of the first, and the event in whose company that was first told.
    lost: u32,
    lost_from: u32,
    lost_near: usize,
}

impl Run {
    fn loses(&mut self, lost: u32, from: u32) {
        if self.lost == 0 && lost > 0 {
            self.lost_from = from;
            self.lost_near = self.events.len();
        }
        self.lost = self.lost.max(lost);
    }
}

/// The recordings of a file.
#[derive(Default)]
struct Runs(Vec<Run>);

impl Runs {
    /// That to which an event of this number belongs.
    fn of(&mut self, number: u32, frequency: u32) -> &mut Run {
        // What was sent before is sent again only by a target that began anew.
        let goes_on = |run: &Run| number.wrapping_sub(run.next) < 1 << 31;
        if !self.0.last().is_some_and(goes_on) {
            self.0.push(Run {
                frequency,
                ..Run::default()
            });
        }
        let run = self.0.last_mut().expect("it has one now");
        run.missing += u64::from(number.wrapping_sub(run.next));
        run.next = number;
        run
    }

    fn last(&self) -> Option<&Run> {
        self.0.last()
    }

    /// Takes a batch in; its words, if it is whole.
    fn batch(&mut self, words: &Words<'_>) -> Option<usize> {
        let count = words.get(batch::COUNT)? as usize;
        if words.get(batch::VERSION)? != layout::VERSION || !(1..=BATCH_EVENTS).contains(&count) {
            return None;
        }
        let end = HEADER_WORDS + count * EVENT_WORDS;
        let mut sum = 0;
        for word in 0..end {
            sum = layout::checksum(sum, words.get(word)?);
        }
        if words.get(end)? != sum {
            return None;
        }
        let run = self.of(words.get(batch::FIRST)?, words.get(batch::FREQUENCY)?);
        for number in 0..count {
            run.events
                .push(words.event(HEADER_WORDS + number * EVENT_WORDS)?);
            run.next = run.next.wrapping_add(1);
        }
        run.loses(words.get(batch::LOST)?, words.get(batch::LOST_FROM)?);
        Some(end + 1)
    }

    /// Takes what waits in a ring in; its words, if it is one.
    fn ring(&mut self, words: &Words<'_>) -> Option<usize> {
        let capacity = words.get(ring::CAPACITY)?;
        let (taken, sent) = (words.get(ring::TAKEN)?, words.get(ring::SENT)?);
        let waiting = taken.wrapping_sub(sent);
        if words.get(ring::VERSION)? != layout::VERSION
            || !capacity.is_power_of_two()
            || capacity > 1 << 15
            || waiting > capacity
        {
            return None;
        }
        let end = HEADER_WORDS + capacity as usize * EVENT_WORDS;
        words.get(end - 1)?;
        let run = self.of(sent, words.get(ring::FREQUENCY)?);
        for number in (0..waiting).map(|place| sent.wrapping_add(place)) {
            let slot = (number & (capacity - 1)) as usize;
            let event = words.event(HEADER_WORDS + slot * EVENT_WORDS)?;
            if !(ALLOCATED..=TOLD).contains(&(event[1] & 7)) || event[1] >> 16 != number & 0xffff {
                run.unfinished += 1;
            } else {
                run.events.push(event);
            }
            run.next = number.wrapping_add(1);
        }
        run.loses(words.get(ring::LOST)?, words.get(ring::LOST_FROM)?);
        Some(end)
    }
}

/// Ticks that go on, of a counter of 32 bits.
struct Clock {
    frequency: u32,
    ticks: u64,
    last: Option<u32>,
}

impl Clock {
    /// The time of the next event, nanoseconds since the first.
    fn next(&mut self, now: u32) -> u64 {
        let step = self.last.map_or(0, |last| now.wrapping_sub(last));
        self.ticks += u64::from(step);
        self.last = Some(now);
        self.nanoseconds(self.ticks)
    }

    /// The time nearest to the last event that a counter shows as `then`.
    fn near(&self, then: u32) -> u64 {
        let after = then.wrapping_sub(self.last.unwrap_or(then)).cast_signed();
        self.nanoseconds(self.ticks.saturating_add_signed(i64::from(after)))
    }

    fn nanoseconds(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency.max(1));
        match self.frequency {
            0 => 0,
            _ => u64::try_from(ns).unwrap_or(u64::MAX),
        }
    }
}

/// What figures say.
fn told(figures: &HashMap<u32, [u32; 2]>, clock: &Clock) -> Told {
    let memory = figures.get(&figure::MEMORY);
    let heap = memory.zip(figures.get(&figure::TAKEN));
    let spent = |operation: u32| {
        let [low, high] = *figures.get(&(figure::TICKS + 2 * operation))?;
        let [calls, most] = *figures.get(&(figure::CALLS + 2 * operation))?;
        Some(Spent {
            calls: u64::from(calls),
            nanoseconds: clock.nanoseconds(u64::from(high) << 32 | u64::from(low)),
            most: clock.nanoseconds(u64::from(most)),
        })
    };
    let spent = match [spent(0), spent(1), spent(2)] {
        [Some(allocations), Some(frees), Some(resizes)] => Some([allocations, frees, resizes]),
        _ => None,
    };
    Told {
        heap: heap.map(|(&[memory, bytes], &[footprint, peak_live])| HeapState {
            memory,
            bytes,
            footprint,
            peak_live,
            tables: figures.get(&figure::TABLES).map_or(0, |tables| tables[0]),
        }),
        spent: spent.filter(|_| clock.frequency > 0),
        ended: figures.contains_key(&figure::END),
    }
}

fn build(run: &Run, mut findings: TargetFindings) -> Result<TargetRecording, Inconsistency> {
    let mut clock = Clock {
        frequency: run.frequency,
        ticks: 0,
        last: None,
    };
    let mut blocks = Blocks::default();
    let mut contexts: HashMap<u32, u32> = HashMap::new();
    let mut resizing: HashMap<u32, Resizing> = HashMap::new();
    let mut places: Vec<u32> = Vec::new();
    let mut figures: HashMap<u32, [u32; 2]> = HashMap::new();
    for (place, event) in run.events.iter().enumerate() {
        let [now, what, address, last] = *event;
        let time = clock.next(now);
        if run.lost > 0 && place + 1 == run.lost_near && run.frequency > 0 {
            findings.lost_from = Some(clock.near(run.lost_from));
        }
        if what & 7 == TOLD {
            figures.insert(what >> 3 & 31, [address, last]);
            continue;
        }
        findings.events += 1;
        let next = contexts.len() as u32;
        let asked = Asked {
            time,
            thread: *contexts.entry(what >> 8 & 0xff).or_insert(next),
            site: 0,
        };
        let align = 1 << (what >> 3 & 31);
        let (address, wide) = (u64::from(address), u64::from(last));
        let mut lies = address;
        match what & 7 {
            ALLOCATED => blocks.alloc(asked, address, wide, align)?,
            FREED => blocks.free(asked, address)?,
            RESIZING => {
                let begun = blocks.resize(address, wide, align);
                resizing.insert(event[2], begun);
            }
            RESIZED => {
                // Without a beginning it is nothing: that one is among what is missing, with the size.
                if let Some(begun) = resizing.remove(&last) {
                    lies = if address == 0 { begun.address } else { address };
                    findings.refused += u64::from(address == 0);
                    blocks.resized(asked, begun, address)?;
                }
            }
            REFUSED => findings.refused += 1,
            // No recorder of this version writes another kind.
            _ => {}
        }
        // An address of this target has 32 bits.
        places.resize(blocks.len(), lies as u32);
    }
    findings.lost = u64::from(run.lost);
    findings.missing = run.missing;
    findings.unfinished = run.unfinished;
    findings.unknown_frees = blocks.unknown_frees;
    findings.unknown_resizes = blocks.unknown_resizes;
    findings.replaced = blocks.replaced;
    let trace = blocks.finish(Provenance {
        recorder: "target".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        threads: contexts.len() as u32,
        lost_events: findings.lost + findings.missing + findings.unfinished,
        timed: run.frequency > 0,
        ..Provenance::default()
    });
    Ok(TargetRecording {
        trace,
        places,
        told: told(&figures, &clock),
        findings,
    })
}
