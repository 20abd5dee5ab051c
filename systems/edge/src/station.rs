//! One worker of the host: a thread for a core, which runs what waits for it.
//!
//! *Invariant:* every job gets one answer; a worker ends only when its queue is closed.

use std::sync::Arc;
use std::thread::JoinHandle;

use serde::Serialize;

use crate::clock;
use crate::engine::Engine;
use crate::error::DeployError;
use crate::host::Deployed;
use crate::manifest::Hosted as _;
use crate::module::Module;
use crate::outcome::Invocation;
use crate::queue::{Next, Queue};
use crate::schedule;
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
    Prepare(Module, Box<dyn FnOnce(Result<(), DeployError>) + Send>),
    /// Gives the slot back, and tells when that is done.
    Remove(Module, Box<dyn FnOnce() + Send>),
}

pub(crate) struct Job {
    pub(crate) deployed: Arc<Deployed>,
    pub(crate) input: Vec<u8>,
    pub(crate) release: u64,
    pub(crate) deadline: u64,
    pub(crate) reply: Box<dyn FnOnce(Response) + Send>,
}

pub(crate) struct Station {
    pub(crate) queue: Arc<Queue<Command, Job>>,
    pub(crate) obtained: Obtained,
    thread: Option<JoinHandle<()>>,
}

impl Station {
    /// Starts the worker of a core.
    pub(crate) fn start(
        core: u32,
        engine: &Engine,
        priority: Option<i32>,
    ) -> std::io::Result<Station> {
        let queue = Arc::new(Queue::new());
        let (send, receive) = std::sync::mpsc::channel();
        let (waiting, engine) = (Arc::clone(&queue), engine.clone());
        let thread = std::thread::Builder::new()
            .name(format!("edge-{core}"))
            .stack_size(engine.options().stack_bytes + (1 << 20))
            .spawn(move || {
                let obtained = Obtained {
                    core,
                    processor: bind(core),
                    class: class(priority),
                };
                let mut worker = Worker::new(&engine);
                // Whoever starts it waits for this.
                drop(send.send(obtained));
                work(&mut worker, &waiting);
            })?;
        let obtained = receive.recv().map_err(std::io::Error::other)?;
        Ok(Station {
            queue,
            obtained,
            thread: Some(thread),
        })
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.queue.close();
        // A job's answer may be what drops the host, on this very thread.
        let here = std::thread::current().id();
        if let Some(thread) = self
            .thread
            .take()
            .filter(|thread| thread.thread().id() != here)
        {
            drop(thread.join());
        }
    }
}

fn work(worker: &mut Worker, queue: &Queue<Command, Job>) {
    loop {
        match queue.next() {
            Next::Command(Command::Prepare(module, reply)) => reply(worker.prepare(&module)),
            Next::Command(Command::Remove(module, reply)) => {
                worker.remove(&module);
                reply();
            }
            Next::Job(job) => run(worker, job),
            Next::End => return,
        }
    }
}

fn run(worker: &mut Worker, job: Job) {
    let deployed = &job.deployed;
    let mut output = deployed.buffer();
    let invocation = worker.invoke(
        &deployed.module,
        &job.input,
        &mut output,
        deployed.manifest.held_to(),
    );
    let end = clock::now();
    let ended_well = matches!(invocation.outcome, crate::Outcome::Done { exit: 0 });
    let errors = match ended_well {
        true => Vec::new(),
        false => worker.errors(&deployed.module).to_vec(),
    };
    let response = Response {
        errors,
        response_ns: end.saturating_sub(job.release),
        missed: end > job.deadline,
        output,
        invocation,
    };
    deployed.ended(&response);
    (job.reply)(response);
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
