//! Events per second and core of replays, over many heaps of a space.
//!
//!     cargo run --release -p metes-cases --example rates -- [OPTIONS] [TRACE…]
//!
//! Without a TRACE: the made runs of the case studies, `packets` and `texture`. For each
//! trace and each set of heaps one line: minimum, percentiles and maximum of the rates.
//!
//! - `--lists`: every bare list of the space that the trace suggests, one general pool with
//!   nothing in front, the longest walks that there are
//! - `--drawn`: heaps drawn from all of the suggested space
//! - `--paper`: the space of the paper's packet study
//! - `--every N`: only every Nth heap of a set (drawn: 300 heaps, unless `--count N`)
//! - `--repeat N`: the best of so many replays of each heap counts (3)
//! - `--slowest N`: also name the N slowest heaps
//! - `--heap SPEC`: this heap alone
//! - `--walk`: on the library's own indexes, which walk their lists
//!
//! Time is processor time of the thread, with setting the heap up and taking it down, so
//! that what else runs on the machine matters little.

use std::error::Error;
use std::process::ExitCode;

use metes_cases::{packets, texture};
use metes_config::Config;
use metes_explore::{Events, Options, PAPER, Replayer, Space, SpaceDescription, Suggested};
use metes_heap::{Description, IndexKind};
use metes_trace::read_parquet;

/// What is measured.
struct Arguments {
    lists: bool,
    drawn: bool,
    paper: bool,
    walk: bool,
    every: usize,
    count: usize,
    repeat: usize,
    slowest: usize,
    heap: Option<String>,
    traces: Vec<String>,
}

fn main() -> ExitCode {
    match arguments().and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rates: {error}");
            ExitCode::from(2)
        }
    }
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut arguments = Arguments {
        lists: false,
        drawn: false,
        paper: false,
        walk: false,
        every: 1,
        count: 300,
        repeat: 3,
        slowest: 0,
        heap: None,
        traces: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| {
            let number: Result<usize, _> = text.parse();
            number.map_err(|_| format!("{word}: `{text}` is no number"))
        };
        match word.as_str() {
            "--lists" => arguments.lists = true,
            "--drawn" => arguments.drawn = true,
            "--paper" => arguments.paper = true,
            "--walk" => arguments.walk = true,
            "--every" => arguments.every = number(value()?)?.max(1),
            "--count" => arguments.count = number(value()?)?.max(1),
            "--repeat" => arguments.repeat = number(value()?)?.max(1),
            "--slowest" => arguments.slowest = number(value()?)?,
            "--heap" => arguments.heap = Some(value()?),
            _ if word.starts_with('-') => {
                return Err(format!(
                    "no option `{word}`; the source of this example says which there are"
                )
                .into());
            }
            _ => arguments.traces.push(word),
        }
    }
    let nothing = !(arguments.lists || arguments.paper || arguments.heap.is_some());
    arguments.drawn |= nothing;
    Ok(arguments)
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    println!(
        "{:<10} {:<6} {:>7} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8}",
        "trace", "heaps", "number", "events", "min", "1 %", "10 %", "50 %", "max", "below 5"
    );
    for (name, events) in traces(&arguments.traces)? {
        if let Some(spec) = &arguments.heap {
            let config = metes_config::spec(spec)?;
            measure(arguments, &name, "given", &events, &[config]);
        }
        if arguments.paper {
            let heaps = paper(&events, arguments.every)?;
            measure(arguments, &name, "paper", &events, &heaps);
        }
        let suggested = Suggested::of(&events);
        if arguments.lists {
            let heaps = lists(&suggested, arguments.every);
            measure(arguments, &name, "lists", &events, &heaps);
        }
        if arguments.drawn {
            let heaps = drawn(&suggested, arguments.count);
            measure(arguments, &name, "drawn", &events, &heaps);
        }
    }
    Ok(())
}

/// The traces of the files, or the made ones.
fn traces(files: &[String]) -> Result<Vec<(String, Events)>, Box<dyn Error>> {
    let mut traces = Vec::new();
    if files.is_empty() {
        let packets = packets::trace(&packets::packets(&packets::Options::default()));
        traces.push(("packets".to_owned(), Events::try_from(&packets)?));
        traces.push(("texture".to_owned(), Events::try_from(&texture::trace())?));
    }
    for file in files {
        let path = std::path::Path::new(file);
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy();
        let name = name.split('.').next().unwrap_or_default().to_owned();
        traces.push((name, Events::try_from(&read_parquet(path)?)?));
    }
    Ok(traces)
}

fn paper(events: &Events, every: usize) -> Result<Vec<Config>, Box<dyn Error>> {
    let description = SpaceDescription::parse(PAPER, "paper")?;
    let space = Space::new(&description, events, PAPER, "paper")?;
    let numbers = (space.baselines()..space.size()).step_by(every);
    Ok(numbers
        .filter_map(|number| space.describe(number))
        .collect())
}

/// Bare lists come before all that has anything in front.
fn lists(space: &Suggested, every: usize) -> Vec<Config> {
    let heaps = (0..space.size()).map_while(|position| {
        let heap = space.describe(space.at(position)?);
        let bare = heap.objects.is_empty() && heap.dedicated.is_empty();
        (bare && heap.general.len() == 1).then_some(heap)
    });
    let lists = heaps.filter(|heap| {
        let mut kinds = heap.general.iter().map(|pool| pool.index);
        kinds.all(|kind| matches!(kind, IndexKind::List { .. }))
    });
    lists.step_by(every).map(Config::of).collect()
}

/// Heaps at positions that look random and are the same on every machine.
fn drawn(space: &Suggested, count: usize) -> Vec<Config> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let positions = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % space.size()
    });
    let heaps = positions.filter_map(|position| Some(space.describe(space.at(position)?)));
    heaps.take(count).map(Config::of).collect()
}

/// Replays each heap and prints the rates.
fn measure(arguments: &Arguments, trace: &str, set: &str, events: &Events, heaps: &[Config]) {
    let mut replayer = if arguments.walk {
        Replayer::walking()
    } else {
        Replayer::new()
    };
    let mut rates: Vec<(f64, &Config)> = Vec::with_capacity(heaps.len());
    for config in heaps {
        let mut options = Options::default();
        options.arena.increment = config.arena.increment;
        let seconds = (0..arguments.repeat)
            .map(|_| replay(&mut replayer, &config.heap, events, &options))
            .fold(f64::INFINITY, f64::min);
        rates.push((events.len() as f64 / seconds / 1e6, config));
    }
    rates.sort_by(|one, two| one.0.total_cmp(&two.0));
    let Some(last) = rates.len().checked_sub(1) else {
        return;
    };
    let at = |percent: usize| rates[last * percent / 100].0;
    println!(
        "{trace:<10} {set:<6} {:>7} {:>8} {:>7.2} {:>7.2} {:>7.2} {:>7.2} {:>7.2} {:>8}",
        rates.len(),
        events.len(),
        at(0),
        at(1),
        at(10),
        at(50),
        at(100),
        rates.iter().filter(|(rate, _)| *rate < 5.0).count(),
    );
    for (rate, config) in rates.iter().take(arguments.slowest) {
        println!("    {rate:>6.2}  {}", config.name());
    }
}

/// Seconds of the processor that one replay takes.
fn replay(replayer: &mut Replayer, heap: &Description, events: &Events, options: &Options) -> f64 {
    let start = thread_seconds();
    std::hint::black_box(replayer.outcome(heap, events, options));
    (thread_seconds() - start).max(1e-9)
}

fn thread_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists on every Linux and writes to `time` alone.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "the thread has a clock");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
