//! Whether the pools of a memory level fit into it.
//!
//! Invariant: the bytes computed here are those that the heap takes when it is
//! set up: the first region of each pool, laid out for the size of its level.

use metes_heap::{ByHandle, Composite, Geometry, Ledger, ObjectPools, Record};

use crate::{Config, GEOMETRY, StoreKind};

/// Verifies that a level with a size holds the first regions of its pools.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn verify(config: &Config, level: usize) -> Result<(), String> {
    let Some(own) = config.levels.get(level) else {
        return Ok(());
    };
    let Some(size) = own.size else {
        return Ok(());
    };
    let geometry = match config.store {
        StoreKind::Tagged => GEOMETRY,
        StoreKind::Hardened => Geometry::hardened(8),
        _ => Geometry::out_of_band(GEOMETRY.granule),
    };
    let objects = ObjectPools::new(&config.heap.slabs(), &mut [], &mut []);
    let store = |_| Ledger::<_, Record>::new(&mut [], ByHandle, geometry);
    let mut heap = Composite::describe(&config.heap, store, objects);
    let mut needed = 0_usize;
    let mut count = 0;
    for (number, pool) in config.heap.general.iter().enumerate() {
        let Some(general) = heap.general(number) else {
            continue;
        };
        if usize::from(pool.level) != level {
            continue;
        }
        general.reserve_span(pool.index.span(size));
        let first = general
            .smallest_region()
            .checked_next_multiple_of(config.arena.increment)
            .ok_or_else(|| {
                format!(
                    "no pool is laid out for the {size} bytes of level `{}`: give less",
                    own.name
                )
            })?;
        needed = needed.saturating_add(first);
        count += 1;
    }
    if needed <= size {
        return Ok(());
    }
    let regions = match count {
        1 => "the first region of its pool takes".to_owned(),
        _ => format!("the first regions of its {count} pools take"),
    };
    Err(format!(
        "level `{}` is {} bytes too small: {regions} {needed} bytes, at an increment of {}; \
         give it more, or its pools fewer classes, or lower the increment",
        own.name,
        needed - size,
        config.arena.increment
    ))
}
