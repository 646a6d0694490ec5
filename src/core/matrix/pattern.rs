//! What broken cells have in common: one pair, a column, a row, or everything.
//!
//! A dead kubelet looks like a cut tunnel in one cell: only the cells beside it tell them apart. On k3s and RKE2 every
//! node keeps a tunnel to every server; a server that joins late can be missing from its peers' sets for hours while
//! all nodes are Ready (k3s#14629), and a client can believe in a tunnel that the server has lost (k3s#13149). The
//! diagonal uses no tunnel there, so it proves little and is left out of rows; a broken diagonal in a broken column
//! points at the kubelet itself.
//!
//! What a person is told of them is in [`super::diagnosis`].

use std::collections::{BTreeMap, BTreeSet};

crate::api::names! {
    /// The shape that broken cells make, from the smallest to the largest.
    Pattern, "pattern", {
        /// One API server and one node.
        Pair = "pair",
        /// Every API server that could be judged, and one node.
        Column = "column",
        /// One API server, and every node but its own.
        Row = "row",
        /// Every API server and every node but its own.
        Everything = "everything",
    }
}

/// A cell of which is known whether a fresh dial gets through. Cells that prove nothing are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged<'a> {
    /// The API server.
    pub server: &'a str,
    /// The node.
    pub node: &'a str,
    /// The API server runs on this node.
    pub diagonal: bool,
    /// The fresh dial failed.
    pub broken: bool,
}

/// Broken cells that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group<'a> {
    /// Their shape.
    pub pattern: Pattern,
    /// The API server of a pair or row.
    pub server: Option<&'a str>,
    /// The node of a pair or column.
    pub node: Option<&'a str>,
    /// The diagonal of a column that was judged: the kubelet's own API server reaches it (whole) or not (broken). For
    /// a pair, `Some` if the pair is itself the diagonal.
    pub diagonal_broken: Option<bool>,
    /// The broken cells: API server, node.
    pub cells: Vec<(&'a str, &'a str)>,
}

/// Groups the broken cells, largest shape first; every broken cell is in at least one group.
#[must_use]
pub fn groups<'a>(cells: &[Judged<'a>]) -> Vec<Group<'a>> {
    let broken: Vec<&Judged<'a>> = cells.iter().filter(|cell| cell.broken).collect();
    if broken.is_empty() {
        return Vec::new();
    }
    if is_everything(cells) {
        let cells = broken.iter().map(|cell| (cell.server, cell.node)).collect();
        let pattern = Pattern::Everything;
        return vec![Group { pattern, server: None, node: None, diagonal_broken: None, cells }];
    }
    let mut found = lines(cells, Pattern::Row, |cell| cell.server);
    found.extend(lines(cells, Pattern::Column, |cell| cell.node));
    let covered: BTreeSet<(&str, &str)> = found.iter().flat_map(|group| group.cells.iter().copied()).collect();
    let alone = broken.iter().filter(|cell| !covered.contains(&(cell.server, cell.node)));
    let pairs: Vec<Group<'a>> = alone
        .map(|cell| Group {
            pattern: Pattern::Pair,
            server: Some(cell.server),
            node: Some(cell.node),
            diagonal_broken: cell.diagonal.then_some(true),
            cells: vec![(cell.server, cell.node)],
        })
        .collect();
    found.extend(pairs);
    found
}

/// All off-diagonal cells broken, over at least two API servers and two nodes: with less it is a row, column or pair.
fn is_everything(cells: &[Judged<'_>]) -> bool {
    let beside = || cells.iter().filter(|cell| !cell.diagonal);
    let servers: BTreeSet<&str> = beside().map(|cell| cell.server).collect();
    let nodes: BTreeSet<&str> = beside().map(|cell| cell.node).collect();
    servers.len() >= 2 && nodes.len() >= 2 && beside().all(|cell| cell.broken)
}

/// The rows or columns that are broken as a whole. One cell is no line, unless the diagonal of a column is broken too.
fn lines<'a>(cells: &[Judged<'a>], pattern: Pattern, key: fn(&Judged<'a>) -> &'a str) -> Vec<Group<'a>> {
    let mut by_key: BTreeMap<&'a str, Vec<&Judged<'a>>> = BTreeMap::new();
    for cell in cells {
        by_key.entry(key(cell)).or_default().push(cell);
    }
    let mut found = Vec::new();
    for (name, line) in by_key {
        let beside = || line.iter().filter(|cell| !cell.diagonal);
        let diagonal_broken = line.iter().find(|cell| cell.diagonal).map(|cell| cell.broken);
        let enough = match pattern {
            Pattern::Column => beside().count() + usize::from(diagonal_broken == Some(true)) >= 2,
            _ => beside().count() >= 2,
        };
        if !enough || beside().next().is_none() || !beside().all(|cell| cell.broken) {
            continue;
        }
        let cells = line.iter().filter(|cell| cell.broken).map(|cell| (cell.server, cell.node)).collect();
        let (server, node) = if pattern == Pattern::Row { (Some(name), None) } else { (None, Some(name)) };
        found.push(Group { pattern, server, node, diagonal_broken, cells });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of `.` (whole), `x` (broken) and ` ` (not judged); servers and nodes are numbered, the diagonal is where
    /// they are equal.
    fn groups_of(rows: &[&str]) -> Vec<String> {
        const SERVERS: [&str; 3] = ["s1", "s2", "s3"];
        const NODES: [&str; 5] = ["s1", "s2", "s3", "a4", "a5"];
        let mut cells = Vec::new();
        for (server, row) in SERVERS.into_iter().zip(rows) {
            for (node, sign) in NODES.into_iter().zip(row.chars()).filter(|(_, sign)| *sign != ' ') {
                cells.push(Judged { server, node, diagonal: server == node, broken: sign == 'x' });
            }
        }
        groups(&cells)
            .into_iter()
            .map(|group| {
                let name = format!("{}{}", group.server.unwrap_or_default(), group.node.unwrap_or_default());
                format!("{} {name} {}", group.pattern, group.cells.len()).replace("  ", " ")
            })
            .collect()
    }

    #[test]
    fn the_shapes() {
        let rows: [(&str, &[&str], &[&str]); 17] = [
            ("all whole", &["...", "...", "..."], &[]),
            ("nothing judged", &["   ", "   ", "   "], &[]),
            ("B02: one pair", &["..x", "...", "..."], &["pair s1s3 1"]),
            ("B06: a column partly red", &["...x.", "...x.", "....."], &["pair s1a4 1", "pair s2a4 1"]),
            ("B01: a late server", &[".xx", "...", "..."], &["row s1 2"]),
            ("a dead kubelet on a server: the diagonal too", &["..x", "..x", "..x"], &["column s3 3"]),
            ("B09: the tunnels of a server, its kubelet is well", &["..x", "..x", "..."], &["column s3 2"]),
            ("a dead agent", &["...x", "...x", "...x"], &["column a4 3"]),
            ("two dead agents are two columns", &["...xx", "...xx", "...xx"], &["column a4 3", "column a5 3"]),
            ("everything", &[".xxx", "x.xx", "xx.x"], &["everything 9"]),
            ("everything, the diagonal too", &["xxx", "xxx", "xxx"], &["everything 9"]),
            ("a row and a pair", &[".xxxx", "...x.", "....."], &["row s1 4", "pair s2a4 1"]),
            ("a row and a column", &[".xxx", "...x", "...x"], &["row s1 3", "column a4 3"]),
            ("two servers, one pair: no line", &[".x", ".."], &["pair s1s2 1"]),
            ("two servers, a dead kubelet", &[".x", ".x"], &["column s2 2"]),
            ("only the diagonal", &["x..", "...", "..."], &["pair s1s1 1"]),
            ("one API server that is left", &[".xxx", "    ", "    "], &["row s1 3"]),
        ];
        for (row, cells, wanted) in rows {
            assert_eq!(groups_of(cells), wanted, "{row}");
        }
    }

    #[test]
    fn every_broken_cell_is_in_a_group_and_no_other() {
        // All 512 ways to break a matrix of three servers.
        const NAMES: [&str; 3] = ["s1", "s2", "s3"];
        for bits in 0_u32..512 {
            let cells: Vec<Judged<'_>> = (0..9)
                .map(|index| Judged {
                    server: NAMES[index / 3],
                    node: NAMES[index % 3],
                    diagonal: index / 3 == index % 3,
                    broken: bits >> index & 1 == 1,
                })
                .collect();
            let broken: BTreeSet<(&str, &str)> =
                cells.iter().filter(|cell| cell.broken).map(|cell| (cell.server, cell.node)).collect();
            let grouped: BTreeSet<(&str, &str)> = groups(&cells).into_iter().flat_map(|group| group.cells).collect();
            assert_eq!(grouped, broken, "{bits:09b}");
        }
    }
}
