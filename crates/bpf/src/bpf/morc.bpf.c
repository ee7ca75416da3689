/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * MORC as a congestion control of the Linux kernel.
 *
 * The rules are in morc.h. They require a number for every transmission, and whether the transmission was delivered or
 * lost. The kernel counts transmissions (data_segs_out) and packets in flight. The difference is the number of
 * transmissions that were delivered or lost. This number is assigned to the oldest transmissions. With SACK this order
 * is correct, except for packets that overtake a hole, which count for an interval that was sent slightly earlier. A
 * retransmission is a transmission with its own number.
 *
 * Bytes are counted as bytes of IP packets including headers, as in the simulator.
 */
#include "scheme.h"
#include "morc.h"
#include "shown.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

AP_OPTIONS(ap_morc_tuning)

struct flow {
	struct counted counted;
	/* Total number of transmissions, and number of transmissions that were delivered or lost. */
	ap_u64 sent;
	ap_u64 settled;
	ap_u32 last_sent;
	ap_u32 last_delivered;
	/* The decision that was last applied in the kernel, and the packet size (bytes) with which it was computed. */
	ap_u64 cwnd;
	ap_u64 part;
	ap_u32 packets;
	ap_u32 wire;
	struct morc m;
};

AP_AT_SOCKETS(flows, struct flow);

AP_FN enum who who_controls(const struct flow *f)
{
	return f ? OWN : BARE;
}

/* Applies the decision in the kernel. */
AP_FN void apply(struct sock *sk, struct tcp_sock *tp, struct flow *f, ap_u64 wire)
{
	if (f->m.cwnd != f->cwnd || f->wire != wire) {
		f->cwnd = f->m.cwnd;
		/*
		 * The window is at least two packets, because the ACK of a single packet may be delayed, which must not
		 * be mistaken for a queue.
		 */
		f->packets = ap_max(f->m.cwnd / wire, 2);
	}
	tp->snd_cwnd = ap_min(f->packets, tp->snd_cwnd_clamp);
	if (f->wire != wire)
		f->part = payload_part(tp, wire);
	if (f->m.pacing)
		pace(sk, f->m.pacing, f->part);
	f->wire = wire;
}

/* Records the transmissions since the last call. */
AP_FN void note_sent(struct flow *f, const struct tcp_sock *tp, ap_u64 now, ap_u64 wire)
{
	ap_u32 count = tp->data_segs_out - f->last_sent;
	struct pcc_packets sent = { .number = f->sent, .count = count, .bytes = wire };

	if (!count)
		return;
	f->last_sent = tp->data_segs_out;
	f->sent += count;
	morc_on_sent(&f->m, now, &sent, tp->app_limited != 0);
}

/*
 * Determines the transmissions whose fate became known since the last call: first the lost transmissions, then the
 * delivered transmissions.
 */
AP_FN void settle(struct flow *f, const struct tcp_sock *tp, ap_u64 wire, struct pcc_packets *lost,
		  struct pcc_packets *acked)
{
	ap_u32 delivered = tp->delivered - f->last_delivered;
	/*
	 * The subtraction may be negative if packets declared lost by mistake are in flight again; their fate is
	 * already recorded.
	 */
	ap_u64 count = ap_less(ap_less(f->sent, in_flight(tp)), f->settled);

	f->last_delivered = tp->delivered;
	acked->count = ap_min(delivered, count);
	lost->count = count - acked->count;
	lost->number = f->settled;
	acked->number = f->settled + lost->count;
	acked->bytes = lost->bytes = wire;
	f->settled += count;
}

/*
 * Time before which no interval can end, stored in addition to MARK. Packets sent before this time are counted at the
 * next ACK.
 */
struct noted {
	ap_u64 due;
	/* From this time on, an application without data to send counts as paused. */
	ap_u64 pause;
};

AP_FN struct noted *noted_of(struct tcp_sock *tp)
{
	return (struct noted *)tp->inet_conn.icsk_ca_priv;
}

AP_FN void note_interval(struct tcp_sock *tp, struct flow *f, ap_u64 now)
{
	struct pcc_interval *it = pcc_newest(&f->m.intervals);

	noted_of(tp)->due = f->m.intervals.count && !f->m.realign ? it->due : 0;
	noted_of(tp)->pause = now + PCC_NO_PAUSE;
	tp->snd_cwnd_cnt = MARK;
}

SEC("struct_ops/morc_init_flow")
int morc_init_flow(ap_u64 *ctx)
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
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	tp->snd_cwnd_cnt = 0;
	morc_init(&f->m, options(), wire_bytes(sk, tp));
	f->last_sent = tp->data_segs_out;
	f->last_delivered = tp->delivered;
	/* Packets in flight were sent under another congestion control and belong to no interval. */
	f->sent = in_flight(tp);
	__sync_fetch_and_add(&totals.flows, 1);
	return 0;
}

SEC("struct_ops/morc_cong_control")
int morc_cong_control(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);
	const struct rate_sample *rs = sample_of(ctx);
	ap_u64 now = now_of(tp), wire;
	struct pcc_packets lost, acked;
	struct morc_ack ack;

	if (!f) {
		bare_ack(sk, rs);
		return 0;
	}
	f->counted.acks++;
	note_flow(&f->counted, now);
	wire = wire_bytes(sk, tp);
	f->m.mss = wire;
	note_sent(f, tp, now, wire);
	settle(f, tp, wire, &lost, &acked);
	if (AP_RARE(lost.count))
		morc_on_lost(&f->m, &lost);
	if (AP_USUAL(rs->acked_sacked > 0)) {
		ack.now = now;
		ack.acked = rs->acked_sacked * wire;
		ack.rtt = rs->rtt_us > 0 ? (ap_u64)rs->rtt_us * AP_US : AP_NONE;
		ack.smoothed = ap_max((ap_u64)tp->srtt_us / 8, 1) * AP_US;
		ack.variation = (ap_u64)tp->mdev_us / 4 * AP_US;
		f->m.rtt_min = f->m.is_known ? ap_min(f->m.rtt_min, ack.rtt) : ap_min(ack.smoothed, ack.rtt);
		ack.least = f->m.rtt_min;
		ack.rate = AP_NONE;
		if (AP_RARE(f->m.phase == MORC_STARTING) && rs->delivered > 0 && rs->interval_us > 0)
			ack.rate = ap_rate_of((ap_u64)(ap_u32)rs->delivered * wire, (ap_u64)rs->interval_us * AP_US);
		ack.newest = ap_less(f->settled, 1);
		ack.newest_sent = ack.rtt == AP_NONE ? 0 : ap_less(now, ack.rtt);
		ack.app_limited = rs->is_app_limited != 0;
		morc_on_ack(&f->m, &ack);
		morc_on_acked(&f->m, &acked, 0, ack.newest, ack.rtt);
		morc_report(&f->m);
	}
	apply(sk, tp, f, wire);
	note_interval(tp, f, now);
	return 0;
}

SEC("struct_ops/morc_min_tso_segs")
int morc_min_tso_segs(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	ap_u64 now = now_of(tp), wire;
	struct flow *f;

	if (tp->snd_cwnd_cnt == MARK && now < noted_of(tp)->due &&
	    (!tp->app_limited || now < noted_of(tp)->pause))
		return sk->sk_pacing_rate < SLOW_RATE ? 1 : 2;
	f = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!f)
		return bare_min_tso_segs(sk);
	f->counted.sends++;
	wire = wire_bytes(sk, tp);
	note_sent(f, tp, now, wire);
	morc_before_send(&f->m, now, f->sent);
	apply(sk, tp, f, wire);
	note_interval(tp, f, now);
	return sk->sk_pacing_rate < SLOW_RATE ? 1 : 2;
}

SEC("struct_ops/morc_set_state")
void morc_set_state(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	ap_u8 state = ctx[1];
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);

	/*
	 * A timeout reduces the kernel's window to one packet. MORC keeps its own rate and window instead; the losses
	 * are counted at the next ACK.
	 */
	if (!f)
		bare_set_state(sk, state);
	else if (state == TCP_CA_Loss)
		apply(sk, tp, f, wire_bytes(sk, tp));
}

SEC("struct_ops/morc_cwnd_event")
void morc_cwnd_event(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];

	if (!bpf_sk_storage_get(&flows, sk, 0, 0))
		bare_cwnd_event(sk, ctx[1]);
}

AP_COMMON_PROGRAMS(morc)

SEC("iter/bpf_sk_storage_map")
int show_flows(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	const struct flow *f = ctx->value;

	return f ? show_sender(ctx, f->m.phase, f->m.is_known ? f->m.rtt_min : AP_NONE) : 0;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops morc = {
	.init = (void *)morc_init_flow,
	.cong_control = (void *)morc_cong_control,
	.min_tso_segs = (void *)morc_min_tso_segs,
	.set_state = (void *)morc_set_state,
	.cwnd_event = (void *)morc_cwnd_event,
	.ssthresh = (void *)morc_ssthresh,
	.undo_cwnd = (void *)morc_undo_cwnd,
	.sndbuf_expand = (void *)morc_sndbuf_expand,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "morc",
};
