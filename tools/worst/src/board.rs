//! The worst calls on emulated boards, instruction by instruction.
//!
//! A board cannot search: sequences are bred here, guided by the record words
//! that a simulated heap touches, and built into the board's program
//! (`boards/run --requests`), which counts every call of every sequence with the
//! machine's own counter (`docs/targets.md`). The simulated heap is one of a
//! 64-bit machine, so on the boards it guides and does not predict; what is
//! reported was counted there.
//!
//! Invariant: the same heap, demand and seed build the same program.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use metes_explore::Random;
use metes_heap::bounds::Demand;
use metes_trace::record::run::tie;
use serde::Serialize;

use crate::error::WorstError;
use crate::genes::Genes;
use crate::heap::{Heap, PerCall};
use crate::program::Program;
use crate::sequence::{Sequence, Step};
use crate::space::{Rules, attack};
use crate::target::Shape;
use crate::time::{enter, offspring};
use crate::victim::Victim;
use crate::worst::{Declared, Instructions, Request};

/// Bytes of the arena on a board, and what an attack may have live there.
const ARENA: u64 = 128 << 10;
const MOST_LIVE: u64 = 32 << 10;
/// Allocations of a sequence that the board holds, and words in all.
const BLOCKS: usize = 4096;
const WORDS: usize = 400_000;
/// Requests of one program.
const ATTACK: u64 = 12_000;
/// Sequences tried, and those built in of each kind.
const TRIED: usize = 6000;
const BUILT_IN: usize = 48;

/// A board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    /// LEON3, SPARC V8.
    Leon3,
    /// ARM Cortex-M3.
    CortexM3,
    /// RV32IMAC.
    Riscv,
}

impl Board {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Board::Leon3 => "leon3",
            Board::CortexM3 => "cortex-m3",
            Board::Riscv => "riscv",
        }
    }

    /// Its name in `boards/`.
    const fn crate_name(self) -> &'static str {
        match self {
            Board::CortexM3 => "cortex-m",
            other => other.name(),
        }
    }
}

/// Heaps that are built into the boards' program: by spec, and their names there.
const HEAPS: [(&str, &str); 14] = [
    ("tlsf", "tlsf:second_level=32"),
    ("tlsf:second_level=8", "tlsf:second_level=8"),
    ("half-fit", "half-fit"),
    ("segregated-fit", "segregated-fit"),
    ("buddy", "buddy"),
    ("kingsley", "kingsley"),
    ("first-fit:order=lifo", "first-fit, LIFO"),
    ("next-fit:order=fifo", "next-fit, FIFO"),
    ("best-fit", "best-fit, by address"),
    ("first-fit:search=tree", "first-fit:search=tree"),
    (
        "first-fit:search=tree,summary=class",
        "first-fit:search=tree,summary=class",
    ),
    (
        "compact-fit:page=4KiB,largest=2KiB",
        "compact-fit:kappa=1,page=4KiB,largest=2KiB",
    ),
    ("fragmented", "fragmented:shape=tree"),
    ("fragmented:shape=chain", "fragmented:shape=chain"),
];

/// What a board counted.
#[derive(Clone, Debug, Serialize)]
pub struct OnBoard {
    /// The heap.
    pub heap: String,
    /// The board.
    pub target: &'static str,
    /// M, n and l.
    pub live: u64,
    /// n.
    pub max_block: u64,
    /// l.
    pub min_block: u64,
    /// Most instructions of one call.
    pub instructions: Instructions,
    /// What is declared of them.
    pub declared: Declared,
    /// Most that one call does to blocks, where the demand bounds that.
    pub per_call: Option<PerCall>,
    /// Calls counted on the board.
    pub operations: u64,
    /// Sequences among which they were.
    pub sequences: usize,
    /// What chance decided.
    pub seed: u64,
}

/// Looks for the slowest calls on a board. `boards` is the directory with
/// the boards; without it, it is looked for from the working directory upwards.
///
/// # Errors
/// [`WorstError`] where the request contradicts itself, the board has not the
/// heap, or the run fails.
pub fn on_board<'c>(
    board: Board,
    heap: impl Into<Heap<'c>>,
    request: &Request,
    boards: Option<&Path>,
) -> Result<OnBoard, WorstError> {
    let heap = heap.into();
    let demand = request.demand()?;
    if demand.live > MOST_LIVE {
        return Err(WorstError::Large {
            live: demand.live,
            most: MOST_LIVE,
        });
    }
    let spec = heap.spec();
    let Some((_, name)) = HEAPS.iter().find(|(own, _)| Some(*own) == spec.as_deref()) else {
        let known: Vec<&str> = HEAPS.iter().map(|heap| heap.0).collect();
        return Err(WorstError::Failed(format!(
            "{} is not built into the boards' program: choose one of {}",
            heap.name(),
            known.join(", ")
        )));
    };
    // Refuses a demand that the heap cannot serve.
    let bound = heap.bound(&demand)?;
    let runner = runner(boards)?;
    let sequences = sequences(heap.guide(&demand).as_mut(), demand, request.seed);
    let file = Requests::write(name, &sequences)?;
    let mut command = Command::new(&runner);
    command.arg("--requests").arg(&file.0);
    command.arg(board.crate_name());
    tie(&mut command);
    let output = command.output().map_err(|source| {
        WorstError::Failed(format!("cannot run {}: {source}", runner.display()))
    })?;
    let (allocate, free, operations) = read(&output).ok_or_else(|| failed(&output))?;
    Ok(OnBoard {
        heap: heap.name(),
        target: board.name(),
        live: demand.live,
        max_block: demand.largest,
        min_block: demand.smallest,
        instructions: Instructions {
            allocate: Some(allocate),
            free: Some(free),
        },
        declared: heap.declares(&bound),
        per_call: heap.per_call(&demand),
        operations,
        sequences: sequences.len(),
        seed: request.seed,
    })
}

/// The script that builds and runs boards.
fn runner(given: Option<&Path>) -> Result<PathBuf, WorstError> {
    let place = |directory: &Path| directory.join("run");
    if let Some(directory) = given {
        let run = place(directory);
        return match run.is_file() {
            true => Ok(run),
            false => Err(WorstError::Failed(format!(
                "{} is not there: give the directory boards of the source",
                run.display()
            ))),
        };
    }
    let here = std::env::current_dir().unwrap_or_default();
    here.ancestors()
        .map(|above| place(&above.join("boards")))
        .find(|run| run.is_file())
        .ok_or_else(|| {
            WorstError::Failed(
                "boards are built from source: run this inside the source tree, or name its \
                 directory boards with --boards"
                    .to_owned(),
            )
        })
}

/// Sequences worth counting: whole programs where they are short enough, and the
/// bred ones in whose calls the simulated heap touched most records.
fn sequences(victim: &mut dyn Victim, demand: Demand, seed: u64) -> Vec<Sequence> {
    let rules = |limit| Rules {
        demand,
        arena: Some(ARENA),
        limit,
        write: true,
    };
    let mut sequences = Vec::new();
    for program in Program::all(&demand, &Shape::TAGGED) {
        let outcome = attack(victim, rules(ATTACK), &mut |attack| program.play(attack));
        let sequence = outcome.and_then(|outcome| outcome.sequence);
        sequences.extend(sequence.filter(|sequence| sequence.allocations() <= BLOCKS));
    }
    let mut random = Random::new(seed);
    let mut elites: [Vec<(u64, Genes)>; 2] = [Vec::new(), Vec::new()];
    for tried in 0..TRIED {
        let genes = offspring(&demand, &elites, tried, &mut random);
        let play = &mut |attack: &mut crate::Attack<'_>| genes.play(attack);
        let Some(outcome) = attack(victim, rules(1 << 10), play) else {
            continue;
        };
        for (elite, heaviest) in elites.iter_mut().zip([outcome.allocate, outcome.free]) {
            if !elite.iter().any(|(_, other)| *other == genes) {
                enter(elite, heaviest.work, &genes, BUILT_IN);
            }
        }
    }
    for (_, genes) in elites.iter().flatten() {
        let play = &mut |attack: &mut crate::Attack<'_>| genes.play(attack);
        let outcome = attack(victim, rules(1 << 10), play);
        sequences.extend(outcome.and_then(|outcome| outcome.sequence));
    }
    sequences
}

/// The file that is built into a board; removed in the end.
struct Requests(PathBuf);

impl Requests {
    fn write(heap: &str, sequences: &[Sequence]) -> Result<Requests, WorstError> {
        let mut text = format!("Requests {{ heap: {heap:?}, words: &[");
        for (number, word) in words(sequences).take(WORDS).enumerate() {
            let end = if number % 16 == 0 { "\n" } else { " " };
            // Writing into a string does not fail.
            let _ = write!(text, "{end}{word},");
        }
        text += "\n] }\n";
        let name = format!("metes-worst-{}.rs", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).map_err(|source| WorstError::Write {
            path: path.clone(),
            source,
        })?;
        Ok(Requests(path))
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // Nothing depends on whether it is gone.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Sequences as `metes_selftest::requests` reads them.
fn words(sequences: &[Sequence]) -> impl Iterator<Item = u32> + '_ {
    sequences.iter().flat_map(|sequence| {
        let steps = sequence.steps().iter().map(|step| match *step {
            Step::Allocate(size) => size << 2,
            Step::Free(block) => block << 2 | 1,
        });
        std::iter::once(2).chain(steps)
    })
}

/// What the board printed: most instructions of an allocation and of a free, and
/// the calls counted. `None` if the run did not end well.
fn read(output: &Output) -> Option<(u64, u64, u64)> {
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !text.lines().any(|line| line.ends_with(" passed, 0 failed")) {
        return None;
    }
    let figure = |kind: &str, position: usize| -> Option<u64> {
        let begin = format!("worst {kind}: ");
        let line = text.lines().find_map(|line| line.strip_prefix(&begin))?;
        // "225 instructions at word 17 of 1234 calls"
        line.split(' ').nth(position)?.parse().ok()
    };
    Some((
        figure("allocate", 0)?,
        figure("free", 0)?,
        figure("free", 6)?,
    ))
}

/// Why a run failed, in its own words: the last lines.
fn failed(output: &Output) -> WorstError {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(6)..].join("\n");
    WorstError::Failed(format!("the board's run failed:\n{last}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn output(text: &str, status: i32) -> Output {
        Output {
            status: std::process::ExitStatus::from_raw(status),
            stdout: text.as_bytes().to_vec(),
            stderr: Vec::new(),
        }
    }

    #[test]
    fn what_a_board_says_is_read() {
        let text = "counter: exact\nworst allocate: 125 instructions at word 1 of 5 calls\n\
                    worst free: 103 instructions at word 4 of 5 calls\n3 passed, 0 failed\n";
        assert_eq!(read(&output(text, 0)), Some((125, 103, 5)));
        assert_eq!(read(&output(text, 256)), None);
        let bad = text.replace("3 passed, 0", "2 passed, 1");
        assert_eq!(read(&output(&bad, 0)), None);
        assert!(failed(&output(&bad, 0)).to_string().contains("1 failed"));
    }

    /// What a spec names.
    enum Named {
        Pointers(Box<metes_config::Config>),
        Handles(metes_config::HandleHeap),
    }

    impl Named {
        fn of(spec: &str) -> Self {
            match metes_config::handle_heap(spec) {
                Some(heap) => Named::Handles(heap.unwrap()),
                None => Named::Pointers(Box::new(metes_config::spec(spec).unwrap())),
            }
        }

        fn heap(&self) -> Heap<'_> {
            match self {
                Named::Pointers(config) => (&**config).into(),
                Named::Handles(heap) => heap.into(),
            }
        }
    }

    #[test]
    fn every_heap_of_the_boards_is_a_heap_here() {
        for (spec, _) in HEAPS {
            assert_eq!(Named::of(spec).heap().spec().as_deref(), Some(spec));
        }
    }

    #[test]
    fn sequences_fit_the_board_and_repeat() {
        for spec in ["tlsf", "compact-fit:page=4KiB,largest=2KiB", "fragmented"] {
            let named = Named::of(spec);
            let demand = Demand::new(24 << 10, 1536, 24);
            let bred = || sequences(named.heap().guide(&demand).as_mut(), demand, 1);
            let first = bred();
            assert!(first.len() > BUILT_IN);
            assert!(
                first
                    .iter()
                    .all(|sequence| sequence.allocations() <= BLOCKS)
            );
            assert!(words(&first).count() <= WORDS);
            assert_eq!(first, bred());
        }
    }
}
