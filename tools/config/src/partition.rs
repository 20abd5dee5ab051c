//! Compact-fit: its parameters to a partition, and to whether blocks move.
//!
//! Invariant: [`read`] of what [`write`] returns is the same partition, store and
//! heap behind it.

use std::ops::Range;

use metes_heap::compact::backing::RECORD;
use metes_heap::compact::{Kappa, Options, Partition};
use metes_heap::description::General;
use metes_heap::{Description, IndexKind};

use crate::error::Error;
use crate::fields::Fields;
use crate::names::default_of;
use crate::quantity::spell_size;
use crate::{Moving, StoreKind};

/// The usual name.
pub(crate) const NAME: &str = "compact-fit";
/// The partition where blocks do not move. Small classes for small blocks, as
/// page-blocks have no record; larger requests suit the heap behind it better.
pub(crate) const STILL: Partition = Partition {
    page: 1 << 14,
    smallest: 16,
    largest: 1 << 11,
    ..Partition::DEFAULT
};

/// A compact-fit heap as read.
pub(crate) struct Compact {
    pub(crate) partition: Partition,
    pub(crate) store: StoreKind,
    /// What serves requests above the largest class where blocks do not move.
    pub(crate) behind: General,
}

impl Compact {
    /// The heap.
    pub(crate) fn describe(&self) -> Description {
        Description {
            general: metes_heap::description::List::from_slice(&[self.behind]),
            partition: Some(self.partition),
            ..Description::of(self.behind.index)
        }
    }
}

fn behind() -> General {
    General::of(IndexKind::tlsf(32))
}

/// Reads the parameters of compact-fit; `at` is where it is named.
pub(crate) fn read(at: Range<usize>, fields: &mut Fields<'_>) -> Result<Compact, Error> {
    let moving = fields.choice("moving", &[("yes", true), ("no", false)])?;
    let kappa = fields.kappa("kappa")?;
    if let (Some((false, _)), Some((Kappa::Finite(_), at))) = (&moving, &kappa) {
        let message = "a finite `kappa` moves blocks: leave it out, or `moving=no`";
        return Err(fields.error(at.clone(), message));
    }
    if let Some((false, _)) = moving {
        let partition = read_partition(fields, STILL, at, 0)?;
        let mut general = behind();
        if let Some((name, at)) = fields.text("behind")? {
            match default_of(&name) {
                Some(index) => general = General::of(index),
                None => return Err(crate::names::unknown(&name, at, fields)),
            }
        }
        return Ok(Compact {
            partition,
            store: StoreKind::Tagged,
            behind: general,
        });
    }
    let options = read_options(at, fields, kappa)?;
    Ok(Compact {
        partition: options.partition,
        store: StoreKind::Moving(Moving {
            kappa: options.kappa,
            increment: options.increment,
        }),
        behind: behind(),
    })
}

/// Reads what decides how blocks move, κ apart.
pub(crate) fn read_options(
    at: Range<usize>,
    fields: &mut Fields<'_>,
    kappa: Option<(Kappa, Range<usize>)>,
) -> Result<Options, Error> {
    let mut options = Options::DEFAULT;
    let kappa_at = kappa.as_ref().map_or(at.clone(), |(_, at)| at.clone());
    options.kappa = kappa.map_or(options.kappa, |(kappa, _)| kappa);
    options.partition = read_partition(fields, options.partition, at.clone(), RECORD)?;
    let increment = fields.size("increment", &[])?;
    options.increment = increment.as_ref().map(|(bytes, _)| *bytes);
    let fault_at = increment.map_or(kappa_at, |(_, at)| at);
    options
        .validate(RECORD)
        .map_err(|why| fields.error(fault_at, why.to_string()))?;
    Ok(options)
}

/// Reads a partition whose page-blocks hold records of so many bytes.
pub(crate) fn read_partition(
    fields: &mut Fields<'_>,
    default: Partition,
    at: Range<usize>,
    record: usize,
) -> Result<Partition, Error> {
    let mut partition = default;
    let mut last = at;
    let sizes = [
        ("page", &mut partition.page),
        ("smallest", &mut partition.smallest),
        ("largest", &mut partition.largest),
    ];
    for (key, own) in sizes {
        if let Some((size, at)) = fields.size(key, &[])? {
            (*own, last) = (size, at);
        }
    }
    if let Some((factor, at)) = fields.thousandths("factor")? {
        (partition.factor, last) = (factor, at);
    }
    // Beyond 2^17 sums could wrap before they are refused.
    let largest = partition.smallest.max(partition.largest);
    if largest > 1 << 17 {
        let message = format!(
            "{largest} bytes are beyond the largest page of {}",
            metes_heap::compact::options::LARGEST_PAGE
        );
        return Err(fields.error(last, message));
    }
    partition
        .validate(record)
        .map_err(|why| fields.error(last, why.to_string()))?;
    Ok(partition)
}

/// What of a partition differs from a default, as parameters.
pub(crate) fn write_partition(
    partition: &Partition,
    default: Partition,
) -> Vec<(&'static str, String)> {
    let mut parameters = Vec::new();
    let sizes = [
        ("page", partition.page, default.page),
        ("smallest", partition.smallest, default.smallest),
        ("largest", partition.largest, default.largest),
    ];
    for (key, own, default) in sizes {
        if own != default {
            parameters.push((key, spell_size(own)));
        }
    }
    if partition.factor != default.factor {
        let text = format!("{}.{:03}", partition.factor / 1000, partition.factor % 1000);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        parameters.push(("factor", text.to_owned()));
    }
    parameters
}

/// The parameters of a compact-fit heap whose blocks move.
pub(crate) fn write_moving(moving: &Moving, partition: &Partition) -> Vec<(&'static str, String)> {
    write_options(&Options {
        partition: *partition,
        kappa: moving.kappa,
        increment: moving.increment,
    })
}

/// The parameters of a compact-fit heap with these options; those of the default are left out.
pub(crate) fn write_options(options: &Options) -> Vec<(&'static str, String)> {
    let mut parameters = Vec::new();
    if options.kappa != Options::DEFAULT.kappa {
        parameters.push(("kappa", options.kappa.to_string()));
    }
    parameters.extend(write_partition(&options.partition, Partition::DEFAULT));
    if let Some(increment) = options.increment {
        parameters.push(("increment", spell_size(increment)));
    }
    parameters
}

/// The parameters of one whose blocks do not move, before a heap of one general
/// pool; `None` where there is no short way to say that pool.
pub(crate) fn write(
    partition: &Partition,
    general: &General,
) -> Option<Vec<(&'static str, String)>> {
    let mut parameters = vec![("moving", "no".to_owned())];
    parameters.extend(write_partition(partition, STILL));
    if *general != behind() {
        let (name, own) = crate::names::write(general.index, general.limits);
        let plain = own.is_empty() && default_of(&name).map(General::of) == Some(*general);
        if !plain {
            return None;
        }
        parameters.push(("behind", name));
    }
    Some(parameters)
}
