//! Records whose generations are used up.

use std::vec;
use std::vec::Vec;

use super::*;
use crate::{Heap, Tlsf};

/// Ages every spare record and every free block.
fn age<R: Layout>(heap: &mut Heap<Tlsf<8>, Ledger<'_, ByHandle, R>>) {
    for record in heap.store_mut().records.iter_mut() {
        if record.generation() & 1 == 0 {
            record.age();
        }
    }
}

fn no_handle_resolves_again<R: Layout>() {
    let mut records = vec![R::SPARE; 400];
    let ledger = Ledger::new(&mut records, ByHandle, Geometry::out_of_band(16));
    let mut heap = Heap::new(Tlsf::<8>::new(), ledger);
    heap.add_region(1 << 12).unwrap();
    let mut past = Vec::new();
    // The first block of the region among them, and neighbours on both sides.
    for round in 0..40 {
        // Handles of the first generations are there before the last ones are.
        if round == 10 {
            age(&mut heap);
        }
        let places: Vec<_> = (0..3).map(|_| heap.allocate(100, 1).unwrap()).collect();
        heap.check().unwrap();
        for index in [[0, 1, 2], [1, 0, 2], [2, 0, 1]][round % 3] {
            assert_eq!(heap.release_place(places[index]), Ok(()));
            heap.check().unwrap();
        }
        past.extend(places);
        for &place in &past {
            assert_eq!(
                heap.release_place(place),
                Err(BadFree::NotInUse),
                "round {round}"
            );
        }
    }
    assert_eq!(
        heap.statistics().free_blocks,
        1,
        "all memory is one block again"
    );
    // Whatever generation a record is in, no place is given out twice.
    let numbers: Vec<_> = past.iter().map(|place| std::format!("{place:?}")).collect();
    let distinct: std::collections::BTreeSet<_> = numbers.iter().collect();
    assert_eq!(distinct.len(), numbers.len());
}

#[test]
fn records_whose_generations_are_used_up_are_retired() {
    no_handle_resolves_again::<Record>();
    no_handle_resolves_again::<UnitRecord>();
}

#[test]
fn without_a_spare_record_the_block_is_still_served() {
    let mut records = vec![UnitRecord::SPARE; 400];
    let ledger = Ledger::new(&mut records, ByHandle, Geometry::out_of_band(16));
    let mut heap = Heap::new(Tlsf::<8>::new(), ledger);
    heap.add_region(1 << 12).unwrap();
    let mut places = Vec::new();
    while let Some(place) = heap.allocate(16, 1) {
        places.push(place);
    }
    let last = places.pop().unwrap();
    heap.release_place(last).unwrap();
    age(&mut heap);
    for _ in 0..3 {
        let place = heap.allocate(16, 1).unwrap();
        heap.check().unwrap();
        assert_eq!(heap.release_place(place), Ok(()));
        heap.check().unwrap();
    }
}
