//! The kernel's state of a TCP connection (`TCP_INFO`).

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The kernel's state of a TCP connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcpState {
    /// State of the loss recovery, as a number.
    pub recovery: u8,
    /// Maximum segment size for sending (bytes).
    pub mss: u32,
    /// Packets sent and not acknowledged.
    pub unacked: u32,
    /// Packets acknowledged selectively.
    pub sacked: u32,
    /// Packets considered lost.
    pub lost: u32,
    /// Packets retransmitted and not acknowledged.
    pub retransmitted: u32,
    /// Smoothed round-trip time (µs).
    pub srtt_us: u32,
    /// Minimum round-trip time (µs).
    pub min_rtt_us: u32,
    /// Congestion window (packets).
    pub cwnd: u32,
    /// Pacing rate (bit/s); the maximum of the type if pacing is off.
    pub pacing_bps: u64,
    /// Latest sample of the delivery rate (bit/s).
    pub delivery_bps: u64,
    /// Bytes written but not sent.
    pub unsent: u32,
}

/// The fields of the kernel's `struct tcp_info` that are read; some C libraries define only a part of it.
///
/// Source: Linux include/uapi/linux/tcp.h (struct tcp_info)
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct TcpInfo {
    state: u8,
    ca_state: u8,
    bytes: [u8; 6],
    rto_ato: [u32; 2],
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    times: [u32; 4],
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss_reordering: [u32; 2],
    receiver: [u32; 2],
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked_received: [u64; 2],
    segs: [u32; 2],
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs: [u32; 2],
    delivery_rate: u64,
}

/// Reads the kernel's state of a TCP connection.
///
/// # Errors
/// The operating system refuses.
pub(super) fn tcp_state(socket: BorrowedFd<'_>) -> io::Result<TcpState> {
    let mut info = TcpInfo::default();
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the structure consists of plain numbers, for which all bytes are valid. The kernel writes at most
    // `length` bytes of it, and it lives until the end of the call.
    let result = unsafe {
        let at = (&raw mut info).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut length)
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpState {
        recovery: info.ca_state,
        mss: info.snd_mss,
        unacked: info.unacked,
        sacked: info.sacked,
        lost: info.lost,
        retransmitted: info.retrans,
        srtt_us: info.rtt,
        min_rtt_us: info.min_rtt,
        cwnd: info.snd_cwnd,
        pacing_bps: info.pacing_rate.saturating_mul(8),
        delivery_bps: info.delivery_rate.saturating_mul(8),
        unsent: info.notsent_bytes,
    })
}
