//! quinn.

use std::sync::Arc;

use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::side::{
    ALPN, CHUNK, FULL, NAME, Part, RECEIVE_WINDOW, SEND_WINDOW, Seen, Side, connected, listening, socket,
};

/// AES-128-GCM first, which s2n-quic and quiche choose by themselves.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

fn transport() -> Arc<quinn::TransportConfig> {
    let mut transport = quinn::TransportConfig::default();
    let mut mtu = quinn::MtuDiscoveryConfig::default();
    mtu.upper_bound(FULL);
    let window = quinn::VarInt::from_u64(RECEIVE_WINDOW).expect("a window that fits");
    transport.initial_mtu(FULL).mtu_discovery_config(Some(mtu));
    transport.stream_receive_window(window).receive_window(window).send_window(SEND_WINDOW);
    Arc::new(transport)
}

pub fn run(side: &Side) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        match side.part {
            Part::Sends(to) => send(side, to).await,
            Part::Receives => receive(side).await,
        }
    });
}

fn endpoint(server: Option<quinn::ServerConfig>) -> quinn::Endpoint {
    let runtime = Arc::new(quinn::TokioRuntime);
    quinn::Endpoint::new(quinn::EndpointConfig::default(), server, socket(), runtime).expect("an endpoint")
}

async fn send(side: &Side, to: std::net::SocketAddr) {
    let mut roots = rustls::RootCertStore::empty();
    let certificate =
        CertificateDer::from_pem_slice(side.certificate_pem().as_bytes()).expect("a certificate");
    roots.add(certificate).expect("a root");
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config =
        quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("a cipher of QUIC")));
    config.transport_config(transport());
    let endpoint = endpoint(None);
    let connecting = endpoint.connect_with(config, to, NAME).expect("a connection");
    let connection = connecting.await.expect("the handshake succeeds");
    let mut stream = connection.open_uni().await.expect("a stream");
    let looked = connection.clone();
    connected(move || {
        let stats = looked.stats().udp_tx;
        Seen { bytes: 0, packets: stats.datagrams, payload: stats.bytes }
    });
    let source = vec![7; CHUNK];
    while stream.write_chunk(Bytes::copy_from_slice(&source)).await.is_ok() {}
}

async fn receive(side: &Side) {
    let certificate =
        CertificateDer::from_pem_slice(side.certificate_pem().as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(side.key_pem().as_bytes()).expect("a key");
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a certificate that fits its key");
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let crypto = QuicServerConfig::try_from(tls).expect("a cipher of QUIC");
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport());
    let endpoint = endpoint(Some(config));
    listening(endpoint.local_addr().expect("an address"));
    let incoming = endpoint.accept().await.expect("an endpoint that is open");
    let connection = incoming.await.expect("the handshake succeeds");
    let mut stream = connection.accept_uni().await.expect("a stream");
    let counters = crate::side::Counters::new();
    let (looked, counted) = (connection.clone(), counters.clone());
    connected(move || {
        let stats = looked.stats().udp_rx;
        Seen { packets: stats.datagrams, payload: stats.bytes, ..counted.seen() }
    });
    let mut chunks: [Bytes; 32] = std::array::from_fn(|_| Bytes::new());
    while let Ok(Some(count)) = stream.read_chunks(&mut chunks).await {
        let bytes = chunks[..count].iter_mut().map(|chunk| std::mem::take(chunk).len() as u64).sum();
        crate::side::Counters::add(&counters.bytes, bytes);
    }
}
