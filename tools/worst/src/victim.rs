//! Heaps of one kind, as many as there are attacks.
//!
//! Invariant: every attack begins on a heap that has served nobody, so that what
//! it finds depends on its own requests alone.

use metes_config::Config;
use metes_explore::{Options, Replayer};

use crate::shares::Shares;
use crate::target::{Ledger, Target};

/// A kind of heap, of which new ones can be had.
pub trait Victim {
    /// Lets `drive` attack a new heap with at most `blocks` blocks live at once.
    /// The heap grows as it likes, or lies in `arena` bytes. Returns `false`
    /// where these are too few for its control structure, or no more heaps can
    /// be had. `drive` begins anew whenever it is called.
    fn fresh(
        &mut self,
        arena: Option<u64>,
        blocks: usize,
        drive: &mut dyn FnMut(&mut dyn Target),
    ) -> bool;
}

/// Heaps of a configuration over a ledger, as `metes replay` has them.
///
/// The arena of a heap of several pools is divided: equally, or so that each pool has the
/// bytes of its bound where these are all there is.
pub struct Replayed<'c> {
    config: &'c Config,
    replayer: Replayer,
    bounded: Option<Shares>,
}

impl<'c> Replayed<'c> {
    /// Heaps of that configuration.
    pub fn new(config: &'c Config) -> Self {
        Replayed {
            config,
            replayer: Replayer::new(),
            bounded: None,
        }
    }

    /// Heaps of that configuration; an arena of as many bytes as these shares have together is
    /// divided into them.
    pub(crate) fn with_shares(config: &'c Config, bounded: Option<Shares>) -> Self {
        Replayed {
            bounded,
            ..Self::new(config)
        }
    }
}

/// How a configuration is replayed: its own arena and levels.
pub fn options_of(config: &Config) -> Options {
    let mut options = Options::of(config);
    // What is attacked is what has a bound: the pools.
    options.arena.mapped = None;
    options
}

impl Victim for Replayed<'_> {
    fn fresh(
        &mut self,
        arena: Option<u64>,
        blocks: usize,
        drive: &mut dyn FnMut(&mut dyn Target),
    ) -> bool {
        let heap = &self.config.heap;
        let mut options = options_of(self.config);
        let mut routed = None;
        if let Some(bytes) = arena {
            match &self.bounded {
                Some(shares) if shares.total() == bytes => {
                    shares.fix(heap, &mut options);
                    routed = Some(*heap);
                }
                _ => Shares::equal(heap, bytes).fix(heap, &mut options),
            }
        }
        self.replayer
            .simulate(heap, &options, blocks, &mut |simulated| {
                drive(&mut Ledger::new(simulated, routed));
            })
    }
}
