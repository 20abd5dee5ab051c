//! Coverage: how often each instruction was executed, and where branches went; as a tracefile of lcov.
//!
//! Lines come from the image's line tables ([`Lines`]); a line counts as often as the instruction of it that was executed
//! most. Functions are the image's symbols of functions. A function without lines stands in a record of its own whose
//! file is the image's name, and whose "line" is the function's address as a decimal number; it has no `DA` or `BRDA`.
//! Each conditional branch is a block of its line, in the order of addresses: branch 0 is taken, 1 is not.
//!
//! Invariant: what is counted is what is executed, once; code outside the image's segments is not.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Lines, Once};
use crate::bus::Bus;
use crate::core::{CONDITIONS, Core};
use crate::image::{Image, Symbol};
use crate::observer::Observer;

/// Most bytes of code that are counted, from the first address.
const MOST: u32 = 1 << 28;

/// How often an instruction was executed and, if it is a branch, taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Times it was executed.
    pub executed: u64,
    /// Times it was taken.
    pub taken: u64,
    /// Whether it is a conditional branch, as it was last executed or stands in the image.
    pub branch: bool,
}

impl Count {
    /// Times it was taken, and was not.
    fn ways(&self) -> [u64; 2] {
        [self.taken, self.executed - self.taken]
    }
}

/// How many there are, and how many of them were executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// All.
    pub all: u64,
    /// Those that were executed.
    pub executed: u64,
}

impl Part {
    fn of(counts: impl Iterator<Item = u64>) -> Part {
        counts.fold(Part::default(), |part, count| Part {
            all: part.all + 1,
            executed: part.executed + u64::from(count > 0),
        })
    }
}

/// What a run covered of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Functions, by symbols.
    pub functions: Part,
    /// Lines of source code; none without `-g`.
    pub lines: Part,
    /// Ways of the conditional branches in these lines, two each.
    pub branches: Part,
}

/// Counts instructions by address.
#[derive(Clone, Debug)]
pub struct Coverage {
    base: u32,
    counts: Vec<Count>,
    functions: Vec<Symbol>,
    once: Once,
}

impl Coverage {
    /// Counts the code of `image`.
    pub fn new(image: &Image) -> Coverage {
        let code = || image.segments().iter().filter(|segment| segment.code);
        let base = code().map(|segment| segment.address).min().unwrap_or(0) & !3;
        let end = code().map(|segment| segment.address.saturating_add(segment.bytes.len() as u32));
        let size = (end.max().unwrap_or(0).saturating_sub(base)).min(MOST);
        let mut counts = vec![Count::default(); size.div_ceil(4) as usize];
        for segment in code() {
            let first = ((segment.address - base) / 4) as usize;
            for (count, word) in counts[first.min(size as usize / 4)..]
                .iter_mut()
                .zip(segment.bytes.chunks_exact(4))
            {
                count.branch = is_branch(u32::from_be_bytes(word.try_into().expect("four bytes")));
            }
        }
        let functions = image.symbols().iter().filter(|symbol| symbol.function);
        Coverage {
            base,
            counts,
            functions: functions.cloned().collect(),
            once: Once::default(),
        }
    }

    /// What is counted at `address`.
    pub fn at(&self, address: u32) -> Option<Count> {
        let index = address.wrapping_sub(self.base) / 4;
        self.counts.get(index as usize).copied()
    }

    /// Addresses that were executed, in order.
    pub fn executed(&self) -> impl Iterator<Item = (u32, Count)> {
        let all = (self.base..).step_by(4).zip(self.counts.iter().copied());
        all.filter(|(_, count)| count.executed > 0)
    }

    /// A tracefile of lcov (`genhtml` makes pages of it). `name` stands for the image where code has no lines.
    pub fn lcov(&self, lines: &Lines, name: &str) -> String {
        let mut text = String::from("TN:\n");
        for (name, file) in &self.files(lines, name) {
            let _ = writeln!(text, "SF:{name}");
            file.write(&mut text);
        }
        text
    }

    /// How much there is, and how much of it was executed: what the sums of [`Coverage::lcov`] are.
    pub fn totals(&self, lines: &Lines) -> Totals {
        let mut totals = Totals::default();
        for file in self.files(lines, "").values() {
            for (sum, part) in [
                (&mut totals.functions, file.functions()),
                (&mut totals.lines, file.lines()),
                (&mut totals.branches, file.branches()),
            ] {
                sum.all += part.all;
                sum.executed += part.executed;
            }
        }
        totals
    }

    fn files<'a>(&'a self, lines: &'a Lines, name: &'a str) -> BTreeMap<&'a str, File<'a>> {
        let mut files: BTreeMap<&str, File> = BTreeMap::new();
        for symbol in &self.functions {
            self.take_function(symbol, lines, name, &mut files);
        }
        for (address, count) in (self.base..).step_by(4).zip(&self.counts) {
            if let Some((file, line)) = lines.at(address) {
                let file = files.entry(file).or_default();
                let executed = file.lines.entry(line).or_default();
                *executed = (*executed).max(count.executed);
                if count.branch {
                    file.branches.entry(line).or_default().push(*count);
                }
            }
        }
        for (address, file, line) in lines.marks() {
            if let Some(count) = self.at(address) {
                let file = files.entry(file).or_default();
                let executed = file.lines.entry(line).or_default();
                *executed = (*executed).max(count.executed);
            }
        }
        files
    }

    fn take_function<'a>(
        &self,
        symbol: &'a Symbol,
        lines: &'a Lines,
        name: &'a str,
        files: &mut BTreeMap<&'a str, File<'a>>,
    ) {
        if let Some(count) = self.at(symbol.address) {
            let (file, line) = lines
                .first_at(symbol.address)
                .unwrap_or((name, symbol.address));
            let file = files.entry(file).or_default();
            file.functions.push((line, &symbol.name, count.executed));
        }
    }
}

impl Observer for Coverage {
    #[inline(always)]
    fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        if !self.once.first(core) {
            return false;
        }
        let index = core.pc.wrapping_sub(self.base) / 4;
        if let Some(count) = self.counts.get_mut(index as usize) {
            count.executed += 1;
            if let Some(bytes) = bus.load::<4>(core.pc) {
                let word = u32::from_be_bytes(bytes);
                count.branch = is_branch(word);
                if count.branch {
                    count.taken += u64::from(is_taken(core, word));
                }
            }
        }
        false
    }
}

/// Whether `word` is a conditional branch: of integers or floating point, not always or never.
#[inline(always)]
fn is_branch(word: u32) -> bool {
    matches!(word >> 22 & 0x307, 2 | 6) && word >> 25 & 7 != 0
}

/// Whether the conditional branch `word` is taken by `core`.
#[inline(always)]
fn is_taken(core: &Core, word: u32) -> bool {
    let condition = word >> 25 & 15;
    if word >> 22 & 7 == 2 {
        CONDITIONS[condition as usize] >> (core.icc & 15) & 1 == 1
    } else {
        core.float_on && core.float.taken(condition)
    }
}

/// What is told of a file.
#[derive(Default)]
struct File<'a> {
    functions: Vec<(u32, &'a str, u64)>,
    lines: BTreeMap<u32, u64>,
    branches: BTreeMap<u32, Vec<Count>>,
}

impl File<'_> {
    fn functions(&self) -> Part {
        Part::of(self.functions.iter().map(|function| function.2))
    }

    fn lines(&self) -> Part {
        Part::of(self.lines.values().copied())
    }

    /// Two for each conditional branch: taken, and not.
    fn branches(&self) -> Part {
        Part::of(self.branches.values().flatten().flat_map(Count::ways))
    }

    fn write(&self, text: &mut String) {
        for (line, name, _) in &self.functions {
            let _ = writeln!(text, "FN:{line},{name}");
        }
        for (_, name, count) in &self.functions {
            let _ = writeln!(text, "FNDA:{count},{name}");
        }
        let Part { all, executed } = self.functions();
        let _ = writeln!(text, "FNF:{all}\nFNH:{executed}");
        self.write_branches(text);
        for (line, count) in &self.lines {
            let _ = writeln!(text, "DA:{line},{count}");
        }
        let Part { all, executed } = self.lines();
        let _ = writeln!(text, "LF:{all}\nLH:{executed}\nend_of_record");
    }

    fn write_branches(&self, text: &mut String) {
        for (line, branches) in &self.branches {
            for (block, count) in branches.iter().enumerate() {
                for (branch, times) in count.ways().into_iter().enumerate() {
                    let _ = match count.executed {
                        0 => writeln!(text, "BRDA:{line},{block},{branch},-"),
                        _ => writeln!(text, "BRDA:{line},{block},{branch},{times}"),
                    };
                }
            }
        }
        let Part { all, executed } = self.branches();
        let _ = writeln!(text, "BRF:{all}\nBRH:{executed}");
    }
}
