//! A function that is deployed, and what is known of its invocations.
//!
//! *Invariant:* whoever counts an invocation that has ended counted it as waiting before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::{Sampled, Told, lock};
use crate::manifest::Manifest;
use crate::module::Module;
use crate::outcome::Tier;
use crate::overrun::Alarm;
use crate::seat::Live;
use crate::slots::Place;
use crate::station::Response;
use crate::statistics::Statistics;

/// A function that is deployed.
pub(crate) struct Deployed {
    pub(crate) manifest: Manifest,
    pub(crate) module: Module,
    pub(super) core: u32,
    pub(super) measured: Option<u64>,
    /// What the host takes for each invocation beyond what it takes for all.
    pub(super) overhead: u64,
    pub(super) samples: Vec<Sampled>,
    /// Where code that becomes ready goes on, and the alarm of who runs it; none where there is none to come.
    pub(super) hand_over: Mutex<Option<(Place, Arc<Alarm>)>>,
    pub(super) waiting: AtomicUsize,
    /// When the next request may be released.
    pub(super) next: Mutex<u64>,
    pub(super) statistics: Mutex<Statistics>,
}

impl Deployed {
    pub(super) fn new(manifest: Manifest, module: Module, core: u32) -> Deployed {
        Deployed {
            core,
            measured: None,
            overhead: 0,
            samples: Vec::new(),
            hand_over: Mutex::new(None),
            module,
            waiting: AtomicUsize::new(0),
            next: Mutex::new(0),
            statistics: Mutex::new(Statistics::new()),
            manifest,
        }
    }

    /// Memory for a response and for what goes to stderr, touched, so that the worker's first write finds it there.
    pub(crate) fn buffers(&self) -> (Vec<u8>, Vec<u8>) {
        let touched = |bytes: usize| {
            let mut buffer = vec![1; bytes];
            buffer.clear();
            buffer
        };
        let limits = self.module.limits();
        (touched(limits.output), touched(limits.errors))
    }

    /// An instance of optimised code, if it has become ready since the function answered by the other; once.
    pub(crate) fn other_code(&self, response: &Response) -> Option<(Live, Tier)> {
        if response.invocation.tier != Tier::Baseline || !self.module.has(Tier::Optimised) {
            return None;
        }
        let (place, alarm) = lock(&self.hand_over).take()?;
        // The old instance goes on where a new one cannot be made.
        let live = Live::over(&self.module, Tier::Optimised, place, &alarm).ok()?;
        Some((live, Tier::Optimised))
    }

    /// Counts an invocation that has ended.
    pub(crate) fn ended(&self, response: &Response) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let mut statistics = lock(&self.statistics);
        statistics.take(&response.invocation, response.response_ns, response.missed);
    }

    pub(super) fn told(&self) -> Told {
        let statistics = lock(&self.statistics);
        Told {
            name: self.manifest.name.clone(),
            core: self.core,
            period_ns: self.manifest.period,
            deadline_ns: self.manifest.deadline,
            budget_ns: self.manifest.budget,
            memory: self.module.memory(),
            tier: self.module.best().name().to_owned(),
            measured_ns: self.measured,
            overhead_ns: self.overhead,
            samples: self.samples.clone(),
            notes: self.module.notes().to_vec(),
            counts: statistics.counts(),
            time_ns: statistics.time(),
            response_ns: statistics.response(),
            waiting: self.waiting.load(Ordering::Relaxed),
        }
    }
}
