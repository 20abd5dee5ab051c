//! Coverage: which instructions were executed, and which way branches went, as lcov tells it.
//!
//! Invariant: a count is of instructions begun, those that trap included; it says nothing of code that no segment marks
//! as executable.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Once;
use super::lines::Lines;
use crate::bus::Bus;
use crate::core::Core;
use crate::decode::{Kind, decode};
use crate::image::Image;
use crate::observer::Observer;

/// Counts of an image's instructions.
pub struct Coverage {
    base: u32,
    /// How often each word was executed.
    counts: Vec<u64>,
    /// How often each branch was not taken, and taken.
    ways: Vec<[u64; 2]>,
    once: Once,
}

impl Coverage {
    /// No counts yet, of `image`.
    pub fn new(image: &Image) -> Coverage {
        let code = || image.segments().iter().filter(|segment| segment.code);
        let base = code().map(|segment| segment.address).min().unwrap_or(0) & !3;
        let end = code().map(|segment| segment.address as usize + segment.bytes.len());
        let words = (end.max().unwrap_or(0).saturating_sub(base as usize)).div_ceil(4);
        Coverage {
            base,
            counts: vec![0; words],
            ways: vec![[0; 2]; words],
            once: Once::default(),
        }
    }

    /// How often the instruction at `address` was executed.
    pub fn count(&self, address: u32) -> u64 {
        self.counts.get(self.index(address)).copied().unwrap_or(0)
    }

    fn index(&self, address: u32) -> usize {
        (address.wrapping_sub(self.base) / 4) as usize
    }

    /// Functions, lines and branches in lcov's format. Where the image names no lines, each instruction of a function is a
    /// line of a file that is called as `name`: its number is the instruction's place in the image.
    pub fn lcov(&self, image: &Image, lines: Option<&Lines>, name: &str) -> String {
        let mut files: BTreeMap<String, File> = BTreeMap::new();
        for symbol in image.symbols().iter().filter(|symbol| symbol.function) {
            let words = symbol.size / 4;
            for address in (0..words).map(|word| symbol.address + 4 * word) {
                let index = self.index(address);
                let (Some(&count), Some(&ways)) = (self.counts.get(index), self.ways.get(index))
                else {
                    continue;
                };
                let here = lines.and_then(|lines| lines.of(address));
                let (file, line) = here.unwrap_or_else(|| (name.to_owned(), index as u32 + 1));
                let file = files.entry(file).or_default();
                if address == symbol.address {
                    file.functions.push((line, symbol.name.clone(), count));
                }
                // A line is executed as often as the instruction of it that is executed most.
                let most = file.lines.entry(line).or_default();
                *most = count.max(*most);
                if is_branch(image, address) {
                    file.branches.push((line, ways, count));
                }
            }
        }
        let mut text = String::new();
        for (name, file) in &files {
            let _ = file.write(name, &mut text);
        }
        text
    }
}

#[derive(Default)]
struct File {
    functions: Vec<(u32, String, u64)>,
    lines: BTreeMap<u32, u64>,
    branches: Vec<(u32, [u64; 2], u64)>,
}

impl File {
    fn write(&self, name: &str, text: &mut String) -> std::fmt::Result {
        writeln!(text, "TN:\nSF:{name}")?;
        for (line, function, _) in &self.functions {
            writeln!(text, "FN:{line},{function}")?;
        }
        for (_, function, count) in &self.functions {
            writeln!(text, "FNDA:{count},{function}")?;
        }
        let hit = |counts: &mut dyn Iterator<Item = u64>| counts.filter(|&count| count > 0).count();
        let functions = hit(&mut self.functions.iter().map(|function| function.2));
        writeln!(text, "FNF:{}\nFNH:{functions}", self.functions.len())?;
        for (block, (line, ways, count)) in self.branches.iter().enumerate() {
            for (way, taken) in ways.iter().enumerate() {
                match count {
                    0 => writeln!(text, "BRDA:{line},{block},{way},-")?,
                    _ => writeln!(text, "BRDA:{line},{block},{way},{taken}")?,
                }
            }
        }
        let branches = hit(&mut self.branches.iter().flat_map(|branch| branch.1));
        writeln!(text, "BRF:{}\nBRH:{branches}", 2 * self.branches.len())?;
        for (line, count) in &self.lines {
            writeln!(text, "DA:{line},{count}")?;
        }
        let lines = hit(&mut self.lines.values().copied());
        writeln!(text, "LF:{}\nLH:{lines}\nend_of_record", self.lines.len())
    }
}

/// Whether a branch stands at `address` that may go either way.
fn is_branch(image: &Image, address: u32) -> bool {
    let operation = image.word(address).map(decode);
    operation.is_some_and(|operation| {
        matches!(operation.kind, Kind::Branch | Kind::FloatBranch) && !matches!(operation.rd, 0 | 8)
    })
}

impl Observer for Coverage {
    fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        let index = self.index(core.pc);
        if index < self.counts.len() && self.once.first(core) {
            self.counts[index] += 1;
            let operation = bus.word(core.pc).map(decode);
            if let Some(operation) = operation
                && let Some(taken) = core.would_branch(operation)
            {
                self.ways[index][usize::from(taken)] += 1;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Configuration, Machine};

    /// mov 3, %g1; subcc %g1, 1, %g1; bne -1; nop; ta 0
    const COUNTS: [u32; 5] = [
        0x8210_2003,
        0x82a0_6001,
        0x12bf_ffff,
        0x0100_0000,
        0x91d0_2000,
    ];

    #[test]
    fn instructions_and_ways_are_counted() {
        let image = Image::of_words(0x4000_0000, &COUNTS);
        let mut machine = Machine::with_image(&Configuration::default(), &image).unwrap();
        let mut coverage = Coverage::new(&image);
        machine.run(2, &mut coverage);
        machine.run(100, &mut coverage);
        let counts = [0, 4, 8, 12, 16].map(|at| coverage.count(0x4000_0000 + at));
        assert_eq!(counts, [1, 3, 3, 3, 1]);
        assert_eq!(coverage.ways[2], [1, 2]);
        assert_eq!(coverage.count(0x5000_0000), 0);
    }
}
