//! Tables of exception handling (`.eh_frame`), decoded by `gimli` for one address.
//!
//! *Invariant:* nothing is allocated: the decoder's rows lie on the stack, as many as compilers need. A
//! table that needs more, or that says what a [`Rule`] cannot, gives no rule.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, Operation, Register,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection,
    UnwindTableRow,
};

use super::modules::Module;
use super::rules::{Frame, Pointer, Rule};

/// Registers that a row of a table says something of: those that calls keep, and the return address.
const REGISTERS: usize = 12;
/// Rows that are remembered at a time.
const ROWS: usize = 4;

#[cfg(target_arch = "x86_64")]
mod machine {
    use gimli::{Register, X86_64};
    pub(super) const STACK: Register = X86_64::RSP;
    pub(super) const FRAME: Register = X86_64::RBP;
    pub(super) const BACK: Register = X86_64::RA;
    pub(super) const SIGNALS: bool = true;
}
#[cfg(target_arch = "aarch64")]
mod machine {
    use gimli::{AArch64, Register};
    pub(super) const STACK: Register = AArch64::SP;
    pub(super) const FRAME: Register = AArch64::X29;
    pub(super) const BACK: Register = AArch64::X30;
    pub(super) const SIGNALS: bool = false;
}
use machine::{BACK, FRAME, SIGNALS, STACK};

/// Room for rows on the stack.
struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(Register, RegisterRule<usize>); REGISTERS];
    type Stack = [UnwindTableRow<usize, Self>; ROWS];
}

type Bytes = EndianSlice<'static, NativeEndian>;

/// The rule of the call at `address` in `module`.
pub(super) fn rule(module: &Module, address: u64) -> Option<Rule> {
    let index_bytes = module.bytes_from(module.frames)?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(module.frames);
    let index = EhFrameHdr::new(index_bytes, NativeEndian)
        .parse(&bases, size_of::<usize>() as u8)
        .ok()?;
    let frames_at = index.eh_frame_ptr().direct().ok()?;
    let bases = bases.set_eh_frame(frames_at);
    let frames = EhFrame::new(module.bytes_from(frames_at)?, NativeEndian);
    let entry = index
        .table()?
        .fde_for_address(&frames, &bases, address, EhFrame::cie_from_offset)
        .ok()?;
    if entry.is_signal_trampoline() {
        return SIGNALS.then_some(Rule::of(Frame::Signal));
    }
    let mut rows = UnwindContext::<usize, OnStack>::new_in();
    let row = entry
        .unwind_info_for_address(&frames, &bases, &mut rows, address)
        .ok()?;
    let encoding = entry.cie().encoding();
    let deep = |expression: &UnwindExpression<usize>| first_register(expression, &frames, encoding);
    match row.register(BACK) {
        Some(RegisterRule::Undefined) => return Some(Rule::of(Frame::Outermost)),
        Some(RegisterRule::Offset(-8)) => {}
        _ => return None,
    }
    let frame = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } if *register == STACK => {
            Frame::FromStack(*offset)
        }
        CfaRule::RegisterAndOffset { register, offset } if *register == FRAME => {
            Frame::FromPointer(*offset)
        }
        CfaRule::Expression(expression) => match deep(expression)? {
            (far, true) => Frame::SaidAt(far),
            (_, false) => return None,
        },
        CfaRule::RegisterAndOffset { .. } => return None,
    };
    let pointer = match row.register(FRAME) {
        None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => Pointer::Same,
        Some(RegisterRule::Offset(far)) => Pointer::FromEnd(far),
        Some(RegisterRule::Expression(expression)) => match deep(&expression)? {
            (far, false) => Pointer::FromFrame(far),
            (_, true) => return None,
        },
        Some(_) => return None,
    };
    Some(Rule { frame, pointer })
}

/// The distance from the frame pointer that an expression says, and whether it goes on to the word
/// there: what compilers make of a stack that they align anew.
fn first_register(
    expression: &UnwindExpression<usize>,
    frames: &EhFrame<Bytes>,
    encoding: gimli::Encoding,
) -> Option<(i64, bool)> {
    let mut operations = expression.get(frames).ok()?.operations(encoding);
    let Ok(Some(Operation::RegisterOffset {
        register, offset, ..
    })) = operations.next()
    else {
        return None;
    };
    if register != FRAME {
        return None;
    }
    match (operations.next().ok()?, operations.next().ok()?) {
        (None, _) => Some((offset, false)),
        (Some(Operation::Deref { .. }), None) => Some((offset, true)),
        _ => None,
    }
}
