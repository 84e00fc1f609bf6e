use windlass::{Context, Runtime};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = kube::Client::try_default().await?;
    Runtime::new(client, Context::live())
        .install_crds()
        .host(website_operator::operator())
        .run(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
        .await?;
    Ok(())
}
