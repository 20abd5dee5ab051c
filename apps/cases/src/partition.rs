//! Partitioning: what compact-fit's size classes cost on recorded programs, and what
//! exploring page size, smallest block, largest class and growth factor wins back.
//!
//! Invariant: every figure is a footprint, records of pages and of the heap behind the
//! classes included, over the peak of requested bytes in the same trace.

use metes_explore::{Events, EventsBuilder, Operation, Options, Replayer};
use metes_heap::compact::Partition;
use metes_heap::{Description, IndexKind};
use rayon::prelude::*;

use metes_lab::{Figure, Report};

/// The largest objects of the traces on which the implementation of 2013 was measured.
const LARGEST: usize = 8000;
/// The partition of that implementation.
pub(crate) const FIRST: Partition = Partition {
    page: 1 << 14,
    smallest: 32,
    largest: LARGEST,
    ..Partition::DEFAULT
};

/// Published figures beside a trace.
#[derive(Clone, Copy, Debug)]
pub enum Beside {
    /// Footprint over peak of the implementation of 2013 and of TLSF, objects up to 8000
    /// bytes; and what is wanted of explored classes.
    Traces {
        /// Of compact-fit.
        compact: f64,
        /// Of TLSF.
        tlsf: f64,
        /// Wanted.
        wanted: f64,
    },
    /// Megabytes of a program under TLSF and under optimised, non-compacting compact-fit.
    Program {
        /// Which.
        name: &'static str,
        /// Under TLSF.
        tlsf: f64,
        /// Under compact-fit.
        compact: f64,
    },
}

/// A recorded program.
#[derive(Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// What it asked for.
    pub events: Events,
    /// What to show it beside.
    pub beside: Vec<Beside>,
}

/// What a partition needed.
#[derive(Clone, Copy, Debug)]
struct Found {
    partition: Partition,
    footprint: u64,
    failed: u64,
}

pub(crate) fn describe(partition: Option<Partition>) -> Description {
    Description {
        partition,
        ..Description::of(IndexKind::tlsf(32))
    }
}

/// Footprint, failed requests and peak of requested bytes.
pub(crate) fn measure(
    replayer: &mut Replayer,
    heap: &Description,
    events: &Events,
) -> (u64, u64, u64) {
    let (replay, _) = replayer.replay("", heap, events, &Options::default());
    (replay.footprint, replay.failed, replay.peak_live)
}

/// Every valid partition of such values.
fn grid(pages: &[usize], smallest: &[usize], largest: &[usize], factors: &[u32]) -> Vec<Partition> {
    let mut all = Vec::new();
    for &page in pages {
        for &smallest in smallest {
            for &largest in largest {
                for &factor in factors {
                    let partition = Partition {
                        page,
                        smallest,
                        largest,
                        factor,
                        ..Partition::DEFAULT
                    };
                    if partition.validate(0).is_ok() {
                        all.push(partition);
                    }
                }
            }
        }
    }
    all
}

/// The partition of a grid with the smallest footprint; the first of equals.
fn explore(partitions: &[Partition], events: &Events) -> Option<Found> {
    let try_one = |replayer: &mut Replayer, &partition: &Partition| {
        let (footprint, failed, _) = measure(replayer, &describe(Some(partition)), events);
        Found {
            partition,
            footprint,
            failed,
        }
    };
    let found: Vec<Found> = partitions
        .par_iter()
        .map_init(Replayer::new, try_one)
        .collect();
    let served = found.into_iter().filter(|found| found.failed == 0);
    served.min_by_key(|found| found.footprint)
}

/// The events of blocks up to [`LARGEST`] bytes. A block that grows beyond is freed.
fn small_objects(events: &Events) -> Events {
    let mut builder = EventsBuilder::new();
    let mut serials: Vec<Option<u64>> = vec![None; events.slots()];
    let mut next = 0;
    for event in events.as_slice() {
        let serial = &mut serials[event.slot() as usize];
        let fits = event.size() <= LARGEST;
        let (size, align) = (event.size() as u64, event.align() as u64);
        let pushed = match (event.operation(), *serial) {
            (Operation::Free, None) => continue,
            (Operation::Free, Some(block)) => {
                *serial = None;
                builder.push(Operation::Free, block, 0, 0)
            }
            (Operation::Resize, Some(block)) if fits => {
                builder.push(Operation::Resize, block, size, align)
            }
            (Operation::Resize, Some(block)) => {
                *serial = None;
                builder.push(Operation::Free, block, 0, 0)
            }
            (_, _) if !fits => {
                *serial = None;
                continue;
            }
            (_, _) => {
                *serial = Some(next);
                next += 1;
                builder.push(Operation::Allocate, next - 1, size, align)
            }
        };
        debug_assert!(pushed.is_ok(), "blocks are named once each");
    }
    builder.finish()
}

fn spelt(partition: &Partition) -> String {
    format!(
        "page={},smallest={},largest={},factor={}.{:03}",
        partition.page,
        partition.smallest,
        partition.largest,
        partition.factor / 1000,
        partition.factor % 1000
    )
}

/// Rows for one program.
fn rows(program: &Program, report: &mut Report) {
    let name = &program.name;
    let mut replayer = Replayer::new();
    for beside in &program.beside {
        match *beside {
            Beside::Traces {
                compact,
                tlsf,
                wanted,
            } => {
                let small = small_objects(&program.events);
                objects_alone(name, &small, compact, tlsf, report);
                whole(name, &program.events, wanted, report);
            }
            Beside::Program {
                name: published,
                tlsf,
                compact,
            } => {
                let events = &program.events;
                let (plain, _, peak) = measure(&mut replayer, &describe(None), events);
                let first = Partition {
                    largest: 1 << 13,
                    ..FIRST
                };
                let (classes, _, _) = measure(&mut replayer, &describe(Some(first)), events);
                report.rows.push(
                    Figure::new(format!("{published}: compact-fit over TLSF"), "x")
                        .paper(compact / tlsf)
                        .ours(classes as f64 / plain as f64)
                        .note(format!(
                            "paper {compact} over {tlsf} MB; here {name}: {:.1} over {:.1} MB, \
                             peak live {:.1}",
                            classes as f64 / 1e6,
                            plain as f64 / 1e6,
                            peak as f64 / 1e6
                        )),
                );
            }
        }
    }
}

/// Objects up to 8000 bytes, all of them in size classes.
fn objects_alone(name: &str, events: &Events, compact: f64, tlsf: f64, report: &mut Report) {
    let mut replayer = Replayer::new();
    let (plain, _, peak) = measure(&mut replayer, &describe(None), events);
    let over = |footprint: u64| footprint as f64 / peak as f64;
    let (first, _, _) = measure(&mut replayer, &describe(Some(FIRST)), events);
    report.rows.push(
        Figure::new(format!("{name}, up to 8000 B: TLSF"), "x")
            .paper(tlsf)
            .ours(over(plain)),
    );
    report.rows.push(
        Figure::new(format!("{name}, up to 8000 B: partition of 2013"), "x")
            .paper(compact)
            .ours(over(first))
            .note(spelt(&FIRST)),
    );
    let all = grid(
        &[8192, 16384, 32768, 65536],
        &[16, 32, 48],
        &[LARGEST],
        &[1040, 1063, 1090, 1125, 1250, 1500],
    );
    if let Some(best) = explore(&all, events) {
        report.rows.push(
            Figure::new(format!("{name}, up to 8000 B: explored partition"), "x")
                .paper(compact)
                .ours(over(best.footprint))
                .note(format!(
                    "{}, the best of {}",
                    spelt(&best.partition),
                    all.len()
                )),
        );
    }
}

/// The whole trace: classes for the smaller requests, TLSF behind them.
fn whole(name: &str, events: &Events, wanted: f64, report: &mut Report) {
    let all = grid(
        &[1024, 2048, 4096, 8192, 16384],
        &[16, 32],
        &[32, 64, 128, 256, 512, 1024, 2048, 4096],
        &[1040, 1125, 1250, 1500],
    );
    let mut replayer = Replayer::new();
    let (plain, _, peak) = measure(&mut replayer, &describe(None), events);
    let Some(best) = explore(&all, events) else {
        return;
    };
    let requests = events.as_slice().iter();
    let asked = requests.filter(|event| event.operation() != Operation::Free);
    let (mut small, mut total) = (0_u64, 0_u64);
    for event in asked {
        small += u64::from(event.size() <= best.partition.largest && event.align() <= 16);
        total += 1;
    }
    let ours = best.footprint as f64 / peak as f64;
    report.rows.push(
        Figure::new(format!("{name}, whole: explored classes, TLSF behind"), "x")
            .ours(ours)
            .note(format!(
                "wanted {wanted:.2}; TLSF alone {:.3}; {}, the best of {}, classes serve {:.0} % \
                 of the requests",
                plain as f64 / peak as f64,
                spelt(&best.partition),
                all.len(),
                100.0 * small as f64 / total.max(1) as f64
            )),
    );
    if ours > wanted {
        report.contradicted.push(format!(
            "{name}: explored classes need {ours:.3} × peak live, {wanted:.2} was wanted"
        ));
    }
}

/// Explores partitions on recorded programs; `tell` hears which.
pub fn reproduce(programs: &[Program], tell: &dyn Fn(&str)) -> Report {
    let mut report = Report {
        experiment: "compact-fit-partition",
        rows: Vec::new(),
        assumptions: vec![
            "x: footprint, records included, over the peak of requested bytes".to_owned(),
            "2013: the public source of compact-fit, 32-bit, on traces of the same programs with \
             objects up to 8000 bytes; our traces are recorded in this run and are not the same"
                .to_owned(),
            "Emacs and Hummingbird: the slides' table `TLSF vs. optimised, non-compacting CF`, \
             memory; the programs here are substitutes of the same kind, not the same programs"
                .to_owned(),
            "compact-fit here is the optimised, non-compacting variant: no record in a block; \
             where all objects are in classes, TLSF behind them adds its empty first region"
                .to_owned(),
        ],
        contradicted: Vec::new(),
        plots: Vec::new(),
    };
    for program in programs {
        tell(&program.name);
        rows(program, &mut report);
    }
    report
}
