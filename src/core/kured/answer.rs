//! What kured hears when it asks, in the forms that were seen to be safe.
//!
//! kured asks as it would ask a Prometheus for its alerts. Measured on kured 1.23.0: an empty `result` array is go; a
//! sample with a name, the value "1" and the state `firing` is no, with its name in kured's log; status `error` with 422
//! is no with free text. A sample without a name or with the value "0" is *go*, `null` is noise, and an answer that
//! never ends freezes kured for ever. So there are these three forms and no other.

use jiff::Timestamp;
use serde_json::json;

/// Longest text that kured hears, in characters: it becomes one line of its log at every tick.
pub const TEXT_LIMIT: usize = 200;
/// How every text begins, so that who reads kured's log knows whom to ask.
const PREFIX: &str = "maint: ";

/// What kured hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may take its lock, once.
    Go,
    /// Not now, and why.
    No(String),
    /// Something could not be read or does not fit, which is a no with another sound.
    Trouble(String),
}

/// An HTTP answer; its body is JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// 200 or 422.
    pub status: u16,
    /// The body.
    pub body: String,
}

impl Answer {
    /// A no.
    #[must_use]
    pub fn no(why: impl AsRef<str>) -> Self {
        Self::No(text(why.as_ref()))
    }

    /// A no because of trouble.
    #[must_use]
    pub fn trouble(why: impl AsRef<str>) -> Self {
        Self::Trouble(text(why.as_ref()))
    }

    /// `go`, or the text of the refusal: one line, at most [`TEXT_LIMIT`] characters, never empty.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Self::Go => GO.to_owned(),
            Self::No(why) | Self::Trouble(why) => text(why),
        }
    }

    /// As it is sent. With `filtered` a no takes the form of trouble: a kured with `--alert-filter-regexp` may drop our
    /// sample and go, an error it cannot drop.
    #[must_use]
    pub fn reply(&self, filtered: bool, now: Timestamp) -> Reply {
        let vector = |samples: serde_json::Value| {
            let body = json!({"status": "success", "data": {"resultType": "vector", "result": samples}});
            Reply { status: 200, body: body.to_string() }
        };
        match self {
            Self::Go => vector(json!([])),
            Self::No(_) if !filtered => vector(json!([{
                "metric": {"__name__": "ALERTS", "alertname": self.word(), "alertstate": "firing"},
                "value": [now.as_second(), "1"],
            }])),
            Self::No(_) | Self::Trouble(_) => {
                let body = json!({"status": "error", "errorType": "execution", "error": self.word()});
                Reply { status: 422, body: body.to_string() }
            }
        }
    }
}

/// The word of a go in annotation `maint.dev/asked`.
pub const GO: &str = "go";

/// One line that begins with [`PREFIX`]: what comes from the cluster must not break kured's log.
fn text(why: &str) -> String {
    let spaced: String = why.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let words = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    let bare = words.strip_prefix(PREFIX.trim_end()).map_or(words.as_str(), str::trim_start);
    let line = format!("{PREFIX}{}", if bare.is_empty() { "no" } else { bare });
    if line.chars().count() <= TEXT_LIMIT {
        return line;
    }
    let cut: String = line.chars().take(TEXT_LIMIT - 3).collect();
    format!("{}...", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// What kured makes of an answer, by the table that was measured on it.
    #[derive(Debug, PartialEq)]
    enum Heard {
        Go,
        /// A form that one or another flag turns into go.
        Unsafe,
        /// Blocked, and this text stands in its log.
        Blocked(String),
        /// Blocked, and its log says nothing of use.
        Noise,
    }

    fn heard(status: u16, body: &str) -> Heard {
        let Ok(answer) = serde_json::from_str::<Value>(body) else { return Heard::Noise };
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        if !matches!(status, 200 | 307 | 400 | 422) {
            return Heard::Noise;
        }
        if answer["status"] == "error" {
            return text(&answer["error"]).map_or(Heard::Noise, Heard::Blocked);
        }
        if answer["status"] != "success" || answer["data"]["resultType"] != "vector" {
            return Heard::Noise;
        }
        let Some(samples) = answer["data"]["result"].as_array() else { return Heard::Noise };
        let Some(first) = samples.first() else { return Heard::Go };
        let sound = |sample: &Value| {
            let named = text(&sample["metric"]["alertname"]).is_some_and(|name| name.starts_with("maint: "));
            named && sample["metric"]["alertstate"] == "firing" && sample["value"][1] == "1"
        };
        if samples.iter().all(sound) {
            text(&first["metric"]["alertname"]).map_or(Heard::Noise, Heard::Blocked)
        } else {
            Heard::Unsafe
        }
    }

    #[test]
    fn the_classifier_tells_the_traps_of_the_table() {
        let ok = |result: &str| format!(r#"{{"status":"success","data":{{"resultType":"vector","result":{result}}}}}"#);
        let sample = |metric: &str, value: &str| ok(&format!(r#"[{{"metric":{metric},"value":[1,"{value}"]}}]"#));
        let rows = [
            ("empty", 200, ok("[]"), Heard::Go),
            ("null", 200, ok("null"), Heard::Noise),
            ("no name", 200, sample(r#"{"alertstate":"firing"}"#, "1"), Heard::Unsafe),
            ("empty name", 200, sample(r#"{"alertname":"","alertstate":"firing"}"#, "1"), Heard::Unsafe),
            ("value 0", 200, sample(r#"{"alertname":"maint: a","alertstate":"firing"}"#, "0"), Heard::Unsafe),
            ("pending", 200, sample(r#"{"alertname":"maint: a","alertstate":"pending"}"#, "1"), Heard::Unsafe),
            ("nobody's name", 200, sample(r#"{"alertname":"Watchdog","alertstate":"firing"}"#, "1"), Heard::Unsafe),
            ("nothing", 200, String::new(), Heard::Noise),
            (
                "scalar",
                200,
                r#"{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}"#.into(),
                Heard::Noise,
            ),
            ("lost body", 404, ok("[]"), Heard::Noise),
            ("error", 422, r#"{"status":"error","error":"maint: a"}"#.into(), Heard::Blocked("maint: a".into())),
        ];
        for (row, status, body, wanted) in rows {
            assert_eq!(heard(status, &body), wanted, "{row}");
        }
    }

    #[test]
    fn nothing_that_is_said_is_an_unsafe_form_or_noise() {
        let long = "é".repeat(5_000);
        let cut = format!("maint: {}...", "é".repeat(TEXT_LIMIT - 10));
        let rows = [
            ("plain", "worker2 waits", "maint: worker2 waits"),
            ("twice the prefix", "maint: worker2 waits", "maint: worker2 waits"),
            ("empty", "", "maint: no"),
            ("the prefix alone", "maint:", "maint: no"),
            ("lines", "a\nb\r\n\tc\0d", "maint: a b c d"),
            ("escape", "a\u{1b}[31mred", "maint: a [31mred"),
            ("quotes and more", r#"say "no" \ {x} 🚧"#, r#"maint: say "no" \ {x} 🚧"#),
            ("long", long.as_str(), cut.as_str()),
        ];
        let now = Timestamp::from_second(1_796_000_400).expect("a time");
        for (row, why, wanted) in rows {
            for answer in [Answer::no(why), Answer::trouble(why), Answer::No(why.into()), Answer::Trouble(why.into())] {
                for filtered in [false, true] {
                    let reply = answer.reply(filtered, now);
                    assert_eq!(heard(reply.status, &reply.body), Heard::Blocked(wanted.to_owned()), "{row} {answer:?}");
                    let error = filtered || matches!(answer, Answer::Trouble(_));
                    assert_eq!(reply.status, if error { 422 } else { 200 }, "{row} {answer:?}");
                }
                assert!(answer.word().chars().count() <= TEXT_LIMIT, "{row}");
            }
        }
        for filtered in [false, true] {
            let go = Answer::Go.reply(filtered, now);
            assert_eq!(go.body, r#"{"data":{"result":[],"resultType":"vector"},"status":"success"}"#);
            assert_eq!(heard(go.status, &go.body), Heard::Go);
        }
    }
}
