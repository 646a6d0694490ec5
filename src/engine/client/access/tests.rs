//! Kubeconfigs that cannot be used, and certificates over real sockets.

use std::io::Write as _;

use maint_core::matrix::Readiness;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::observe::{Expected, Origin, ask_all};
use crate::testing::{TlsListener, client, install_crypto, refused, reply, status};

const KUBECONFIG: &str = r#"
apiVersion: v1
kind: Config
clusters:
- {name: good, cluster: {server: "https://127.0.0.1:1"}}
- {name: blind, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}}
- {name: lost, cluster: {server: "https://127.0.0.1:1", certificate-authority: /nowhere/ca.crt}}
- {name: proxied, cluster: {server: "https://127.0.0.1:1", proxy-url: "socks5://127.0.0.1:1"}}
users:
- {name: me, user: {token: t}}
- {name: keyless, user: {tokenFile: /nowhere/token}}
contexts:
- {name: good, context: {cluster: good, user: me}}
- {name: blind, context: {cluster: blind, user: me}}
- {name: lost, context: {cluster: lost, user: me}}
- {name: dangling, context: {cluster: none, user: me}}
- {name: keyless, context: {cluster: good, user: keyless}}
- {name: proxied, context: {cluster: proxied, user: me}}
"#;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file
}

#[tokio::test]
async fn kubeconfigs_that_cannot_be_used_say_why_and_what_helps() {
    install_crypto();
    let (good, rubbish, empty) = (file(KUBECONFIG), file("{ clusters: ["), file(""));
    let missing = PathBuf::from("/nowhere/kubeconfig");
    let path = |file: &tempfile::NamedTempFile| file.path().to_path_buf();
    let rows = [
        ("missing file", missing, None, "no-kubeconfig", "/nowhere/kubeconfig"),
        ("rubbish", path(&rubbish), None, "bad-kubeconfig", "parse"),
        ("empty", path(&empty), None, "bad-context", "it has: none"),
        ("no current context", path(&good), None, "bad-context", "names no current context; it has: good, blind"),
        ("unknown context", path(&good), Some("prod"), "bad-context", "no context `prod`; it has: good, blind"),
        ("context without cluster", path(&good), Some("dangling"), "bad-kubeconfig", "none"),
        (
            "unverified",
            path(&good),
            Some("blind"),
            "insecure",
            "switches off certificate verification for https://127.0.0.1:1",
        ),
        ("missing authority", path(&good), Some("lost"), "bad-kubeconfig", "/nowhere/ca.crt"),
        ("missing token file", path(&good), Some("keyless"), "credentials", "/nowhere/token"),
        ("unsupported proxy", path(&good), Some("proxied"), "build", "proxy"),
        ("nothing listens", path(&good), Some("good"), "unreachable", "Connection refused"),
    ];
    for (row, kubeconfig, context, category, part) in rows {
        let options = AccessOptions {
            kubeconfig: Some(kubeconfig),
            context: context.map(str::to_owned),
            ..AccessOptions::default()
        };
        let error = connect(&options, &Clock::real()).await.err().unwrap_or_else(|| panic!("{row}: no error"));
        assert_eq!(error.category(), category, "{row}: {error}");
        assert!(error.to_string().contains(part), "{row}: `{error}` lacks `{part}`");
        assert!(!error.remedy().is_empty(), "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_question_tells_a_dead_cluster_from_a_strict_one() {
    let clock = Clock::real();
    let ask = async |reply: fn() -> crate::testing::Reply| {
        ask_version("https://x", &client(move |_| reply()), &clock).await.err().map(|error| error.category())
    };
    assert_eq!(ask(|| reply(200, &[], "{}")).await, None);
    assert_eq!(ask(|| status(403, "Forbidden", "no")).await, None, "the rest may be allowed");
    assert_eq!(ask(|| status(401, "Unauthorized", "Unauthorized")).await, Some("forbidden"));
    assert_eq!(ask(refused).await, Some("unreachable"));
    assert_eq!(ask(crate::testing::silence).await, Some("unreachable"));
}

#[test]
fn addresses_are_host_and_port() {
    for address in ["10.0.0.1:6443", "[fd00::1]:6443", "server-1.example.com:443"] {
        assert_eq!(server_url(address).expect(address).to_string(), format!("https://{address}/"));
    }
    for address in
        ["", "10.0.0.1", "https://10.0.0.1:6443", "10.0.0.1:6443/x", "me:pw@10.0.0.1:6443", "fd00::1:6443x", "a b:1"]
    {
        assert_eq!(server_url(address).expect_err(address).category(), "bad-address", "{address}");
    }
}

#[test]
fn every_client_has_limits_and_does_not_retry() {
    let access = Access::of(Config::new("https://x:1".parse().expect("a URL"))).expect("verifies");
    let Config { connect_timeout, read_timeout, reset_reader_on_write, default_retry, .. } = access.config;
    assert_eq!((connect_timeout, read_timeout), (Some(Duration::from_secs(5)), Some(Duration::from_secs(50))));
    assert!(reset_reader_on_write && !default_retry);
}

#[test]
fn probes_take_none_of_our_own_credentials_along() {
    install_crypto();
    let mut config = Config::new("https://x:1".parse().expect("a URL"));
    config.auth_info.token = Some("ours".to_owned().into());
    config.auth_info.client_certificate = Some("/ours.crt".into());
    config.auth_info.impersonate = Some("somebody".into());
    let access = Access::of(config).expect("verifies");
    for (row, other, file) in [
        ("anonymous", access.anonymous(), None),
        ("a file", access.with_token_file(Path::new("/probe/token")), Some("/probe/token")),
    ] {
        let auth = &other.config.auth_info;
        assert!(auth.token.is_none() && auth.client_certificate.is_none() && auth.impersonate.is_none(), "{row}");
        assert_eq!((auth.token_file.as_deref(), other.source()), (file, access.source()), "{row}");
    }
    let missing = access.with_token_file(Path::new("/nowhere/token"));
    let error = Servers::client(&missing, "10.0.0.1:6443", None).err().expect("no such file");
    assert!(matches!(error, ClientError::Credentials { .. }), "{error}");
}

/// The certificate authority of a server with a certificate for these names that answers every connection with a
/// ready API server, and its address.
async fn tls_server(names: &[&str]) -> (Vec<u8>, String) {
    let tls = TlsListener::bind(names).await;
    let (root, address) = (tls.root.clone(), tls.address.clone());
    let (env, owner) = crate::testing::env();
    env.tasks.spawn(async move {
        loop {
            let Some(mut stream) = tls.accept().await else { continue };
            let mut request = [0; 1_024];
            let _ = stream.read(&mut request).await;
            let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n";
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    // The server lives as long as the test's runtime.
    std::mem::forget(owner);
    (root, address)
}

async fn readiness(root: Vec<u8>, address: &str, server_name: Option<&str>) -> Readiness {
    let mut config = Config::new("https://elsewhere.example:6443".parse().expect("a URL"));
    config.root_cert = Some(vec![root]);
    config.tls_server_name = server_name.map(str::to_owned);
    let access = Access::of(config).expect("verifies");
    let expected = Expected { name: "s1".into(), node: None, address: Some(address.to_owned()), origin: Origin::Label };
    let asked = ask_all(&access, &Clock::real(), vec![expected]).await;
    asked.into_iter().next().expect("one").server.readiness
}

#[tokio::test]
async fn certificates_are_verified_for_the_address_or_the_name_that_all_have() {
    let (root, address) = tls_server(&["127.0.0.1"]).await;
    assert_eq!(readiness(root, &address, None).await, Readiness::Ready, "the address is in it");

    let (root, address) = tls_server(&["kubernetes.default.svc"]).await;
    assert_eq!(readiness(root, &address, None).await, Readiness::Ready, "the fallback name is in it");

    let (root, address) = tls_server(&["api.example.com"]).await;
    let named = readiness(root.clone(), &address, Some("api.example.com")).await;
    assert_eq!(named, Readiness::Ready, "the kubeconfig's tls-server-name is in it");
    let other = readiness(root, &address, None).await;
    let Readiness::Unreachable { detail } = &other else { panic!("{other:?}") };
    assert!(detail.starts_with("certificate: ") && detail.contains("not valid for name"), "{detail}");

    let (_, address) = tls_server(&["127.0.0.1"]).await;
    let (foreign, _) = tls_server(&["127.0.0.1"]).await;
    let untrusted = readiness(foreign, &address, None).await;
    let Readiness::Unreachable { detail } = &untrusted else { panic!("{untrusted:?}") };
    assert!(detail.starts_with("certificate: "), "{detail}");
}

#[tokio::test]
async fn where_the_configured_server_is_gone_another_one_is_asked_at_its_address() {
    let pem = |root: &[u8]| {
        use base64::Engine as _;
        let encoded = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        encoded(format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", encoded(root)).as_bytes())
    };
    let options = |root: &[u8]| {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: me}}}}]\n\
             users: [{{name: me, user: {{token: t}}}}]\n\
             clusters: [{{name: c, cluster: {{server: \"https://127.0.0.1:1\", certificate-authority-data: {}}}}}]\n",
            pem(root)
        );
        let file = file(&text);
        (AccessOptions { kubeconfig: Some(file.path().to_owned()), ..AccessOptions::default() }, file)
    };
    let clock = Clock::real();
    for name in ["127.0.0.1", "kubernetes.default.svc"] {
        let (root, address) = tls_server(&[name]).await;
        let (options, _file) = options(&root);
        let gone = connect(&options, &clock).await.err().expect("nobody listens there");
        assert!(matches!(gone, ClientError::Unreachable { .. }) && gone.may_pass(), "{gone}");
        let (access, _) =
            connect_at(&options, &address, &clock).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(access.server(), "https://127.0.0.1:1/", "probes go where they went");
    }
    let (_, address) = tls_server(&["127.0.0.1"]).await;
    let (foreign, _) = tls_server(&["127.0.0.1"]).await;
    let (options, _file) = options(&foreign);
    let refused = connect_at(&options, &address, &clock).await.err().expect("a foreign certificate");
    assert!(matches!(refused, ClientError::Tls { .. }), "{refused}");
    let odd = connect_at(&options, "not an address", &clock).await.err().expect("no address");
    assert!(!odd.may_pass(), "waiting does not help: {odd}");
}
