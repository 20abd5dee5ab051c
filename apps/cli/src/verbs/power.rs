//! `metes power`.

mod check;
mod explore;
mod plan;

use std::path::Path;

use metes_power::System;

use crate::arguments::{Power, PowerAction};
use crate::error::Failure;
use crate::output;
use crate::verbs::power_models as models;

pub(crate) fn run(arguments: &Power, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        PowerAction::Check(arguments) => check::run(arguments, json),
        PowerAction::Plan(arguments) => plan::run(arguments, json),
        PowerAction::Explore(arguments) => explore::run(arguments, json),
        PowerAction::Fit(arguments) => models::fit::run(arguments, json),
        PowerAction::Predict(arguments) => models::predict::run(arguments, json),
        PowerAction::Measure(arguments) => models::measure::run(arguments, json),
        PowerAction::Apply(arguments) => models::apply::run(arguments, json),
    }
}

fn system(path: &Path) -> Result<System, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))?;
    System::parse(&text).map_err(|error| about(path, error))
}

fn about(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::input(format!("{}: {error}", output::name(path)))
}
