//! s2n-quic as server and as client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::provider::endpoint_limits::{ConnectionAttempt, Limiter, Outcome};
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, events};
use s2n_quic::provider::tls::rustls as tls;
use tokio::runtime::Runtime;

use super::by_quinn::runtime;
use super::stack::{ALPN, ANY, LIMIT, NAME, Serving, Setting, Stack, Told, path_of};

/// The s2n-quic implementation.
pub struct S2n;

struct Server {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Serving for Server {
    fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(10));
        }
    }
}

/// Counts key updates, lost packets and path changes.
struct Counts(Arc<Told>);

impl Subscriber for Counts {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) {}

    fn on_key_update(&mut self, _: &mut (), _: &ConnectionMeta, event: &events::KeyUpdate) {
        // s2n-quic also reports the initial keys of every connection as an update (generation 0).
        if matches!(event.key_type, events::KeyType::OneRtt { generation, .. } if generation > 0) {
            Told::add(&self.0.key_updates);
        }
    }

    fn on_packet_lost(&mut self, _: &mut (), _: &ConnectionMeta, _: &events::PacketLost) {
        Told::add(&self.0.lost);
    }

    fn on_active_path_updated(&mut self, _: &mut (), _: &ConnectionMeta, _: &events::ActivePathUpdated) {
        Told::add(&self.0.moves);
    }
}

/// If true, answers every connection attempt with a Retry.
struct Retries(bool);

impl Limiter for Retries {
    fn on_connection_attempt(&mut self, _: &ConnectionAttempt) -> Outcome {
        if self.0 { Outcome::retry() } else { Outcome::allow() }
    }
}

impl Stack for S2n {
    fn name(&self) -> &'static str {
        "s2n-quic"
    }

    /// The client of s2n-quic cannot rebind its socket.
    fn can_move(&self) -> bool {
        false
    }

    fn tells(&self) -> bool {
        true
    }

    /// s2n-quic updates keys only near the limits of its cipher.
    fn can_update_keys(&self) -> bool {
        false
    }

    fn serve(&self, setting: &Setting) -> Box<dyn Serving> {
        let identity = &setting.identity;
        let tls = tls::Server::builder()
            .with_certificate(identity.certificate.pem(), identity.key.serialize_pem())
            .unwrap()
            .with_application_protocols([ALPN].into_iter())
            .unwrap()
            .build()
            .unwrap();
        let runtime = runtime();
        let mut server = {
            let _inside = runtime.enter();
            s2n_quic::Server::builder()
                .with_tls(tls)
                .unwrap()
                .with_io(ANY)
                .unwrap()
                .with_endpoint_limits(Retries(setting.extras.retry))
                .unwrap()
                .with_event(Counts(setting.told.clone()))
                .unwrap()
                .start()
                .unwrap()
        };
        let address = server.local_addr().unwrap();
        let setting = setting.clone();
        runtime.spawn(async move {
            while let Some(mut connection) = server.accept().await {
                let setting = setting.clone();
                tokio::spawn(async move {
                    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
                        tokio::spawn(answer(setting.clone(), stream));
                    }
                });
            }
        });
        Box::new(Server { address, runtime: Some(runtime) })
    }

    fn fetch(&self, setting: &Setting, server: SocketAddr, paths: &[&str]) -> Vec<Option<Vec<u8>>> {
        let runtime = runtime();
        let fetched = runtime.block_on(async {
            tokio::time::timeout(LIMIT, fetch(setting, server, paths))
                .await
                .expect("s2n-quic fetches without hanging")
        });
        runtime.shutdown_timeout(Duration::from_secs(10));
        fetched
    }
}

async fn answer(setting: Setting, mut stream: s2n_quic::stream::BidirectionalStream) {
    let mut request = Vec::new();
    while let Ok(Some(bytes)) = stream.receive().await {
        request.extend_from_slice(&bytes);
        if request.len() > 4096 {
            return;
        }
    }
    let Some(file) = path_of(&request).and_then(|path| setting.files.get(path)) else {
        let _ = stream.reset(404u32.into());
        return;
    };
    for piece in file.chunks(1 << 16) {
        if stream.send(Bytes::copy_from_slice(piece)).await.is_err() {
            return;
        }
    }
    let _ = stream.close().await;
}

async fn fetch(setting: &Setting, server: SocketAddr, paths: &[&str]) -> Vec<Option<Vec<u8>>> {
    let tls = tls::Client::builder()
        .with_certificate(setting.identity.certificate.pem())
        .unwrap()
        .with_application_protocols([ALPN].into_iter())
        .unwrap()
        .build()
        .unwrap();
    let mut client = s2n_quic::Client::builder()
        .with_tls(tls)
        .unwrap()
        .with_io(ANY)
        .unwrap()
        .with_event(Counts(setting.told.clone()))
        .unwrap()
        .start()
        .unwrap();
    let connect = Connect::new(server).with_server_name(NAME);
    let connection = client.connect(connect).await.expect("the handshake succeeds");
    let tasks: Vec<_> =
        paths.iter().map(|path| tokio::spawn(one(connection.handle(), format!("GET {path}\r\n")))).collect();
    let mut fetched = Vec::new();
    for task in tasks {
        fetched.push(task.await.expect("a stream is read to its end"));
    }
    connection.close(0u32.into());
    let _ = client.wait_idle().await;
    fetched
}

async fn one(mut connection: s2n_quic::connection::Handle, request: String) -> Option<Vec<u8>> {
    let mut stream = connection.open_bidirectional_stream().await.expect("a stream is opened");
    stream.send(Bytes::from(request)).await.expect("the request is written");
    stream.finish().unwrap();
    let mut bytes = Vec::new();
    loop {
        match stream.receive().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return Some(bytes),
            Err(s2n_quic::stream::Error::StreamReset { .. }) => return None,
            Err(error) => panic!("s2n-quic cannot read its stream: {error}"),
        }
    }
}
