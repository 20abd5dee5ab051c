//! The sorted list and the ranks beside plain ones.

use proptest::prelude::*;

use super::lanes::Key;
use super::ranks::Ranks;
use super::sorted::{Position, Sorted};

/// The same list as pairs in a vector.
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

/// Every question at every of some places.
fn compare<K: Wide>(list: &Sorted<K, u64>, plain: &Plain, probe: u32) {
    assert_eq!(list.len(), plain.0.len());
    assert!(list.items().eq(plain.0.iter().map(|&(key, _)| key)));
    let rank_of = |at: Option<Position>| at.map(|at| list.rank(at));
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
            assert_eq!(rank_of(list.find(at, least)), first);
            let last = (0..rank).rev().find(|&index| plain.0[index].1 >= least);
            assert_eq!(rank_of(list.find_last(at, least)), last);
        }
        let other = (rank * 7 + probe as usize) % plain.0.len();
        let (from, to) = (rank.min(other), rank.max(other));
        let largest = plain.0[from..to].iter().map(|pair| pair.1).max();
        let (from_at, to_at) = (list.select(from), list.select(to));
        assert_eq!(list.largest_between(from_at, to_at), largest.unwrap_or(0));
        let mut seen = Vec::new();
        let mut first = None;
        list.parts(from_at, to_at, |part| {
            seen.extend_from_slice(part.values());
            first = first.or(part.first_within(2, 3));
            true
        });
        assert!(seen.iter().eq(plain.0[from..to].iter().map(|pair| &pair.1)));
        let within = (from..to).find(|&index| (2..=5).contains(&plain.0[index].1));
        assert_eq!(rank_of(first), within);
    }
    // Between keys: before the next one.
    let between = u64::from(probe) % 61_000;
    let at = list.locate(K::of(between));
    assert_eq!(list.rank(at), plain.index(between));
    assert_eq!(
        rank_of(list.settle(at)).unwrap_or(plain.0.len()),
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
        list.insert(list.locate(K::of(key)), K::of(key), value, key);
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
            compare(&list, &plain, probe.wrapping_add(number as u32));
        }
    }
    compare(&list, &plain, probe);
    while !plain.0.is_empty() {
        let index = plain.0.len() * 3 / 7;
        remove(&mut list, &mut plain, index);
        if plain.0.len() % 501 == 0 {
            compare(&list, &plain, probe);
        }
    }
    // An emptied list is used again.
    insert(&mut list, &mut plain, 5, 5);
    compare(&list, &plain, probe);
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
