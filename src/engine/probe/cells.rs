//! Which cells of the matrix are asked. Pure.

/// The pairs of row and column to ask, rows first. All of them if the question is about no single node or the matrix
/// has at most `full_limit` cells; else the target's column, and its row if it is a server itself.
#[must_use]
pub fn chosen(
    server_nodes: &[Option<&str>],
    nodes: &[&str],
    target: Option<&str>,
    full_limit: usize,
) -> Vec<(usize, usize)> {
    let full = target.is_none() || server_nodes.len().saturating_mul(nodes.len()) <= full_limit;
    let mut pairs = Vec::new();
    for (row, server_node) in server_nodes.iter().enumerate() {
        for (column, node) in nodes.iter().enumerate() {
            if full || target == Some(node) || (target.is_some() && target == *server_node) {
                pairs.push((row, column));
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_matrix_is_asked_around_the_target_only() {
        let servers = [Some("a"), Some("b"), None];
        let nodes = ["a", "b", "c"];
        let rows = [
            ("no target", None, 0, 9),
            ("small enough", Some("b"), 9, 9),
            ("target is a server: column and row", Some("b"), 8, 5),
            ("target is none: column", Some("c"), 8, 3),
            ("an unknown target", Some("x"), 8, 0),
        ];
        for (row, target, limit, count) in rows {
            assert_eq!(chosen(&servers, &nodes, target, limit).len(), count, "{row}");
        }
        assert_eq!(chosen(&servers, &nodes, Some("b"), 0), [(0, 1), (1, 0), (1, 1), (1, 2), (2, 1)]);
    }
}
