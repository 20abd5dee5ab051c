//! `metes edge`.

mod check;
pub(crate) mod lab;

use crate::arguments::{Edge, EdgeAction};
use crate::error::Failure;

pub(crate) fn run(arguments: &Edge, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        EdgeAction::Check(arguments) => check::run(arguments, json),
        EdgeAction::Lab(arguments) => lab::run(arguments, json),
        EdgeAction::Runner(arguments) => Ok(lab::runner(arguments)),
    }
}
