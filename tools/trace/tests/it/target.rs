//! Recordings of targets: every event that was sent, or lies in the ring, and nothing else, whatever surrounds it.

use std::cell::Cell;
use std::path::Path;

use metes_random::Random;
use metes_target_recorder::layout::figure;
use metes_target_recorder::{Recorder, Target};
use metes_trace::target::{HeapState, Spent, TargetRecording, Told, import};
use metes_trace::{Format, Op, TraceBuilder, TraceError};
use proptest::prelude::*;

const EVENTS: usize = 64;

thread_local! {
    static NOW: Cell<u32> = const { Cell::new(0) };
    static CONTEXT: Cell<u8> = const { Cell::new(0) };
}

struct Host;

// SAFETY: each recorder here is of one thread, without interrupts.
unsafe impl Target for Host {
    const FREQUENCY: u32 = 1_000_000;

    fn now() -> u32 {
        NOW.get()
    }

    fn context() -> u8 {
        CONTEXT.get()
    }

    fn exclusively<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
}

type Ring = Recorder<Host, EVENTS>;

fn read(bytes: &[u8]) -> Result<TargetRecording, TraceError> {
    import(bytes, Path::new("line"))
}

/// A program of `steps` on a recorder, and the trace of it.
struct Program {
    recorder: Box<Ring>,
    expected: TraceBuilder,
    random: Random,
    /// Serial number and address of each live block.
    live: Vec<(u64, usize)>,
    /// Addresses that nothing lies at, the last one given up at the end.
    free: Vec<usize>,
    time: u64,
    contexts: Vec<u8>,
}

impl Program {
    fn new(seed: u64) -> Self {
        // A clock that goes over its end soon.
        NOW.set(u32::MAX - 5000);
        Program {
            recorder: Box::new(Ring::new()),
            expected: TraceBuilder::default(),
            random: Random::new(seed),
            live: Vec::new(),
            free: (0..1000).map(|place| 0x2000_0000 + (place << 13)).collect(),
            time: 0,
            contexts: Vec::new(),
        }
    }

    /// One or two events. `kept`: they find room.
    fn step(&mut self, kept: bool) {
        if !self.contexts.is_empty() || kept {
            let ticks = self.random.below(1000) as u32;
            NOW.set(NOW.get().wrapping_add(ticks));
            if !self.contexts.is_empty() {
                self.time += u64::from(ticks) * 1000;
            }
        }
        let context = self.random.below(3) as u8 * 40;
        CONTEXT.set(context);
        let known = self.contexts.iter().position(|other| *other == context);
        let thread = known.unwrap_or_else(|| {
            self.contexts.push(context);
            self.contexts.len() - 1
        }) as u32;
        let size = self.random.below(5000);
        let place = self.random.below(self.live.len().max(1) as u64) as usize;
        match self.random.below(5) {
            0..2 => {
                // An address that a freed block had, where there is one.
                let address = self.free.pop().unwrap();
                self.recorder.allocated(address, size as usize, 16);
                let block = self.expected.alloc(self.time, thread, size, 16).unwrap();
                self.live.push((block, address));
            }
            2 => self.recorder.allocated(0, size as usize, 4),
            3 if !self.live.is_empty() => {
                let (block, address) = self.live.swap_remove(place);
                self.recorder.freed(address);
                self.expected.free(self.time, thread, block).unwrap();
                self.free.push(address);
            }
            4 if !self.live.is_empty() => {
                let (block, address) = self.live[place];
                self.recorder.resizing(address, size as usize, 8);
                let moves = self.random.below(2) == 0;
                if moves {
                    let to = self.free.pop().unwrap();
                    self.free.push(address);
                    self.recorder.resized(address, to);
                    self.expected
                        .resize(self.time, thread, block, size, 8)
                        .unwrap();
                    self.live[place].1 = to;
                } else {
                    self.recorder.resized(address, 0);
                }
            }
            _ => self.recorder.allocated(0, 1, 1),
        }
    }

    fn send(&self, line: &mut Vec<u8>) {
        while self.recorder.send(|part| line.extend_from_slice(part)) > 0 {}
    }

    fn dump(&self) -> Vec<u8> {
        let (ring, length) = self.recorder.dump();
        // SAFETY: so many bytes of a recorder that nobody writes to now.
        unsafe { std::slice::from_raw_parts(ring, length) }.to_vec()
    }
}

/// Everything that a program did, as it left it: batches with noise between them, then, unless all was sent, the ring.
fn left(seed: u64, steps: usize) -> (Vec<u8>, Program) {
    let mut program = Program::new(seed);
    let mut noise = Random::new(seed ^ 1);
    let mut bytes = Vec::new();
    for step in 0..steps {
        program.step(true);
        if program.recorder.waiting() as usize > EVENTS - 3 || noise.below(20) == 0 {
            program.send(&mut bytes);
            for _ in 0..noise.below(9) {
                bytes.push(noise.below(256) as u8);
            }
        }
        assert!(program.recorder.lost() == 0, "step {step}");
    }
    bytes.extend(program.dump());
    (bytes, program)
}

/// All words of batches and rings turned, as a target of the other byte order writes them. Without noise.
fn turned(bytes: &[u8]) -> Vec<u8> {
    let words = bytes.chunks_exact(4);
    words.flat_map(|word| word.iter().rev().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_recording_is_what_the_program_did(seed: u64, steps in 1_usize..400) {
        let (bytes, program) = left(seed, steps);
        let expected = program.expected;
        match read(&bytes) {
            Ok(recording) => {
                let trace = &recording.trace;
                let whole = expected.finish(trace.provenance.clone());
                prop_assert_eq!(trace, &whole);
                prop_assert!(trace.provenance.timed);
                prop_assert_eq!(recording.places.len(), trace.len());
                let findings = recording.findings;
                prop_assert_eq!(
                    (findings.lost, findings.missing, findings.unfinished, findings.before, findings.replaced),
                    (0, 0, 0, 0, 0)
                );
            }
            Err(error) => prop_assert!(expected.is_empty(), "{}", error),
        }
    }

    /// Any bytes changed, cut out or cut off: a trace or an error, and what is not there is told.
    #[test]
    fn damage_is_told(seed: u64, place in 0_usize..100_000, length in 0_usize..200, value: u8) {
        let (mut bytes, _) = left(seed, 300);
        let whole = read(&bytes).unwrap();
        let from = place % bytes.len();
        let to = (from + length).min(bytes.len());
        let ring = bytes.len() - 32 - 16 * EVENTS;
        if value == 0 {
            bytes.drain(from..to);
        } else {
            for byte in &mut bytes[from..to] {
                *byte ^= value;
            }
        }
        if let Ok(damaged) = read(&bytes) {
            prop_assert_eq!(damaged.places.len(), damaged.trace.len());
            let found = &damaged.findings;
            let told = found.events + found.missing + found.unfinished;
            // Nothing is made up, and all that lacks is told, if what comes after it is there.
            prop_assert!(found.events <= whole.findings.events);
            if found.before == 0 && to <= ring {
                prop_assert_eq!(told, whole.findings.events);
            }
        }
    }

    #[test]
    fn garbage_is_no_recording(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let is_error = read(&bytes).is_err();
        prop_assert!(is_error);
    }
}

#[test]
fn places_and_what_a_target_says_are_beside_its_trace() {
    let recorder = Ring::new();
    recorder.allocated(0x100, 8, 8);
    recorder.allocated(0x200, 8, 8);
    recorder.tell(figure::MEMORY, 0x100, 4096);
    recorder.resizing(0x100, 24, 8);
    recorder.resized(0x100, 0x300);
    recorder.freed(0x200);
    recorder.freed(0x999);
    recorder.resizing(0x300, 4000, 8);
    recorder.resized(0x300, 0);
    // A block whose free was not seen: its place is given out again.
    recorder.allocated(0x300, 16, 8);
    let mut line = Vec::new();
    recorder.send(|part| line.extend_from_slice(part));
    let found = read(&line).unwrap();
    let kinds = [
        Op::Alloc,
        Op::Alloc,
        Op::Resize,
        Op::Free,
        Op::Free,
        Op::Alloc,
    ];
    assert_eq!(found.trace.ops(), kinds);
    assert_eq!(found.places, [0x100, 0x200, 0x300, 0x200, 0x300, 0x300]);
    // Half of what is said says nothing.
    assert_eq!(found.told, Told::default());
    recorder.tell(figure::TAKEN, 1024, 512);
    recorder.tell(figure::TABLES, 77, 0);
    recorder.tell(figure::END, 0, 0);
    for operation in 0..figure::OPERATIONS {
        recorder.tell(figure::TICKS + 2 * operation, operation, 1);
        recorder.tell(figure::CALLS + 2 * operation, 5, 3);
    }
    recorder.send(|part| line.extend_from_slice(part));
    let found = read(&line).unwrap();
    let heap = HeapState {
        memory: 0x100,
        bytes: 4096,
        footprint: 1024,
        peak_live: 512,
        tables: 77,
    };
    assert_eq!(found.told.heap, Some(heap));
    assert!(found.told.ended);
    // Ticks are microseconds here.
    let second = Spent {
        calls: 5,
        nanoseconds: ((1 << 32) + 1) * 1000,
        most: 3000,
    };
    assert_eq!(found.told.spent.unwrap()[1], second);
    assert_eq!(found.findings.events, 9);
}

#[test]
fn the_other_byte_order_says_the_same() {
    let mut program = Program::new(3);
    let mut bytes = Vec::new();
    for _ in 0..500 {
        program.step(true);
        program.send(&mut bytes);
    }
    let native = read(&bytes).unwrap();
    let other = read(&turned(&bytes)).unwrap();
    assert_eq!(native.trace, other.trace);
    assert_eq!(native.findings, other.findings);
}

#[test]
fn what_a_full_ring_lost_is_told_and_from_when() {
    let recorder = Ring::new();
    NOW.set(100);
    for block in 0..EVENTS + 10 {
        NOW.set(NOW.get() + 1000);
        recorder.allocated(16 + 16 * block, 8, 8);
    }
    let mut bytes = Vec::new();
    while recorder.send(|part| bytes.extend_from_slice(part)) > 0 {}
    let found = read(&bytes).unwrap();
    assert_eq!(found.trace.len(), EVENTS);
    assert_eq!(found.findings.lost, 10);
    assert_eq!(found.trace.provenance.lost_events, 10);
    // Nanoseconds since the first event.
    assert_eq!(found.findings.lost_from, Some(EVENTS as u64 * 1_000_000));
}

#[test]
fn a_batch_that_is_not_there_is_counted() {
    let mut program = Program::new(7);
    let mut batches = Vec::new();
    for _ in 0..6 {
        for _ in 0..10 {
            program.step(true);
        }
        let mut batch = Vec::new();
        program.send(&mut batch);
        batches.push(batch);
    }
    let whole = read(&batches.concat()).unwrap().findings.events;
    let gone = batches.remove(3);
    let gone = read(&gone).unwrap().findings;
    // Alone it is a recording whose beginning is missing.
    assert!(gone.missing > 0);
    let rest = read(&batches.concat()).unwrap();
    assert_eq!(rest.findings.missing, gone.events);
    assert_eq!(rest.findings.events + gone.events, whole);
}

#[test]
fn of_a_target_that_began_anew_the_last_recording_is_taken() {
    let (first, _) = left(1, 200);
    let (second, program) = left(2, 50);
    let both = read(&[first, second].concat()).unwrap();
    assert_eq!(both.findings.before, 1);
    assert_eq!(
        both.trace,
        program.expected.finish(both.trace.provenance.clone())
    );
}

#[test]
fn refusals_name_what_lacks() {
    let told = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(told(b"").contains("no ring and no batch"));
    let recorder = Ring::new();
    recorder.allocated(0, 4, 4);
    let mut line = Vec::new();
    recorder.send(|part| line.extend_from_slice(part));
    assert!(matches!(read(&line), Err(TraceError::Empty { .. })));
    assert_eq!(Format::of(&line), Format::Target);
    let last = line.len() - 1;
    line[last] ^= 1;
    assert!(told(&line).contains("damaged"));
    recorder.allocated(16, 4, 4);
    let (ring, length) = recorder.dump();
    // SAFETY: so many bytes of a recorder that nobody writes to now.
    let dump = unsafe { std::slice::from_raw_parts(ring, length) };
    assert_eq!(read(dump).unwrap().trace.ops(), [Op::Alloc]);
    assert!(told(&dump[..length - 1]).contains("no ring"));
}
