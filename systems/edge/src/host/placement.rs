//! Cores on which a function may be.
//!
//! A function that is suspended or degraded at the end of its budget holds its worker until it goes on, which no budget
//! tells: it has a core to itself, and is late for nobody else.
//!
//! *Invariant:* a core with such a function has no other.

use std::sync::Arc;

use super::{Deployed, HostError};
use crate::manifest::{Manifest, Overrun};

/// Why there is no core.
pub(super) const NO_CORE: &str = "a function whose overrun is \"suspend\" or \"degrade\" has a core to itself, and no core is left: choose \"stop\", or start the host with more cores";

/// Cores to be tried in turn; none within leaves it to the admission.
pub(super) fn cores<'a>(
    manifest: &Manifest,
    cores: u32,
    there: impl Iterator<Item = &'a Arc<Deployed>> + Clone,
) -> Result<Vec<Option<u32>>, HostError> {
    let lone = |manifest: &Manifest| manifest.overrun != Overrun::Stop;
    let new = lone(manifest);
    if !new && !there.clone().any(|other| lone(&other.manifest)) {
        return Ok(vec![manifest.core]);
    }
    let free = |core: u32| {
        let on = there.clone().filter(|other| other.core == core);
        !on.clone().any(|other| new || lone(&other.manifest))
    };
    let allowed: Vec<Option<u32>> = match manifest.core {
        // One that there is not is told of by the admission.
        Some(core) => Some(core)
            .into_iter()
            .filter(|core| free(*core))
            .map(Some)
            .collect(),
        None => (0..cores).filter(|core| free(*core)).map(Some).collect(),
    };
    match allowed.is_empty() {
        true => Err(HostError::NotAdmitted(NO_CORE.to_owned())),
        false => Ok(allowed),
    }
}
