//! Where the cluster is and who we are: from a kubeconfig, or from a pod's service account.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Config;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};
use maint_core::matrix::classify::{Answer, one_line};

use super::unpooled::unpooled;
use super::{ClientError, Exchange, FailureClass, get};
use crate::ports::Servers;
use crate::probe::ProbeIdentity;
use crate::runtime::Clock;

/// Limit for TCP and TLS, in seconds.
const CONNECT_SECONDS: u64 = 5;
/// Limit for silence while an answer is awaited, in seconds. Each call has a shorter one of its own; the longest are an
/// eviction, which a webhook may hold for 30 s, and a watch, whose silence counts as its end after 45 s.
const READ_SECONDS: u64 = 50;
/// Limit for a request that is not taken, in seconds.
const WRITE_SECONDS: u64 = 15;
/// Limit of the first question to a cluster, in seconds.
const FIRST_QUESTION_SECONDS: u64 = 10;
/// A name that every API server's certificate has where it lacks the server's own address (kubeadm, k3s, RKE2).
pub const FALLBACK_SERVER_NAME: &str = "kubernetes.default.svc";

/// Which cluster, as a person says it.
#[derive(Debug, Clone, Default)]
pub struct AccessOptions {
    /// A kubeconfig file; none takes `KUBECONFIG`, then `~/.kube/config`, then the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// A context of it; none takes its current one.
    pub context: Option<String>,
    /// Whose credentials the matrix is asked with.
    pub probe: ProbeIdentity,
}

/// A way to the cluster: builds clients, sends nothing itself.
#[derive(Debug, Clone)]
pub struct Access {
    config: Config,
    /// What a person calls it.
    name: String,
}

impl Access {
    /// Loads it.
    ///
    /// # Errors
    /// If there is no kubeconfig, it has no such context, or it switches verification off.
    pub async fn load(options: &AccessOptions) -> Result<Self, ClientError> {
        let kubeconfig = match &options.kubeconfig {
            Some(path) => Some(Kubeconfig::read_from(path).map_err(bad_kubeconfig)?),
            // A file that a person names and that is not there is an error, even in a pod: the pod's own cluster may be
            // another one.
            None => match Kubeconfig::from_env().map_err(bad_kubeconfig)? {
                Some(kubeconfig) => Some(kubeconfig),
                None => from_home(options)?,
            },
        };
        let context = kubeconfig
            .as_ref()
            .and_then(|kubeconfig| options.context.clone().or_else(|| kubeconfig.current_context.clone()));
        let in_pod = kubeconfig.is_none();
        let config = match kubeconfig {
            Some(kubeconfig) => from_kubeconfig(kubeconfig, options.context.as_deref()).await?,
            None => Config::incluster().map_err(|error| ClientError::NoKubeconfig {
                detail: one_line(&format!("no ~/.kube/config; {error}")),
            })?,
        };
        let name = match context {
            Some(context) => format!("context {context}"),
            None if in_pod => "the pod's service account".to_owned(),
            None => "the kubeconfig".to_owned(),
        };
        Ok(Self { name, ..Self::of(config)? })
    }

    /// Takes a configuration that was made elsewhere, and sets what every client of maint needs.
    ///
    /// # Errors
    /// If it switches verification off.
    pub fn of(mut config: Config) -> Result<Self, ClientError> {
        if config.accept_invalid_certs {
            return Err(ClientError::Insecure { server: config.cluster_url.to_string() });
        }
        config.connect_timeout = Some(Duration::from_secs(CONNECT_SECONDS));
        config.read_timeout = Some(Duration::from_secs(READ_SECONDS));
        config.write_timeout = Some(Duration::from_secs(WRITE_SECONDS));
        // Else the time that a connection lay idle counts as silence.
        config.reset_reader_on_write = true;
        // Retrying is the driver loop's: kube's own would hold a request for minutes.
        config.default_retry = false;
        // Audit logs show who asked what.
        let agent = http::HeaderValue::from_static(concat!("maint/", env!("CARGO_PKG_VERSION")));
        config.headers.push((http::header::USER_AGENT, agent));
        Ok(Self { config, name: "a given configuration".to_owned() })
    }

    /// URL of the server that calls go to: a load balancer, or one of the API servers.
    #[must_use]
    pub fn server(&self) -> String {
        self.config.cluster_url.to_string()
    }

    /// Where it leads, for people: `context k3s (https://10.0.0.1:6443/)`.
    #[must_use]
    pub fn source(&self) -> String {
        format!("{} ({})", self.name, self.server())
    }

    /// The same way without any credentials.
    #[must_use]
    pub fn anonymous(&self) -> Self {
        let mut other = self.clone();
        other.config.auth_info = AuthInfo::default();
        other
    }

    /// The same way with the token in a file as the only credentials. It is read again at least once a minute.
    #[must_use]
    pub fn with_token_file(&self, path: &Path) -> Self {
        let mut other = self.anonymous();
        other.config.auth_info.token_file = Some(path.display().to_string());
        other
    }

    /// The client for calls.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn client(&self) -> Result<kube::Client, ClientError> {
        built(kube::Client::try_from(self.config.clone()), &self.config)
    }

    /// The kind of client that single API servers are asked with, for the server of the configuration: tests need no
    /// certificate then.
    #[cfg(test)]
    pub(crate) fn unpooled(&self) -> Result<kube::Client, ClientError> {
        built(unpooled(&self.config), &self.config)
    }
}

impl Servers for Access {
    type Client = kube::Client;

    fn client(&self, address: &str, tls_server_name: Option<&str>) -> Result<kube::Client, ClientError> {
        let mut config = self.config.clone();
        config.cluster_url = server_url(address)?;
        // A name that the kubeconfig gives is a person's word; ours only stands in.
        if config.tls_server_name.is_none() {
            config.tls_server_name = tls_server_name.map(str::to_owned);
        }
        built(unpooled(&config), &config)
    }
}

/// `https://host:port`, and nothing else.
fn server_url(address: &str) -> Result<http::Uri, ClientError> {
    let bad = |detail: &str| ClientError::BadAddress { address: one_line(address), detail: detail.to_owned() };
    let authority: http::uri::Authority = address.parse().map_err(|_| bad("wanted host:port"))?;
    if address.contains('@') {
        return Err(bad("it must not contain credentials"));
    }
    if authority.port().is_none() {
        return Err(bad("it has no port"));
    }
    http::Uri::builder()
        .scheme("https")
        .authority(authority)
        .path_and_query("/")
        .build()
        .map_err(|_| bad("wanted host:port"))
}

fn built(client: kube::Result<kube::Client>, config: &Config) -> Result<kube::Client, ClientError> {
    client.map_err(|error| match error {
        kube::Error::Auth(error) => ClientError::Credentials { detail: one_line(&error.to_string()) },
        error => ClientError::Build { server: config.cluster_url.to_string(), detail: one_line(&error.to_string()) },
    })
}

/// `~/.kube/config`; none where it does not exist and nobody wants a context of it.
fn from_home(options: &AccessOptions) -> Result<Option<Kubeconfig>, ClientError> {
    match Kubeconfig::read() {
        Ok(kubeconfig) => Ok(Some(kubeconfig)),
        Err(error) if is_missing(&error) && options.context.is_none() => Ok(None),
        Err(error) => Err(bad_kubeconfig(error)),
    }
}

fn is_missing(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

#[allow(clippy::needless_pass_by_value, reason = "fits map_err")]
fn bad_kubeconfig(error: KubeconfigError) -> ClientError {
    let detail = one_line(&error.to_string());
    if is_missing(&error) { ClientError::NoKubeconfig { detail } } else { ClientError::BadKubeconfig { detail } }
}

async fn from_kubeconfig(kubeconfig: Kubeconfig, context: Option<&str>) -> Result<Config, ClientError> {
    let known: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| match error {
        KubeconfigError::LoadContext(context) => ClientError::UnknownContext { context, known },
        KubeconfigError::CurrentContextNotSet => ClientError::NoContext { known },
        error => bad_kubeconfig(error),
    })
}

/// Loads the access, builds the client for calls, and asks one cheap question, so that a cluster that cannot be asked
/// at all is one clear error instead of a page of unknowns.
///
/// # Errors
/// As [`Access::load`]; and if the server does not answer, cannot be verified, or rejects our credentials.
pub async fn connect(options: &AccessOptions, clock: &Clock) -> Result<(Access, kube::Client), ClientError> {
    let access = Access::load(options).await?;
    let client = access.client()?;
    ask_version(&access.server(), &client, clock).await?;
    Ok((access, client))
}

/// The same for one API server at its own address, `host:port`, when the configured one does not answer: another one may.
/// Each request has a connection of its own. Verification is never switched off; where the certificate does not name the
/// address, it must have the name that every API server's has.
///
/// # Errors
/// As [`connect`]; and if the address cannot be understood.
pub async fn connect_at(
    options: &AccessOptions,
    address: &str,
    clock: &Clock,
) -> Result<(Access, kube::Client), ClientError> {
    let access = Access::load(options).await?;
    let client = Servers::client(&access, address, None)?;
    match ask_version(address, &client, clock).await {
        Ok(()) => Ok((access, client)),
        Err(ClientError::Tls { .. }) => {
            let named = Servers::client(&access, address, Some(FALLBACK_SERVER_NAME))?;
            ask_version(address, &named, clock).await?;
            Ok((access, named))
        }
        Err(error) => Err(error),
    }
}

async fn ask_version(server: &str, client: &kube::Client, clock: &Clock) -> Result<(), ClientError> {
    let limit = Duration::from_secs(FIRST_QUESTION_SECONDS);
    let server = server.to_owned();
    match get(client, clock, "/version", &[], limit, 4_096).await {
        Exchange::Failed(failure) if failure.class == FailureClass::Credentials => {
            Err(ClientError::Credentials { detail: failure.detail })
        }
        exchange => match exchange.into_answer() {
            // Only 401 says that nothing will work; a hardened cluster may forbid /version and allow the rest.
            Answer::Response(response) if response.status == 401 => {
                Err(ClientError::Forbidden { server, detail: format!("HTTP 401: {}", one_line(&response.body)) })
            }
            Answer::Response(_) => Ok(()),
            Answer::TimedOut { seconds } => {
                Err(ClientError::Unreachable { server, detail: format!("no answer within {seconds} s") })
            }
            Answer::NoConnection { detail } | Answer::NotSent { detail } => {
                Err(ClientError::Unreachable { server, detail })
            }
            Answer::Tls { detail } => Err(ClientError::Tls { server, detail }),
        },
    }
}

#[cfg(test)]
mod tests;
