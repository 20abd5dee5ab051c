//! `metes edge`.

mod check;
mod client;
pub(crate) mod lab;
mod serve;

use crate::arguments::{Edge, EdgeAction};
use crate::error::Failure;

pub(crate) fn run(arguments: &Edge, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        EdgeAction::Check(arguments) => check::run(arguments, json),
        EdgeAction::Serve(arguments) => serve::run(arguments, json),
        EdgeAction::Deploy(arguments) => client::deploy(arguments, json),
        EdgeAction::Invoke(arguments) => client::invoke(arguments, json),
        EdgeAction::List(arguments) => client::list(&arguments.host, json),
        EdgeAction::Top(arguments) => client::top(&arguments.host, json),
        EdgeAction::Remove(arguments) => client::remove(&arguments.name, &arguments.host, json),
        EdgeAction::Lab(arguments) => lab::run(arguments, json),
        EdgeAction::Runner(arguments) => Ok(lab::runner(arguments)),
    }
}
