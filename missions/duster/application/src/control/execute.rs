//! What each telecommand needs, and does.
//!
//! *Invariant:* [`Control::check`] changes nothing; what it lets pass, [`Control::perform`] does or tells why it could not
//! be completed.

use core::sync::atomic::Ordering;

use metes_duster_protocol::definitions::{
    Command, Event, Failure, Housekeeping, Mode, ModeCause, Modes, Parameter, Rates, Report,
    SupplyState, transitions,
};
use metes_duster_protocol::telecommand::Request;
use metes_duster_protocol::time::milliseconds;
use metes_duster_protocol::value::Counted;
use metes_duster_protocol::{APID, Acknowledge, ProbeMode, RequestId, Telemetry, checksum};

use super::telemetry::Running;
use super::{Control, Progress, STORE_SCIENCE};
use crate::hardware::Hardware;
use crate::shared::{Order, Probe};

/// Time for which an acquisition may last longer than it should, in microseconds.
const PATIENCE: u64 = 10_000_000;

impl Control {
    /// Whether a telecommand may begin now.
    pub(super) fn check(
        &self,
        hardware: &impl Hardware,
        command: &Command<'_>,
    ) -> Result<(), Failure> {
        match *command {
            Command::StartAcquisition { probes, .. } => {
                self.check_acquisition()?;
                let fits = match self.mode {
                    Mode::AcqEnv => probes & 4 == 0,
                    Mode::AcqDust => probes == 4,
                    _ => true,
                };
                when(fits, Failure::Probes)
            }
            Command::StartSweep { .. } => self.check_acquisition(),
            Command::StopAcquisition {} => {
                when(self.running.is_some(), Failure::Idle)?;
                self.check_order()
            }
            Command::SetBias { .. } | Command::SetProbeMode { .. } => self.check_order(),
            Command::SetParameter { parameter, .. } => {
                when(parameter.definition().is_some(), Failure::ReadOnly)?;
                if parameter == Parameter::DustThreshold {
                    self.check_order()?;
                }
                Ok(())
            }
            Command::SetMode { mode } => self.check_mode(mode),
            Command::LoadMemory {
                data,
                checksum: crc,
                ..
            } => when(checksum::of(data.0) == crc, Failure::Checksum),
            Command::DumpMemory { address, length } | Command::CheckMemory { address, length } => {
                when(self.memory_job.is_none(), Failure::Busy)?;
                when(hardware.memory(address, length).is_some(), Failure::Address)
            }
            Command::CreateHousekeeping { structure, .. } => {
                when(!self.housekeeping.exists(structure as u8), Failure::Exists)
            }
            Command::DeleteHousekeeping { structure } => {
                when(self.housekeeping.exists(structure as u8), Failure::NoEntry)
            }
            Command::EnableHousekeeping { structure }
            | Command::DisableHousekeeping { structure }
            | Command::ReportHousekeeping { structure }
            | Command::SetHousekeepingPeriod { structure, .. } => {
                when(self.housekeeping.exists(structure as u8), Failure::NoEntry)
            }
            Command::ArmHighVoltage {}
            | Command::SetHighVoltage { .. }
            | Command::ClearTrip {}
            | Command::SetLowVoltage { .. }
            | Command::LowVoltageOn {}
            | Command::LowVoltageOff {} => self.check_supplies(hardware, command),
            Command::DumpScience { acquisition, .. } => self.store.check_dump(acquisition),
            Command::StopDump {} => when(self.store.dumping(), Failure::Idle),
            Command::DeleteScience { .. } => self.store.check_delete(),
            Command::InsertSchedule {
                release, request, ..
            } => self.check_schedule(hardware, release, request.0),
            Command::DeleteSchedule { request } => {
                when(self.schedule.has(request), Failure::NoEntry)
            }
            Command::TestConnection { apid } => {
                when(apid == APID || self.core_1_alive, Failure::Silent)
            }
            _ => Ok(()),
        }
    }

    fn check_order(&self) -> Result<(), Failure> {
        // One place is kept for safe mode.
        when(self.shared.orders.room() > 1, Failure::Orders)
    }

    fn check_acquisition(&self) -> Result<(), Failure> {
        when(self.running.is_none(), Failure::Busy)?;
        let stored = self.parameters[STORE_SCIENCE] != 0;
        when(!stored || self.store.takes(), Failure::StoreFull)?;
        self.check_order()
    }

    fn check_mode(&self, mode: Mode) -> Result<(), Failure> {
        when(transitions(self.mode).contains(mode), Failure::Transition)?;
        if mode == Mode::Safe {
            return Ok(());
        }
        when(self.running.is_none(), Failure::Busy)?;
        if Modes::of(&[Mode::AcqDust, Mode::AcqFull]).contains(mode) {
            let stable = self.supplies.state() == SupplyState::Stable;
            return when(stable, Failure::NotStable);
        }
        Ok(())
    }

    /// Does what a telecommand asks for, which was checked.
    pub(super) fn perform(
        &mut self,
        hardware: &mut impl Hardware,
        request: &Request<'_>,
    ) -> Result<Progress, Failure> {
        let pending = Some((request.id, request.acknowledge));
        match request.command {
            Command::StartAcquisition {
                probes,
                rates,
                duration,
            } => {
                let order = |acquisition| Order::Start {
                    acquisition,
                    probes,
                    minimum: rates == Rates::Minimum,
                    seconds: duration,
                };
                let lasts = u64::from(duration) * 1_000_000;
                return self.begin(hardware, false, lasts, pending, order);
            }
            Command::StartSweep {
                steps,
                from,
                to,
                dwell,
            } => {
                let order = |acquisition| Order::Sweep {
                    acquisition,
                    steps,
                    from,
                    to,
                    dwell,
                };
                let lasts = u64::from(steps) * u64::from(dwell.div_ceil(10)) * 10_000;
                return self.begin(hardware, true, lasts, pending, order);
            }
            Command::StopAcquisition {} => {
                if let Some(running) = &mut self.running {
                    running.stopped = true;
                }
                self.order(Order::Stop)?;
            }
            Command::SetBias { probe, code } => {
                let probe = Probe::of(probe as u8).ok_or(Failure::Argument)?;
                self.order(Order::Bias { probe, code })?;
            }
            Command::SetProbeMode { probe, mode } => {
                let probe = Probe::of(probe as u8).ok_or(Failure::Argument)?;
                let mode = u8::from(mode == ProbeMode::Monitor);
                self.order(Order::Mode { probe, mode })?;
            }
            Command::SetParameter { parameter, value } => self.set_parameter(parameter, value)?,
            Command::SetMode { mode: Mode::Safe } => self.safe(hardware, ModeCause::Command),
            Command::SetMode { mode } => self.change_mode(hardware, mode, ModeCause::Command),
            Command::SafeHighVoltage {} => self.high_voltage_off(hardware),
            Command::ArmHighVoltage {}
            | Command::SetHighVoltage { .. }
            | Command::ClearTrip {}
            | Command::SetLowVoltage { .. }
            | Command::LowVoltageOn {}
            | Command::LowVoltageOff {} => {
                return self.perform_supplies(hardware, request);
            }
            Command::DumpScience {
                acquisition,
                first,
                count,
            } => {
                self.store.begin_dump(acquisition, first, count);
                self.dump_request = pending;
                return Ok(Progress::UnderWay);
            }
            Command::StopDump {} => self.end_dump(hardware, Err(Failure::Aborted)),
            Command::DeleteScience { acquisition } => {
                self.store.begin_delete(acquisition);
                self.delete_request = pending;
                return Ok(Progress::UnderWay);
            }
            Command::Restart {} => self.restart = true,
            Command::LoadMemory { address, data, .. } => {
                let written = hardware.write_memory(address, data.0);
                when(written, Failure::Address)?;
            }
            Command::DumpMemory { .. } | Command::CheckMemory { .. } => {
                self.begin_memory(request);
                return Ok(Progress::UnderWay);
            }
            _ => self.answer(hardware, request)?,
        }
        Ok(Progress::Done)
    }

    /// What is answered at once, by a report or by a setting of core 0.
    fn answer(
        &mut self,
        hardware: &mut impl Hardware,
        request: &Request<'_>,
    ) -> Result<(), Failure> {
        match request.command {
            Command::CreateHousekeeping {
                structure,
                interval,
                parameters,
            } => self
                .housekeeping
                .create(structure as u8, interval, parameters.iter()),
            Command::DeleteHousekeeping { structure } => self.housekeeping.delete(structure as u8),
            Command::EnableHousekeeping { structure } => {
                self.housekeeping.enable(structure as u8, true);
            }
            Command::DisableHousekeeping { structure } => {
                self.housekeeping.enable(structure as u8, false);
            }
            Command::SetHousekeepingPeriod {
                structure,
                interval,
            } => {
                self.housekeeping.set_period(structure as u8, interval);
            }
            Command::ReportHousekeeping { structure } => {
                let sent = self.send_structure(hardware, structure as u8);
                when(sent, Failure::Memory)?;
            }
            Command::EnableEvent { event } => self.events_disabled &= !(1 << event as u8),
            Command::DisableEvent { event } => self.events_disabled |= 1 << event as u8,
            Command::ReportDisabledEvents {} => self.report_disabled_events(hardware),
            Command::SetTime { time } => {
                let now = self.time(hardware);
                self.time_offset = self
                    .time_offset
                    .wrapping_add(time.units())
                    .wrapping_sub(now.units());
            }
            Command::EnableSchedule {} => self.schedule.enabled = true,
            Command::DisableSchedule {} => self.schedule.enabled = false,
            Command::ResetSchedule {} => self.reset_schedule(),
            Command::InsertSchedule {
                release, request, ..
            } => {
                self.insert_schedule(release, request.0)?;
            }
            Command::DeleteSchedule { request } => self.delete_schedule(request),
            Command::ReportSchedule {} => self.report_schedule(hardware)?,
            Command::Ping {} => self.report(hardware, Report::Alive {}),
            Command::TestConnection { apid } => self.report(hardware, Report::Connected { apid }),
            Command::ReportParameter { parameter } => {
                let value = self.parameter(hardware, parameter);
                self.report(hardware, Report::ParameterValue { parameter, value });
            }
            Command::ReportMode {} => {
                let mode = self.mode;
                self.report(hardware, Report::ModeReport { mode });
            }
            _ => {}
        }
        Ok(())
    }

    /// Begins an acquisition or sweep.
    fn begin(
        &mut self,
        hardware: &impl Hardware,
        sweep: bool,
        lasts: u64,
        request: Option<(RequestId, Acknowledge)>,
        order: impl FnOnce(u16) -> Order,
    ) -> Result<Progress, Failure> {
        // 0 and 65535 stand for none and all.
        let number = match self.last_acquisition.max(self.store.last_acquisition()) {
            65_534.. => 1,
            last => last + 1,
        };
        self.order(order(number))?;
        self.last_acquisition = number;
        self.running = Some(Running {
            number,
            sweep,
            request,
            ends: hardware.now() + lasts + PATIENCE,
            over: false,
            stopped: false,
            records: 0,
        });
        Ok(Progress::UnderWay)
    }

    pub(super) fn order(&mut self, order: Order) -> Result<(), Failure> {
        self.shared.orders.put(order).map_err(|_| Failure::Orders)
    }

    fn set_parameter(&mut self, parameter: Parameter, value: i32) -> Result<(), Failure> {
        if parameter == Parameter::DustThreshold {
            self.order(Order::Threshold(value))?;
        }
        let place = (parameter as usize).checked_sub(1);
        let place = place.and_then(|index| self.parameters.get_mut(index));
        *place.ok_or(Failure::ReadOnly)? = value;
        Ok(())
    }

    /// Value of a parameter.
    pub(super) fn parameter(&self, hardware: &impl Hardware, parameter: Parameter) -> i32 {
        match parameter {
            Parameter::Mode => self.mode as i32,
            Parameter::Acquisition => self.acquisition().into(),
            Parameter::LastAcquisition => self.last_acquisition.into(),
            Parameter::Records => self.store.records() as i32,
            Parameter::HvVoltage => self.supplies.voltage().into(),
            Parameter::HvState => self.supplies.state() as i32,
            Parameter::Scheduled => self.schedule.len() as i32,
            Parameter::Uptime => milliseconds(hardware.now()) as i32,
            settable => {
                let index = (settable as usize).saturating_sub(1);
                self.parameters.get(index).copied().unwrap_or(0)
            }
        }
    }

    /// The acquisition under way, 0 if none.
    pub(super) fn acquisition(&self) -> u16 {
        self.running.as_ref().map_or(0, |running| running.number)
    }

    fn report_disabled_events(&mut self, hardware: &impl Hardware) {
        let mut numbers = [0_u8; Event::COUNT];
        let mut count = 0;
        for number in 1..=Event::COUNT as u8 {
            if self.events_disabled >> number & 1 == 1
                && let Some(place) = numbers.get_mut(count)
            {
                *place = number;
                count += 1;
            }
        }
        let events = Counted::new(numbers.get(..count).unwrap_or_default());
        self.report(hardware, Report::DisabledEvents { events });
    }

    /// Samples and events that core 1 counts, for housekeeping.
    pub(super) fn acquisitions(&self) -> metes_duster_protocol::definitions::Acquisitions {
        let status = &self.shared.status;
        let mut it = metes_duster_protocol::definitions::Acquisitions {
            acquisition: self.acquisition(),
            sweeps: status.sweeps.load(Ordering::Relaxed),
            events: status.events.load(Ordering::Relaxed),
            blocks: self.counts.blocks,
            ..Default::default()
        };
        let counts = status
            .samples
            .iter()
            .zip(&status.lost)
            .zip(&status.set_peak);
        for (probe, ((samples, lost), peak)) in it.probe.iter_mut().zip(counts) {
            probe.samples = samples.load(Ordering::Relaxed);
            probe.lost = lost.load(Ordering::Relaxed);
            probe.fifo_peak = peak.load(Ordering::Relaxed) as u16;
        }
        it
    }

    /// Sends a structure of housekeeping; whether there was room.
    pub(super) fn send_housekeeping(
        &mut self,
        hardware: &impl Hardware,
        housekeeping: Housekeeping<'_>,
    ) -> bool {
        self.queue(hardware, &Telemetry::Housekeeping(housekeeping))
    }
}

/// Nothing, when something holds.
pub(super) fn when(holds: bool, otherwise: Failure) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(otherwise) }
}
