//! `metes reproduce edge-fig-1`, `edge-fig-2` and `edge-fig-3`.

use metes_edge_lab::reproduce::{Effort, Place, fig_1, fig_2, fig_3};
use metes_lab::Report;

use crate::error::Failure;
use crate::libraries;
use crate::verbs::edge::lab;

pub(super) fn run(figure: &str, quick: bool, tell: &dyn Fn(&str)) -> Result<Report, Failure> {
    let effort = match quick {
        true => Effort::Quick,
        false => Effort::Whole,
    };
    let (directory, preload) = (lab::scratch()?, libraries::preload().ok());
    let place = Place {
        runner: lab::own_runner()?,
        preload: preload.as_deref(),
        directory: directory.path(),
    };
    match figure {
        "edge-fig-1" => fig_1(effort, &place, tell),
        "edge-fig-2" => fig_2(effort, &place, tell),
        _ => fig_3(effort, &place, tell),
    }
    .map_err(lab::fail)
}
