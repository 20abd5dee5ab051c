//! Command queues of OpenCL as streams, markers as points in their work.
//!
//! Invariant: the timeline holds a reference to every queue that it follows, so that none of
//! them can be destroyed, and one to every marker that it keeps.

use core::ptr;

use cl3::command_queue::{
    enqueue_barrier_with_wait_list, enqueue_marker_with_wait_list, flush, release_command_queue,
    retain_command_queue,
};
use cl3::error_codes::CL_INVALID_COMMAND_QUEUE;
use cl3::event::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, cl_event, get_event_info, release_event,
    wait_for_events,
};

use super::{cl_command_queue, failed};
use crate::backend::process::Opened;
use crate::backend::timeline::tracked::{Events, Tracked};
use crate::backend::timeline::{Error, Stream, Ticket, Timeline};
use crate::backend::{self};

/// How far command queues have come.
///
/// A marker is a new event each time, as OpenCL has it; of each queue at most eight are kept.
#[derive(Debug)]
pub struct Queues(Tracked<Markers>);

// SAFETY: queues and events belong to no thread (see `OpenCl`).
unsafe impl Send for Queues {}

impl Queues {
    /// Follows at most `streams` queues.
    pub fn new(streams: usize) -> Self {
        let markers = Markers {
            opened: Opened::here(),
        };
        Queues(Tracked::new(markers, streams))
    }

    /// Follows a queue; one that is followed already keeps its name.
    ///
    /// # Safety
    /// `queue` must be a command queue of OpenCL that is not yet released.
    ///
    /// # Errors
    /// [`Error::Streams`], [`Error::Backend`].
    pub unsafe fn join(&mut self, queue: cl_command_queue) -> Result<Stream, Error> {
        self.0.join(queue)
    }
}

impl Timeline for Queues {
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

    /// Never: OpenCL has no graphs (`cl_khr_command_buffer` records into buffers, not queues).
    fn capturing(&mut self, stream: Stream) -> Result<bool, Error> {
        self.0.capturing(stream)
    }

    fn leave(&mut self, stream: Stream) -> Result<(), Error> {
        self.0.leave(stream)
    }
}

#[derive(Debug)]
struct Markers {
    opened: Opened,
}

impl Events for Markers {
    type Raw = cl_command_queue;
    type Event = cl_event;

    fn meet(&mut self, raw: Self::Raw) -> Result<(), backend::Error> {
        self.opened.check()?;
        // SAFETY: a queue, as the caller of `join` promises.
        unsafe { retain_command_queue(raw) }.map_err(failed("clRetainCommandQueue"))
    }

    fn part(&mut self, raw: Self::Raw) {
        if self.opened.check().is_ok() {
            // SAFETY: the reference that `meet` took; a refusal leaves nothing to be done.
            unsafe { release_command_queue(raw) }.ok();
        }
    }

    fn record(&mut self, raw: Self::Raw) -> Result<Self::Event, backend::Error> {
        self.opened.check()?;
        // SAFETY: the queue is referenced, and there is no list of events.
        let event = unsafe { enqueue_marker_with_wait_list(raw, 0, ptr::null()) }
            .map_err(failed("clEnqueueMarkerWithWaitList"))?;
        // Only what is flushed is sure to run without further calls, and may be waited for by
        // another queue (OpenCL 3.0, section 5.15).
        if let Err(code) = flush(raw) {
            self.retire(event);
            return Err(failed("clFlush")(code));
        }
        Ok(event)
    }

    fn retire(&mut self, event: Self::Event) {
        if self.opened.check().is_ok() {
            // SAFETY: the reference that came with the marker.
            unsafe { release_event(event) }.ok();
        }
    }

    /// Work that was terminated by an error has run, too: it uses no memory any more.
    fn has_run(&mut self, event: Self::Event) -> Result<bool, backend::Error> {
        self.opened.check()?;
        let status = get_event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS)
            .map_err(failed("clGetEventInfo"))?;
        Ok(i32::from(status) <= CL_COMPLETE)
    }

    fn wait(&mut self, event: Self::Event) -> Result<(), backend::Error> {
        self.opened.check()?;
        wait_for_events(&[event]).map_err(failed("clWaitForEvents"))
    }

    fn order(&mut self, raw: Self::Raw, event: Self::Event) -> Result<(), backend::Error> {
        self.opened.check()?;
        // SAFETY: queue and event are referenced, the list outlives the call, and the event that
        // is returned belongs to us.
        unsafe {
            enqueue_barrier_with_wait_list(raw, 1, &raw const event)
                .and_then(|barrier| release_event(barrier))
        }
        .map_err(failed("clEnqueueBarrierWithWaitList"))
    }

    fn capturing(&mut self, _: Self::Raw) -> Result<bool, backend::Error> {
        self.opened.check()?;
        Ok(false)
    }

    fn is_gone(error: &backend::Error) -> bool {
        let gone = i64::from(CL_INVALID_COMMAND_QUEUE);
        matches!(error, backend::Error::Device { code, .. } if *code == gone)
    }
}
