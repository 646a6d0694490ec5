//! Why there is no client, or none that can be used.

/// Why the cluster cannot be asked at all.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Neither a kubeconfig nor a pod's service account.
    #[error("no kubeconfig, and not in a pod: {detail}")]
    NoKubeconfig {
        /// What was tried.
        detail: String,
    },
    /// There is a kubeconfig, and it cannot be used.
    #[error("the kubeconfig cannot be used: {detail}")]
    BadKubeconfig {
        /// What is wrong.
        detail: String,
    },
    /// The named or current context does not exist.
    #[error("the kubeconfig has no context `{context}`; it has: {}", list(known))]
    UnknownContext {
        /// The name as given.
        context: String,
        /// The contexts that exist.
        known: Vec<String>,
    },
    /// The kubeconfig has no current context, and none was named.
    #[error("the kubeconfig names no current context; it has: {}", list(known))]
    NoContext {
        /// The contexts that exist.
        known: Vec<String>,
    },
    /// The kubeconfig switches certificate verification off.
    #[error("the kubeconfig switches off certificate verification for {server}")]
    Insecure {
        /// URL of the server.
        server: String,
    },
    /// Credentials could not be had: an exec plug-in failed, a token file is missing.
    #[error("credentials cannot be had: {detail}")]
    Credentials {
        /// The error's text.
        detail: String,
    },
    /// An address that is no `host:port`.
    #[error("`{address}` is no address of an API server: {detail}")]
    BadAddress {
        /// The address as given.
        address: String,
        /// What is wrong.
        detail: String,
    },
    /// The client could not be built.
    #[error("the client for {server} cannot be built: {detail}")]
    Build {
        /// URL of the server.
        server: String,
        /// The error's text.
        detail: String,
    },
    /// No connection.
    #[error("the API server {server} does not answer: {detail}")]
    Unreachable {
        /// URL of the server.
        server: String,
        /// The error's text.
        detail: String,
    },
    /// Its certificate could not be verified.
    #[error("the certificate of the API server {server} fails: {detail}")]
    Tls {
        /// URL of the server.
        server: String,
        /// The error's text.
        detail: String,
    },
    /// It rejects the credentials.
    #[error("the API server {server} refuses us: {detail}")]
    Forbidden {
        /// URL of the server.
        server: String,
        /// What it answered.
        detail: String,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl ClientError {
    /// Whether waiting may help: a server that starts answers nobody, has no certificate yet, or knows nobody yet. What is
    /// wrong with a kubeconfig stays wrong.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Tls { .. } | Self::Forbidden { .. })
    }

    /// Label of metrics and Events.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        match self {
            Self::NoKubeconfig { .. } => "no-kubeconfig",
            Self::BadKubeconfig { .. } => "bad-kubeconfig",
            Self::UnknownContext { .. } | Self::NoContext { .. } => "bad-context",
            Self::Insecure { .. } => "insecure",
            Self::Credentials { .. } => "credentials",
            Self::BadAddress { .. } => "bad-address",
            Self::Build { .. } => "build",
            Self::Unreachable { .. } => "unreachable",
            Self::Tls { .. } => "tls",
            Self::Forbidden { .. } => "forbidden",
        }
    }

    /// What helps, for people: one sentence or command.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NoKubeconfig { .. } => {
                "give --kubeconfig PATH, set KUBECONFIG, or run maint in a pod with a service \
                                          account; to judge files instead of a cluster: maint check --from PATH"
                    .to_owned()
            }
            Self::BadKubeconfig { .. } => "kubectl config view shows what kubectl makes of it".to_owned(),
            Self::UnknownContext { .. } | Self::NoContext { .. } => {
                "give one of them with --context, or kubectl config use-context NAME".to_owned()
            }
            Self::Insecure { .. } => "maint sends its credentials only to servers it can verify: remove \
                                      insecure-skip-tls-verify and give certificate-authority(-data)"
                .to_owned(),
            Self::Credentials { .. } => "kubectl auth whoami uses the same credentials and tells more".to_owned(),
            Self::BadAddress { .. } => "write it as host:port in [control_plane] api_servers".to_owned(),
            Self::Build { .. } => "check proxy-url, certificates and keys of the kubeconfig".to_owned(),
            Self::Unreachable { .. } => {
                "kubectl get --raw /version asks the same server; is it up, and is the way to it open?".to_owned()
            }
            Self::Tls { .. } => "the cluster's CA must sign the certificate, and it must name the address; \
                                 tls-server-name in the kubeconfig can name another"
                .to_owned(),
            Self::Forbidden { .. } => "kubectl auth whoami shows who we are; a token may have expired".to_owned(),
        }
    }
}
