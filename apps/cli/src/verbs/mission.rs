//! `metes mission`.

mod check;
mod fit;
mod fly;
mod heaps;
mod serve;
mod storm;

use metes_duster::{Unit, image};
use metes_duster_system::System;
use metes_leon3::Model;

use crate::arguments::{Mission, MissionAction, MissionModel, MissionUnit};
use crate::error::Failure;

pub(crate) fn run(arguments: &Mission, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        MissionAction::Run(arguments) => fly::run(arguments, json),
        MissionAction::Check(arguments) => check::run(arguments, json),
        MissionAction::Fit(arguments) => fit::run(arguments, json),
        MissionAction::Heaps(arguments) => heaps::run(arguments, json),
        MissionAction::Storm(arguments) => storm::run(arguments, json),
        MissionAction::Serve(arguments) => serve::run(arguments, json),
    }
}

fn model(model: MissionModel) -> (Model, &'static str) {
    match model {
        MissionModel::Caches => (Model::Caches, "caches"),
        MissionModel::Flat => (Model::Flat, "flat"),
    }
}

fn unit(arguments: &MissionUnit, system: &System) -> Result<Unit, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::input(error.to_string());
    let (image, _) = image(arguments.image.as_deref()).map_err(|error| failed(&error))?;
    Unit::new(system, image, model(arguments.model).0, arguments.seed)
        .map_err(|error| failed(&error))
}
