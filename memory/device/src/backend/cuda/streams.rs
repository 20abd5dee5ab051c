//! Streams of CUDA and events as points in their work.
//!
//! Invariant: all events are made with the timeline; each is either spare or a point of one
//! stream. There is one more than all streams can have points, so that a spare is always there.

use core::ffi::c_int;
use core::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUevent, CUevent_flags, CUresult, CUstream, CUstreamCaptureStatus};

use super::{Context, code};
use crate::backend;
use crate::backend::timeline::tracked::{DEPTH, Events, Tracked};
use crate::backend::timeline::{Error, Stream, Ticket, Timeline};

/// How far streams have come.
#[derive(Debug)]
pub struct Streams(Tracked<Recorded>);

// SAFETY: streams and events belong to no thread; calls on them may come from any.
unsafe impl Send for Streams {}

impl Streams {
    pub(super) fn new(context: Arc<Context>, streams: usize) -> Result<Self, backend::Error> {
        let mut recorded = Recorded {
            context,
            spares: Vec::with_capacity(streams * DEPTH + 1),
        };
        for _ in 0..streams * DEPTH + 1 {
            let mut event = ptr::null_mut();
            let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
            // SAFETY: a place for one event.
            recorded.context.call("cuEventCreate", |driver| unsafe {
                (driver.cuEventCreate)(&raw mut event, flags)
            })?;
            recorded.spares.push(event);
        }
        Ok(Streams(Tracked::new(recorded, streams)))
    }

    /// Follows a stream of the device; one that is followed already keeps its name. Null is the
    /// default stream.
    ///
    /// # Safety
    /// `stream` must be null or a stream of the device's primary context, and is not destroyed
    /// before the timeline [leaves](Timeline::leave) it or is dropped. The driver reports most
    /// uses of a destroyed stream, which are [`Error::NoStream`], but promises nothing. The
    /// default stream of each thread (`CU_STREAM_PER_THREAD`) is not one stream.
    ///
    /// # Errors
    /// [`Error::Streams`], [`Error::Backend`] if the driver knows no such stream.
    pub unsafe fn join(&mut self, stream: CUstream) -> Result<Stream, Error> {
        self.0.join(stream)
    }
}

impl Timeline for Streams {
    fn streams(&self) -> usize {
        self.0.streams()
    }

    fn mark(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        self.0.mark(stream, ticket)
    }

    fn completed(&mut self, stream: Stream) -> Result<Ticket, Error> {
        self.0.completed(stream)
    }

    fn wait(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        self.0.wait(stream, ticket)
    }

    fn order(&mut self, waiter: Stream, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        self.0.order(waiter, stream, ticket)
    }

    fn capturing(&mut self, stream: Stream) -> Result<bool, Error> {
        self.0.capturing(stream)
    }

    fn leave(&mut self, stream: Stream) -> Result<(), Error> {
        self.0.leave(stream)
    }
}

#[derive(Debug)]
struct Recorded {
    context: Arc<Context>,
    spares: Vec<CUevent>,
}

impl Events for Recorded {
    type Raw = CUstream;
    type Event = CUevent;

    /// Asks the driver about the stream, so that one it does not know is refused.
    fn meet(&mut self, raw: Self::Raw) -> Result<(), backend::Error> {
        self.capturing(raw).map(drop)
    }

    fn part(&mut self, _: Self::Raw) {}

    fn record(&mut self, raw: Self::Raw) -> Result<Self::Event, backend::Error> {
        let event = self.spares.pop().expect("one event more than points");
        // SAFETY: an event of ours, which stands for no other point, and a stream that the
        // caller of `join` keeps.
        let recorded = self.context.call("cuEventRecord", |driver| unsafe {
            (driver.cuEventRecord)(event, raw)
        });
        if recorded.is_err() {
            self.spares.push(event);
        }
        recorded.map(|()| event)
    }

    fn retire(&mut self, event: Self::Event) {
        self.spares.push(event);
    }

    fn has_run(&mut self, event: Self::Event) -> Result<bool, backend::Error> {
        // SAFETY: an event of ours.
        let answer = self.context.call("cuEventQuery", |driver| unsafe {
            (driver.cuEventQuery)(event)
        });
        match answer {
            Ok(()) => Ok(true),
            Err(error) if code(&error) == Some(CUresult::CUDA_ERROR_NOT_READY) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn wait(&mut self, event: Self::Event) -> Result<(), backend::Error> {
        // SAFETY: an event of ours.
        self.context.call("cuEventSynchronize", |driver| unsafe {
            (driver.cuEventSynchronize)(event)
        })
    }

    fn order(&mut self, raw: Self::Raw, event: Self::Event) -> Result<(), backend::Error> {
        // SAFETY: an event of ours and a stream that the caller of `join` keeps. The wait is for
        // the record that the event stands for now, whatever it is recorded for later.
        self.context.call("cuStreamWaitEvent", |driver| unsafe {
            (driver.cuStreamWaitEvent)(raw, event, 0)
        })
    }

    fn capturing(&mut self, raw: Self::Raw) -> Result<bool, backend::Error> {
        let mut status: c_int = 0;
        // SAFETY: a stream that the caller of `join` keeps, and a place for a status.
        let answer = self.context.call("cuStreamIsCapturing", |driver| unsafe {
            (driver.cuStreamIsCapturing)(raw, &raw mut status)
        });
        let none = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE as c_int;
        match answer {
            Ok(()) => Ok(status != none),
            // The default stream must not be touched while a stream that waits for it is captured.
            Err(error) if code(&error) == Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) => {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn is_gone(error: &backend::Error) -> bool {
        matches!(
            code(error),
            Some(CUresult::CUDA_ERROR_INVALID_HANDLE | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED)
        )
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        for event in &self.spares {
            // SAFETY: an event of ours, destroyed once. A driver that refuses leaves nothing to
            // be done.
            drop(self.context.call("cuEventDestroy", |driver| unsafe {
                (driver.cuEventDestroy_v2)(*event)
            }));
        }
    }
}
