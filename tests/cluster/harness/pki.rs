//! Certificates and kubeconfigs of one run: two authorities, one certificate per role.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use serde_json::json;

use super::net::{NODES, address};
use super::node_name;

/// The folder with the certificates and the one with the kubeconfigs.
pub struct Pki {
    pki: PathBuf,
    kubeconfigs: PathBuf,
}

impl Pki {
    /// Makes everything below the run folder.
    pub fn create(run: &Path) -> Result<Self> {
        let made = Self { pki: run.join("pki"), kubeconfigs: run.join("kc") };
        fs::create_dir_all(&made.pki)?;
        fs::create_dir_all(&made.kubeconfigs)?;
        let ca = made.authority("ca")?;
        let kubelet_ca = made.authority("kubelet-ca")?;
        made.servers(&ca, &kubelet_ca)?;
        made.clients(&ca)?;
        // The service accounts' signing pair: the public half is no certificate.
        let pair = KeyPair::generate()?;
        made.write("sa.key", &pair.serialize_pem())?;
        made.write("sa.pub", &pair.public_key_pem())?;
        made.write_kubeconfigs()?;
        Ok(made)
    }

    /// A file of the certificate folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.pki.join(name)
    }

    /// A kubeconfig by user: `admin`, `harness`, `nobody`, `kcm-2`, `node-1-3` (node 1's identity at server 3), ...
    pub fn kubeconfig(&self, name: &str) -> PathBuf {
        self.kubeconfigs.join(name)
    }

    /// Writes a kubeconfig for a bearer token, with one context per server like the one of `admin`.
    pub fn token_kubeconfig(&self, name: &str, token: &str) -> Result<PathBuf> {
        self.write_contexts(name, &json!({ "token": token }))
    }

    fn authority(&self, name: &str) -> Result<Issuer<'static, KeyPair>> {
        let mut params = parameters(&[], &[(DnType::CommonName, name)])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        self.write(&format!("{name}.crt"), &params.self_signed(&key)?.pem())?;
        Ok(Issuer::new(params, key))
    }

    fn servers(&self, ca: &Issuer<'static, KeyPair>, kubelet_ca: &Issuer<'static, KeyPair>) -> Result<()> {
        let usage = ExtendedKeyUsagePurpose::ServerAuth;
        let mut names: Vec<String> = [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "localhost",
            "127.0.0.1",
            "10.96.0.1",
        ]
        .map(String::from)
        .to_vec();
        names.extend((1..=NODES).map(|i| address(i).to_string()));
        self.leaf("apiserver", ca, &names, &[(DnType::CommonName, "kube-apiserver")], usage.clone())?;
        for i in 1..=NODES {
            let node = format!("system:node:{}", node_name(i));
            let subject = [(DnType::OrganizationName, "system:nodes"), (DnType::CommonName, node.as_str())];
            self.leaf(
                &format!("kubelet-{i}"),
                kubelet_ca,
                &[address(i).to_string(), node_name(i)],
                &subject,
                usage.clone(),
            )?;
        }
        Ok(())
    }

    fn clients(&self, ca: &Issuer<'static, KeyPair>) -> Result<()> {
        let mut clients = vec![
            ("admin".to_string(), "system:masters", "admin".to_string()),
            ("harness".to_string(), "system:masters", "harness".to_string()),
            ("apiserver-kubelet-client".to_string(), "system:masters", "kube-apiserver-kubelet-client".to_string()),
            ("kcm".to_string(), "", "system:kube-controller-manager".to_string()),
            ("sched".to_string(), "", "system:kube-scheduler".to_string()),
            ("nobody".to_string(), "", "nobody".to_string()),
        ];
        clients.extend(
            (1..=NODES).map(|i| (format!("node-{i}"), "system:nodes", format!("system:node:{}", node_name(i)))),
        );
        for (file, group, user) in clients {
            let mut subject = vec![(DnType::CommonName, user.as_str())];
            if !group.is_empty() {
                subject.insert(0, (DnType::OrganizationName, group));
            }
            self.leaf(&file, ca, &[], &subject, ExtendedKeyUsagePurpose::ClientAuth)?;
        }
        Ok(())
    }

    fn leaf(
        &self,
        file: &str,
        issuer: &Issuer<'static, KeyPair>,
        names: &[String],
        subject: &[(DnType, &str)],
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<()> {
        let mut params = parameters(names, subject)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, issuer).with_context(|| format!("cannot sign certificate {file}"))?;
        self.write(&format!("{file}.crt"), &certificate.pem())?;
        self.write(&format!("{file}.key"), &key.serialize_pem())
    }

    fn write_kubeconfigs(&self) -> Result<()> {
        for user in ["admin", "harness", "nobody"] {
            self.write_contexts(user, &self.certificate_user(user))?;
        }
        for i in 1..=NODES {
            for user in ["kcm", "sched", "harness", "nobody"] {
                self.write_single(&format!("{user}-{i}"), i, user)?;
            }
            for server in 1..=NODES {
                self.write_single(&format!("node-{i}-{server}"), server, &format!("node-{i}"))?;
            }
        }
        Ok(())
    }

    fn certificate_user(&self, user: &str) -> serde_json::Value {
        json!({ "client-certificate": self.file(&format!("{user}.crt")), "client-key": self.file(&format!("{user}.key")) })
    }

    fn cluster_entry(&self, server: usize) -> serde_json::Value {
        json!({ "server": format!("https://{}:6443", address(server)), "certificate-authority": self.file("ca.crt") })
    }

    fn write_single(&self, name: &str, server: usize, user: &str) -> Result<()> {
        self.write_kubeconfig(name, &[("cluster".to_string(), server)], &self.certificate_user(user)).map(drop)
    }

    /// One context per server, named `server-1` ...; the first is the current one.
    fn write_contexts(&self, name: &str, user: &serde_json::Value) -> Result<PathBuf> {
        let contexts: Vec<_> = (1..=NODES).map(|i| (format!("server-{i}"), i)).collect();
        self.write_kubeconfig(name, &contexts, user)
    }

    fn write_kubeconfig(&self, name: &str, contexts: &[(String, usize)], user: &serde_json::Value) -> Result<PathBuf> {
        let clusters: Vec<_> =
            contexts.iter().map(|(n, i)| json!({ "name": n, "cluster": self.cluster_entry(*i) })).collect();
        let entries: Vec<_> =
            contexts.iter().map(|(n, _)| json!({ "name": n, "context": { "cluster": n, "user": "user" } })).collect();
        let whole = json!({
            "apiVersion": "v1", "kind": "Config", "clusters": clusters, "contexts": entries,
            "users": [{ "name": "user", "user": user }], "current-context": contexts[0].0,
        });
        let path = self.kubeconfig(name);
        fs::write(&path, serde_json::to_string_pretty(&whole)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.file(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn parameters(names: &[String], subject: &[(DnType, &str)]) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(names.to_vec())?;
    // Without this the library's own common name would stay in the subject.
    params.distinguished_name = rcgen::DistinguishedName::new();
    for (kind, value) in subject {
        params.distinguished_name.push(kind.clone(), *value);
    }
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2045, 1, 1);
    Ok(params)
}
