//! Plain data out of a Python pickle: numbers, text, lists, tuples, dictionaries.
//!
//! A pickle is a program for a machine with a stack. This machine knows the instructions that
//! make plain data (protocols 2 to 5) and refuses those that name or call anything, so that a
//! file can do no more than be wrong.
//!
//! Invariant: values lie in one arena and name each other by index, so that what the pickle
//! shares is shared here, and nothing nests, whatever the input. Each instruction makes at most
//! one value, so memory is in proportion to the input.

use std::collections::HashMap;

use super::PickleError;

/// A place in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Index(u32);

/// A value; `Other` is one that no snapshot is read for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Int(i64),
    Text(&'a str),
    /// A list or tuple.
    List(Vec<Index>),
    Dict(Vec<(Index, Index)>),
    Other,
}

/// The values of a pickle.
#[derive(Debug)]
pub(super) struct Values<'a> {
    arena: Vec<Value<'a>>,
    root: Index,
}

impl<'a> Values<'a> {
    /// Reads a pickle to its end. O(bytes).
    ///
    /// # Errors
    /// What is wrong, and at which byte.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Values<'a>, (usize, PickleError)> {
        let mut machine = Machine {
            input: bytes,
            at: 0,
            arena: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
        };
        let root = machine.run().map_err(|error| (machine.at, error))?;
        Ok(Values {
            arena: machine.arena,
            root,
        })
    }

    pub(super) fn root(&self) -> Index {
        self.root
    }

    fn value(&self, index: Index) -> &Value<'a> {
        &self.arena[index.0 as usize]
    }

    /// The items of a list or tuple; None if it is neither.
    pub(super) fn list(&self, index: Index) -> Option<&[Index]> {
        match self.value(index) {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// A number that is not negative.
    pub(super) fn number(&self, index: Index) -> Option<u64> {
        match self.value(index) {
            Value::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    pub(super) fn text(&self, index: Index) -> Option<&'a str> {
        match self.value(index) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Dictionaries of so many entries take less to look through again than to remember.
const FEW: usize = 32;

/// Some entries of dictionaries, by their keys.
///
/// *Invariant:* each dictionary is looked through once, however often the pickle shares it.
pub(super) struct Fields<const N: usize> {
    keys: [&'static str; N],
    known: HashMap<u32, [Option<Index>; N]>,
}

impl<const N: usize> Fields<N> {
    pub(super) fn new(keys: [&'static str; N]) -> Self {
        Fields {
            keys,
            known: HashMap::new(),
        }
    }

    /// Where these entries of a dictionary are; None of what it lacks, and all of them if it is no
    /// dictionary. Linear in its entries, and constant when asked again.
    pub(super) fn of(&mut self, values: &Values, dict: Index) -> [Option<Index>; N] {
        let Value::Dict(entries) = values.value(dict) else {
            return [None; N];
        };
        if let Some(known) = self.known.get(&dict.0) {
            return *known;
        }
        let mut found = [None; N];
        for (name, value) in entries {
            // The last one counts, as in Python.
            if let Value::Text(name) = values.value(*name)
                && let Some(place) = self.keys.iter().position(|key| key == name)
            {
                found[place] = Some(*value);
            }
        }
        if entries.len() > FEW {
            self.known.insert(dict.0, found);
        }
        found
    }
}

struct Machine<'a> {
    input: &'a [u8],
    at: usize,
    arena: Vec<Value<'a>>,
    stack: Vec<Index>,
    /// Heights of the stack at marks.
    marks: Vec<usize>,
    memo: Vec<Option<Index>>,
}

type Step<T = ()> = Result<T, PickleError>;

impl<'a> Machine<'a> {
    fn run(&mut self) -> Step<Index> {
        if self.input.first() != Some(&0x80) {
            return Err(PickleError::NoPickle);
        }
        loop {
            let start = self.at;
            let opcode = self.bytes(1)?[0];
            if opcode == b'.' {
                return self.pop();
            }
            self.step(opcode).inspect_err(|error| {
                if matches!(error, PickleError::Object(_) | PickleError::Unknown(_)) {
                    self.at = start;
                }
            })?;
        }
    }

    fn step(&mut self, opcode: u8) -> Step {
        match opcode {
            // Protocol and frame say how the rest is cut up, which does not matter here.
            0x80 => self.bytes(1).map(drop),
            0x95 => self.bytes(8).map(drop),
            b'N' | 0x88 | 0x89 => self.push(Value::Other),
            b'J' => {
                let number = i32::from_le_bytes(self.array()?);
                self.push(Value::Int(i64::from(number)))
            }
            b'K' => {
                let number = self.unsigned(1)?;
                self.push(Value::Int(number as i64))
            }
            b'M' => {
                let number = self.unsigned(2)?;
                self.push(Value::Int(number as i64))
            }
            0x8a => self.long(1),
            0x8b => self.long(4),
            b'G' => {
                self.bytes(8)?;
                self.push(Value::Other)
            }
            0x8c => self.text(1),
            b'X' => self.text(4),
            0x8d => self.text(8),
            b'C' | b'U' => self.skipped(1),
            b'B' | b'T' => self.skipped(4),
            0x8e | 0x96 => self.skipped(8),
            b']' | b')' | 0x8f => self.push(Value::List(Vec::new())),
            b'l' | b't' | 0x91 => {
                let items = self.marked()?;
                self.push(Value::List(items))
            }
            0x85..=0x87 => {
                let mut items = Vec::new();
                for _ in 0..=(opcode - 0x85) {
                    items.insert(0, self.pop()?);
                }
                self.push(Value::List(items))
            }
            b'a' => {
                let item = self.pop()?;
                self.extend(vec![item])
            }
            b'e' | 0x90 => {
                let items = self.marked()?;
                self.extend(items)
            }
            b'}' => self.push(Value::Dict(Vec::new())),
            b'd' => {
                let entries = pairs(self.marked()?)?;
                self.push(Value::Dict(entries))
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.enter(vec![(key, value)])
            }
            b'u' => {
                let entries = pairs(self.marked()?)?;
                self.enter(entries)
            }
            b'(' => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            b'0' => self.pop().map(drop),
            b'1' => self.marked().map(drop),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
                Ok(())
            }
            b'q' => {
                let place = self.unsigned(1)?;
                self.remember(place)
            }
            b'r' => {
                let place = self.unsigned(4)?;
                self.remember(place)
            }
            0x94 => self.remember(self.memo.len() as u64),
            b'h' => {
                let place = self.unsigned(1)?;
                self.recall(place)
            }
            b'j' => {
                let place = self.unsigned(4)?;
                self.recall(place)
            }
            b'c' | b'R' | b'b' | b'i' | b'o' | b'P' | b'Q' | 0x81 | 0x82..=0x84 | 0x92 | 0x93 => {
                Err(PickleError::Object(opcode))
            }
            other => Err(PickleError::Unknown(other)),
        }
    }

    fn bytes(&mut self, count: usize) -> Step<&'a [u8]> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let found = rest.get(..count).ok_or(PickleError::CutOff)?;
        self.at += count;
        Ok(found)
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// A number of `width` bytes, the lowest first.
    fn unsigned(&mut self, width: usize) -> Step<u64> {
        let bytes = self.bytes(width)?;
        let joined = bytes.iter().rev();
        Ok(joined.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A number of as many bytes as are said in the first `width`.
    fn long(&mut self, width: usize) -> Step {
        let bytes = self.counted(width)?;
        // Numbers beyond 64 bits are in no snapshot.
        let value = match bytes {
            [] => Value::Int(0),
            [.., last] if bytes.len() <= 8 => {
                let mut full = [if *last >= 0x80 { 0xff } else { 0 }; 8];
                full[..bytes.len()].copy_from_slice(bytes);
                Value::Int(i64::from_le_bytes(full))
            }
            _ => Value::Other,
        };
        self.push(value)
    }

    fn counted(&mut self, width: usize) -> Step<&'a [u8]> {
        let count = self.unsigned(width)?;
        self.bytes(usize::try_from(count).map_err(|_| PickleError::CutOff)?)
    }

    fn text(&mut self, width: usize) -> Step {
        let bytes = self.counted(width)?;
        // Python may write surrogates that are no text; none of our keys has any.
        let value = std::str::from_utf8(bytes).map_or(Value::Other, Value::Text);
        self.push(value)
    }

    fn skipped(&mut self, width: usize) -> Step {
        self.counted(width)?;
        self.push(Value::Other)
    }

    fn push(&mut self, value: Value<'a>) -> Step {
        let index = u32::try_from(self.arena.len()).map_err(|_| PickleError::TooLarge)?;
        self.arena.push(value);
        self.stack.push(Index(index));
        Ok(())
    }

    fn top(&self) -> Step<Index> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let top = self.stack.get(floor..).and_then(<[Index]>::last);
        top.copied().ok_or(PickleError::EmptyStack)
    }

    fn pop(&mut self) -> Step<Index> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Everything above the last mark.
    fn marked(&mut self) -> Step<Vec<Index>> {
        let mark = self.marks.pop().ok_or(PickleError::EmptyStack)?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    /// Adds to the list on top.
    fn extend(&mut self, more: Vec<Index>) -> Step {
        let top = self.top()?;
        match &mut self.arena[top.0 as usize] {
            Value::List(items) => items.extend(more),
            _ => return Err(PickleError::WrongKind),
        }
        Ok(())
    }

    /// Adds to the dictionary on top.
    fn enter(&mut self, more: Vec<(Index, Index)>) -> Step {
        let top = self.top()?;
        match &mut self.arena[top.0 as usize] {
            Value::Dict(entries) => entries.extend(more),
            _ => return Err(PickleError::WrongKind),
        }
        Ok(())
    }

    fn remember(&mut self, place: u64) -> Step {
        let top = self.top()?;
        // Places count up; a far one would be room for nothing.
        let place = usize::try_from(place).map_err(|_| PickleError::WrongKind)?;
        if place > self.arena.len() {
            return Err(PickleError::WrongKind);
        }
        if place >= self.memo.len() {
            self.memo.resize(place + 1, None);
        }
        self.memo[place] = Some(top);
        Ok(())
    }

    fn recall(&mut self, place: u64) -> Step {
        let found = usize::try_from(place).ok();
        let found = found.and_then(|place| self.memo.get(place).copied().flatten());
        self.stack.push(found.ok_or(PickleError::WrongKind)?);
        Ok(())
    }
}

/// Keys and values in turn.
fn pairs(items: Vec<Index>) -> Step<Vec<(Index, Index)>> {
    if !items.len().is_multiple_of(2) {
        return Err(PickleError::WrongKind);
    }
    Ok(items
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_widths() {
        let read = |bytes: &[u8]| {
            let pickle = [&[0x80, 4][..], bytes, b"."].concat();
            let values = Values::read(&pickle).unwrap();
            match values.value(values.root()) {
                Value::Int(number) => Some(*number),
                _ => None,
            }
        };
        assert_eq!(read(b"K\xff"), Some(255));
        assert_eq!(read(b"M\x01\x02"), Some(513));
        assert_eq!(read(b"J\xff\xff\xff\xff"), Some(-1));
        assert_eq!(read(&[0x8a, 0]), Some(0));
        assert_eq!(read(&[0x8a, 2, 0, 0xff]), Some(-256));
        assert_eq!(read(&[0x8a, 6, 0, 0, 0, 0, 0, 0x7f]), Some(0x7f << 40));
        assert_eq!(read(&[0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1]), None);
    }

    #[test]
    fn what_is_shared_is_shared() {
        // [a, a] with a = {"k": 7}, remembered and recalled.
        let pickle = b"\x80\x04](}\x94X\x01\0\0\0kK\x07sh\0e.";
        let values = Values::read(pickle).unwrap();
        let items = values.list(values.root()).unwrap();
        assert_eq!(items[0], items[1]);
        let [seven, none] = Fields::new(["k", "x"]).of(&values, items[0]);
        assert_eq!(values.number(seven.unwrap()), Some(7));
        assert_eq!(none, None);
    }

    #[test]
    fn a_list_may_hold_itself() {
        let pickle = b"\x80\x04]\x94h\0a.";
        let values = Values::read(pickle).unwrap();
        assert_eq!(values.list(values.root()), Some(&[values.root()][..]));
    }

    #[test]
    fn depth_costs_nothing() {
        let pickle = [&b"\x80\x04"[..], &[b']'; 100_000], &[b'a'; 99_999], b"."].concat();
        assert!(Values::read(&pickle).is_ok());
    }

    #[test]
    fn nothing_is_called() {
        let error = Values::read(b"\x80\x04cos\nsystem\n.").unwrap_err();
        assert_eq!(error, (2, PickleError::Object(b'c')));
    }

    #[test]
    fn wrong_programs_are_refused() {
        for (pickle, error) in [
            (&b""[..], PickleError::NoPickle),
            (b"abc", PickleError::NoPickle),
            (b"\x80", PickleError::CutOff),
            (b"\x80\x04", PickleError::CutOff),
            (b"\x80\x04.", PickleError::EmptyStack),
            (b"\x80\x04X\xff\xff\xff\xffa.", PickleError::CutOff),
            (b"\x80\x04K\x01K\x02a.", PickleError::WrongKind),
            (b"\x80\x04}(K\x01u.", PickleError::WrongKind),
            (b"\x80\x04h\x05.", PickleError::WrongKind),
            (b"\x80\x04]r\xff\xff\xff\xff.", PickleError::WrongKind),
            (b"\x80\x04e.", PickleError::EmptyStack),
            (b"\x80\x04](a.", PickleError::EmptyStack),
            (b"\x80\x04\x00.", PickleError::Unknown(0)),
        ] {
            assert_eq!(Values::read(pickle).unwrap_err().1, error, "{pickle:?}");
        }
    }
}
