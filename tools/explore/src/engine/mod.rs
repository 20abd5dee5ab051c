//! Exploration of a described space: whole where that is affordable, by search
//! where it is not.
//!
//! The *seed phase* replays the heaps to compare with and a fixed number of
//! configurations that a local search picks. Its front ends replays early from
//! the first configuration on. Then the space is done in *units* of
//! [`UNIT`] consecutive numbers.
//!
//! Invariant: the rows of a unit are a function of trace, space, options, seed
//! phase and the unit's number alone. So whoever computes a unit, on however
//! many workers, in whatever order and after however many interruptions, the
//! same bytes come out; and ending replays early changes no point of the front.

pub mod contest;
mod course;
mod dialogue;
mod document;
mod evaluate;
mod explorer;
mod finish;
mod folder;
pub mod hypervolume;
mod local;
mod nsga2;
mod objective;
mod results;
mod row;
mod searcher;
mod seed;
mod shortage;

pub(crate) use course::Course;
pub use dialogue::{Answer, Dialogue, QuestionError, SpaceAxes};
pub use document::{Detail, Found, Heap, Volume, describe_front};
pub use evaluate::Evaluator;
pub(crate) use evaluate::{Ended, Time, Watch};
pub use explorer::{Explorer, Method, Plan, Progress, Shard, Work};
pub use finish::{EXPLORATION, RESULTS, finish};
pub(crate) use folder::trace_hash;
pub use folder::{EngineError, Folder, Manifest, Origin};
pub use local::LocalSearch;
pub use nsga2::Nsga2;
pub use objective::{Front, Objective, ObjectiveSet, Point};
pub use results::{SCHEMA_VERSION, Source, Summary, write_results};
pub use row::{Form, Metrics, NO_GUARANTEE, Row, Status, decode_rows, encode_rows};
pub use searcher::{RandomSearch, Searcher};
pub use seed::Seed;
pub use shortage::{LevelShortage, level_shortages};

/// Consecutive numbers that are done together.
pub const UNIT: u64 = 1024;
