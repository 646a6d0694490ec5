//! maint: makes unattended node reboots of a Kubernetes cluster safe.

mod cli;

#[tokio::main]
async fn main() -> std::process::ExitCode {
    // One provider for every TLS connection of the process. It fails only if one is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cli::run().await.into()
}
