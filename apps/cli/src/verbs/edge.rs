//! `metes edge`.

mod check;

use crate::arguments::{Edge, EdgeAction};
use crate::error::Failure;

pub(crate) fn run(arguments: &Edge, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        EdgeAction::Check(arguments) => check::run(arguments, json),
    }
}
