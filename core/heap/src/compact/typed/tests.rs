//! Values against what the program put in: contents, drops, pins.

use std::boxed::Box;
use std::cell::Cell;
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::vec;
use std::vec::Vec;

use core::mem::MaybeUninit;

use proptest::prelude::*;

use super::*;
use crate::compact::{Kappa, Partition};

fn values(page: usize, bytes: usize) -> Values {
    let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(bytes));
    let partition = Partition {
        page,
        smallest: 16,
        largest: page / 2,
        ..Partition::DEFAULT
    };
    let options = Options {
        partition,
        kappa: Kappa::Finite(1),
        increment: None,
    };
    Values::new(&options, Memory::from_static(memory)).unwrap()
}

/// Counts how often it is dropped.
#[derive(Debug)]
struct Dropped(Arc<AtomicUsize>, u32);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_is_removed_is_the_callers_and_what_is_left_is_dropped() {
    let count = Arc::new(AtomicUsize::new(0));
    let mut values = values(512, 1 << 16);
    let handles: Vec<_> = (0..60)
        .map(|i| values.insert(Dropped(count.clone(), i)).unwrap())
        .collect();
    for (i, &handle) in handles.iter().enumerate().step_by(3) {
        let value = values.remove(handle).unwrap();
        assert_eq!(value.1, i as u32);
    }
    assert_eq!(count.load(Ordering::Relaxed), 20);
    assert_eq!(values.check(), Ok(()));
    drop(values);
    assert_eq!(count.load(Ordering::Relaxed), 60);
}

#[test]
fn a_refused_value_comes_back() {
    let count = Arc::new(AtomicUsize::new(0));
    let mut values = values(256, 8 << 10);
    let mut held = 0;
    let (refused, value) = loop {
        match values.insert(Dropped(count.clone(), held)) {
            Ok(_) => held += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!((refused, value.1), (Refused::Exhausted, held));
    assert_eq!(count.load(Ordering::Relaxed), 0);
    drop((value, values));
    assert_eq!(count.load(Ordering::Relaxed), held as usize + 1);
    assert!(self::values(256, 8 << 10).insert([0u8; 200]).is_err());
}

#[test]
fn handles_of_others_and_of_the_past_are_refused() {
    let (mut one, mut two) = (values(512, 1 << 14), values(512, 1 << 14));
    let (a, b) = (one.insert(1u64).unwrap(), two.insert(2u64).unwrap());
    assert_eq!(one.get(b), Err(BadHandle::Foreign));
    assert_eq!(one.remove(a), Ok(1));
    let again = one.insert(3u64).unwrap();
    assert_eq!(one.get_mut(a), Err(BadHandle::Stale));
    assert_eq!(one.remove(a), Err(BadHandle::Stale));
    assert!(one.contains(again) && !one.contains(a) && a != again);
}

#[test]
fn no_size_and_large_alignment() {
    #[derive(Debug, PartialEq)]
    #[repr(align(64))]
    struct Line([u8; 64]);
    let mut values = values(1024, 1 << 18);
    let nothings: Vec<_> = (0..40).map(|_| values.insert(()).unwrap()).collect();
    let lines: Vec<_> = (0..40)
        .map(|i| values.insert(Line([i; 64])).unwrap())
        .collect();
    let [a, b] = values.get_disjoint_mut([nothings[0], nothings[1]]).unwrap();
    (*a, *b) = ((), ());
    for (index, &line) in lines.iter().enumerate().step_by(2) {
        assert_eq!(values.remove(line), Ok(Line([index as u8; 64])));
    }
    for (index, &line) in lines.iter().enumerate().skip(1).step_by(2) {
        let line = values.get(line).unwrap();
        assert_eq!(line, &Line([index as u8; 64]));
        assert_eq!(core::ptr::from_ref(line).addr() % 64, 0);
    }
    for nothing in nothings {
        assert_eq!(values.remove(nothing), Ok(()));
    }
    assert_eq!(values.check(), Ok(()));
}

#[test]
fn several_at_once() {
    let mut values = values(512, 1 << 14);
    let (a, b) = (values.insert(1).unwrap(), values.insert(2).unwrap());
    let text = values.insert(String::from("x")).unwrap();
    let [x, y] = values.get_disjoint_mut([a, b]).unwrap();
    core::mem::swap(x, y);
    let (x, text_mut) = values.get_pair_mut(a, text).unwrap();
    text_mut.push_str(&x.to_string());
    assert_eq!(values.get(text).unwrap(), "x2");
    assert_eq!(
        values.get_disjoint_mut([a, b, a]).unwrap_err(),
        NotDisjoint::Same
    );
    assert_eq!(values.get_pair_mut(a, a).unwrap_err(), NotDisjoint::Same);
    values.remove(b).unwrap();
    assert_eq!(
        values.get_disjoint_mut([a, b]).unwrap_err(),
        NotDisjoint::Handle(BadHandle::Stale)
    );
}

#[test]
fn a_shared_reference_may_change_its_value() {
    let mut values = values(512, 1 << 14);
    let cells: Vec<_> = (0..50)
        .map(|i| values.insert(Cell::new(i)).unwrap())
        .collect();
    let (one, other) = (values.get(cells[1]).unwrap(), values.get(cells[1]).unwrap());
    one.set(other.get() + 100);
    assert_eq!(other.get(), 101);
    for &cell in cells.iter().step_by(2) {
        values.remove(cell).unwrap();
    }
    assert_eq!(values.get(cells[1]).unwrap().get(), 101);
}

#[test]
fn a_pinned_value_stays() {
    let mut values = values(256, 1 << 14);
    let handles: Vec<_> = (0..60u64).map(|i| values.insert(i).unwrap()).collect();
    let mut pinned = values.pin(handles[59]).unwrap();
    let (address, kept) = (pinned.address(), pinned.values().pin(handles[58]).unwrap());
    let kept = kept.keep();
    for &handle in &handles[..58] {
        pinned.values().remove(handle).unwrap();
    }
    let refused = pinned.values().remove(handles[59]);
    assert_eq!(refused, Err(BadHandle::Pinned));
    // SAFETY: pinned, and nothing else refers to the value.
    assert_eq!(unsafe { address.read() }, 59);
    drop(pinned);
    assert_eq!(values.remove(handles[59]), Ok(59));
    // SAFETY: as above.
    assert_eq!(unsafe { kept.address().read() }, 58);
    let mut other = self::values(256, 1 << 14);
    let kept = other.unpin(kept).unwrap_err();
    values.unpin(kept).unwrap();
    assert_eq!(values.remove(handles[58]), Ok(58));
    assert_eq!(values.check(), Ok(()));
    assert_eq!(values.pages().0, 0);
}

#[test]
fn a_heap_goes_to_another_thread_with_its_values() {
    let mut values = values(512, 1 << 14);
    let handle = values.insert(vec![1, 2, 3]).unwrap();
    let sum = std::thread::spawn(move || values.get(handle).unwrap().iter().sum::<i32>());
    assert_eq!(sum.join().unwrap(), 6);
}

/// One type of each class of trouble: plain, owning, large.
#[derive(Debug)]
enum Live {
    Plain(TypedHandle<u16>, u16),
    Text(TypedHandle<String>, String),
    Boxed(TypedHandle<(Box<u64>, [u8; 50])>, u64),
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 200 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn values_are_what_was_put_in(
        steps in proptest::collection::vec((0u8..6, any::<u16>()), 1..if cfg!(miri) { 50 } else { 400 }),
    ) {
        let mut values = values(512, 1 << 15);
        let mut live: Vec<Live> = vec![];
        for (what, number) in steps {
            let inserted = match what {
                0 => values.insert(number).ok().map(|h| Live::Plain(h, number)),
                1 => {
                    let text = format!("text {number}");
                    values.insert(text.clone()).ok().map(|h| Live::Text(h, text))
                }
                2 => {
                    let wide = u64::from(number);
                    let value = (Box::new(wide), [number as u8; 50]);
                    values.insert(value).ok().map(|h| Live::Boxed(h, wide))
                }
                _ if live.is_empty() => None,
                3 => {
                    let index = usize::from(number) % live.len();
                    if let Live::Text(handle, text) = &mut live[index] {
                        values.get_mut(*handle).unwrap().push('!');
                        text.push('!');
                    }
                    None
                }
                _ => {
                    match live.swap_remove(usize::from(number) % live.len()) {
                        Live::Plain(handle, own) => prop_assert_eq!(values.remove(handle), Ok(own)),
                        Live::Text(handle, own) => prop_assert_eq!(values.remove(handle), Ok(own)),
                        Live::Boxed(handle, own) => {
                            prop_assert_eq!(*values.remove(handle).unwrap().0, own);
                        }
                    }
                    None
                }
            };
            live.extend(inserted);
            // Under Miri, which takes long for all of them, not after every step.
            if cfg!(miri) && !number.is_multiple_of(4) {
                continue;
            }
            prop_assert_eq!(values.check(), Ok(()));
            for one in &live {
                match one {
                    Live::Plain(handle, own) => prop_assert_eq!(values.get(*handle), Ok(own)),
                    Live::Text(handle, own) => prop_assert_eq!(values.get(*handle), Ok(own)),
                    Live::Boxed(handle, own) => {
                        let (boxed, bytes) = values.get(*handle).unwrap();
                        prop_assert_eq!((**boxed, bytes[49]), (*own, *own as u8));
                    }
                }
            }
        }
    }
}
