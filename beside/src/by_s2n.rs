//! s2n-quic.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, events};
use s2n_quic::provider::io::tokio as io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls as tls;

use crate::side::{
    ALPN, CHUNK, Counters, FULL, NAME, Part, RECEIVE_WINDOW, SEND_WINDOW, Side, connected, listening, socket,
};

/// Counts datagrams of one direction.
struct Count {
    counters: Arc<Counters>,
    sends: bool,
}

impl Count {
    fn count(&self, bytes: u16) {
        Counters::add(&self.counters.packets, 1);
        Counters::add(&self.counters.payload, bytes.into());
    }
}

impl Subscriber for Count {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) {}

    fn on_datagram_sent(&mut self, _: &mut (), _: &ConnectionMeta, event: &events::DatagramSent) {
        if self.sends {
            self.count(event.len);
        }
    }

    fn on_datagram_received(&mut self, _: &mut (), _: &ConnectionMeta, event: &events::DatagramReceived) {
        if !self.sends {
            self.count(event.len);
        }
    }
}

fn io() -> io::Provider {
    let mtu = FULL + 28;
    let builder = io::Builder::default().with_rx_socket(socket()).expect("a socket");
    let builder = builder.with_max_mtu(mtu).and_then(|builder| builder.with_initial_mtu(mtu));
    builder.and_then(io::Builder::build).expect("a size that fits")
}

fn limits() -> Limits {
    let limits = Limits::new().with_data_window(RECEIVE_WINDOW);
    let limits = limits.and_then(|limits| limits.with_unidirectional_data_window(RECEIVE_WINDOW));
    let limits = limits.and_then(|limits| limits.with_max_send_buffer_size(SEND_WINDOW as u32));
    limits.expect("windows that fit")
}

pub fn run(side: &Side) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let counters = Counters::new();
    runtime.block_on(async {
        match side.part {
            Part::Sends(to) => send(side, to, counters).await,
            Part::Receives => receive(side, counters).await,
        }
    });
}

async fn send(side: &Side, to: SocketAddr, counters: Arc<Counters>) {
    let tls = tls::Client::builder()
        .with_certificate(side.certificate_pem())
        .expect("a certificate")
        .with_application_protocols([ALPN].into_iter())
        .expect("a protocol")
        .build()
        .expect("a cipher of QUIC");
    let client = s2n_quic::Client::builder().with_tls(tls).expect("TLS").with_io(io()).expect("a socket");
    let client = client.with_limits(limits()).expect("limits");
    let client = client.with_event(Count { counters: counters.clone(), sends: true }).expect("a subscriber");
    let client = client.start().expect("a client");
    let connect = Connect::new(to).with_server_name(NAME);
    let mut connection = client.connect(connect).await.expect("the handshake succeeds");
    let mut stream = connection.open_send_stream().await.expect("a stream");
    connected(move || counters.seen());
    let source = vec![7; CHUNK];
    while stream.send(Bytes::copy_from_slice(&source)).await.is_ok() {}
}

async fn receive(side: &Side, counters: Arc<Counters>) {
    let tls = tls::Server::builder()
        .with_certificate(side.certificate_pem(), side.key_pem())
        .expect("a certificate that fits its key")
        .with_application_protocols([ALPN].into_iter())
        .expect("a protocol")
        .build()
        .expect("a cipher of QUIC");
    let server = s2n_quic::Server::builder().with_tls(tls).expect("TLS").with_io(io()).expect("a socket");
    let server = server.with_limits(limits()).expect("limits");
    let server = server.with_event(Count { counters: counters.clone(), sends: false }).expect("a subscriber");
    let mut server = server.start().expect("a server");
    listening(server.local_addr().expect("an address"));
    let mut connection = server.accept().await.expect("the handshake succeeds");
    let accepted = connection.accept_receive_stream().await.expect("a connection that is open");
    let mut stream = accepted.expect("a stream");
    let looked = counters.clone();
    connected(move || looked.seen());
    let mut chunks: [Bytes; 32] = std::array::from_fn(|_| Bytes::new());
    while let Ok((count, is_open)) = stream.receive_vectored(&mut chunks).await {
        let bytes = chunks[..count].iter_mut().map(|chunk| std::mem::take(chunk).len() as u64).sum();
        Counters::add(&counters.bytes, bytes);
        if !is_open {
            break;
        }
    }
}
