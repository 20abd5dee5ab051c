//! Concurrent compact-fit: allocation throughput by threads, κ, ι, granularity of locks and
//! degree of sharing; and how long locks are held while threads move large blocks.
//!
//! Every thread keeps as many blocks live as the others, and frees one of them at random for
//! each that it allocates. Designs take turns within a round; a figure is the best of the short
//! rounds, as other programs only ever take away from it: only ratios of one run mean anything.

mod heaps;

use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use metes_heap::compact::{Granularity, Kappa};
use serde::Serialize;

use crate::Error;
use crate::report::{Cell, Table};
use heaps::{Built, Churn, Design, HELD, Setting, Start, bind};

/// Bytes of memory of the heap measured.
const MEMORY: usize = 64 << 20;
/// Blocks that a thread keeps.
const LIVE: usize = 2000;
/// Bytes of a request.
const SIZES: (usize, usize) = (16, 1024);

/// The throughput of a setting.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Throughput {
    /// Which table it belongs to.
    pub(crate) experiment: &'static str,
    /// The design.
    pub(crate) design: String,
    /// κ.
    pub(crate) kappa: String,
    /// ι in bytes; none moves at once.
    pub(crate) increment: Option<usize>,
    /// Threads.
    pub(crate) threads: usize,
    /// Calls of malloc and free per second, all threads together; best of the rounds.
    pub(crate) calls_per_second: f64,
    /// The same over that of the first setting of its group.
    pub(crate) ratio: f64,
}

/// How long locks are held, and others may have to wait, while threads move blocks.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Latency {
    /// The design.
    pub(crate) design: String,
    /// ι in bytes; none moves at once.
    pub(crate) increment: Option<usize>,
    /// Bytes of the blocks.
    pub(crate) block: usize,
    /// Nanoseconds: half of the times that a lock is held are no longer.
    pub(crate) median: f64,
    /// 99 of 100 are no longer.
    pub(crate) percentile_99: f64,
}

/// All figures of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// Cores there are.
    pub(crate) cores: usize,
    /// Throughputs.
    pub(crate) throughput: Vec<Throughput>,
    /// Latencies.
    pub(crate) latency: Vec<Latency>,
}

/// Calls per second of all threads together, from the first that begins to the last that ends.
fn throughput(setting: Setting, operations: usize, memory: &mut [u8]) -> Result<f64, Error> {
    let heap = Built::new(setting, false, memory)?;
    let start_line = Start {
        missing: AtomicUsize::new(setting.threads),
    };
    let times = std::thread::scope(|scope| -> Result<Vec<(Instant, Instant)>, Error> {
        let threads: Vec<_> = (0..setting.threads)
            .map(|thread| {
                let view = heap.view(thread)?;
                let start_line = &start_line;
                Ok(scope.spawn(move || {
                    bind(thread);
                    view.with(|heap| {
                        let mut churn = Churn::new(thread as u64 + 1, LIVE, SIZES, heap);
                        start_line.wait();
                        let start = Instant::now();
                        for _ in 0..operations {
                            churn.turn(heap);
                        }
                        (start, Instant::now())
                    })
                }))
            })
            .collect::<Result<_, Error>>()?;
        Ok(threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect())
    })?;
    let first = times.iter().map(|time| time.0).min();
    let last = times.iter().map(|time| time.1).max();
    let elapsed = last
        .zip(first)
        .map_or(f64::NAN, |(last, first)| (last - first).as_secs_f64());
    Ok((2 * operations * setting.threads) as f64 / elapsed)
}

/// A group of settings, of which the first is what the others are compared with.
struct Group {
    experiment: &'static str,
    settings: Vec<Setting>,
}

impl Group {
    fn measure(
        &self,
        operations: usize,
        rounds: usize,
        memory: &mut [u8],
    ) -> Result<Vec<Throughput>, Error> {
        let mut best = vec![0f64; self.settings.len()];
        for _ in 0..rounds {
            for (setting, best) in self.settings.iter().zip(&mut best) {
                *best = best.max(throughput(*setting, operations, memory)?);
            }
        }
        let first = best[0];
        let figures = self
            .settings
            .iter()
            .zip(best)
            .map(|(setting, best)| Throughput {
                experiment: self.experiment,
                design: setting.design.name(),
                kappa: setting.kappa.to_string(),
                increment: setting.increment,
                threads: setting.threads,
                calls_per_second: best,
                ratio: best / first,
            });
        Ok(figures.collect())
    }
}

const KAPPAS: [Kappa; 4] = [
    Kappa::Finite(1),
    Kappa::Finite(2),
    Kappa::Finite(4),
    Kappa::Infinite,
];
const FULL: Kappa = Kappa::Finite(1);
const LOCKS: [Design; 2] = [
    Design::Shared(Granularity::Class),
    Design::Shared(Granularity::Page),
];

fn groups(most: usize) -> Vec<Group> {
    let setting = |design, kappa, increment, threads| Setting {
        design,
        kappa,
        increment,
        threads,
    };
    let [class, page] = LOCKS;
    let mut groups = Vec::new();
    for kappa in KAPPAS {
        groups.push(Group {
            experiment: "one thread",
            settings: [Design::Unshared, class, page, Design::Instances(1)]
                .map(|design| setting(design, kappa, None, 1))
                .to_vec(),
        });
    }
    for kappa in [FULL, Kappa::Infinite] {
        for design in [Design::Unshared, class, page, Design::Instances(1)] {
            let threads = (1..=most).map(|threads| setting(design, kappa, None, threads));
            groups.push(Group {
                experiment: "threads",
                settings: threads.collect(),
            });
        }
    }
    let threads = most.next_multiple_of(4);
    let degrees = [1, 2, 4].map(|degree| setting(Design::Instances(degree), FULL, None, threads));
    groups.push(Group {
        experiment: "sharing",
        settings: degrees.to_vec(),
    });
    for design in LOCKS {
        let increments = [None, Some(512), Some(128), Some(32)];
        groups.push(Group {
            experiment: "increments",
            settings: increments
                .map(|increment| setting(design, FULL, increment, most))
                .to_vec(),
        });
    }
    groups
}

/// Bytes that each thread of the latency experiment keeps at most: they stay in the cache.
const LIVE_BYTES: usize = 512 << 10;
/// Threads of the latency experiment.
const CROWD: usize = 8;

/// Nanoseconds of each time that one of [`CROWD`] threads holds a lock, which churn blocks of
/// one size.
fn latencies(
    setting: Setting,
    block: usize,
    operations: usize,
    memory: &mut [u8],
) -> Result<Vec<f64>, Error> {
    let heap = Built::new(setting, true, memory)?;
    let start_line = Start {
        missing: AtomicUsize::new(setting.threads),
    };
    let live = (LIVE_BYTES / block).min(LIVE);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..setting.threads)
            .map(|thread| {
                let view = heap.view(thread)?;
                let start_line = &start_line;
                Ok(scope.spawn(move || {
                    bind(thread);
                    view.with(|heap| {
                        let mut churn = Churn::new(thread as u64 + 1, live, (block, block), heap);
                        start_line.wait();
                        HELD.with_borrow_mut(Vec::clear);
                        (0..operations).for_each(|_| churn.turn(heap));
                        HELD.take()
                    })
                }))
            })
            .collect::<Result<_, Error>>()?;
        let times: Vec<Vec<f64>> = threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect();
        Ok(times.concat())
    })
}

fn latency(operations: usize, memory: &mut [u8]) -> Result<Vec<Latency>, Error> {
    let mut figures = Vec::new();
    for design in LOCKS {
        for increment in [None, Some(256)] {
            for block in [500, 2000, 8000, 32000] {
                let setting = Setting {
                    design,
                    kappa: FULL,
                    increment,
                    threads: CROWD,
                };
                let mut times = latencies(setting, block, operations, memory)?;
                times.sort_by(f64::total_cmp);
                let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
                figures.push(Latency {
                    design: design.name(),
                    increment,
                    block,
                    median: at(0.5),
                    percentile_99: at(0.99),
                });
            }
        }
    }
    Ok(figures)
}

/// Measures everything, with up to `most` threads.
pub(crate) fn measure(most: usize, operations: usize, rounds: usize) -> Result<Figures, Error> {
    // Not zero: every page is there before anything is measured.
    let mut memory = vec![1u8; MEMORY];
    let mut figures = Figures {
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        throughput: Vec::new(),
        latency: Vec::new(),
    };
    for group in groups(most) {
        let measured = group.measure(operations, rounds, &mut memory)?;
        figures.throughput.extend(measured);
    }
    figures.latency = latency(operations / 4, &mut memory)?;
    Ok(figures)
}

fn increment_text(increment: Option<usize>) -> Cell {
    Cell::text(increment.map_or("whole".into(), |bytes| bytes.to_string()))
}

/// The figures as tables.
pub(crate) fn tables(figures: &Figures) -> Vec<Table> {
    let throughput = Table {
        title: "Calls of malloc and free per microsecond, all threads together".into(),
        columns: [
            "experiment",
            "design",
            "κ",
            "ι",
            "threads",
            "calls / µs",
            "ratio",
        ]
        .map(String::from)
        .to_vec(),
        rows: figures
            .throughput
            .iter()
            .map(|found| {
                vec![
                    Cell::text(found.experiment),
                    Cell::text(found.design.clone()),
                    Cell::text(found.kappa.clone()),
                    increment_text(found.increment),
                    Cell::text(found.threads.to_string()),
                    Cell::text(format!("{:.2}", found.calls_per_second / 1e6)),
                    Cell::text(format!("{:.2}", found.ratio)),
                ]
            })
            .collect(),
        remarks: vec![
            format!(
                "{} cores; {LIVE} live blocks a thread of {} to {} bytes.",
                figures.cores, SIZES.0, SIZES.1
            ),
            "Best of the rounds; a ratio is to the first line of its group.".into(),
        ],
    };
    let latency = Table {
        title: format!("Nanoseconds that a lock is held, {CROWD} threads, κ = 1"),
        columns: ["design", "ι", "block", "median", "99 %"]
            .map(String::from)
            .to_vec(),
        rows: figures
            .latency
            .iter()
            .map(|found| {
                vec![
                    Cell::text(found.design.clone()),
                    increment_text(found.increment),
                    Cell::text(found.block.to_string()),
                    Cell::text(format!("{:.0}", found.median)),
                    Cell::text(format!("{:.0}", found.percentile_99)),
                ]
            })
            .collect(),
        remarks: vec!["Reading the clock twice is part of each.".into()],
    };
    vec![throughput, latency]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_measured() {
        let figures = measure(2, 40, 1).unwrap();
        for experiment in ["one thread", "threads", "sharing", "increments"] {
            let of = |found: &&Throughput| found.experiment == experiment;
            assert!(figures.throughput.iter().filter(of).count() > 2);
        }
        assert!(
            figures
                .throughput
                .iter()
                .all(|found| found.calls_per_second > 0.0)
        );
        assert_eq!(figures.latency.len(), 16);
        assert_eq!(tables(&figures).len(), 2);
    }
}
