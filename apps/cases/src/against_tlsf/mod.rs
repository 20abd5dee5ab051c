//! TLSF against optimised, non-compacting compact-fit on recorded programs: exact instructions
//! of malloc and free, and memory, beside the table of the slides (Kirsch and Sokolova, ARTIST
//! summer school 2009), which has clock ticks and megabytes of Emacs and Hummingbird.
//!
//! Invariant: both heaps get the same calls in the same order, and nothing depends on the clock.

mod counted;
mod heaps;
mod published;

use metes_explore::{Events, Operation, Replayer};
use metes_heap::compact::Partition;
use metes_step::Stepper;
use metes_worst::Range;

use crate::partition::{FIRST, describe, measure};
use counted::{Count, Counted, play};
use heaps::{ALIGN, Running};
use metes_lab::{Figure, Plot, Report, Series};
use published::Pair;

pub use published::{EMACS, HUMMINGBIRD, Published};

/// A recorded program.
#[derive(Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// What it asked for.
    pub events: Events,
    /// What it stands beside.
    pub beside: Published,
}

/// How many calls to count: each instruction is a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Of every 64th event.
    Quick,
    /// Of every 4th.
    Whole,
}

impl Effort {
    fn every(self) -> usize {
        match self {
            Effort::Quick => 64,
            Effort::Whole => 4,
        }
    }
}

/// Why the experiment could not be made.
#[derive(Debug, thiserror::Error)]
pub enum AgainstError {
    /// The system gives no memory or no stepping.
    #[error("calls cannot be counted here: {0}")]
    System(#[from] std::io::Error),
    /// A heap cannot be made.
    #[error("{0}: the memory is too small for the heap")]
    Memory(String),
}

/// Mean and maximum wanted of compact-fit over TLSF: malloc and free together.
const WANTED: f64 = 1.15;

/// The largest request that classes serve.
const LARGEST: usize = 1 << 13;

fn classes(smallest: usize) -> Partition {
    Partition {
        smallest,
        largest: LARGEST,
        ..FIRST
    }
}

/// Memory for the heaps of a program.
fn range(program: &Program) -> Result<Range, AgainstError> {
    let room = 16 * program.events.peak_live().max(4 << 20);
    let length = usize::try_from(room).map_or(1 << 40, usize::next_power_of_two);
    Ok(Range::new(length)?)
}

fn running<H>(program: &Program, heap: Option<H>) -> Result<H, AgainstError> {
    heap.ok_or_else(|| AgainstError::Memory(program.name.clone()))
}

/// What both heaps did with a program.
struct Both {
    tlsf: Counted,
    compact: Counted,
}

impl Both {
    fn of(program: &Program, effort: Effort) -> Result<Both, AgainstError> {
        let (events, every) = (&program.events, effort.every());
        let mut memory = range(program)?;
        let mut stepper = Stepper::new()?;
        let mut heap = running(program, Running::plain(&mut memory))?;
        let tlsf = play(events, &mut heap, LARGEST, Some(&mut stepper), every);
        drop(heap);
        let mut heap = running(program, Running::classes(&classes(32), &mut memory))?;
        let compact = play(events, &mut heap, LARGEST, Some(&mut stepper), every);
        Ok(Both { tlsf, compact })
    }
}

/// Bytes of free page-blocks with these classes when most bytes are live.
fn size_class(program: &Program, partition: &Partition) -> Result<u64, AgainstError> {
    let mut memory = range(program)?;
    let mut heap = running(program, Running::classes(partition, &mut memory))?;
    Ok(play(&program.events, &mut heap, LARGEST, None, 1).size_class)
}

/// Compact-fit over TLSF.
struct Ratio {
    paper: f64,
    ours: f64,
}

/// The rows of one kind of call.
fn times(
    program: &Program,
    call: &str,
    published: &[Pair; 2],
    [tlsf, compact]: [Count; 2],
    report: &mut Report,
) -> [Ratio; 2] {
    let means = (tlsf.mean(), compact.mean());
    let maxima = (tlsf.most as f64, compact.most as f64);
    let kinds = [
        ("mean", published[0], means),
        ("maximum", published[1], maxima),
    ];
    kinds.map(|(kind, (their_tlsf, their_compact), (tlsf, compact))| {
        let ratio = Ratio {
            paper: their_compact / their_tlsf,
            ours: compact / tlsf,
        };
        let what = format!("{}, {call}, {kind}: compact-fit over TLSF", program.name);
        report.rows.push(
            Figure::new(what, "x")
                .paper(ratio.paper)
                .ours(ratio.ours)
                .note(format!(
                    "{}: {their_compact} over {their_tlsf} clock ticks; here {compact:.1} over \
                     {tlsf:.1} instructions",
                    program.beside.name
                )),
        );
        ratio
    })
}

/// The rows of memory, by smallest block.
fn memory(program: &Program, report: &mut Report) -> Result<[Ratio; 2], AgainstError> {
    let mut replayer = Replayer::new();
    let events = &program.events;
    let (plain, _, peak) = measure(&mut replayer, &describe(None), events);
    let beside = &program.beside;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let mut of = |index: usize, smallest: usize| -> Result<Ratio, AgainstError> {
        let partition = classes(smallest);
        let (footprint, _, _) = measure(&mut replayer, &describe(Some(partition)), events);
        let (tlsf, compact) = (beside.memory[0], beside.memory[index + 1]);
        let ratio = Ratio {
            paper: compact / tlsf,
            ours: footprint as f64 / plain as f64,
        };
        let name = format!("{}, {smallest} B blocks", program.name);
        report.rows.push(
            Figure::new(format!("{name}, memory: compact-fit over TLSF"), "x")
                .paper(ratio.paper)
                .ours(ratio.ours)
                .note(format!(
                    "{}: {compact} over {tlsf} MB; here {:.2} over {:.2} MB, peak live {:.2}",
                    beside.name,
                    megabytes(footprint),
                    megabytes(plain),
                    megabytes(peak)
                )),
        );
        let bytes = size_class(program, &partition)?;
        report.rows.push(
            Figure::new(format!("{name}: size-class fragmentation"), "% of memory")
                .paper(100.0 * beside.size_class[index] / compact)
                .ours(100.0 * bytes as f64 / footprint as f64)
                .note(format!(
                    "{}: {} of {compact} MB; here {:.2} MB when most is live",
                    beside.name,
                    beside.size_class[index],
                    megabytes(bytes)
                )),
        );
        Ok(ratio)
    };
    Ok([of(0, 16)?, of(1, 32)?])
}

/// Mean and maximum of both kinds of calls against what is wanted.
fn wanted(program: &Program, both: &Both, report: &mut Report) {
    let Both { tlsf, compact } = both;
    let refused = [("TLSF", tlsf.refused), ("compact-fit", compact.refused)];
    let other = (tlsf.other, compact.other);
    let tlsf = tlsf.malloc.with(&tlsf.free);
    let compact = compact.malloc.with(&compact.free);
    let ratio = compact.mean() / tlsf.mean();
    let name = &program.name;
    report.rows.push(
        Figure::new(
            format!("{name}, malloc and free, mean: compact-fit over TLSF"),
            "x",
        )
        .ours(ratio)
        .note(format!(
            "wanted {WANTED} at most; {:.1} over {:.1} instructions, {} calls counted",
            compact.mean(),
            tlsf.mean(),
            compact.calls
        )),
    );
    report.rows.push(
        Figure::new(
            format!("{name}, malloc and free, maximum: compact-fit over TLSF"),
            "x",
        )
        .ours(compact.most as f64 / tlsf.most as f64)
        .note(format!(
            "wanted 1 at most; {} over {} instructions; of what classes do not serve {} over {}",
            compact.most, tlsf.most, other.1.most, other.0.most
        )),
    );
    let contradicted = &mut report.contradicted;
    if ratio > WANTED {
        contradicted.push(format!(
            "{name}: compact-fit takes {ratio:.3} × TLSF's instructions in the mean, {WANTED} was \
             wanted"
        ));
    }
    if compact.most > tlsf.most {
        contradicted.push(format!(
            "{name}: compact-fit's longest call takes {} instructions, TLSF's {}",
            compact.most, tlsf.most
        ));
    }
    for (heap, refused) in refused {
        if refused > 0 {
            contradicted.push(format!("{name}: {heap} refused {refused} calls"));
        }
    }
}

/// Share of the requests that classes serve, in percent.
fn served(events: &Events) -> f64 {
    let asked = events.as_slice().iter();
    let asked = asked.filter(|event| event.operation() != Operation::Free);
    let (mut small, mut all) = (0_u64, 0_u64);
    for event in asked {
        small += u64::from(event.size() <= LARGEST && event.align() <= ALIGN);
        all += 1;
    }
    100.0 * small as f64 / all.max(1) as f64
}

/// Counts and replays recorded programs; `tell` hears which.
///
/// # Errors
/// [`AgainstError`] where the system lets nobody step, or gives no memory.
pub fn reproduce(
    programs: &[Program],
    effort: Effort,
    tell: &dyn Fn(&str),
) -> Result<Report, AgainstError> {
    let mut report = Report {
        experiment: "compact-fit-tlsf",
        rows: Vec::new(),
        assumptions: assumptions(effort),
        contradicted: Vec::new(),
        plots: Vec::new(),
    };
    for program in programs {
        tell(&program.name);
        let both = Both::of(program, effort)?;
        let Program { name, beside, .. } = program;
        let counts = [both.tlsf.malloc, both.compact.malloc];
        let malloc = times(program, "malloc", &beside.malloc, counts, &mut report);
        let counts = [both.tlsf.free, both.compact.free];
        let free = times(program, "free", &beside.free, counts, &mut report);
        wanted(program, &both, &mut report);
        let memory = memory(program, &mut report)?;
        report.assumptions.push(format!(
            "{name}: {} events, {} of them resizes; classes serve {:.1} % of the requests",
            program.events.len(),
            program.events.resizes(),
            served(&program.events)
        ));
        let title = |what: &str| format!("{name} beside {}: {what}", beside.name);
        let calls = [
            "malloc, mean",
            "malloc, maximum",
            "free, mean",
            "free, maximum",
        ];
        let times: Vec<Ratio> = malloc.into_iter().chain(free).collect();
        report.plots.push(ratios(
            title("time"),
            "instructions here, clock ticks there",
            &calls,
            &times,
        ));
        report.plots.push(ratios(
            title("memory"),
            "smallest blocks",
            &["16 B", "32 B"],
            &memory,
        ));
    }
    Ok(report)
}

fn ratios(title: String, x: &str, names: &[&str], ratios: &[Ratio]) -> Plot {
    Plot {
        title,
        x: x.to_owned(),
        names: names.iter().map(|&name| name.to_owned()).collect(),
        y: "compact-fit over TLSF".to_owned(),
        joined: false,
        series: vec![
            Series::measured("here", ratios.iter().map(|ratio| ratio.ours)),
            Series::reference("slides", ratios.iter().map(|ratio| ratio.paper)),
        ],
    }
}

fn assumptions(effort: Effort) -> Vec<String> {
    vec![
        format!(
            "instructions are exact, by single-stepping the calls of every {} event, call and \
             return included; the slides have clock ticks, whose maxima hold cache misses and \
             interrupts, so only ratios compare",
            match effort {
                Effort::Quick => "64th",
                Effort::Whole => "4th",
            }
        ),
        format!(
            "compact-fit: optimised, non-compacting, pages of {} bytes, growth {}, for time \
             smallest blocks of 32 bytes; TLSF behind it serves what exceeds {LARGEST} bytes or is \
             aligned to more than {ALIGN}; finding out whose block it is, is counted, blocks of \
             TLSF behind it are not",
            FIRST.page,
            f64::from(FIRST.factor) / 1e3,
        ),
        "TLSF: 32 lists a power of two, in one region; neither heap keeps statistics".to_owned(),
        "a resize is a malloc and a free on either heap; copying is not counted".to_owned(),
        "memory: footprint of a replay, records included, which resizes in place where there is \
         room; size-class fragmentation is taken when most bytes are live"
            .to_owned(),
        "the programs are of the same kind as those of the slides, or later versions; their \
         sessions are recorded in this run and are ours"
            .to_owned(),
        "the slides say of their table that compact-fit is only slightly slower; in it its maximum \
         is smaller for malloc and larger for free"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texture;

    #[test]
    fn a_program_gets_rows_and_pictures_of_time_and_memory() {
        let program = Program {
            name: "texture".to_owned(),
            events: Events::try_from(&texture::trace()).unwrap(),
            beside: EMACS,
        };
        let report = reproduce(&[program], Effort::Quick, &|_| {}).unwrap();
        assert_eq!((report.rows.len(), report.plots.len()), (10, 4 / 2));
        assert!(report.rows.iter().all(|row| row.ours > Some(0.0)));
        let malloc = &report.rows[0];
        assert_eq!(malloc.paper, Some(260.0 / 228.0));
        assert!(
            !report
                .contradicted
                .iter()
                .any(|what| what.contains("refused"))
        );
        assert!(
            report
                .assumptions
                .iter()
                .any(|text| text.contains("19298 events"))
        );
    }
}
