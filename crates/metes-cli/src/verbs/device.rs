//! `metes device`.

mod bench;
mod fit;
mod watch;

use crate::arguments::{Device, DeviceAction};
use crate::error::Failure;

pub(crate) fn run(arguments: &Device, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        DeviceAction::Bench(arguments) => bench::run(arguments, json),
        DeviceAction::Fit(arguments) => fit::run(arguments, json),
        DeviceAction::Watch(arguments) => watch::run(arguments, json),
    }
}
