//! What `[kured]` must hold.

use super::super::Settings;
use super::{Broken, path};

pub(super) fn hosts(s: &Settings) -> Broken {
    let hosts = s.kured.hosts.iter().enumerate();
    hosts
        .filter(|(_, host)| !is_host(host))
        .map(|(index, host)| {
            (path(&["kured", "hosts", &index.to_string()]), format!("is `{host}`, which is no host name"))
        })
        .collect()
}

pub(super) fn prometheus(s: &Settings) -> Broken {
    let problem = odd_url(&s.kured.prometheus);
    problem.map(|problem| (path(&["kured", "prometheus"]), problem)).into_iter().collect()
}

/// What is odd about the URL of a Prometheus. What may be a secret is not repeated.
pub(super) fn odd_url(url: &str) -> Option<String> {
    if url.is_empty() {
        return None;
    }
    if url.contains('@') {
        return Some("has a user or password in it, or something else before an `@`".to_owned());
    }
    let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else {
        return Some(format!("is `{url}`, wanted http:// or https:// before the host"));
    };
    if rest.contains(['?', '#']) || url.contains(char::is_whitespace) {
        return Some(format!("is `{url}`, wanted neither query nor blanks"));
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        // An address of IPv6 without a port.
        Some(_) if authority.ends_with(']') => (authority, None),
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_six = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| host.parse::<core::net::Ipv6Addr>().is_ok());
    let fits = (is_six || is_host(host)) && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    (!fits).then(|| format!("is `{url}`, in which `{authority}` is no host and port"))
}

/// A name, or an address of IPv4: nothing around it.
fn is_host(host: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    host.len() <= 253 && host.trim_end_matches('.').split('.').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_alone() {
        let rows = [
            ("maint.example.org", true),
            ("maint", true),
            ("10.0.0.1", true),
            ("", false),
            ("http://maint.example.org", false),
            ("maint.example.org:80", false),
            ("maint.example.org/kured", false),
            ("maint example", false),
            ("a..b", false),
        ];
        for (host, fine) in rows {
            let got = Settings::parse(&format!("[kured]\nhosts = [\"maint\", \"{host}\"]"), "f");
            let first = got.map_err(|errors| errors.lines()[0].clone());
            let wanted = format!("f:2:19: `kured.hosts.1` is `{host}`, which is no host name");
            let wanted = wanted.replace(".1`", "[1]`");
            assert_eq!(first.err(), (!fine).then_some(wanted), "{host}");
        }
    }

    #[test]
    fn a_prometheus_is_an_http_url_without_secrets() {
        let rows = [
            ("", None),
            ("http://prometheus.monitoring:9090", None),
            ("https://prometheus.example.org/prefix/", None),
            ("http://[fd00::1]:9090", None),
            ("http://[fd00::1]", None),
            ("http://user:pass@prometheus:9090", Some("has a user or password in it")),
            ("ftp://prometheus", Some("is `ftp://prometheus`, wanted http:// or https://")),
            ("prometheus:9090", Some("is `prometheus:9090`, wanted http:// or https://")),
            ("http://", Some("is `http://`, in which `` is no host and port")),
            ("http://prometheus:99999", Some("is `http://prometheus:99999`, in which `prometheus:99999` is no host")),
            ("http://prometheus:9090/?x=1", Some("is `http://prometheus:9090/?x=1`, wanted neither query nor blanks")),
            ("http://prome theus", Some("is `http://prome theus`, wanted neither query nor blanks")),
        ];
        for (url, wanted) in rows {
            let got = Settings::parse(&format!("kured.prometheus = \"{url}\""), "f");
            let message = got.map_err(|errors| errors.errors[0].message.clone()).err();
            assert_eq!(message.is_some(), wanted.is_some(), "{url}: {message:?}");
            let wanted = format!("`kured.prometheus` {}", wanted.unwrap_or_default());
            assert!(message.is_none_or(|message| message.starts_with(&wanted) && !message.contains("pass@")), "{url}");
        }
    }
}
