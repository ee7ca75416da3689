//! TLS of logged connections: each packet is reported to the log when it is encrypted or decrypted.
//!
//! noq encrypts and decrypts packets with the keys of its TLS session. A logged connection wraps that session, and
//! its keys receive the header and plain text of each packet. Connections without a log have no wrapper.
//!
//! A server decrypts a client's first packet before the connection exists, with keys of the endpoint. The decrypted
//! packet waits in the [`LoggedServerConfig`] for the session, which starts right after it.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError};

use crate::qlog::{Header, Log, Packet, Parameters};

/// A packet that was decrypted before its connection existed.
#[derive(Debug)]
struct Opened {
    header: Vec<u8>,
    number: u64,
    payload: Vec<u8>,
    length: u64,
}

impl Opened {
    fn packet(&self) -> Packet<'_> {
        Packet { header: &self.header, number: self.number, payload: &self.payload, length: self.length }
    }
}

/// Destination of the packet reports.
#[derive(Clone)]
enum PacketLog {
    /// The log of a connection.
    Log(Log),
    /// Buffer of a client's first packet, until its connection exists.
    First(Arc<Mutex<Option<Opened>>>),
}

/// TLS configuration of a server whose connections are logged.
#[derive(Clone)]
pub(super) struct LoggedServerConfig {
    inner: Arc<dyn ServerConfig>,
    /// Log of the next connection.
    log: Option<Log>,
    first: Arc<Mutex<Option<Opened>>>,
}

impl LoggedServerConfig {
    /// Creates the wrapper of an endpoint.
    pub(super) fn new(inner: Arc<dyn ServerConfig>) -> LoggedServerConfig {
        LoggedServerConfig { inner, log: None, first: Arc::default() }
    }

    /// Returns a copy for one connection, with its log.
    pub(super) fn with(&self, log: Log) -> Arc<LoggedServerConfig> {
        Arc::new(LoggedServerConfig { log: Some(log), ..self.clone() })
    }
}

impl ServerConfig for LoggedServerConfig {
    fn initial_keys(&self, version: u32, id: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        let keys = self.inner.initial_keys(version, id)?;
        Ok(PacketLog::First(self.first.clone()).keys(keys))
    }

    fn retry_tag(&self, version: u32, original: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, original, packet)
    }

    fn start_session(&self, version: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        let session = self.inner.start_session(version, parameters);
        let Some(log) = self.log.clone() else { return session };
        let written = written(parameters);
        let parameters = Parameters::new(&written);
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let header = first.as_ref().and_then(|first| Header::read(&first.header));
        let original = parameters.bytes(Parameters::ORIGINAL_DESTINATION).unwrap_or_default();
        log.begin(true, original, header.and_then(|header| header.source).unwrap_or_default(), parameters);
        if let Some(first) = first {
            log.received(first.packet());
        }
        Box::new(Logged {
            inner: session,
            log,
            begins_with: Mutex::default(),
            knows_peer: AtomicBool::new(false),
        })
    }
}

/// TLS configuration of one logged connection of a client.
pub(super) struct LoggedClientConfig {
    inner: Arc<dyn ClientConfig>,
    log: Log,
}

impl LoggedClientConfig {
    pub(super) fn new(inner: Arc<dyn ClientConfig>, log: Log) -> LoggedClientConfig {
        LoggedClientConfig { inner, log }
    }
}

impl ClientConfig for LoggedClientConfig {
    fn start_session(
        &self,
        version: u32,
        name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Logged {
            inner: self.inner.start_session(version, name, parameters)?,
            log: self.log.clone(),
            begins_with: Mutex::new(Some(written(parameters))),
            knows_peer: AtomicBool::new(false),
        }))
    }
}

fn written(parameters: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    parameters.write(&mut bytes);
    bytes
}

/// A TLS session whose keys report packets.
struct Logged {
    inner: Box<dyn Session>,
    log: Log,
    /// A client's transport parameters, until noq has chosen the connection ID.
    begins_with: Mutex<Option<Vec<u8>>>,
    knows_peer: AtomicBool,
}

impl Logged {
    fn log(&self) -> PacketLog {
        PacketLog::Log(self.log.clone())
    }
}

impl Session for Logged {
    fn initial_keys(&self, id: ConnectionId, side: Side) -> Keys {
        let parameters = self.begins_with.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(parameters) = parameters {
            self.log.begin(false, &id, &id, Parameters::new(&parameters));
        }
        self.log().keys(self.inner.initial_keys(id, side))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto().map(|(header, packet)| (header, self.log().key(packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(bytes)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let parameters = self.inner.transport_parameters()?;
        if let Some(parameters) = &parameters
            && !self.knows_peer.swap(true, Ordering::Relaxed)
        {
            self.log.peers_parameters(Parameters::new(&written(parameters)));
        }
        Ok(parameters)
    }

    fn write_handshake(&mut self, bytes: &mut Vec<u8>) -> Option<Keys> {
        self.inner.write_handshake(bytes).map(|keys| self.log().keys(keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.inner.next_1rtt_keys().map(|pair| self.log().pair(pair))
    }

    fn is_valid_retry(&self, original: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let is_valid = self.inner.is_valid_retry(original, header, payload);
        if is_valid {
            self.log.retried(&[header, payload].concat());
        }
        is_valid
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

impl PacketLog {
    fn keys(&self, keys: Keys) -> Keys {
        Keys { header: keys.header, packet: self.pair(keys.packet) }
    }

    fn pair(&self, pair: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair { local: self.key(pair.local), remote: self.key(pair.remote) }
    }

    fn key(&self, inner: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        Box::new(LoggedKey { inner, log: self.clone() })
    }
}

/// A packet key that reports the packets it encrypts and decrypts.
struct LoggedKey {
    inner: Box<dyn PacketKey>,
    log: PacketLog,
}

impl PacketKey for LoggedKey {
    fn encrypt(&self, path: PathId, number: u64, packet: &mut [u8], header: usize) {
        if let PacketLog::Log(log) = &self.log
            && let Some((header, sealed)) = packet.split_at_checked(header)
        {
            let payload = &sealed[..sealed.len().saturating_sub(self.inner.tag_len())];
            log.sent(Packet { header, number, payload, length: packet.len() as u64 });
        }
        self.inner.encrypt(path, number, packet, header);
    }

    fn decrypt(
        &self,
        path: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let length = (header.len() + payload.len()) as u64;
        self.inner.decrypt(path, number, header, payload)?;
        match &self.log {
            PacketLog::Log(log) => log.received(Packet { header, number, payload, length }),
            PacketLog::First(first) => {
                let opened = Opened { header: header.to_vec(), number, payload: payload.to_vec(), length };
                *first.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
            }
        }
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}
