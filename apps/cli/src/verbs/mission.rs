//! `metes mission`.

mod check;
mod fit;

use crate::arguments::{Mission, MissionAction};
use crate::error::Failure;

pub(crate) fn run(arguments: &Mission, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        MissionAction::Check(arguments) => check::run(arguments, json),
        MissionAction::Fit(arguments) => fit::run(arguments, json),
    }
}
