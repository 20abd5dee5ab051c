//! Any bytes as a system of tasks and jobs: accepted or refused; a small one is analysed and planned, and its plan checked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metes_power::plan::{Effort, PlanError, plan};
use metes_power::{System, check};

fuzz_target!(|data: &[u8]| {
    let Ok(system) = System::parse(&String::from_utf8_lossy(data)) else {
        return;
    };
    if system.tasks.len() + system.jobs.len() > 4 || system.processor.pairs().len() > 6 {
        return;
    }
    // Thousands of jobs in a hyperperiod are no fault, but take a second.
    let hyperperiod = metes_power::pair::hyperperiod(&system);
    let periods = system.tasks.iter().map(|task| &task.period);
    if periods.clone().any(|period| &hyperperiod / period > metes_power::rational::whole(100)) {
        return;
    }
    let _ = check(&system, None);
    let effort = Effort {
        nodes: 50,
        ..Effort::default()
    };
    let planned = plan(&system, effort);
    assert!(!matches!(planned, Err(PlanError::Flawed(_))), "{planned:?}");
});
