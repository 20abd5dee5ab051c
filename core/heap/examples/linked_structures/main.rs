//! Linked structures in a heap that moves their nodes: a doubly linked list and a binary search
//! tree, both of handles. Most of what was inserted is removed again; at κ = 1 the heap gives
//! the pages back, at κ = ∞ it keeps them, and the structures are right in either.
//!
//! `cargo run -p metes-heap --example linked_structures`

use std::mem::MaybeUninit;
use std::ptr::from_ref;

use metes_heap::Memory;
use metes_heap::compact::typed::{TypedHandle, Values};
use metes_heap::compact::{Kappa, Options, Partition};

mod list;
mod tree;

const INSERTED: u32 = 4000;

fn main() {
    for kappa in [Kappa::Finite(1), Kappa::Finite(8), Kappa::Infinite] {
        run(kappa);
    }
}

/// Numbers in a scattered order, each below [`INSERTED`] once.
fn scattered() -> impl Iterator<Item = u32> {
    (0..INSERTED).map(|i| i * 1_237 % INSERTED)
}

fn run(kappa: Kappa) {
    let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(1 << 20));
    let options = Options {
        partition: Partition {
            page: 1 << 12,
            largest: 1 << 11,
            ..Partition::DEFAULT
        },
        kappa,
        increment: None,
    };
    let mut heap = Values::new(&options, Memory::from_static(memory)).expect("options that fit");
    let (mut tree, mut list) = (tree::Tree::new(), list::List::new());
    for number in scattered() {
        let squared = u64::from(number).pow(2);
        tree.insert(&mut heap, number, squared).expect("room");
        list.push(&mut heap, number).expect("room");
    }
    let (pages, filled) = (heap.pages().0, held(&heap));

    // Seven of eight go, the tree's by key and the list's by place.
    let stay = |number: u32| number.is_multiple_of(8);
    let places = (
        places(&heap, tree.nodes(&heap)),
        places(&heap, list.nodes(&heap)),
    );
    for number in scattered().filter(|&number| !stay(number)) {
        let squared = tree.remove(&mut heap, &number);
        assert_eq!(squared, Some(u64::from(number).pow(2)));
    }
    let nodes: Vec<_> = list.nodes(&heap).collect();
    for node in nodes {
        if !stay(heap.get(node).expect("a node of the list").value) {
            list.remove(&mut heap, node);
        }
    }

    assert_eq!(tree.get(&heap, &8), Some(&64));
    let entries = tree.entries(&heap);
    let expected = (0..INSERTED).filter(|&number| stay(number));
    assert!(
        entries
            .iter()
            .map(|&(&key, &value)| (key, value))
            .eq(expected.map(|number| (number, u64::from(number).pow(2))))
    );
    let value =
        |node: TypedHandle<list::Node<u32>>| heap.get(node).expect("a node of the list").value;
    let order: Vec<u32> = scattered().filter(|&number| stay(number)).collect();
    assert!(list.nodes(&heap).map(value).eq(order.iter().copied()));
    assert!(
        list.reversed(&heap)
            .map(value)
            .eq(order.iter().rev().copied())
    );
    heap.check().expect("the heap is sound");

    let moved = moved(&heap, &places.0) + moved(&heap, &places.1);
    println!("kappa {kappa}:");
    println!(
        "  {} nodes hold {filled} bytes in {pages} pages",
        2 * INSERTED
    );
    println!(
        "  {} nodes hold {} bytes in {} pages; {moved} of them were moved",
        2 * entries.len(),
        held(&heap),
        heap.pages().0,
    );
}

/// The footprint without the pages that any class may have again.
fn held(heap: &Values) -> usize {
    heap.footprint() - heap.fragmentation().spare
}

/// Where nodes are.
fn places<T>(
    heap: &Values,
    nodes: impl IntoIterator<Item = TypedHandle<T>>,
) -> Vec<(TypedHandle<T>, *const T)> {
    let place = |node| Some((node, from_ref(heap.get(node).ok()?)));
    nodes.into_iter().filter_map(place).collect()
}

/// How many of the nodes that still exist are elsewhere.
fn moved<T>(heap: &Values, places: &[(TypedHandle<T>, *const T)]) -> usize {
    let moved = |&&(node, place): &&(_, _)| heap.get(node).is_ok_and(|now| from_ref(now) != place);
    places.iter().filter(moved).count()
}
