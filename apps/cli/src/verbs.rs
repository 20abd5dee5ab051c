//! One module a verb: what it reads, which library does the work, what it shows.

pub(crate) mod bounds;
pub(crate) mod completions;
pub(crate) mod curve;
pub(crate) mod device;
pub(crate) mod edge;
pub(crate) mod emit;
pub(crate) mod evaluate;
pub(crate) mod explore;
pub(crate) mod leon3;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod mesh;
pub(crate) mod mission;
pub(crate) mod pages;
pub(crate) mod power;
pub(crate) mod power_models;
pub(crate) mod profile;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod trace;
pub(crate) mod tune;
pub(crate) mod worst;
