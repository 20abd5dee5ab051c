//! Timelines that the campaign drives, and an account of what has run that is kept beside them.
//!
//! Invariant of the account: work counts as run once a mark behind it was reported as completed,
//! waited for or left, and never before.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;

use metes_device::backend::timeline::{Error, Manual, Stream, Ticket, Timeline};

use crate::common::Random;
use crate::device::{Device, said};

/// Streams that a trial uses.
pub(crate) const STREAMS: usize = 4;

/// A timeline whose streams can be held up and let go.
pub(crate) trait Clock: Timeline {
    /// Follows the stream of that number, again if it was left.
    fn join(&mut self, number: usize) -> Result<Stream, String>;

    /// Lets the stream go on, or holds it up, as chance has it; `marks` are its last tickets.
    fn pass(
        &mut self,
        stream: Stream,
        marks: &BTreeMap<Ticket, u64>,
        random: &mut Random,
    ) -> Result<(), String>;

    /// Lets all streams go on.
    fn let_go(&mut self) -> Result<(), String>;

    /// Begins or ends a capture; whether the device has captures.
    fn capture(&mut self, stream: Stream, begins: bool) -> Result<bool, String>;
}

/// The timeline of a backend: its own, or where it has none one in software.
pub(crate) fn clock(device: Device) -> Result<Box<dyn Clock>, String> {
    match device {
        #[cfg(all(feature = "cuda", target_os = "linux"))]
        Device::Cuda => Ok(Box::new(cuda::Driven::new()?)),
        #[cfg(feature = "opencl")]
        Device::OpenCl => Ok(Box::new(opencl::Driven::new()?)),
        _ => Ok(Box::new(Manual::new(STREAMS))),
    }
}

impl Clock for Manual {
    fn join(&mut self, _: usize) -> Result<Stream, String> {
        Manual::join(self).map_err(said)
    }

    fn pass(
        &mut self,
        stream: Stream,
        marks: &BTreeMap<Ticket, u64>,
        random: &mut Random,
    ) -> Result<(), String> {
        let last = marks.len().min(8) as u64;
        if last == 0 {
            return Ok(());
        }
        let chosen = random.below(last) as usize;
        match marks.keys().nth_back(chosen) {
            // Where another stream's work holds it up it comes another time.
            Some(&ticket) => match self.complete(stream, ticket) {
                Ok(()) | Err(Error::Held { .. }) => Ok(()),
                Err(error) => Err(said(error)),
            },
            None => Ok(()),
        }
    }

    fn let_go(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn capture(&mut self, stream: Stream, begins: bool) -> Result<bool, String> {
        Manual::capture(self, stream, begins).map_err(said)?;
        Ok(true)
    }
}

/// Passes a timeline's calls on to the one inside; before it waits all streams go on.
#[cfg(any(feature = "cuda", feature = "opencl"))]
macro_rules! driven {
    ($type:ty) => {
        impl Timeline for $type {
            fn streams(&self) -> usize {
                self.inner.streams()
            }

            fn mark(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
                self.inner.mark(stream, ticket)
            }

            fn completed(&mut self, stream: Stream) -> Result<Ticket, Error> {
                self.inner.completed(stream)
            }

            fn wait(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
                // One thread waits and lets go: what is held up would never come.
                self.let_go().expect("a stream is let go");
                self.inner.wait(stream, ticket)
            }

            fn order(
                &mut self,
                waiter: Stream,
                other: Stream,
                ticket: Ticket,
            ) -> Result<(), Error> {
                self.inner.order(waiter, other, ticket)
            }

            fn capturing(&mut self, stream: Stream) -> Result<bool, Error> {
                self.inner.capturing(stream)
            }

            fn leave(&mut self, stream: Stream) -> Result<(), Error> {
                self.let_go().expect("a stream is let go");
                self.inner.leave(stream)
            }
        }
    };
}

#[cfg(all(feature = "cuda", target_os = "linux"))]
mod cuda {
    use core::ffi::{c_int, c_uint, c_void};
    use core::ptr;
    use std::collections::BTreeMap;

    use libloading::Library;
    use metes_device::backend::cuda::{CUstream, Cuda, Streams};
    use metes_device::backend::timeline::{Error, Stream, Ticket, Timeline};
    use metes_dry_device::library::Library as Model;

    use super::{Clock, STREAMS};
    use crate::common::Random;
    use crate::device::{on_gpu, said};

    type Handle = *mut c_void;

    /// Streams of the driver; those of its model can be held up.
    #[derive(Debug)]
    pub(super) struct Driven {
        inner: Streams,
        raw: Vec<CUstream>,
        held: [bool; STREAMS],
        calls: Calls,
        /// `None` on a GPU.
        model: Option<Model>,
    }

    /// What the campaign itself asks of the driver.
    #[allow(non_snake_case, reason = "names of the driver's interface")]
    #[derive(Debug)]
    struct Calls {
        cuStreamCreate: unsafe extern "C" fn(*mut CUstream, c_uint) -> c_int,
        cuStreamDestroy: unsafe extern "C" fn(CUstream) -> c_int,
        cuStreamBeginCapture: unsafe extern "C" fn(CUstream, c_uint) -> c_int,
        cuStreamEndCapture: unsafe extern "C" fn(CUstream, *mut Handle) -> c_int,
        /// Keeps the driver loaded.
        _library: Library,
    }

    impl Calls {
        /// Loads them, and makes the primary context this thread's.
        fn load() -> Result<Self, String> {
            type Retain = unsafe extern "C" fn(*mut Handle, c_int) -> c_int;
            type SetCurrent = unsafe extern "C" fn(Handle) -> c_int;
            // SAFETY: the driver is loaded already; the types are those of its header, and the
            // context that is made current is retained before.
            unsafe {
                let library = Library::new("libcuda.so.1").map_err(said)?;
                let retain: Retain = *library.get("cuDevicePrimaryCtxRetain").map_err(said)?;
                let set: SetCurrent = *library.get("cuCtxSetCurrent").map_err(said)?;
                let mut context = ptr::null_mut();
                done("cuDevicePrimaryCtxRetain", retain(&raw mut context, 0))?;
                done("cuCtxSetCurrent", set(context))?;
                Ok(Calls {
                    cuStreamCreate: *library.get("cuStreamCreate").map_err(said)?,
                    cuStreamDestroy: *library.get("cuStreamDestroy_v2").map_err(said)?,
                    cuStreamBeginCapture: *library.get("cuStreamBeginCapture_v2").map_err(said)?,
                    cuStreamEndCapture: *library.get("cuStreamEndCapture").map_err(said)?,
                    _library: library,
                })
            }
        }
    }

    fn done(call: &str, code: c_int) -> Result<(), String> {
        match code {
            0 => Ok(()),
            code => Err(format!("{call}: {code}")),
        }
    }

    impl Driven {
        pub(super) fn new() -> Result<Self, String> {
            // The device is open already; this user of it only has the timeline.
            let inner = Cuda::open(0)
                .map_err(said)?
                .streams(STREAMS)
                .map_err(said)?;
            let model = (!on_gpu()).then(Model::load).transpose().map_err(said)?;
            let calls = Calls::load()?;
            let mut raw = Vec::new();
            for _ in 0..STREAMS {
                let mut stream = ptr::null_mut();
                // SAFETY: a place for a stream; 1 is the kind that does not wait for the default
                // stream.
                done("cuStreamCreate", unsafe {
                    (calls.cuStreamCreate)(&raw mut stream, 1)
                })?;
                raw.push(stream);
            }
            Ok(Driven {
                inner,
                raw,
                held: [false; STREAMS],
                calls,
                model,
            })
        }

        fn hold(&mut self, number: usize, held: bool) -> Result<(), String> {
            let Some(model) = self.model else {
                return Ok(());
            };
            let stream = self.raw[number].cast();
            let answer = match held {
                true => model.hold(stream),
                false => model.release(stream),
            };
            self.held[number] = held;
            answer.map_err(|code| format!("the model: {code:?}"))
        }
    }

    driven!(Driven);

    impl Clock for Driven {
        fn join(&mut self, number: usize) -> Result<Stream, String> {
            // SAFETY: a stream of ours, which is destroyed after the timeline has left it.
            unsafe { self.inner.join(self.raw[number]) }.map_err(said)
        }

        fn pass(
            &mut self,
            stream: Stream,
            _: &BTreeMap<Ticket, u64>,
            _: &mut Random,
        ) -> Result<(), String> {
            let number = stream.slot();
            self.hold(number, !self.held[number])
        }

        fn let_go(&mut self) -> Result<(), String> {
            for number in 0..STREAMS {
                if self.held[number] {
                    self.hold(number, false)?;
                }
            }
            Ok(())
        }

        fn capture(&mut self, stream: Stream, begins: bool) -> Result<bool, String> {
            let raw = self.raw[stream.slot()];
            let mut graph = ptr::null_mut();
            // SAFETY: a stream of ours, and a place for a graph; 0 is the mode that forbids
            // other threads most.
            let code = unsafe {
                match begins {
                    true => (self.calls.cuStreamBeginCapture)(raw, 0),
                    false => (self.calls.cuStreamEndCapture)(raw, &raw mut graph),
                }
            };
            done("a capture", code)?;
            Ok(true)
        }
    }

    impl Drop for Driven {
        fn drop(&mut self) {
            let _ = self.let_go();
            for stream in &self.raw {
                // SAFETY: a stream of ours. The timeline that still follows it is dropped, and
                // only gives its events back.
                unsafe { (self.calls.cuStreamDestroy)(*stream) };
            }
        }
    }
}

#[cfg(feature = "opencl")]
mod opencl {
    use std::collections::BTreeMap;

    use cl3::event::{CL_COMPLETE, cl_event};
    use cl3::{command_queue, event};
    use metes_device::backend::opencl::{OpenCl, Queues, cl_command_queue};
    use metes_device::backend::timeline::{Error, Stream, Ticket, Timeline};

    use super::{Clock, STREAMS};
    use crate::common::Random;
    use crate::device::said;

    /// Queues that events of the host hold up.
    #[derive(Debug)]
    pub(super) struct Driven {
        inner: Queues,
        raw: Vec<cl_command_queue>,
        gates: [Option<cl_event>; STREAMS],
        opencl: OpenCl,
    }

    impl Driven {
        pub(super) fn new() -> Result<Self, String> {
            let opencl = OpenCl::open(0).map_err(said)?;
            let mut raw = Vec::new();
            for _ in 0..STREAMS {
                // SAFETY: the device is the context's.
                let queue = unsafe {
                    command_queue::create_command_queue(opencl.context(), opencl.device(), 0)
                };
                raw.push(queue.map_err(|code| format!("clCreateCommandQueue: {code}"))?);
            }
            Ok(Driven {
                inner: Queues::new(STREAMS),
                raw,
                gates: [None; STREAMS],
                opencl,
            })
        }

        fn open_gate(&mut self, number: usize) -> Result<(), String> {
            let Some(gate) = self.gates[number].take() else {
                return Ok(());
            };
            event::set_user_event_status(gate, CL_COMPLETE)
                .map_err(|code| format!("clSetUserEventStatus: {code}"))?;
            // SAFETY: our own reference.
            unsafe { event::release_event(gate) }.map_err(|code| format!("clReleaseEvent: {code}"))
        }
    }

    driven!(Driven);

    impl Clock for Driven {
        fn join(&mut self, number: usize) -> Result<Stream, String> {
            // SAFETY: a queue that is released after the timeline is dropped or has left it.
            unsafe { self.inner.join(self.raw[number]) }.map_err(said)
        }

        fn pass(
            &mut self,
            stream: Stream,
            _: &BTreeMap<Ticket, u64>,
            _: &mut Random,
        ) -> Result<(), String> {
            let number = stream.slot();
            if self.gates[number].is_some() {
                return self.open_gate(number);
            }
            let gate = event::create_user_event(self.opencl.context())
                .map_err(|code| format!("clCreateUserEvent: {code}"))?;
            self.gates[number] = Some(gate);
            // SAFETY: queue and event are alive; the barrier's own event is not needed.
            unsafe {
                command_queue::enqueue_barrier_with_wait_list(self.raw[number], 1, &raw const gate)
                    .and_then(|barrier| event::release_event(barrier))
            }
            .map_err(|code| format!("clEnqueueBarrierWithWaitList: {code}"))
        }

        fn let_go(&mut self) -> Result<(), String> {
            (0..STREAMS).try_for_each(|number| self.open_gate(number))
        }

        /// OpenCL has none.
        fn capture(&mut self, _: Stream, _: bool) -> Result<bool, String> {
            Ok(false)
        }
    }

    impl Drop for Driven {
        fn drop(&mut self) {
            let _ = self.let_go();
            for queue in &self.raw {
                // SAFETY: our own reference; the timeline has its own.
                unsafe { command_queue::release_command_queue(*queue) }.ok();
            }
        }
    }
}

/// A timeline beside which it is known what has run: each stream's work is numbered, and a mark,
/// a wait and an order say what lies behind what.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) clock: Box<dyn Clock>,
    /// By slot: work issued so far.
    pub(crate) issued: [u64; STREAMS],
    /// By slot, by ticket: work that was issued before the mark.
    marks: [BTreeMap<Ticket, u64>; STREAMS],
    /// By slot: with which work it runs behind another slot's (slot, work).
    orders: [Vec<(u64, usize, u64)>; STREAMS],
    /// By slot: the work that has surely run, as the host knows.
    pub(crate) ran: Rc<RefCell<Vec<u64>>>,
}

impl Account {
    pub(crate) fn new(clock: Box<dyn Clock>) -> Self {
        Account {
            clock,
            issued: [0; STREAMS],
            marks: Default::default(),
            orders: Default::default(),
            ran: Rc::new(RefCell::new(vec![0; STREAMS])),
        }
    }

    /// Work of a stream; its number.
    pub(crate) fn issue(&mut self, slot: usize) -> u64 {
        self.issued[slot] += 1;
        self.issued[slot]
    }

    pub(crate) fn pass(&mut self, stream: Stream, random: &mut Random) -> Result<(), String> {
        let Account { clock, marks, .. } = self;
        clock.pass(stream, &marks[stream.slot()], random)
    }

    /// The program waits for everything.
    pub(crate) fn synchronize(&mut self, streams: &[Stream]) -> Result<(), String> {
        self.clock.let_go()?;
        for stream in streams {
            let slot = stream.slot();
            if let Some((&ticket, _)) = self.marks[slot].last_key_value() {
                self.clock.wait(*stream, ticket).map_err(said)?;
            }
            self.ran.borrow_mut()[slot] = self.issued[slot];
        }
        Ok(())
    }

    /// The mark that a wait for a ticket waits for, as devices have events for marks only.
    fn mark_for(&self, slot: usize, ticket: Ticket) -> Ticket {
        let mark = self.marks[slot].range(ticket..).next();
        mark.map_or(ticket, |mark| *mark.0)
    }

    fn note(&mut self, slot: usize, ticket: Ticket) {
        let marks = &mut self.marks[slot];
        let done = marks.range(..=ticket).next_back();
        let Some((&ticket, &work)) = done else { return };
        let ran = &mut self.ran.borrow_mut()[slot];
        *ran = work.max(*ran);
        // What is asked of older tickets the last that has run answers.
        while marks
            .first_key_value()
            .is_some_and(|(old, _)| *old < ticket)
        {
            marks.pop_first();
        }
    }

    /// What of every stream's work has surely run before the work that `slot` issues next.
    pub(crate) fn before_next(&self, slot: usize) -> [u64; STREAMS] {
        let mut seen = [0; STREAMS];
        seen.copy_from_slice(&self.ran.borrow());
        seen[slot] = self.issued[slot];
        // Whatever ran or runs before that was itself ordered behind other work.
        loop {
            let mut more = false;
            for at in 0..STREAMS {
                for &(from, other, work) in &self.orders[at] {
                    if from <= seen[at] && seen[other] < work {
                        seen[other] = work;
                        more = true;
                    }
                }
            }
            if !more {
                return seen;
            }
        }
    }
}

impl Timeline for Account {
    fn streams(&self) -> usize {
        self.clock.streams()
    }

    fn mark(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        self.clock.mark(stream, ticket)?;
        let slot = stream.slot();
        self.marks[slot].insert(ticket, self.issued[slot]);
        Ok(())
    }

    fn completed(&mut self, stream: Stream) -> Result<Ticket, Error> {
        let ticket = self.clock.completed(stream)?;
        self.note(stream.slot(), ticket);
        Ok(ticket)
    }

    fn wait(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        let ticket = self.mark_for(stream.slot(), ticket);
        self.clock.wait(stream, ticket)?;
        self.note(stream.slot(), ticket);
        Ok(())
    }

    fn order(&mut self, waiter: Stream, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        let slot = stream.slot();
        let ticket = self.mark_for(slot, ticket);
        self.clock.order(waiter, stream, ticket)?;
        let before = self.marks[slot].range(..=ticket).next_back();
        let work = before.map_or(0, |mark| *mark.1);
        let ran = self.ran.borrow();
        self.orders[waiter.slot()].retain(|&(_, other, work)| ran[other] < work);
        // Running behind is work of its own: a mark after it is behind it.
        self.issued[waiter.slot()] += 1;
        let from = self.issued[waiter.slot()];
        self.orders[waiter.slot()].push((from, slot, work));
        Ok(())
    }

    fn capturing(&mut self, stream: Stream) -> Result<bool, Error> {
        self.clock.capturing(stream)
    }

    fn leave(&mut self, stream: Stream) -> Result<(), Error> {
        self.clock.leave(stream)?;
        let slot = stream.slot();
        self.ran.borrow_mut()[slot] = self.issued[slot];
        self.marks[slot].clear();
        Ok(())
    }
}
