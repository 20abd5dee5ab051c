//! `metes power`.

use crate::arguments::{Power, PowerAction};
use crate::error::Failure;

use super::power_models as models;

pub(crate) fn run(arguments: &Power, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        PowerAction::Fit(arguments) => models::fit::run(arguments, json),
        PowerAction::Predict(arguments) => models::predict::run(arguments, json),
        PowerAction::Measure(arguments) => models::measure::run(arguments, json),
        PowerAction::Apply(arguments) => models::apply::run(arguments, json),
    }
}
