//! Workloads: sequences of requests, made once and played on every allocator.
//!
//! Invariant: an event that frees or resizes names a live slot and carries the
//! size and alignment with which the block was last requested.

use std::collections::BTreeMap;

use crate::random::Random;

/// What one event asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A new block of `size`.
    Allocate,
    /// The end of a block of `size`.
    Free,
    /// A new `size` for a block of `old`.
    Resize,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// What is asked.
    pub(crate) operation: Operation,
    /// Which of the player's slots holds the block.
    pub(crate) slot: u32,
    /// Bytes requested (for [`Operation::Free`]: of the block that ends).
    pub(crate) size: usize,
    /// Bytes before a resize.
    pub(crate) old: usize,
    /// Alignment, a power of two, at least 16.
    pub(crate) align: usize,
}

/// A sequence of requests: `setup` brings a heap to its steady state, `measured`
/// is what is looked at.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// Name in tables.
    pub(crate) name: String,
    /// Events before measuring.
    pub(crate) setup: Vec<Event>,
    /// Events measured.
    pub(crate) measured: Vec<Event>,
    /// Slots a player needs.
    pub(crate) slots: usize,
    /// Greatest sum of requested bytes live at once.
    pub(crate) peak: usize,
}

impl Workload {
    /// Setup and measured events in order.
    #[cfg(test)]
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.setup.iter().chain(&self.measured)
    }
}

/// Builds a workload, keeping track of what is live.
pub(crate) struct Builder {
    events: Vec<Event>,
    setup: usize,
    live: Vec<Option<(usize, usize)>>,
    bytes: usize,
    peak: usize,
}

impl Builder {
    /// A builder for `slots` slots, all empty.
    pub(crate) fn new(slots: usize) -> Self {
        Builder {
            events: Vec::new(),
            setup: 0,
            live: vec![None; slots],
            bytes: 0,
            peak: 0,
        }
    }

    /// A slot beyond those there are.
    pub(crate) fn add_slot(&mut self) -> usize {
        self.live.push(None);
        self.live.len() - 1
    }

    /// Whether the slot holds a block.
    pub(crate) fn is_live(&self, slot: usize) -> bool {
        self.live[slot].is_some()
    }

    /// Bytes live now.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Requests `size` bytes into an empty slot.
    pub(crate) fn allocate(&mut self, slot: usize, size: usize, align: usize) {
        let size = size.max(1);
        let align = align.max(16);
        assert!(
            self.live[slot].replace((size, align)).is_none(),
            "slot in use"
        );
        self.bytes += size;
        self.peak = self.peak.max(self.bytes);
        self.push(Operation::Allocate, slot, size, 0, align);
    }

    /// Ends the block of a slot.
    pub(crate) fn free(&mut self, slot: usize) {
        let (size, align) = self.live[slot].take().expect("slot holds a block");
        self.bytes -= size;
        self.push(Operation::Free, slot, size, 0, align);
    }

    /// Changes the size of the block of a slot.
    pub(crate) fn resize(&mut self, slot: usize, size: usize) {
        let size = size.max(1);
        let (old, align) = self.live[slot].expect("slot holds a block");
        self.live[slot] = Some((size, align));
        self.bytes = self.bytes - old + size;
        self.peak = self.peak.max(self.bytes);
        self.push(Operation::Resize, slot, size, old, align);
    }

    /// Everything until here was setup.
    fn measure_from_here(&mut self) {
        self.setup = self.events.len();
    }

    /// The workload built.
    pub(crate) fn finish(mut self, name: &str) -> Workload {
        let measured = self.events.split_off(self.setup);
        Workload {
            name: name.to_owned(),
            setup: self.events,
            measured,
            slots: self.live.len(),
            peak: self.peak,
        }
    }

    fn push(&mut self, operation: Operation, slot: usize, size: usize, old: usize, align: usize) {
        self.events.push(Event {
            operation,
            slot: u32::try_from(slot).expect("slots fit in 32 bits"),
            size,
            old,
            align,
        });
    }
}

/// Live blocks of `mix` and `lifo`.
const MIX_LIVE: usize = 10_000;

/// `live` blocks of log-uniform size from 16 B to 64 KiB; each step frees one
/// at random and requests another. Setup fills and replaces twice over, so that
/// the steady state is measured and not the first fill.
fn mix(name: &str, live: usize, steps: usize) -> Workload {
    let mut random = Random::new(1);
    let mut builder = fill(live, &mut random);
    for _ in 0..2 * live {
        replace(&mut builder, live, &mut random);
    }
    builder.measure_from_here();
    for _ in 0..steps {
        replace(&mut builder, live, &mut random);
    }
    builder.finish(name)
}

fn fill(live: usize, random: &mut Random) -> Builder {
    let mut builder = Builder::new(live);
    for slot in 0..live {
        builder.allocate(slot, random.log_uniform(16, 65_536), 16);
    }
    builder
}

fn replace(builder: &mut Builder, live: usize, random: &mut Random) {
    let slot = random.below(live);
    builder.free(slot);
    builder.allocate(slot, random.log_uniform(16, 65_536), 16);
}

/// Live blocks of `equal`, and their bytes, which with a record of a word are 64.
const EQUAL: (usize, usize) = (10_000, 56);

/// Blocks of one size, one at random freed and another requested: in a heap that compacts
/// fully, each free moves a block.
fn equal(steps: usize) -> Workload {
    let (live, bytes) = EQUAL;
    let mut random = Random::new(4);
    let mut builder = Builder::new(live);
    for slot in 0..live {
        builder.allocate(slot, bytes, 16);
    }
    builder.measure_from_here();
    // Two are always missing, so that a free finds a full page and one that is not.
    let mut spare = [0, 1];
    builder.free(0);
    builder.free(1);
    for step in 0..steps {
        let slot = random.below(live);
        if spare.contains(&slot) {
            continue;
        }
        builder.free(slot);
        let oldest = &mut spare[step % 2];
        builder.allocate(*oldest, bytes, 16);
        *oldest = slot;
    }
    builder.finish("equal")
}

/// The ten message sizes of `emb`; each as likely as it is small.
const EMB_SIZES: [usize; 10] = [24, 32, 48, 64, 96, 128, 256, 512, 1024, 1536];
/// Slots of `emb`; about half are live.
const EMB_SLOTS: usize = 660;

/// An embedded program: ten sizes, about 330 blocks live, about 25 KB.
fn emb(steps: usize) -> Workload {
    let mut random = Random::new(2);
    let mut builder = Builder::new(EMB_SLOTS);
    let toggle = |builder: &mut Builder, random: &mut Random| {
        let slot = random.below(EMB_SLOTS);
        if builder.is_live(slot) {
            builder.free(slot);
        } else {
            builder.allocate(slot, pick_inverse(&EMB_SIZES, random), 16);
        }
    };
    for _ in 0..10 * EMB_SLOTS {
        toggle(&mut builder, &mut random);
    }
    builder.measure_from_here();
    for _ in 0..2 * steps {
        toggle(&mut builder, &mut random);
    }
    builder.finish("emb")
}

/// One of `sizes` with probability inverse to it.
fn pick_inverse(sizes: &[usize], random: &mut Random) -> usize {
    let total: usize = sizes.iter().map(|size| (1 << 20) / size).sum();
    let mut left = random.below(total);
    for &size in sizes {
        let weight = (1 << 20) / size;
        if left < weight {
            return size;
        }
        left -= weight;
    }
    unreachable!("weights sum to total")
}

/// Push 64 blocks of 64 B, pop them in reverse, on top of the blocks of `mix`.
fn lifo(steps: usize) -> Workload {
    let mut random = Random::new(3);
    let mut builder = fill(MIX_LIVE, &mut random);
    for _ in 0..MIX_LIVE {
        replace(&mut builder, MIX_LIVE, &mut random);
    }
    let stack: Vec<usize> = (0..64).map(|_| builder.add_slot()).collect();
    builder.measure_from_here();
    for _ in 0..steps.div_ceil(stack.len()) {
        for &slot in &stack {
            builder.allocate(slot, 64, 16);
        }
        for &slot in stack.iter().rev() {
            builder.free(slot);
        }
    }
    builder.finish("lifo")
}

/// Sizes drift from tens of bytes to kilobytes while about 1 MiB stays live:
/// old small blocks leave holes that the later sizes do not fit.
fn ramp() -> Workload {
    const LIVE: usize = 1 << 20;
    const STEPS: usize = 60_000;
    let mut random = Random::new(4);
    let mut builder = Builder::new(0);
    let mut live: Vec<usize> = Vec::new();
    let mut empty: Vec<usize> = Vec::new();
    for step in 0..STEPS {
        // 32 B grows to 8 KiB: eight doublings.
        let limit = 32 << (step * 8 / STEPS);
        let size = limit / 2 + random.below(limit / 2 + 1);
        while builder.bytes() + size > LIVE {
            let slot = live.swap_remove(random.below(live.len()));
            builder.free(slot);
            empty.push(slot);
        }
        let slot = empty.pop().unwrap_or_else(|| builder.add_slot());
        builder.allocate(slot, size, 16);
        live.push(slot);
    }
    builder.finish("ramp")
}

/// Smallest and largest block of the Robson ramp, and the bytes it holds live.
const ROBSON: (usize, usize, usize) = (64, 4096, 1 << 20);

/// Robson's adversary, oblivious form: fill with the smallest blocks, then at
/// each doubling free every other block of every generation in the order of
/// allocation and refill with blocks twice the size, none of which fits a hole.
/// Block sizes include the allocator's `record`, so requests are smaller by it.
/// The ratio is to the bytes of blocks, not of requests: see [`robson_live`].
pub(crate) fn robson(record: usize) -> Workload {
    let (smallest, largest, bytes) = ROBSON;
    let mut builder = Builder::new(0);
    let mut generations: Vec<Vec<usize>> = Vec::new();
    let mut live = 0;
    let mut size = smallest;
    while size <= largest {
        for generation in &mut generations {
            let mut kept = Vec::new();
            for (index, &slot) in generation.iter().enumerate() {
                if index % 2 == 0 {
                    kept.push(slot);
                } else {
                    live -= size_of_generation(&builder, slot) + record;
                    builder.free(slot);
                }
            }
            *generation = kept;
        }
        let mut generation = Vec::new();
        while live + size <= bytes {
            let slot = builder.add_slot();
            builder.allocate(slot, size - record, 16);
            live += size;
            generation.push(slot);
        }
        generations.push(generation);
        size *= 2;
    }
    builder.finish("robson")
}

fn size_of_generation(builder: &Builder, slot: usize) -> usize {
    builder.live[slot].expect("generations hold live blocks").0
}

/// Bytes of blocks (records included) that the Robson ramp keeps live.
pub(crate) fn robson_live() -> usize {
    ROBSON.2
}

/// The workloads on which time is measured, each with about `steps` allocations
/// and frees.
pub(crate) fn timed(steps: usize) -> Vec<Workload> {
    vec![
        mix("mix", MIX_LIVE, steps),
        emb(steps),
        lifo(steps),
        equal(steps),
    ]
}

/// The workloads on which space is measured (the Robson ramp apart, which
/// depends on the allocator).
pub(crate) fn spatial() -> Vec<Workload> {
    vec![mix("mixs", 2_000, 10_000), emb(10_000), ramp()]
}

/// Rows of a foreign trace, in order: operation, block, size, alignment.
pub(crate) type Row = (char, u64, usize, usize);

/// A workload from the rows of a trace; says what is wrong with row `n`.
pub(crate) fn from_rows(
    name: &str,
    rows: impl Iterator<Item = Row>,
) -> Result<Workload, (usize, String)> {
    let mut builder = Builder::new(0);
    let mut slots: BTreeMap<u64, usize> = BTreeMap::new();
    let mut empty: Vec<usize> = Vec::new();
    for (index, (operation, block, size, align)) in rows.enumerate() {
        let known = slots.get(&block).copied();
        match (operation, known) {
            ('a', None) => {
                let slot = empty.pop().unwrap_or_else(|| builder.add_slot());
                slots.insert(block, slot);
                builder.allocate(slot, size, align);
            }
            ('a', Some(_)) => return Err((index, format!("block {block} is allocated twice"))),
            ('f', Some(slot)) => {
                slots.remove(&block);
                builder.free(slot);
                empty.push(slot);
            }
            ('r', Some(slot)) => builder.resize(slot, size),
            ('f' | 'r', None) => return Err((index, format!("block {block} is not live"))),
            _ => return Err((index, format!("operation '{operation}' is not a, f or r"))),
        }
    }
    if builder.peak == 0 {
        return Err((0, "no allocation".to_owned()));
    }
    Ok(builder.finish(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a workload on paper and returns its peak.
    fn check(workload: &Workload) -> usize {
        let mut live = vec![None; workload.slots];
        let (mut bytes, mut peak) = (0, 0);
        for event in workload.events() {
            let slot = &mut live[event.slot as usize];
            match event.operation {
                Operation::Allocate => {
                    assert_eq!(slot.replace(event.size), None);
                    bytes += event.size;
                }
                Operation::Free => {
                    assert_eq!(slot.take(), Some(event.size));
                    bytes -= event.size;
                }
                Operation::Resize => {
                    assert_eq!(slot.replace(event.size), Some(event.old));
                    bytes = bytes - event.old + event.size;
                }
            }
            peak = peak.max(bytes);
        }
        assert_eq!(peak, workload.peak);
        peak
    }

    #[test]
    fn workloads_are_well_formed_and_of_the_size_described() {
        let timed = timed(500);
        let peaks: Vec<usize> = timed.iter().chain(&spatial()).map(check).collect();
        assert!((70 << 20..90 << 20).contains(&peaks[0]), "mix {peaks:?}");
        assert!((20_000..35_000).contains(&peaks[1]), "emb {peaks:?}");
    }

    #[test]
    fn robson_keeps_its_bytes_live() {
        for record in [0, 8, 16] {
            let workload = robson(record);
            let blocks = workload.events().count();
            assert!(check(&workload) <= robson_live());
            assert!(blocks > 16_384, "{blocks}");
        }
    }

    #[test]
    fn bad_traces_are_refused_with_the_row() {
        let double = [('a', 1, 8, 16), ('a', 1, 8, 16)];
        assert_eq!(from_rows("t", double.into_iter()).unwrap_err().0, 1);
        let foreign = [('f', 1, 0, 0)];
        assert_eq!(from_rows("t", foreign.into_iter()).unwrap_err().0, 0);
        assert!(from_rows("t", std::iter::empty()).is_err());
    }
}
