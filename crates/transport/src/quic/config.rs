//! What an endpoint is made from: certificates, whom to trust, limits, and noq's settings.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::ring::digest;
use airpace_cc::pacer::PacerConfig;
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, CipherSuite, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::adapter::Handle;
use crate::endpoint::{MSS, PACER, overhead};
use crate::qlog::Folder;

/// The application protocol between two of our own ends. Only they tell each other stamps and feedback.
pub const ALPN: &[u8] = b"airpace/1";

/// HTTP/0.9 over QUIC, as every stack's interoperability program speaks it.
pub const HQ_INTEROP: &[u8] = b"hq-interop";

/// The size that every path of QUIC carries.
///
/// Source: RFC 9000 §14
const LEAST_PAYLOAD: u16 = 1200;

/// With this, noq's first probe of the path is of the largest size itself, as the middle is too near.
///
/// Chosen: one probe, a round trip after the handshake, decides between full packets and 1200 bytes. Beginning with
/// full packets would stall a connection over a narrower path by several timeouts. Other sizes are not searched.
const LEAST_MTU_STEP: u16 = 140;

/// noq counts a packet as lost when a packet with a number higher by this was acknowledged: never. Only time decides.
///
/// Source: RFC 9002 §6.1.1 (which recommends three)
///
/// Chosen: noq's thresholds are fixed for a connection's life, so they cannot follow the path as those of
/// `airpace_cc::endpoint` do. With three, a path on which one packet in a hundred is 5 ms late halves CUBIC's window many times a
/// second. Without, a real loss is noticed a quarter of a round trip later.
const PACKET_THRESHOLD: u32 = u32::MAX;

/// noq counts a packet as lost when a later one was acknowledged and this multiple of the RTT has passed.
///
/// Source: RFC 8985 §6.2 step 4 (the RTT and a quarter of the least one); RFC 9002 §6.1.2 (which recommends 9/8)
const TIME_THRESHOLD: f32 = 1.25;

/// What a peer is asked to delay an ACK by at most.
///
/// Chosen: the least that may be asked for.
const ACK_DELAY: Duration = Duration::from_millis(1);

/// When a server asks an unknown address to prove itself before it keeps anything of it.
///
/// Source: RFC 9000 §8.1.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Always: one round trip more.
    Always,
    /// While at least so many handshakes are under way.
    UnderLoad(usize),
}

/// Whom a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Any certificate whose key the server holds. What runs over the connection must prove who it is, over
    /// [`crate::endpoint::Connection::binding`].
    Anyone,
    /// Certificates that lead to one of these, for the name that was asked for.
    Roots(Arc<RootCertStore>),
    /// The certificate with this SHA-256, whatever its names and dates.
    Fingerprint([u8; 32]),
}

/// The SHA-256 of a certificate, by which people compare it.
pub fn fingerprint_of(certificate: &CertificateDer<'_>) -> [u8; 32] {
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest::digest(&digest::SHA256, certificate).as_ref());
    fingerprint
}

/// A certificate and its key.
#[derive(Debug)]
pub struct Identity {
    /// The certificate, and those that lead to its root.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its private key.
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    /// A new one, signed by itself, for `names`.
    ///
    /// # Errors
    /// A name cannot be written into a certificate, or the machine has no randomness.
    pub fn self_signed(names: &[&str]) -> Result<Identity, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made =
            rcgen::generate_simple_self_signed(names).map_err(|error| format!("no certificate: {error}"))?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Identity { chain: vec![made.cert.der().clone()], key: key.into() })
    }
}

impl Clone for Identity {
    fn clone(&self) -> Identity {
        Identity { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

/// What an endpoint is made from.
#[derive(Clone)]
pub struct Config {
    /// The application protocols, the preferred one first.
    pub alpns: Vec<Vec<u8>>,
    /// Whom its connections trust.
    pub trust: Trust,
    /// The server's name that its connections ask for.
    pub server_name: String,
    /// What it shows to clients; without one, it takes no connections.
    pub identity: Option<Identity>,
    /// When clients must prove their address.
    pub retry: Retry,
    /// Handshakes that may be under way at once; more are refused.
    pub most_handshakes: usize,
    /// Connections that may exist at once; more are refused.
    pub most_connections: usize,
    /// How data is paced.
    pub pacer: PacerConfig,
    /// The most packets of one batch ([`crate::endpoint::Outbound::segment`]).
    pub batch: usize,
    /// How many data packets a peer is asked to acknowledge at once. One of ours spaces its ACKs by itself.
    pub ack_every: u32,
    /// ACKs that leave without data are at least so far apart.
    pub ack_interval: Duration,
    /// A connection of which nothing is heard for so long is over.
    pub idle: Duration,
    /// A quiet connection is kept open by a packet in each such time.
    pub keep_alive: Option<Duration>,
    /// Bytes that a peer may send ahead of what was taken from noq. With half of them unread by the application, the
    /// peer gets no more credit: a connection holds at most one and a half of them.
    pub receive_window: u32,
    /// Bytes of a connection that wait until they are acknowledged, at most: fewer if its window is smaller.
    pub send_window: u64,
    /// From what the tokens are made that end connections which an endpoint does not know. One that is started again
    /// with the same says so at once to peers of its earlier life; without, they wait until they have heard nothing for
    /// [`Config::idle`].
    ///
    /// Source: RFC 9000 §10.3.2
    pub reset_key: Option<[u8; 64]>,
    /// Where each connection has a log.
    pub qlog: Option<Arc<Folder>>,
}

/// Between two of our own ends, without an identity.
///
/// Chosen: 60 s until a connection is over and a packet every 10 s, so that an outage of 10 s passes; a credit of 4 ms
/// (see [`PacerConfig`]); batches of 32 packets, which halve the work at 1 Gbit/s; retry from 64 handshakes on;
/// an ACK per packet, but at most one per millisecond.
impl Default for Config {
    fn default() -> Config {
        Config {
            alpns: vec![ALPN.to_vec()],
            trust: Trust::Anyone,
            server_name: "airpace".to_owned(),
            identity: None,
            retry: Retry::UnderLoad(64),
            most_handshakes: 1024,
            most_connections: 4096,
            pacer: PACER,
            batch: 32,
            ack_every: 1,
            ack_interval: Duration::from_millis(1),
            idle: Duration::from_secs(60),
            keep_alive: Some(Duration::from_secs(10)),
            receive_window: 16 << 20,
            send_window: 24 << 20,
            reset_key: None,
            qlog: None,
        }
    }
}

impl Config {
    /// noq's settings for one connection with `peer`, whose controllers tap into `handle`.
    pub(super) fn transport(&self, peer: &SocketAddr, handle: &Handle) -> Result<TransportConfig, String> {
        let mut transport = TransportConfig::default();
        let idle = IdleTimeout::try_from(self.idle).map_err(|_| "the idle time is too long".to_owned())?;
        let full = u16::try_from((MSS - overhead(peer)).0).unwrap_or(LEAST_PAYLOAD);
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.upper_bound(full).minimum_change(LEAST_MTU_STEP);
        let mut acks = AckFrequencyConfig::default();
        acks.ack_eliciting_threshold(VarInt::from_u32(self.ack_every.saturating_sub(1)));
        acks.max_ack_delay(Some(ACK_DELAY));
        transport
            .max_idle_timeout(Some(idle))
            .keep_alive_interval(self.keep_alive)
            .stream_receive_window(VarInt::from_u32(self.receive_window))
            .receive_window(VarInt::from_u32(self.receive_window))
            .send_window(self.send_window)
            .datagram_receive_buffer_size(Some(1 << 16))
            .datagram_send_buffer_size(1 << 12)
            .initial_mtu(LEAST_PAYLOAD)
            .mtu_discovery_config(Some(mtu))
            .ack_frequency_config(Some(acks))
            .packet_threshold(PACKET_THRESHOLD)
            .time_threshold(TIME_THRESHOLD)
            .congestion_controller_factory(handle.factory());
        Ok(transport)
    }

    /// The TLS of connections that begin here.
    pub(super) fn client(&self) -> Result<Arc<QuicClientConfig>, String> {
        let provider = provider();
        let algorithms = provider.signature_verification_algorithms;
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| error.to_string())?;
        let mut tls = match &self.trust {
            Trust::Roots(roots) => builder.with_root_certificates(roots.clone()).with_no_client_auth(),
            Trust::Anyone | Trust::Fingerprint(_) => {
                let fingerprint = match &self.trust {
                    Trust::Fingerprint(fingerprint) => Some(*fingerprint),
                    _ => None,
                };
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(Holder { fingerprint, algorithms }))
                    .with_no_client_auth()
            }
        };
        tls.alpn_protocols.clone_from(&self.alpns);
        QuicClientConfig::try_from(tls).map(Arc::new).map_err(|error| error.to_string())
    }

    /// The TLS of connections that begin elsewhere, if there is an identity to show.
    pub(super) fn server(&self) -> Result<Option<ServerConfig>, String> {
        let Some(identity) = self.identity.clone() else { return Ok(None) };
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(identity.chain, identity.key))
            .map_err(|error| format!("certificate and key do not fit each other: {error}"))?;
        tls.alpn_protocols.clone_from(&self.alpns);
        let tls = QuicServerConfig::try_from(tls).map_err(|error| error.to_string())?;
        let mut server = ServerConfig::with_crypto(Arc::new(tls));
        server.max_incoming(self.most_handshakes).incoming_buffer_size_total(4 << 20);
        Ok(Some(server))
    }
}

/// AES-128-GCM before the other ciphers.
///
/// Chosen: every stack must have it (RFC 9001 §5.3), and it costs a quarter less than AES-256-GCM. Its keys are long enough
/// for any attacker in sight.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// Accepts a certificate whose key the server holds: any, or the one with this SHA-256.
#[derive(Debug)]
struct Holder {
    fingerprint: Option<[u8; 32]>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Holder {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.fingerprint.is_none_or(|fingerprint| fingerprint_of(certificate) == fingerprint) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        // QUIC has no TLS 1.2. Source: RFC 9001 §4.2
        Err(rustls::Error::General("TLS 1.2 is not QUIC".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
