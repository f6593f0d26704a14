//! Accepts connections and keeps them alive.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Shared, answer};

/// Runs until told to stop; dropping the future ends every connection.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, number, Arc::clone(&shared)));
                    number += 1;
                }
                // No descriptor is free, or the client is gone again: others may still come.
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, number: u64, shared: Arc<Shared>) {
    // Without it small events may wait for each other; the answer is right either way.
    let _hint = stream.set_nodelay(true);
    let service = service_fn(|request| answer::answer(Arc::clone(&shared), number, request));
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    // A connection ends with an error when the client goes away or the script breaks it: both are meant.
    let _ended: Result<Result<(), hyper::Error>, Infallible> = tokio::select! {
        ended = connection.as_mut() => Ok(ended),
        () = shared.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            Ok(connection.await)
        }
    };
}
