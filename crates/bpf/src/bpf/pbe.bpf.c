/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * PBE-CC as a congestion control of the Linux kernel.
 *
 *   sender: pbe_cong_control ── option on data ──▶ receiver: pbe_options, `receivers`
 *      ▲                                                            │
 *   `heard` ◀── pbe_options ◀── option on pure ACKs ── pbe_options ─┴── `feed`, by a feeder
 *
 * pbe_exchange.h contains the programs that write and read the option. BBR (bbr.h) controls flows without the option.
 *
 * The rules are in pbe.h. Bytes are counted as bytes of IP packets including headers, as for Ct.
 *
 * Source: RFC 6994; Linux include/uapi/linux/bpf.h
 */
#include "scheme.h"
#include "pbe.h"
#include "pbe_option.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct ap_pbe_feed feed SEC(".data.feed");
AP_OPTIONS(ap_pbe_tuning)

/*
 * This record exists if the peer of a connection confirmed the option. It contains the feedback that arrived before
 * PBE-CC became the congestion control of this socket. Later feedback is stored in `flows`, so that an ACK needs only
 * one lookup.
 */
struct heard {
	ap_u32 count;
	/*
	 * Whether PBE-CC controls this sender. Its data carries the option once all data before sequence number `first`
	 * is acknowledged.
	 */
	ap_u32 is_sender;
	ap_u32 first;
	ap_u32 reserved;
	struct pbe_fed fed;
};

AP_AT_SOCKETS(heard, struct heard);

struct flow {
	struct counted counted;
	ap_u64 delivered;
	ap_u64 least;
	struct recoveries recoveries;
	ap_u32 last_delivered;
	/*
	 * Number of feedback messages from the peer. `used` is this number at the time when the last message was used.
	 */
	ap_u32 count;
	ap_u32 used;
	/* Length of the option on the flow's data. `has_us`: whether the flow's time stamps are in microseconds. */
	ap_u32 option_bytes;
	ap_u32 has_us;
	/*
	 * The window that was last applied in the kernel, in packets, and the packet size (bytes) with which it was
	 * computed.
	 */
	ap_u32 packets;
	ap_u32 wire;
	ap_u64 cwnd;
	ap_u64 part;
	/* The peer's last feedback. */
	struct pbe_fed told;
	struct pbe p;
};

AP_AT_SOCKETS(flows, struct flow);

AP_FN enum who who_controls(const struct flow *f)
{
	return f ? OWN : BARE;
}

/* Writes the sender's state for the option on data. */
AP_FN void write_header(const struct flow *f, unsigned char *contents)
{
	ap_u64 pacing = pbe_is_steered_by_bbr(&f->p) ? pbe_bbr_pacing(&f->p) : f->p.pacing;

	pbe_header_write(f->p.phase == PBE_START, f->has_us, f->p.bbr.rtprop, pacing, contents);
}

#include "pbe_exchange.h"
#include "shown.h"

/* Applies the decision to the kernel's socket, and counts fallbacks and returns. */
AP_FN void apply(struct sock *sk, struct tcp_sock *tp, struct flow *f, ap_u64 wire, ap_u32 before)
{
	int is_bbr = pbe_is_steered_by_bbr(&f->p);
	ap_u64 cwnd = is_bbr ? pbe_bbr_cwnd(&f->p) : f->p.cwnd;

	if (AP_RARE(f->wire != wire))
		f->part = ((ap_u64)(tp->mss_cache - f->option_bytes) << 16) / ap_max(wire, 1);
	if (f->cwnd != cwnd || f->wire != wire)
		f->packets = ap_max(cwnd / wire, 2);
	f->cwnd = cwnd;
	f->wire = wire;
	tp->snd_cwnd = ap_min(f->packets, tp->snd_cwnd_clamp);
	pace(sk, is_bbr ? pbe_bbr_pacing(&f->p) : f->p.pacing, f->part);
	if (AP_USUAL(f->p.phase == before))
		return;
	if (f->p.phase == PBE_FALLBACK) {
		__sync_fetch_and_add(&totals.fallbacks, 1);
		__sync_fetch_and_add(&totals.silences, 1);
	} else if (before == PBE_FALLBACK) {
		__sync_fetch_and_add(&totals.returns, 1);
	}
}

SEC("struct_ops/pbe_init_flow")
int pbe_init_flow(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct heard *h = bpf_sk_storage_get(&heard, sk, 0, 0);
	struct flow *f;

	/*
	 * If the socket used this congestion control before, the state of that time is no longer valid. New storage is
	 * zero.
	 */
	bpf_sk_storage_delete(&flows, sk);
	f = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!f) {
		bare_init(sk);
		return 0;
	}
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	pbe_init(&f->p, options(), wire_bytes(sk, tp));
	f->least = AP_NONE;
	f->last_delivered = tp->delivered;
	f->delivered = tp->delivered;
	f->p.bbr.next_round = f->delivered * f->p.mss;
	__sync_fetch_and_add(&totals.flows, 1);
	if (!h) {
		/* The peer has not confirmed the option, so it will never send feedback. */
		pbe_fall_back(&f->p, now_of(tp));
		apply(sk, tp, f, f->p.mss, PBE_FALLBACK);
		return 0;
	}
	__sync_fetch_and_add(&totals.confirmed, 1);
	f->option_bytes = PBE_OPTION_SHORT;
	f->has_us = stamps_are_microseconds(tp);
	h->first = tp->write_seq;
	h->is_sender = 1;
	/* The ACK that completed the handshake may have carried feedback. */
	if (h->count)
		pbe_on_feedback(&f->p, now_of(tp), &h->fed);
	f->told = h->fed;
	apply(sk, tp, f, f->p.mss, PBE_START);
	return 0;
}

SEC("struct_ops/pbe_cong_control")
int pbe_cong_control(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);
	const struct rate_sample *rs = sample_of(ctx);
	struct pbe_fed fed = {};
	struct pbe_ack a = {};
	ap_u64 wire, before;
	ap_u32 phase;

	if (!f) {
		bare_ack(sk, rs);
		return 0;
	}
	f->counted.acks++;
	a.bbr.now = now_of(tp);
	note_flow(&f->counted, a.bbr.now);
	wire = wire_bytes(sk, tp);
	f->p.mss = f->p.bbr.mss = wire;
	phase = f->p.phase;
	if (AP_RARE(rs->losses > 0))
		pbe_on_loss(&f->p, (ap_u64)(ap_u32)rs->losses * wire, 0, f->recoveries.over);
	f->delivered += (ap_u32)(tp->delivered - f->last_delivered);
	f->last_delivered = tp->delivered;
	if (AP_USUAL(rs->acked_sacked > 0)) {
		/* Rounds are counted by the bytes that had been delivered when a packet was sent. */
		before = rs->prior_mstamp ? f->delivered - (ap_u32)(tp->delivered - rs->prior_delivered) : 0;
		a.bbr.acked = rs->acked_sacked * wire;
		a.bbr.prior_inflight = rs->prior_in_flight * wire;
		a.bbr.inflight = in_flight(tp) * wire;
		a.bbr.delivered = f->delivered * wire;
		a.bbr.prior_delivered = before * wire;
		a.bbr.rtt = rs->rtt_us > 0 ? (ap_u64)rs->rtt_us * AP_US : AP_NONE;
		a.bbr.smoothed = ap_max((ap_u64)tp->srtt_us / 8, 1) * AP_US;
		a.bbr.rate = AP_NONE;
		if (rs->delivered > 0 && rs->interval_us > 0)
			a.bbr.rate = ap_rate_of((ap_u64)(ap_u32)rs->delivered * wire, (ap_u64)rs->interval_us * AP_US);
		a.bbr.app_limited = rs->is_app_limited != 0;
		a.bbr.recovered = f->recoveries.over;
		a.bbr.newest_sent = a.bbr.rtt == AP_NONE ? 0 : ap_less(a.bbr.now, a.bbr.rtt);
		f->least = ap_min(f->least, ap_min(a.bbr.rtt, a.bbr.smoothed));
		a.least = f->least;
		a.oldest_sent = ap_less(a.bbr.now, a.bbr.rtt == AP_NONE ? a.bbr.smoothed : a.bbr.rtt);
		if (f->count != f->used) {
			fed = f->told;
			f->used = f->count;
		}
		/*
		 * The start phase of a cycle only has to differ between flows, for which the time in ns is random
		 * enough.
		 */
		f->p.bbr.random = (a.bbr.now * 0x9e3779b97f4a7c15ULL) >> 32;
		pbe_on_ack(&f->p, &a, &fed);
	}
	apply(sk, tp, f, wire, phase);
	return 0;
}

SEC("struct_ops/pbe_min_tso_segs")
int pbe_min_tso_segs(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);

	if (!f)
		return bare_min_tso_segs(sk);
	f->counted.sends++;
	/* In the linear start, the rate also increases between two ACKs. */
	if (f->p.phase == PBE_START) {
		pbe_before_send(&f->p, now_of(tp));
		apply(sk, tp, f, wire_bytes(sk, tp), PBE_START);
	}
	return sk->sk_pacing_rate < SLOW_RATE ? 1 : 2;
}

SEC("struct_ops/pbe_set_state")
void pbe_set_state(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	ap_u8 state = ctx[1];
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);

	if (!f) {
		bare_set_state(sk, state);
		return;
	}
	count_recovery(&f->recoveries, state);
	if (state != TCP_CA_Loss)
		return;
	pbe_on_loss(&f->p, 0, 1, f->recoveries.over);
	apply(sk, tp, f, wire_bytes(sk, tp), f->p.phase);
}

SEC("struct_ops/pbe_cwnd_event")
void pbe_cwnd_event(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	enum tcp_ca_event event = ctx[1];
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);

	if (!f)
		bare_cwnd_event(sk, event);
	if (!f || event != CA_EVENT_TX_START)
		return;
	f->p.bbr.was_idle = tp->app_limited != 0;
	f->p.bbr.random = bpf_get_prandom_u32();
	ibbr_on_sent(&f->p.bbr, now_of(tp), 1, tp->app_limited != 0);
	apply(sk, tp, f, wire_bytes(sk, tp), f->p.phase);
}

/* The connection closes, or another congestion control takes over. */
SEC("struct_ops/pbe_release")
void pbe_release(ap_u64 *ctx)
{
	struct heard *h = bpf_sk_storage_get(&heard, (struct sock *)ctx[0], 0, 0);

	if (h)
		h->is_sender = 0;
}

AP_COMMON_PROGRAMS(pbe)

SEC("iter/bpf_sk_storage_map")
int show_flows(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	const struct flow *f = ctx->value;

	return f ? show_sender(ctx, f->p.phase, f->least) : 0;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops pbe = {
	.init = (void *)pbe_init_flow,
	.release = (void *)pbe_release,
	.cong_control = (void *)pbe_cong_control,
	.min_tso_segs = (void *)pbe_min_tso_segs,
	.set_state = (void *)pbe_set_state,
	.cwnd_event = (void *)pbe_cwnd_event,
	.ssthresh = (void *)pbe_ssthresh,
	.undo_cwnd = (void *)pbe_undo_cwnd,
	.sndbuf_expand = (void *)pbe_sndbuf_expand,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "pbe",
};
