//! Heaps that grow, against a naive model of their blocks: memory grows by what the blocks at
//! the end lack and no more, on every store alike.

use metes_heap::index::Index;
use metes_heap::{
    AnyIndex, ByHandle, Counted, Fit, Geometry, Hardened, Heap, IndexKind, Ledger, Limits, Record,
    Source, State, Store, Tagged, UnitRecord,
};
use metes_oracle::{Shadow, Step, kinds, limits, memory, steps};
use proptest::prelude::*;

const ARENA: usize = 256 << 10;
const WORD: usize = size_of::<usize>();

/// Grants memory up to `left` bytes.
struct Ground {
    increment: usize,
    left: usize,
}

// SAFETY: the memory of every heap here is as long as its first region and what was left then.
unsafe impl Source for Ground {
    fn increment(&self) -> usize {
        self.increment
    }

    fn grow(&mut self, bytes: usize) -> bool {
        let grants = bytes <= self.left;
        self.left -= if grants { bytes } else { 0 };
        grants
    }
}

/// A heap that grows.
struct Growing<I, S: Store> {
    shadow: Shadow<I, S>,
    ground: Ground,
}

/// Where the blocks are, from the first to the end, by a walk.
struct Blocks {
    /// Offset, size, whether it is free.
    all: Vec<(usize, usize, bool)>,
    /// Bytes granted behind the end.
    reserve: usize,
}

/// What decides how a heap grows.
#[derive(Clone, Copy, Debug)]
struct By {
    kind: IndexKind,
    limits: Limits,
    increment: usize,
}

impl Blocks {
    fn of<I: Index<S>, S: Store>(heap: &Heap<I, S>) -> Blocks {
        let mut all = vec![];
        heap.walk(|info| all.push((info.offset, info.size, info.state == State::Free)))
            .unwrap();
        let mut blocks = Blocks { all, reserve: 0 };
        blocks.reserve = heap.footprint() - blocks.end() - heap.store().geometry().sentinel;
        blocks
    }

    /// Where the first region of several ends.
    fn of_first<I: Index<S>, S: Store>(heap: &Heap<I, S>) -> usize {
        let mut end = 0;
        heap.walk(|info| {
            end = if info.region == 0 {
                info.offset + info.size
            } else {
                end
            }
        })
        .unwrap();
        end + heap.store().geometry().sentinel
    }

    fn end(&self) -> usize {
        self.all.last().map_or(0, |(offset, size, _)| offset + size)
    }

    /// By what the memory must grow, and its end move, so that a block of `need` lies there:
    /// behind the last block, over it if it is free and may grow, over the block at `own` if
    /// only free memory lies behind that, and with halving over all that is free in front of
    /// the end, at a multiple of its size.
    fn growth(&self, need: usize, own: Option<usize>, by: By) -> (usize, usize) {
        let granted = |lacking: usize| lacking.next_multiple_of(by.increment);
        if let IndexKind::Buddy { .. } = by.kind {
            let base = self.all.first().unwrap().0;
            let free_from = |start: usize| {
                let behind = |&&(offset, size, _): &&(usize, usize, bool)| offset + size > start;
                self.all.iter().filter(behind).all(|&(.., free)| free)
            };
            let starts = (base..=self.end() + need).step_by(need);
            let start = starts.into_iter().find(|&start| free_from(start)).unwrap();
            let asked = granted(start + need - self.end());
            return (asked, asked);
        }
        let growth = |room: usize| {
            let lacking = need.saturating_sub(room).max(2 * WORD);
            let asked = granted(lacking.saturating_sub(self.reserve));
            match need >= by.increment {
                true => (asked, lacking),
                false => (asked, self.reserve + asked),
            }
        };
        let (last, tail) = match self.all.last() {
            Some(&(_, tail, true)) => (self.all.iter().rev().nth(1), Some(tail)),
            last => (last, None),
        };
        if let Some(&(offset, size, _)) = last
            && Some(offset) == own
        {
            let room = size + tail.unwrap_or(0);
            if need > size && room + growth(room).1 <= by.limits.coalesce_up_to {
                return growth(room);
            }
        }
        let wilderness = !matches!(by.kind, IndexKind::Classes { .. });
        let grows = |&tail: &usize| wilderness || tail + growth(tail).1 <= by.limits.coalesce_up_to;
        growth(tail.filter(grows).unwrap_or(0))
    }
}

impl<I: Index<S>, S: Store> Growing<I, S>
where
    S::Place: metes_oracle::Payload,
{
    fn new(
        index: I,
        store: S,
        span: usize,
        increment: usize,
        lay: impl FnOnce(usize) -> S::Region,
    ) -> Self
    where
        S::Region: metes_heap::heap::Length,
    {
        let mut heap = Heap::new(index, store);
        heap.reserve_span(span);
        let first = heap.smallest_region().next_multiple_of(increment);
        heap.add_region(lay(first)).unwrap();
        Growing {
            shadow: Shadow::new(heap),
            ground: Ground {
                increment,
                left: span - first,
            },
        }
    }

    /// Takes a step; what it decided, and by how much the memory grew.
    fn step(&mut self, step: Step) -> (Option<usize>, usize) {
        let before = self.shadow.heap.footprint();
        let offset = self.shadow.step_from(step, &mut self.ground);
        self.shadow.verify();
        (offset, self.shadow.heap.footprint() - before)
    }
}

/// Runs the steps on every store; they must decide and grow the same, and by what the model says.
fn run(kind: IndexKind, limits: Limits, increment: usize, steps: &[Step]) {
    let mut records = vec![Record::SPARE; 8192];
    let ledger = Counted::new(Ledger::new(&mut records, ByHandle, Geometry::tagged(WORD)));
    let lent = [memory(ARENA), memory(ARENA)];
    // SAFETY: memory of this test alone; a hardened heap wants it initialised.
    unsafe { lent[1].start().write_bytes(0, ARENA) };
    let index = || AnyIndex::new(kind, limits);
    let lay = |number: usize| move |first| lent[number].shortened(first);
    let mut tagged = Growing::new(index(), <Tagged>::new(), ARENA, increment, lay(0));
    let mut hardened = Growing::new(
        AnyIndex::new(kind, limits),
        Hardened::new(1),
        ARENA,
        increment,
        lay(1),
    );
    let mut outside = Growing::new(
        AnyIndex::new(kind, limits),
        ledger,
        ARENA,
        increment,
        |first| first,
    );
    for &step in steps {
        let blocks = Blocks::of(&tagged.shadow.heap);
        let own = match step {
            Step::Resize { which, .. } => tagged.shadow.offset(which).map(|at| at - WORD),
            _ => None,
        };
        let done = tagged.step(step);
        assert_eq!(done, outside.step(step), "{kind:?} {step:?}");
        if WORD >= 8 {
            // On other targets a hardened block is larger.
            assert_eq!(done, hardened.step(step), "{kind:?} {step:?}");
        }
        let moved = Blocks::of(&tagged.shadow.heap).end() - blocks.end();
        assert!(blocks.reserve < increment);
        let (Step::Allocate { size, align: 1 } | Step::Resize { size, .. }) = step else {
            continue;
        };
        if done.0.is_none() || moved == 0 {
            continue;
        }
        let need = Geometry::tagged(WORD).block_for(size).unwrap();
        let index = tagged.shadow.heap.index();
        let need = Index::<Tagged>::block_size(index, need);
        let limits = Index::<Tagged>::limits(index);
        let by = By {
            kind,
            limits,
            increment,
        };
        let model = blocks.growth(need, own, by);
        match kind {
            // What was kept aside is merged before the memory grows.
            IndexKind::Lea { keep_up_to: 1.. } => assert!(done.1 <= model.0, "{step:?}"),
            _ => assert_eq!((done.1, moved), model, "{by:?} {step:?} of {need}"),
        }
    }
    for memory in lent {
        metes_oracle::give_back(memory);
    }
}

/// Records of granules grow as records of bytes do.
fn run_units(kind: IndexKind, increment: usize, steps: &[Step]) {
    const GRANULE: usize = 16;
    if matches!(kind, IndexKind::Lea { .. }) {
        // Its threshold is a number of bytes.
        return;
    }
    let (mut bytes, mut units) = (vec![Record::SPARE; 8192], vec![UnitRecord::SPARE; 8192]);
    let geometry = Geometry::out_of_band(GRANULE);
    let index = || AnyIndex::new(kind, Limits::NONE);
    let mut one = Heap::new(index(), Ledger::new(&mut bytes, ByHandle, geometry));
    let mut two = Heap::new(index(), Ledger::new(&mut units, ByHandle, geometry));
    one.reserve_span(ARENA);
    two.reserve_span(ARENA / GRANULE);
    one.add_region(increment).unwrap();
    if two.add_region(increment / GRANULE).is_err() {
        // These records suit indexes alone that always merge.
        return;
    }
    let ground = |unit: usize| Ground {
        increment: increment / unit,
        left: (ARENA - increment) / unit,
    };
    let mut grounds = (ground(1), ground(GRANULE));
    let mut held = vec![];
    for &step in steps {
        match step {
            Step::Allocate { size, .. } => {
                // SAFETY: ledgers touch no memory.
                let one_place = unsafe { one.allocate_from(size, 1, &mut grounds.0) };
                // SAFETY: as above.
                let two_place = unsafe { two.allocate_from(size, 1, &mut grounds.1) };
                assert_eq!(
                    one_place.is_some(),
                    two_place.is_some(),
                    "{kind:?} {step:?}"
                );
                held.extend(one_place.zip(two_place));
            }
            Step::Free { which } | Step::Resize { which, .. } if !held.is_empty() => {
                let (first, second) = held.swap_remove(which % held.len());
                assert_eq!(one.place_offset(first), GRANULE * two.place_offset(second));
                if let Step::Resize { size, .. } = step {
                    // SAFETY: ledgers touch no memory.
                    let first = unsafe { one.resize_from(first, size, 1, &mut grounds.0) };
                    // SAFETY: as above.
                    let second = unsafe { two.resize_from(second, size, 1, &mut grounds.1) };
                    held.extend(first.unwrap().zip(second.unwrap()));
                } else {
                    one.release_place(first).unwrap();
                    two.release_place(second).unwrap();
                }
            }
            _ => {}
        }
        assert_eq!(
            one.footprint(),
            GRANULE * two.footprint(),
            "{kind:?} {step:?}"
        );
        one.check().unwrap();
        two.check().unwrap();
    }
}

fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 24 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

const STEPS: usize = if cfg!(miri) { 25 } else { 250 };

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn memory_grows_by_what_the_end_lacks(
        steps in steps(STEPS),
        limits in limits(),
        increment in prop::sample::select(&[16usize, 48, 64, 1040, 4096]),
    ) {
        for kind in kinds() {
            let limits = if matches!(kind, IndexKind::Buddy { .. }) { Limits::NONE } else { limits };
            // Memory of buddies comes in multiples of their smallest block.
            let increment = match kind {
                IndexKind::Buddy { .. } => increment.next_power_of_two().max(4 * WORD),
                _ => increment,
            };
            run(kind, Limits::NONE, increment, &steps);
            run(kind, limits, increment, &steps);
            run_units(kind, increment, &steps);
        }
    }
}

/// Half-fit, whose search begins at the next power of two, takes what suffices at the end.
#[test]
fn a_block_of_new_memory_need_not_be_found_by_a_search() {
    let index = AnyIndex::new(IndexKind::tlsf(1), Limits::NONE);
    let own = memory(ARENA);
    let mut heap = Growing::new(index, <Tagged>::new(), ARENA, 16, |first| {
        own.shortened(first)
    });
    let before = heap.shadow.heap.footprint();
    let step = |size| Step::Allocate { size, align: 1 };
    for (size, block) in [(1000, 1008), (5000, 5008), (24, 32)] {
        let held = heap.step(step(size));
        assert!(held.0.is_some(), "{size} bytes");
        let tail = if size == 1000 { 4 * WORD } else { 0 };
        assert_eq!(held.1, block - tail, "{size} bytes");
    }
    assert_eq!(
        heap.shadow.heap.footprint() - before,
        1008 - 4 * WORD + 5008 + 32
    );
    metes_oracle::give_back(own);
}

/// One array that grows by a step, and a block kept between any two steps: the array takes
/// each place that it leaves behind again, and is not copied at every step.
#[test]
#[cfg_attr(miri, ignore = "long, and on a ledger: touches no memory")]
fn a_growing_array_leaves_little_behind() {
    let mut records = vec![Record::SPARE; 20_000];
    let step = |size| Step::Allocate { size, align: 1 };
    for kind in kinds() {
        // What others round, and what limited searches pass over, is lost whatever they do.
        let whole = match kind {
            IndexKind::List {
                fit,
                depth_percent,
                max_fit_percent,
                ..
            } => fit != Fit::Exact && depth_percent == 100 && max_fit_percent == 0,
            IndexKind::Classes { .. } | IndexKind::Lea { .. } => true,
            _ => false,
        };
        if !whole {
            continue;
        }
        for (array, by, kept) in [
            (400_000, 4096, 4080),
            (400_000, 512, 100),
            (400_000, 2048, 1000),
            (400_000, 1000, 24),
            (600_000, 8192, 4080),
        ] {
            let ledger = Ledger::new(&mut records, ByHandle, Geometry::tagged(WORD));
            let index = AnyIndex::new(kind, Limits::NONE);
            let mut heap = Growing::new(index, ledger, 1 << 30, 4096, |first| first);
            let before = heap.shadow.heap.footprint();
            let (mut at, mut copied, mut live) = (None, 0, 0);
            for (number, size) in (by..=array).step_by(by).enumerate() {
                let next = match number {
                    0 => step(size),
                    // It was resized before the last block was kept.
                    _ => Step::Resize {
                        which: number - 1,
                        size,
                    },
                };
                let now = heap.shadow.step_from(next, &mut heap.ground);
                copied += if now == at { 0 } else { size };
                at = now;
                heap.shadow.step_from(step(kept), &mut heap.ground).unwrap();
                live = size + (number + 1) * (kept + 2 * WORD);
            }
            let grown = heap.shadow.heap.footprint() - before;
            let what = format!("{kind:?}, {array} by {by}, {kept} kept");
            assert!(grown < 5 * live / 2, "{what}: {grown} bytes for {live}");
            assert!(copied < 10 * array, "{what}: {copied} bytes copied");
        }
    }
}

/// What is in reserve behind one region is given to the index when another follows.
#[test]
fn a_reserve_is_not_lost_behind_another_region() {
    for kind in kinds() {
        let (first, second) = (memory(ARENA), memory(ARENA));
        let index = AnyIndex::new(kind, Limits::NONE);
        let lay = |bytes| first.shortened(bytes);
        let Growing { shadow, mut ground } = Growing::new(index, <Tagged>::new(), ARENA, 4096, lay);
        let mut heap = shadow.heap;
        // SAFETY: the ground is behind its only region.
        let large = unsafe { heap.allocate_from(5000, 1, &mut ground) };
        assert!(large.is_some(), "{kind:?}");
        let granted = heap.footprint();
        if heap.add_region(second.shortened(16 << 10)).is_ok() {
            assert_eq!(Blocks::of_first(&heap), granted, "{kind:?}");
        }
        heap.check().unwrap();
        while heap.allocate(700, 1).is_some() {}
        heap.check().unwrap();
        metes_oracle::give_back(first);
        metes_oracle::give_back(second);
    }
}

/// Resizes in place alone: what does not fit where it is stays as it was, though there is room elsewhere.
#[test]
fn a_block_is_resized_where_it_is_or_not_at_all() {
    let mut records = [Record::SPARE; 1024];
    let ledger = Ledger::new(&mut records, ByHandle, Geometry::out_of_band(16));
    let mut heap = Heap::new(metes_heap::Tlsf::<32>::new(), ledger);
    heap.add_region(1 << 16).unwrap();
    let first = heap.allocate(160, 16).unwrap();
    let second = heap.allocate(160, 16).unwrap();
    // SAFETY: a ledger resolves blocks in use only and touches no memory.
    let mut resize = |place, size| unsafe { heap.resize_where_it_is(place, size, 16) };
    assert_eq!(resize(first, 176), Ok(false));
    assert_eq!(resize(second, 1 << 12), Ok(true));
    assert_eq!(resize(second, 1 << 20), Ok(false));
    assert_eq!(resize(first, 80), Ok(true));
    assert_eq!(resize(first, 160), Ok(true));
    // SAFETY: as above.
    let sizes = [first, second].map(|place| unsafe { heap.requested(place) });
    assert_eq!(sizes, [Ok(160), Ok(1 << 12)]);
    heap.release_place(second).unwrap();
    // SAFETY: as above.
    assert!(unsafe { heap.resize_where_it_is(second, 16, 16) }.is_err());
    assert_eq!(heap.check(), Ok(()));
}

/// The lean way to a first region lays it out as the other one, and gives a heap of several regions none.
#[test]
fn an_only_region_is_laid_out_as_any_other() {
    for kind in kinds() {
        let first = memory(ARENA);
        let second = memory(ARENA);
        let new = || Heap::new(AnyIndex::new(kind, Limits::NONE), <Tagged>::new());
        let (mut one, mut other) = (new(), new());
        one.add_region(first).unwrap();
        other.add_only_region(second).unwrap();
        for size in [24, 1000, 1, 5000, 300] {
            let (place, same) = (
                one.allocate(size, 8).unwrap(),
                other.allocate(size, 8).unwrap(),
            );
            assert_eq!(
                one.place_offset(place),
                other.place_offset(same),
                "{kind:?}"
            );
        }
        assert_eq!(one.footprint(), other.footprint(), "{kind:?}");
        other.check().unwrap();
        let third = memory(ARENA);
        assert!(other.add_only_region(third).is_err(), "{kind:?}");
        other.check().unwrap();
        metes_oracle::give_back(first);
        metes_oracle::give_back(second);
        metes_oracle::give_back(third);
    }
}
