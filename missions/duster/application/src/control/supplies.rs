//! The power supplies: asked each 50 milliseconds, told what the ground wants, watched.
//!
//! High voltage takes two steps: it is armed for a time, then set once. Whatever goes wrong cuts it off by a wire of its own
//! before the supply is asked to switch off.
//!
//! *Invariant:* high voltage is let through only between a set that was armed and the next off, trip, silence or failure.

mod link;

use metes_duster_protocol::definitions::{Command, Event, Failure, ModeCause, Supply, SupplyState};
use metes_duster_protocol::supply::{Order, Reply, status};
use metes_duster_protocol::telecommand::Request;
use metes_duster_protocol::{Acknowledge, Mode, RequestId};

use super::execute::when;
use super::{ARM_TIMEOUT, Control, Progress, STABLE_TIMEOUT, SUPPLY_RETRIES};
use crate::declared::TASK_SUPPLIES;
use crate::hardware::Hardware;
use link::{Heard, Link};

/// Channels of low voltage, switched on and off together.
const CHANNELS: u16 = 4;

type Pending = Option<(RequestId, Acknowledge)>;

/// What is known of the supplies, and wanted of them.
pub(super) struct Supplies {
    high: Link,
    low: Link,
    state: SupplyState,
    /// Until when high voltage may be set, in microseconds since the epoch.
    armed: Option<u64>,
    target: u16,
    /// Until when it has to be stable, and whether the supply has said that it is on its way: a status that was asked
    /// for before tells of the voltage before.
    stable: u64,
    under_way: bool,
    reply: Reply,
    low_reply: Reply,
    channels: [(u16, u16); 4],
    channel: u16,
    trips: u16,
    high_request: Pending,
    low_request: Pending,
    off_wanted: bool,
}

impl Supplies {
    pub(super) const fn new() -> Self {
        const NONE: Reply = Reply {
            order: 0,
            status: 0,
            voltage: 0,
            current: 0,
        };
        Supplies {
            high: Link::new(Supply::High),
            low: Link::new(Supply::Low),
            state: SupplyState::Off,
            armed: None,
            target: 0,
            stable: 0,
            under_way: false,
            reply: NONE,
            low_reply: NONE,
            channels: [(0, 0); 4],
            channel: 0,
            trips: 0,
            high_request: None,
            low_request: None,
            off_wanted: true,
        }
    }

    /// What is known of the high voltage.
    pub(super) fn state(&self) -> SupplyState {
        match self.state {
            SupplyState::Off if self.armed.is_some() => SupplyState::Armed,
            state => state,
        }
    }

    pub(super) const fn voltage(&self) -> u16 {
        self.reply.voltage
    }

    /// For housekeeping.
    pub(super) fn told(&self) -> metes_duster_protocol::definitions::Supplies {
        let mut told = metes_duster_protocol::definitions::Supplies {
            hv_status: self.reply.status,
            hv_target: self.target,
            hv_voltage: self.reply.voltage,
            hv_current: self.reply.current,
            hv_trips: self.trips,
            hv_timeouts: self.high.timeouts,
            lv_status: self.low_reply.status,
            lv_timeouts: self.low.timeouts,
            ..Default::default()
        };
        for (place, (voltage, current)) in told.lv.iter_mut().zip(self.channels) {
            (place.voltage, place.current) = (voltage, current);
        }
        told
    }
}

impl Control {
    /// The task `supplies`, each 50 milliseconds. Time: a step of each link.
    pub fn supplies(&mut self, hardware: &mut impl Hardware) {
        self.ran_task(TASK_SUPPLIES);
        let now = hardware.now();
        if hardware.tripped() && self.supplies.state != SupplyState::Tripped {
            self.trip(hardware);
        }
        if self.supplies.armed.is_some_and(|until| now >= until) {
            self.supplies.armed = None;
            self.event(hardware, Event::ArmExpired {});
        }
        if self.supplies.state == SupplyState::Ramping && now >= self.supplies.stable {
            let request = self.supplies.high_request.take();
            self.failed(hardware, request, Failure::Supply);
            self.high_voltage_off(hardware);
        }
        self.high_step(hardware);
        self.low_step(hardware);
    }

    fn high_step(&mut self, hardware: &mut impl Hardware) {
        if self.supplies.off_wanted && self.supplies.high.orders.put((Order::Off, 0)).is_ok() {
            self.supplies.off_wanted = false;
        }
        let retries = self.parameters[SUPPLY_RETRIES];
        match self.supplies.high.step(hardware, 0, retries) {
            Heard::Nothing => {}
            Heard::Answer(order, _, reply) => {
                self.supplies.reply = reply;
                self.high_answer(hardware, order, reply);
            }
            Heard::Silence(order) => {
                if !self.supplies.high.silent {
                    self.supplies.high.silent = true;
                    self.event(
                        hardware,
                        Event::SupplySilent {
                            supply: Supply::High,
                        },
                    );
                }
                // What was asked for may have been done: off by the wire, and asked for until it is answered.
                let request = self.supplies.high_request.take();
                self.failed(hardware, request, Failure::Silent);
                let on = matches!(
                    self.supplies.state,
                    SupplyState::Ramping | SupplyState::Stable
                );
                if on || order == Order::Off {
                    self.high_voltage_off(hardware);
                }
                if self.supplies.state != SupplyState::Tripped {
                    self.supplies.state = SupplyState::Silent;
                }
            }
        }
    }

    fn high_answer(&mut self, hardware: &mut impl Hardware, order: Order, reply: Reply) {
        if reply.status & status::TRIPPED != 0 {
            if self.supplies.state != SupplyState::Tripped {
                self.trip(hardware);
            }
            return;
        }
        if self.supplies.state == SupplyState::Silent {
            self.supplies.state = SupplyState::Off;
        }
        let refused = reply.status & status::BAD_REQUEST != 0;
        match order {
            Order::Set | Order::On if refused => {
                let request = self.supplies.high_request.take();
                self.failed(hardware, request, Failure::Supply);
                self.high_voltage_off(hardware);
            }
            Order::On => {
                self.supplies.under_way = true;
                let request = self.supplies.high_request;
                self.progressed(hardware, request, 1);
            }
            Order::ClearTrip if self.supplies.state == SupplyState::Tripped => {
                self.supplies.state = SupplyState::Off;
                let request = self.supplies.high_request.take();
                self.completed(hardware, request);
            }
            Order::Status
                if self.supplies.state == SupplyState::Ramping && self.supplies.under_way =>
            {
                let there = status::ON | status::STABLE;
                if reply.status & there == there {
                    self.supplies.state = SupplyState::Stable;
                    let voltage = reply.voltage;
                    self.event(hardware, Event::HvStable { voltage });
                    let request = self.supplies.high_request.take();
                    self.completed(hardware, request);
                }
            }
            // Off though nobody asked for it.
            Order::Status
                if self.supplies.state == SupplyState::Stable && reply.status & status::ON == 0 =>
            {
                self.high_voltage_off(hardware);
            }
            _ => {}
        }
    }

    fn low_step(&mut self, hardware: &mut impl Hardware) {
        let channel = self.supplies.channel;
        let retries = self.parameters[SUPPLY_RETRIES];
        match self.supplies.low.step(hardware, channel << 12, retries) {
            Heard::Nothing => {}
            Heard::Answer(Order::Status, asked, reply) => {
                self.supplies.low_reply = reply;
                if let Some(place) = self.supplies.channels.get_mut(usize::from(asked >> 12)) {
                    *place = (reply.voltage, reply.current);
                }
                self.supplies.channel = (channel + 1) % CHANNELS;
            }
            Heard::Answer(order, asked, reply) => {
                self.supplies.low_reply = reply;
                if reply.status & status::BAD_REQUEST != 0 {
                    let request = self.supplies.low_request.take();
                    self.failed(hardware, request, Failure::Supply);
                } else if order == Order::Set || asked >> 12 == CHANNELS - 1 {
                    let request = self.supplies.low_request.take();
                    self.completed(hardware, request);
                }
            }
            Heard::Silence(_) => {
                if !self.supplies.low.silent {
                    self.supplies.low.silent = true;
                    self.event(
                        hardware,
                        Event::SupplySilent {
                            supply: Supply::Low,
                        },
                    );
                }
                let request = self.supplies.low_request.take();
                self.failed(hardware, request, Failure::Silent);
            }
        }
    }

    /// High voltage has tripped.
    fn trip(&mut self, hardware: &mut impl Hardware) {
        let voltage = self.supplies.reply.voltage;
        self.supplies.trips = self.supplies.trips.saturating_add(1);
        self.event(hardware, Event::HvTrip { voltage });
        let request = self.supplies.high_request.take();
        self.failed(hardware, request, Failure::Tripped);
        self.safe(hardware, ModeCause::Fault);
        self.supplies.state = SupplyState::Tripped;
    }

    /// Cuts high voltage off, and asks the supply to switch off.
    pub(super) fn high_voltage_off(&mut self, hardware: &mut impl Hardware) {
        hardware.inhibit(true);
        let request = self.supplies.high_request.take();
        self.failed(hardware, request, Failure::Aborted);
        self.supplies.armed = None;
        self.supplies.target = 0;
        while self.supplies.high.orders.take().is_some() {}
        self.supplies.off_wanted = true;
        if matches!(
            self.supplies.state,
            SupplyState::Ramping | SupplyState::Stable
        ) {
            self.supplies.state = SupplyState::Off;
        }
    }

    pub(super) fn check_supplies(
        &self,
        hardware: &impl Hardware,
        command: &Command<'_>,
    ) -> Result<(), Failure> {
        let it = &self.supplies;
        let tripped = it.state == SupplyState::Tripped || hardware.tripped();
        match command {
            Command::ArmHighVoltage {} => when(!tripped, Failure::Tripped),
            Command::SetHighVoltage { .. } => {
                when(!tripped, Failure::Tripped)?;
                when(it.armed.is_some(), Failure::NotArmed)?;
                when(
                    it.high_request.is_none() && it.high.orders.room() > 2,
                    Failure::Busy,
                )
            }
            Command::ClearTrip {} => {
                when(tripped, Failure::Idle)?;
                when(
                    it.high_request.is_none() && it.high.orders.room() > 1,
                    Failure::Busy,
                )
            }
            _ => when(
                it.low_request.is_none() && it.low.orders.room() > 0,
                Failure::Busy,
            ),
        }
    }

    pub(super) fn perform_supplies(
        &mut self,
        hardware: &mut impl Hardware,
        request: &Request<'_>,
    ) -> Result<Progress, Failure> {
        let pending = Some((request.id, request.acknowledge));
        let now = hardware.now();
        let seconds = self.parameters[ARM_TIMEOUT] as u64;
        let milliseconds = self.parameters[STABLE_TIMEOUT] as u64;
        let it = &mut self.supplies;
        let busy = |_| Failure::Busy;
        match request.command {
            Command::ArmHighVoltage {} => {
                it.armed = Some(now + seconds * 1_000_000);
                return Ok(Progress::Done);
            }
            Command::SetHighVoltage { voltage: 0 } => {
                self.high_voltage_off(hardware);
                return Ok(Progress::Done);
            }
            Command::SetHighVoltage { voltage } => {
                it.armed = None;
                it.off_wanted = false;
                it.high.orders.put((Order::Set, voltage)).map_err(busy)?;
                it.high.orders.put((Order::On, 0)).map_err(busy)?;
                it.target = voltage;
                it.state = SupplyState::Ramping;
                it.under_way = false;
                it.stable = now + milliseconds * 1000;
                it.high_request = pending;
                hardware.inhibit(false);
            }
            Command::ClearTrip {} => {
                it.high.orders.put((Order::ClearTrip, 0)).map_err(busy)?;
                it.high_request = pending;
            }
            Command::SetLowVoltage { channel, voltage } => {
                let argument = u16::from(channel) << 12 | voltage;
                it.low.orders.put((Order::Set, argument)).map_err(busy)?;
                it.low_request = pending;
            }
            Command::LowVoltageOn {} | Command::LowVoltageOff {} => {
                let on = matches!(request.command, Command::LowVoltageOn {});
                let order = if on { Order::On } else { Order::Off };
                for channel in 0..CHANNELS {
                    it.low.orders.put((order, channel << 12)).map_err(busy)?;
                }
                it.low_request = pending;
            }
            _ => return Err(Failure::Argument),
        }
        Ok(Progress::UnderWay)
    }

    /// Whether the mode acquires under high voltage.
    pub(super) const fn under_high_voltage(&self) -> bool {
        matches!(self.mode, Mode::AcqDust | Mode::AcqFull)
    }
}
