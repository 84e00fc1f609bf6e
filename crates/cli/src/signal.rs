//! Waiting for the user, or the system, to end the program.

/// Resolves on Ctrl-C and on SIGTERM.
pub(crate) async fn stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::warn!(%error, "failed to wait for Ctrl-C");
        std::future::pending::<()>().await;
    }
}
