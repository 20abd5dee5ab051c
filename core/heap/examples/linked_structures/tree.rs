//! A binary search tree whose nodes lie in a heap that moves them.

use std::cmp::Ordering;

use metes_heap::compact::Refused;
use metes_heap::compact::typed::{TypedHandle, Values};

/// A node: key and value, and the handles of both children.
pub(crate) struct Node<K, V> {
    key: K,
    value: V,
    children: [Link<K, V>; 2],
}

type Link<K, V> = Option<TypedHandle<Node<K, V>>>;

/// The root; the nodes are in the heap that each method is given.
pub(crate) struct Tree<K, V> {
    root: Link<K, V>,
}

/// Where a link to a node is.
enum Above<K, V> {
    Root,
    Child(TypedHandle<Node<K, V>>, usize),
}

impl<K: Ord + Send + 'static, V: Send + 'static> Tree<K, V> {
    pub(crate) const fn new() -> Self {
        Tree { root: None }
    }

    /// The link that leads to a key, or that would.
    fn find(&self, heap: &Values, key: &K) -> (Above<K, V>, Link<K, V>) {
        let (mut above, mut link) = (Above::Root, self.root);
        while let Some((handle, node)) = link.and_then(|h| Some((h, heap.get(h).ok()?))) {
            let side = match key.cmp(&node.key) {
                Ordering::Less => 0,
                Ordering::Equal => break,
                Ordering::Greater => 1,
            };
            (above, link) = (Above::Child(handle, side), node.children[side]);
        }
        (above, link)
    }

    fn set(&mut self, heap: &mut Values, above: Above<K, V>, link: Link<K, V>) {
        match above {
            Above::Root => self.root = link,
            Above::Child(handle, side) => {
                if let Ok(node) = heap.get_mut(handle) {
                    node.children[side] = link;
                }
            }
        }
    }

    /// Puts a value under a key and gives back the one before: O(height).
    pub(crate) fn insert(
        &mut self,
        heap: &mut Values,
        key: K,
        value: V,
    ) -> Result<Option<V>, (Refused, K, V)> {
        let (above, link) = self.find(heap, &key);
        if let Some(node) = link.and_then(|link| heap.get_mut(link).ok()) {
            return Ok(Some(std::mem::replace(&mut node.value, value)));
        }
        let node = Node {
            key,
            value,
            children: [None; 2],
        };
        let node = heap
            .insert(node)
            .map_err(|(refused, node)| (refused, node.key, node.value))?;
        self.set(heap, above, Some(node));
        Ok(None)
    }

    /// The value under a key: O(height).
    pub(crate) fn get<'a>(&self, heap: &'a Values, key: &K) -> Option<&'a V> {
        let (_, link) = self.find(heap, key);
        Some(&heap.get(link?).ok()?.value)
    }

    /// Takes a key out: O(height). A node with two children is replaced by its successor.
    pub(crate) fn remove(&mut self, heap: &mut Values, key: &K) -> Option<V> {
        let (above, link) = self.find(heap, key);
        let handle = link?;
        let [left, right] = heap.get(handle).ok()?.children;
        let below = match (left, right) {
            (Some(_), Some(right)) => {
                let successor = self.unlink_least(heap, handle, right);
                if let Ok(node) = heap.get_mut(successor) {
                    node.children[0] = left;
                }
                // The right child may just have been the successor.
                let right = heap.get(handle).ok()?.children[1];
                if let Ok(node) = heap.get_mut(successor) {
                    node.children[1] = right;
                }
                Some(successor)
            }
            (one, other) => one.or(other),
        };
        self.set(heap, above, below);
        Some(heap.remove(handle).ok()?.value)
    }

    /// Takes the least node out of the right subtree of a node.
    fn unlink_least(
        &mut self,
        heap: &mut Values,
        node: TypedHandle<Node<K, V>>,
        right: TypedHandle<Node<K, V>>,
    ) -> TypedHandle<Node<K, V>> {
        let (mut above, mut least) = (Above::Child(node, 1), right);
        while let Some(less) = heap.get(least).ok().and_then(|node| node.children[0]) {
            (above, least) = (Above::Child(least, 0), less);
        }
        let below = heap.get(least).ok().and_then(|node| node.children[1]);
        self.set(heap, above, below);
        least
    }

    /// The handles of the nodes in the order of keys: O(n).
    pub(crate) fn nodes(&self, heap: &Values) -> Vec<TypedHandle<Node<K, V>>> {
        let (mut nodes, mut path, mut link) = (vec![], vec![], self.root);
        loop {
            while let Some(handle) = link {
                path.push(handle);
                link = heap.get(handle).ok().and_then(|node| node.children[0]);
            }
            let Some(handle) = path.pop() else {
                return nodes;
            };
            nodes.push(handle);
            link = heap.get(handle).ok().and_then(|node| node.children[1]);
        }
    }

    /// Keys and values in the order of keys: O(n).
    pub(crate) fn entries<'a>(&self, heap: &'a Values) -> Vec<(&'a K, &'a V)> {
        let nodes = self.nodes(heap).into_iter();
        let nodes = nodes.filter_map(|node| heap.get(node).ok());
        nodes.map(|node| (&node.key, &node.value)).collect()
    }
}
