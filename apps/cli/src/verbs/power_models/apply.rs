//! `metes power apply`.
//!
//! Invariant: with a program, what was set before is restored whatever ends this process but SIGKILL; without one, and
//! after that, a file has it.

use metes_power::machine::{Applied, Machine, Restored, Saved};
use metes_trace::record::run::run_command;
use metes_tune::stdout_to_stderr;
use serde_json::json;

use super::sweep::program;
use super::{fail, khz};
use crate::arguments::PowerApply;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::{interrupt, output};

/// What a tree other than the kernel's means.
pub(super) const RECORDED: &str =
    "is no running kernel's: files are written there, and no frequency of this machine changes";

pub(crate) fn run(arguments: &PowerApply, json: bool) -> Result<u8, Failure> {
    if let Some(file) = &arguments.restore {
        let mut saved = Saved::from_file(file).map_err(fail)?;
        let restored = restored(&mut saved)?;
        match json {
            true => output::json(&json!({ "restored": restored.files }))?,
            false => output::text(&format!("{} settings restored\n", restored.files))?,
        }
        return Ok(0);
    }
    let cpu = khz(arguments.cpu.unwrap_or_default())?;
    let memory = arguments.memory.map(khz).transpose()?;
    let machine =
        Machine::find(&arguments.sysfs, arguments.memory_device.as_deref()).map_err(fail)?;
    let recorded = arguments.sysfs != std::path::Path::new("/sys");
    if recorded {
        output::note(&format!("{} {RECORDED}", output::name(&arguments.sysfs)));
    }
    // From now on no signal ends this process while settings are not restored.
    interrupt::flag()?;
    let mut saved = machine.save().map_err(fail)?;
    saved.keep(&arguments.saved).map_err(kept)?;
    let applied = match machine.set(cpu, memory) {
        Ok(applied) => applied,
        Err(error) => {
            restored(&mut saved)?;
            return Err(fail(error));
        }
    };
    if !applied.iter().all(Applied::holds) {
        restored(&mut saved)?;
        show(json, &applied, false, None)?;
        return Ok(DOES_NOT_HOLD);
    }
    if arguments.command.is_empty() {
        saved.leave();
        show(json, &applied, true, Some(&arguments.saved))?;
        return Ok(0);
    }
    let aside = match json {
        true => Some(stdout_to_stderr()?),
        false => None,
    };
    let ended = run_command(program(&arguments.command, None));
    drop(aside);
    restored(&mut saved)?;
    let status = ended?.ending.shell_status();
    if let Some(signal) = interrupt::asked_to_end() {
        return Err(Failure::ended(signal, "what was set before is restored"));
    }
    if json {
        output::json(&json!({ "applied": applied, "status": status }))?;
    }
    Ok(u8::try_from(status).unwrap_or(u8::MAX))
}

/// A file of settings that is there already has what somebody still has to restore.
pub(super) fn kept(error: metes_power::machine::MachineError) -> Failure {
    Failure::input(format!(
        "{error}; if an earlier run was killed, `metes power apply --restore FILE` restores what it had saved"
    ))
}

/// Restores; fails if something could not be.
pub(super) fn restored(saved: &mut Saved) -> Result<Restored, Failure> {
    let restored = saved.restore();
    match restored.failed.first() {
        None => Ok(restored),
        Some(first) => Err(Failure::input(format!(
            "{} settings could not be restored, the first: {first}",
            restored.failed.len()
        ))),
    }
}

fn show(
    json: bool,
    applied: &[Applied],
    holds: bool,
    saved: Option<&std::path::Path>,
) -> Result<(), Failure> {
    if json {
        return output::json(&json!({
            "applied": applied,
            "holds": holds,
            "saved": saved.map(output::name),
        }));
    }
    let mut text = String::new();
    for Applied { domain, asked, is } in applied {
        let is = is.map_or("it does not say what it runs at".to_owned(), |khz| {
            format!("runs at {} MHz", khz as f64 / 1e3)
        });
        text += &format!("{domain}: {} MHz asked for, {is}\n", *asked as f64 / 1e3);
    }
    text += &match saved {
        Some(file) => format!(
            "`metes power apply --restore {}` restores what was set before\n",
            output::name(file)
        ),
        None => "not applied: what was set before is restored\n".to_owned(),
    };
    output::text(&text)
}
