//! Inputs made of others, reproducibly.
//!
//! *Invariant:* an input is decided by its seeds and its number alone.

use metes_random::Random;

/// Numbers that break what did not expect them.
const NUMBERS: [&str; 30] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "340282366920938463463374607431768211456",
    "999999999999",
    "1e308",
    "1e400",
    "-1e-400",
    "nan",
    "inf",
    "-0",
    "007",
    "1_000",
    "0b1",
    "0x7fffffffffffffff",
    "1/0",
    "1/3",
    "9999999999999999999999999/7",
    "16EiB",
    "1.5MiB",
    "0.1",
];

/// Text that is not what it looks like: of several bytes a character, without a width, from right to left,
/// cut short, no character at all.
const FOREIGN: [&[u8]; 12] = [
    "ä".as_bytes(),
    "１".as_bytes(),
    "𝟙".as_bytes(),
    "\u{feff}".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{200b}".as_bytes(),
    "\u{2028}".as_bytes(),
    "e\u{301}\u{301}\u{301}".as_bytes(),
    "\\ud800".as_bytes(),
    "\\u0000".as_bytes(),
    b"\xf0\x9f\x98",
    b"\xed\xa0\x80",
];

/// Where a key ends and its value begins.
const ASSIGNS: &[u8] = b"=:";
/// Pairs that enclose.
const PAIRS: [[u8; 2]; 4] = [*b"[]", *b"{}", *b"()", *b"\"\""];

/// Bytes that parsers look for.
const BYTES: &[u8] = b"\0\n\r\t \"'(),-./0179:;=[]\\_aefx{|}~\x1b\x7f\x80\x94\xff";

/// Longest input made of a shorter one, bytes.
const LONGEST: usize = 1 << 16;

/// Further changes of an input that is a seed still.
const TRIES: usize = 16;

/// Makes inputs of seeds.
#[derive(Clone, Debug)]
pub struct Mutator {
    random: Random,
}

impl Mutator {
    /// That of an input by its number.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Mutator {
            random: Random::new(metes_random::mix(number)),
        }
    }

    /// A number below another; 0 below none.
    fn below(&mut self, most: usize) -> usize {
        self.random.remainder(most.max(1) as u64) as usize
    }

    /// An input of one or two seeds, changed in one to eight places. Linear in its length.
    pub fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(8) {
            self.change(&mut input, seeds);
        }
        // Of short seeds much leaves nothing, or all as it was.
        for _ in 0..TRIES {
            if !input.is_empty() && !seeds.contains(&input) {
                break;
            }
            self.change(&mut input, seeds);
        }
        input.truncate(LONGEST);
        input
    }

    /// Changes the order of things, not the things.
    fn restructure(&mut self, input: &mut Vec<u8>) {
        let mut lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.is_empty() {
            return;
        }
        let (one, other) = (self.below(lines.len()), self.below(lines.len()));
        match self.below(7) {
            0 => lines.swap(one, other),
            // Again, so that keys are there twice.
            1 => lines.insert(other, lines[one]),
            2 => drop(lines.remove(one)),
            // A part of several lines elsewhere: sections change their order.
            3 => {
                let (from, to) = (one.min(other), one.max(other) + 1);
                let part: Vec<&[u8]> = lines.drain(from..to).collect();
                let place = self.below(lines.len() + 1);
                lines.splice(place..place, part);
            }
            // The value of another key.
            4 => {
                let value = |line: &[u8]| line.iter().position(|byte| ASSIGNS.contains(byte));
                if let (Some(key), Some(from)) = (value(lines[one]), value(lines[other])) {
                    let line = [&lines[one][..key], &lines[other][from..]].concat();
                    let before: usize = lines[..one].iter().map(|line| line.len()).sum();
                    let end = before + lines[one].len();
                    input.splice(before..end, line);
                    return;
                }
            }
            // One level deeper, or many.
            5 => return self.enclose(input),
            _ => return self.take_apart(input),
        }
        *input = lines.concat();
    }

    /// Encloses a part of one line, once or very often.
    fn enclose(&mut self, input: &mut Vec<u8>) {
        let [open, close] = PAIRS[self.below(PAIRS.len())];
        let times = [1, 2, 200, 20_000][self.below(4)];
        let from = self.below(input.len() + 1);
        let to = input.len().min(from + self.below(24));
        input.splice(to..to, std::iter::repeat_n(close, times));
        input.splice(from..from, std::iter::repeat_n(open, times));
    }

    /// Takes out or doubles what a pair encloses, or a part between commas.
    fn take_apart(&mut self, input: &mut Vec<u8>) {
        let [open, close] = PAIRS[self.below(PAIRS.len())];
        let at = self.below(input.len() + 1);
        let find = |from: usize, wanted: &[u8]| {
            let found = input[from..].iter().position(|byte| wanted.contains(byte));
            found.map(|more| from + more)
        };
        let between = match self.below(2) {
            0 => find(at, &[open]).and_then(|from| Some((from, find(from + 1, &[close])? + 1))),
            _ => find(at, b",").and_then(|from| Some((from, find(from + 1, b",]}\n")?))),
        };
        let Some((from, to)) = between else { return };
        match self.below(2) {
            0 => drop(input.drain(from..to)),
            _ => {
                let part = input[from..to].to_vec();
                input.splice(to..to, part);
            }
        }
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let length = input.len();
        let at = self.below(length + 1);
        match self.below(17) {
            0 if at < length => input[at] ^= 1 << self.below(8),
            1 if at < length => input[at] = BYTES[self.below(BYTES.len())],
            2 => input.insert(at, BYTES[self.below(BYTES.len())]),
            3 => drop(input.drain(at..length.min(at + 1 + self.below(16)))),
            4 => input.truncate(at),
            // A part again, some or many times.
            5 if at < length => {
                let part = input[at..length.min(at + 1 + self.below(64))].to_vec();
                let times = [1, 2, 16, 256][self.below(4)];
                let more = part.repeat(times.min(LONGEST / part.len()));
                input.splice(at..at, more);
            }
            // A number in place of one, or between.
            6 => {
                let digit = |byte: &u8| byte.is_ascii_digit();
                let first = input[at..]
                    .iter()
                    .position(digit)
                    .map_or(at, |more| at + more);
                let count = input[first..].iter().take_while(|byte| digit(byte)).count();
                let number = NUMBERS[self.below(NUMBERS.len())].bytes();
                input.splice(first..first + count, number);
            }
            // Bytes of a number, lowest first.
            7 if at + 8 <= length => {
                let number = (1_u64 << self.below(64)).wrapping_sub(self.below(2) as u64);
                input[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            8 => {
                let text = FOREIGN[self.below(FOREIGN.len())];
                input.splice(at..at, text.iter().copied());
            }
            9..=15 => self.restructure(input),
            // A part of another seed.
            _ => {
                let other = &seeds[self.below(seeds.len())];
                let from = self.below(other.len() + 1);
                let to = other.len().min(from + self.below(128));
                input.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_decided_by_its_number() {
        let seeds = [
            b"a,1,64\na,2,4096,64\nr,2,100\na,3,7\nf,1\nf,3\n".to_vec(),
            b"[heap]\nname = \"tlsf\"\n\n[arena]\nincrement = \"64 KiB\"\n".to_vec(),
        ];
        let made = |number| Mutator::new(number).input(&seeds);
        let inputs: std::collections::HashSet<Vec<u8>> = (0..1000).map(made).collect();
        assert!(inputs.len() > 900, "{}", inputs.len());
        assert!((0..1000).all(|number| made(number) == made(number)));
        assert_eq!(
            Mutator::new(7).input(&[Vec::new()]),
            Mutator::new(7).input(&[Vec::new()])
        );
    }
}
