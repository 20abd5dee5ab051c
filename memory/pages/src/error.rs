//! Why an operation on pages was refused.

use core::fmt;

/// Why an operation on pages was refused. Whatever it was to change is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A region of no pages.
    Empty,
    /// A page, or the end of a region, beyond the space.
    Beyond,
    /// The space has pages already.
    Open,
    /// A region over pages that are allocated, or into an allocated region.
    Overlap,
    /// No allocated region there; for unmapping: none that begins there.
    Unmapped,
    /// The region does not allow this access.
    Rights,
    /// The page is allocated, not mapped: a page fault.
    Absent,
    /// The page is mapped already.
    Present,
    /// All frames are used.
    NoFrame,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a region has at least one page",
            Self::Beyond => "beyond the end of the address space",
            Self::Open => "the address space has its pages already",
            Self::Overlap => "pages of this region are allocated already: unmap their region first",
            Self::Unmapped => {
                "no allocated region: map one that holds the page, unmap from its first page"
            }
            Self::Rights => "the region's rights do not allow this access",
            Self::Absent => "page fault: the page is allocated and not mapped yet",
            Self::Present => "the page is mapped already",
            Self::NoFrame => "no free frame: unmap a region first",
        })
    }
}

impl core::error::Error for Error {}
