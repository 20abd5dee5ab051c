//! The tasks, a function each with a name that tools find in the image.
//!
//! *Invariant:* a task is `task_` and its name in the declaration, and does nothing beside its activation.

use metes_duster_application::acquisition::Acquisition;

use crate::front::Probes;

#[inline(never)]
#[unsafe(export_name = "task_acquire")]
pub(crate) fn acquire(acquisition: &mut Acquisition, probes: &mut Probes) {
    acquisition.acquire(probes);
}

#[inline(never)]
#[unsafe(export_name = "task_detect")]
pub(crate) fn detect(acquisition: &mut Acquisition, probes: &mut Probes) {
    acquisition.detect(probes);
}

#[inline(never)]
#[unsafe(export_name = "task_sweep")]
pub(crate) fn sweep(acquisition: &mut Acquisition, probes: &mut Probes) {
    acquisition.sweep(probes);
}

#[inline(never)]
#[unsafe(export_name = "task_field")]
pub(crate) fn field(acquisition: &mut Acquisition) {
    acquisition.field();
}

#[inline(never)]
#[unsafe(export_name = "task_orders")]
pub(crate) fn orders(acquisition: &mut Acquisition, probes: &mut Probes) {
    acquisition.orders(probes);
}
