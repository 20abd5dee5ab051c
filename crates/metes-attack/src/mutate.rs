//! Inputs made of others, reproducibly.
//!
//! *Invariant:* an input is decided by its seeds and its number alone.

/// Numbers that break what did not expect them.
const NUMBERS: [&str; 14] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "999999999999",
    "1e308",
    "nan",
    "-0",
    "0x7fffffffffffffff",
];

/// Bytes that parsers look for.
const BYTES: &[u8] = b"\0\n\r\t \"'(),-./0179:;=[]\\_aefx{|}~\x1b\x7f\x80\x94\xff";

/// Longest input made of a shorter one, bytes.
const LONGEST: usize = 1 << 16;

/// Makes inputs of seeds.
#[derive(Clone, Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// That of an input by its number.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Mutator {
            state: number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// A number below another, which is not 0 (splitmix64).
    fn below(&mut self, most: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % most.max(1) as u64) as usize
    }

    /// An input of one or two seeds, changed in one to eight places. Linear in its length.
    pub fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(8) {
            self.change(&mut input, seeds);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let length = input.len();
        let at = self.below(length + 1);
        match self.below(9) {
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
            b"a,1,64\nf,1\n".to_vec(),
            b"[heap]\nname = \"tlsf\"\n".to_vec(),
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
