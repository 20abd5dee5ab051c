//! The tasks, a function each with a name that tools find in the image.
//!
//! *Invariant:* a task is `task_` and its name in the declaration, and does nothing beside its activation.

use metes_duster_application::Control;
use metes_duster_application::acquisition::Acquisition;

use crate::front::Probes;
use crate::hardware::Devices;

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
pub(crate) fn field(acquisition: &mut Acquisition, probes: &Probes) {
    acquisition.field(probes);
}

#[inline(never)]
#[unsafe(export_name = "task_snapshot")]
pub(crate) fn snapshot(acquisition: &mut Acquisition) {
    acquisition.snapshot();
}

#[inline(never)]
#[unsafe(export_name = "task_orders")]
pub(crate) fn orders(acquisition: &mut Acquisition, probes: &mut Probes) {
    acquisition.orders(probes);
}

#[inline(never)]
#[unsafe(export_name = "task_telemetry")]
pub(crate) fn telemetry(control: &mut Control, devices: &mut Devices) {
    control.telemetry(devices);
}

#[inline(never)]
#[unsafe(export_name = "task_store")]
pub(crate) fn store(control: &mut Control, devices: &mut Devices) {
    control.store(devices);
}

#[inline(never)]
#[unsafe(export_name = "task_ingest")]
pub(crate) fn ingest(control: &mut Control, devices: &mut Devices) {
    control.ingest(devices);
}

#[inline(never)]
#[unsafe(export_name = "task_supplies")]
pub(crate) fn supplies(control: &mut Control, devices: &mut Devices) {
    control.supplies(devices);
}

#[inline(never)]
#[unsafe(export_name = "task_schedule")]
pub(crate) fn schedule(control: &mut Control, devices: &mut Devices) {
    control.schedule(devices);
}

#[inline(never)]
#[unsafe(export_name = "task_fdir")]
pub(crate) fn fdir(control: &mut Control, devices: &mut Devices) {
    control.fdir(devices);
}

#[inline(never)]
#[unsafe(export_name = "task_housekeeping")]
pub(crate) fn housekeeping(control: &mut Control, devices: &mut Devices) {
    control.housekeeping(devices);
}

#[inline(never)]
#[unsafe(export_name = "task_log")]
pub(crate) fn log(control: &mut Control, devices: &mut Devices) {
    control.log(devices);
}
