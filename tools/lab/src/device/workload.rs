//! What programs ask of a device heap: generated, or from a trace.
//!
//! Invariant: a slot is allocated only while it is free and freed only while it is held.

use metes_trace::{Op, Trace};

use metes_random::Random;

/// A request of a program, which names its blocks by slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A block of so many bytes.
    Allocate {
        /// Who will hold it.
        slot: u32,
        /// Bytes, not zero.
        bytes: u64,
    },
    /// The block of a slot is not needed any more.
    Free {
        /// Who held it.
        slot: u32,
    },
}

/// A sequence of requests.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its name in tables.
    pub name: String,
    /// In order.
    pub requests: Vec<Request>,
    /// Slots below this number are used.
    pub slots: usize,
    /// The largest number of bytes held at a time.
    pub peak: u64,
    /// The largest number of blocks held at a time.
    pub blocks: usize,
}

impl Workload {
    fn new(name: impl Into<String>, requests: Vec<Request>) -> Self {
        let mut held = Vec::new();
        let (mut live, mut peak, mut count, mut blocks) = (0, 0, 0, 0);
        for request in &requests {
            match *request {
                Request::Allocate { slot, bytes } => {
                    let slot = slot as usize;
                    if held.len() <= slot {
                        held.resize(slot + 1, 0);
                    }
                    debug_assert_eq!(held[slot], 0, "a slot is held once");
                    held[slot] = bytes;
                    live += bytes;
                    count += 1;
                    peak = peak.max(live);
                    blocks = blocks.max(count);
                }
                Request::Free { slot } => {
                    live -= std::mem::take(&mut held[slot as usize]);
                    count -= 1;
                }
            }
        }
        Workload {
            name: name.into(),
            requests,
            slots: held.len(),
            peak,
            blocks,
        }
    }
}

/// Device programs round what they ask for up to this.
pub const ROUND: u64 = 256;

/// The paper's benchmark (section IV, after malloc-large of the mimalloc suite): `count` times
/// one of `slots` slots is freed and gets a block of 1 KiB to 16 MiB, every size as likely.
pub fn uniform(slots: u32, count: usize, seed: u64) -> Workload {
    exchange(format!("uniform-{slots}"), slots, count, seed, |random| {
        random.between(1 << 10, 16 << 20)
    })
}

/// The paper's exchange of blocks of 1 KiB to 16 MiB among `slots` slots, `count` times, with every
/// doubling of the size as likely.
pub fn log_uniform(slots: u32, count: usize, seed: u64) -> Workload {
    exchange(format!("log-{slots}"), slots, count, seed, |random| {
        let octave = 1_u64 << random.between(10, 23);
        random.between(octave, 2 * octave)
    })
}

fn exchange(
    name: String,
    slots: u32,
    count: usize,
    seed: u64,
    mut bytes: impl FnMut(&mut Random) -> u64,
) -> Workload {
    let mut random = Random::new(seed);
    let mut held = vec![false; slots as usize];
    let mut requests = Vec::with_capacity(2 * count);
    for _ in 0..count {
        let slot = random.below(u64::from(slots)) as u32;
        if std::mem::replace(&mut held[slot as usize], true) {
            requests.push(Request::Free { slot });
        }
        let bytes = bytes(&mut random).next_multiple_of(ROUND);
        requests.push(Request::Allocate { slot, bytes });
    }
    Workload::new(name, requests)
}

/// `blocks` blocks of up to 64 granules, then `count` times one of them is exchanged: how the
/// time of an operation depends on how many blocks are live. The exchanges begin at request
/// `blocks`.
pub fn live(blocks: u32, count: usize, seed: u64) -> Workload {
    let mut random = Random::new(seed);
    let mut size = || random.between(1, 64) * ROUND;
    let mut requests: Vec<Request> = (0..blocks)
        .map(|slot| Request::Allocate {
            slot,
            bytes: size(),
        })
        .collect();
    let mut random = Random::new(!seed);
    for _ in 0..count {
        let slot = random.below(u64::from(blocks)) as u32;
        requests.push(Request::Free { slot });
        let bytes = random.between(1, 64) * ROUND;
        requests.push(Request::Allocate { slot, bytes });
    }
    Workload::new(format!("live-{blocks}"), requests)
}

/// What serving a language model asks for: continuous batching with keys and values of
/// 128 KiB a token (8 billion parameters, grouped queries, 16 bits).
///
/// Up to 48 sequences run at a time. A sequence has one block for its prompt of 16 to 4096
/// tokens and grows by blocks of 8 MiB (64 tokens) until it ends, 16 to 1024 tokens later.
/// With `workspaces` a step of all of them takes two blocks of scratch, whose size depends on
/// how many run and how long they are.
pub fn serving(steps: usize, workspaces: bool, seed: u64) -> Workload {
    const TOKEN: u64 = 128 << 10;
    const EXTENT: u64 = 64;
    struct Sequence {
        slots: Vec<u32>,
        tokens: u64,
        room: u64,
        left: u64,
    }
    let mut random = Random::new(seed);
    let mut spare: Vec<u32> = Vec::new();
    let mut next = 0;
    let mut requests = Vec::new();
    let mut running: Vec<Sequence> = Vec::new();
    let mut slot = |spare: &mut Vec<u32>| {
        spare.pop().unwrap_or_else(|| {
            next += 1;
            next - 1
        })
    };
    for _ in 0..steps {
        // Prompts are short or long: every doubling is as likely.
        if running.len() < 48 && random.below(4) == 0 {
            let octave = 1 << random.between(4, 11);
            let tokens = random.between(octave, 2 * octave);
            let taken = slot(&mut spare);
            requests.push(Request::Allocate {
                slot: taken,
                bytes: tokens * TOKEN,
            });
            let octave = 1 << random.between(4, 9);
            running.push(Sequence {
                slots: vec![taken],
                tokens,
                room: tokens,
                left: random.between(octave, 2 * octave),
            });
        }
        let mut scratch = Vec::new();
        if workspaces && !running.is_empty() {
            let tokens: u64 = running.iter().map(|sequence| sequence.tokens).sum();
            for bytes in [running.len() as u64 * (4 << 16), tokens * 512] {
                let taken = slot(&mut spare);
                let bytes = bytes.next_multiple_of(ROUND);
                requests.push(Request::Allocate { slot: taken, bytes });
                scratch.push(taken);
            }
        }
        for sequence in &mut running {
            sequence.tokens += 1;
            sequence.left -= 1;
            if sequence.tokens > sequence.room {
                let taken = slot(&mut spare);
                requests.push(Request::Allocate {
                    slot: taken,
                    bytes: EXTENT * TOKEN,
                });
                sequence.slots.push(taken);
                sequence.room += EXTENT;
            }
        }
        for slot in scratch {
            requests.push(Request::Free { slot });
            spare.push(slot);
        }
        running.retain(|sequence| {
            if sequence.left > 0 {
                return true;
            }
            for &slot in &sequence.slots {
                requests.push(Request::Free { slot });
                spare.push(slot);
            }
            false
        });
    }
    let name = if workspaces { "serving" } else { "serving-kv" };
    Workload::new(name, requests)
}

/// The requests of a recorded program. A resize frees and allocates, as device programs do;
/// what is requested of no bytes is left out.
pub fn of_trace(name: &str, trace: &Trace) -> Workload {
    let mut slots: Vec<Option<u32>> = vec![None; trace.block_count()];
    let mut spare = Vec::new();
    let mut next = 0;
    let mut requests = Vec::new();
    for event in trace.iter().filter(|event| event.op != Op::Access) {
        let held = &mut slots[event.block as usize];
        if event.op != Op::Alloc
            && let Some(slot) = held.take()
        {
            requests.push(Request::Free { slot });
            spare.push(slot);
        }
        if event.op != Op::Free && event.size > 0 {
            let slot = spare.pop().unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            *held = Some(slot);
            requests.push(Request::Allocate {
                slot,
                bytes: event.size.next_multiple_of(ROUND),
            });
        }
    }
    Workload::new(name, requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_held_once_and_peaks_are_the_largest() {
        for workload in [
            uniform(10, 1000, 1),
            log_uniform(10, 1000, 1),
            serving(1000, true, 1),
            serving(1000, false, 1),
            live(100, 1000, 1),
        ] {
            let mut held = vec![0; workload.slots];
            let mut peak = 0;
            for request in &workload.requests {
                match *request {
                    Request::Allocate { slot, bytes } => {
                        assert!(bytes > 0 && bytes % ROUND == 0);
                        assert_eq!(std::mem::replace(&mut held[slot as usize], bytes), 0);
                    }
                    Request::Free { slot } => {
                        assert_ne!(std::mem::take(&mut held[slot as usize]), 0);
                    }
                }
                peak = peak.max(held.iter().sum());
            }
            assert_eq!(workload.peak, peak, "{}", workload.name);
            assert!(workload.requests.len() > 500, "{}", workload.name);
        }
    }
}
