use std::cell::RefCell;
use std::ptr::NonNull;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::description::IndexKind;
use crate::{AnyIndex, Fit, Limits, Links, Memory, Order, SizeTable, Tagged};

const ROOM: usize = 1 << 14;

/// Words in a table.
#[derive(Clone)]
struct Table(Rc<RefCell<Vec<usize>>>);

impl Words for Table {
    fn get(&self, at: usize) -> usize {
        assert!(at.is_multiple_of(WORD));
        self.0.borrow()[at / WORD]
    }

    fn put(&self, at: usize, word: usize) {
        assert!(at.is_multiple_of(WORD));
        self.0.borrow_mut()[at / WORD] = word;
    }
}

type Index = AnyIndex<DistantBlock>;

fn kinds() -> Vec<IndexKind> {
    let list = |fit, order, links| IndexKind::List {
        fit,
        order,
        depth_percent: 100,
        max_fit_percent: 0,
        links,
    };
    vec![
        IndexKind::tlsf(8),
        IndexKind::Classes {
            second_level: 4,
            probes: usize::MAX,
        },
        IndexKind::Kingsley,
        IndexKind::Lea { keep_up_to: 128 },
        IndexKind::Buddy { lowest: false },
        IndexKind::Buddy { lowest: true },
        IndexKind::FixedSizes {
            sizes: SizeTable::DEFAULT,
        },
        list(Fit::First, Order::Address, Links::Single),
        list(Fit::Next, Order::Fifo, Links::Double),
        list(Fit::Best, Order::Lifo, Links::Double),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]
    /// Two who take turns decide what one does with boundary tags at addresses.
    #[test]
    fn it_decides_as_boundary_tags_at_addresses(
        kind in prop::sample::select(kinds()),
        steps in prop::collection::vec((0u8..4, any::<u16>()), 1..300),
    ) {
        let mut room = vec![0u8; 2 * ROOM];
        let start: NonNull<u8> = NonNull::from(&mut room[..]).cast();
        // SAFETY: the room is twice as large as what is skipped in it and used.
        let start = unsafe { start.add(start.as_ptr().align_offset(ROOM)) };
        // SAFETY: within the room, which outlives the heap.
        let memory = unsafe { Memory::from_raw(start, ROOM) };
        let mut near = Heap::new(AnyIndex::new(kind, Limits::NONE), <Tagged>::new());
        let table = Table(Rc::new(RefCell::new(vec![0; ROOM / WORD])));
        let new = || Heap::new(Index::new(kind, Limits::NONE), Distant::new(table.clone()));
        let mut far = [new(), new()];
        let added = near.add_region(memory);
        // Each lays the same; the last stays.
        for far in &mut far {
            prop_assert_eq!(&added, &far.add_region(ROOM));
        }
        prop_assume!(added.is_ok());
        let mut used: Vec<(NonNull<u8>, usize)> = Vec::new();
        for (turn, &(what, number)) in steps.iter().enumerate() {
            let (number, at) = (usize::from(number), turn % 2);
            let carried = far[1 - at].carry();
            if turn > 0 {
                // SAFETY: the other one was the last.
                unsafe { far[at].resume(carried) };
            }
            let far = &mut far[at];
            if what < 2 || used.is_empty() {
                let align = if number % 7 == 0 { 64 } else { 8 };
                let places = (near.allocate(number % 900, align), far.allocate(number % 900, align));
                let offset = places.0.map(|place| place.addr().get() - start.addr().get());
                prop_assert_eq!(offset, places.1);
                used.extend(places.0.zip(places.1));
            } else if what == 2 {
                let (place, offset) = used.swap_remove(number % used.len());
                // SAFETY: both are in use.
                unsafe {
                    prop_assert_eq!(near.free(place), Ok(()));
                    prop_assert_eq!(far.free(offset), Ok(()));
                }
            } else {
                let at = number % used.len();
                let (place, offset) = used[at];
                // SAFETY: both are in use.
                let (place, offset) = unsafe {
                    (near.resize(place, number % 700, 8), far.resize(offset, number % 700, 8))
                };
                let (place, offset) = (place.ok().flatten(), offset.ok().flatten());
                let found = place.map(|place| place.addr().get() - start.addr().get());
                prop_assert_eq!(found, offset);
                if let Some(both) = place.zip(offset) {
                    used[at] = both;
                }
            }
            prop_assert_eq!(near.statistics(), far.statistics());
            prop_assert_eq!(far.check(), Ok(()));
        }
        // Broken off anywhere, it is made whole from the blocks in use.
        used.sort_unstable();
        let far = &mut far[(steps.len() + 1) % 2];
        let places = used.iter().map(|&(_, offset)| offset);
        // SAFETY: these are in use, and no others.
        let rebuilt = unsafe { far.rebuild(Index::new(kind, Limits::NONE), places) };
        prop_assert_eq!(rebuilt, Ok(()));
        prop_assert_eq!(far.check(), Ok(()));
        prop_assert_eq!(far.statistics().live, near.statistics().live);
    }
}
