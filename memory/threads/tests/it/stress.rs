//! Threads that allocate, write, pass blocks on and free them, all at the same time.

use std::ptr::NonNull;
use std::sync::mpsc;

use metes_random::Random;

use crate::few;
use crate::ground::{Member, heaps};

/// A block, and what was written to it.
struct Block {
    place: NonNull<u8>,
    size: usize,
    fill: u8,
}

// SAFETY: whoever has it owns the memory.
unsafe impl Send for Block {}

impl Block {
    fn new(member: &Member<'_>, size: usize, fill: u8) -> Option<Block> {
        let place = member.allocate(size, 16)?;
        // SAFETY: a new block of that size.
        unsafe { place.write_bytes(fill, size) };
        Some(Block { place, size, fill })
    }

    fn free(self, member: &Member<'_>) {
        for at in [0, self.size / 2, self.size - 1] {
            // SAFETY: inside the block.
            assert_eq!(unsafe { place_at(self.place, at).read() }, self.fill);
        }
        assert_eq!(member.free(self.place), Ok(()));
    }
}

unsafe fn place_at(place: NonNull<u8>, at: usize) -> NonNull<u8> {
    // SAFETY: the caller's contract: inside the block.
    unsafe { place.add(at) }
}

#[test]
fn threads_pass_blocks_around() {
    // The long form says how many in all.
    let long = std::env::var("METES_OPERATIONS").ok();
    let long = long.map(|text| text.parse::<u64>().expect("METES_OPERATIONS is a number"));
    let all = [(3, 2, 4), (4, 4, 64), (8, 3, 2)];
    for (count, nodes, mebibytes) in all.into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
        let operations = long.map_or(few(300_000), |long| long.div_ceil(count * 3));
        let heaps = heaps(mebibytes, nodes);
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mpsc::channel::<Block>()).unzip();
        std::thread::scope(|scope| {
            for (number, receiver) in receivers.into_iter().enumerate() {
                let (senders, heaps) = (senders.clone(), &heaps);
                scope.spawn(move || {
                    let mut random = Random::new(number as u64);
                    let mut member = Member::new(heaps);
                    let mut own: Vec<Block> = Vec::new();
                    for turn in 0..operations {
                        match random.below(16) {
                            0..8 => {
                                let large = !cfg!(miri) && random.below(50) == 0;
                                let most = if large { 100_000 } else { 400 };
                                let size = random.between(1, most) as usize;
                                own.extend(Block::new(&member, size, (turn ^ number as u64) as u8));
                            }
                            8..10 if !own.is_empty() => {
                                let block =
                                    own.swap_remove(random.below(own.len() as u64) as usize);
                                let to = random.below(senders.len() as u64) as usize;
                                // Who has ended takes no more.
                                if let Err(back) = senders[to].send(block) {
                                    own.push(back.0);
                                }
                            }
                            10..12 => own.extend(receiver.try_recv()),
                            12 if random.below(1000) == 0 => {
                                drop(member);
                                member = Member::new(heaps);
                            }
                            _ if !own.is_empty() => {
                                let block =
                                    own.swap_remove(random.below(own.len() as u64) as usize);
                                block.free(&member);
                            }
                            _ => {}
                        }
                        // Not so many that there is no memory for others.
                        if own.len() > 2000 {
                            own.drain(1000..).for_each(|block| block.free(&member));
                        }
                    }
                    drop(senders);
                    own.extend(receiver);
                    own.into_iter().for_each(|block| block.free(&member));
                });
            }
            drop(senders);
        });
        if cfg!(miri) {
            continue;
        }
        // All slots are free: what is marked is taken back as it is asked for.
        let last = Member::new(&heaps);
        let mut blocks: Vec<_> = std::iter::from_fn(|| last.allocate(1024, 16)).collect();
        let most = mebibytes << 20 >> 10;
        assert!(blocks.len() >= most / 8 * 7, "{} of {most}", blocks.len());
        blocks
            .drain(..)
            .for_each(|block| assert_eq!(last.free(block), Ok(())));
    }
}
