//! Random actions: the synthetic workload.
//!
//! The paper gives the number of actions, about a million, and their shares: allocations and frees 10 % each,
//! reads and writes 40 % each. It decides first which action is taken, then the size, the block or the address.
//! What it does not give is ours:
//!
//! - Sizes are drawn evenly from [`Options::smallest`] to [`Options::largest`]. The paper discloses neither the
//!   sizes nor their distribution. The default, up to 4 MiB, was found by trial: of the powers of two it is the one at
//!   which a heap by best fit, which gives pages back at its end alone, has about as many of them at most as the
//!   paper's conventional system (180 132).
//! - The block that is freed or accessed is any of the live ones, as likely as each other, and the byte of an
//!   access is any of its block.
//! - An action that needs a block while none lives is drawn again.
//!
//! Invariant: a pure function of the options; every operation can be done after those before it.

use metes_lab::Random;
use metes_trace::TouchOperation;

/// What is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many actions.
    pub actions: u64,
    /// What draws them.
    pub seed: u64,
    /// Bytes of the smallest block, at least one.
    pub smallest: u64,
    /// Bytes of the largest block.
    pub largest: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            actions: 1_000_000,
            seed: 1,
            smallest: 1,
            largest: 4 << 20,
        }
    }
}

/// Why nothing is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "blocks of {smallest} to {largest} bytes: give a smallest size from 1 on, and a largest that is not smaller \
     and at most {}",
    isize::MAX
)]
pub struct SizeError {
    /// The smallest asked for.
    pub smallest: u64,
    /// The largest asked for.
    pub largest: u64,
}

/// A live block.
#[derive(Clone, Copy, Debug)]
struct Live {
    block: u64,
    size: u64,
}

/// The actions, in order; see [`actions`].
#[derive(Clone, Debug)]
pub struct Actions {
    options: Options,
    random: Random,
    live: Vec<Live>,
    blocks: u64,
    done: u64,
}

/// The actions of `options`, O(1) each.
///
/// # Errors
/// [`SizeError`]: no size lies in the range.
pub fn actions(options: &Options) -> Result<Actions, SizeError> {
    let Options {
        smallest, largest, ..
    } = *options;
    if smallest == 0 || largest < smallest || largest > isize::MAX as u64 {
        return Err(SizeError { smallest, largest });
    }
    Ok(Actions {
        options: *options,
        random: Random::new(options.seed),
        live: Vec::new(),
        blocks: 0,
        done: 0,
    })
}

/// What is done next, of ten shares.
#[derive(Clone, Copy)]
enum Action {
    Allocate,
    Free,
    Read,
    Write,
}

impl Actions {
    fn draw(&mut self) -> Action {
        loop {
            let action = match self.random.below(10) {
                0 => return Action::Allocate,
                1 => Action::Free,
                2..6 => Action::Read,
                _ => Action::Write,
            };
            if !self.live.is_empty() {
                return action;
            }
        }
    }

    /// A live block and a byte of it.
    fn address(&mut self) -> (u64, u64) {
        let live = self.live[self.random.below(self.live.len() as u64) as usize];
        (live.block, self.random.below(live.size))
    }
}

impl Iterator for Actions {
    type Item = TouchOperation;

    fn next(&mut self) -> Option<TouchOperation> {
        if self.done == self.options.actions {
            return None;
        }
        self.done += 1;
        Some(match self.draw() {
            Action::Allocate => {
                let Options {
                    smallest, largest, ..
                } = self.options;
                let (block, size) = (self.blocks, self.random.between(smallest, largest));
                self.blocks += 1;
                self.live.push(Live { block, size });
                TouchOperation::Allocate {
                    block,
                    size,
                    align: 16,
                }
            }
            Action::Free => {
                let index = self.random.below(self.live.len() as u64) as usize;
                TouchOperation::Free {
                    block: self.live.swap_remove(index).block,
                }
            }
            Action::Read => {
                let (block, offset) = self.address();
                TouchOperation::Read { block, offset }
            }
            Action::Write => {
                let (block, offset) = self.address();
                TouchOperation::Write { block, offset }
            }
        })
    }
}
