//! A deployed module: verified, rewritten, compiled, with the memory that its instances begin with.
//!
//! *Invariant:* a module that exists can be instantiated: its entry is there, its imports are offered, its
//! memory fits into a slot, and one compiler at least has taken it.

pub(crate) mod image;
pub(crate) mod inspect;
pub(crate) mod rewrite;

use std::sync::{Arc, OnceLock};

use wasmtime::{InstancePre, Val};

use crate::guest::{Guest, Strings};
use crate::limits::Limits;
use crate::module::image::Image;
use crate::outcome::Tier;

/// A deployed module. Clones are the same module.
#[derive(Clone)]
pub struct Module(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) id: u64,
    /// Which engine compiled it.
    pub(crate) owner: u64,
    /// As it is compiled.
    pub(crate) wasm: Vec<u8>,
    pub(crate) limits: Limits,
    pub(crate) image: Image,
    /// Image and globals after `_initialize`.
    pub(crate) initialised: OnceLock<(Image, Vec<Val>)>,
    pub(crate) reset: Reset,
    pub(crate) initialises: bool,
    pub(crate) status: bool,
    pub(crate) globals: usize,
    pub(crate) arguments: Arc<Strings>,
    pub(crate) environment: Arc<Strings>,
    pub(crate) baseline: OnceLock<InstancePre<Guest>>,
    pub(crate) optimised: OnceLock<InstancePre<Guest>>,
    /// Why the optimising compiler refused it in the background.
    pub(crate) refused: OnceLock<String>,
    pub(crate) notes: Vec<String>,
}

/// How an instance becomes fresh again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// Memory and globals are set back: all that its code can change.
    Restore,
    /// Its code changes tables or drops segments: a new instance is made.
    Instantiate,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module")
            .field("id", &self.0.id)
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}

impl Module {
    pub(crate) fn new(inner: Inner) -> Module {
        Module(Arc::new(inner))
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// What the function may have.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Bytes of its memory, which are those of its slot.
    pub fn memory(&self) -> u64 {
        self.image().bytes() as u64
    }

    /// How its instances become fresh again.
    pub fn reset(&self) -> Reset {
        self.0.reset
    }

    /// What was changed or found, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// Whether code of that compiler is there.
    pub fn has(&self, tier: Tier) -> bool {
        self.compiled(tier).is_some()
    }

    /// Why the optimising compiler refused it, if it did so in the background.
    pub fn refused(&self) -> Option<&str> {
        self.0.refused.get().map(String::as_str)
    }

    /// The fastest code that is there.
    pub fn best(&self) -> Tier {
        if self.has(Tier::Optimised) {
            Tier::Optimised
        } else {
            Tier::Baseline
        }
    }

    pub(crate) fn compiled(&self, tier: Tier) -> Option<&InstancePre<Guest>> {
        match tier {
            Tier::Baseline => self.0.baseline.get(),
            Tier::Optimised => self.0.optimised.get(),
        }
    }

    pub(crate) fn image(&self) -> &Image {
        self.0
            .initialised
            .get()
            .map_or(&self.0.image, |(image, _)| image)
    }

    pub(crate) fn initial_globals(&self) -> Option<&[Val]> {
        self.0
            .initialised
            .get()
            .map(|(_, globals)| globals.as_slice())
    }

    pub(crate) fn initialises_each_time(&self) -> bool {
        self.0.initialises && self.0.reset == Reset::Instantiate
    }

    pub(crate) fn gives_status(&self) -> bool {
        self.0.status
    }

    pub(crate) fn globals(&self) -> usize {
        self.0.globals
    }

    pub(crate) fn arguments(&self) -> &Arc<Strings> {
        &self.0.arguments
    }

    pub(crate) fn environment(&self) -> &Arc<Strings> {
        &self.0.environment
    }
}
