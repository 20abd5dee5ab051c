//! How much memory there is, and to whom.

use std::ptr::NonNull;

use crate::ground::{Heaps, Member, heaps};

/// Takes blocks until there is no memory.
fn all(member: &Member<'_>, size: usize) -> Vec<NonNull<u8>> {
    std::iter::from_fn(|| member.allocate(size, 16)).collect()
}

fn free(member: &Member<'_>, blocks: Vec<NonNull<u8>>) {
    for block in blocks {
        assert_eq!(member.free(block), Ok(()));
    }
}

const MEBIBYTES: usize = 4;
/// A size of each kind of page, how many slots there are in that much memory, and how many of them a thread may keep from
/// others though it uses none: of its current page and of its spare ones.
const KINDS: [(usize, usize, usize); 3] = [
    (1024, 64 * 64, 5 * 64),
    (10 << 10, 16 * 25, 2 * 25),
    (80 << 10, 4 * 12, 2 * 12),
];

fn small() -> Heaps {
    heaps(MEBIBYTES, 2)
}

#[test]
fn each_thread_gets_all_of_the_memory() {
    for (size, most, kept) in KINDS {
        let heaps = small();
        let (one, other) = (Member::new(&heaps), Member::new(&heaps));
        for (member, most) in [(&one, most), (&other, most - kept), (&one, most - kept)] {
            let blocks = all(member, size);
            assert!(
                blocks.len() >= most,
                "{} of {most} of {size} bytes",
                blocks.len()
            );
            free(member, blocks);
        }
        drop(other);
        assert_eq!(all(&one, size).len(), most, "of {size} bytes");
    }
}

#[test]
fn what_others_freed_is_all_there_before_a_request_is_refused() {
    for (size, most, kept) in KINDS {
        let heaps = small();
        let (one, other) = (Member::new(&heaps), Member::new(&heaps));
        let blocks = all(&one, size);
        free(&other, blocks);
        // The thread that had them does nothing any more: its pages are taken over.
        let blocks = all(&other, size);
        assert!(
            blocks.len() >= most - kept,
            "{} of {most} of {size} bytes",
            blocks.len()
        );
        free(&one, blocks);
        drop(other);
        assert_eq!(all(&one, size).len(), most, "of {size} bytes");
    }
}

#[test]
fn what_ended_threads_had_is_all_there() {
    for (size, most, keeps) in KINDS {
        let heaps = small();
        let one = Member::new(&heaps);
        let mut blocks = all(&one, size);
        let kept = blocks.split_off(blocks.len() / 2);
        free(&one, blocks);
        drop(one);
        // To a thread with a node, and to one without.
        let members: Vec<_> = (0..3).map(|_| Member::new(&heaps)).collect();
        let mut least = most / 2;
        for member in members.iter().rev() {
            let blocks = all(member, size);
            assert!(
                blocks.len() >= least,
                "{} of {least} of {size} bytes",
                blocks.len()
            );
            free(member, blocks);
            least = least.saturating_sub(keeps);
        }
        drop(members);
        let last = Member::new(&heaps);
        free(&last, kept);
        assert_eq!(all(&last, size).len(), most);
    }
}

#[test]
fn pages_change_their_size_of_slots() {
    let heaps = small();
    let one = Member::new(&heaps);
    for size in (16..8192).step_by(272) {
        let blocks = all(&one, size);
        assert!(
            blocks.len() * size > MEBIBYTES << 19,
            "{size}: {}",
            blocks.len()
        );
        free(&one, blocks);
    }
}
