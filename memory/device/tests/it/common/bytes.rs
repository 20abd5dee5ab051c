//! Blocks that keep their bytes.

use crate::common::Random;

/// A block, and from which number its bytes follow.
struct Live<P> {
    place: P,
    address: u64,
    bytes: u64,
    seed: u64,
}

/// All bytes of a short block, both ends of a long one.
fn parts<P>(block: &Live<P>) -> Vec<(u64, Vec<u8>)> {
    let word = |at: u64| {
        block
            .seed
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .wrapping_add(at) as u8
    };
    let part = |from: u64, to: u64| (block.address + from, (from..to).map(word).collect());
    if block.bytes <= 8192 {
        vec![part(0, block.bytes)]
    } else {
        vec![part(0, 4096), part(block.bytes - 4096, block.bytes)]
    }
}

/// Makes and frees blocks of up to `most` bytes at random: each is written when it is allocated, and
/// must still have its bytes when it is freed. How many requests were served, and how many refused.
pub(crate) fn churn<P: Copy>(
    steps: u64,
    most: u64,
    mut allocate: impl FnMut(u64) -> Option<(P, u64)>,
    mut free: impl FnMut(P),
    write: impl Fn(u64, &[u8]),
    read: impl Fn(u64, &mut [u8]),
) -> (u64, u64) {
    let mut random = Random::new(7);
    let mut live: Vec<Live<P>> = Vec::new();
    let (mut served, mut refused) = (0, 0);
    let check = |block: &Live<P>| {
        for (address, wanted) in parts(block) {
            let mut found = vec![0; wanted.len()];
            read(address, &mut found);
            assert!(
                found == wanted,
                "{} bytes at {address:#x} changed",
                block.bytes
            );
        }
    };
    for seed in 0..steps {
        if random.below(2) == 0 || live.is_empty() {
            let bytes = 1 + (random.below(most) >> random.below(14));
            let Some((place, address)) = allocate(bytes) else {
                refused += 1;
                continue;
            };
            served += 1;
            let block = Live {
                place,
                address,
                bytes,
                seed,
            };
            for (address, bytes) in parts(&block) {
                write(address, &bytes);
            }
            live.push(block);
        } else {
            let block = live.swap_remove(random.below(live.len() as u64) as usize);
            check(&block);
            free(block.place);
        }
    }
    for block in live {
        check(&block);
        free(block.place);
    }
    (served, refused)
}
