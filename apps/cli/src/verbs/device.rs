//! `metes device`.

mod bench;
mod cuda;
mod fit;
mod watch;

use crate::arguments::{Device, DeviceAction};
use crate::error::Failure;

pub(crate) fn run(arguments: &Device, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        DeviceAction::Bench(arguments) => match arguments.cuda {
            Some(ordinal) => cuda::run(ordinal, arguments, json),
            None => bench::run(arguments, json),
        },
        DeviceAction::Fit(arguments) => fit::run(arguments, json),
        DeviceAction::Watch(arguments) => watch::run(arguments, json),
    }
}
