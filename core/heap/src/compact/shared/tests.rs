//! Real threads on one heap, and on several: every byte verified, every invariant at the end.

use std::boxed::Box;
use std::sync::Mutex;
use std::thread;
use std::vec;
use std::vec::Vec;

use core::mem::MaybeUninit;

use super::super::{
    BadHandle, Granularity, Handle, Instances, Kappa, Options, Partition, Population, Refused,
    Resize, SharedCompactFit, Sharing, Transition, Unfit,
};
use crate::lock::Lock;
use crate::store::tagged::Memory;

/// A lock of the operating system: threads that wait give way.
struct System(Mutex<()>);

// SAFETY: the guard lives as long as the body runs.
unsafe impl Lock for System {
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock().unwrap();
        body()
    }
}

fn system() -> System {
    System(Mutex::new(()))
}

fn memory(bytes: usize) -> Memory {
    let leaked: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(bytes));
    Memory::from_static(leaked)
}

fn options(kappa: u32, increment: Option<usize>) -> Options {
    Options {
        partition: Partition {
            page: 1024,
            smallest: 32,
            largest: 500,
            factor: 1600,
            ..Partition::DEFAULT
        },
        kappa: Kappa::Finite(kappa),
        increment,
    }
}

fn shared(granularity: Granularity, options: &Options) -> SharedCompactFit<System> {
    let sharing = Sharing {
        granularity,
        threads: 4,
    };
    SharedCompactFit::new(options, sharing, memory(96 << 10), system).unwrap()
}

/// Checks the heap after this step: under Miri, which takes long for it, not after every one.
fn check(heap: &mut SharedCompactFit<System>, step: usize) {
    if !cfg!(miri) || step.is_multiple_of(8) {
        assert_eq!(heap.check(), Ok(()));
    }
}

/// xorshift64*, so that a run can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
    }
}

/// A block, and the bytes that it holds.
type Held = (Handle, Vec<u8>);

/// What the threads do to the heap that they share; blocks wait in slots and change hands.
struct Stress<'a> {
    heap: &'a SharedCompactFit<System>,
    slots: Vec<Mutex<Option<Held>>>,
    /// Written as a whole and read as a whole, by all threads at once.
    common: Vec<Handle>,
}

const COMMON: usize = 100;

impl<'a> Stress<'a> {
    fn new(heap: &'a SharedCompactFit<System>) -> Self {
        let common = (0..8).map(|_| {
            let handle = heap.allocate(COMMON, 8).unwrap();
            heap.write(handle, 0, &[0; COMMON]).unwrap();
            handle
        });
        Stress {
            heap,
            slots: (0..64).map(|_| Mutex::new(None)).collect(),
            common: common.collect(),
        }
    }

    fn run(&self, seed: u64, operations: usize) {
        let mut random = Random(seed);
        for _ in 0..operations {
            let taken = self.slots[random.next(64)].lock().unwrap().take();
            let kept = match taken {
                None => self.allocate(&mut random),
                Some((handle, bytes)) => self.change(&mut random, handle, bytes),
            };
            if let Some((handle, bytes)) = kept {
                let mut slot = self.slots[random.next(64)].lock().unwrap();
                match *slot {
                    None => *slot = Some((handle, bytes)),
                    Some(_) => self.heap.free(handle).unwrap(),
                }
            }
            self.visit(&mut random);
        }
    }

    fn allocate(&self, random: &mut Random) -> Option<Held> {
        let bytes = vec![random.next(256) as u8; 1 + random.next(480)];
        let handle = self.heap.allocate(bytes.len(), 8).ok()?;
        self.heap.write(handle, 0, &bytes).unwrap();
        Some((handle, bytes))
    }

    fn change(&self, random: &mut Random, handle: Handle, mut bytes: Vec<u8>) -> Option<Held> {
        let mut held = vec![0; bytes.len()];
        self.heap.read(handle, 0, &mut held).unwrap();
        assert_eq!(held, bytes);
        match random.next(8) {
            0..3 => {
                self.heap.free(handle).unwrap();
                assert_eq!(self.heap.size(handle), Err(BadHandle::Stale));
                return None;
            }
            3 => {
                let (_, compaction) = self.heap.begin_free(handle).unwrap();
                let mut compaction = compaction.and_then(|begun| self.heap.step(begun));
                thread::yield_now();
                while let Some(more) = compaction {
                    compaction = self.heap.step(more);
                }
                return None;
            }
            4 => self.pin(handle, &mut bytes),
            5 => {
                let size = 1 + random.next(480);
                match self.heap.resize(handle, size, 8) {
                    Ok(()) => {
                        let before = bytes.len();
                        bytes.resize(size, 7);
                        let more = bytes.get(before..).unwrap_or(&[]);
                        self.heap.write(handle, size.min(before), more).unwrap();
                    }
                    Err(refused) => assert_eq!(refused, Resize::Refused(Refused::Exhausted)),
                }
            }
            _ => {
                let at = random.next(bytes.len());
                let end = bytes.len().min(at + 50);
                bytes[at..end].fill(random.next(256) as u8);
                self.heap.write(handle, at, &bytes[at..end]).unwrap();
            }
        }
        Some((handle, bytes))
    }

    /// Changes a block behind its address.
    fn pin(&self, handle: Handle, bytes: &mut [u8]) {
        let address = self.heap.pin(handle).unwrap();
        assert_eq!(self.heap.free(handle), Err(BadHandle::Pinned));
        thread::yield_now();
        // SAFETY: pinned, and this thread has the only handle now.
        let block = unsafe { core::slice::from_raw_parts_mut(address.as_ptr(), bytes.len()) };
        assert_eq!(block, bytes);
        bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
        block.copy_from_slice(bytes);
        self.heap.unpin(handle).unwrap();
    }

    /// Reads or writes a block that everybody writes: no mixture is ever seen.
    fn visit(&self, random: &mut Random) {
        let handle = self.common[random.next(self.common.len())];
        let mut bytes = [random.next(256) as u8; COMMON];
        if random.next(2) == 0 {
            return self.heap.write(handle, 0, &bytes).unwrap();
        }
        self.heap.read(handle, 0, &mut bytes).unwrap();
        assert_eq!(bytes, [bytes[0]; COMMON], "a read saw half a write");
    }

    fn end(self) {
        for slot in self.slots {
            if let Some((handle, bytes)) = slot.into_inner().unwrap() {
                let mut held = vec![0; bytes.len()];
                self.heap.read(handle, 0, &mut held).unwrap();
                assert_eq!(held, bytes);
                self.heap.free(handle).unwrap();
            }
        }
        for handle in self.common {
            self.heap.free(handle).unwrap();
        }
    }
}

fn stress(granularity: Granularity, kappa: u32, increment: Option<usize>) {
    let mut heap = shared(granularity, &options(kappa, increment));
    for round in 0..if cfg!(miri) { 1 } else { 20 } {
        let stress = Stress::new(&heap);
        thread::scope(|scope| {
            for thread in 1..=4 {
                let stress = &stress;
                let operations = if cfg!(miri) { 40 } else { 2_000 };
                scope.spawn(move || stress.run(round * 4 + thread, operations));
            }
        });
        stress.end();
        assert_eq!(heap.check(), Ok(()));
        assert_eq!((heap.moves(), heap.pages().0), (0, 0));
    }
    let statistics = heap.statistics();
    assert_eq!((statistics.live, statistics.blocks), (0, 0));
    assert!(statistics.frees > 0);
}

#[test]
fn class_locks_keep_bytes_and_invariants() {
    stress(Granularity::Class, 1, Some(64));
    stress(Granularity::Class, 2, None);
}

#[test]
fn page_locks_keep_bytes_and_invariants() {
    stress(Granularity::Page, 1, Some(64));
    stress(Granularity::Page, 2, None);
}

/// More threads that leave their moves than there are slots: others carry whole page-blocks.
#[test]
fn moves_that_are_left_are_ended_by_others() {
    for granularity in [Granularity::Class, Granularity::Page] {
        let mut heap = shared(granularity, &options(3, Some(16)));
        let blocks: Vec<Handle> = (0..if cfg!(miri) { 40 } else { 200 })
            .map(|number| {
                let handle = heap.allocate(100, 8).unwrap();
                heap.write(handle, 0, &[number as u8; 100]).unwrap();
                handle
            })
            .collect();
        let mut begun = Vec::new();
        for (number, handle) in blocks.iter().step_by(3).enumerate() {
            let (_, compaction) = heap.begin_free(*handle).unwrap();
            begun.extend(compaction.and_then(|compaction| heap.step(compaction)));
            check(&mut heap, number);
        }
        assert!(heap.moves() > 1);
        for (number, handle) in blocks
            .iter()
            .enumerate()
            .filter(|(number, _)| number % 3 > 0)
        {
            heap.pin(*handle).unwrap();
            let mut bytes = [0; 100];
            heap.read(*handle, 0, &mut bytes).unwrap();
            assert_eq!(bytes, [number as u8; 100]);
            heap.unpin(*handle).unwrap();
            check(&mut heap, number);
        }
        for mut compaction in begun.into_iter().map(Some) {
            while let Some(more) = compaction {
                compaction = heap.step(more);
            }
        }
        assert_eq!((heap.moves(), heap.check()), (0, Ok(())));
        assert!(heap.states().all(|state| state.not_full <= 3));
    }
}

#[test]
fn a_request_takes_back_a_move() {
    for granularity in [Granularity::Class, Granularity::Page] {
        let mut options = options(1, Some(8));
        options.partition.smallest = 500;
        let mut heap = shared(granularity, &options);
        let blocks: Vec<Handle> = (0..3).map(|_| heap.allocate(400, 8).unwrap()).collect();
        let (transition, compaction) = heap.begin_free(blocks[0]).unwrap();
        assert_eq!(transition, Transition::Compacts);
        // The third block leaves its page, so the class has no room.
        let (_, transition) = heap.allocate_traced(400, 8).unwrap();
        assert_eq!(transition, Transition::Recalls);
        assert!(compaction.and_then(|begun| heap.step(begun)).is_none());
        assert_eq!((heap.moves(), heap.check()), (0, Ok(())));
    }
}

#[test]
fn instances_serve_their_own_threads_and_take_back_what_others_free() {
    let population = Population {
        threads: 4,
        instances: 2,
        degree: 2,
        spill: true,
    };
    let options = options(1, Some(64));
    let granularity = Granularity::Class;
    let memory = memory(192 << 10);
    let mut heaps = Instances::new(&options, granularity, population, memory, system).unwrap();
    let operations = if cfg!(miri) { 60 } else { 20_000 };
    let (sender, receiver) = std::sync::mpsc::channel::<(Handle, u8)>();
    let receiver = Mutex::new(receiver);
    thread::scope(|scope| {
        for number in 0..4 {
            let (heaps, sender, receiver) = (&heaps, sender.clone(), &receiver);
            scope.spawn(move || {
                let member = heaps.member(number).unwrap();
                let mut random = Random(number as u64 + 1);
                for _ in 0..operations {
                    if random.next(2) == 0 {
                        let byte = random.next(256) as u8;
                        let Ok(handle) = member.allocate(100, 8) else {
                            continue;
                        };
                        heaps.write(handle, 0, &[byte; 100]).unwrap();
                        sender.send((handle, byte)).unwrap();
                        continue;
                    }
                    let received = receiver.lock().unwrap().try_recv();
                    if let Ok((handle, byte)) = received {
                        let mut bytes = [0; 100];
                        heaps.read(handle, 0, &mut bytes).unwrap();
                        assert_eq!(bytes, [byte; 100]);
                        heaps.free(handle).unwrap();
                    }
                }
            });
        }
    });
    drop(sender);
    for (handle, _) in receiver.into_inner().unwrap() {
        heaps.free(handle).unwrap();
    }
    assert_eq!(heaps.check(), Ok(()));
    let blocks = |heap: &SharedCompactFit<System>| heap.statistics();
    assert!(heaps.heaps().iter().all(|heap| blocks(heap).blocks == 0));
    assert!(heaps.heaps().iter().all(|heap| blocks(heap).frees > 0));
}

#[test]
fn contradictions_are_named() {
    let population = Population {
        threads: 3,
        instances: 2,
        degree: 1,
        spill: false,
    };
    let options = options(1, None);
    let make = |population, bytes| {
        Instances::new(
            &options,
            Granularity::Page,
            population,
            memory(bytes),
            system,
        )
        .map(|_| ())
    };
    let unfit = Unfit::Instances {
        instances: 2,
        threads: 3,
    };
    assert_eq!(make(population, 1 << 16), Err(unfit));
    let shared = Population {
        degree: 2,
        ..population
    };
    assert_eq!(make(shared, 1 << 16), Ok(()));
    assert!(matches!(make(shared, 1000), Err(Unfit::TooSmall(_))));
    assert!(matches!(make(shared, 10), Err(Unfit::TooSmall(_))));
    let nobody = Population {
        threads: 0,
        ..population
    };
    assert_eq!(make(nobody, 1 << 16), Err(Unfit::Threads));
    let sharing = Sharing {
        granularity: Granularity::Class,
        threads: 0,
    };
    let heap = SharedCompactFit::new(&options, sharing, memory(1 << 16), system);
    assert_eq!(heap.map(|_| ()).unwrap_err(), Unfit::Threads);
}

#[test]
fn handles_of_the_past_and_of_others_are_refused() {
    let one = shared(Granularity::Page, &options(1, None));
    let two = shared(Granularity::Page, &options(1, None));
    let (a, b) = (one.allocate(40, 8).unwrap(), two.allocate(40, 8).unwrap());
    assert_eq!(one.free(b), Err(BadHandle::Foreign));
    assert_eq!(one.free(a), Ok(()));
    assert_eq!(one.free(a), Err(BadHandle::Stale));
    let next = Handle::from_bits(a.to_bits() + (1 << 24));
    assert_eq!(one.write(next, 0, &[1]), Err(BadHandle::Stale));
    assert_eq!(one.pin(a).unwrap_err(), BadHandle::Stale);
    let again = one.allocate(40, 8).unwrap();
    assert_eq!(one.write(again, 1, &[0; 40]), Err(BadHandle::Outside));
    assert_eq!(one.unpin(again), Err(BadHandle::NotPinned));
    let pinned = one.pin(again).unwrap();
    assert_eq!(one.pin(again), Ok(pinned));
    let grown = one.resize(again, 400, 8);
    assert_eq!(grown, Err(Resize::Handle(BadHandle::Pinned)));
    assert_eq!(one.allocate(1 << 14, 8), Err(Refused::TooLarge));
    assert_eq!(one.allocate(8, 1 << 14), Err(Refused::Alignment));
}

/// Heaps may change their threads, and shared ones be used by several.
const _: fn() = || {
    fn moves<T: Send>() {}
    fn shares<T: Send + Sync>() {}
    moves::<super::super::CompactFit<super::super::Copying>>();
    shares::<SharedCompactFit<System>>();
    shares::<Instances<System>>();
};
