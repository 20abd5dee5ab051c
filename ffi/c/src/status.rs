//! How calls on heaps of handles end.
//!
//! Invariant: [`Status`] has the variants of `metes_compact_status` in the same order.

use core::ffi::CStr;

use metes_heap::compact::{BadHandle, Refused, Resize};

/// `metes_compact_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Done.
    Ok,
    /// A pointer that must not be is NULL.
    Null,
    /// The handle is of another heap, or of none.
    Foreign,
    /// The block was freed.
    Stale,
    /// The block is pinned.
    Pinned,
    /// The block is not pinned.
    NotPinned,
    /// The block has as many pins as can be counted.
    TooManyPins,
    /// The access runs over the end of the block.
    Outside,
    /// The request exceeds the largest class.
    TooLarge,
    /// The alignment is no power of two, or no class has it.
    Alignment,
    /// No page or no handle is left.
    Exhausted,
    /// The number is that of no move.
    NoMove,
    /// The heap is corrupt.
    Corrupt,
}

impl Status {
    pub(crate) const fn text(self) -> &'static CStr {
        match self {
            Status::Ok => c"done",
            Status::Null => c"a pointer is NULL that must not be",
            Status::Foreign => c"the handle is of another heap, or of none",
            Status::Stale => c"the handle is stale: its block was freed",
            Status::Pinned => c"the block is pinned: unpin it first",
            Status::NotPinned => c"the block is not pinned",
            Status::TooManyPins => c"the block has as many pins as can be counted",
            Status::Outside => c"the access runs over the end of the block",
            Status::TooLarge => c"the request exceeds the largest size class",
            Status::Alignment => c"the alignment is no power of two, or no size class has it",
            Status::Exhausted => c"no page or no handle is left",
            Status::NoMove => c"the number is that of no move",
            Status::Corrupt => c"the heap is corrupt: something wrote past its block",
        }
    }

    /// Every status, by its number.
    pub(crate) const ALL: [Status; 13] = [
        Status::Ok,
        Status::Null,
        Status::Foreign,
        Status::Stale,
        Status::Pinned,
        Status::NotPinned,
        Status::TooManyPins,
        Status::Outside,
        Status::TooLarge,
        Status::Alignment,
        Status::Exhausted,
        Status::NoMove,
        Status::Corrupt,
    ];
}

impl From<BadHandle> for Status {
    fn from(bad: BadHandle) -> Self {
        match bad {
            BadHandle::Foreign => Status::Foreign,
            BadHandle::Stale => Status::Stale,
            BadHandle::Pinned => Status::Pinned,
            BadHandle::NotPinned => Status::NotPinned,
            BadHandle::TooManyPins => Status::TooManyPins,
            BadHandle::Outside => Status::Outside,
        }
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::TooLarge => Status::TooLarge,
            Refused::Alignment => Status::Alignment,
            Refused::Exhausted => Status::Exhausted,
        }
    }
}

impl From<Resize> for Status {
    fn from(resize: Resize) -> Self {
        match resize {
            Resize::Handle(bad) => bad.into(),
            Resize::Refused(refused) => refused.into(),
        }
    }
}
