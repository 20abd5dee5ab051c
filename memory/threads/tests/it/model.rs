//! Random requests of several threads, taken in turns, beside a table of what is in use.

use std::collections::BTreeMap;
use std::ptr::NonNull;

use metes_heap::BadFree;
use metes_random::Random;
use metes_threads::NotFreed;

use crate::few;
use crate::ground::{Member, heaps};

/// Blocks in use: where they begin, and how long they are.
#[derive(Default)]
struct Model(BTreeMap<usize, usize>);

impl Model {
    fn add(&mut self, start: usize, size: usize) {
        let before = self.0.range(..=start).next_back();
        assert!(
            before.is_none_or(|(&at, &length)| at + length <= start),
            "an overlap"
        );
        let after = self.0.range(start..).next();
        assert!(
            after.is_none_or(|(&at, _)| start + size <= at),
            "an overlap"
        );
        self.0.insert(start, size);
    }
}

fn size(random: &mut Random) -> usize {
    match random.below(16) {
        0 => random.between(1, 128 << 10) as usize,
        1 => random.between(1, 9000) as usize,
        2 => 0,
        _ => random.between(1, 300) as usize,
    }
}

#[test]
fn blocks_do_not_overlap_and_bad_frees_are_told() {
    for seed in 0..3 {
        let heaps = heaps(if cfg!(miri) { 2 } else { 16 }, 3);
        let mut random = Random::new(seed);
        // The last has no node of its own.
        let mut members: Vec<Member<'_>> = (0..4).map(|_| Member::new(&heaps)).collect();
        assert!(!members[3].is_bound());
        let (mut model, mut blocks) = (Model::default(), Vec::new());
        let mut freed: Option<NonNull<u8>> = None;
        for _ in 0..few(200_000) {
            let member = random.below(4) as usize;
            match random.below(32) {
                0 => {
                    // Another thread has the node from now on.
                    drop(members.swap_remove(member));
                    members.push(Member::new(&heaps));
                }
                1 => {
                    let Some(&(place, _)) = blocks.last() else {
                        continue;
                    };
                    let place: NonNull<u8> = place;
                    let inside = NonNull::new(place.as_ptr().wrapping_add(1)).expect("an address");
                    let foreign = Err(NotFreed::Bad(BadFree::Foreign));
                    assert_eq!(members[member].free(inside), foreign);
                }
                2 => {
                    let Some(place) = freed.take() else { continue };
                    if !model.0.contains_key(&place.addr().get()) {
                        assert!(members[member].free(place).is_err(), "freed twice");
                    }
                }
                choice if choice < 18 => {
                    let (size, align) = (size(&mut random), 16 << random.below(3));
                    let Some(place) = members[member].allocate(size, align) else {
                        continue;
                    };
                    assert!(place.addr().get().is_multiple_of(align));
                    model.add(place.addr().get(), size.max(1));
                    assert!(heaps.usable(place).expect("in use") >= size.max(1));
                    blocks.push((place, size));
                }
                _ if !blocks.is_empty() => {
                    let (place, _) = blocks.swap_remove(random.below(blocks.len() as u64) as usize);
                    model.0.remove(&place.addr().get());
                    assert_eq!(members[member].free(place), Ok(()));
                    freed = Some(place);
                }
                _ => {}
            }
        }
        for (place, _) in blocks {
            assert_eq!(members[0].free(place), Ok(()));
        }
        let nowhere = NonNull::new(std::ptr::without_provenance_mut(4096)).expect("an address");
        assert_eq!(members[0].free(nowhere), Err(NotFreed::Elsewhere));
        assert_eq!(heaps.usable(nowhere), Err(NotFreed::Elsewhere));
    }
}
