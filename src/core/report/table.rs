//! Columns of text, and lengths of time.

/// Rows as aligned columns, two spaces between them and before the first; the last column is not padded.
#[must_use]
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str("  ");
            line.push_str(cell);
            // Counted in characters: names and messages need not be ASCII.
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `00:07:12`, or `2d 00:07:12`; what is negative is told as zero.
#[must_use]
pub fn length(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let time = format!("{:02}:{:02}:{:02}", rest / 3_600, rest % 3_600 / 60, rest % 60);
    if days > 0 { format!("{days}d {time}") } else { time }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["NAME", "READY"], ["é", "yes"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "  NAME  READY\n  é     yes\n");
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn lengths() {
        let rows = [
            ("negative", -5, "00:00:00"),
            ("seconds", 59, "00:00:59"),
            ("a day less a second", 86_399, "23:59:59"),
            ("a day", 86_400, "1d 00:00:00"),
        ];
        for (row, seconds, wanted) in rows {
            assert_eq!(length(seconds), wanted, "{row}");
        }
    }
}
