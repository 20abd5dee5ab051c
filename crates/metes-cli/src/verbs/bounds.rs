//! `metes bounds`.

use metes_config::StoreKind;
use metes_heap::bounds::{Bound, Demand, Geometry, bound_of};
use serde_json::{Value, json};

use crate::arguments::Bounds;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{BOLD, DIM};
use crate::quantity::{bytes, grouped, ratio};
use crate::{heap, output};
