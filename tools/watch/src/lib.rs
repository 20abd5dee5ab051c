//! The live view of a device heap.
//!
//! A [`Watcher`] looks at a [`Board`](metes_board::Board) again and again, and makes a [`View`] of each
//! moment: figures, rates since the look before, a map of the addresses, and a short history.
//! [`picture`] draws one for a terminal, [`page`] as a file, [`router`] answers a browser.
//!
//! Invariant: all figures of a view are of one moment of the heap, but for the history.

mod map;
mod page;
mod picture;
mod serve;
mod view;

pub use map::{Cell, Fill, cells, largest_free_run};
pub use page::{CELLS, page};
pub use picture::{Screen, picture};
pub use serve::{Latest, router};
pub use view::{Counts, Pages, Point, Process, Rates, View, Watcher};
