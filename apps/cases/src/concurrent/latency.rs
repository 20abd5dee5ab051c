//! How long threads hold locks, and others may have to wait, while blocks grow: of each free and
//! the malloc after it, the longest time that a lock is held.

use metes_heap::compact::Partition;

use super::designs::{CLASS_LOCKS, PAGE_LOCKS, Setting};
use super::rounds::{held, memory};
use super::{ConcurrentError, Effort, FULL, increment_text, timed};
use metes_lab::{Figure, Plot, Report, Series};

/// Two of its largest blocks fill a page.
const PARTITION: Partition = Partition {
    page: 1 << 16,
    largest: (1 << 15) - 8,
    ..Partition::DEFAULT
};
const THREADS: usize = 8;
const BLOCKS: [usize; 7] = [500, 1000, 2000, 4000, 8000, 16_000, 32_000];
const INCREMENTS: [Option<usize>; 3] = [None, Some(2048), Some(256)];
/// Bytes that each thread keeps at most: they stay in the cache.
const LIVE_BYTES: usize = 512 << 10;
/// Repetitions of each, of which the smallest values count.
const REPETITIONS: usize = 5;

/// The times that half, and that 99 of 100, do not exceed.
#[derive(Clone, Copy)]
struct Times {
    median: f64,
    percentile_99: f64,
}

/// The experiment `compact-fit-latency`.
///
/// # Errors
/// [`ConcurrentError`] if a heap cannot be made, refuses or is not sound afterwards.
pub fn latency(effort: Effort, tell: &dyn Fn(&str)) -> Result<Report, ConcurrentError> {
    let mut memory = memory(THREADS);
    let mut rows = Vec::new();
    let mut plots = Vec::new();
    for design in [CLASS_LOCKS, PAGE_LOCKS] {
        tell(&design.name());
        let settings = INCREMENTS.map(|increment| Setting {
            increment,
            ..Setting::whole(design, FULL, THREADS)
        });
        let times = measured(&settings, effort, &mut memory)?;
        let mut series = Vec::new();
        for (increment, times) in INCREMENTS.into_iter().zip(&times) {
            let iota = increment_text(increment);
            for (block, found) in BLOCKS.into_iter().zip(times) {
                let what = format!("{}, ι = {iota}, {block} B: 99 %", design.name());
                rows.push(
                    Figure::new(what, "ns")
                        .ours(found.percentile_99)
                        .note(format!("median {:.0} ns", found.median)),
                );
            }
            let what = format!(
                "{}, ι = {iota}: {} B over {} B, 99 %",
                design.name(),
                BLOCKS[BLOCKS.len() - 1],
                BLOCKS[0]
            );
            let note = match increment {
                None => "latency O(β): grows with the block",
                Some(_) => "latency O(min(β, ι)): does not beyond ι",
            };
            let last = times[times.len() - 1].percentile_99;
            rows.push(
                Figure::new(what, "x")
                    .ours(last / times[0].percentile_99)
                    .note(note),
            );
            series.push(Series::measured(
                format!("ι = {iota}"),
                times.iter().map(|times| times.percentile_99),
            ));
        }
        plots.push(Plot {
            title: format!(
                "Longest time that a lock is held, {THREADS} threads, κ = 1, {}",
                design.name()
            ),
            x: "bytes of a block".to_owned(),
            names: BLOCKS.map(|block| block.to_string()).to_vec(),
            y: "ns, 99 % of all frees with a malloc".to_owned(),
            joined: true,
            series,
        });
    }
    let mut assumptions = timed(effort, &format!("{THREADS} threads"));
    // Other blocks, and percentiles instead of best rounds.
    assumptions[1] = format!(
        "of each free and the malloc after it the longest time that a lock is held; smallest \
         median and 99th percentile of {REPETITIONS} repetitions that take turns; reading the \
         clock twice is part of each time, and waiting for an inner lock (that of a page, held by \
         who makes a step there); most frees move nothing, so the median hardly grows"
    );
    assumptions[2] = format!(
        "each thread keeps up to {} KiB of blocks of one size, and frees one at random for each \
         that it allocates",
        LIVE_BYTES >> 10
    );
    Ok(Report {
        experiment: "compact-fit-latency",
        rows,
        assumptions,
        contradicted: Vec::new(),
        plots,
    })
}

/// For each setting the times by block.
fn measured(
    settings: &[Setting],
    effort: Effort,
    memory: &mut [u8],
) -> Result<Vec<Vec<Times>>, ConcurrentError> {
    let none = Times {
        median: f64::INFINITY,
        percentile_99: f64::INFINITY,
    };
    let mut all = vec![vec![none; BLOCKS.len()]; settings.len()];
    for _ in 0..REPETITIONS {
        for (index, block) in BLOCKS.into_iter().enumerate() {
            for (setting, found) in settings.iter().zip(&mut all) {
                let operations = effort.operations() / 2;
                let times = held(*setting, PARTITION, block, LIVE_BYTES, operations, memory)?;
                let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
                let least = &mut found[index];
                least.median = least.median.min(at(0.5));
                least.percentile_99 = least.percentile_99.min(at(0.99));
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_measured_with_both_locks() {
        let report = latency(Effort::Trial, &|_| {}).unwrap();
        assert!(report.holds());
        assert_eq!(report.rows.len(), 2 * 3 * (BLOCKS.len() + 1));
        assert!(report.rows.iter().all(|row| row.ours > Some(0.0)));
        assert_eq!(report.plots.len(), 2);
    }
}
