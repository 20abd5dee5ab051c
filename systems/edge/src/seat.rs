//! A module made ready on a slot: store, instance and entry, used again for each invocation.
//!
//! An instance is not made anew for each invocation but set back: memory by its image, mutable globals by
//! their initial values. Where the module's code changes tables or drops segments, which cannot be set
//! back from outside, a new instance is made over the same slot, after the completion of the last one.
//! Both leave what an instantiation leaves, and neither has anything to do between release and completion.
//!
//! *Invariant:* the instance never outlives its slot; after [`Seat::reset`] nothing of an invocation is left.

use std::sync::Arc;

use wasmtime::{Error, Global, Instance, InstancePre, Result, Store, TypedFunc, Val};

use crate::guest::{Guest, Memory, Run};
use crate::module::rewrite::GLOBAL;
use crate::module::{Module, Reset};
use crate::outcome::Tier;
use crate::overrun::Alarm;
use crate::slots::{Place, Slot};

/// A module ready to be called.
pub(crate) struct Seat {
    // Before the slot, as fields are dropped in order.
    pub(crate) live: Live,
    pub(crate) slot: Option<Slot>,
    pub(crate) module: Module,
    pub(crate) tier: Tier,
    /// How many invocations it has had, which makes their random numbers distinct.
    pub(crate) count: u64,
    /// Whether the optimised code could not take over.
    pub(crate) stays: bool,
}

/// An instance and what is called in it.
pub(crate) struct Live {
    pub(crate) store: Store<Guest>,
    instance: Instance,
    entry: Entry,
    globals: Vec<(Global, Val)>,
}

enum Entry {
    Silent(TypedFunc<(), ()>),
    Status(TypedFunc<(), i32>),
}

impl Live {
    /// An instance over `slot`, whose memory is left as it is.
    fn new(module: &Module, tier: Tier, slot: Option<&Slot>, alarm: &Arc<Alarm>) -> Result<Live> {
        Live::over(module, tier, slot.map_or(Place::NONE, Slot::place), alarm)
    }

    /// As [`Live::new`], where the slot is in other hands: nothing of its memory is looked at.
    pub(crate) fn over(
        module: &Module,
        tier: Tier,
        place: Place,
        alarm: &Arc<Alarm>,
    ) -> Result<Live> {
        let code = module
            .compiled(tier)
            .ok_or_else(|| Error::msg("the tier is not compiled"))?;
        Live::of(module, code, None, place, alarm)
    }

    /// As [`Live::new`], by any code of the module; with `fuel` for code that counts.
    fn of(
        module: &Module,
        code: &InstancePre<Guest>,
        fuel: Option<u64>,
        place: Place,
        alarm: &Arc<Alarm>,
    ) -> Result<Live> {
        let memory = Memory::new(place.base(), place.bytes());
        let guest = Guest::new(
            memory,
            alarm.clone(),
            module.arguments().clone(),
            module.environment().clone(),
            module.limits().errors,
        );
        let mut store = Store::new(code.module().engine(), guest);
        if let Some(fuel) = fuel {
            store.set_fuel(fuel)?;
        } else {
            store.epoch_deadline_callback(|mut context| context.data_mut().alarmed());
            store.set_epoch_deadline(1);
        }
        let instance = place.offer(|| code.instantiate(&mut store))?;
        let entry = if module.gives_status() {
            Entry::Status(instance.get_typed_func(&mut store, &module.limits().entry)?)
        } else {
            Entry::Silent(instance.get_typed_func(&mut store, &module.limits().entry)?)
        };
        let mut globals = Vec::with_capacity(module.globals());
        for number in 0..module.globals() {
            let global = instance
                .get_global(&mut store, &format!("{}{number}", GLOBAL))
                .ok_or_else(|| Error::msg("a mutable global is not within reach"))?;
            let value = global.get(&mut store);
            globals.push((global, value));
        }
        Ok(Live {
            store,
            instance,
            entry,
            globals,
        })
    }

    /// Calls the entry; a status of nothing is zero.
    pub(crate) fn call(&mut self) -> Result<i32> {
        match &self.entry {
            Entry::Silent(entry) => entry.call(&mut self.store, ()).map(|()| 0),
            Entry::Status(entry) => entry.call(&mut self.store, ()),
        }
    }

    fn initialise(&mut self) -> Result<()> {
        let initialise = self
            .instance
            .get_typed_func::<(), ()>(&mut self.store, "_initialize")?;
        initialise.call(&mut self.store, ())
    }

    fn values(&mut self) -> Vec<Val> {
        self.globals
            .iter()
            .map(|(global, _)| global.get(&mut self.store))
            .collect()
    }

    fn set(&mut self, values: &[Val]) -> Result<()> {
        for ((global, _), value) in self.globals.iter().zip(values) {
            global.set(&mut self.store, *value)?;
        }
        Ok(())
    }

    /// Makes what the globals hold now what they are set back to.
    fn keep(&mut self, values: &[Val]) {
        for ((_, initial), value) in self.globals.iter_mut().zip(values) {
            *initial = *value;
        }
    }
}

impl Seat {
    /// A fresh instance of `module` on `slot`; what runs to make it has the budget of `run`.
    pub(crate) fn begin(
        module: &Module,
        tier: Tier,
        mut slot: Option<Slot>,
        alarm: &Arc<Alarm>,
        run: Run,
    ) -> Result<Seat> {
        if let Some(slot) = &mut slot {
            module.image().restore(slot.memory());
        }
        let live = Live::new(module, tier, slot.as_ref(), alarm)?;
        Seat::with(live, module, tier, slot, alarm, run)
    }

    /// A fresh instance by code that counts operators, with `fuel` for all that it does.
    pub(crate) fn counting(
        module: &Module,
        code: &InstancePre<Guest>,
        fuel: u64,
        mut slot: Option<Slot>,
        alarm: &Arc<Alarm>,
    ) -> Result<Seat> {
        if let Some(slot) = &mut slot {
            module.image().restore(slot.memory());
        }
        let live = Live::of(
            module,
            code,
            Some(fuel),
            slot.as_ref().map_or(Place::NONE, Slot::place),
            alarm,
        )?;
        let run = Run::default();
        Seat::with(live, module, module.best(), slot, alarm, run)
    }

    fn with(
        mut live: Live,
        module: &Module,
        tier: Tier,
        slot: Option<Slot>,
        alarm: &Arc<Alarm>,
        run: Run,
    ) -> Result<Seat> {
        if let Some(values) = module.initial_globals() {
            live.set(values)?;
            live.keep(values);
        }
        live.store.data_mut().run = run;
        alarm.set(run.deadline);
        let mut seat = Seat {
            live,
            slot,
            module: module.clone(),
            tier,
            count: 0,
            stays: false,
        };
        seat.initialise_again()?;
        Ok(seat)
    }

    /// Runs `_initialize` and gives what the memory and the globals are after it.
    pub(crate) fn initialise(&mut self) -> Result<(Option<&[u8]>, Vec<Val>)> {
        self.live.initialise()?;
        let values = self.live.values();
        Ok((self.slot.as_mut().map(|slot| &*slot.memory()), values))
    }

    /// Where no image after `_initialize` can be kept, it runs for each instance.
    fn initialise_again(&mut self) -> Result<()> {
        if self.module.initialises_each_time() {
            self.live.initialise()
        } else {
            Ok(())
        }
    }

    /// Sets everything back.
    pub(crate) fn reset(&mut self, alarm: &Arc<Alarm>) -> Result<()> {
        if let Some(slot) = &mut self.slot {
            self.module.image().restore(slot.memory());
        }
        match self.module.reset() {
            Reset::Restore => {
                for (global, initial) in &self.live.globals {
                    global.set(&mut self.live.store, *initial)?;
                }
            }
            Reset::Instantiate => {
                let next = Live::new(&self.module, self.tier, self.slot.as_ref(), alarm)?;
                drop(self.go_on(next));
                self.initialise_again()?;
            }
        }
        Ok(())
    }

    /// Has the code of another tier take over: the memory stays where it is, with what is in it, and the
    /// globals are carried along.
    pub(crate) fn hand_over(&mut self, tier: Tier, alarm: &Arc<Alarm>) -> Result<()> {
        let next = Live::new(&self.module, tier, self.slot.as_ref(), alarm)?;
        self.take_over(next, tier).map(drop)
    }

    /// As [`Seat::hand_over`], to an instance that was made over the slot elsewhere; the old one.
    pub(crate) fn take_over(&mut self, mut next: Live, tier: Tier) -> Result<Live> {
        let values = self.live.values();
        for ((_, initial), (_, old)) in next.globals.iter_mut().zip(&self.live.globals) {
            *initial = *old;
        }
        next.set(&values)?;
        self.tier = tier;
        Ok(self.go_on(next))
    }

    /// Puts it on a worker, as if nothing had run on it.
    pub(crate) fn seated(&mut self, alarm: &Arc<Alarm>) {
        self.live.store.data_mut().alarm = Arc::clone(alarm);
        self.count = 0;
    }

    /// Where its memory is.
    pub(crate) fn place(&self) -> Place {
        self.slot.as_ref().map_or(Place::NONE, Slot::place)
    }

    /// Goes on with another instance; what the last invocation wrote to stderr is still to be read. The one before it.
    fn go_on(&mut self, next: Live) -> Live {
        let mut before = std::mem::replace(&mut self.live, next);
        let (now, then) = (self.live.store.data_mut(), before.store.data_mut());
        std::mem::swap(&mut now.errors, &mut then.errors);
        before
    }
}
