//! Regions on the machine that the tests run on.

mod behaviour;
mod model;
mod support;
