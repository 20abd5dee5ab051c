//! Deployment: from a manifest and a module to a function that is ready on its core.
//!
//! *Invariant:* nothing of the host has changed before the set with the new function was admitted; what was there before stays
//! whatever happens.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use metes_admission::{Certificate, Decision, Scheduling, Set, admit};

use super::deployed::Deployed;
use super::{Host, HostError, Sampled, Told, lock, measured, placement, sampled};
use crate::clock;
use crate::limits::Tiers;
use crate::manifest::{Hosted as _, Manifest};
use crate::outcome::{BudgetClock, Tier};
use crate::overheads;
use crate::slots::lock_all;
use crate::station::Command;
use crate::worker::Worker;

impl Host {
    /// Compiles, measures and admits a function, and makes it ready on its core.
    ///
    /// # Errors
    /// Why it is not deployed; the host is as before then.
    pub fn deploy(&self, manifest: &str, wasm: &[u8]) -> Result<Told, HostError> {
        self.deploy_with(manifest, &[], wasm)
    }

    /// As [`Host::deploy`], with the contents of the files that the manifest names as samples, in their order.
    ///
    /// # Errors
    /// As of [`Host::deploy`]; other samples than are named, or one that is larger than a request may be.
    pub fn deploy_with(
        &self,
        manifest: &str,
        samples: &[Vec<u8>],
        wasm: &[u8],
    ) -> Result<Told, HostError> {
        let manifest = Manifest::parse(manifest)?;
        if samples.len() != manifest.samples.len() {
            return Err(HostError::Samples {
                named: manifest.samples.len(),
                came: samples.len(),
            });
        }
        if samples
            .iter()
            .any(|sample| sample.len() as u64 > manifest.input)
        {
            return Err(HostError::TooLarge {
                name: manifest.name,
                limit: manifest.input,
            });
        }
        let _changing = lock(&self.0.changing);
        if self.find(&manifest.name).is_ok() {
            return Err(HostError::Exists(manifest.name));
        }
        let limit = self.0.options.functions;
        let functions = self.0.functions.read();
        if functions.unwrap_or_else(PoisonError::into_inner).len() >= limit {
            return Err(HostError::Full { limit });
        }
        let least = self.least_budget();
        if manifest.budget < least {
            return Err(HostError::ShortBudget {
                budget: manifest.budget,
                least,
            });
        }
        let module = self.0.engine.compile(wasm, &manifest.limits())?;
        let samples = self.sample(&manifest, samples, wasm);
        // Made ready and measured here, so that the worker is kept from nothing.
        let mut worker = Worker::new(&self.0.engine);
        // Others may hold this thread up, which is not the function's fault.
        worker.set_clock(BudgetClock::Processor);
        worker.prepare(&module)?;
        let measured = measured::longest(&mut worker, &manifest, &module)?;
        let overhead = overheads::of_function(worker.set_back_ns(&module));
        let seat = worker.unseat(&module).ok_or(HostError::Ending)?;
        let admitted = self.admit(&manifest, module.memory(), overhead)?;
        // Its code and its instance are new.
        let locked = self.0.options.engine.lock && lock_all();
        self.0.locked.store(locked, Ordering::Relaxed);
        let core = admitted.core_of(&manifest.name).unwrap_or(0);
        let station = &self.0.stations[core as usize];
        let later = module.inner().limits.tiers == Tiers::Both && seat.tier == Tier::Baseline;
        let hand_over = later.then(|| (seat.place(), station.alarm()));
        let (send, receive) = std::sync::mpsc::channel();
        // Whoever waits is there.
        let installed = Box::new(move || {
            let _ = send.send(());
        });
        station
            .queue
            .command(Command::Install(Box::new(seat), installed));
        receive.recv().map_err(|_| HostError::Ending)?;
        let deployed = Arc::new(Deployed {
            measured,
            overhead,
            samples,
            hand_over: Mutex::new(hand_over),
            ..Deployed::new(manifest, module, core)
        });
        let told = deployed.told();
        let mut functions = self
            .0
            .functions
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        functions.insert(told.name.clone(), deployed);
        *lock(&self.0.certificate) = Some(admitted);
        Ok(told)
    }

    /// What samples take; the slot that is kept for deployments is free again then.
    fn sample(&self, manifest: &Manifest, samples: &[Vec<u8>], wasm: &[u8]) -> Vec<Sampled> {
        if samples.is_empty() {
            return Vec::new();
        }
        let engine = &self.0.engine;
        let tables = self.0.tables.get_or_init(|| sampled::tables(engine));
        sampled::sample(engine, tables, manifest, samples, wasm)
    }

    /// The shortest budget whose end is looked for in time.
    fn least_budget(&self) -> u64 {
        let look = self.0.options.engine.look;
        2 * look.map_or(0, clock::nanoseconds)
    }

    /// Admits the functions that are there, where they are, and one more.
    fn admit(
        &self,
        manifest: &Manifest,
        memory: u64,
        overhead: u64,
    ) -> Result<Certificate, HostError> {
        let functions = self
            .0
            .functions
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let there = functions.values().map(|deployed| {
            let function = deployed.manifest.function(deployed.module.memory());
            metes_admission::Function {
                overhead: deployed.overhead,
                ..function.on(deployed.core)
            }
        });
        let options = &self.0.options;
        let overheads = &self.0.overheads;
        let mut host = metes_admission::Host::new(options.cores, self.memory());
        host.scheduling = Scheduling::NonPreemptive;
        host.overheads.release = overheads.release_ns;
        host.overheads.blocking = overheads.blocking_ns;
        host.interference = overheads.interference(options.engine.compile_server);
        let function = metes_admission::Function {
            overhead,
            ..manifest.function(memory)
        };
        let mut set = Set {
            functions: there.chain([function]).collect(),
            host,
        };
        let mut refused = HostError::NotAdmitted(placement::NO_CORE.to_owned());
        for core in placement::cores(manifest, options.cores, functions.values())? {
            if let Some(function) = set.functions.last_mut() {
                function.core = core;
            }
            match admit(&set) {
                Decision::Admitted(certificate) => {
                    let checked = certificate.check(&set);
                    return match checked {
                        Ok(()) => Ok(certificate),
                        Err(flaw) => Err(HostError::NotAdmitted(flaw.to_string())),
                    };
                }
                Decision::Refused(refusal) => {
                    refused = HostError::NotAdmitted(refusal.to_string());
                }
            }
        }
        Err(refused)
    }

    /// Bytes for functions: all slots but the one in which functions are measured.
    fn memory(&self) -> u64 {
        let engine = &self.0.options.engine;
        (engine.slots as u64 - 1) * engine.slot_bytes
    }
}
