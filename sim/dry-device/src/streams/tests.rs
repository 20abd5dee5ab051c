use super::*;

/// Work that writes its name down.
#[derive(Debug)]
struct Note(char);

impl Work for Note {
    type On = String;

    fn perform(self, log: &mut String) -> Answer {
        log.push(self.0);
        match self.0 {
            '!' => Err(Code::IllegalAddress),
            _ => Ok(()),
        }
    }
}

struct Rig {
    streams: Streams<Note>,
    log: String,
}

impl Rig {
    fn new() -> Rig {
        Rig {
            streams: Streams::default(),
            log: String::new(),
        }
    }

    fn side(&mut self) -> StreamId {
        self.streams.create(false, 0)
    }

    fn work(&mut self, stream: StreamId, name: char) {
        self.streams
            .submit(stream, Note(name), &mut self.log)
            .unwrap();
    }

    fn mark(&mut self, stream: StreamId) -> u64 {
        let event = self.streams.create_event(true);
        self.streams.record(event, stream, &mut self.log).unwrap();
        event
    }

    fn wait(&mut self, stream: StreamId, event: u64) {
        self.streams.wait(stream, event, &mut self.log).unwrap();
    }

    fn let_go(&mut self, stream: StreamId) {
        self.streams.let_go(stream, &mut self.log).unwrap();
    }
}

#[test]
fn work_is_done_at_once() {
    let mut rig = Rig::new();
    let side = rig.side();
    rig.work(side, 'a');
    rig.work(DEFAULT, 'b');
    assert_eq!(rig.log, "ab");
    let event = rig.mark(side);
    assert_eq!(rig.streams.query_event(event), Ok(()));
    assert_eq!(rig.streams.query(side), Ok(()));
}

#[test]
fn a_hold_keeps_work_back_and_others_pass() {
    let mut rig = Rig::new();
    let (left, right) = (rig.side(), rig.side());
    rig.streams.hold(left).unwrap();
    rig.work(left, 'a');
    let event = rig.mark(left);
    rig.work(right, 'b');
    assert_eq!(rig.log, "b");
    assert_eq!(rig.streams.query_event(event), Err(Code::NotReady));
    assert_eq!(rig.streams.query(left), Err(Code::NotReady));
    rig.wait(right, event);
    rig.work(right, 'c');
    assert_eq!(rig.log, "b");
    rig.let_go(left);
    assert_eq!(rig.log, "bac");
    assert_eq!(rig.streams.query_event(event), Ok(()));
}

#[test]
fn an_event_marks_the_work_before_it_only() {
    let mut rig = Rig::new();
    let (left, right) = (rig.side(), rig.side());
    let never = rig.streams.create_event(false);
    assert_eq!(rig.streams.query_event(never), Ok(()));
    rig.wait(right, never);
    let event = rig.mark(left);
    rig.streams.hold(left).unwrap();
    rig.work(left, 'a');
    assert_eq!(rig.streams.query_event(event), Ok(()));
    // A second record moves it; a wait from before does not move.
    rig.wait(right, event);
    rig.streams.record(event, left, &mut rig.log).unwrap();
    assert_eq!(rig.streams.query_event(event), Err(Code::NotReady));
    rig.work(right, 'b');
    assert_eq!(rig.log, "b");
}

#[test]
fn who_synchronises_waits_past_a_hold() {
    let mut rig = Rig::new();
    let (left, right) = (rig.side(), rig.side());
    rig.streams.hold(left).unwrap();
    rig.streams.hold(right).unwrap();
    rig.work(left, 'a');
    let event = rig.mark(left);
    rig.work(left, 'b');
    rig.wait(right, event);
    rig.work(right, 'c');
    rig.work(right, 'd');
    let mut log = std::mem::take(&mut rig.log);
    // Only what it waits for: not b.
    rig.streams.synchronize(right, &mut log).unwrap();
    assert_eq!(log, "acd");
    // The hold is still there.
    rig.streams.submit(right, Note('e'), &mut log).unwrap();
    assert_eq!(log, "acd");
    rig.streams.synchronize_all(&mut log).unwrap();
    assert_eq!(log, "acdbe");
}

#[test]
fn the_default_stream_orders_blocking_streams() {
    let mut rig = Rig::new();
    let (blocking, free) = (rig.streams.create(true, 0), rig.side());
    rig.streams.hold(blocking).unwrap();
    rig.work(blocking, 'a');
    rig.work(DEFAULT, 'b');
    rig.work(free, 'c');
    assert_eq!(rig.log, "c");
    rig.let_go(blocking);
    assert_eq!(rig.log, "cab");
    rig.streams.hold(DEFAULT).unwrap();
    rig.work(DEFAULT, 'd');
    rig.work(blocking, 'e');
    rig.work(free, 'f');
    assert_eq!(rig.log, "cabf");
    rig.let_go(DEFAULT);
    assert_eq!(rig.log, "cabfde");
}

#[test]
fn what_was_destroyed_is_unknown_and_its_work_is_done() {
    let mut rig = Rig::new();
    let (left, right) = (rig.side(), rig.side());
    rig.streams.hold(left).unwrap();
    rig.work(left, 'a');
    let event = rig.mark(left);
    rig.wait(right, event);
    rig.work(right, 'b');
    rig.streams.destroy_event(event).unwrap();
    assert_eq!(rig.streams.query_event(event), Err(Code::InvalidHandle));
    rig.streams.destroy(left).unwrap();
    assert_eq!(rig.streams.query(left), Err(Code::InvalidHandle));
    assert_eq!(rig.streams.destroy(left), Err(Code::InvalidHandle));
    assert_eq!(rig.streams.destroy(DEFAULT), Err(Code::InvalidHandle));
    assert_eq!(
        rig.streams.submit(left, Note('x'), &mut rig.log),
        Err(Code::InvalidHandle)
    );
    rig.streams.synchronize_all(&mut rig.log).unwrap();
    assert_eq!(rig.log, "ab");
}

#[test]
fn a_fault_is_the_answer_of_whoever_lets_the_work_be_done() {
    let mut rig = Rig::new();
    let side = rig.side();
    rig.streams.hold(side).unwrap();
    rig.work(side, '!');
    assert_eq!(
        rig.streams.let_go(side, &mut rig.log),
        Err(Code::IllegalAddress)
    );
}

#[test]
fn a_recording_does_nothing_and_forbids_questions() {
    let mut rig = Rig::new();
    let (origin, joined, other) = (rig.side(), rig.side(), rig.side());
    assert_eq!(
        rig.streams.begin_capture(DEFAULT, CaptureMode::Global),
        Err(Code::CaptureUnsupported)
    );
    rig.streams
        .begin_capture(origin, CaptureMode::Global)
        .unwrap();
    rig.work(origin, 'a');
    let event = rig.mark(origin);
    rig.wait(joined, event);
    rig.work(joined, 'b');
    rig.work(other, 'c');
    assert_eq!(rig.log, "c");
    assert!(matches!(
        rig.streams.capturing(joined),
        Ok(Capturing::Active(_))
    ));
    assert_eq!(rig.streams.capturing(other), Ok(Capturing::No));
    assert_eq!(rig.streams.end_capture(joined), Err(Code::CaptureUnmatched));
    // a, the record, b.
    assert_eq!(rig.streams.end_capture(origin), Ok(3));
    assert_eq!(rig.streams.capturing(joined), Ok(Capturing::No));
    assert_eq!(rig.streams.end_capture(origin), Err(Code::CaptureUnmatched));
    assert_eq!(rig.streams.query_event(event), Err(Code::CapturedEvent));
}

#[test]
fn a_question_invalidates_a_recording() {
    let mut rig = Rig::new();
    let origin = rig.side();
    for question in 0..4 {
        rig.streams
            .begin_capture(origin, CaptureMode::Global)
            .unwrap();
        let event = rig.mark(origin);
        let answer = match question {
            0 => rig.streams.query(origin),
            1 => rig.streams.synchronize(origin, &mut rig.log),
            2 => rig.streams.refuse_unsafe_call(CaptureMode::Global),
            _ => rig.streams.query_event(event),
        };
        assert!(answer.is_err());
        assert!(matches!(
            rig.streams.capturing(origin),
            Ok(Capturing::Invalid(_))
        ));
        assert_eq!(
            rig.streams.submit(origin, Note('x'), &mut rig.log),
            Err(Code::CaptureInvalidated)
        );
        assert_eq!(
            rig.streams.end_capture(origin),
            Err(Code::CaptureInvalidated)
        );
    }
    rig.streams
        .begin_capture(origin, CaptureMode::Global)
        .unwrap();
    assert_eq!(rig.streams.refuse_unsafe_call(CaptureMode::Relaxed), Ok(()));
    assert_eq!(rig.streams.end_capture(origin), Ok(0));
}

#[test]
fn elapsed_time_needs_two_timed_events_that_are_complete() {
    let mut rig = Rig::new();
    let side = rig.side();
    let (from, to) = (rig.mark(side), rig.mark(side));
    assert!(rig.streams.elapsed(from, to).unwrap() >= 0.0);
    let untimed = rig.streams.create_event(false);
    assert_eq!(rig.streams.elapsed(from, untimed), Err(Code::InvalidHandle));
    rig.streams.hold(side).unwrap();
    rig.work(side, 'a');
    let late = rig.mark(side);
    assert_eq!(rig.streams.elapsed(from, late), Err(Code::NotReady));
}
