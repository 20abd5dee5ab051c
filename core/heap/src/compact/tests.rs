//! Compact-fit against a naive model: what each handle holds, and where pages stand.

use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use core::mem::MaybeUninit;

use proptest::prelude::*;

use super::*;
use crate::store::tagged::Memory;

/// Whether everything is checked after this step: under Miri not always, it takes its time.
fn due(step: usize) -> bool {
    !cfg!(miri) || step.is_multiple_of(20)
}

/// Memory of the heaps in the property tests.
const MEMORY: usize = if cfg!(miri) { 10 << 10 } else { 48 << 10 };

fn memory(bytes: usize) -> Memory {
    let leaked: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(bytes));
    Memory::from_static(leaked)
}

fn options(page: usize, kappa: u32, increment: Option<usize>) -> Options {
    Options {
        partition: Partition {
            page,
            smallest: 32,
            largest: page / 2,
            ..Partition::DEFAULT
        },
        kappa: match kappa {
            0 => Kappa::Infinite,
            kappa => Kappa::Finite(kappa),
        },
        increment,
    }
}

#[test]
fn classes_grow_and_fill_their_pages() {
    for page in [256, 4096, 16384, 65536] {
        for factor in [1001, 1125, 1250, 2000] {
            let partition = Partition {
                page,
                factor,
                largest: page / 4,
                ..Partition::DEFAULT
            };
            if partition.validate(8).is_err() {
                continue;
            }
            let sizes: Vec<usize> = partition.classes(8).collect();
            assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(*sizes.last().unwrap() >= page / 4 + 8);
            for size in sizes {
                assert_eq!(size % 16, 0);
                assert!(
                    page - page / size * size < 16 * (page / size),
                    "{size} of {page}"
                );
            }
        }
    }
}

#[test]
fn classes_end_at_the_page_whatever_is_asked() {
    for (page, smallest, largest) in [
        (1024, 16, 1024),
        (1024, 16, usize::MAX),
        (1024, 1 << 20, 1 << 30),
    ] {
        let partition = Partition {
            page,
            smallest,
            largest,
            ..Partition::DEFAULT
        };
        assert!(partition.validate(8).is_err());
        assert_eq!(partition.classes(8).last(), Some(page));
    }
}

#[test]
fn contradictions_are_named() {
    let fits = Options::DEFAULT;
    assert_eq!(fits.validate(8), Ok(()));
    let with = |change: fn(&mut Options)| {
        let mut options = fits;
        change(&mut options);
        options.validate(8).unwrap_err()
    };
    assert_eq!(with(|o| o.kappa = Kappa::Finite(0)), Unfit::Kappa);
    assert!(matches!(
        with(|o| o.increment = Some(0)),
        Unfit::Increment { .. }
    ));
    assert!(matches!(
        with(|o| o.increment = Some(o.partition.page + 1)),
        Unfit::Increment { .. }
    ));
    assert!(matches!(
        with(|o| o.partition.largest = o.partition.page),
        Unfit::Largest { .. }
    ));
    assert_eq!(with(|o| o.partition.page = 3000), Unfit::Page(3000));
    assert_eq!(with(|o| o.partition.factor = 1000), Unfit::Factor(1000));
    assert!(matches!(
        CompactFit::new(&fits, memory(1000)).unwrap_err(),
        Unfit::TooSmall(_)
    ));
}

#[test]
fn handles_of_the_past_and_of_others_are_refused() {
    let mut one = CompactFit::new(&Options::DEFAULT, memory(1 << 17)).unwrap();
    let mut two = CompactFit::new(&Options::DEFAULT, memory(1 << 17)).unwrap();
    let a = one.allocate(40, 8).unwrap();
    let b = two.allocate(40, 8).unwrap();
    assert_eq!(one.free(b), Err(BadHandle::Foreign));
    assert_eq!(one.free(a), Ok(()));
    assert_eq!(one.free(a), Err(BadHandle::Stale));
    let next = Handle::from_bits(a.to_bits() + (1 << 24));
    assert_eq!(one.free(next), Err(BadHandle::Stale), "not made yet");
    let again = one.allocate(40, 8).unwrap();
    assert_ne!(a, again);
    assert_eq!(one.size(a), Err(BadHandle::Stale));
    one.pin(again).unwrap();
    assert_eq!(one.free(again), Err(BadHandle::Pinned));
    one.unpin(again).unwrap();
    assert_eq!(one.unpin(again), Err(BadHandle::NotPinned));
    assert_eq!(one.allocate(1 << 14, 8), Err(Refused::TooLarge));
    assert_eq!(one.allocate(8, 1 << 14), Err(Refused::Alignment));
    for bits in [0, u64::MAX, 1 << 48, again.to_bits() ^ 1] {
        assert!(one.free(Handle::from_bits(bits)).is_err());
    }
    assert_eq!(one.check(), Ok(()));
}

#[test]
fn full_compaction_leaves_one_page_not_full() {
    let mut heap = CompactFit::new(&options(1024, 1, None), memory(1 << 14)).unwrap();
    let blocks: Vec<Handle> = (0..310).map(|_| heap.allocate(24, 8).unwrap()).collect();
    // Every other block goes: without compaction all ten pages would stay.
    for (number, handle) in blocks.iter().step_by(2).enumerate() {
        heap.free(*handle).unwrap();
        if due(number) {
            assert_eq!(heap.check(), Ok(()));
        }
    }
    assert_eq!(heap.check(), Ok(()));
    let state = heap.states().next().unwrap();
    assert_eq!((state.blocks, state.used, state.pages), (32, 155, 5));
    assert!(state.not_full <= 1);
}

/// What the program does next; numbers choose among what is live.
#[derive(Clone, Debug)]
enum Step {
    Allocate(usize, u32),
    Free(usize),
    BeginFree(usize),
    Steps(usize),
    Write(usize, usize, u8),
    Pin(usize),
    Unpin(usize),
    Resize(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let which = any::<u16>().prop_map(usize::from);
    prop_oneof![
        6 => (1usize..700, 0u32..8).prop_map(|(size, align)| Step::Allocate(size, align)),
        3 => which.clone().prop_map(Step::Free),
        3 => which.clone().prop_map(Step::BeginFree),
        3 => which.clone().prop_map(Step::Steps),
        3 => (which.clone(), which.clone(), any::<u8>()).prop_map(|(a, b, c)| Step::Write(a, b, c)),
        1 => which.clone().prop_map(Step::Pin),
        1 => which.clone().prop_map(Step::Unpin),
        1 => (which, 1usize..700).prop_map(|(which, size)| Step::Resize(which, size)),
    ]
}

struct Model<B> {
    heap: CompactFit<B>,
    live: Vec<(Handle, Vec<u8>, Vec<usize>)>,
    under: Vec<Compaction>,
    fill: u8,
    kappa: u32,
}

impl<B: backing::Backing> Model<B> {
    fn run(&mut self, step: &Step, pin: impl Fn(&mut CompactFit<B>, Handle) -> Option<usize>) {
        let count = self.live.len();
        match *step {
            Step::Allocate(size, align) => {
                if let Ok(handle) = self.heap.allocate(size, 1 << align) {
                    self.fill = self.fill.wrapping_add(1);
                    let bytes = vec![self.fill; size];
                    self.heap.write(handle, 0, &bytes).unwrap();
                    self.live.push((handle, bytes, vec![]));
                }
            }
            _ if count == 0 => {}
            Step::Free(which) if self.live[which % count].2.is_empty() => {
                let (handle, ..) = self.live.swap_remove(which % count);
                self.heap.free(handle).unwrap();
            }
            Step::BeginFree(which) if self.live[which % count].2.is_empty() => {
                let (handle, ..) = self.live.swap_remove(which % count);
                let (_, compaction) = self.heap.begin_free(handle).unwrap();
                self.under.extend(compaction);
            }
            Step::Free(which) | Step::BeginFree(which) => {
                let handle = self.live[which % count].0;
                assert_eq!(self.heap.free(handle), Err(BadHandle::Pinned));
            }
            Step::Steps(which) if !self.under.is_empty() => {
                let compaction = self.under.swap_remove(which % self.under.len());
                self.under.extend(self.heap.step(compaction));
            }
            Step::Steps(_) => {}
            Step::Write(which, at, byte) => {
                let (handle, bytes, _) = &mut self.live[which % count];
                let at = at % bytes.len();
                let end = bytes.len().min(at + 40);
                bytes[at..end].fill(byte);
                self.heap.write(*handle, at, &bytes[at..end]).unwrap();
                let past = bytes.len();
                assert_eq!(
                    self.heap.write(*handle, past, &[0]),
                    Err(BadHandle::Outside)
                );
            }
            Step::Pin(which) => {
                let (handle, _, pins) = &mut self.live[which % count];
                pins.extend(pin(&mut self.heap, *handle));
            }
            Step::Unpin(which) => {
                let (handle, _, pins) = &mut self.live[which % count];
                match pins.pop() {
                    Some(_) => self.heap.unpin(*handle).unwrap(),
                    None => assert_eq!(self.heap.unpin(*handle), Err(BadHandle::NotPinned)),
                }
            }
            Step::Resize(which, size) => {
                let (handle, bytes, _) = &mut self.live[which % count];
                if self.heap.resize(*handle, size, 8).is_ok() {
                    let before = bytes.len();
                    bytes.resize(size, 0);
                    if size > before {
                        self.heap.write(*handle, before, &bytes[before..]).unwrap();
                    }
                }
            }
        }
    }

    fn verify(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.heap.check(), Ok(()));
        let mut expected = 0;
        for (handle, bytes, pins) in &self.live {
            let mut held = vec![0; bytes.len()];
            self.heap.read(*handle, 0, &mut held).unwrap();
            prop_assert_eq!(&held, bytes);
            expected += bytes.len();
            let offset = self.heap.offset(*handle).unwrap();
            prop_assert!(
                pins.iter().all(|&pinned| pinned == offset),
                "a pinned block moved"
            );
        }
        let found = self.heap.fragmentation();
        prop_assert_eq!(found.live, expected);
        let (owned, extent) = self.heap.pages();
        let page = found.live
            + found.page_block_internal
            + found.page_internal
            + found.size_class
            + found.transient;
        let bytes = self.heap.footprint() - found.records - found.handles;
        prop_assert_eq!(page + found.spare, bytes);
        prop_assert!(owned <= extent);
        for state in self.heap.states() {
            let pages = state.used / state.blocks
                + state.not_full.min(self.kappa)
                + state.source_pages
                + state.held;
            prop_assert!(state.pages <= pages, "{}", describe(&state));
        }
        Ok(())
    }
}

fn describe(state: &ClassState) -> String {
    format!("more pages than the bound: {state:?}")
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 400 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn copied_blocks_keep_their_bytes(
        steps in proptest::collection::vec(step(), 1..if cfg!(miri) { 40 } else { 300 }),
        kappa in 0u32..4,
        increment in proptest::option::of(1usize..100),
        // Few page-blocks a page make moves whose targets must leave again.
        smallest in proptest::sample::select(vec![32usize, 224]),
    ) {
        let mut options = options(1024, kappa, increment);
        options.partition.smallest = smallest;
        let heap = CompactFit::new(&options, memory(MEMORY)).unwrap();
        let mut model = Model {
            heap,
            live: vec![],
            under: vec![],
            fill: 0,
            kappa: options.kappa.limit(),
        };
        for (number, step) in steps.iter().enumerate() {
            model.run(step, |heap, handle| {
                heap.pin(handle).ok()?;
                heap.offset(handle).ok()
            });
            if due(number) {
                model.verify()?;
            }
        }
        model.heap.finish_all();
        prop_assert_eq!(model.heap.moves(), 0);
        model.verify()?;
        for (handle, _, pins) in model.live.drain(..) {
            for _ in pins {
                model.heap.unpin(handle).unwrap();
            }
            model.heap.free(handle).unwrap();
        }
        prop_assert_eq!(model.heap.check(), Ok(()));
        prop_assert_eq!(model.heap.pages().0, 0);
    }

    #[test]
    fn blocks_behind_a_table_keep_their_bytes(
        steps in proptest::collection::vec(step(), 1..if cfg!(miri) { 40 } else { 300 }),
        kappa in 0u32..4,
        increment in proptest::option::of(1usize..100),
        // Few page-blocks a page make moves whose targets must leave again.
        frame in proptest::sample::select(vec![16usize, 32, 64]),
        smallest in proptest::sample::select(vec![32usize, 224]),
    ) {
        let mut options = options(1024, kappa, increment);
        options.partition.smallest = smallest;
        options.partition.granule = frame;
        let heap = CompactFit::with_block_table(&options, memory(MEMORY)).unwrap();
        let mut model = Model {
            heap,
            live: vec![],
            under: vec![],
            fill: 0,
            kappa: options.kappa.limit(),
        };
        for (number, step) in steps.iter().enumerate() {
            // Blocks are not contiguous, so there is nothing to pin.
            model.run(step, |_, _| None);
            if due(number) {
                model.verify()?;
            }
        }
        model.heap.finish_all();
        prop_assert_eq!(model.heap.moves(), 0);
        model.verify()?;
        for (handle, _, pins) in model.live.drain(..) {
            for _ in pins {
                model.heap.unpin(handle).unwrap();
            }
            model.heap.free(handle).unwrap();
        }
        prop_assert_eq!(model.heap.check(), Ok(()));
        prop_assert_eq!(model.heap.pages().0, 0);
    }
}

/// A heap with two page-blocks a page, fully compacting, in increments.
fn pairs() -> CompactFit<Copying> {
    let partition = Partition {
        page: 256,
        smallest: 128,
        largest: 120,
        ..Partition::DEFAULT
    };
    let options = Options {
        partition,
        kappa: Kappa::Finite(1),
        increment: Some(40),
    };
    CompactFit::new(&options, memory(8 << 10)).unwrap()
}

fn filled(heap: &mut CompactFit<Copying>, byte: u8) -> Handle {
    let handle = heap.allocate(100, 8).unwrap();
    heap.write(handle, 0, &[byte; 100]).unwrap();
    handle
}

fn holds(heap: &CompactFit<Copying>, handle: Handle, byte: u8) -> bool {
    let mut bytes = [0; 100];
    heap.read(handle, 0, &mut bytes).unwrap();
    bytes == [byte; 100]
}

#[test]
fn a_move_is_led_elsewhere_when_its_target_must_leave() {
    let mut heap = pairs();
    let blocks: Vec<Handle> = (0..5).map(|byte| filled(&mut heap, byte)).collect();
    // The block of the third page is to enter the first page…
    let (transition, first) = heap.begin_free(blocks[0]).unwrap();
    assert_eq!(transition, Transition::Compacts);
    // …which is then not full, and the only one: what it waits for moves on.
    assert_eq!(heap.begin_free(blocks[1]).unwrap().0, Transition::Reopens);
    let first = heap.step(first.unwrap());
    assert!(first.is_some());
    let (transition, second) = heap.begin_free(blocks[2]).unwrap();
    assert_eq!(transition, Transition::Compacts);
    assert_eq!(heap.check(), Ok(()));
    assert!(holds(&heap, blocks[4], 4) && holds(&heap, blocks[3], 3));
    heap.write(blocks[4], 0, &[9; 100]).unwrap();
    for mut compaction in [second, first] {
        while let Some(more) = compaction.take() {
            compaction = heap.step(more);
            assert_eq!(heap.check(), Ok(()));
        }
    }
    assert!(holds(&heap, blocks[4], 9) && holds(&heap, blocks[3], 3));
    assert_eq!((heap.moves(), heap.pages().0), (0, 1));
}
