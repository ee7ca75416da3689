/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BISCAY for downloads from senders without BISCAY: this host's receivers advertise a window that matches the radio's
 * grants.
 *
 *   `feed` ──▶ window_relay: with each packet that a receiver sends ──▶ TCP_WINDOW_CLAMP ──▶ the window on that packet
 *
 * The rules are in window.h. The kernel calls the program before it computes the window of a packet. The kernel never
 * withdraws a window that it has offered, so a lower window takes effect as data arrives. If the feed is older than 100
 * ms, the limit is removed at the next ACK. The bandwidth is divided among the flows that the host receives (count.h).
 *
 * A receiver measures its round-trip time by time stamps: the time from an ACK to the data that echoes the time stamp
 * of this ACK. Time stamps are in milliseconds, so a sample may be up to 1 ms too long; the minimum of several samples
 * is accurate. Without time stamps, the kernel's estimate is used: the time in which one window of data arrives.
 *
 * Source: BISCAY §3.2.4; RFC 7323 §4.1; Linux net/ipv4/tcp_input.c (tcp_rcv_rtt_measure_ts); Linux net/ipv4/tcp_output.c
 * (tcp_select_window)
 */
#include "scheme.h"
#include "shown.h"
#include "sockops.h"
#include "window.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct ap_feed feed SEC(".data.feed");
AP_OPTIONS(ap_tuning)

#include "count.h"
#include "feed.h"

SEC("cgroup_skb/ingress")
int count_ingress(struct __sk_buff *skb)
{
	return count_packet(skb);
}

struct download {
	struct window w;
	/* Sequence number up to which data had been received when the last packet was sent. */
	ap_u32 rcv_nxt;
	/* The limit of the window that this program has set in the kernel; zero if it has set none. */
	ap_u32 clamp;
};

AP_AT_SOCKETS(downloads, struct download);

/*
 * Value of the limit that removes it. Source: Linux include/net/tcp.h (MAX_TCP_WINDOW), Linux net/ipv4/tcp_output.c
 * (U16_MAX << TCP_MAX_WSCALE)
 */
#define UNBOUNDED (65535U << 14)

/* The receiver's round-trip time sample; AP_NONE if there is none. */
AP_FN ap_u64 round_trip(const struct tcp_sock *tp)
{
	ap_u64 now = now_of(tp), unit = stamps_are_microseconds(tp) ? AP_US : AP_MS, stamp = now / unit;
	ap_u32 echoed = tp->rx_opt.rcv_tsecr, passed = (ap_u32)stamp - echoed, estimate = tp->rcv_rtt_est.rtt_us >> 3;

	if (echoed)
		return passed < (1U << 31) ? now - (stamp - passed) * unit : AP_NONE;
	return estimate ? estimate * AP_US : AP_NONE;
}

/* The radio's bandwidth from the feed, and the flow's part of the bandwidth if the feed contains a part. */
AP_FN ap_u64 granted(ap_u64 now, struct split_part *part)
{
	struct ap_told told;

	if (!read_told(&feed, now, &told))
		return AP_NONE;
	if (told.share_num && told.share_num <= told.share_den && told.share_den < (1 << 24)) {
		part->num = told.share_num;
		part->den = told.share_den;
	}
	return told.bandwidth;
}

AP_FN void bound(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct download *d, ap_u32 clamp)
{
	int value = clamp ? clamp : UNBOUNDED;

	if (clamp ? tp->window_clamp == clamp && d->clamp : !d->clamp)
		return;
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_WINDOW_CLAMP, &value, sizeof(value)))
		return;
	if (!clamp)
		__sync_fetch_and_add(&totals.fallbacks, 1);
	else if (!d->clamp)
		__sync_fetch_and_add(&totals.returns, 1);
	else
		__sync_fetch_and_add(&totals.sends, 1);
	d->clamp = clamp;
}

/* Called before a packet is sent. */
AP_FN void relay(struct bpf_sock_ops *ctx)
{
	struct sock *sk = ctx->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
	struct split_part part = { .num = 1, .den = 1 };
	ap_u64 now, rtt, mss, wire, window, sampled;
	struct download *d;

	/* Loopback traffic uses no radio, and a pure sender receives no data. */
	if (!tp || ((struct sock *)tp)->sk_rx_dst_ifindex == LOOPBACK || !tp->bytes_received)
		return;
	d = bpf_sk_storage_get(&downloads, tp, 0, 0);
	if (!d) {
		d = bpf_sk_storage_get(&downloads, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (!d)
			return;
		window_init(&d->w);
		__sync_fetch_and_add(&totals.flows, 1);
	}
	if (d->rcv_nxt != tp->rcv_nxt) {
		d->rcv_nxt = tp->rcv_nxt;
		rtt = round_trip(tp);
		if (rtt != AP_NONE)
			window_on_echo(&d->w, options(), now_of(tp), rtt);
	}
	now = bpf_ktime_get_ns();
	host_part((struct sock *)tp, &part, now);
	sampled = granted(now, &part);
	mss = ap_max(tp->inet_conn.icsk_ack.rcv_mss, 1);
	wire = mss + tp->tcp_header_len + ip_header((struct sock *)tp);
	window = window_of(&d->w, options(), now_of(tp), wire, sampled, &part);
	/* Grants count whole packets, the kernel's window counts payload. */
	if (window != AP_NONE)
		window = ap_min(ap_max(ap_min(window, AP_MAX_BYTES) * mss / wire, mss), UNBOUNDED);
	bound(ctx, tp, d, window == AP_NONE ? 0 : window);
}

SEC("sockops")
int window_relay(struct bpf_sock_ops *ctx)
{
	switch (ctx->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		/* These flags request a call for each packet that is sent. */
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | WRITE | FOLLOWS);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		if (ctx->args[0] != BPF_WRITE_HDR_TCP_CURRENT_MSS && !(ctx->skb_tcp_flags & FLAG_SYN))
			relay(ctx);
		break;
	}
	return 1;
}

/* State of a download. */
enum { DOWNLOAD_FREE, DOWNLOAD_BOUND };

SEC("iter/bpf_sk_storage_map")
int show_flows(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	const struct download *d = ctx->value;
	struct sock *sk = ctx->sk;
	const struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;

	if (!tp || !d)
		return 0;
	return show_flow(ctx, tp, d->clamp ? DOWNLOAD_BOUND : DOWNLOAD_FREE, d->clamp ? d->w.held : AP_NONE,
			 d->clamp ? d->clamp : AP_NONE, ap_window_best(&d->w.least));
}

/* Source: Linux net/ipv4/tcp_ipv4.c (struct bpf_iter__tcp) */
struct bpf_iter__tcp {
	void *meta;
	struct sock_common *sk_common;
};

/* Removes all limits that window_relay has set in a network namespace. It runs after window_relay was removed. */
SEC("iter/tcp")
int window_lift(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
	struct download *d = tp ? bpf_sk_storage_get(&downloads, tp, 0, 0) : 0;
	int value = UNBOUNDED;

	if (!d || !d->clamp)
		return 0;
	if (bpf_setsockopt(tp, SOL_TCP, TCP_WINDOW_CLAMP, &value, sizeof(value)) == 0)
		d->clamp = 0;
	return 0;
}
