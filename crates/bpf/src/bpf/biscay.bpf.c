/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BISCAY as a congestion control of the Linux kernel.
 *
 *   STARTUP ──▶ BISCAY ──▶ FALLBACK (BBR: fallback.h)
 *
 * The rules are in biscay.h. This file passes the kernel's measurements to them, and applies their decisions in the
 * kernel. The radio's bandwidth is read from the mapped array `feed`, at every ACK and before every send. If the last
 * record in `feed` is older than 100 ms, BBR controls the flow at once.
 *
 * The bandwidth is divided among all flows that the host sends (count.h). If flows are not counted, or this flow does
 * not leave the host, it is divided among the flows that use BISCAY.
 *
 * Bytes are counted as bytes of IP packets including headers, as in a radio's grants. The kernel paces payload, so the
 * pacing rate is reduced by the fraction of headers.
 */
#include "fallback.h"
#include "biscay.h"
#include "shown.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct ap_feed feed SEC(".data.feed");
AP_OPTIONS(ap_tuning)

#include "count.h"
#include "feed.h"

SEC("cgroup_skb/egress")
int count_egress(struct __sk_buff *skb)
{
	return count_packet(skb);
}

struct flow {
	struct counted counted;
	/* State of the radio when the decision was last computed. */
	struct biscay_radio radio;
	ap_u64 delivered;
	ap_u64 bytes_sent;
	struct recoveries recoveries;
	/* The decision that was last applied in the kernel, and the packet size (bytes) with which it was computed. */
	ap_u64 cwnd;
	ap_u64 part;
	ap_u32 packets;
	ap_u32 wire;
	ap_u32 last_delivered;
	ap_u32 last_state;
	struct biscay b;
	struct ibbr own;
};

AP_AT_SOCKETS(flows, struct flow);

AP_FN enum who who_controls(const struct flow *f)
{
	if (!f)
		return BARE;
	return f->b.state == BISCAY_FALLBACK ? FALLBACK : OWN;
}

/*
 * Computes the flow's part of the bandwidth, and records that this flow sends.
 *
 * Differs: the registry counts a flow for itself even while it is idle. Here a flow counts from its first sent bytes
 * on, which precede the call of this function.
 */
AP_FN void sharing(struct sock *sk, struct flow *f, struct split_part *part, ap_u64 now)
{
	note_flow(&f->counted, now);
	if (AP_USUAL(host_part(sk, part, now)))
		return;
	part->num = 1;
	part->den = count_flows(&f->counted);
}

/* Computes the radio's state from the record `told`, if `is_heard`, and the flow's part of the bandwidth. */
AP_FN void hear_radio(struct biscay_radio *r, int is_heard, const struct ap_told *told, const struct split_part *part)
{
	r->bandwidth = AP_NONE;
	r->burst = 0;
	r->share_num = part->num;
	r->share_den = part->den;
	if (!is_heard)
		return;
	r->bandwidth = told->bandwidth;
	r->burst = told->burst;
	if (AP_RARE(told->share_num) && told->share_num <= told->share_den && told->share_den < (1 << 24)) {
		r->share_num = told->share_num;
		r->share_den = told->share_den;
	}
}

AP_FN ap_u64 biscay_rtt(const struct biscay *b)
{
	return b->least.seen ? b->least.value[0] : AP_NONE;
}

/* Applies the decision in the kernel. In FALLBACK, BBR applies its own decision. */
AP_FN void apply(struct sock *sk, struct tcp_sock *tp, struct flow *f, ap_u64 wire)
{
	if (AP_RARE(f->b.state == BISCAY_FALLBACK)) {
		if (f->last_state != BISCAY_FALLBACK) {
			__sync_fetch_and_add(&totals.fallbacks, 1);
			if (f->b.cellular == AP_NONE)
				__sync_fetch_and_add(&totals.silences, 1);
			tp->snd_cwnd_cnt = 0;
			fallback_enter(sk, &f->own, f->b.end_to_end, biscay_rtt(&f->b), f->b.path_is_full, wire);
		}
		f->last_state = BISCAY_FALLBACK;
		return;
	}
	if (AP_RARE(f->last_state == BISCAY_FALLBACK)) {
		__sync_fetch_and_add(&totals.returns, 1);
		f->cwnd = 0;
	}
	f->last_state = f->b.state;
	if (f->b.cwnd != f->cwnd || f->wire != wire) {
		f->cwnd = f->b.cwnd;
		f->packets = ap_max(f->b.cwnd / wire, 2);
	}
	/* The kernel changes the window too, for example after an idle period. */
	tp->snd_cwnd = ap_min(f->packets, tp->snd_cwnd_clamp);
	if (f->wire != wire)
		f->part = payload_part(tp, wire);
	if (f->b.pacing)
		pace(sk, f->b.pacing, f->part);
	f->wire = wire;
}

/* Records the bytes sent since the last call. */
AP_FN void note_sent(struct flow *f, struct tcp_sock *tp, ap_u64 now, ap_u64 wire)
{
	ap_u64 sent = tp->bytes_sent, bytes = sent - f->bytes_sent;
	int app_limited = tp->app_limited != 0;

	if (!bytes)
		return;
	f->bytes_sent = sent;
	if (AP_RARE(f->b.state == BISCAY_STARTUP))
		bytes = ap_scaled(ap_min(bytes, AP_MAX_BYTES), wire, ap_max(tp->mss_cache, 1));
	biscay_on_sent(&f->b, now, bytes, 0, app_limited);
}

SEC("struct_ops/biscay_init_flow")
int biscay_init_flow(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
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
	/* fallback_init also sets the pacing rate of the first window. */
	fallback_init(sk, &f->own, wire_bytes(sk, tp));
	tp->snd_cwnd_cnt = 0;
	biscay_init(&f->b, options(), wire_bytes(sk, tp));
	f->last_delivered = tp->delivered;
	f->delivered = tp->delivered;
	f->b.next_round = f->delivered;
	f->bytes_sent = tp->bytes_sent;
	__sync_fetch_and_add(&totals.flows, 1);
	return 0;
}

/*
 * Passes the ACK to the BBR of FALLBACK too. Rounds are counted by the packets that had been delivered when a packet
 * was sent.
 */
AP_FN void fall_back(struct sock *sk, struct flow *f, const struct rate_sample *rs, const struct biscay_ack *a,
		     ap_u64 wire)
{
	struct ibbr_ack own = { .now = a->now, .acked = a->acked };

	if (!kernel.has_bbr && rs->acked_sacked > 0) {
		own.prior_inflight = a->prior_inflight;
		own.inflight = a->inflight;
		own.delivered = a->delivered * wire;
		own.prior_delivered = a->prior_delivered * wire;
		own.rtt = a->rtt;
		own.smoothed = a->smoothed;
		own.rate = a->rate;
		own.app_limited = a->app_limited;
		own.recovered = f->recoveries.over;
		own.newest_sent = a->rtt == AP_NONE ? 0 : ap_less(a->now, a->rtt);
	}
	fallback_ack(sk, &f->own, rs, rs->acked_sacked > 0 ? &own : 0, f->recoveries.over, wire);
}

SEC("struct_ops/biscay_cong_control")
int biscay_cong_control(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	ap_u64 now = now_of(tp), wire;
	const struct rate_sample *rs = sample_of(ctx);
	struct split_part part;
	struct ap_told told;
	struct biscay_radio radio;
	struct biscay_ack ack = {};
	struct flow *f;
	ap_u32 step;
	int is_heard;

	is_heard = read_told(&feed, now, &told);
	f = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!f) {
		bare_ack(sk, rs);
		return 0;
	}
	f->counted.acks++;
	wire = wire_bytes(sk, tp);
	f->b.mss = wire;
	sharing(sk, f, &part, now);
	hear_radio(&radio, is_heard, &told, &part);
	f->radio = radio;
	note_sent(f, tp, now, wire);
	if (AP_RARE(rs->losses > 0))
		biscay_on_loss(&f->b, (ap_u64)(ap_u32)rs->losses * wire, 0, &radio);
	step = tp->delivered - f->last_delivered;
	f->last_delivered = tp->delivered;
	f->delivered += step;
	if (AP_USUAL(rs->acked_sacked > 0)) {
		ack.now = now;
		ack.acked = rs->acked_sacked * wire;
		ack.prior_inflight = rs->prior_in_flight * wire;
		ack.inflight = in_flight(tp) * wire;
		ack.delivered = f->delivered;
		ack.prior_delivered = 0;
		if (rs->prior_mstamp)
			ack.prior_delivered = f->delivered - (ap_u32)(tp->delivered - rs->prior_delivered);
		ack.rtt = rs->rtt_us > 0 ? (ap_u64)rs->rtt_us * AP_US : AP_NONE;
		ack.smoothed = ap_max((ap_u64)tp->srtt_us / 8, 1) * AP_US;
		ack.rate = AP_NONE;
		if (rs->delivered > 0 && rs->interval_us > 0)
			ack.rate = ap_rate_of((ap_u64)(ap_u32)rs->delivered * wire, (ap_u64)rs->interval_us * AP_US);
		ack.app_limited = rs->is_app_limited != 0;
		ack.cwnd = tp->snd_cwnd * wire;
		biscay_on_ack(&f->b, &ack, &radio);
	}
	apply(sk, tp, f, wire);
	if (AP_RARE(f->b.state == BISCAY_FALLBACK))
		fall_back(sk, f, rs, &ack, wire);
	return 0;
}

/*
 * Data that is needed before a send, in addition to MARK. In FALLBACK, the kernel's BBR stores its state in the same
 * words.
 */
struct noted {
	ap_u64 bandwidth;
	ap_u64 until;
	ap_u64 host;
};

AP_FN struct noted *noted_of(struct tcp_sock *tp)
{
	return (struct noted *)tp->inet_conn.icsk_ca_priv;
}

AP_FN void note_answer(struct tcp_sock *tp, const struct flow *f, ap_u64 now)
{
	struct noted *noted = noted_of(tp);

	tp->snd_cwnd_cnt = 0;
	/*
	 * In STARTUP, sent bytes must be counted, so no send may be skipped. Feeds that contain shares are rare; with
	 * them, no send is skipped.
	 */
	if (f->b.state != BISCAY_BISCAY)
		return;
	noted->bandwidth = f->radio.bandwidth;
	noted->until = f->counted.until;
	/* If the flow's part depends on more than the number of flows, it is recomputed after a millisecond. */
	if (options()->split != AP_SPLIT_EQUAL)
		noted->until = ap_min(noted->until, now + AP_MS);
	noted->host = *(volatile ap_u64 *)&host.flows;
	tp->snd_cwnd_cnt = MARK;
}

/* Whether the radio's record is unchanged since the decision was computed. */
AP_FN int is_as_noted(struct tcp_sock *tp, ap_u64 now)
{
	struct noted *noted = noted_of(tp);
	volatile struct ap_told *told;
	ap_u64 sequence;

	if (tp->snd_cwnd_cnt != MARK || now >= noted->until || noted->host != *(volatile ap_u64 *)&host.flows)
		return 0;
	sequence = ((volatile struct ap_feed *)&feed)->sequence;
	told = &((volatile struct ap_feed *)&feed)->told[sequence & 1];
	return told->bandwidth == noted->bandwidth && now <= told->time + AP_FEED_MAX_AGE && !told->share_num &&
	       ((volatile struct ap_feed *)&feed)->sequence == sequence;
}

SEC("struct_ops/biscay_min_tso_segs")
int biscay_min_tso_segs(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	ap_u64 now = now_of(tp), wire;
	struct biscay_radio radio;
	struct split_part part;
	struct ap_told told;
	struct flow *f;

	if (is_as_noted(tp, now))
		return sk->sk_pacing_rate < SLOW_RATE ? 1 : 2;
	f = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!f)
		return bare_min_tso_segs(sk);
	f->counted.sends++;
	wire = wire_bytes(sk, tp);
	sharing(sk, f, &part, now);
	hear_radio(&radio, read_told(&feed, now, &told), &told, &part);
	note_sent(f, tp, now, wire);
	if (radio.bandwidth != f->radio.bandwidth || radio.share_den != f->radio.share_den ||
	    radio.share_num != f->radio.share_num) {
		f->radio = radio;
		biscay_before_send(&f->b, now, &radio);
		apply(sk, tp, f, wire);
	}
	if (f->b.state == BISCAY_FALLBACK)
		return fallback_min_tso_segs(sk);
	note_answer(tp, f, now);
	return sk->sk_pacing_rate < SLOW_RATE ? 1 : 2;
}

SEC("struct_ops/biscay_set_state")
void biscay_set_state(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	ap_u8 state = ctx[1];
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);
	struct biscay_radio none = { .bandwidth = AP_NONE, .share_num = 1, .share_den = 1 };

	if (f)
		count_recovery(&f->recoveries, state);
	if (!f) {
		bare_set_state(sk, state);
	} else if (f->b.state == BISCAY_FALLBACK) {
		fallback_set_state(sk, &f->own, state, f->recoveries.over, wire_bytes(sk, tp));
	} else if (state == TCP_CA_Loss) {
		/* All outstanding packets count as lost: the radio is treated as unknown until the next ACK. */
		biscay_on_loss(&f->b, 0, 1, &none);
		apply(sk, tp, f, wire_bytes(sk, tp));
	}
}

SEC("struct_ops/biscay_cwnd_event")
void biscay_cwnd_event(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	enum tcp_ca_event event = ctx[1];
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);

	if (!f)
		bare_cwnd_event(sk, event);
	else if (f->b.state == BISCAY_FALLBACK)
		fallback_cwnd_event(sk, &f->own, event);
	else if (event == CA_EVENT_TX_START)
		biscay_on_sent(&f->b, now_of((struct tcp_sock *)sk), 0, 1, f->b.was_idle);
}

AP_COMMON_PROGRAMS(biscay)

SEC("iter/bpf_sk_storage_map")
int show_flows(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	const struct flow *f = ctx->value;

	return f ? show_sender(ctx, f->b.state, biscay_rtt(&f->b)) : 0;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops biscay = {
	.init = (void *)biscay_init_flow,
	.cong_control = (void *)biscay_cong_control,
	.min_tso_segs = (void *)biscay_min_tso_segs,
	.set_state = (void *)biscay_set_state,
	.cwnd_event = (void *)biscay_cwnd_event,
	.ssthresh = (void *)biscay_ssthresh,
	.undo_cwnd = (void *)biscay_undo_cwnd,
	.sndbuf_expand = (void *)biscay_sndbuf_expand,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "biscay",
};
