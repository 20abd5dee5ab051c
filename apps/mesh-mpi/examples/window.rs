//! Exercises a window from all ranks at once: started by the tests under `mpirun`. Panics at the first thing that is wrong.

use metes_mesh_mpi::{Window, WindowError};
use mpi::traits::{Communicator, CommunicatorCollectives};

const BYTES: u64 = 4096;
/// Of each rank, at the same places in the window of every one.
const TURNS: u64 = 2000;

fn main() -> Result<(), WindowError> {
    let universe = mpi::initialize().ok_or(WindowError::NoRank { rank: 0, ranks: 0 })?;
    let world = universe.world();
    let (rank, ranks) = (world.rank() as u32, world.size() as u32);
    let window = Window::new(&world, BYTES)?;
    world.barrier();
    assert_eq!(window.ranks(), ranks);

    // It is zero, everywhere.
    let mut all = vec![7; BYTES as usize];
    for other in 0..ranks {
        window.get(other, 0, &mut all)?;
        assert!(all.iter().all(|&byte| byte == 0));
    }
    world.barrier();

    // Additions and exchanges of all ranks on all windows; none is lost.
    for turn in 0..TURNS {
        let other = ((u64::from(rank) + turn) % u64::from(ranks)) as u32;
        window.add(other, 0, 3u64)?;
        window.raise(other, 8, turn * u64::from(ranks) + u64::from(rank))?;
        let mut seen: u32 = window.load(other, 20)?;
        loop {
            let was = window.compare_exchange(other, 20, seen, seen + 1)?;
            if was == seen {
                break;
            }
            seen = was;
        }
    }
    world.barrier();
    let [mut sum, mut swaps] = [0; 2];
    for other in 0..ranks {
        sum += window.load::<u64>(other, 0)?;
        swaps += u64::from(window.load::<u32>(other, 20)?);
        // Its neighbours were not touched.
        assert_eq!(window.load::<u32>(other, 16)?, 0);
        assert_eq!(window.load::<u32>(other, 24)?, 0);
    }
    let turns = TURNS * u64::from(ranks);
    assert_eq!((sum, swaps), (3 * turns, turns));
    let most = (0..ranks).map(|other| window.load::<u64>(other, 8));
    let most = most.collect::<Result<Vec<_>, _>>()?;
    assert_eq!(most.into_iter().max(), Some(turns - 1));

    // Bytes of any length and place, written by one, read by the next, each byte its own.
    let next = (rank + 1) % ranks;
    for length in [1, 7, 64, 1000] {
        let at = 100 + length as u64;
        let bytes: Vec<u8> = (0..length)
            .map(|at| (at as u32 * 31 + rank) as u8)
            .collect();
        window.put(next, at, &bytes)?;
        world.barrier();
        let mut found = vec![0; length + 2];
        window.get(rank, at - 1, &mut found)?;
        let from = (rank + ranks - 1) % ranks;
        let wanted = (0..length).map(|at| (at as u32 * 31 + from) as u8);
        assert!(found[1..=length].iter().copied().eq(wanted), "{length}");
        world.barrier();
        window.put(rank, at, &vec![0; length])?;
        world.barrier();
    }

    // What would leave the window is refused, and nothing has changed.
    window.store(rank, BYTES - 8, 77u64)?;
    let outside = |at, length| {
        Err(WindowError::Outside {
            rank,
            at,
            length,
            bytes: BYTES,
        })
    };
    assert_eq!(window.put(rank, BYTES - 3, &[1; 4]), outside(BYTES - 3, 4));
    assert_eq!(window.get(rank, BYTES, &mut [1; 1]), outside(BYTES, 1));
    assert_eq!(window.put(rank, u64::MAX, &[1; 2]), outside(u64::MAX, 2));
    assert_eq!(window.store(rank, BYTES, 1u64), outside(BYTES, 8));
    let misaligned = WindowError::Misaligned { at: 4, size: 8 };
    assert_eq!(window.load::<u64>(rank, 4), Err(misaligned));
    let none = WindowError::NoRank { rank: ranks, ranks };
    assert_eq!(window.load::<u64>(ranks, 0), Err(none));
    assert_eq!(window.load::<u64>(rank, BYTES - 8)?, 77);
    world.barrier();
    if rank == 0 {
        println!("the window does what it says");
    }
    Ok(())
}
