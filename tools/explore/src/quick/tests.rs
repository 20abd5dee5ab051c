//! The sorted list, the sizes, their marks and the ranks beside plain ones.

use proptest::prelude::*;

use super::lanes::Key;
use super::marks::{Mark, Marks};
use super::ranks::Ranks;
use super::sizes::Sizes;
use super::sorted::{Sorted, Wanted};

/// The list of free blocks as pairs of place and size in a vector.
#[derive(Default)]
struct Plain(Vec<(u64, u32)>);

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(u32, u32),
    Append(u32),
    Prepend(u32),
    Remove(u16),
    /// Takes out many neighbours, so that nodes join.
    Thin(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![1_u32..6, 1_u32..1000, Just(u32::MAX)];
    prop_oneof![
        6 => (1000_u32..60_000, value.clone()).prop_map(|(key, value)| Step::Insert(key, value)),
        6 => value.clone().prop_map(Step::Append),
        6 => value.prop_map(Step::Prepend),
        4 => any::<u16>().prop_map(Step::Remove),
        1 => any::<u16>().prop_map(Step::Thin),
    ]
}

impl Plain {
    fn index(&self, key: u64) -> usize {
        self.0.partition_point(|&(own, _)| own < key)
    }
}

/// Keys of both widths, from one number.
trait Wide: Key + std::fmt::Debug {
    fn of(number: u64) -> Self;
}

impl Wide for u32 {
    fn of(number: u64) -> u32 {
        number as u32
    }
}

impl Wide for u64 {
    fn of(number: u64) -> u64 {
        number << 20 | 7
    }
}

/// Few marks, so that many values share one.
fn mark_of(value: u32) -> Mark {
    1 << (value % 61)
}

/// Every question at every of some places.
fn compare<K: Wide>(list: &mut Sorted<K, u64>, plain: &Plain, probe: u32) {
    assert_eq!(list.len(), plain.0.len());
    assert!(list.items().eq(plain.0.iter().map(|&(key, _)| key)));
    assert_eq!(list.rank(list.end()), plain.0.len());
    let stride = plain.0.len() / 23 + 1;
    for rank in (0..plain.0.len()).step_by(stride) {
        let (key, value) = plain.0[rank];
        let at = list.locate(K::of(key));
        assert_eq!(list.rank(at), rank);
        assert_eq!(list.select(rank), at);
        assert_eq!((list.key(at), list.value(at)), (K::of(key), value));
        assert_eq!(list.item(at), key);
        let after = plain.0.get(rank + 1).map(|&(key, _)| K::of(key));
        assert_eq!(list.key_after(at), after);
        for least in [1, 2, 5, probe % 1000 + 1, value, u32::MAX] {
            let first = (rank..plain.0.len()).find(|&index| plain.0[index].1 >= least);
            assert_eq!(list.find(at, least).map(|at| list.rank(at)), first);
            let wanted = Wanted {
                least,
                span: least.saturating_add(3) - least,
                marks: mark_of(least)
                    | mark_of(least.saturating_add(1))
                    | mark_of(least.saturating_add(2))
                    | mark_of(least.saturating_add(3)),
            };
            let first = (rank..plain.0.len())
                .find(|&index| (least..=least.saturating_add(3)).contains(&plain.0[index].1));
            assert_eq!(
                list.find_marked(at, wanted, mark_of)
                    .map(|at| list.rank(at)),
                first
            );
        }
        let other = (rank * 7 + probe as usize) % plain.0.len();
        let (from, to) = (rank.min(other), rank.max(other));
        let (from_at, to_at) = (list.select(from), list.select(to));
        let mut seen = Vec::new();
        let mut first = None;
        list.parts(from_at, to_at, |part| {
            seen.extend_from_slice(part.values());
            first = first.or(part.first_within(2, 3));
            true
        });
        assert!(seen.iter().eq(plain.0[from..to].iter().map(|pair| &pair.1)));
        let within = (from..to).find(|&index| (2..=5).contains(&plain.0[index].1));
        assert_eq!(first.map(|at| list.rank(at)), within);
    }
    // Between keys: before the next one.
    let between = u64::from(probe) % 61_000;
    let at = list.locate(K::of(between));
    assert_eq!(list.rank(at), plain.index(between));
    assert_eq!(
        list.settle(at)
            .map(|at| list.rank(at))
            .unwrap_or(plain.0.len()),
        plain.index(between)
    );
}

fn run<K: Wide>(steps: &[Step], probe: u32) {
    let mut list: Sorted<K, u64> = Sorted::new();
    let mut plain = Plain::default();
    let (mut low, mut high) = (1_000_000_u64, 1_000_000_u64);
    let insert = |list: &mut Sorted<K, u64>, plain: &mut Plain, key: u64, value: u32| {
        let index = plain.index(key);
        if plain.0.get(index).is_some_and(|&(own, _)| own == key) {
            return;
        }
        list.insert(
            list.locate(K::of(key)),
            K::of(key),
            value,
            key,
            mark_of(value),
        );
        plain.0.insert(index, (key, value));
    };
    let remove = |list: &mut Sorted<K, u64>, plain: &mut Plain, index: usize| {
        let (key, _) = plain.0.remove(index);
        list.remove(list.locate(K::of(key)));
    };
    // Ends grow beyond the keys in the middle, which lie around 600 000 to 700 000.
    for (number, &step) in steps.iter().enumerate() {
        match step {
            Step::Insert(key, value) => {
                insert(&mut list, &mut plain, 900_000 + u64::from(key), value)
            }
            Step::Append(value) => {
                high += 1;
                insert(&mut list, &mut plain, high + 100_000, value);
            }
            Step::Prepend(value) => {
                low -= 1;
                insert(&mut list, &mut plain, low - 200_000, value);
            }
            Step::Remove(pick) if !plain.0.is_empty() => {
                let index = usize::from(pick) % plain.0.len();
                remove(&mut list, &mut plain, index);
            }
            Step::Thin(pick) if !plain.0.is_empty() => {
                let index = usize::from(pick) % plain.0.len();
                for _ in 0..300.min(plain.0.len() - index) {
                    remove(&mut list, &mut plain, index);
                }
            }
            Step::Remove(_) | Step::Thin(_) => {}
        }
        if number % 997 == 0 {
            compare(&mut list, &plain, probe.wrapping_add(number as u32));
        }
    }
    compare(&mut list, &plain, probe);
    while !plain.0.is_empty() {
        let index = plain.0.len() * 3 / 7;
        remove(&mut list, &mut plain, index);
        if plain.0.len() % 501 == 0 {
            compare(&mut list, &plain, probe);
        }
    }
    // An emptied list is used again.
    insert(&mut list, &mut plain, 5, 5);
    compare(&mut list, &plain, probe);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_sorted_list_answers_as_a_plain_one(
        steps in prop::collection::vec(step(), 1..4000),
        probe in any::<u32>(),
    ) {
        run::<u32>(&steps, probe);
        run::<u64>(&steps, probe);
    }
}

#[test]
fn a_list_of_many_nodes_answers_as_a_plain_one() {
    // Enough for several inner nodes, in every pattern of growth.
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    for growth in 0..4 {
        let mut steps: Vec<Step> = (0..30_000)
            .map(|_| {
                let value = 1 + random(500) as u32;
                match if growth < 3 { growth } else { random(3) } {
                    0 => Step::Append(value),
                    1 => Step::Prepend(value),
                    _ => Step::Insert(1000 + random(59_000) as u32, value),
                }
            })
            .collect();
        steps.extend((0..60).map(|_| Step::Thin(random(65_536) as u16)));
        run::<u32>(&steps, 77);
        run::<u64>(&steps, 78);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn ranks_count_as_a_plain_set(
        numbers in prop::collection::btree_set(
            prop_oneof![0_usize..2000, 30_000_usize..70_000, 0_usize..5_000_000], 1..600),
        leave in prop::collection::vec(any::<bool>(), 600),
    ) {
        let mut ranks = Ranks::default();
        let mut plain = numbers.clone();
        for &number in numbers.iter().rev() {
            ranks.insert(number);
        }
        for (&number, leave) in numbers.iter().zip(leave) {
            if leave {
                ranks.remove(number);
                plain.remove(&number);
            }
        }
        prop_assert_eq!(ranks.len(), plain.len());
        for (rank, &number) in plain.iter().enumerate() {
            prop_assert_eq!(ranks.rank(number), rank);
            prop_assert_eq!(ranks.rank(number + 1), rank + 1);
            prop_assert_eq!(ranks.select(rank), number);
        }
        prop_assert_eq!(ranks.rank(9_000_000), plain.len());
    }
}

/// Places rise, fall, or are any.
#[derive(Clone, Copy, Debug)]
enum Growth {
    Rising,
    Falling,
    Any,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn sizes_answer_as_a_plain_set(
        steps in prop::collection::vec(
            (prop_oneof![
                4 => 1_u32..40,
                2 => 1_u32..6000,
                1 => prop::sample::select(vec![4095_u32, 4096, 262_143, 262_144, 600_000, 1_000_000]),
            ], any::<u32>(), 0_u8..5), 1..700),
        growth in prop::sample::select(vec![Growth::Rising, Growth::Falling, Growth::Any]),
    ) {
        let mut sizes: Sizes<u64> = Sizes::new();
        let mut marks = Marks::default();
        // Size, place, record.
        let mut plain: Vec<(u32, u32, u32)> = Vec::new();
        let mut spare: Vec<u32> = Vec::new();
        let (mut low, mut high) = (u32::MAX / 2, u32::MAX / 2);
        for (number, &(size, any, choice)) in steps.iter().enumerate() {
            if choice < 3 || plain.is_empty() {
                let place = match growth {
                    Growth::Rising => { high += 1; high }
                    Growth::Falling => { low -= 1; low }
                    Growth::Any => any % 1_000_000 * 1000 + number as u32,
                };
                let record = spare.pop().unwrap_or(number as u32);
                sizes.insert(size, place, record, u64::from(record) << 20);
                prop_assert_eq!(marks.enter(size), marks.of(size));
                plain.push((size, place, record));
            } else {
                // The first of its size, or any block.
                let of_size = plain.iter().map(|block| block.0).nth(any as usize % plain.len());
                let firsts = plain.iter().filter(|block| Some(block.0) == of_size);
                let block = match choice {
                    3 => *firsts.min_by_key(|block| block.1).unwrap(),
                    _ => plain[any as usize % plain.len()],
                };
                plain.retain(|other| *other != block);
                sizes.remove(block.0, block.2);
                marks.leave(block.0);
                spare.push(block.2);
            }
            prop_assert_eq!(sizes.len(), plain.len());
            let (least, most) = (size, size.saturating_add(any % 5000));
            let last = match any % 3 {
                0 => u32::MAX - 1,
                1 => any,
                _ => plain.iter().map(|block| block.1).nth(plain.len() / 2).unwrap_or(7),
            };
            let plainly = |block: &(u32, u32, u32)| (block.0, block.1, u64::from(block.2) << 20);
            let within = || plain.iter().filter(|block| (least..=most).contains(&block.0)).map(plainly);
            let till = || plain.iter().filter(|block| block.1 <= last).map(plainly);
            let earliest = within().min_by_key(|block| block.1);
            let found = |first: Option<super::sizes::First<u64>>| first.map(|first| (first.size, first.place, first.block));
            prop_assert_eq!(found(sizes.earliest(least, most)), earliest);
            let of = plain.iter().filter(|block| block.0 == least).map(plainly).min_by_key(|block| block.1);
            prop_assert_eq!(found(sizes.of(least)), of);
            // Of the size found the first, whatever bounds the search.
            let first_of = |size: u32| plain.iter().filter(|block| block.0 == size).map(plainly).min_by_key(|block| block.1);
            let smallest = till().map(|block| block.0).filter(|&size| size >= least).min();
            prop_assert_eq!(found(sizes.smallest(least, last)), smallest.and_then(first_of));
            let largest = till().map(|block| block.0).filter(|&size| size <= most).max();
            prop_assert_eq!(found(sizes.largest(most, last)), largest.and_then(first_of));
            let wanted = marks.between(least, most);
            for block in within() {
                prop_assert_ne!(wanted & marks.of(block.0), 0);
            }
        }
        let mut all = Vec::new();
        sizes.each(|size, place, block| all.push((size, place, (block >> 20) as u32)));
        all.sort_unstable();
        plain.sort_unstable();
        prop_assert_eq!(all, plain);
    }
}
