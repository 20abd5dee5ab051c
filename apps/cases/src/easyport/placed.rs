//! Heaps of the front, placed on the platform as the paper's section 7.1 says:
//! packets below 75 bytes in a general pool, or those of 66 bytes in a pool of
//! their own, in a scratchpad of 32 or 64 KiB.

use metes_config::Config;
use metes_explore::{EnergyError, Replayer};
use metes_heap::description::{General, List};
use metes_heap::{Description, Fit, IndexKind, Limits, Links, Order};

use crate::packets::ACKNOWLEDGEMENT;
use crate::platform::{Cost, MAIN, Platform, SCRATCHPAD, in_main};

const SCRATCHPADS: [usize; 2] = [32 << 10, 64 << 10];
/// Requests below this may have a general pool of their own.
const SMALL: usize = 75;

/// A heap at its place.
pub(super) struct Placed {
    pub(super) heap: String,
    pub(super) place: String,
    pub(super) cost: Cost,
}

/// Every heap at every place; those that fail to serve a request are left out.
pub(super) fn all(
    platform: &Platform<'_>,
    replayer: &mut Replayer,
    heaps: &[Config],
) -> Result<Vec<Placed>, EnergyError> {
    let mut placed = Vec::new();
    for config in heaps {
        let mut keep = |place: String, heap: &Description, scratchpad| {
            let cost = platform.cost(replayer, heap, scratchpad)?;
            if cost.failed == 0 {
                let heap = config.name();
                placed.push(Placed { heap, place, cost });
            }
            Ok::<(), EnergyError>(())
        };
        let main = in_main(&config.heap);
        keep("all in main memory".to_owned(), &main, None)?;
        for size in SCRATCHPADS {
            let kib = size >> 10;
            let place = format!("66 bytes in {kib} KiB of scratchpad");
            keep(place, &acknowledgements(&main), Some(size))?;
            let place = format!("below {SMALL} bytes in {kib} KiB of scratchpad");
            keep(place, &small(&main), Some(size))?;
        }
    }
    Ok(placed)
}

/// Size classes from a list a power of two to 32, which look at no block of the
/// request's own class or at all of them.
pub(super) fn size_classes() -> Vec<Config> {
    let second_levels = (0..6).map(|log2| 1 << log2);
    let classes = second_levels.flat_map(|second_level| {
        [0, usize::MAX].map(|probes| IndexKind::Classes {
            second_level,
            probes,
        })
    });
    classes
        .map(|index| Config::of(Description::of(index)))
        .collect()
}

/// A pool for acknowledgements alone in the scratchpad, before all others.
fn acknowledgements(main: &Description) -> Description {
    let size = ACKNOWLEDGEMENT as usize;
    let mut general = List::EMPTY;
    general.push(General {
        from: size,
        up_to: size,
        index: IndexKind::List {
            fit: Fit::Exact,
            order: Order::Fifo,
            depth_percent: 100,
            max_fit_percent: 0,
            links: Links::Double,
        },
        limits: Limits {
            coalesce_up_to: 0,
            split_down_to: usize::MAX,
        },
        level: SCRATCHPAD,
    });
    for pool in main.general.iter() {
        general.push(pool);
    }
    Description { general, ..*main }
}

/// The general pool for small requests, or a twin of the only one, in the
/// scratchpad, with the dedicated pools for them.
fn small(main: &Description) -> Description {
    let mut general = List::EMPTY;
    let small = main.general.iter().find(|pool| pool.up_to <= SMALL);
    if small.is_none()
        && let Some(pool) = main.general.iter().next()
    {
        general.push(General {
            up_to: SMALL - 1,
            level: SCRATCHPAD,
            ..pool
        });
    }
    for pool in main.general.iter() {
        let level = match pool.up_to <= SMALL {
            true => SCRATCHPAD,
            false => MAIN,
        };
        general.push(General { level, ..pool });
    }
    let mut heap = Description { general, ..*main };
    heap.dedicated = List::EMPTY;
    for mut pool in main.dedicated.iter() {
        // A dedicated pool lies where its requests are served.
        pool.level = heap.route(pool.size).map_or(MAIN, |general| general.level);
        heap.dedicated.push(pool);
    }
    heap
}
