//! quinn as server and as client.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::runtime::Runtime;

use super::stack::{ALPN, ANY, LIMIT, NAME, Serving, Setting, Stack, path_of};

/// The quinn implementation.
pub struct Quinn;

/// Number of bytes of a file after which the keys are updated.
const UPDATE_EVERY: usize = 1 << 20;

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

/// Creates a runtime with one worker thread.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

impl Stack for Quinn {
    fn name(&self) -> &'static str {
        "quinn"
    }

    fn can_move(&self) -> bool {
        true
    }

    fn tells(&self) -> bool {
        false
    }

    fn can_update_keys(&self) -> bool {
        true
    }

    fn serve(&self, setting: &Setting) -> Box<dyn Serving> {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(setting.identity.key.serialize_der()));
        let mut tls =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_protocol_versions(&[&rustls::version::TLS13])
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![setting.identity.certificate.der().clone()], key)
                .unwrap();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        let config = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
        let runtime = runtime();
        let endpoint = {
            let _inside = runtime.enter();
            quinn::Endpoint::server(config, ANY).unwrap()
        };
        let address = endpoint.local_addr().unwrap();
        runtime.spawn(accept(endpoint, setting.clone()));
        Box::new(Server { address, runtime: Some(runtime) })
    }

    fn fetch(&self, setting: &Setting, server: SocketAddr, paths: &[&str]) -> Vec<Option<Vec<u8>>> {
        let runtime = runtime();
        let fetched = runtime.block_on(async {
            tokio::time::timeout(LIMIT, fetch(setting, server, paths))
                .await
                .expect("quinn fetches without hanging")
        });
        runtime.shutdown_timeout(Duration::from_secs(10));
        fetched
    }
}

async fn accept(endpoint: quinn::Endpoint, setting: Setting) {
    while let Some(incoming) = endpoint.accept().await {
        if setting.extras.retry && !incoming.remote_address_validated() {
            incoming.retry().expect("an address that was not validated may be asked to try again");
            continue;
        }
        let setting = setting.clone();
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            let before = connection.remote_address();
            while let Ok((send, receive)) = connection.accept_bi().await {
                tokio::spawn(answer(connection.clone(), setting.clone(), send, receive));
            }
            if connection.remote_address() != before {}
        });
    }
}

async fn answer(
    connection: quinn::Connection,
    setting: Setting,
    mut send: quinn::SendStream,
    mut receive: quinn::RecvStream,
) {
    let Ok(request) = receive.read_to_end(4096).await else { return };
    let Some(file) = path_of(&request).and_then(|path| setting.files.get(path)) else {
        let _ = send.reset(404u32.into());
        return;
    };
    for piece in file.chunks(UPDATE_EVERY) {
        if setting.extras.server_updates_keys {
            connection.force_key_update();
        }
        if send.write_all(piece).await.is_err() {
            return;
        }
    }
    let _ = send.finish();
    let _ = send.stopped().await;
}

async fn fetch(setting: &Setting, server: SocketAddr, paths: &[&str]) -> Vec<Option<Vec<u8>>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(setting.identity.certificate.der().clone()).unwrap();
    let mut tls =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let endpoint = quinn::Endpoint::client(ANY).unwrap();
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let connection =
        endpoint.connect_with(config, server, NAME).unwrap().await.expect("the handshake succeeds");
    let tasks = paths.iter().map(|path| {
        tokio::spawn(one(setting.clone(), endpoint.clone(), connection.clone(), format!("GET {path}\r\n")))
    });
    let tasks: Vec<_> = tasks.collect();
    let mut fetched = Vec::new();
    for task in tasks {
        fetched.push(task.await.expect("a stream is read to its end"));
    }
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    fetched
}

async fn one(
    setting: Setting,
    endpoint: quinn::Endpoint,
    connection: quinn::Connection,
    request: String,
) -> Option<Vec<u8>> {
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream is opened");
    send.write_all(request.as_bytes()).await.expect("the request is written");
    send.finish().unwrap();
    let (mut bytes, mut has_moved, mut updated) = (Vec::new(), false, 0);
    loop {
        match receive.read_chunk(1 << 16, true).await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk.bytes),
            Ok(None) => return Some(bytes),
            Err(quinn::ReadError::Reset(_)) => return None,
            Err(error) => panic!("quinn cannot read its stream: {error}"),
        }
        if setting.extras.client_updates_keys && bytes.len() >= updated + UPDATE_EVERY {
            updated = bytes.len();
            connection.force_key_update();
        }
        if setting.extras.moves && bytes.len() >= 1 << 20 && !has_moved {
            has_moved = true;
            endpoint.rebind(UdpSocket::bind(ANY).unwrap()).expect("another port");
        }
    }
}
