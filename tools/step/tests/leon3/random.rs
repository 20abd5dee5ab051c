//! Any code without loops: the bound is the largest of all its paths, each of which is executed.

use metes_leon3::decode::{Kind, decode};
use metes_leon3::{Image, Machine, Model};
use metes_random::Random;
use metes_step::longest_on_leon3;
use metes_step::sparc::Options;

use crate::machine::{self, Count};
use crate::words::*;

/// Blocks of code of which each leads to later ones; then functions without branches that they call.
struct Program {
    words: Vec<u32>,
}

fn draw(random: &mut Random, below: u64) -> u64 {
    random.below(below)
}

/// An instruction that changes no condition code and goes nowhere.
fn straight(random: &mut Random) -> u32 {
    match draw(random, 6) {
        0 => NOP,
        1 => multiply(O0, O0),
        2 => load(SP, 64 + 16 * draw(random, 16) as i32, O0),
        3 => store(O0, SP, 64 + 16 * draw(random, 16) as i32),
        4 => sethi(random.next() as u32, O0),
        _ => add(O0, 1, O0),
    }
}

fn straights(random: &mut Random, most: u64) -> Vec<u32> {
    (0..draw(random, most)).map(|_| straight(random)).collect()
}

fn finish(framed: bool) -> [u32; 2] {
    if framed {
        [ret(), RESTORE]
    } else {
        [retl(), NOP]
    }
}

/// How a block ends: two words, the first of which is filled in when it is known where blocks begin.
#[derive(Clone, Copy)]
enum Last {
    Through,
    Branch {
        condition: u32,
        annul: bool,
        block: usize,
    },
    Call {
        function: usize,
    },
    Return,
}

impl Program {
    fn draw(random: &mut Random) -> Program {
        let blocks = 2 + draw(random, 12) as usize;
        let mut branches = 0;
        let lasts: Vec<Last> = (0..blocks)
            .map(|block| Program::last(random, block, blocks, &mut branches))
            .collect();
        // A frame, so that calls keep the return address.
        let mut words = vec![save(320)];
        let mut begins = Vec::new();
        let mut open = Vec::new();
        for last in &lasts {
            begins.push(words.len());
            words.extend(straights(random, 6));
            open.push(words.len());
            match last {
                Last::Through => {}
                Last::Return => words.extend(finish(true)),
                _ => words.extend([NOP, straight(random)]),
            }
        }
        let mut functions = Vec::new();
        for framed in [false, true, false] {
            functions.push(words.len());
            words.extend(framed.then(|| save(320)));
            words.extend(straights(random, 8));
            words.extend(finish(framed));
        }
        for (last, at) in lasts.iter().zip(open) {
            match *last {
                Last::Branch {
                    condition,
                    annul,
                    block,
                } => {
                    words[at] = branch(condition, annul, begins[block] as i32 - at as i32);
                }
                Last::Call { function } => words[at] = call(functions[function] as i32 - at as i32),
                Last::Through | Last::Return => {}
            }
        }
        Program { words }
    }

    fn last(random: &mut Random, block: usize, blocks: usize, branches: &mut u32) -> Last {
        let left = (blocks - block - 1) as u64;
        if left == 0 {
            return Last::Return;
        }
        match draw(random, 8) {
            0 => Last::Through,
            1 => Last::Return,
            2 => Last::Call {
                function: draw(random, 3) as usize,
            },
            kind => {
                let either = *branches < 9 && kind > 3;
                *branches += u32::from(either);
                let condition = if either {
                    [EQUAL, NOT_EQUAL][draw(random, 2) as usize]
                } else {
                    [ALWAYS, NEVER][draw(random, 2) as usize]
                };
                Last::Branch {
                    condition,
                    annul: draw(random, 2) == 0,
                    block: block + 1 + draw(random, left) as usize,
                }
            }
        }
    }

    /// Executes the path that the bits of `choices` say, one for each branch that may go either way; how many did.
    fn path(&self, machine: &mut Machine, choices: u64) -> (Count, u32) {
        machine::enter(machine, BASE, &[]);
        let core = &machine.cores()[0];
        let begin = (core.instructions, core.cycles);
        let mut asked = 0;
        loop {
            let core = machine.core_mut(0);
            let at = (core.pc.wrapping_sub(BASE) / 4) as usize;
            let Some(&word) = self.words.get(at) else {
                let count = Count {
                    instructions: core.instructions - begin.0,
                    cycles: core.cycles - begin.1,
                };
                return (count, asked);
            };
            let operation = decode(word);
            if operation.kind == Kind::Branch && operation.rd != 0 && operation.rd != 8 {
                core.icc = if choices >> asked & 1 == 1 { 4 } else { 0 };
                asked += 1;
            }
            machine.run(1, &mut ());
        }
    }

    /// The largest counts of all paths.
    fn largest(&self, model: Model) -> Count {
        let image = Image::of_words(BASE, &self.words);
        let mut machine = machine::machine(&image, model);
        let mut largest = Count::default();
        let mut work = vec![(0u64, 0u32)];
        while let Some((choices, chosen)) = work.pop() {
            let (count, asked) = self.path(&mut machine, choices);
            largest = largest.max(count);
            // Those that were not chosen went one way: now the other.
            work.extend((chosen..asked).map(|bit| (choices | 1 << bit, bit + 1)));
        }
        largest
    }
}

#[test]
fn the_bound_is_the_largest_of_all_paths() {
    let rounds = if cfg!(debug_assertions) { 50 } else { 400 };
    let mut longest_of_all = 0;
    for round in 0..rounds {
        let program = Program::draw(&mut Random::new(round));
        let image = Image::of_words(BASE, &program.words);
        let bound = longest_on_leon3(&image, BASE, &Options::default());
        let bound = bound.unwrap_or_else(|error| panic!("round {round}: {error}"));
        let counts = program.largest(Model::Flat);
        let untrapped = bound.untrapped;
        assert_eq!(
            (untrapped.instructions, untrapped.cycles),
            (counts.instructions, counts.cycles),
            "round {round}"
        );
        let missing = program.largest(Model::Caches).cycles;
        assert!(
            missing <= untrapped.cycles_with_misses,
            "round {round}: {missing}"
        );
        longest_of_all = longest_of_all.max(counts.instructions);
    }
    assert!(longest_of_all > 40, "{longest_of_all}");
}

/// Words that are hardly code: whatever is said of them, it is said.
#[test]
fn any_words_have_a_bound_or_a_reason() {
    let rounds = if cfg!(debug_assertions) { 500 } else { 20_000 };
    let mut bounded = 0;
    for round in 0..rounds {
        let mut random = Random::new(round);
        let words: Vec<u32> = (0..60)
            .map(|_| match draw(&mut random, 8) {
                0 => random.next() as u32,
                1 => branch(
                    draw(&mut random, 16) as u32,
                    draw(&mut random, 2) == 0,
                    draw(&mut random, 16) as i32 - 4,
                ),
                2 => retl(),
                3 => ret(),
                4 => [save(96), RESTORE][draw(&mut random, 2) as usize],
                5 => call(draw(&mut random, 32) as i32 - 8),
                _ => straight(&mut random),
            })
            .collect();
        let image = Image::of_words(BASE, &words);
        let mut options = Options::default();
        options
            .loops
            .extend((0..60).map(|word| (BASE + 4 * word, 2)));
        match longest_on_leon3(&image, BASE, &options) {
            Ok(_) => bounded += 1,
            Err(error) => assert!(error.to_string().contains("0x"), "{error}"),
        }
    }
    assert!(bounded > rounds / 100, "{bounded}");
}
