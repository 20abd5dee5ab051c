//! Runs functions on one thread, from release to completion without a system call or a page fault.
//!
//! *Invariant:* [`Worker::invoke`] returns, whatever the guest does, and leaves its seat as it was made
//! ready (or, with kept state, as a call that ended well left it).

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::clock;
use crate::engine::Engine;
use crate::error::DeployError;
use crate::guest::Run;
use crate::limits::State;
use crate::module::Module;
use crate::outcome::{Budget, BudgetClock, Invocation, Outcome, Policy, Refusal, Tier, Trap};
use crate::overrun::Alarm;
use crate::schedule;
use crate::seat::{Live, Seat};
use crate::wasi::Exit;

/// Runs functions on the thread that made it.
pub struct Worker {
    engine: Engine,
    alarm: Arc<Alarm>,
    seats: HashMap<u64, Seat>,
    counts_faults: bool,
    /// Whether it makes an instance of code that has become ready itself, between two invocations.
    hands_over: bool,
    clock: BudgetClock,
    /// Stack and alternative signal stack that were made ready are this thread's.
    here: PhantomData<*const ()>,
}

impl Worker {
    /// Makes the calling thread ready: touches as much of its stack as functions may use (`stack_bytes` and 64
    /// KiB for the host), which it must have.
    pub fn new(engine: &Engine) -> Worker {
        wasmtime::Engine::tls_eager_initialize();
        touch_stack(engine.options().stack_bytes + HOST_STACK);
        Worker {
            engine: engine.clone(),
            alarm: engine.watch().alarm(),
            seats: HashMap::new(),
            counts_faults: false,
            hands_over: true,
            clock: BudgetClock::default(),
            here: PhantomData,
        }
    }

    /// Whether page faults are counted, which costs two system calls outside release and completion.
    pub fn count_faults(&mut self, counted: bool) {
        self.counts_faults = counted;
    }

    /// By which clock budgets run. Where threads of functions preempt each other, as under earliest deadline
    /// first, it must be that of the processor.
    pub fn set_clock(&mut self, clock: BudgetClock) {
        self.clock = clock;
    }

    /// Takes a slot for a module and makes an instance on it, so that the first invocation finds it ready.
    ///
    /// # Errors
    ///
    /// No slot is left, or the instance cannot be made.
    pub fn prepare(&mut self, module: &Module) -> Result<(), DeployError> {
        if self.seats.contains_key(&module.id()) {
            return Ok(());
        }
        if module.inner().owner != self.engine.id() {
            return Err(DeployError::Unsupported {
                what: "a module of another engine".to_owned(),
                remedy: "compile it with the engine of this worker",
            });
        }
        let slot = match module.memory() {
            0 => None,
            bytes => Some(self.engine.slots().take(bytes)?),
        };
        let budget = clock::nanoseconds(self.engine.options().initialise);
        let seat = Seat::begin(
            module,
            module.best(),
            slot,
            &self.alarm,
            Run::starting(budget, Policy::Stop),
        );
        self.alarm.clear();
        let seat = seat.map_err(|error| DeployError::Initialise {
            cause: format!("{error:#}"),
        })?;
        self.seats.insert(module.id(), seat);
        Ok(())
    }

    /// Leaves new code to whoever calls [`Worker::take_over`], and makes room for so many seats.
    pub(crate) fn serve(&mut self, seats: usize) {
        self.hands_over = false;
        self.seats.reserve(seats);
    }

    /// Takes a module's seat away.
    pub(crate) fn unseat(&mut self, module: &Module) -> Option<Seat> {
        self.seats.remove(&module.id())
    }

    /// Takes a seat that was made ready elsewhere.
    pub(crate) fn seat(&mut self, mut seat: Seat) {
        seat.seated(&self.alarm);
        self.seats.insert(seat.module.id(), seat);
    }

    /// The alarm of whatever runs on it.
    pub(crate) fn alarm(&self) -> Arc<Alarm> {
        Arc::clone(&self.alarm)
    }

    /// An instance of other code, made elsewhere with this worker's alarm, goes on with a module's slot and globals; what is not needed any more.
    pub(crate) fn take_over(&mut self, module: &Module, live: Live, tier: Tier) -> Option<Live> {
        let Some(seat) = self.seats.get_mut(&module.id()) else {
            return Some(live);
        };
        seat.take_over(live, tier).ok()
    }

    /// The longest of five times that a module's slot was set back, in nanoseconds of the processor.
    pub(crate) fn set_back_ns(&mut self, module: &Module) -> u64 {
        let Some(seat) = self.seats.get_mut(&module.id()) else {
            return 0;
        };
        let times = (0..5).map(|_| {
            let begin = clock::processor();
            // What fails here fails when it is used, and is told then.
            let _ = seat.reset(&self.alarm);
            clock::processor() - begin
        });
        times.max().unwrap_or(0)
    }

    /// Gives the slot of a module back.
    pub fn remove(&mut self, module: &Module) {
        self.seats.remove(&module.id());
    }

    /// What the last invocation of a module wrote to stderr.
    pub fn errors(&self, module: &Module) -> &[u8] {
        self.seats
            .get(&module.id())
            .map_or(&[], |seat| &seat.live.store.data().errors)
    }

    /// Which compiler's code the next invocation of a module runs.
    pub fn tier(&self, module: &Module) -> Option<Tier> {
        self.seats.get(&module.id()).map(|seat| seat.tier)
    }

    /// Runs a function once. `output` is emptied and filled up to its capacity or the module's limit; it
    /// does not grow.
    pub fn invoke(
        &mut self,
        module: &Module,
        input: &[u8],
        output: &mut Vec<u8>,
        budget: impl Into<Budget>,
    ) -> Invocation {
        let budget = budget.into();
        output.clear();
        if let Err(refusal) = self.admit(module, input, &budget) {
            return refused(refusal, module.best());
        }
        let Some(seat) = self.seats.get_mut(&module.id()) else {
            // `admit` has just put it there.
            return refused(Refusal::Budget, module.best());
        };
        let time = clock::nanoseconds(budget.time);
        self.engine.watch().expect(time);
        let class = matches!(budget.policy, Policy::Degrade { .. })
            .then(schedule::current)
            .flatten();
        let limit = output.capacity().min(module.limits().output);
        let seed = metes_random::mix(module.limits().seed.wrapping_add(seat.count));
        seat.count = seat.count.wrapping_add(1);
        let faults = self.counts_faults.then(faults);

        let processor = (self.clock == BudgetClock::Processor).then(clock::processor);
        let run = Run {
            processor,
            ..Run::starting(time, budget.policy)
        };
        let guest = seat.live.store.data_mut();
        guest.begin(input, std::mem::take(output), limit, seed, run);
        seat.live.store.set_epoch_deadline(1);
        self.alarm.set(run.deadline);
        let result = seat.live.call();
        self.alarm.clear();
        let guest = seat.live.store.data_mut();
        *output = guest.end();
        let completion = clock::now();

        let faults = faults.map(|before| self::faults().saturating_sub(before));
        let run = guest.run;
        let mut invocation = Invocation {
            outcome: Outcome::Done { exit: 0 },
            time_ns: completion - run.release,
            scrub_ns: 0,
            tier: seat.tier,
            host_calls: guest.calls,
            output_refused: guest.refused,
            suspended: run.suspended,
            degraded: run.degraded,
            faults,
        };
        let exit = guest.exit.take();
        invocation.outcome = match result {
            Ok(exit) => Outcome::Done { exit },
            Err(_) if run.stopped => Outcome::Overrun {
                late_ns: completion.saturating_sub(run.deadline),
            },
            Err(error) if error.is::<Exit>() => Outcome::Done {
                exit: exit.unwrap_or(0),
            },
            Err(error) => Outcome::Trap(
                error
                    .downcast_ref::<wasmtime::Trap>()
                    .map_or(Trap::Other, |trap| (*trap).into()),
            ),
        };
        if let (true, Some(class)) = (run.degraded, class) {
            schedule::set(&class);
        }
        let ended_well = matches!(invocation.outcome, Outcome::Done { .. });
        let begin = clock::now();
        if !settle(seat, ended_well, self.hands_over, &self.alarm) {
            self.seats.remove(&module.id());
        }
        invocation.scrub_ns = clock::now() - begin;
        invocation
    }

    fn admit(&mut self, module: &Module, input: &[u8], budget: &Budget) -> Result<(), Refusal> {
        let limit = module.limits().input;
        if input.len() > limit {
            return Err(Refusal::Input {
                bytes: input.len(),
                limit,
            });
        }
        if budget.time.is_zero() {
            return Err(Refusal::Budget);
        }
        if self.seats.contains_key(&module.id()) {
            return Ok(());
        }
        self.prepare(module).map_err(Refusal::Unprepared)
    }
}

/// After completion: sets back what must be, and takes over code that has become ready. Whether the seat can be used on.
fn settle(seat: &mut Seat, ended_well: bool, hands_over: bool, alarm: &Arc<Alarm>) -> bool {
    let kept = ended_well && seat.module.limits().state == State::Kept;
    if !kept && seat.reset(alarm).is_err() {
        return false;
    }
    if hands_over && seat.tier == Tier::Baseline && !seat.stays && seat.module.has(Tier::Optimised)
    {
        // The old instance goes on where the new one cannot be made.
        seat.stays = seat.hand_over(Tier::Optimised, alarm).is_err();
    }
    true
}

fn refused(refusal: Refusal, tier: Tier) -> Invocation {
    Invocation {
        outcome: Outcome::Refused(refusal),
        time_ns: 0,
        scrub_ns: 0,
        tier,
        host_calls: 0,
        output_refused: false,
        suspended: 0,
        degraded: false,
        faults: None,
    }
}

/// What the host itself uses of the stack while a guest runs.
const HOST_STACK: usize = 64 << 10;

/// Writes to each page of as much of the stack as will be used.
#[inline(never)]
fn touch_stack(bytes: usize) {
    let mut page = [0u8; 4096];
    std::hint::black_box(&mut page);
    if bytes > page.len() {
        touch_stack(bytes - page.len());
    }
    std::hint::black_box(&mut page);
}

/// Page faults of this thread so far.
fn faults() -> u64 {
    // SAFETY: a plain structure of numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is ours.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    (usage.ru_minflt + usage.ru_majflt).cast_unsigned()
}
