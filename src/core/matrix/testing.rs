//! Matrices from signs, for tests.

use jiff::Timestamp;

use super::{Cell, CellVerdict, Matrix};

/// The API servers of test matrices, each on the node of its name.
pub const SERVERS: [&str; 3] = ["s1", "s2", "s3"];
/// Their nodes: three servers and two agents.
pub const NODES: [&str; 5] = ["s1", "s2", "s3", "a4", "a5"];

/// Rows of API servers, columns of nodes: `.` green, `x` broken with a tunnel's text, `r` broken with another one, `u`
/// unhealthy, `d` server down, `?` unknown, a blank for a cell that was not asked.
pub fn matrix(rows: &[&str]) -> Matrix {
    let mut cells = Vec::new();
    for (server, row) in SERVERS.into_iter().zip(rows) {
        for (node, sign) in NODES.into_iter().zip(row.chars()) {
            let (verdict, detail) = match sign {
                '.' => (CellVerdict::Green, "fresh dial whole, healthz ok"),
                'x' => (CellVerdict::Broken, "no tunnel (HTTP 500: code 502: 502 Bad Gateway)"),
                'r' => (CellVerdict::Broken, "the kubelet does not listen (HTTP 500: connection refused)"),
                'u' => (CellVerdict::Unhealthy, "the kubelet is not healthy: syncloop failing"),
                'd' => (CellVerdict::ServerDown, "the API server does not answer: connection refused"),
                '?' => (CellVerdict::Unknown, "forbidden: the probe needs the right to `get` `nodes/proxy`"),
                _ => continue,
            };
            let (server, node) = (server.to_owned(), node.to_owned());
            let diagonal = server == node;
            cells.push(Cell { server, node, diagonal, verdict, detail: detail.to_owned(), milliseconds: 8 });
        }
    }
    let columns = rows.iter().map(|row| row.chars().count()).max().unwrap_or_default();
    Matrix {
        servers: SERVERS.iter().take(rows.len()).map(|&name| name.to_owned()).collect(),
        nodes: NODES.iter().take(columns).map(|&name| name.to_owned()).collect(),
        cells,
        around: None,
        swept_at: "2026-11-30T01:00:00Z".parse::<Timestamp>().expect("a time"),
    }
}
