//! The grid: nodes, links, hops, and the way of dimension-order routing.
//!
//! *Invariant:* a link leads from a node to a neighbour and has one number; the way between two nodes is as long as they
//! are apart, along the row first and along the column then.

/// Columns and rows of nodes. Node 0 is in the north-west; numbers go along rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    columns: usize,
    rows: usize,
}

/// Where a link of a node leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the node with the next number.
    East,
    /// To the node with the number before.
    West,
    /// To the next row.
    South,
    /// To the row before.
    North,
}

impl Direction {
    /// All, in the order of their numbers.
    pub const ALL: [Direction; 4] = [
        Direction::East,
        Direction::West,
        Direction::South,
        Direction::North,
    ];

    /// Where the way back leads to.
    #[must_use]
    pub fn opposite(self) -> Direction {
        Direction::ALL[self as usize ^ 1]
    }
}

impl Topology {
    /// Most columns, and most rows.
    pub const LONGEST_SIDE: usize = 256;

    /// A grid of that many columns and rows, each at least 1 and at most [`LONGEST_SIDE`](Self::LONGEST_SIDE).
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn new(columns: usize, rows: usize) -> Topology {
        let sides = 1..=Topology::LONGEST_SIDE;
        assert!(
            sides.contains(&columns) && sides.contains(&rows),
            "{columns} x {rows}"
        );
        Topology { columns, rows }
    }

    /// Nodes in a row.
    #[must_use]
    pub fn columns(self) -> usize {
        self.columns
    }

    /// Nodes in a column.
    #[must_use]
    pub fn rows(self) -> usize {
        self.rows
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(self) -> usize {
        self.columns * self.rows
    }

    /// Column and row of a node.
    #[must_use]
    pub fn place(self, node: usize) -> (usize, usize) {
        (node % self.columns, node / self.columns)
    }

    /// The node in a column and a row.
    #[must_use]
    pub fn node(self, column: usize, row: usize) -> usize {
        debug_assert!(column < self.columns && row < self.rows);
        row * self.columns + column
    }

    /// The neighbour in a direction, unless the grid ends there. O(1).
    #[must_use]
    pub fn neighbour(self, node: usize, direction: Direction) -> Option<usize> {
        let (column, row) = self.place(node);
        match direction {
            Direction::East => (column + 1 < self.columns).then(|| node + 1),
            Direction::West => (column > 0).then(|| node - 1),
            Direction::South => (row + 1 < self.rows).then(|| node + self.columns),
            Direction::North => (row > 0).then(|| node - self.columns),
        }
    }

    /// The direction in which `other` is a neighbour of `node`, if it is one. O(1).
    #[must_use]
    pub fn towards(self, node: usize, other: usize) -> Option<Direction> {
        let leads = |direction: &Direction| self.neighbour(node, *direction) == Some(other);
        Direction::ALL.into_iter().find(leads)
    }

    /// The number of the link from a node in a direction, below [`links`](Self::links); where the grid ends it has a number,
    /// too, and carries nothing.
    #[must_use]
    pub fn link(self, node: usize, direction: Direction) -> usize {
        node * 4 + direction as usize
    }

    /// Numbers of links, those beyond the grid's ends included.
    #[must_use]
    pub fn links(self) -> usize {
        self.nodes() * 4
    }

    /// The links that lead from a node to another, with their two nodes. Linear.
    pub fn real_links(self) -> impl Iterator<Item = (usize, usize, usize)> {
        (0..self.links()).filter_map(move |link| {
            let node = link / 4;
            let other = self.neighbour(node, Direction::ALL[link % 4])?;
            Some((link, node, other))
        })
    }

    /// Links on the shortest way between two nodes. O(1).
    #[must_use]
    pub fn hops(self, from: usize, to: usize) -> usize {
        let ((from_column, from_row), (to_column, to_row)) = (self.place(from), self.place(to));
        from_column.abs_diff(to_column) + from_row.abs_diff(to_row)
    }

    /// Hops between the nodes that are farthest apart.
    #[must_use]
    pub fn diameter(self) -> usize {
        self.columns - 1 + self.rows - 1
    }

    /// The directions that lead nearer: along the row, along the column. O(1).
    #[must_use]
    pub fn productive(self, from: usize, to: usize) -> [Option<Direction>; 2] {
        let ((from_column, from_row), (to_column, to_row)) = (self.place(from), self.place(to));
        let towards = |from: usize, to: usize, up, down| match from.cmp(&to) {
            std::cmp::Ordering::Less => Some(up),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(down),
        };
        [
            towards(from_column, to_column, Direction::East, Direction::West),
            towards(from_row, to_row, Direction::South, Direction::North),
        ]
    }

    /// The next hop of dimension-order (X-Y) routing: along the row first; none at the destination. O(1).
    #[must_use]
    pub fn x_y(self, from: usize, to: usize) -> Option<Direction> {
        let [along_row, along_column] = self.productive(from, to);
        along_row.or(along_column)
    }

    /// The way of dimension-order routing: each node that is left, and the direction. Linear in hops.
    pub fn path(self, from: usize, to: usize) -> impl Iterator<Item = (usize, Direction)> {
        let ((from_column, from_row), (to_column, to_row)) = (self.place(from), self.place(to));
        let [along_row, along_column] = self.productive(from, to);
        let row = std::iter::repeat_n(along_row, from_column.abs_diff(to_column));
        let column = std::iter::repeat_n(along_column, from_row.abs_diff(to_row));
        let mut node = from;
        row.chain(column).flatten().map(move |direction| {
            let left = node;
            // The way stays in the grid.
            node = match direction {
                Direction::East => node + 1,
                Direction::West => node - 1,
                Direction::South => node + self.columns,
                Direction::North => node - self.columns,
            };
            (left, direction)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_shortest_and_along_the_row_first() {
        for (columns, rows) in [(1, 1), (1, 5), (4, 1), (3, 4), (8, 8)] {
            let grid = Topology::new(columns, rows);
            let mut farthest = 0;
            for from in 0..grid.nodes() {
                for to in 0..grid.nodes() {
                    let way: Vec<_> = grid.path(from, to).collect();
                    assert_eq!(way.len(), grid.hops(from, to));
                    farthest = farthest.max(way.len());
                    let end = way.iter().fold(from, |node, (left, direction)| {
                        assert_eq!(node, *left);
                        grid.neighbour(node, *direction).expect("a neighbour")
                    });
                    assert_eq!(end, to);
                    let turns = way.windows(2).filter(|pair| pair[0].1 != pair[1].1);
                    assert!(turns.count() <= 1 && way.is_sorted_by_key(|(_, it)| *it as usize / 2));
                }
            }
            assert_eq!(farthest, grid.diameter());
        }
    }

    #[test]
    fn links_have_two_ends_and_a_way_back() {
        let grid = Topology::new(3, 4);
        let real: Vec<_> = grid.real_links().collect();
        assert_eq!(real.len(), 2 * (2 * 4 + 3 * 3));
        for (link, node, other) in real {
            let direction = grid.towards(node, other).expect("neighbours");
            assert_eq!(grid.link(node, direction), link);
            assert_eq!(grid.neighbour(other, direction.opposite()), Some(node));
        }
        assert_eq!(grid.towards(0, 4), None);
        assert_eq!(grid.towards(2, 3), None);
    }
}
