//! What `[drain]` must hold.

use super::super::{DrainRule, Settings, Then};
use super::{Broken, is_dns_label, path};

/// A day: whoever needs longer is not drained in a night.
const LONGEST_GRACE: i64 = 86_400;

/// Every rule for which `problem` has something to say of its `key`.
fn of_rules<'s>(s: &'s Settings, key: &str, problem: impl Fn(usize, &'s DrainRule) -> Option<String>) -> Broken {
    let rules = s.drain.rules.iter().enumerate();
    rules
        .filter_map(|(index, rule)| Some((path(&["drain", "rules", &index.to_string(), key]), problem(index, rule)?)))
        .collect()
}

pub(super) fn names(s: &Settings) -> Broken {
    of_rules(s, "name", |index, rule| {
        let name = &rule.name;
        let taken = s.drain.rules.iter().take(index).any(|other| other.name == *name);
        match (is_dns_label(name), taken) {
            (false, _) => Some(format!("is `{name}`, which is no kebab-case name of up to 63 characters")),
            (true, true) => Some(format!("is `{name}`, as another rule is called")),
            (true, false) => None,
        }
    })
}

pub(super) fn selections(s: &Settings) -> Broken {
    let mut broken = of_rules(s, "namespaces", |_, rule| {
        let odd = rule.namespaces.iter().find(|name| !is_dns_label(name))?;
        Some(format!("names `{odd}`, which is no namespace"))
    });
    broken.extend(of_rules(s, "name", |_, rule| {
        let all = rule.namespaces.is_empty() && rule.pods.is_empty();
        all.then(|| format!("is `{}`, a rule for every pod: it has neither `namespaces` nor `pods`", rule.name))
    }));
    broken
}

pub(super) fn graces(s: &Settings) -> Broken {
    of_rules(s, "grace_seconds", |_, rule| {
        let seconds = rule.grace_seconds?;
        (!(1..=LONGEST_GRACE).contains(&seconds)).then(|| format!("is {seconds}, wanted 1 to {LONGEST_GRACE}"))
    })
}

pub(super) fn without_effect(s: &Settings) -> Broken {
    of_rules(s, "then", |_, rule| {
        let set = rule.order != 0 || rule.grace_seconds.is_some() || rule.force;
        let stays = rule.then != Then::Evict;
        (stays && set).then(|| format!("is {}: `order`, `grace_seconds` and `force` say nothing then", rule.then))
    })
}

/// kured asks nobody which pods to leave. Where the file speaks of kured it is the partner that reboots.
pub(super) fn skip_with_kured(s: &Settings) -> Broken {
    let kured = &s.kured;
    let set = [
        ("kured.hosts", !kured.hosts.is_empty()),
        ("kured.prometheus", !kured.prometheus.is_empty()),
        ("kured.sentinel.image", !kured.sentinel.image.is_empty()),
    ];
    let Some((key, _)) = set.into_iter().find(|(_, set)| *set) else { return Broken::new() };
    of_rules(s, "then", |_, rule| {
        (rule.then == Then::Skip).then(|| format!("is skip beside `{key}`: kured drains such pods all the same"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_a_drain_at_its_boundary() {
        let fine = "pods = \"app=a\"";
        let rows: &[(&str, String, Option<&str>)] = &[
            ("fine", fine.to_owned(), None),
            ("by namespace", "namespaces = [\"a\"]".to_owned(), None),
            ("every pod", String::new(), Some("f:2:8: `drain.rules[0].name` is `r`, a rule for every pod")),
            ("no namespace", "namespaces = [\"A\"]".to_owned(), Some("f:3:14: `drain.rules[0].namespaces` names `A`")),
            (
                "no selection",
                "namespaces = [\"a\"]\npods = \"app in\"".to_owned(),
                Some("f:4:8: `app in` has no label's key"),
            ),
            ("no such treatment", format!("{fine}\nthen = \"leave\""), Some("f:4:8: ")),
            ("grace", format!("{fine}\ngrace_seconds = 1"), None),
            ("no grace", format!("{fine}\ngrace_seconds = 0"), Some("f:4:17: `drain.rules[0].grace_seconds` is 0")),
            ("a day", format!("{fine}\ngrace_seconds = 86400"), None),
            ("more", format!("{fine}\ngrace_seconds = 86401"), Some("f:4:17: `drain.rules[0].grace_seconds` is 86401")),
            ("skip", format!("{fine}\nthen = \"skip\""), None),
            (
                "skip in order",
                format!("{fine}\nthen = \"skip\"\norder = 1"),
                Some("f:4:8: `drain.rules[0].then` is skip: `order`"),
            ),
            (
                "skip with kured",
                format!("{fine}\nthen = \"skip\"\n[kured]\nhosts = [\"maint.example.org\"]"),
                Some("f:4:8: `drain.rules[0].then` is skip beside `kured.hosts`: kured drains such pods all the same"),
            ),
            (
                "wait with kured",
                format!("{fine}\nthen = \"wait-for-completion\"\n[kured]\nhosts = [\"maint.example.org\"]"),
                None,
            ),
            ("a key too many", format!("{fine}\norders = 1"), Some("f:4:1: unknown key `orders`")),
            (
                "one name twice",
                format!("{fine}\n[[drain.rules]]\nname = \"r\"\n{fine}"),
                Some("f:5:8: `drain.rules[1].name` is `r`, as another rule is called"),
            ),
        ];
        for (row, text, wanted) in rows {
            let got = Settings::parse(&format!("[[drain.rules]]\nname = \"r\"\n{text}"), "f");
            let first = got.map_err(|errors| errors.lines().join("\n")).err();
            match wanted {
                None => assert_eq!(first, None, "{row}"),
                Some(wanted) => {
                    assert!(first.as_ref().is_some_and(|told| told.starts_with(wanted)), "{row}: {first:?}");
                }
            }
        }
    }
}
