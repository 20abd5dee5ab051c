//! The tree and the list of the example against the standard library's, in a heap that
//! compacts fully and has small pages, so that nodes move all the time.

use std::collections::{BTreeMap, VecDeque};
use std::mem::MaybeUninit;

use metes_heap::Memory;
use metes_heap::compact::typed::Values;
use metes_heap::compact::{Kappa, Options, Partition};
use proptest::prelude::*;

#[path = "../../examples/linked_structures/list.rs"]
mod list;
#[path = "../../examples/linked_structures/tree.rs"]
mod tree;

fn heap() -> Values {
    let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(1 << 15));
    let options = Options {
        partition: Partition {
            page: 256,
            largest: 120,
            ..Partition::DEFAULT
        },
        kappa: Kappa::Finite(1),
        increment: None,
    };
    Values::new(&options, Memory::from_static(memory)).unwrap()
}

const STEPS: usize = if cfg!(miri) { 60 } else { 500 };

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 200 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_tree_of_handles_is_a_map(
        steps in prop::collection::vec((any::<bool>(), 0u8..100, any::<u16>()), 1..STEPS),
    ) {
        let (mut heap, mut tree) = (heap(), tree::Tree::new());
        let mut map = BTreeMap::new();
        for (insert, key, value) in steps {
            let value = value.to_string();
            if insert {
                match tree.insert(&mut heap, key, value.clone()) {
                    Ok(before) => prop_assert_eq!(before, map.insert(key, value)),
                    Err((_, key, _)) => prop_assert!(!map.contains_key(&key)),
                }
            } else {
                prop_assert_eq!(tree.remove(&mut heap, &key), map.remove(&key));
            }
            prop_assert_eq!(heap.check(), Ok(()));
            prop_assert_eq!(tree.get(&heap, &key), map.get(&key));
            prop_assert!(tree.entries(&heap).into_iter().eq(map.iter()));
        }
    }

    #[test]
    fn a_list_of_handles_is_a_deque(
        steps in prop::collection::vec((0u8..3, any::<u16>()), 1..STEPS),
    ) {
        let (mut heap, mut list) = (heap(), list::List::new());
        let mut deque = VecDeque::new();
        for (step, number) in steps {
            if step > 0 {
                if let Ok(node) = list.push(&mut heap, number) {
                    deque.push_back((node, number));
                }
            } else if !deque.is_empty() {
                let at = usize::from(number) % deque.len();
                let (node, value) = deque.remove(at).unwrap();
                prop_assert_eq!(list.remove(&mut heap, node), Some(value));
                prop_assert_eq!(list.remove(&mut heap, node), None);
            }
            prop_assert_eq!(heap.check(), Ok(()));
            let expected = || deque.iter().map(|&(node, _)| node);
            prop_assert!(list.nodes(&heap).eq(expected()));
            prop_assert!(list.reversed(&heap).eq(expected().rev()));
        }
    }
}
