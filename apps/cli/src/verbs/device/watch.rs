//! `metes device watch`: finds the heap, and shows it in the way that was asked for.
//!
//! Invariant: watching ends with the heap, and then with exit status 0; a heap that is not found
//! is bad input.

mod live;
mod target;

use std::io::{IsTerminal, stdout};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use metes_explorer::serve::{Server, only_here};
use metes_watch::{CELLS, Latest, Watcher, page, picture, router};
use serde_json::json;

use crate::arguments::Watch;
use crate::error::Failure;
use crate::own::Form;
use crate::{interrupt, output};

/// Between two looks, if nothing else is said.
const INTERVAL: Duration = Duration::from_millis(500);
/// Nobody sees more of a terminal, and a page draws no more.
const SHORTEST: Duration = Duration::from_millis(20);

pub(crate) fn run(arguments: &Watch, json: bool) -> Result<u8, Failure> {
    let Watch {
        target,
        once,
        interval,
        page,
        output,
    } = arguments;
    let every = interval
        .map_or(INTERVAL, Duration::from_secs_f64)
        .max(SHORTEST);
    let mut watcher = Watcher::new(target::find(target.as_deref())?);
    if let Some(address) = page {
        return serve(watcher, *address, every, json);
    }
    if let Some(path) = output {
        return write(&mut watcher, path, json);
    }
    if !once && json && interval.is_some() {
        return stream(&mut watcher, every);
    }
    if !once && !json && stdout().is_terminal() {
        return live::run(&mut watcher, every);
    }
    if interval.is_some() {
        watcher.look(1)?;
        thread::sleep(every);
    }
    show(&mut watcher, json)
}

/// One picture, or one record.
fn show(watcher: &mut Watcher, json: bool) -> Result<u8, Failure> {
    if json {
        output::json(&watcher.look(CELLS)?)?;
        return Ok(0);
    }
    let screen = live::screen();
    let view = watcher.look(screen.cells())?;
    output::text(&picture(&view, screen))?;
    Ok(0)
}

/// A record a line, until the heap ends or nobody reads.
fn stream(watcher: &mut Watcher, every: Duration) -> Result<u8, Failure> {
    use std::io::Write;
    let stop = interrupt::flag()?;
    loop {
        let began = Instant::now();
        let view = watcher.look(CELLS)?;
        let mut text = serde_json::to_string(&view).map_err(unwritten)?;
        text.push('\n');
        let mut out = stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        match written {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(0),
            Err(error) => return Err(Failure::io("write to", Path::new("standard output"), error)),
            Ok(()) if view.process.ended || paused(&stop, began, every) => return Ok(0),
            Ok(()) => {}
        }
    }
}

/// Waits until `every` after `began`; whether it was interrupted.
fn paused(stop: &AtomicBool, began: Instant, every: Duration) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = every.saturating_sub(began.elapsed());
        if left.is_zero() {
            return false;
        }
        thread::sleep(left.min(Duration::from_millis(50)));
    }
    true
}

fn unwritten(error: serde_json::Error) -> Failure {
    Failure::input(format!("the view cannot be written as JSON: {error}"))
}

/// The moment as a file.
fn write(watcher: &mut Watcher, path: &Path, json: bool) -> Result<u8, Failure> {
    output::writable(path, Form::Page)?;
    let view = watcher.look(CELLS)?;
    output::write_file(path, page(&view, None).as_bytes())?;
    match json {
        true => {
            let mut document = serde_json::to_value(&view).map_err(unwritten)?;
            document["page"] = json!(output::name(path));
            output::json(&document)?;
        }
        false => output::text(&format!("{}\n", path.display()))?,
    }
    Ok(0)
}

/// The live page.
fn serve(
    mut watcher: Watcher,
    address: std::net::SocketAddr,
    every: Duration,
    json: bool,
) -> Result<u8, Failure> {
    let latest = Latest::new(&mut watcher, every.as_millis() as u64)?;
    let router = only_here(router(latest.clone()), address.ip());
    let server = Server::over(address, router).map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::AddrInUse => "; choose another port, or 0 for any",
            _ => "; give an address of this machine, as 127.0.0.1:8000",
        };
        Failure::input(format!("cannot listen on {address}: {error}{remedy}"))
    })?;
    let url = format!("http://{}/", server.address());
    let ended = interrupt::ended()?;
    match json {
        true => output::json(&json!({ "url": url, "heap": target::name(watcher.board()) }))?,
        false => {
            output::text(&format!("{url}\n"))?;
            output::note("answers until Ctrl-C");
        }
    }
    let over = Arc::new(AtomicBool::new(false));
    let looker = {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            let mut goes_on = true;
            while goes_on && !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                goes_on = latest.look(&mut watcher) && !paused(&over, began, every);
            }
        })
    };
    let served = server.run(ended);
    over.store(true, Ordering::Relaxed);
    // It ends by itself; a panic of it was shown by then.
    let _ = looker.join();
    served?;
    Ok(0)
}
