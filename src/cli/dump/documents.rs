//! From the bytes of one file to its documents: JSON one after another, or YAML documents between `---`.
//!
//! YAML is read as kubectl writes it. kubectl quotes every text that YAML 1.1 would take for something else, so an
//! unquoted `yes` is true and a quoted one is text; times and words such as `nan` stay text.

use std::path::Path;

use serde_json::Value;

use super::DumpError;

/// One document and the line it begins at, from 1.
#[derive(Debug)]
pub struct Document {
    /// Line in the file.
    pub line: usize,
    /// What it says.
    pub value: Value,
}

const ADD_OUTPUT: &str = "save the output of `kubectl get KIND -A -o yaml` (or `-o json`) instead, or remove the file";
const AGAIN: &str = "save the output of kubectl again and let it finish";

/// The documents of a file. An empty file, a foreign one and a cut one are errors: nobody can tell what they lack.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<Document>, DumpError> {
    let text = text_of(path, bytes)?;
    let start = text.trim_start();
    let documents = match start.chars().next() {
        None => return Err(DumpError::new(path, None, "is empty", format!("kubectl failed or was cut off: {AGAIN}"))),
        Some('{') => json(path, text)?,
        _ => {
            reject_talk(path, text)?;
            yaml(path, text)?
        }
    };
    if documents.is_empty() {
        return Err(DumpError::new(path, None, "has no document", ADD_OUTPUT));
    }
    Ok(documents)
}

fn text_of<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, DumpError> {
    let foreign = |problem: &str, help: &str| Err(DumpError::new(path, None, problem, help));
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            return foreign("is UTF-16 text", "PowerShell's `>` writes that: use `| Out-File -Encoding utf8 FILE`");
        }
        [0x1f, 0x8b, ..] => return foreign("is compressed with gzip", "unpack it first"),
        _ => {}
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => foreign("is no text", ADD_OUTPUT),
    }
}

/// Tells what kubectl writes for people from what it writes for programs.
fn reject_talk(path: &Path, text: &str) -> Result<(), DumpError> {
    let Some((index, first)) = text.lines().enumerate().find(|(_, line)| !line.trim().is_empty()) else {
        return Ok(());
    };
    let mut columns = first.split_whitespace();
    let table = matches!(columns.next(), Some("NAME" | "NAMESPACE" | "LAST"))
        && first.chars().all(|c| !c.is_lowercase() && c != ':');
    let talk =
        ["Error from server", "error:", "Error:", "No resources found", "The connection to the server", "Unable to"]
            .iter()
            .find(|start| first.starts_with(**start));
    let line = Some(index + 1);
    match (table, talk) {
        (true, _) => Err(DumpError::new(path, line, "is kubectl's table for people", "add `-o yaml` or `-o json`")),
        (_, Some(_)) => {
            let problem = format!("is a message of kubectl: {}", first.trim());
            Err(DumpError::new(path, line, problem, format!("solve what it says, then {AGAIN}")))
        }
        _ => Ok(()),
    }
}

fn json(path: &Path, text: &str) -> Result<Vec<Document>, DumpError> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut documents = Vec::new();
    let (mut counted_to, mut line) = (0, 1);
    loop {
        // The next document begins after the white space that follows the last one.
        let rest = &text[stream.byte_offset()..];
        let begin = stream.byte_offset() + (rest.len() - rest.trim_start().len());
        line += text[counted_to..begin].matches('\n').count();
        counted_to = begin;
        match stream.next() {
            None => return Ok(documents),
            Some(Ok(value)) => documents.push(Document { line, value }),
            Some(Err(error)) if error.is_eof() => {
                let problem = format!("ends in the middle of a JSON document that begins in line {line}");
                return Err(DumpError::new(path, Some(error.line()), problem, format!("the file is cut: {AGAIN}")));
            }
            Some(Err(error)) => {
                let problem = format!("is no JSON: {error}");
                return Err(DumpError::new(path, Some(error.line()), problem, AGAIN));
            }
        }
    }
}

fn yaml(path: &Path, text: &str) -> Result<Vec<Document>, DumpError> {
    let mut documents = Vec::new();
    for (first_line, piece) in pieces(text) {
        let value: Value = serde_saphyr::from_str_with_options(piece, yaml_options()).map_err(|error| {
            let within = error.location().map_or(1, |location| usize::try_from(location.line()).unwrap_or(1).max(1));
            let text = error.without_snippet().to_string();
            let problem = format!("is no YAML: {}", text.lines().next().unwrap_or_default());
            let help = format!("the file may be cut or edited: {AGAIN}");
            DumpError::new(path, Some(first_line + within - 1), problem, help)
        })?;
        if !value.is_null() {
            let skipped = piece.lines().take_while(|line| is_filler(line)).count();
            documents.push(Document { line: first_line + skipped, value });
        }
    }
    Ok(documents)
}

fn is_filler(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line == "---" || line.starts_with('#')
}

/// Splits at lines that begin with `---`: at column 0 it always begins a document, inside a block text too.
fn pieces(text: &str) -> Vec<(usize, &str)> {
    let mut pieces = Vec::new();
    let (mut begin, mut begin_line, mut offset) = (0, 1, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let marker =
            line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if marker && offset > begin {
            pieces.push((begin_line, &text[begin..offset]));
            (begin, begin_line) = (offset, index + 1);
        }
        offset += line.len();
    }
    pieces.push((begin_line, &text[begin..]));
    pieces.retain(|(_, piece)| !piece.lines().all(is_filler));
    pieces
}

fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        // Sizes are limited by the file's; nesting and aliases stay bounded, since those can explode.
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_documents: usize::MAX,
            max_depth: 256,
        },
        // kubectl writes no aliases at all.
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 10_000 },
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, Value)>, String> {
        parse(Path::new("f"), text.as_bytes())
            .map(|documents| documents.into_iter().map(|document| (document.line, document.value)).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn scalars_are_what_kubectl_means() {
        let rows: &[(&str, Value)] = &[
            ("true", json!(true)),
            ("\"true\"", json!("true")),
            ("yes", json!(true)),
            ("\"yes\"", json!("yes")),
            ("'no'", json!("no")),
            ("\"on\"", json!("on")),
            ("\"y\"", json!("y")),
            ("null", json!(null)),
            ("~", json!(null)),
            ("\"null\"", json!("null")),
            ("", json!(null)),
            ("\"\"", json!("")),
            ("42", json!(42)),
            ("\"42\"", json!("42")),
            ("21474836480", json!(21_474_836_480_i64)),
            ("9223372036854775807", json!(i64::MAX)),
            ("-1", json!(-1)),
            ("1.5", json!(1.5)),
            ("\"1e3\"", json!("1e3")),
            ("\"0755\"", json!("0755")),
            ("1_000", json!("1_000")),
            ("2026-11-30T01:00:00Z", json!("2026-11-30T01:00:00Z")),
            ("\"2026-11-30T01:00:00Z\"", json!("2026-11-30T01:00:00Z")),
            ("2026-11-30", json!("2026-11-30")),
            ("nan", json!("nan")),
            ("inf", json!("inf")),
            ("infinity", json!("infinity")),
            ("v1.33.1+k3s1", json!("v1.33.1+k3s1")),
            ("10.0.0.1", json!("10.0.0.1")),
            ("1:20", json!("1:20")),
            ("5Gi", json!("5Gi")),
            ("{}", json!({})),
            ("[]", json!([])),
        ];
        for (text, wanted) in rows {
            let got = read(&format!("value: {text}\n"));
            assert_eq!(got.as_ref().map(|documents| &documents[0].1["value"]), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn block_text_keeps_its_lines() {
        let text = "data:\n  a: |\n    {\"x\": \"yes\"}\n    --- not a marker\n  b: |-\n    one\n    two\n  c: >-\n    one\n    two\n";
        let wanted = json!({"data": {"a": "{\"x\": \"yes\"}\n--- not a marker\n", "b": "one\ntwo", "c": "one two"}});
        assert_eq!(read(text), Ok(vec![(1, wanted)]));
    }

    #[test]
    fn several_documents_keep_their_lines() {
        let rows: &[(&str, &str, &[usize])] = &[
            ("one YAML", "a: 1\n", &[1]),
            ("marker first", "---\na: 1\n", &[2]),
            ("two", "a: 1\n---\na: 2\n", &[1, 3]),
            ("empty ones between", "---\n---\n# c\n---\na: 1\n---\n", &[5]),
            ("CRLF", "a: 1\r\n---\r\na: 2\r\n", &[1, 3]),
            ("comment first", "# dumped at night\n\na: 1\n", &[3]),
            ("flow after a marker", "---\n{\"a\": 1}\n--- {a: 2}\n", &[2, 3]),
            ("a byte order mark", "\u{feff}a: 1\n", &[1]),
            ("one JSON", "{\"a\": 1}", &[1]),
            ("JSON one after another", "{\"a\":\n 1}\n\n{\"a\": 2}{\"a\": 3}\n", &[1, 4, 4]),
            ("JSON after white space", "\n\n  {\"a\": 1}\n", &[3]),
        ];
        for (name, text, lines) in rows {
            let got = read(text).map(|documents| documents.iter().map(|(line, _)| *line).collect::<Vec<_>>());
            assert_eq!(got, Ok(lines.to_vec()), "{name}");
        }
    }

    #[test]
    fn what_is_no_dump_says_so() {
        let rows: &[(&str, &[u8], &str)] = &[
            ("empty", b"", "f: is empty"),
            ("white space", b" \n\n", "f: is empty"),
            ("only markers", b"---\n# nothing\n---\n", "f: has no document"),
            ("gzip", b"\x1f\x8b\x08\x00", "f: is compressed with gzip"),
            ("UTF-16", b"\xff\xfea\x00", "f: is UTF-16 text"),
            ("binary", b"\x7fELF\x02\x01\x00\x00", "f: is no text"),
            ("table", b"NAME      STATUS   ROLES\nworker1   Ready    cp\n", "f:1: is kubectl's table for people"),
            ("table of all", b"\nNAMESPACE  NAME\nx  y\n", "f:2: is kubectl's table for people"),
            (
                "message",
                b"Error from server (Forbidden): nodes is forbidden\n",
                "f:1: is a message of kubectl: Error from",
            ),
            ("none", b"No resources found\n", "f:1: is a message of kubectl: No resources found"),
            ("cut JSON", b"{\n \"a\": [\n  1,", "f:3: ends in the middle of a JSON document that begins in line 1"),
            ("cut second JSON", b"{}\n{\"a\":", "f:2: ends in the middle of a JSON document that begins in line 2"),
            ("bad JSON", b"{\n \"a\" 1}", "f:2: is no JSON: expected `:`"),
            ("talk after JSON", b"{}\nError from server", "f:2: is no JSON: expected value"),
            ("bad YAML", b"a: 1\nb: [1,\n", "f:2: is no YAML: unclosed bracket"),
            ("bad second YAML", b"a: 1\n---\nb: 1\nb: 2\n", "f:4: is no YAML: "),
        ];
        for (name, bytes, wanted) in rows {
            let error = parse(Path::new("f"), bytes).expect_err(name).to_string();
            assert!(error.starts_with(wanted), "{name}: wanted {wanted}\ngot {error}");
        }
    }

    #[test]
    fn aliases_and_depth_are_bounded() {
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..12 {
            let alias = format!("*a{}", level - 1);
            let _ = writeln!(bomb, "a{level}: &a{level} [{}]", vec![alias; 10].join(","));
        }
        assert!(read(&bomb).is_err());
        assert!(read(&format!("a: {}{}\n", "[".repeat(5_000), "]".repeat(5_000))).is_err());
        assert!(read(&format!("{{\"a\": {}{}}}", "[".repeat(5_000), "]".repeat(5_000))).is_err());
    }
}
