//! One worker of the host: a thread for a core, which runs what waits for it, and one of the ordinary class beside it, which
//! answers.
//!
//! What a worker does between two invocations delays others, so it neither locks, allocates nor tells: seats and new code
//! are made by whoever asks, answers are given and memory is freed by the thread beside it.
//!
//! *Invariant:* every job gets one answer; a worker ends only when its queue is closed.

use std::sync::Arc;
use std::thread::JoinHandle;

use serde::Serialize;

use crate::clock;
use crate::engine::Engine;
use crate::host::Deployed;
use crate::manifest::Hosted as _;
use crate::module::Module;
use crate::outcome::{Invocation, Outcome, Tier};
use crate::overrun::{Alarm, exact_timers};
use crate::queue::{Next, Queue, Waiting};
use crate::schedule;
use crate::seat::{Live, Seat};
use crate::worker::Worker;

/// How a worker came to be scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obtained {
    /// The core of the admission.
    pub core: u32,
    /// The processor that it is bound to; none if that was not permitted.
    pub processor: Option<usize>,
    /// The class: `fifo` with its priority, or `ordinary`.
    pub class: String,
}

/// What became of a request.
#[derive(Debug)]
pub struct Response {
    /// What the function wrote.
    pub output: Vec<u8>,
    /// What it wrote to stderr, if it did not end well.
    pub errors: Vec<u8>,
    /// What became of it.
    pub invocation: Invocation,
    /// From its release to its end in nanoseconds, waiting included.
    pub response_ns: u64,
    /// Whether it ended behind its deadline.
    pub missed: bool,
}

pub(crate) enum Command {
    /// A seat that was made ready elsewhere; tells when it is there.
    Install(Box<Seat>, Box<dyn FnOnce() + Send>),
    /// Code that has become ready, over the slot that a module has.
    TakeOver(Module, Box<Live>, Tier),
    /// Gives the seat to whoever asks for it.
    Remove(Module, Box<dyn FnOnce(Option<Seat>) + Send>),
}

pub(crate) struct Job {
    pub(crate) deployed: Arc<Deployed>,
    pub(crate) input: Vec<u8>,
    /// Memory for what the function writes.
    pub(crate) output: Vec<u8>,
    pub(crate) errors: Vec<u8>,
    pub(crate) release: u64,
    pub(crate) deadline: u64,
    pub(crate) reply: Reply,
}

pub(crate) type Reply = Box<dyn FnOnce(Response) + Send>;

/// What a worker leaves to the thread beside it: whatever allocates, frees, locks or tells.
enum Done {
    Job(Arc<Deployed>, Vec<u8>, Response, Reply),
    Installed(Box<dyn FnOnce() + Send>),
    Old(Option<Live>),
    Removed(Option<Seat>, Box<dyn FnOnce(Option<Seat>) + Send>),
}

pub(crate) type Asked = Queue<Command, Job>;

pub(crate) struct Station {
    pub(crate) queue: Asked,
    pub(crate) obtained: Obtained,
    /// What the worker itself takes of the processor for an invocation, as far as was measured.
    pub(crate) dispatch_ns: u64,
    alarm: Arc<Alarm>,
    /// Of the worker, then of the thread beside it.
    threads: Vec<JoinHandle<()>>,
    done: Queue<Done, ()>,
}

/// How a worker is started.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub(crate) core: u32,
    pub(crate) priority: Option<i32>,
    /// Most functions.
    pub(crate) seats: usize,
    /// Most requests of all functions that wait.
    pub(crate) waiting: usize,
}

impl Station {
    /// Starts the worker of a core, which measures itself by a function that does nothing.
    pub(crate) fn start(
        start: Start,
        engine: &Engine,
        nothing: &Arc<Deployed>,
    ) -> std::io::Result<Station> {
        // Commands come one at a time, and one more for each function that changes its code.
        let queue = Queue::new(start.waiting + start.seats + 8);
        let done = Queue::new(start.waiting + 2 * start.seats + 16);
        let (send, receive) = std::sync::mpsc::channel();
        let (asked, left, engine) = (queue.clone(), done.clone(), engine.clone());
        let nothing = Arc::clone(nothing);
        let worker = std::thread::Builder::new()
            .name(format!("edge-{}", start.core))
            .stack_size(engine.options().stack_bytes + (1 << 20))
            .spawn(move || {
                let obtained = Obtained {
                    core: start.core,
                    processor: bind(start.core),
                    class: class(start.priority),
                };
                exact_timers();
                let mut worker = Worker::new(&engine);
                worker.serve(start.seats);
                let mut desk = Desk {
                    worker,
                    waiting: asked.worker(),
                    done: left,
                };
                let dispatch = desk.measure(&asked, &nothing);
                // Whoever starts it waits for this.
                drop(send.send((obtained, dispatch, desk.worker.alarm())));
                while desk.step() {}
            })?;
        let (left, asked) = (done.clone(), queue.clone());
        let beside = std::thread::Builder::new().name(format!("edge-reply-{}", start.core));
        let beside = beside.spawn(move || {
            let mut left = left.worker();
            while let Next::Command(done) = left.next() {
                finish(done, &asked);
            }
        });
        let beside = beside.inspect_err(|_| queue.close())?;
        let (obtained, dispatch_ns, alarm) = receive.recv().map_err(std::io::Error::other)?;
        Ok(Station {
            queue,
            obtained,
            dispatch_ns,
            alarm,
            threads: vec![worker, beside],
            done,
        })
    }

    /// The alarm of its worker.
    pub(crate) fn alarm(&self) -> Arc<Alarm> {
        Arc::clone(&self.alarm)
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.queue.close();
        // A job's answer may be what drops the host, on the thread beside the worker, which ends behind it.
        let here = std::thread::current().id();
        for thread in self.threads.drain(..) {
            if thread.thread().id() != here {
                drop(thread.join());
            }
            // What the worker has left is there now.
            self.done.close();
        }
    }
}

/// The worker's own side.
struct Desk {
    worker: Worker,
    waiting: Waiting<Command, Job>,
    done: Queue<Done, ()>,
}

impl Desk {
    /// Does what is next; whether there was anything.
    fn step(&mut self) -> bool {
        let done = match self.waiting.next() {
            Next::Command(Command::Install(seat, told)) => {
                self.worker.seat(*seat);
                Done::Installed(told)
            }
            Next::Command(Command::TakeOver(module, live, tier)) => {
                Done::Old(self.worker.take_over(&module, *live, tier))
            }
            Next::Command(Command::Remove(module, told)) => {
                Done::Removed(self.worker.unseat(&module), told)
            }
            Next::Job(job) => self.run(job),
            Next::End => return false,
        };
        self.done.command(done);
        true
    }

    fn run(&mut self, job: Job) -> Done {
        let Job {
            deployed,
            input,
            mut output,
            mut errors,
            release,
            deadline,
            reply,
        } = job;
        let budget = deployed.manifest.held_to();
        let invocation = self
            .worker
            .invoke(&deployed.module, &input, &mut output, budget);
        let end = clock::now();
        if !matches!(invocation.outcome, Outcome::Done { exit: 0 }) {
            errors.extend_from_slice(self.worker.errors(&deployed.module));
        }
        let response = Response {
            errors,
            response_ns: end.saturating_sub(release),
            missed: end > deadline,
            output,
            invocation,
        };
        Done::Job(deployed, input, response, reply)
    }

    /// What the worker takes of the processor for an invocation of nothing, from when it looks for a request until it does so
    /// again: 9 of 10 take no more.
    fn measure(&mut self, queue: &Asked, nothing: &Arc<Deployed>) -> u64 {
        // Where it cannot be made ready, each invocation says so, which takes longer.
        let _ = self.worker.prepare(&nothing.module);
        let mut times: Vec<u64> = (0..100)
            .map(|_| {
                let (output, errors) = nothing.buffers();
                let deadline = clock::now();
                let job = Job {
                    deployed: Arc::clone(nothing),
                    input: Vec::new(),
                    output,
                    errors,
                    release: 0,
                    deadline,
                    reply: Box::new(drop),
                };
                queue.job(0, deadline, job);
                let begin = clock::processor();
                self.step();
                clock::processor() - begin
            })
            .collect();
        self.worker.remove(&nothing.module);
        times.sort_unstable();
        times[times.len() * 9 / 10]
    }
}

fn finish(done: Done, asked: &Asked) {
    match done {
        Done::Job(deployed, input, response, reply) => {
            drop(input);
            // Before it counts as ended: who removes the function waits for that.
            if let Some((live, tier)) = deployed.other_code(&response) {
                let module = deployed.module.clone();
                asked.command(Command::TakeOver(module, Box::new(live), tier));
            }
            deployed.ended(&response);
            drop(deployed);
            reply(response);
        }
        Done::Installed(told) => told(),
        Done::Old(live) => drop(live),
        Done::Removed(seat, told) => told(seat),
    }
}

/// Binds the calling thread to the processor of a core: the n-th that the process may use.
fn bind(core: u32) -> Option<usize> {
    // SAFETY: a set of bits, for which zeros are valid.
    let mut permitted: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the set is ours and of that size.
    if unsafe { libc::sched_getaffinity(0, size, &raw mut permitted) } != 0 {
        return None;
    }
    // SAFETY: each number is below the size of the set.
    let processors = (0..libc::CPU_SETSIZE as usize)
        .filter(|processor| unsafe { libc::CPU_ISSET(*processor, &permitted) });
    let processors: Vec<usize> = processors.collect();
    let processor = *processors.get(core as usize)?;
    // SAFETY: as above.
    let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is below the size of the set.
    unsafe { libc::CPU_SET(processor, &mut one) };
    // SAFETY: the set is ours and of that size.
    let bound = unsafe { libc::sched_setaffinity(0, size, &raw const one) } == 0;
    bound.then_some(processor)
}

fn class(priority: Option<i32>) -> String {
    match priority {
        Some(priority) if schedule::fifo(priority) => format!("fifo {priority}"),
        Some(_) => "ordinary: SCHED_FIFO is not permitted (CAP_SYS_NICE)".to_owned(),
        None => "ordinary".to_owned(),
    }
}
