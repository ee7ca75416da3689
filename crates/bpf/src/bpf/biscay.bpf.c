/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BISCAY as a congestion control of the Linux kernel.
 *
 *   STARTUP ──▶ BISCAY ──▶ FALLBACK (the kernel's own BBR)
 *
 * The rules are those of biscay.h. This file takes the kernel's numbers to them, and their answers to the kernel. What
 * the radio grants is read from the mapped array `feed`, with every ACK and before every send. If it is older than
 * 100 ms, BBR controls at once.
 *
 * Amounts are those of IP packets, as a radio's grants are: headers count. The kernel paces payload, so the rate is
 * scaled down by the share of headers.
 */
#include "kernel.h"
#include "intf.h"
#include "biscay.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Which argument of cong_control is the rate sample: 3, and 1 before Linux 6.10. The loader sets it. */
const volatile ap_u32 sample_argument SEC(".rodata.kernel") = 3;

struct {
	MAP_INT(type, BPF_MAP_TYPE_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_INT(map_flags, BPF_F_MMAPABLE);
	MAP_TYPE(key, ap_u32);
	MAP_TYPE(value, struct ap_feed);
} feed SEC(".maps");

struct {
	MAP_INT(type, BPF_MAP_TYPE_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, ap_u32);
	MAP_TYPE(value, struct ap_tuning);
} tuning SEC(".maps");

/* What all flows count together. */
struct totals {
	ap_u64 interval;
	/* Flows that sent in an interval, by its number modulo 4. */
	ap_u64 active[4];
	ap_u64 flows_begun;
	ap_u64 acks;
	ap_u64 sends;
	ap_u64 fallbacks;
	ap_u64 returns;
	/* Of the fallbacks, those because the radio fell silent. */
	ap_u64 silences;
};

struct {
	MAP_INT(type, BPF_MAP_TYPE_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_INT(map_flags, BPF_F_MMAPABLE);
	MAP_TYPE(key, ap_u32);
	MAP_TYPE(value, struct totals);
} totals SEC(".maps");

struct flow {
	struct biscay b;
	ap_u64 delivered;
	ap_u64 bytes_sent;
	ap_u64 interval;
	ap_u32 last_delivered;
	ap_u32 last_state;
};

struct {
	MAP_INT(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_INT(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct flow);
} flows SEC(".maps");

static const ap_u32 zero;

AP_FN ap_u64 wire_bytes(const struct sock *sk, const struct tcp_sock *tp)
{
	ap_u64 ip = sk->__sk_common.skc_family == AF_INET6 ? 40 : 20;

	return (ap_u64)tp->mss_cache + tp->tcp_header_len + ip;
}

AP_FN ap_u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* The flows that sent in the last interval, this one included. Notes that this one sends. */
AP_FN ap_u64 count_flows(struct flow *f, struct totals *all, ap_u64 now)
{
	ap_u64 interval = now / AP_COUNT_EVERY, before = all->interval;

	if (before < interval && __sync_val_compare_and_swap(&all->interval, before, interval) == before) {
		all->active[(interval + 1) & 3] = 0;
		if (before + 1 != interval) {
			all->active[(interval - 1) & 3] = 0;
			all->active[interval & 3] = 0;
		}
	}
	if (f->interval != interval) {
		f->interval = interval;
		__sync_fetch_and_add(&all->active[interval & 3], 1);
	}
	/* Flows that have just begun are seen at once, those that ended, after an interval. */
	return ap_max(ap_max(all->active[(interval - 1) & 3], all->active[interval & 3]), 1);
}

/* What the radio says. */
AP_FN void read_radio(struct biscay_radio *r, ap_u64 now, ap_u64 count)
{
	volatile struct ap_feed *seen = bpf_map_lookup_elem(&feed, &zero);
	volatile struct ap_told *told;
	ap_u64 before, time, bandwidth, burst;
	ap_u32 num, den;
	int tries;

	r->bandwidth = AP_NONE;
	r->burst = 0;
	r->share_num = 1;
	r->share_den = ap_min(count, 0xffff);
	if (!seen)
		return;
	for (tries = 0; tries < 4; tries++) {
		before = seen->sequence;
		told = &seen->told[before & 1];
		time = told->time;
		bandwidth = told->bandwidth;
		burst = told->burst;
		num = told->share_num;
		den = told->share_den;
		if (seen->sequence != before)
			continue;
		/* A time in the future is of a feeder that has no clock: it is not believed. */
		if (time == 0 || time > now + AP_MS || now > time + AP_FEED_MAX_AGE)
			return;
		r->bandwidth = bandwidth;
		r->burst = burst;
		if (num && num <= den && den < (1 << 24)) {
			r->share_num = num;
			r->share_den = den;
		}
		return;
	}
}

/* BBR takes over with what BISCAY measured, and drains first, instead of its own start. */
AP_FN void hand_over(struct sock *sk, struct tcp_sock *tp, struct flow *f, ap_u64 wire)
{
	char *priv = (char *)tp->inet_conn.icsk_ca_priv;
	struct bbr *bbr = 0;
	ap_u64 packets;
	ap_u32 shift;

	bbr_init(sk);
	if (!f->b.end_to_end || !f->b.path_is_full)
		return;
	/* Source: Linux net/ipv4/tcp_bbr.c (BW_SCALE: packets per microsecond, times 2^24) */
	packets = (f->b.end_to_end << 21) / (wire * 1000000);
	*(ap_u32 *)(priv + FIELD_BYTE_OFFSET(bbr->bw) + 4) = packets;
	*(ap_u32 *)(priv + FIELD_BYTE_OFFSET(bbr->bw) + 12) = packets;
	*(ap_u32 *)(priv + FIELD_BYTE_OFFSET(bbr->bw) + 20) = packets;
	shift = 63 - FIELD_LSHIFT_U64(bbr->full_bw_reached);
	*(ap_u32 *)(priv + FIELD_BYTE_OFFSET(bbr->full_bw_reached)) |= 1U << (shift & 31);
}

/* Gives the answer to the kernel. In FALLBACK, BBR does. */
AP_FN void apply(struct sock *sk, struct tcp_sock *tp, struct flow *f, struct totals *all, ap_u64 wire)
{
	ap_u64 rate;

	if (f->b.state == BISCAY_FALLBACK) {
		if (f->last_state != BISCAY_FALLBACK) {
			__sync_fetch_and_add(&all->fallbacks, 1);
			if (f->b.cellular == AP_NONE)
				__sync_fetch_and_add(&all->silences, 1);
			hand_over(sk, tp, f, wire);
		}
		f->last_state = BISCAY_FALLBACK;
		return;
	}
	if (f->last_state == BISCAY_FALLBACK)
		__sync_fetch_and_add(&all->returns, 1);
	f->last_state = f->b.state;
	tp->snd_cwnd = ap_min(ap_max(f->b.cwnd / wire, 2), tp->snd_cwnd_clamp);
	if (f->b.pacing) {
		rate = ap_scaled(f->b.pacing / 8, tp->mss_cache, wire);
		sk->sk_pacing_rate = ap_max(rate, 1);
	}
}

/* The bytes that left since the last look. */
AP_FN void note_sent(struct flow *f, struct tcp_sock *tp, ap_u64 now, ap_u64 wire)
{
	ap_u64 sent = tp->bytes_sent, bytes = sent - f->bytes_sent;

	f->bytes_sent = sent;
	if (bytes)
		biscay_on_sent(&f->b, now, ap_scaled(ap_min(bytes, AP_MOST_BYTES), wire, ap_max(tp->mss_cache, 1)), 0,
			       tp->app_limited != 0);
}

SEC("struct_ops/biscay_init_flow")
int biscay_init_flow(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct totals *all = bpf_map_lookup_elem(&totals, &zero);
	struct flow *f;

	/* What is left of an earlier time under this control says nothing now; new storage is zero. */
	bpf_sk_storage_delete(&flows, sk);
	f = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	/* It also gives the rate of the first window. Without memory for the flow, it is all that controls. */
	bbr_init(sk);
	if (!f || !all)
		return 0;
	biscay_init(&f->b, wire_bytes(sk, tp));
	f->last_delivered = tp->delivered;
	f->delivered = tp->delivered;
	f->b.next_round = f->delivered;
	f->bytes_sent = tp->bytes_sent;
	__sync_fetch_and_add(&all->flows_begun, 1);
	return 0;
}

SEC("struct_ops/biscay_cong_control")
int biscay_cong_control(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct totals *all = bpf_map_lookup_elem(&totals, &zero);
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);
	ap_u64 now = bpf_ktime_get_ns(), wire;
	struct ap_tuning *t = bpf_map_lookup_elem(&tuning, &zero);
	struct rate_sample *rs;
	struct biscay_radio radio;
	struct biscay_ack ack;
	ap_u32 step;

	/* By hand: the compiler would compute the argument's address, which the verifier refuses. */
	if (sample_argument == 3)
		asm volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(rs) : "r"(ctx));
	else
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(rs) : "r"(ctx));
	if (!f || !all || !t) {
		bbr_main(sk, 0, 0, rs);
		return 0;
	}
	__sync_fetch_and_add(&all->acks, 1);
	wire = wire_bytes(sk, tp);
	f->b.mss = wire;
	read_radio(&radio, now, count_flows(f, all, now));
	note_sent(f, tp, now, wire);
	if (rs->losses > 0)
		biscay_on_loss(&f->b, t, (ap_u64)(ap_u32)rs->losses * wire, 0, &radio);
	step = tp->delivered - f->last_delivered;
	f->last_delivered = tp->delivered;
	f->delivered += step;
	if (rs->acked_sacked > 0) {
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
		biscay_on_ack(&f->b, t, &ack, &radio);
	}
	apply(sk, tp, f, all, wire);
	if (f->b.state == BISCAY_FALLBACK)
		bbr_main(sk, 0, 0, rs);
	return 0;
}

SEC("struct_ops/biscay_min_tso_segs")
int biscay_min_tso_segs(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct totals *all = bpf_map_lookup_elem(&totals, &zero);
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);
	struct ap_tuning *t = bpf_map_lookup_elem(&tuning, &zero);
	ap_u64 now = bpf_ktime_get_ns(), wire;
	struct biscay_radio radio;

	if (!f || !all || !t)
		return bbr_min_tso_segs(sk);
	__sync_fetch_and_add(&all->sends, 1);
	wire = wire_bytes(sk, tp);
	read_radio(&radio, now, count_flows(f, all, now));
	note_sent(f, tp, now, wire);
	biscay_before_send(&f->b, t, now, &radio);
	apply(sk, tp, f, all, wire);
	if (f->b.state == BISCAY_FALLBACK)
		return bbr_min_tso_segs(sk);
	/* Source: Linux net/ipv4/tcp_bbr.c (bbr_min_tso_segs) */
	return f->b.pacing < 1200000 ? 1 : 2;
}

SEC("struct_ops/biscay_set_state")
void biscay_set_state(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	ap_u8 state = ctx[1];
	struct totals *all = bpf_map_lookup_elem(&totals, &zero);
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);
	struct ap_tuning *t = bpf_map_lookup_elem(&tuning, &zero);
	struct biscay_radio none = { .bandwidth = AP_NONE, .share_num = 1, .share_den = 1 };

	if (!f || !all || !t || f->b.state == BISCAY_FALLBACK) {
		bbr_set_state(sk, state);
		return;
	}
	if (state == TCP_CA_Loss) {
		/* Everything outstanding counts as lost: nothing is known until the next ACK. */
		biscay_on_loss(&f->b, t, 0, 1, &none);
		apply(sk, tp, f, all, wire_bytes(sk, tp));
	}
}

SEC("struct_ops/biscay_cwnd_event")
void biscay_cwnd_event(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	enum tcp_ca_event event = ctx[1];
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);

	if (!f || f->b.state == BISCAY_FALLBACK) {
		bbr_cwnd_event(sk, event);
		return;
	}
	if (event == CA_EVENT_TX_START)
		biscay_on_sent(&f->b, bpf_ktime_get_ns(), 0, 1, f->b.was_idle);
}

SEC("struct_ops/biscay_ssthresh")
int biscay_ssthresh(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);

	if (!f || f->b.state == BISCAY_FALLBACK)
		return bbr_ssthresh(sk);
	/* The window is not for the loss to decide. */
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

SEC("struct_ops/biscay_undo_cwnd")
int biscay_undo_cwnd(ap_u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);

	if (!f || f->b.state == BISCAY_FALLBACK)
		return bbr_undo_cwnd(sk);
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

SEC("struct_ops/biscay_sndbuf_expand")
int biscay_sndbuf_expand(ap_u64 *ctx)
{
	return bbr_sndbuf_expand((struct sock *)ctx[0]);
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
