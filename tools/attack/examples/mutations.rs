//! A million mutated inputs over all parsers, their memory and time watched:
//! `mutations [INPUTS [PARSER…]]`; `mutations planted` sees whether faults that are planted are found.
//!
//! Each parser runs in a process of its own that writes down which input it is at, so that what aborts,
//! takes more than a gigabyte or does not end is known by its number, and the rest goes on. Exit status 1
//! if there was any.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use metes_attack::{Mutator, PARSERS, Parser, parser};
use metes_peak::{Counting, peak_of_all, refuse_beyond};

#[global_allocator]
static COUNTED: Counting = Counting;

/// More memory than this is a failure, bytes.
const MEMORY: usize = 1 << 30;
/// A longer input is a failure.
const LONGEST: Duration = Duration::from_secs(20);

/// Faults, each by its name: that they are found is what the figures of a run are worth. They have one input.
const PLANTED: [Parser; 5] = [
    planted("panics", |_| panic!("planted")),
    planted("aborts", |_| std::process::abort()),
    planted("hangs", |_| {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }),
    planted("takes", |_| {
        std::hint::black_box(vec![1_u8; MEMORY + 1]).len() > 1
    }),
    planted("nests", |_| {
        fn deeper(level: u64) -> u64 {
            if level == u64::MAX {
                return 0;
            }
            std::hint::black_box(deeper(level + 1)) ^ level
        }
        deeper(0) > 0
    }),
];

const fn planted(name: &'static str, accepts: fn(&[u8]) -> bool) -> Parser {
    Parser {
        name,
        accepts,
        seeds: || vec![b"planted".to_vec()],
    }
}

/// What came of the inputs of one process.
#[derive(Clone, Copy, Default)]
struct Sums {
    accepted: u64,
    refused: u64,
    panicked: u64,
    slowest_us: u64,
    most_bytes: u64,
}

impl Sums {
    const WORDS: usize = 6;

    /// With the number of the next input in front.
    fn words(self, next: u64) -> [u64; Self::WORDS] {
        [
            next,
            self.accepted,
            self.refused,
            self.panicked,
            self.slowest_us,
            self.most_bytes,
        ]
    }

    fn add(&mut self, other: [u64; Self::WORDS]) {
        let [_, accepted, refused, panicked, slowest_us, most_bytes] = other;
        self.accepted += accepted;
        self.refused += refused;
        self.panicked += panicked;
        self.slowest_us = self.slowest_us.max(slowest_us);
        self.most_bytes = self.most_bytes.max(most_bytes);
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["--child", name, from, to, place] = words[..] {
        let number = |text: &str| text.parse().expect("a number");
        attack(
            parser(name)
                .or_else(|| PLANTED.into_iter().find(|parser| parser.name == name))
                .expect("a parser"),
            number(from)..number(to),
            Path::new(place),
        );
        return ExitCode::SUCCESS;
    }
    if words == ["planted"] {
        return see_planted();
    }
    let inputs = words
        .first()
        .map_or(Ok(1_000_000), |text| text.parse::<u64>());
    let named = words.get(1..).unwrap_or_default();
    let chosen: Option<Vec<Parser>> = named.iter().map(|name| parser(name)).collect();
    let (Ok(inputs), Some(chosen)) = (inputs, chosen) else {
        let known: Vec<&str> = PARSERS.iter().map(|parser| parser.name).collect();
        eprintln!(
            "usage: mutations [planted | INPUTS [PARSER...]]; parsers: {}",
            known.join(", ")
        );
        return ExitCode::from(2);
    };
    let chosen = match chosen.is_empty() {
        true => PARSERS.to_vec(),
        false => chosen,
    };
    let each = inputs.div_ceil(chosen.len() as u64);
    println!(
        "{:<12} {:>9} {:>9} {:>9} {:>11} {:>11}  failures",
        "parser", "inputs", "accepted", "refused", "slowest ms", "most KiB"
    );
    let mut failed = false;
    for parser in chosen {
        let (sums, failures) = watched(parser, each, LONGEST);
        println!(
            "{:<12} {each:>9} {:>9} {:>9} {:>11.1} {:>11}  {}",
            parser.name,
            sums.accepted,
            sums.refused,
            sums.slowest_us as f64 / 1e3,
            sums.most_bytes >> 10,
            if failures.is_empty() {
                "0".to_owned()
            } else {
                failures.join(", ")
            },
        );
        failed |= !failures.is_empty();
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Whether each planted fault is found, as what it is.
fn see_planted() -> ExitCode {
    let mut found = true;
    for parser in PLANTED {
        let (_, failures) = watched(parser, 1, Duration::from_secs(1));
        println!("{:<12} {}", parser.name, failures.join(", "));
        let wanted = match parser.name {
            "panics" => "panic 0",
            "hangs" => "hang at 0",
            _ => "ended (signal: 6 (SIGABRT)) at 0",
        };
        found &= failures.len() == 1 && failures[0].replace(" (core dumped)", "") == wanted;
    }
    match found {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Runs inputs, and writes down which one is next.
fn attack(parser: Parser, numbers: std::ops::Range<u64>, place: &Path) {
    std::panic::set_hook(Box::new(|_| {}));
    let place = File::options()
        .write(true)
        .open(place)
        .expect("it is there");
    let write = |sums: Sums, next: u64| {
        let bytes: Vec<u8> = sums
            .words(next)
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        place.write_all_at(&bytes, 0).expect("room for a few words");
    };
    let seeds = (parser.seeds)();
    refuse_beyond(MEMORY);
    let mut sums = Sums::default();
    for number in numbers {
        write(sums, number);
        let input = Mutator::new(number).input(&seeds);
        let (_, start) = (peak_of_all(), Instant::now());
        match catch_unwind(|| (parser.accepts)(&input)) {
            Ok(true) => sums.accepted += 1,
            Ok(false) => sums.refused += 1,
            Err(_) => {
                sums.panicked += 1;
                println!("panic {number}");
            }
        }
        sums.slowest_us = sums.slowest_us.max(start.elapsed().as_micros() as u64);
        sums.most_bytes = sums.most_bytes.max(peak_of_all() as u64);
    }
    write(sums, u64::MAX);
}

/// Runs so many inputs in processes that are watched; what failed, by number.
fn watched(parser: Parser, inputs: u64, longest: Duration) -> (Sums, Vec<String>) {
    let mut sums = Sums::default();
    let mut failures = Vec::new();
    let mut from = 0;
    while from < inputs {
        let place = tempfile::NamedTempFile::new_in("/dev/shm").expect("room for a few words");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--child",
                parser.name,
                &from.to_string(),
                &inputs.to_string(),
            ])
            .arg(place.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a process");
        let read = || {
            let mut bytes = [0; 8 * Sums::WORDS];
            let _ = place.as_file().read_at(&mut bytes, 0);
            let mut words = [0; Sums::WORDS];
            for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = bytes
                    .iter()
                    .rev()
                    .fold(0, |word, byte| word << 8 | u64::from(*byte));
            }
            words
        };
        let ended = wait(&mut child, longest, || read()[0]);
        let mut said = String::new();
        if let Some(mut output) = child.stdout.take() {
            let _ = std::io::Read::read_to_string(&mut output, &mut said);
        }
        failures.extend(said.lines().map(str::to_owned));
        let words = read();
        sums.add(words);
        if words[0] == u64::MAX {
            break;
        }
        failures.push(format!("{ended} {}", words[0]));
        from = words[0] + 1;
    }
    (sums, failures)
}

/// How a process ended; one that does not get on is ended.
fn wait(child: &mut Child, longest: Duration, at: impl Fn() -> u64) -> String {
    let (mut last, mut since) = (at(), Instant::now());
    loop {
        if let Some(status) = child.try_wait().expect("our own process") {
            return format!("ended ({status}) at");
        }
        std::thread::sleep(Duration::from_millis(20));
        let now = at();
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > longest {
            let _ = child.kill();
            let _ = child.wait();
            return "hang at".to_owned();
        }
    }
}
