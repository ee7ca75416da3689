//! Configuration of a QUIC endpoint: certificates, trust, limits, and noq's settings.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::ring::digest;
use airpace_cc::pacer::PacerConfig;
use airpace_core::Refused;
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, CipherSuite, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::adapter::Handle;
use crate::endpoint::{MSS, PACER, overhead};
use crate::qlog::Folder;

/// Application protocol between two endpoints of this project. Only endpoints with this protocol exchange stamps and
/// feedback.
pub const ALPN: &[u8] = b"airpace/1";

/// HTTP/0.9 over QUIC, the protocol of the interoperability programs of QUIC implementations.
pub const HQ_INTEROP: &[u8] = b"hq-interop";

/// Datagram size that every QUIC path supports (bytes).
///
/// Source: RFC 9000 §14
const MIN_PAYLOAD: u16 = 1200;

/// Minimum step of noq's path MTU search (bytes). The midpoint between 1200 bytes and full packets is closer than
/// this step, so that the first probe has the full size.
///
/// Chosen: a single probe, one round trip after the handshake, decides between full packets and 1200 bytes. Starting
/// with full packets would delay a connection over a narrower path by several timeouts. Other sizes are not tried.
const MIN_MTU_STEP: u16 = 140;

/// Reordering threshold of noq's loss detection (packets): disabled, so that only the time threshold applies.
///
/// Source: RFC 9002 §6.1.1 (which recommends three)
///
/// Chosen: noq's thresholds are fixed for a connection's life, and cannot adapt to the path as those of
/// `airpace_cc::endpoint` do. With a threshold of three packets, a path that delays 1 % of the packets by 5 ms halves
/// CUBIC's window several times per second. Without the threshold, a true loss is detected a quarter of a round trip
/// later.
const PACKET_THRESHOLD: u32 = u32::MAX;

/// Time threshold of noq's loss detection: a packet is lost if a later one was acknowledged and this multiple of the
/// RTT has passed.
///
/// Source: RFC 8985 §6.2 step 4 (the RTT and a quarter of the least one); RFC 9002 §6.1.2 (which recommends 9/8)
const TIME_THRESHOLD: f32 = 1.25;

/// Maximum ACK delay that is requested from a peer.
///
/// Chosen: the minimum that can be requested.
const ACK_DELAY: Duration = Duration::from_millis(1);

/// Condition under which a server requires an unknown address to be validated by a Retry before it keeps state.
///
/// Source: RFC 9000 §8.1.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// A Retry is always required; this costs one round trip.
    Always,
    /// A Retry is required while at least this many handshakes are in progress.
    UnderLoad(usize),
}

/// Certificates that a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Any certificate whose private key the server holds. The application must authenticate the peer, with a proof
    /// over [`crate::endpoint::Connection::binding`].
    Anyone,
    /// Certificates that chain to one of these roots, for the requested name.
    Roots(Arc<RootCertStore>),
    /// The certificate with this SHA-256, regardless of its names and dates.
    Fingerprint([u8; 32]),
}

/// Returns the SHA-256 of a certificate, which users can compare.
pub fn fingerprint_of(certificate: &CertificateDer<'_>) -> [u8; 32] {
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest::digest(&digest::SHA256, certificate).as_ref());
    fingerprint
}

/// A certificate and its private key.
#[derive(Debug)]
pub struct Identity {
    /// The certificate, and the chain to its root.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its private key.
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Creates a self-signed certificate for `names`.
    ///
    /// # Errors
    /// A name is invalid in a certificate, or the system returned no random numbers.
    pub fn self_signed(names: &[&str]) -> Result<Identity, Refused> {
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

/// Configuration of an endpoint.
#[derive(Clone)]
pub struct Config {
    /// Application protocols, the preferred one first.
    pub alpns: Vec<Vec<u8>>,
    /// Certificates that outgoing connections trust.
    pub trust: Trust,
    /// Server name that outgoing connections request.
    pub server_name: String,
    /// Certificate and key of a server; without them, the endpoint accepts no connections.
    pub identity: Option<Identity>,
    /// Condition under which clients must prove their address.
    pub retry: Retry,
    /// Maximum number of handshakes in progress; more are refused.
    pub most_handshakes: usize,
    /// Maximum number of connections; more are refused.
    pub most_connections: usize,
    /// Configuration of the pacer.
    pub pacer: PacerConfig,
    /// Maximum number of packets per batch ([`crate::endpoint::Outbound::segment`]).
    pub batch: usize,
    /// Number of data packets per ACK that is requested from a peer. An endpoint of this project spaces its ACKs on
    /// its own.
    pub ack_every: u32,
    /// Minimum interval between ACKs that are sent without data.
    pub ack_interval: Duration,
    /// Idle timeout: a connection is closed if no packet arrives for this long.
    pub idle: Duration,
    /// Interval of keep-alive packets on an idle connection.
    pub keep_alive: Option<Duration>,
    /// Flow-control window (bytes): data that a peer may send beyond the data taken from noq. While more than half of
    /// the window is unread by the application, the peer gets no more credit. A connection therefore holds at most
    /// 1.5 windows of data.
    pub receive_window: u32,
    /// Maximum number of unacknowledged bytes that a connection holds; fewer if its congestion window is smaller.
    pub send_window: u64,
    /// Key of the connection IDs and of the stateless reset tokens, with which an endpoint closes connections that it
    /// does not know. An endpoint restarted with the same key resets the connections of its previous run as soon as
    /// their peers send a packet. Without a key, the peers wait for [`Config::idle`].
    ///
    /// Source: RFC 9000 §10.3.2
    pub reset_key: Option<[u8; 64]>,
    /// Folder of the connections' logs.
    pub qlog: Option<Arc<Folder>>,
}

/// Configuration for two endpoints of this project, without a certificate.
///
/// Chosen: 60 s of idle timeout and a keep-alive packet every 10 s, so that connections survive an outage of 10 s; a
/// credit of 4 ms (see [`PacerConfig`]); batches of 32 packets, which halve the CPU time at 1 Gbit/s; Retry from 64
/// handshakes on; an ACK per packet, but at most one per millisecond.
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
    /// Returns noq's settings for a connection with `peer`, whose controllers use the tap of `handle`.
    pub(super) fn transport(&self, peer: &SocketAddr, handle: &Handle) -> Result<TransportConfig, Refused> {
        let mut transport = TransportConfig::default();
        let idle = IdleTimeout::try_from(self.idle).map_err(|_| "the idle time is too long".to_owned())?;
        let full = u16::try_from((MSS - overhead(peer)).0).unwrap_or(MIN_PAYLOAD);
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.upper_bound(full).minimum_change(MIN_MTU_STEP);
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
            .initial_mtu(MIN_PAYLOAD)
            .mtu_discovery_config(Some(mtu))
            .ack_frequency_config(Some(acks))
            .packet_threshold(PACKET_THRESHOLD)
            .time_threshold(TIME_THRESHOLD)
            .congestion_controller_factory(handle.factory());
        Ok(transport)
    }

    /// Returns the TLS configuration of outgoing connections.
    pub(super) fn client(&self) -> Result<Arc<QuicClientConfig>, Refused> {
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
        QuicClientConfig::try_from(tls)
            .map(Arc::new)
            .map_err(|error| error.to_string())
            .map_err(Refused::from)
    }

    /// Returns the TLS configuration of incoming connections, if there is a certificate.
    pub(super) fn server(&self) -> Result<Option<ServerConfig>, Refused> {
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

/// Returns the cryptography provider, with AES-128-GCM before the other ciphers.
///
/// Chosen: every QUIC implementation must support AES-128-GCM (RFC 9001 §5.3), and it costs a quarter less than
/// AES-256-GCM. 128-bit keys are long enough against any realistic attacker.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// Certificate verifier that accepts any certificate whose private key the server holds, or only the one with this
/// SHA-256.
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
