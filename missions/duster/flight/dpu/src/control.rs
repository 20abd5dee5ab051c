//! temp
use metes_duster_application::shared::{Order, Shared};
use metes_duster_application::declared::{TASKS_0, TICK};
use metes_duster_application::executive::Executive;
use core::sync::atomic::Ordering;
use crate::clock::{self, Here};
pub(crate) struct Unit { shared: &'static Shared, sent: bool }
impl Unit {
    pub(crate) fn new(shared: &'static Shared) -> Unit { Unit { shared, sent: false } }
    pub(crate) fn run(&mut self) -> ! {
        let mut executive = Executive::new(&TASKS_0, TICK);
        loop {
            let seen = clock::TICKS[0].load(Ordering::Relaxed);
            let ran = executive.dispatch(&mut Here(0), |task, _| {
                if task == 0 {
                    if !self.sent { self.sent = true; let _ = self.shared.orders.put(Order::Start{acquisition:1,probes:7,minimum:false,seconds:3}); }
                    for _ in 0..8 { if let Some(b) = self.shared.science.take() { crate::line::transmit(&b.bytes()[..8]); let _ = self.shared.freed.put(b); } }
                    while let Some(_) = self.shared.reports.take() {}
                    clock::kick();
                }
            });
            if ran.is_none() { duster_runtime::sleep(&clock::TICKS[0], seen) }
        }
    }
}
