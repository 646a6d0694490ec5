//! Lengths of time as Go's flags write them: `1h30m`, `90s`, `1.5h`, `0`.

/// Nanoseconds of a length of time, as Go's `time.ParseDuration` reads it. Negative ones are allowed there too.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn parse(text: &str) -> Result<i64, &'static str> {
    let (negative, rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err("it is empty");
    }
    let (mut rest, mut total) = (rest, 0_i128);
    while !rest.is_empty() {
        let whole = digits(rest);
        let (number, after) = rest.split_at(whole);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(digits(after)),
            None => ("", after),
        };
        if number.is_empty() && fraction.is_empty() {
            return Err("a number is missing");
        }
        let unit_end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let scale: i128 = match unit {
            "" => return Err("a unit is missing, such as s, m or h"),
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err("it has an unknown unit; there are h, m, s, ms, us and ns"),
        };
        total += number.get(..number.len().min(19)).unwrap_or(number).parse::<i128>().unwrap_or(0) * scale;
        if number.len() > 19 {
            return Err("it is too long");
        }
        // Beyond a nanosecond of an hour nothing is left of a digit.
        let fraction = fraction.get(..fraction.len().min(15)).unwrap_or(fraction);
        let power = 10_i128.pow(u32::try_from(fraction.len()).unwrap_or(0));
        total += fraction.parse::<i128>().unwrap_or(0) * scale / power;
        rest = next;
    }
    i64::try_from(if negative { -total } else { total }).map_err(|_| "it is too long")
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

/// `1h30m`, `45s`, `0s`: a length of time for people, in Go's words.
pub(super) fn shown(nanoseconds: i64) -> String {
    if nanoseconds % 1_000_000_000 != 0 {
        return format!("{nanoseconds}ns");
    }
    let seconds = nanoseconds / 1_000_000_000;
    let sign = if seconds < 0 { "-" } else { "" };
    let seconds = seconds.unsigned_abs();
    let mut text = String::new();
    for (count, unit) in [(seconds / 3_600, "h"), (seconds % 3_600 / 60, "m"), (seconds % 60, "s")] {
        if count > 0 {
            text.push_str(&count.to_string());
            text.push_str(unit);
        }
    }
    if text.is_empty() { "0s".to_owned() } else { format!("{sign}{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_go_reads_them() {
        let s = 1_000_000_000_i64;
        let rows = [
            ("1h", Ok(3_600 * s)),
            ("1h0m0s", Ok(3_600 * s)),
            ("1h30m", Ok(5_400 * s)),
            ("1.5h", Ok(5_400 * s)),
            (".5m", Ok(30 * s)),
            ("90s", Ok(90 * s)),
            ("250ms", Ok(s / 4)),
            ("1us", Ok(1_000)),
            ("1µs", Ok(1_000)),
            ("-1m", Ok(-60 * s)),
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("", Err("it is empty")),
            ("30", Err("a unit is missing, such as s, m or h")),
            ("1d", Err("it has an unknown unit; there are h, m, s, ms, us and ns")),
            ("h", Err("a number is missing")),
            ("1 h", Err("it has an unknown unit; there are h, m, s, ms, us and ns")),
            ("99999999999h", Err("it is too long")),
            ("999999999999999999999999h", Err("it is too long")),
        ];
        for (text, wanted) in rows {
            assert_eq!(parse(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_shown_means_the_same() {
        for (text, wanted) in
            [("0", "0s"), ("60s", "1m"), ("3661s", "1h1m1s"), ("-90s", "-1m30s"), ("1ms", "1000000ns")]
        {
            let length = parse(text).expect(text);
            assert_eq!(shown(length), wanted);
            assert_eq!(parse(wanted), Ok(length));
        }
    }
}
