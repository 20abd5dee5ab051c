//! Which heap is watched.

use std::path::Path;

use metes_board::Board;

use crate::error::Failure;

/// What a heap is called: its process and its number there.
pub(super) fn name(board: &Board) -> String {
    format!("{}.{}", board.process(), board.header().serial)
}

/// The heap that was named, or the only one.
#[cfg(target_os = "linux")]
pub(super) fn find(target: Option<&Path>) -> Result<Board, Failure> {
    let Some(target) = target else {
        let (boards, failed) = running();
        return only(boards, failed, || {
            "no device heap that may be watched runs here: start the program by `python -m \
             metes.torch`, or with METES_DEVICE_WATCH=1, and look as the same user"
                .to_owned()
        });
    };
    let text = target.to_string_lossy();
    let (process, serial) = match text.split_once('.') {
        Some((process, serial)) => (process, Some(serial)),
        None => (&*text, None),
    };
    let numbers = (process.parse::<u32>(), serial.map(str::parse::<u64>));
    let (Ok(process), None | Some(Ok(_))) = numbers else {
        return Ok(Board::open(target)?);
    };
    let serial = numbers.1.and_then(Result::ok);
    let (mut boards, failed) = running();
    let others: Vec<String> = boards.iter().map(name).collect();
    boards.retain(|board| {
        board.process() == process && serial.is_none_or(|serial| board.header().serial == serial)
    });
    only(boards, failed, || {
        let there = match others.is_empty() {
            true => "none that may be watched runs here".to_owned(),
            false => format!("there are {}", others.join(", ")),
        };
        format!("no device heap {text}: {there}")
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn find(target: Option<&Path>) -> Result<Board, Failure> {
    match target {
        Some(target) => Ok(Board::open(target)?),
        None => Err(Failure::input(
            "device heaps are watched on Linux alone: name a copy of a board",
        )),
    }
}

/// The boards of this machine, and why others cannot be read.
#[cfg(target_os = "linux")]
fn running() -> (Vec<Board>, Vec<metes_board::Error>) {
    let mut boards = Vec::new();
    let mut failed = Vec::new();
    for found in metes_board::find() {
        match found {
            Ok(board) if board.ended() => {}
            Ok(board) => boards.push(board),
            Err(error) => failed.push(error),
        }
    }
    (boards, failed)
}

/// The only one of them.
#[cfg(target_os = "linux")]
fn only(
    mut boards: Vec<Board>,
    failed: Vec<metes_board::Error>,
    none: impl FnOnce() -> String,
) -> Result<Board, Failure> {
    match (boards.pop(), boards.is_empty()) {
        (Some(board), true) => Ok(board),
        (Some(last), false) => {
            boards.push(last);
            let mut text = String::from("several device heaps run here, name one of them:");
            for board in &boards {
                let header = board.header();
                let program: String = header.program.chars().take(60).collect();
                text += &format!("\n  {}  {}  {program}", name(board), header.device);
            }
            Err(Failure::input(text))
        }
        (None, _) => match failed.into_iter().next() {
            Some(error) => Err(error.into()),
            None => Err(Failure::input(none())),
        },
    }
}
