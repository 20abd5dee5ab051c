//! Why a heap of handles does not serve a request.

use core::fmt;

use super::handles::BadHandle;

/// Why no block was allocated. The heap is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The request exceeds the largest class.
    TooLarge,
    /// No class has page-blocks so aligned.
    Alignment,
    /// No page or no handle is left.
    Exhausted,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::TooLarge => "the request exceeds the largest size class",
            Refused::Alignment => "no size class is so aligned",
            Refused::Exhausted => "no page or no handle is left",
        })
    }
}

impl core::error::Error for Refused {}

/// Why a block was not resized: its handle, or what refused the new size (`R`). It is as it
/// was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize<R = Refused> {
    /// The handle is bad, or its block pinned.
    Handle(BadHandle),
    /// There is no room of the new size.
    Refused(R),
}

impl<R> From<BadHandle> for Resize<R> {
    fn from(bad: BadHandle) -> Self {
        Resize::Handle(bad)
    }
}

impl From<Refused> for Resize {
    fn from(refused: Refused) -> Self {
        Resize::Refused(refused)
    }
}

impl<R: fmt::Display> fmt::Display for Resize<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resize::Handle(bad) => bad.fmt(f),
            Resize::Refused(refused) => refused.fmt(f),
        }
    }
}

impl<R: fmt::Debug + fmt::Display> core::error::Error for Resize<R> {}
