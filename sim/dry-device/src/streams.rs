//! Streams and events as a model: work in program order, done at once unless a stream is held.
//!
//! A device works through a stream some time after the host put work into it. Here work is done
//! as soon as it is put in and what it waits for is done; [`Streams::hold`] keeps a stream from
//! doing any until [`Streams::let_go`], so that a test sees every order that the rules of streams
//! allow. A host that synchronises waits until work is done, so for it the clock advances past a
//! hold.
//!
//! Invariants:
//! - work of a stream is done in the order in which it came;
//! - an event is complete when all work put into its stream before its record is;
//! - a wait in a stream keeps back what comes later in that stream, and nothing else;
//! - the default stream and the blocking streams wait for each other.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

use crate::error::{Answer, Code};

/// A stream, by a number that is never used again.
pub type StreamId = u64;

/// The default stream.
pub const DEFAULT: StreamId = 0;
/// Streams and events are handed out as numbers from here on: no address, and no small number.
const FIRST_ID: u64 = 0x6d65_0000_0000_1000;
const ID_STEP: u64 = 16;

/// Work up to here: everything put into a stream before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The stream.
    pub stream: StreamId,
    /// How many pieces of work.
    pub position: u64,
}

/// What a stream does, apart from waiting: the device's business.
pub trait Work {
    /// What it is done to.
    type On;
    /// Does it.
    ///
    /// # Errors
    /// A fault, which ends the context.
    fn perform(self, on: &mut Self::On) -> Answer;
}

#[derive(Debug)]
enum Item<W> {
    /// Nothing after this before that point is reached.
    Wait(Point),
    /// An event: its time is now.
    Record(u64),
    Work(W),
}

#[derive(Debug)]
struct Stream<W> {
    queue: VecDeque<Item<W>>,
    /// Pieces of work put in, and done, ever.
    submitted: u64,
    completed: u64,
    held: bool,
    /// Waits for the default stream, and is waited for.
    blocking: bool,
    /// The recording that it is part of.
    capture: Option<u64>,
    /// The program destroyed it: gone when its work is done.
    destroyed: bool,
    priority: i32,
}

impl<W> Stream<W> {
    fn new(blocking: bool, priority: i32) -> Self {
        Stream {
            queue: VecDeque::new(),
            submitted: 0,
            completed: 0,
            held: false,
            blocking,
            capture: None,
            destroyed: false,
            priority,
        }
    }
}

/// How a recording treats calls that could break it, in this thread and others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
pub enum CaptureMode {
    /// Refuses them in every thread.
    #[default]
    Global = 0,
    /// Refuses them in the thread that records.
    ThreadLocal = 1,
    /// Allows them.
    Relaxed = 2,
}

#[derive(Debug)]
struct Capture {
    origin: StreamId,
    mode: CaptureMode,
    invalid: bool,
    /// Pieces of work recorded.
    nodes: u64,
}

/// What a stream records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capturing {
    /// Nothing.
    No,
    /// A graph: the number of the recording.
    Active(u64),
    /// A graph that was invalidated.
    Invalid(u64),
}

#[derive(Clone, Copy, Debug)]
enum Recorded {
    Never,
    At(Point),
    Captured(u64),
}

#[derive(Debug)]
struct Event {
    recorded: Recorded,
    timed: bool,
    /// When the record was done.
    time: Option<Instant>,
}

/// All streams and events of a context.
#[derive(Debug)]
pub struct Streams<W> {
    streams: BTreeMap<StreamId, Stream<W>>,
    events: HashMap<u64, Event>,
    captures: BTreeMap<u64, Capture>,
    next: u64,
    /// Items in queues: while there are none, nothing needs to be looked for.
    waiting: usize,
}

impl<W: Work> Default for Streams<W> {
    fn default() -> Self {
        Streams {
            streams: BTreeMap::from([(DEFAULT, Stream::new(true, 0))]),
            events: HashMap::new(),
            captures: BTreeMap::new(),
            next: FIRST_ID,
            waiting: 0,
        }
    }
}

impl<W: Work> Streams<W> {
    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += ID_STEP;
        number
    }

    fn stream(&self, id: StreamId) -> Answer<&Stream<W>> {
        let stream = self.streams.get(&id).filter(|stream| !stream.destroyed);
        stream.ok_or(Code::InvalidHandle)
    }

    fn stream_mut(&mut self, id: StreamId) -> Answer<&mut Stream<W>> {
        let stream = self.streams.get_mut(&id).filter(|stream| !stream.destroyed);
        stream.ok_or(Code::InvalidHandle)
    }

    /// A new stream. A blocking one waits for the default stream, and the other way round.
    pub fn create(&mut self, blocking: bool, priority: i32) -> StreamId {
        let id = self.number();
        self.streams.insert(id, Stream::new(blocking, priority));
        id
    }

    /// Ends a stream; what it still has to do is done all the same.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is none, or it is the default stream.
    pub fn destroy(&mut self, id: StreamId) -> Answer {
        if id == DEFAULT {
            return Err(Code::InvalidHandle);
        }
        self.stream_mut(id)?.destroyed = true;
        self.bury(id);
        Ok(())
    }

    fn bury(&mut self, id: StreamId) {
        // Points of a stream that is gone count as reached.
        if let Some(stream) = self.streams.get(&id)
            && stream.destroyed
            && stream.queue.is_empty()
        {
            self.streams.remove(&id);
        }
    }

    /// The priority that a stream was made with.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such stream.
    pub fn priority(&self, id: StreamId) -> Answer<i32> {
        Ok(self.stream(id)?.priority)
    }

    /// Whether a stream waits for the default stream.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such stream.
    pub fn is_blocking(&self, id: StreamId) -> Answer<bool> {
        Ok(self.stream(id)?.blocking)
    }

    /// Whether a stream has no work left.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such stream.
    pub fn is_idle(&self, id: StreamId) -> Answer<bool> {
        Ok(self.stream(id)?.queue.is_empty())
    }

    /// Keeps a stream from doing work.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such stream.
    pub fn hold(&mut self, id: StreamId) -> Answer {
        self.stream_mut(id)?.held = true;
        Ok(())
    }

    /// Lets a stream do its work, and what waited for it.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such stream; a fault of the work.
    pub fn let_go(&mut self, id: StreamId, on: &mut W::On) -> Answer {
        self.stream_mut(id)?.held = false;
        self.advance(on)
    }

    /// Puts work into a stream, and does what can be done.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such stream, [`Code::CaptureInvalidated`] if it
    /// records a graph that was invalidated; a fault of the work.
    pub fn submit(&mut self, id: StreamId, work: W, on: &mut W::On) -> Answer {
        if let Some(capture) = self.stream(id)?.capture {
            return self.record_node(capture);
        }
        self.order_with_default(id);
        self.push(id, Item::Work(work));
        self.advance(on)
    }

    /// The implicit waits between the default stream and blocking ones.
    fn order_with_default(&mut self, id: StreamId) {
        if self.waiting == 0 {
            return;
        }
        let others: Vec<Point> = self
            .streams
            .iter()
            .filter(|(other, stream)| {
                **other != id
                    && !stream.queue.is_empty()
                    && stream.blocking
                    && (id == DEFAULT || **other == DEFAULT)
            })
            .map(|(other, stream)| Point {
                stream: *other,
                position: stream.submitted,
            })
            .collect();
        let blocking = self.streams.get(&id).is_some_and(|stream| stream.blocking);
        if blocking {
            for point in others {
                self.push(id, Item::Wait(point));
            }
        }
    }

    fn push(&mut self, id: StreamId, item: Item<W>) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.queue.push_back(item);
            stream.submitted += 1;
            self.waiting += 1;
        }
    }

    fn is_reached(&self, point: Point) -> bool {
        self.streams
            .get(&point.stream)
            .is_none_or(|stream| stream.completed >= point.position)
    }

    /// Does the first piece of work of a stream, if it need not wait; whether it did.
    fn step(&mut self, id: StreamId, on: &mut W::On) -> Answer<bool> {
        let Some(stream) = self.streams.get(&id) else {
            return Ok(false);
        };
        match stream.queue.front() {
            None => return Ok(false),
            Some(Item::Wait(point)) if !self.is_reached(*point) => return Ok(false),
            Some(_) => {}
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(false);
        };
        let item = stream.queue.pop_front();
        stream.completed += 1;
        self.waiting -= 1;
        match item {
            Some(Item::Work(work)) => work.perform(on)?,
            Some(Item::Record(event)) => {
                if let Some(event) = self.events.get_mut(&event) {
                    event.time = Some(Instant::now());
                }
            }
            Some(Item::Wait(_)) | None => {}
        }
        self.bury(id);
        Ok(true)
    }

    /// Does all that can be done.
    fn advance(&mut self, on: &mut W::On) -> Answer {
        while self.waiting > 0 {
            let ready: Vec<StreamId> = self
                .streams
                .iter()
                .filter(|(_, stream)| !stream.held && !stream.queue.is_empty())
                .map(|(id, _)| *id)
                .collect();
            let mut moved = false;
            for id in ready {
                while self.step(id, on)? {
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        Ok(())
    }

    /// Does the work up to a point, and what it waits for, whether held or not.
    fn drive(&mut self, point: Point, on: &mut W::On) -> Answer {
        while !self.is_reached(point) {
            if !self.step(point.stream, on)? {
                let blocker = self
                    .streams
                    .get(&point.stream)
                    .and_then(|stream| stream.queue.front());
                match blocker {
                    // Points lie in the past of the waits for them, so this ends.
                    Some(Item::Wait(before)) => {
                        let before = *before;
                        self.drive(before, on)?;
                    }
                    _ => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// The end of a stream as it is now.
    fn end(&self, id: StreamId) -> Answer<Point> {
        Ok(Point {
            stream: id,
            position: self.stream(id)?.submitted,
        })
    }

    /// Whether all work of a stream is done.
    ///
    /// # Errors
    /// [`Code::NotReady`] if not; [`Code::InvalidHandle`] if there is no such stream;
    /// [`Code::CaptureUnsupported`] if it records, which invalidates the recording.
    pub fn query(&mut self, id: StreamId) -> Answer {
        self.refuse_capturing(id)?;
        match self.is_reached(self.end(id)?) {
            true => Ok(()),
            false => Err(Code::NotReady),
        }
    }

    /// Waits until all work of a stream is done.
    ///
    /// # Errors
    /// As [`Streams::query`], without `NotReady`; a fault of the work.
    pub fn synchronize(&mut self, id: StreamId, on: &mut W::On) -> Answer {
        self.refuse_capturing(id)?;
        self.drive(self.end(id)?, on)?;
        self.advance(on)
    }

    /// Waits until all work of all streams is done.
    ///
    /// # Errors
    /// [`Code::CaptureUnsupported`] if a stream records; a fault of the work.
    pub fn synchronize_all(&mut self, on: &mut W::On) -> Answer {
        self.refuse_any_capture()?;
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for stream in ids {
            let position = self.streams.get(&stream).map_or(0, |one| one.submitted);
            self.drive(Point { stream, position }, on)?;
        }
        Ok(())
    }

    /// A new event, which keeps the time if `timed`.
    pub fn create_event(&mut self, timed: bool) -> u64 {
        let number = self.number();
        let recorded = Recorded::Never;
        let event = Event {
            recorded,
            timed,
            time: None,
        };
        self.events.insert(number, event);
        number
    }

    /// Ends an event. Waits for it stay.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is none.
    pub fn destroy_event(&mut self, event: u64) -> Answer {
        let removed = self.events.remove(&event);
        removed.map(drop).ok_or(Code::InvalidHandle)
    }

    fn event(&self, event: u64) -> Answer<&Event> {
        self.events.get(&event).ok_or(Code::InvalidHandle)
    }

    /// Records an event at the end of a stream.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such event or stream; a fault of the work.
    pub fn record(&mut self, event: u64, id: StreamId, on: &mut W::On) -> Answer {
        self.event(event)?;
        let recorded = match self.stream(id)?.capture {
            Some(capture) => {
                self.record_node(capture)?;
                Recorded::Captured(capture)
            }
            None => {
                self.order_with_default(id);
                self.push(id, Item::Record(event));
                Recorded::At(self.end(id)?)
            }
        };
        if let Some(event) = self.events.get_mut(&event) {
            event.recorded = recorded;
            event.time = None;
        }
        self.advance(on)
    }

    /// Whether the work before an event's record is done; an event that was never recorded is
    /// complete.
    ///
    /// # Errors
    /// [`Code::NotReady`] if not; [`Code::InvalidHandle`] if there is no such event;
    /// [`Code::CapturedEvent`] if it was recorded into a graph, which invalidates the recording.
    pub fn query_event(&mut self, event: u64) -> Answer {
        match self.point_of(event)? {
            Some(point) if !self.is_reached(point) => Err(Code::NotReady),
            _ => Ok(()),
        }
    }

    /// Waits until an event is complete.
    ///
    /// # Errors
    /// As [`Streams::query_event`], without `NotReady`; a fault of the work.
    pub fn synchronize_event(&mut self, event: u64, on: &mut W::On) -> Answer {
        if let Some(point) = self.point_of(event)? {
            self.drive(point, on)?;
        }
        self.advance(on)
    }

    fn point_of(&mut self, event: u64) -> Answer<Option<Point>> {
        match self.event(event)?.recorded {
            Recorded::Never => Ok(None),
            Recorded::At(point) => Ok(Some(point)),
            Recorded::Captured(capture) => {
                self.invalidate(capture);
                Err(Code::CapturedEvent)
            }
        }
    }

    /// Lets what comes later in a stream wait for an event. An event recorded into a graph makes
    /// the stream part of the recording.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such event or stream.
    pub fn wait(&mut self, id: StreamId, event: u64, on: &mut W::On) -> Answer {
        let recorded = self.event(event)?.recorded;
        let stream = self.stream_mut(id)?;
        match (recorded, stream.capture) {
            (Recorded::Captured(capture), _) => stream.capture = Some(capture),
            (_, Some(capture)) => self.record_node(capture)?,
            (Recorded::Never, None) => {}
            (Recorded::At(point), None) => self.push(id, Item::Wait(point)),
        }
        self.advance(on)
    }

    /// Milliseconds of host time between two events. What a device would take is not known.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if either is untimed, unknown or was never recorded;
    /// [`Code::NotReady`] if either is not complete.
    pub fn elapsed(&mut self, from: u64, to: u64) -> Answer<f32> {
        let mut times = [None; 2];
        for (time, event) in times.iter_mut().zip([from, to]) {
            let found = self.event(event)?;
            if !found.timed || matches!(found.recorded, Recorded::Never) {
                return Err(Code::InvalidHandle);
            }
            *time = found.time;
            self.query_event(event)?;
        }
        match times {
            [Some(from), Some(to)] => {
                let forth = to.saturating_duration_since(from).as_secs_f32();
                let back = from.saturating_duration_since(to).as_secs_f32();
                Ok((forth - back) * 1000.0)
            }
            _ => Err(Code::NotReady),
        }
    }

    /// Begins to record a graph.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such stream; [`Code::CaptureUnsupported`] for the
    /// default stream, or if it records already.
    pub fn begin_capture(&mut self, id: StreamId, mode: CaptureMode) -> Answer {
        if id == DEFAULT || self.stream(id)?.capture.is_some() {
            return Err(Code::CaptureUnsupported);
        }
        let capture = self.number();
        self.captures.insert(
            capture,
            Capture {
                origin: id,
                mode,
                invalid: false,
                nodes: 0,
            },
        );
        self.stream_mut(id)?.capture = Some(capture);
        Ok(())
    }

    /// Ends a recording, by the stream that began it; how many pieces of work it holds.
    ///
    /// # Errors
    /// [`Code::CaptureUnmatched`] if the stream began none; [`Code::CaptureInvalidated`] if it was
    /// invalidated.
    pub fn end_capture(&mut self, id: StreamId) -> Answer<u64> {
        let capture = self.stream(id)?.capture.ok_or(Code::CaptureUnmatched)?;
        let Some(found) = self.captures.get(&capture) else {
            return Err(Code::CaptureUnmatched);
        };
        if found.origin != id {
            return Err(Code::CaptureUnmatched);
        }
        let answer = match found.invalid {
            true => Err(Code::CaptureInvalidated),
            false => Ok(found.nodes),
        };
        self.captures.remove(&capture);
        for stream in self.streams.values_mut() {
            if stream.capture == Some(capture) {
                stream.capture = None;
            }
        }
        answer
    }

    /// What a stream records.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such stream.
    pub fn capturing(&self, id: StreamId) -> Answer<Capturing> {
        let Some(number) = self.stream(id)?.capture else {
            return Ok(Capturing::No);
        };
        match self.captures.get(&number) {
            Some(capture) if capture.invalid => Ok(Capturing::Invalid(number)),
            Some(_) => Ok(Capturing::Active(number)),
            None => Ok(Capturing::No),
        }
    }

    /// Refuses a call that recordings forbid to a thread in `mode`, and invalidates them.
    ///
    /// # Errors
    /// [`Code::CaptureUnsupported`] if there is such a recording.
    pub fn refuse_unsafe_call(&mut self, mode: CaptureMode) -> Answer {
        if mode == CaptureMode::Relaxed {
            return Ok(());
        }
        let mut refused = false;
        for capture in self.captures.values_mut() {
            if capture.mode != CaptureMode::Relaxed {
                capture.invalid = true;
                refused = true;
            }
        }
        match refused {
            true => Err(Code::CaptureUnsupported),
            false => Ok(()),
        }
    }

    fn refuse_any_capture(&mut self) -> Answer {
        if self.captures.is_empty() {
            return Ok(());
        }
        for capture in self.captures.values_mut() {
            capture.invalid = true;
        }
        Err(Code::CaptureUnsupported)
    }

    fn refuse_capturing(&mut self, id: StreamId) -> Answer {
        match self.stream(id)?.capture {
            Some(capture) => {
                self.invalidate(capture);
                Err(Code::CaptureUnsupported)
            }
            None => Ok(()),
        }
    }

    fn invalidate(&mut self, capture: u64) {
        if let Some(capture) = self.captures.get_mut(&capture) {
            capture.invalid = true;
        }
    }

    fn record_node(&mut self, capture: u64) -> Answer {
        match self.captures.get_mut(&capture) {
            Some(capture) if capture.invalid => Err(Code::CaptureInvalidated),
            Some(capture) => {
                capture.nodes += 1;
                Ok(())
            }
            None => Err(Code::CaptureInvalidated),
        }
    }
}

#[cfg(test)]
mod tests;
