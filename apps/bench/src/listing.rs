//! Machine code beside counts: the longest calls of a heap, disassembled with
//! the `objdump` of binutils.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use crate::Error;
use crate::instructions::Path;

/// Text of one instruction, by address in this process.
type Disassembly = BTreeMap<usize, String>;

/// The longest calls, instruction by instruction, with how often each
/// instruction ran in the whole workload.
pub(crate) fn render(paths: &[Path], visits: &BTreeMap<usize, u64>) -> Result<String, Error> {
    let code = disassemble(visits)?;
    let mut text = String::new();
    for path in paths {
        let _ = writeln!(
            text,
            "longest {}: event {}, {} bytes, {} instructions and the call",
            path.operation,
            path.event,
            path.size,
            path.addresses.len()
        );
        for (index, address) in path.addresses.iter().enumerate() {
            let instruction = code.get(address).map_or("(outside this program)", |s| s);
            let times = visits.get(address).copied().unwrap_or(0);
            let _ = writeln!(text, "{:>4} {times:>8}x  {instruction}", index + 1);
        }
        text.push('\n');
    }
    Ok(text)
}

/// Disassembles the part of this program that was visited.
fn disassemble(visits: &BTreeMap<usize, u64>) -> Result<Disassembly, Error> {
    let fail = |why: String| Error::Disassembly { why };
    let program = std::env::current_exe().map_err(|error| fail(error.to_string()))?;
    let (base, end) = program_range()?;
    let inside = || visits.keys().filter(|a| (base..end).contains(*a));
    let (Some(first), Some(last)) = (inside().next(), inside().next_back()) else {
        return Ok(Disassembly::new());
    };
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "-M", "intel"])
        .arg(format!("--start-address={:#x}", first - base))
        .arg(format!("--stop-address={:#x}", last - base + 16))
        .arg(&program)
        .output()
        .map_err(|error| fail(error.to_string()))?;
    if !output.status.success() {
        return Err(fail(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let mut code = Disassembly::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((address, instruction)) = line.split_once(":\t") else {
            continue;
        };
        if let Ok(address) = usize::from_str_radix(address.trim(), 16) {
            code.insert(address + base, instruction.trim().to_owned());
        }
    }
    Ok(code)
}

/// Where this program is loaded: first and last address of its mappings.
fn program_range() -> Result<(usize, usize), Error> {
    let fail = |why: &str| Error::Disassembly {
        why: why.to_owned(),
    };
    let program = std::env::current_exe().map_err(|error| fail(&error.to_string()))?;
    let name = program.to_string_lossy();
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|e| fail(&e.to_string()))?;
    let mut range: Option<(usize, usize)> = None;
    for line in maps.lines().filter(|line| line.ends_with(&*name)) {
        let span = line.split(' ').next().and_then(|span| span.split_once('-'));
        let Some((start, end)) = span else { continue };
        if let (Ok(start), Ok(end)) = (
            usize::from_str_radix(start, 16),
            usize::from_str_radix(end, 16),
        ) {
            let (low, high) = range.unwrap_or((start, end));
            range = Some((low.min(start), high.max(end)));
        }
    }
    range.ok_or_else(|| fail("this program is not in /proc/self/maps"))
}
