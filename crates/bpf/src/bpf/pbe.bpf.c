/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * PBE-CC as a congestion control of the Linux kernel.
 *
 *   receiver: `feed` ──▶ pbe_options ── option on pure ACKs ──▶ sender: pbe_options ──▶ `heard` ──▶ pbe_cong_control
 *
 * `pbe_options` belongs to a control group, and is the same on both sides. It offers the option in the SYN. If the peer
 * confirms it, whoever has a feed writes it, and whoever has flows of PBE-CC reads it. Without a confirmation, in cookies'
 * SYN-ACKs for one, or if the path takes the option away, flows are BBR's: that of bbr.h.
 *
 * The rules are those of pbe.h. Amounts are those of IP packets, headers included, as Ct is.
 *
 * Source: RFC 6994; Linux include/uapi/linux/bpf.h
 */
#include "scheme.h"
#include "sockops.h"
#include "pbe.h"
#include "pbe_option.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct ap_pbe_feed feed SEC(".data.feed");
AP_OPTIONS(ap_pbe_tuning)

/* What the peer of a connection told; it is there if the peer confirmed the option. */
struct heard {
	ap_u32 count;
	ap_u32 reserved;
	struct pbe_fed fed;
};

AP_AT_SOCKETS(heard, struct heard);

struct flow {
	struct counted counted;
	ap_u64 delivered;
	ap_u64 least;
	ap_u32 last_delivered;
	/* How often the peer had told when that was last used. */
	ap_u32 heard;
	struct pbe p;
};

AP_AT_SOCKETS(flows, struct flow);

AP_FN enum who who_controls(const struct flow *f)
{
	return f ? OWN : BARE;
}

/* Finds the option in what was received, or in the SYN. Returns its length, and zero or less if it is not there. */
AP_FN long find_option(struct bpf_sock_ops *ctx, unsigned char *option, ap_u64 where)
{
	option[0] = PBE_OPTION_KIND;
	option[1] = PBE_OPTION_OFFER;
	option[2] = PBE_OPTION_EXID_HIGH;
	option[3] = PBE_OPTION_EXID_LOW;
	return bpf_load_hdr_opt(ctx, option, PBE_OPTION_LONG, where);
}

/* What a radio here tells, as contents of an option; zero if it never told. What is old is told as not fresh. */
AP_FN int read_feed(unsigned char *contents, ap_u64 now)
{
	volatile struct ap_pbe_feed *seen = &feed;
	volatile struct ap_pbe_told *told;
	ap_u64 before, time;
	int tries, i;

	for (tries = 0; tries < 4; tries++) {
		before = seen->sequence;
		told = &seen->told[before & 1];
		time = told->time;
		for (i = 0; i < 8; i++)
			contents[i] = told->contents[i];
		if (seen->sequence != before)
			continue;
		if (time > now + AP_MS || now > time + AP_FEED_MAX_AGE)
			contents[0] &= ~PBE_OPTION_FRESH;
		return time != 0;
	}
	return 0;
}

/* Takes in an option that was received. */
AP_FN void hear(struct bpf_sock_ops *ctx, struct heard *h)
{
	unsigned char option[PBE_OPTION_LONG] = {};
	long length = find_option(ctx, option, 0);

	if (length < PBE_OPTION_SHORT)
		return;
	pbe_option_read(&h->fed, option + 4, length);
	h->count++;
}

/* A connection is made. Both sides have the option if the peer's SYN had it. */
AP_FN void settle(struct bpf_sock_ops *ctx, int is_passive)
{
	unsigned char option[PBE_OPTION_LONG] = {};
	struct heard *h = 0;

	/* The SYN-ACK that came is the packet at hand, and the SYN that came was kept. */
	if (find_option(ctx, option, is_passive ? BPF_LOAD_HDR_OPT_TCP_SYN : 0) > 0 && ctx->sk)
		h = bpf_sk_storage_get(&heard, ctx->sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!h) {
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags & ~(PARSE_UNKNOWN | WRITE));
		return;
	}
	h->fed.capacity = h->fed.fair_share = h->fed.radio_delay = AP_NONE;
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | PARSE_UNKNOWN | WRITE);
	if (is_passive)
		hear(ctx, h);
}

/* The bytes of the option on the packet that is about to be made; zero: none. */
AP_FN ap_u32 wanted(struct bpf_sock_ops *ctx)
{
	unsigned char option[PBE_OPTION_LONG] = {};

	if (ctx->skb_tcp_flags & FLAG_SYN) {
		/* The SYN-ACK of a cookie: nobody remembers what the SYN offered. */
		if (ctx->args[0] == BPF_WRITE_HDR_TCP_SYNACK_COOKIE)
			return 0;
		if (ctx->skb_tcp_flags & FLAG_ACK && find_option(ctx, option, BPF_LOAD_HDR_OPT_TCP_SYN) <= 0)
			return 0;
		return PBE_OPTION_OFFER;
	}
	/* On pure ACKs only: data would have to leave room for it. */
	if (ctx->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || ctx->skb_len || ctx->skb_tcp_flags != FLAG_ACK)
		return 0;
	return feed.told[0].time || feed.told[1].time ? PBE_OPTION_LONG : 0;
}

AP_FN void write_option(struct bpf_sock_ops *ctx)
{
	unsigned char option[PBE_OPTION_LONG] = {};

	option[0] = PBE_OPTION_KIND;
	option[2] = PBE_OPTION_EXID_HIGH;
	option[3] = PBE_OPTION_EXID_LOW;
	if (ctx->skb_tcp_flags & FLAG_SYN) {
		option[1] = PBE_OPTION_OFFER;
		bpf_store_hdr_opt(ctx, option, PBE_OPTION_OFFER, 0);
		return;
	}
	if (!read_feed(option + 4, bpf_ktime_get_ns()))
		return;
	option[1] = PBE_OPTION_LONG;
	if (bpf_store_hdr_opt(ctx, option, PBE_OPTION_LONG, 0) == 0)
		return;
	option[1] = PBE_OPTION_SHORT;
	bpf_store_hdr_opt(ctx, option, PBE_OPTION_SHORT, 0);
}

SEC("sockops")
int pbe_options(struct bpf_sock_ops *ctx)
{
	ap_u32 bytes;
	int yes = 1;

	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		bpf_setsockopt(ctx, SOL_TCP, TCP_SAVE_SYN, &yes, sizeof(yes));
		/* fall through */
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | WRITE);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		settle(ctx, 0);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		settle(ctx, 1);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB: {
		struct heard *h = ctx->sk ? bpf_sk_storage_get(&heard, ctx->sk, 0, 0) : 0;

		if (h)
			hear(ctx, h);
		break;
	}
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		bytes = wanted(ctx);
		if (bytes && bpf_reserve_hdr_opt(ctx, bytes, 0) && bytes == PBE_OPTION_LONG)
			bpf_reserve_hdr_opt(ctx, PBE_OPTION_SHORT, 0);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		write_option(ctx);
		break;
	}
	return 1;
}

/* Gives the answer to the kernel, and counts who steers. */
AP_FN void apply(struct sock *sk, struct tcp_sock *tp, struct flow *f, ap_u64 wire, ap_u32 before)
{
	int is_bbr = pbe_is_steered_by_bbr(&f->p);
	ap_u64 cwnd = is_bbr ? pbe_bbr_cwnd(&f->p) : f->p.cwnd;

	tp->snd_cwnd = ap_min(ap_max(cwnd / wire, 2), tp->snd_cwnd_clamp);
	pace(sk, is_bbr ? pbe_bbr_pacing(&f->p) : f->p.pacing, payload_part(tp, wire));
	if (f->p.phase == before)
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

	/* What is left of an earlier time under this control says nothing now; new storage is zero. */
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
		/* Its peer tells nothing, and never will. */
		pbe_fall_back(&f->p, now_of(tp));
		apply(sk, tp, f, f->p.mss, PBE_FALLBACK);
		return 0;
	}
	__sync_fetch_and_add(&totals.confirmed, 1);
	/* The ACK that made the connection may have told. */
	if (h->count)
		pbe_on_feedback(&f->p, now_of(tp), &h->fed);
	f->heard = h->count;
	apply(sk, tp, f, f->p.mss, PBE_START);
	return 0;
}

SEC("struct_ops/pbe_cong_control")
int pbe_cong_control(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);
	struct heard *h = bpf_sk_storage_get(&heard, sk, 0, 0);
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
	count_flows(&f->counted, a.bbr.now);
	wire = wire_bytes(sk, tp);
	f->p.mss = f->p.bbr.mss = wire;
	phase = f->p.phase;
	if (rs->losses > 0)
		pbe_on_loss(&f->p, (ap_u64)(ap_u32)rs->losses * wire, 0, f->delivered);
	f->delivered += (ap_u32)(tp->delivered - f->last_delivered);
	f->last_delivered = tp->delivered;
	if (rs->acked_sacked > 0) {
		/* Rounds and recovery are counted by what had been delivered when a packet left. */
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
		a.bbr.newest = before;
		a.bbr.newest_sent = a.bbr.rtt == AP_NONE ? 0 : ap_less(a.bbr.now, a.bbr.rtt);
		f->least = ap_min(f->least, ap_min(a.bbr.rtt, a.bbr.smoothed));
		a.least = f->least;
		a.oldest_sent = ap_less(a.bbr.now, a.bbr.rtt == AP_NONE ? a.bbr.smoothed : a.bbr.rtt);
		if (h && h->count != f->heard) {
			fed = h->fed;
			f->heard = h->count;
		}
		f->p.bbr.random = bpf_get_prandom_u32();
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
	/* A start rises also between two ACKs. */
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

	if (!f)
		bare_set_state(sk, state);
	if (!f || state != TCP_CA_Loss)
		return;
	pbe_on_loss(&f->p, 0, 1, f->delivered);
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

AP_COMMON_PROGRAMS(pbe)

SEC(".struct_ops.link")
struct tcp_congestion_ops pbe = {
	.init = (void *)pbe_init_flow,
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
