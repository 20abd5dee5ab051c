//! What a declaration may not contradict itself in.
//!
//! *Invariant:* each contradiction is told in one line that names the entry and what it should be.

use std::collections::BTreeSet;

use super::{NoSystem, System};

impl System {
    pub(super) fn check(&self) -> Result<(), NoSystem> {
        self.platform()?;
        self.names()?;
        self.tasks()?;
        self.partitions()?;
        self.wires()
    }

    fn platform(&self) -> Result<(), NoSystem> {
        let it = &self.platform;
        good((1..=2).contains(&it.cores), || {
            format!("platform: cores is {}, but must be 1 or 2", it.cores)
        })?;
        good(it.frequency >= 1_000_000, || {
            format!(
                "platform: frequency is {}, but must be at least 1 MHz",
                it.frequency
            )
        })?;
        good(it.tick > 0 && it.watchdog > it.tick, || {
            "platform: tick must be positive, and watchdog longer than it".to_owned()
        })?;
        good(it.stack.is_multiple_of(8) && it.stack >= 1024, || {
            format!(
                "platform: stack is {}, but must be a multiple of 8, at least 1024",
                it.stack
            )
        })
    }

    fn names(&self) -> Result<(), NoSystem> {
        unique("task", self.tasks.iter().map(|it| &it.name))?;
        unique("partition", self.partitions.iter().map(|it| &it.name))?;
        unique("bus", self.buses.iter().map(|it| &it.name))?;
        unique("line", self.lines.iter().map(|it| &it.name))?;
        unique("buffer", self.buffers.iter().map(|it| &it.name))
    }

    fn core(&self, what: &str, core: usize) -> Result<(), NoSystem> {
        good(core < self.platform.cores, || {
            format!(
                "{what} is on core {core}, but cores are 0 to {}",
                self.platform.cores - 1
            )
        })
    }

    fn tasks(&self) -> Result<(), NoSystem> {
        let tick = self.platform.tick;
        for it in &self.interrupts {
            self.core(&format!("interrupt {}", it.name), it.core)?;
            good(it.period > 0 && it.budget < it.period, || {
                format!(
                    "interrupt {}: its budget must be less than its period",
                    it.name
                )
            })?;
        }
        for it in &self.tasks {
            let name = &it.name;
            self.core(&format!("task {name}"), it.core)?;
            good(it.period > 0 && it.period.is_multiple_of(tick), || {
                format!("task {name}: its period must be whole ticks of {tick} microseconds")
            })?;
            good(
                it.offset < it.period && it.offset.is_multiple_of(tick),
                || format!("task {name}: its offset must be whole ticks, less than its period"),
            )?;
            good(it.budget > 0 && it.budget <= it.deadline, || {
                format!("task {name}: its budget must be positive and at most its deadline")
            })?;
            good(it.deadline > 0, || {
                format!("task {name}: its deadline must be positive")
            })?;
        }
        Ok(())
    }

    fn partitions(&self) -> Result<(), NoSystem> {
        for it in &self.partitions {
            let name = &it.name;
            self.core(&format!("partition {name}"), it.core)?;
            let owner = self.task(&it.owner);
            good(owner.is_some(), || {
                format!("partition {name}: owner \"{}\" is no task", it.owner)
            })?;
            good(owner.is_some_and(|task| task.core == it.core), || {
                format!(
                    "partition {name} and its owner {} must be on one core",
                    it.owner
                )
            })?;
            good(it.size >= 1024 && it.size.is_multiple_of(8), || {
                format!("partition {name}: its size must be a multiple of 8, at least 1024")
            })?;
            good(!it.heap.is_empty(), || {
                format!("partition {name}: heap must name a heap, such as \"tlsf\"")
            })?;
        }
        Ok(())
    }

    fn wires(&self) -> Result<(), NoSystem> {
        for it in &self.buses {
            good(
                it.clock > 0 && it.rate > 0 && it.rate_min > 0 && it.fifo > 0,
                || format!("bus {}: clock, rates and fifo must be positive", it.name),
            )?;
            good((2..=16).contains(&it.frames), || {
                format!(
                    "bus {}: frames is {}, but must be 2 to 16",
                    it.name, it.frames
                )
            })?;
        }
        for it in &self.lines {
            good(it.uart < 5 && it.baud > 0, || {
                format!("line {}: UART must be 0 to 4, and baud positive", it.name)
            })?;
            if let super::Load::Of(load) = &it.load {
                good(load == "science", || {
                    format!("line {}: load is bytes a second, or \"science\"", it.name)
                })?;
            }
        }
        for it in &self.buffers {
            let there = |name: &str| {
                self.task(name).is_some() || it.name == name || self.line(name).is_some()
            };
            for end in [&it.from, &it.to] {
                good(there(end), || {
                    format!("buffer {}: \"{end}\" is no task and no line", it.name)
                })?;
            }
            good(it.capacity > 0, || {
                format!("buffer {}: capacity must be positive", it.name)
            })?;
        }
        good(self.science.samples_a_packet > 0, || {
            "science: samples_a_packet must be positive".to_owned()
        })
    }
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a String>) -> Result<(), NoSystem> {
    let mut seen = BTreeSet::new();
    for name in names {
        good(seen.insert(name), || {
            format!("{kind} \"{name}\" is declared twice")
        })?;
    }
    Ok(())
}

fn good(is: bool, says: impl FnOnce() -> String) -> Result<(), NoSystem> {
    if is {
        Ok(())
    } else {
        Err(NoSystem::Contradiction(says()))
    }
}
