//! A machine under a debugger: gdb's remote protocol over TCP.
//!
//! ```no_run
//! use metes_leon3::{Configuration, Image, Machine, gdb};
//! let image = Image::read(&std::fs::read("image.elf").unwrap()).unwrap();
//! let mut machine = Machine::with_image(&Configuration::default(), &image).unwrap();
//! let mut options = gdb::Options::default();
//! options.listening = Box::new(|address| println!("gdb-multiarch image.elf -ex 'target remote {address}'"));
//! options.uart = Box::new(std::io::stdout());
//! let parting = gdb::serve(&mut machine, options).unwrap();
//! ```
//!
//! Each core is a thread, its number and one the thread's. The machine stands until the debugger lets it run, and runs
//! as it would without one, cycle by cycle: breakpoints leave no trace in memory, and other cores do what is
//! theirs while one steps. A step is an instruction; interrupts and windows that overflow or underflow are served within
//! it, and any other trap ends it at the handler. A watchpoint stops behind the
//! instruction that accesses. Of callers in register windows that are not on the stack yet, the debugger finds the
//! registers where they would be.
//!
//! `ta 0` with traps off is the program's end, with status 0. Any other end stops with a signal first, and with its
//! reason on the debugger's console: SIGILL, SIGSEGV, SIGBUS, SIGFPE or SIGTRAP for error mode, by its trap; SIGSTOP
//! where nothing will happen any more; SIGALRM for the watchdog.
//!
//! Invariant: whatever a peer sends, `serve` neither panics nor hangs on it: it answers, waits for more, or ends.

mod look;
mod memory;
mod session;
mod sparc;
mod target;
mod wire;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::stub::{DisconnectReason, GdbStubBuilder, GdbStubError};

use crate::machine::Machine;
use look::Look;
use session::Session;
use wire::{Come, Wire};

/// Bytes of a packet at most.
const PACKET: usize = 16 << 10;

/// How a machine is served.
pub struct Options<'a> {
    /// Where to wait for a debugger; of port 0 the system makes a free one.
    pub address: SocketAddr,
    /// Is told where it waits, as soon as a debugger can connect.
    pub listening: Box<dyn FnMut(SocketAddr) + 'a>,
    /// Gets what the first serial line prints; what others do stays with the machine ([`Machine::printed`]).
    pub uart: Box<dyn Write + 'a>,
    /// Makes the machine anew, for `monitor reset`.
    pub reset: Option<Box<dyn FnMut() -> Machine + 'a>>,
}

impl Default for Options<'_> {
    /// This computer alone, port 2345; what is printed is lost.
    fn default() -> Self {
        Options {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 2345)),
            listening: Box::new(|_| {}),
            uart: Box::new(io::sink()),
            reset: None,
        }
    }
}

/// How a debugger and a machine parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// The run is over: by the program itself with 0, else by a signal (its number).
    Ended {
        /// The signal, 0 for none.
        signal: u8,
    },
    /// The debugger lets the machine go on without it.
    Detached,
    /// The debugger wants the machine to be gone.
    Killed,
    /// The connection broke off.
    Lost,
}

/// Why a machine is no longer served.
#[derive(Debug, thiserror::Error)]
pub enum NotServed {
    /// No debugger can come.
    #[error(
        "no debugger can connect to {address}: {error}; choose an address of this computer and a port that is free"
    )]
    Listen {
        /// Where it was to wait.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The connection failed.
    #[error("the connection to the debugger failed: {0}; start both again")]
    Connection(io::Error),
    /// What was printed could not be written.
    #[error("what the serial line prints cannot be written: {0}; give a place that takes it")]
    Print(io::Error),
    /// The peer does not keep to the protocol.
    #[error("the peer does not speak gdb's remote protocol: {0}; connect by gdb's `target remote`")]
    Protocol(String),
}

/// Waits for a debugger and serves it until both part; the machine stays as it is then.
///
/// # Errors
/// There is no such address, the connection fails, or the peer is no debugger.
pub fn serve(machine: &mut Machine, mut options: Options<'_>) -> Result<Parting, NotServed> {
    let address = options.address;
    let listen = |error| NotServed::Listen { address, error };
    let listener = TcpListener::bind(address).map_err(listen)?;
    (options.listening)(listener.local_addr().map_err(listen)?);
    let (stream, _) = listener.accept().map_err(NotServed::Connection)?;
    // Nobody else is to wait for an answer.
    drop(listener);
    serve_on(machine, &stream, options)
}

/// Serves the debugger at the other end of `stream`.
///
/// # Errors
/// The connection fails, or the peer is no debugger.
pub fn serve_on(
    machine: &mut Machine,
    stream: &TcpStream,
    options: Options<'_>,
) -> Result<Parting, NotServed> {
    let mut session = Session {
        machine,
        uart: options.uart,
        reset: options.reset,
        look: Look::default(),
        mentioned: 0,
        focus: 0,
        ended: None,
        tail: VecDeque::new(),
    };
    let parting = converse(&mut session, stream);
    wire::close(stream);
    parting
}

fn converse(session: &mut Session<'_>, stream: &TcpStream) -> Result<Parting, NotServed> {
    let wire = Wire::new(stream).map_err(NotServed::Connection)?;
    let mut buffer = vec![0; PACKET];
    let stub = GdbStubBuilder::new(wire)
        .with_packet_buffer(&mut buffer)
        .build()
        .expect("a buffer is given");
    let mut state = stub.run_state_machine(session).map_err(not_served)?;
    loop {
        state = match state {
            GdbStubStateMachine::Idle(mut stub) => match come(stub.borrow_conn().wait())? {
                Come::Byte(byte) => stub.incoming_data(session, byte).map_err(not_served)?,
                Come::Nothing => stub.into(),
                Come::End => return Ok(Parting::Lost),
            },
            GdbStubStateMachine::Running(mut stub) => match come(stub.borrow_conn().look())? {
                Come::Byte(byte) => stub.incoming_data(session, byte).map_err(not_served)?,
                Come::End => return Ok(Parting::Lost),
                Come::Nothing => match session.portion().map_err(NotServed::Print)? {
                    None => stub.into(),
                    Some((reason, words)) => {
                        let said = words.map_or(Ok(()), |words| stub.borrow_conn().say(&words));
                        said.map_err(NotServed::Connection)?;
                        stub.report_stop(session, reason).map_err(not_served)?
                    }
                },
            },
            GdbStubStateMachine::CtrlCInterrupt(stub) => {
                let reason = session.interrupt();
                stub.interrupt_handled(session, Some(reason))
                    .map_err(not_served)?
            }
            GdbStubStateMachine::Disconnected(stub) => return Ok(parting(stub.get_reason())),
        };
    }
}

fn come(come: io::Result<Come>) -> Result<Come, NotServed> {
    come.map_err(NotServed::Connection)
}

fn parting(reason: DisconnectReason) -> Parting {
    match reason {
        DisconnectReason::TargetExited(_) => Parting::Ended { signal: 0 },
        DisconnectReason::TargetTerminated(signal) => Parting::Ended { signal: signal.0 },
        DisconnectReason::Disconnect => Parting::Detached,
        DisconnectReason::Kill => Parting::Killed,
    }
}

fn not_served(error: GdbStubError<Infallible, io::Error>) -> NotServed {
    if error.is_connection_error() {
        match error.into_connection_error() {
            Some((error, _)) => NotServed::Connection(error),
            None => NotServed::Connection(io::ErrorKind::Other.into()),
        }
    } else {
        NotServed::Protocol(error.to_string())
    }
}
