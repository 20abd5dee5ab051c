//! Heaps of one kind, as many as there are attacks.
//!
//! Invariant: every attack begins on a heap that has served nobody, so that what
//! it finds depends on its own requests alone.

use metes_config::Config;
use metes_explore::{Options, Replayer};

use crate::target::{Ledger, Target};

/// A kind of heap, of which new ones can be had.
pub trait Victim {
    /// Lets `drive` attack a new heap with at most `blocks` blocks live at once.
    /// The heap grows as it likes, or lies in `arena` bytes. Returns `false`
    /// where these are too few for its control structure, or it cannot be put
    /// into a fixed arena at all. `drive` begins anew whenever it is called.
    fn fresh(
        &mut self,
        arena: Option<u64>,
        blocks: usize,
        drive: &mut dyn FnMut(&mut dyn Target),
    ) -> bool;
}

/// Heaps of a configuration over a ledger, as `metes replay` has them.
pub struct Replayed<'c> {
    config: &'c Config,
    replayer: Replayer,
}

impl<'c> Replayed<'c> {
    /// Heaps of that configuration.
    pub fn new(config: &'c Config) -> Self {
        Replayed {
            config,
            replayer: Replayer::new(),
        }
    }
}

/// How a configuration is replayed: its own arena and levels.
pub fn options_of(config: &Config) -> Options {
    let mut options = Options::default();
    options.arena.increment = config.arena.increment;
    options.arena.levels = config.level_sizes();
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
        if let Some(bytes) = arena {
            if heap.general.len() > 1 || !heap.objects.is_empty() {
                // How the bytes would be shared out among pools is not said.
                return false;
            }
            let Ok(bytes) = usize::try_from(bytes) else {
                return false;
            };
            options.arena.fixed[0] = Some(bytes);
        }
        self.replayer
            .simulate(heap, &options, blocks, &mut |simulated| {
                drive(&mut Ledger(simulated));
            })
    }
}
