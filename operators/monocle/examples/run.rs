//! Runs the Monocle operator against the cluster of the current kubeconfig until it is interrupted.

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = kube::Client::try_default().await?;
    windlass::Runtime::new(client, windlass::Context::live())
        .host(windlass_monocle::operator())
        .install_crds()
        .run(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
        .await?;
    Ok(())
}
