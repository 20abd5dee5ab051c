//! Why a space cannot be explored.

use metes_heap::description::Invalid;

/// Why a space cannot be explored; says the cause and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpaceError {
    /// The text is at fault.
    #[error("{0}")]
    Text(metes_config::Error),
    /// More grid points than can be numbered.
    #[error(
        "the space has {structures} structures and up to {kinds} kinds of pools; \
         at most {most} of each can be numbered: list fewer values"
    )]
    TooLarge {
        /// Grid points of structures.
        structures: u128,
        /// Grid points of the kinds of one family.
        kinds: u128,
        /// The most of each.
        most: u128,
    },
    /// No grid point is a heap.
    #[error("no point of the space is a heap: {0}; list other values")]
    NoPoint(Invalid),
}

impl From<metes_config::Error> for SpaceError {
    fn from(error: metes_config::Error) -> Self {
        SpaceError::Text(error)
    }
}
