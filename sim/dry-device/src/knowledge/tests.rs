use proptest::prelude::*;

use super::*;

const SEGMENT: u64 = 1 << 30;

fn known(knowledge: &Knowledge, start: u64, size: u64, block: Option<u64>) -> Vec<Option<u8>> {
    let mut bytes = Vec::new();
    for run in knowledge.look(start, size, block, SEGMENT) {
        assert_eq!(run.start, start + bytes.len() as u64);
        match run.value {
            None => bytes.extend(std::iter::repeat_n(None, run.size as usize)),
            Some(value) => {
                let found = value.bytes(run.start, run.size).unwrap();
                bytes.extend(found.into_iter().map(Some));
            }
        }
    }
    bytes
}

fn copied(knowledge: &mut Knowledge, start: u64, bytes: &[u8]) {
    knowledge.copied(start, bytes.len() as u64, || Some(bytes.to_vec()));
}

fn launched(knowledge: &mut Knowledge, pointers: &[u64]) {
    knowledge.touched(Touched::Pointers(pointers.to_vec()));
}

#[test]
fn what_the_host_wrote_is_known_until_a_kernel_is_given_it() {
    let mut knowledge = Knowledge::new(Kept::Host);
    assert_eq!(known(&knowledge, SEGMENT, 2, None), [None, None]);
    copied(&mut knowledge, SEGMENT, &[1, 2, 3, 4]);
    assert_eq!(known(&knowledge, SEGMENT + 1, 2, None), [Some(2), Some(3)]);
    assert_eq!(known(&knowledge, SEGMENT + 3, 2, None), [Some(4), None]);
    launched(&mut knowledge, &[SEGMENT + 512]);
    assert_eq!(known(&knowledge, SEGMENT, 1, None), [Some(1)]);
    launched(&mut knowledge, &[SEGMENT + 2]);
    let half = [Some(1), Some(2), None, None];
    assert_eq!(known(&knowledge, SEGMENT, 4, None), half);
    launched(&mut knowledge, &[SEGMENT]);
    assert_eq!(known(&knowledge, SEGMENT, 4, None), [None; 4]);
    copied(&mut knowledge, SEGMENT, &[9]);
    assert_eq!(known(&knowledge, SEGMENT, 1, None), [Some(9)]);
}

#[test]
fn a_part_of_a_block_is_lost_with_the_block() {
    let mut knowledge = Knowledge::new(Kept::Host);
    let (block, part) = (SEGMENT + 4096, SEGMENT + 4096 + 512);
    copied(&mut knowledge, part, &[5]);
    copied(&mut knowledge, part + 8, &[6]);
    launched(&mut knowledge, &[block]);
    // By its place the first could be a block of its own, the second could not.
    assert_eq!(known(&knowledge, part, 1, None), [Some(5)]);
    assert_eq!(known(&knowledge, part + 8, 1, None), [None]);
    // A reader that knows the block knows better.
    assert_eq!(known(&knowledge, part, 1, Some(block)), [None]);
    assert_eq!(known(&knowledge, part + 8, 1, Some(part)), [Some(6)]);
    // What is written after the launch is known.
    copied(&mut knowledge, part, &[7]);
    assert_eq!(known(&knowledge, part, 1, Some(block)), [Some(7)]);
}

#[test]
fn copies_and_fills_are_known() {
    let mut knowledge = Knowledge::new(Kept::Host);
    knowledge.filled(SEGMENT, 1 << 40, [1, 2, 3, 4], 4);
    let found = known(&knowledge, SEGMENT + (1 << 20) + 2, 4, None);
    assert_eq!(found, [Some(3), Some(4), Some(1), Some(2)]);
    copied(&mut knowledge, SEGMENT + 4, &[9]);
    let other = SEGMENT + (1 << 41);
    knowledge.moved(other, SEGMENT + 4, 4, SEGMENT);
    assert_eq!(
        known(&knowledge, other, 5, None),
        [Some(9), Some(2), Some(3), Some(4), None]
    );
    knowledge.forget(SEGMENT, 1 << 40);
    assert_eq!(known(&knowledge, SEGMENT, 1, None), [None]);
    // What is copied from what is not known is not known.
    knowledge.moved(other, SEGMENT, 4, SEGMENT);
    assert_eq!(known(&knowledge, other, 4, None), [None; 4]);
}

#[test]
fn large_copies_are_not_kept() {
    let mut knowledge = Knowledge::new(Kept::Host);
    knowledge.copied(SEGMENT, LARGEST + 1, || unreachable!("too large"));
    assert_eq!(known(&knowledge, SEGMENT, 1, None), [None]);
    let mut knowledge = Knowledge::new(Kept::Nothing);
    knowledge.copied(SEGMENT, 1, || unreachable!("nothing is kept"));
    knowledge.filled(SEGMENT, 1, [0; 4], 1);
    assert_eq!(known(&knowledge, SEGMENT, 1, None), [None]);
}

#[derive(Clone, Debug)]
enum Step {
    Copy(u64, Vec<u8>),
    Fill(u64, u64, u8),
    Move(u64, u64, u64),
    Forget(u64, u64),
    Launch(Vec<u64>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = 0_u64..200;
    let step = prop_oneof![
        (place.clone(), prop::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Step::Copy(at, bytes)),
        (place.clone(), 1_u64..60, any::<u8>())
            .prop_map(|(at, size, byte)| Step::Fill(at, size, byte)),
        (place.clone(), place.clone(), 1_u64..60).prop_map(|(to, from, n)| Step::Move(to, from, n)),
        (place.clone(), 1_u64..60).prop_map(|(at, size)| Step::Forget(at, size)),
        prop::collection::vec(place, 0..3).prop_map(Step::Launch),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    /// Against bytes one by one, in a single block: what is claimed is what was written last, and
    /// by nobody who could not be watched.
    #[test]
    fn nothing_is_claimed_that_is_not_so(steps in steps()) {
        let mut knowledge = Knowledge::new(Kept::Host);
        let mut model = vec![None; 400];
        for step in steps {
            match step {
                Step::Copy(at, bytes) => {
                    copied(&mut knowledge, SEGMENT + at, &bytes);
                    for (index, byte) in bytes.into_iter().enumerate() {
                        model[at as usize + index] = Some(byte);
                    }
                }
                Step::Fill(at, size, byte) => {
                    knowledge.filled(SEGMENT + at, size, [byte; 4], 1);
                    model[at as usize..(at + size) as usize].fill(Some(byte));
                }
                Step::Move(to, from, size) => {
                    knowledge.moved(SEGMENT + to, SEGMENT + from, size, SEGMENT);
                    let taken = model[from as usize..(from + size) as usize].to_vec();
                    model[to as usize..(to + size) as usize].clone_from_slice(&taken);
                }
                Step::Forget(at, size) => {
                    knowledge.forget(SEGMENT + at, size);
                    model[at as usize..(at + size) as usize].fill(None);
                }
                Step::Launch(pointers) => {
                    let places: Vec<u64> = pointers.iter().map(|at| SEGMENT + at).collect();
                    launched(&mut knowledge, &places);
                    if let Some(first) = pointers.iter().min() {
                        model[*first as usize..].fill(None);
                    }
                }
            }
            let found = known(&knowledge, SEGMENT, 400, Some(SEGMENT));
            for (at, (found, truth)) in found.iter().zip(&model).enumerate() {
                prop_assert!(found.is_none() || found == truth, "at {at}: {found:?}, not {truth:?}");
            }
        }
    }
}
