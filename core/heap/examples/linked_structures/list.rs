//! A doubly linked list whose nodes lie in a heap that moves them.

use metes_heap::compact::Refused;
use metes_heap::compact::typed::{TypedHandle, Values};

/// A node: its value, and the handles of its neighbours.
pub(crate) struct Node<T> {
    pub(crate) value: T,
    previous: Link<T>,
    next: Link<T>,
}

type Link<T> = Option<TypedHandle<Node<T>>>;

/// The two ends; the nodes are in the heap that each method is given.
pub(crate) struct List<T> {
    first: Link<T>,
    last: Link<T>,
}

impl<T: Send + 'static> List<T> {
    pub(crate) const fn new() -> Self {
        List {
            first: None,
            last: None,
        }
    }

    /// Appends a value: O(1).
    pub(crate) fn push(
        &mut self,
        heap: &mut Values,
        value: T,
    ) -> Result<TypedHandle<Node<T>>, (Refused, T)> {
        let node = Node {
            value,
            previous: self.last,
            next: None,
        };
        let node = heap
            .insert(node)
            .map_err(|(refused, node)| (refused, node.value))?;
        self.link(heap, self.last, Some(node));
        self.last = Some(node);
        Ok(node)
    }

    /// Takes a node of the list out: O(1), wherever it is.
    pub(crate) fn remove(&mut self, heap: &mut Values, node: TypedHandle<Node<T>>) -> Option<T> {
        let node = heap.remove(node).ok()?;
        self.link(heap, node.previous, node.next);
        if node.next.is_none() {
            self.last = node.previous;
        }
        Some(node.value)
    }

    /// Makes `next` follow `previous`.
    fn link(&mut self, heap: &mut Values, previous: Link<T>, next: Link<T>) {
        match previous.and_then(|previous| heap.get_mut(previous).ok()) {
            Some(previous) => previous.next = next,
            None => self.first = next,
        }
        if let Some(next) = next.and_then(|next| heap.get_mut(next).ok()) {
            next.previous = previous;
        }
    }

    /// The handles of the nodes, first to last.
    pub(crate) fn nodes<'a>(
        &self,
        heap: &'a Values,
    ) -> impl Iterator<Item = TypedHandle<Node<T>>> + 'a {
        std::iter::successors(self.first, |&node| heap.get(node).ok()?.next)
    }

    /// The handles of the nodes, last to first.
    pub(crate) fn reversed<'a>(
        &self,
        heap: &'a Values,
    ) -> impl Iterator<Item = TypedHandle<Node<T>>> + 'a {
        std::iter::successors(self.last, |&node| heap.get(node).ok()?.previous)
    }
}
