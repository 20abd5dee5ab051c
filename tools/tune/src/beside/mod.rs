//! The program on today's allocators, beside the heap that was chosen for it, in the same minute.
//!
//! The C library's own, the chosen heap, of a program of several threads a heap for each, and whatever of jemalloc,
//! mimalloc, tcmalloc and snmalloc is installed. They take turns, each round in another order, so that what else the
//! machine does meets all alike.
//!
//! Invariant: a row has figures only if each of its runs ended as the program does, and wrote what it writes.

mod allocators;
mod launcher;

use std::path::{Path, PathBuf};
use std::time::Instant;

use metes_config::ThreadHeap;
use metes_explore::report::{Beside, BesideRow, Took};
use metes_trace::record::Ending;

use crate::capture::Written;
use crate::check::Checked;
use crate::error::Error;
use crate::tuning::{Program, Recorded, Step, Watch, heed};
use launcher::{Launched, Launcher, Preloaded};

/// Most runs on each where nobody says how many: an odd number, so that each median is of a run.
const MOST: u32 = 5;
/// What the runs may take where nobody says how many: the exploration's seconds over this.
const SHARE: f64 = 3.0;
/// A run is killed after so many times the time of the run that was checked, and after so many seconds at least.
const PATIENCE: (f64, f64) = (20.0, 30.0);

/// How many runs on each allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turns {
    /// Five, three or one, within a third of the exploration's time; none where one does not fit.
    #[default]
    Fitting,
    /// None.
    No,
    /// So many.
    Of(u32),
}

/// What the program is run on.
pub(crate) struct Heaps<'a> {
    /// The library of the chosen heap.
    pub(crate) chosen: &'a Path,
    /// The one that has a heap for each thread, where several threads make requests.
    pub(crate) per_thread: Option<&'a Path>,
}

/// An allocator under way.
struct Row {
    name: String,
    library: Option<PathBuf>,
    preloaded: Preloaded,
    runs: Vec<Took>,
    failed: Option<String>,
    /// The first run in which the program wrote other things than when it was recorded.
    differs: Option<usize>,
}

/// What a run is compared with.
struct Expected<'a> {
    ending: Ending,
    written: &'a Written,
}

/// Runs the program on each allocator by turns. Nothing where it was not asked for.
pub(crate) fn measure(
    turns: Turns,
    exploration: f64,
    program: &Program<'_>,
    (recorded, checked): (&Recorded, &Checked),
    heaps: &Heaps<'_>,
    watch: &mut dyn Watch,
) -> Result<Option<Beside>, Error> {
    if turns == Turns::No {
        return Ok(None);
    }
    let launcher = Launcher::build(program.scratch.path())?;
    let (mut rows, mut found) = rows(&launcher, heaps)?;
    let allowed = exploration / SHARE;
    let count = match turns {
        Turns::Of(count) => count,
        _ => fitting(rows.len(), checked.wall_seconds, allowed),
    };
    if count == 0 {
        found.not_run = Some(format!(
            "a run takes {:.1} s, and one on each of {} allocators would take more than {allowed:.1} s, a third of the \
             exploration",
            checked.wall_seconds,
            rows.len(),
        ));
        return Ok(Some(found));
    }
    let expected = Expected {
        ending: recorded.ending,
        written: &recorded.written,
    };
    let limit = (checked.wall_seconds * PATIENCE.0).max(PATIENCE.1);
    let limit = limit.min(f64::from(u32::MAX)) as u32;
    watch.begins(Step::Beside);
    let began = Instant::now();
    for round in 0..count {
        for turn in 0..rows.len() {
            let row = order(round, turn, rows.len());
            if rows[row].failed.is_some() {
                continue;
            }
            heed(watch)?;
            let number = round as usize * rows.len() + turn;
            watch.turn(number, count as usize * rows.len(), &rows[row].name);
            let ran = launcher.run(program, &rows[row].preloaded, limit)?;
            heed(watch)?;
            if ran.as_ref().is_some_and(|ran| by_hand(ran, &expected)) {
                found.not_run = Some("the program was ended by hand".to_owned());
                found.runs = 0;
                return Ok(Some(found));
            }
            rows[row].enter(ran, &expected);
        }
        found.runs = round + 1;
        found.seconds = began.elapsed().as_secs_f64();
        // It may take longer on others than on the heap that it was timed on.
        if turns == Turns::Fitting && found.seconds >= allowed && found.runs % 2 == 1 {
            break;
        }
    }
    found.rows = told(&rows, checked.output_varies);
    let measured = found.rows.iter().filter_map(|row| row.median);
    found.instructions_counted = { measured }.any(|median| median.instructions.is_some());
    Ok(Some(found))
}

/// Who is to be run, the C library's own first; and who is not there.
fn rows(launcher: &Launcher, heaps: &Heaps<'_>) -> Result<(Vec<Row>, Beside), Error> {
    let mut found = Beside::default();
    let mut rows = vec![
        Row::new("glibc", None, Preloaded::NOTHING),
        Row::new("chosen", None, Preloaded::library(heaps.chosen, None)?),
    ];
    if let Some(library) = heaps.per_thread {
        let heap = ThreadHeap::default().to_string();
        let preloaded = Preloaded::library(library, Some(heap.clone()))?;
        rows.push(Row::new(&heap, None, preloaded));
    }
    for (known, library) in allocators::installed() {
        let Some(library) = library else {
            found.missing.push(known.missing());
            continue;
        };
        let preloaded = Preloaded::library(&library, None)?;
        let serves = launcher.serves(&library, &preloaded);
        let mut row = Row::new(known.name, Some(library), preloaded);
        if !serves {
            row.failed =
                Some("the loader does not take it, or it does not serve malloc".to_owned());
        }
        rows.push(row);
    }
    Ok((rows, found))
}

/// Runs on each that fit into some seconds.
fn fitting(allocators: usize, seconds: f64, allowed: f64) -> u32 {
    let round = seconds * allocators as f64;
    let mut counts = (1..=MOST).rev().filter(|count| count % 2 == 1);
    counts
        .find(|&count| f64::from(count) * round <= allowed)
        .unwrap_or(0)
}

/// Whose turn it is: each round begins with the next, every other one runs backwards.
fn order(round: u32, turn: usize, rows: usize) -> usize {
    let turn = match round % 2 {
        0 => turn,
        _ => rows - 1 - turn,
    };
    (turn + round as usize) % rows
}

/// Whether somebody ended the run from the terminal.
fn by_hand(ran: &Launched, expected: &Expected<'_>) -> bool {
    let signals = [libc::SIGINT, libc::SIGQUIT].map(Ending::Signal);
    ran.ending != expected.ending && signals.contains(&ran.ending)
}

impl Row {
    fn new(name: &str, library: Option<PathBuf>, preloaded: Preloaded) -> Self {
        Row {
            name: name.to_owned(),
            library,
            preloaded,
            runs: Vec::new(),
            failed: None,
            differs: None,
        }
    }

    fn enter(&mut self, ran: Option<Launched>, expected: &Expected<'_>) {
        let number = self.runs.len() + 1;
        let Some(ran) = ran else {
            self.failed = Some(format!("nothing was measured in run {number}"));
            return;
        };
        let what = match ran.ending {
            _ if ran.late => "took too long and was killed".to_owned(),
            Ending::Exit(status) if ran.ending != expected.ending => {
                format!("ended with status {status}")
            }
            Ending::Signal(signal) if ran.ending != expected.ending => {
                format!("was ended by signal {signal}")
            }
            _ => {
                self.runs.push(ran.took);
                if ran.written.stdout != expected.written.stdout {
                    self.differs.get_or_insert(number);
                }
                return;
            }
        };
        self.failed = Some(format!("the program {what} in run {number}"));
    }
}

/// What there is to say of each. What a program writes tells nothing where it `varies` without any other allocator.
fn told(rows: &[Row], varies: bool) -> Vec<BesideRow> {
    let varies = varies || rows.first().is_some_and(|row| row.differs.is_some());
    let failed = |row: &Row| {
        let other = row.differs.filter(|_| !varies);
        let other = other.map(|run| format!("the program wrote another output in run {run}"));
        row.failed.clone().or(other)
    };
    let median = |row: &Row| match failed(row) {
        Some(_) => None,
        None => Took::median(&row.runs),
    };
    let of_glibc = rows.first().and_then(median);
    let row = |row: &Row| {
        let own = median(row);
        BesideRow {
            allocator: row.name.clone(),
            library: (row.library.as_ref()).map(|path| path.display().to_string()),
            median: own,
            to_glibc: own.zip(of_glibc).map(|(own, other)| own.over(&other)),
            failed: failed(row),
        }
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_runs_as_fit() {
        assert_eq!(fitting(4, 0.1, 10.0), 5);
        assert_eq!(fitting(4, 0.6, 10.0), 3);
        assert_eq!(fitting(4, 1.0, 10.0), 1);
        assert_eq!(fitting(4, 3.0, 10.0), 0);
    }

    #[test]
    fn each_has_one_turn_a_round() {
        for rows in 1..7 {
            for round in 0..9 {
                let mut turns: Vec<usize> =
                    (0..rows).map(|turn| order(round, turn, rows)).collect();
                turns.sort_unstable();
                assert_eq!(turns, (0..rows).collect::<Vec<_>>());
            }
        }
        let first = |round| order(round, 0, 4);
        assert_ne!(first(0), first(2), "nobody is always first");
    }

    #[test]
    fn who_fails_has_no_figures() {
        let took = Took {
            peak_resident: 4096,
            cpu_seconds: 0.5,
            minor_faults: 2,
            major_faults: 0,
            instructions: None,
        };
        let ran = |ending, late| Launched {
            ending,
            late,
            took,
            written: Written::default(),
        };
        let written = Written::default();
        let expected = Expected {
            ending: Ending::Exit(0),
            written: &written,
        };
        let mut rows =
            ["glibc", "other", "gone"].map(|name| Row::new(name, None, Preloaded::NOTHING));
        rows[0].enter(Some(ran(Ending::Exit(0), false)), &expected);
        rows[1].enter(Some(ran(Ending::Exit(0), false)), &expected);
        rows[1].enter(Some(ran(Ending::Signal(11), false)), &expected);
        rows[2].enter(None, &expected);
        rows[1].differs = Some(1);
        let told = told(&rows, true);
        assert_eq!(told[0].to_glibc.and_then(|to| to.cpu_seconds), Some(1.0));
        assert_eq!((told[1].median, told[1].to_glibc), (None, None));
        let failed = told[1].failed.as_deref();
        assert_eq!(failed, Some("the program was ended by signal 11 in run 2"));
        assert!(told[2].failed.is_some());
        rows[0].enter(Some(ran(Ending::Exit(0), true)), &expected);
        assert!(
            rows[0]
                .failed
                .as_deref()
                .is_some_and(|why| why.contains("too long"))
        );
    }

    #[test]
    fn another_output_tells_where_it_is_always_the_same() {
        let took = Took {
            peak_resident: 1,
            cpu_seconds: 1.0,
            minor_faults: 1,
            major_faults: 1,
            instructions: Some(1),
        };
        let row = |differs| Row {
            runs: vec![took],
            differs,
            ..Row::new("one", None, Preloaded::NOTHING)
        };
        let failed = |own, other, varies| told(&[row(own), row(other)], varies)[1].failed.clone();
        let why = Some("the program wrote another output in run 2".to_owned());
        assert_eq!(failed(None, Some(2), false), why);
        assert_eq!(failed(Some(1), Some(2), false), None);
        assert_eq!(failed(None, Some(2), true), None);
        assert_eq!(failed(None, None, false), None);
    }
}
