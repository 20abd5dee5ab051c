//! Memory levels of a replay: from the command line to energy and time.
//!
//! Invariant: a price is shown only of a replay in which no request failed, and
//! only with the program's accesses unless it was asked for records alone.

use std::path::Path;

use metes_config::Config;
use metes_explore::{
    Arena, EnergyError, Events, Hierarchy, LEVELS, Options, PriceReport, Replay, Shortage, Work,
};

use crate::error::Failure;
use crate::output::{DIM, Table};
use crate::quantity::{bytes, grouped};

/// The hierarchy that `--levels` names, for heaps whose levels have these names.
pub(crate) fn resolve(text: &str, own: &[String]) -> Result<Hierarchy, Failure> {
    let hierarchy = Hierarchy::resolve(text)?;
    let levels = hierarchy.levels().iter();
    let names: Vec<&str> = levels.map(|level| level.name()).collect();
    if !own.is_empty() && own != names {
        return Err(Failure::input(format!(
            "the heap's memory levels are {}, and those of --levels {}: give the same levels in \
             the same order",
            own.join(", "),
            names.join(", ")
        )));
    }
    Ok(hierarchy)
}

/// Names of a heap's own levels.
pub(crate) fn own_levels(config: &Config) -> Vec<String> {
    let levels = config.levels.iter();
    levels.map(|level| level.name.clone()).collect()
}

/// Makes pools keep to what heap and hierarchy give each level.
pub(crate) fn limit(arena: &mut Arena, hierarchy: &Hierarchy) -> Result<(), Failure> {
    for (number, (own, most)) in arena.levels.iter_mut().zip(hierarchy.sizes()).enumerate() {
        let (Some(size), Some(most)) = (*own, most) else {
            *own = own.or(most);
            continue;
        };
        if size > most {
            return Err(EnergyError::TooLarge {
                level: hierarchy.levels()[number].name().to_owned(),
                size: size as u64,
                most: most as u64,
            }
            .into());
        }
    }
    Ok(())
}

/// Refuses a trace that does not say what the program did to its blocks.
pub(crate) fn need_accesses(
    trace: &Path,
    command: &[String],
    events: &Events,
) -> Result<(), Failure> {
    if events.access_word() != 0 {
        return Ok(());
    }
    let command = match command {
        [] => "CMD".to_owned(),
        [program] => program.clone(),
        [program, ..] => format!("{program} …"),
    };
    Err(Failure::input(format!(
        "{} has no accesses of the program, so that its energy and time cannot be told: record \
         them with `metes record --accesses -- {command}`, or ask for those of the heap's records \
         alone with --records-only",
        trace.display()
    )))
}

/// Energy and time of a replay in which nothing failed. `sizes` are those that
/// the heap itself gives its levels.
pub(crate) fn price(
    hierarchy: &Hierarchy,
    config: &Config,
    sizes: &[Option<usize>; LEVELS],
    events: &Events,
    options: &Options,
    replay: &Replay,
    records_only: bool,
) -> Result<PriceReport, Failure> {
    let pricer = hierarchy.pricer(&config.heap, sizes, events.access_word())?;
    let mut work = Work::of(events, &options.cost);
    let mut counts = replay.levels;
    if records_only {
        work.instructions = 0;
        for counts in &mut counts {
            (counts.application_reads, counts.application_writes) = (0, 0);
        }
    }
    let price = pricer.price(&counts, &work)?;
    let mut report = pricer.explain(&counts, &price);
    if records_only {
        report.assumptions.insert(
            0,
            "of the heap's records and copies alone: the program's own accesses and instructions \
             are left out"
                .to_owned(),
        );
    } else if work.instructions == 0 {
        report.assumptions.push(
            "the program's instructions are not known: its computing is left out of the time"
                .to_owned(),
        );
    }
    Ok(report)
}

/// Names of the levels: of the hierarchy, else of the heap.
pub(crate) fn names(config: &Config, hierarchy: Option<&Hierarchy>) -> Vec<String> {
    match hierarchy {
        Some(hierarchy) => {
            let levels = hierarchy.levels().iter();
            levels.map(|level| level.name().to_owned()).collect()
        }
        None => own_levels(config),
    }
}

/// Says which levels are too small, and by how much.
pub(crate) fn too_small(names: &[String], shortages: &[Shortage]) -> Vec<String> {
    shortages
        .iter()
        .map(|shortage| {
            EnergyError::TooSmall {
                level: names.get(shortage.level).cloned().unwrap_or_default(),
                size: shortage.size as u64,
                taken: shortage.needed,
            }
            .to_string()
        })
        .collect()
}

/// The price for people: a table of levels, the sums, where figures come from.
pub(crate) fn show(report: &PriceReport) -> String {
    let mut table = Table::new(&[
        "level",
        "size",
        "footprint",
        "reads",
        "writes",
        "energy",
        "leakage",
        "time",
    ]);
    for level in &report.levels {
        table.row(
            anstyle::Style::new(),
            vec![
                level.name.clone(),
                bytes(level.size),
                bytes(level.counts.footprint),
                grouped(level.reads),
                grouped(level.writes),
                joule(level.energy),
                joule(level.leakage),
                seconds(level.time),
            ],
        );
    }
    let mut text = format!("\n{table}");
    let mut line = |name: &str, value: String| text += &format!("{name:<18} {value}\n");
    line(
        "energy",
        format!("{} of all accesses", joule(report.energy)),
    );
    line("leakage", format!("{} over the run", joule(report.leakage)));
    line(
        "time",
        format!(
            "{}, {} of it computing",
            seconds(report.time),
            seconds(report.compute_time)
        ),
    );
    for level in &report.levels {
        text += &format!(
            "{DIM}{}: read {} nJ, write {} nJ, {} ns, leaks {} mW; {}{DIM:#}\n",
            level.name,
            level.read_nj,
            level.write_nj,
            level.latency_ns,
            level.leakage_mw,
            level.source
        );
    }
    for assumption in &report.assumptions {
        text += &format!("{DIM}{assumption}{DIM:#}\n");
    }
    text
}

/// Four significant digits with a unit of energy.
pub(crate) fn joule(value: f64) -> String {
    scaled(value, "J")
}

/// Four significant digits with a unit of time.
pub(crate) fn seconds(value: f64) -> String {
    scaled(value, "s")
}

fn scaled(value: f64, unit: &str) -> String {
    const PREFIXES: [(&str, f64); 6] = [
        ("", 1.0),
        ("m", 1e-3),
        ("µ", 1e-6),
        ("n", 1e-9),
        ("p", 1e-12),
        ("f", 1e-15),
    ];
    if value == 0.0 {
        return format!("0 {unit}");
    }
    let fitting = PREFIXES.into_iter().find(|(_, factor)| value >= *factor);
    let (prefix, factor) = fitting.unwrap_or(("f", 1e-15));
    let value = value / factor;
    let digits = match value {
        value if value < 10.0 => 3,
        value if value < 100.0 => 2,
        value if value < 1000.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energies_have_four_digits() {
        assert_eq!(joule(0.0), "0 J");
        assert_eq!(joule(1.234_56), "1.235 J");
        assert_eq!(joule(0.012_345), "12.35 mJ");
        assert_eq!(seconds(9.995e-7), "999.5 ns");
        assert_eq!(joule(1e-15), "1.000 fJ");
        assert_eq!(joule(12_345.0), "12345 J");
    }
}
