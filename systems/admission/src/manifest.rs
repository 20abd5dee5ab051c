//! `function.toml`: what a function is called, how often it comes, what it may take.
//!
//! *Invariant:* a manifest that is read makes a function that the admission decides; an error names the line and what to
//! write, and unknown keys are errors.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use crate::{Criticality, Function, MOST_CHARACTERS};

/// What a function is, and what it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The module, beside the manifest.
    pub module: PathBuf,
    /// What is called.
    pub entry: String,
    /// How requests come.
    pub kind: Kind,
    /// The period, or least distance of requests, in nanoseconds.
    pub period: u64,
    /// From the release to the end, in nanoseconds.
    pub deadline: u64,
    /// Most time of an invocation in nanoseconds.
    pub budget: u64,
    /// Bytes of memory; 0 takes what the module declares.
    pub memory: u64,
    /// Largest request in bytes.
    pub input: u64,
    /// Largest response in bytes.
    pub output: u64,
    /// Whether it may be given up for others.
    pub criticality: Criticality,
    /// What becomes of an invocation at the end of its budget.
    pub overrun: Overrun,
    /// Whether an invocation finds what the one before it left.
    pub kept: bool,
    /// Its core, else one is found.
    pub core: Option<u32>,
    /// Requests, beside the manifest, of which is told what they take; nothing is admitted or enforced by them.
    pub samples: Vec<PathBuf>,
}

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Once each period.
    Periodic,
    /// A period apart at the least.
    Sporadic,
}

/// What becomes of an invocation at the end of its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overrun {
    /// It is stopped.
    #[default]
    Stop,
    /// It waits for the next period, once, and is stopped then.
    Suspend,
    /// It goes on in the idle class for a period, and is stopped then.
    Degrade,
}

/// A manifest that there cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", line.map_or_else(String::new, |line| format!("line {line}: ")))]
pub struct ManifestError {
    /// The line, from 1, where there is one.
    pub line: Option<usize>,
    /// What is wrong, and what to write.
    pub problem: String,
}

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Spanned<String>,
    module: PathBuf,
    #[serde(default = "start")]
    entry: String,
    #[serde(default = "sporadic")]
    kind: Kind,
    period: Spanned<String>,
    deadline: Option<Spanned<String>>,
    budget: Spanned<String>,
    memory: Option<Spanned<String>>,
    input: Option<Spanned<String>>,
    output: Option<Spanned<String>>,
    #[serde(default)]
    criticality: Criticality,
    #[serde(default)]
    overrun: Overrun,
    state: Option<Spanned<String>>,
    core: Option<u32>,
    #[serde(default)]
    samples: Vec<Spanned<PathBuf>>,
}

fn start() -> String {
    "_start".to_owned()
}

fn sporadic() -> Kind {
    Kind::Sporadic
}

/// Largest request and response that may be asked for.
const MOST_BYTES: u64 = 64 << 20;
/// Most samples of a function.
const MOST_SAMPLES: usize = 16;
/// What they are unless they are given.
const BYTES: u64 = 64 << 10;

impl Manifest {
    /// Reads a manifest from TOML.
    ///
    /// # Errors
    /// [`ManifestError`] names the line, what is wrong there, and what to write.
    pub fn parse(text: &str) -> Result<Manifest, ManifestError> {
        let line =
            |at: usize| Some(1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count());
        let document: Document = toml::from_str(text).map_err(|error| ManifestError {
            line: error.span().and_then(|span| line(span.start)),
            problem: error.message().trim().replace('\n', ", "),
        })?;
        let wrong = |at: usize, problem: String| ManifestError {
            line: line(at),
            problem,
        };
        let time = |key: &str, value: &Spanned<String>| {
            nanoseconds(value.get_ref()).ok_or_else(|| {
                let said = value.get_ref();
                let problem = format!("{key} is `{said}`: write a time as \"5 ms\" or \"200 us\"");
                wrong(value.span().start, problem)
            })
        };
        let size = |key: &str, value: &Option<Spanned<String>>, most: u64, otherwise: u64| {
            let Some(value) = value else {
                return Ok(otherwise);
            };
            let read = metes_quantity::read_bytes(value.get_ref()).ok();
            read.filter(|bytes| *bytes <= most).ok_or_else(|| {
                let said = value.get_ref();
                let problem =
                    format!("{key} is `{said}`: write a size as \"64 KiB\", {most} bytes at most");
                wrong(value.span().start, problem)
            })
        };
        let name = document.name.get_ref();
        if !is_name(name) {
            let problem = format!(
                "name is `{name}`: give 1 to {MOST_CHARACTERS} letters, digits, `-`, `_` or `.`"
            );
            return Err(wrong(document.name.span().start, problem));
        }
        let period = time("period", &document.period)?;
        let deadline = match &document.deadline {
            Some(deadline) => time("deadline", deadline)?,
            None => period,
        };
        let budget = time("budget", &document.budget)?;
        if budget > deadline {
            let problem = format!(
                "budget is {budget} ns and the deadline {deadline} ns: a budget fits its deadline"
            );
            return Err(wrong(document.budget.span().start, problem));
        }
        let kept = match document
            .state
            .as_ref()
            .map(|state| (state.get_ref().as_str(), state))
        {
            None | Some(("fresh", _)) => false,
            Some(("kept", _)) => true,
            Some((said, state)) => {
                let problem = format!("state is `{said}`: write \"fresh\" or \"kept\"");
                return Err(wrong(state.span().start, problem));
            }
        };
        if let Some(sample) = document.samples.get(MOST_SAMPLES) {
            let problem = format!(
                "samples has {} files: name {MOST_SAMPLES} at most",
                document.samples.len()
            );
            return Err(wrong(sample.span().start, problem));
        }
        let samples = document.samples.into_iter().map(Spanned::into_inner);
        Ok(Manifest {
            samples: samples.collect(),
            memory: size("memory", &document.memory, 4 << 30, 0)?,
            input: size("input", &document.input, MOST_BYTES, BYTES)?,
            output: size("output", &document.output, MOST_BYTES, BYTES)?,
            name: document.name.into_inner(),
            module: document.module,
            entry: document.entry,
            kind: document.kind,
            period,
            deadline,
            budget,
            criticality: document.criticality,
            overrun: document.overrun,
            kept,
            core: document.core,
        })
    }

    /// What the admission is told, of a slot of so many bytes.
    #[must_use]
    pub fn function(&self, memory: u64) -> Function {
        let mut function = Function::new(
            self.name.clone(),
            self.period,
            self.deadline,
            self.budget,
            memory,
        );
        function.core = self.core;
        function.criticality = self.criticality;
        function
    }
}

/// Whether a function may be called so: what needs no escape in an address.
fn is_name(name: &str) -> bool {
    let character = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MOST_CHARACTERS).contains(&name.len())
        && name.bytes().all(character)
        && name.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

/// A time as people write it, in whole nanoseconds, from 1 to an hour: `5 ms`, `200us`, `1.5 s`.
fn nanoseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.')?;
    let (number, unit) = text.split_at(end);
    let scale: u64 = match unit.trim() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let mut time = whole.checked_mul(scale)?;
    if number.contains('.') {
        let digits = u32::try_from(part.len())
            .ok()
            .filter(|digits| (1..=9).contains(digits))?;
        let scaled = part.parse::<u64>().ok()?.checked_mul(scale)?;
        let power = 10_u64.pow(digits);
        // A part of a nanosecond is none.
        time = time.checked_add(scaled.is_multiple_of(power).then_some(scaled / power)?)?;
    }
    (1..=3_600_000_000_000).contains(&time).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_nanoseconds() {
        for (text, time) in [
            ("5 ms", Some(5_000_000)),
            ("200us", Some(200_000)),
            ("1.5 µs", Some(1500)),
            ("0.25 s", Some(250_000_000)),
            ("1.5 ns", None),
            ("0 ms", None),
            ("5", None),
            ("-5 ms", None),
            ("1e3 ms", None),
            ("61 min", None),
            ("ms", None),
            ("1. ms", None),
        ] {
            assert_eq!(nanoseconds(text), time, "{text}");
        }
    }

    #[test]
    fn an_error_names_its_line() {
        let whole = "name = \"a\"\nmodule = \"a.wasm\"\nperiod = \"10 ms\"\nbudget = \"1 ms\"\n";
        let read = Manifest::parse(whole).expect("it is whole");
        assert_eq!((read.deadline, read.input), (10_000_000, 65536));
        for (from, to, said) in [
            ("\"a\"", "\"a/b\"", "line 1: name is `a/b`"),
            ("\"10 ms\"", "10", "line 3: invalid type"),
            ("\"10 ms\"", "\"10\"", "line 3: period is `10`"),
            ("\"1 ms\"", "\"11 ms\"", "line 4: budget is 11000000 ns"),
            ("budget", "bugdet", "line 4: unknown field"),
            (
                "budget",
                "state = \"lost\"\nbudget",
                "line 4: state is `lost`",
            ),
            (
                "budget",
                "input = \"65 MiB\"\nbudget",
                "line 4: input is `65 MiB`",
            ),
            ("budget", "samples = [7]\nbudget", "line 4: invalid type"),
            (
                "budget",
                "samples = [\n'1','2','3','4','5','6','7','8','9','10','11','12','13','14','15','16',\n'17']\nbudget",
                "line 6: samples has 17 files",
            ),
            (
                "budget",
                "overrun = \"explode\"\nbudget",
                "line 4: unknown variant",
            ),
        ] {
            let error = Manifest::parse(&whole.replacen(from, to, 1)).expect_err(to);
            assert!(error.to_string().starts_with(said), "{to}: {error}");
        }
    }
}
