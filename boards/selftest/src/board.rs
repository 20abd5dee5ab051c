//! What a board brings, and the proof that its counter counts instructions.
//!
//! Invariant: no figure is printed from a counter that has not been compared, in the
//! same run, with sequences of known length.

use core::hint::black_box;

use crate::report::Report;

/// A function whose length is known, and the number of instructions it executes more
/// than the first one of its list.
pub type Sequence = (u32, extern "C" fn());

/// A board: a counter of executed instructions and how it counts.
pub trait Board {
    /// What the board is, for the first line.
    fn name(&self) -> &'static str;

    /// How instructions are counted, in words.
    fn counting(&self) -> &'static str;

    /// Reads the counter, in its own unit.
    fn read(&mut self) -> u32;

    /// Instructions executed between two readings.
    fn instructions(&self, before: u32, after: u32) -> u32;

    /// Functions that differ only in the number of `nop`s in them; the first has none.
    fn sequences(&self) -> &'static [Sequence];
}

/// Instructions of one call of `operation`, reading of the counter included.
///
/// Call it in a function of its own that is not inlined: else the compiler moves
/// instructions of the surroundings between the two readings.
#[inline(always)]
pub fn count<T>(board: &mut impl Board, operation: impl FnOnce() -> T) -> (u32, T) {
    let before = board.read();
    let result = operation();
    let after = board.read();
    (board.instructions(before, after), result)
}

/// Compares the counter with sequences of known length, and returns the instructions
/// that reading it costs (to be subtracted from each figure).
pub fn calibrate(board: &mut impl Board, report: &mut Report<'_>) -> u32 {
    let overhead = empty(board);
    let mut steady = true;
    for _ in 0..100 {
        steady &= empty(board) == overhead;
    }
    let verdict = |held: bool, why| if held { Ok(()) } else { Err(why) };
    report.check(
        "counter",
        "an empty operation always counts the same",
        verdict(steady, "it varies"),
    );
    let sequences = board.sequences();
    let mut exact = sequences.len() > 1;
    let bare = sequences
        .first()
        .map_or(0, |&(_, call)| length_of(board, call));
    for &(length, call) in sequences {
        let counted = length_of(board, call).wrapping_sub(bare);
        if counted != length {
            report.line(format_args!("  {length} nops counted as {counted}"));
            exact = false;
        }
    }
    report.check(
        "counter",
        "sequences of known length are counted exactly",
        verdict(exact, "they are not"),
    );
    if steady && exact {
        report.line(format_args!(
            "counter: exact on {} known sequences; {overhead} instructions of reading it are subtracted",
            sequences.len()
        ));
    }
    overhead
}

#[inline(never)]
fn empty(board: &mut impl Board) -> u32 {
    count(board, || ()).0
}

/// Out of line, so that the code around the call is the same for each sequence.
#[inline(never)]
fn length_of(board: &mut impl Board, call: extern "C" fn()) -> u32 {
    count(board, || call()).0
}

/// Prints what the bit searches of an index cost here, over all 32 positions and
/// beyond an empty call: the processor may have an instruction for them or call a
/// library.
pub fn bit_search(board: &mut impl Board, report: &mut Report<'_>) {
    let call = search_cost(board, nothing, 0);
    type Search = fn(u32) -> u32;
    let searches: [(&str, Search, Search); 3] = [
        ("leading_zeros", leading, |bit| 31 - bit),
        ("leading_zeros by table", by_table, |bit| 31 - bit),
        ("trailing_zeros", trailing, |bit| bit),
    ];
    for (name, search, expected) in searches {
        let (mut sum, mut most, mut right) = (0, 0, true);
        for bit in 0..32 {
            right &= search(black_box(1 << bit)) == expected(bit);
            let cost = search_cost(board, search, bit) - call;
            sum += u64::from(cost);
            most = most.max(cost);
        }
        let outcome = if right { Ok(()) } else { Err("it does not") };
        report.check(name, "finds the bit", outcome);
        report.line(format_args!(
            "{name}: mean {} max {most} instructions beyond an empty call",
            Tenths::mean(sum, 32)
        ));
    }
}

/// Out of line for the same reason as `length_of`.
#[inline(never)]
fn search_cost(board: &mut impl Board, search: fn(u32) -> u32, bit: u32) -> u32 {
    let word = black_box(1 << bit);
    count(board, || black_box(search(word))).0
}

#[inline(never)]
fn nothing(word: u32) -> u32 {
    word
}

#[inline(never)]
fn leading(word: u32) -> u32 {
    word.leading_zeros()
}

/// What a processor without the instruction could do for 256 bytes: the position of
/// the highest bit of a byte from a table.
#[inline(never)]
fn by_table(word: u32) -> u32 {
    const TABLE: [u8; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            table[byte] = (byte as u8).leading_zeros() as u8;
            byte += 1;
        }
        table
    };
    let zeros = |shift: u32| u32::from(TABLE[(word >> shift & 0xFF) as usize]);
    match word {
        0..0x100 => 24 + zeros(0),
        0x100..0x1_0000 => 16 + zeros(8),
        0x1_0000..0x100_0000 => 8 + zeros(16),
        _ => zeros(24),
    }
}

#[inline(never)]
fn trailing(word: u32) -> u32 {
    word.trailing_zeros()
}

/// A mean with one decimal, without floating point.
#[derive(Clone, Copy)]
pub struct Tenths(u64);

impl Tenths {
    /// `sum` / `count` rounded to tenths; zero of nothing.
    pub fn mean(sum: u64, count: u64) -> Self {
        Self((sum * 10 + count / 2).checked_div(count).unwrap_or(0))
    }
}

impl core::fmt::Display for Tenths {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let whole = f.width().unwrap_or(0).saturating_sub(2);
        write!(f, "{:>whole$}.{}", self.0 / 10, self.0 % 10)
    }
}
