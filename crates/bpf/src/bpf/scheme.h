/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Code that the programs of all schemes share: options, per-flow storage, the window after a loss, and the congestion
 * control of a flow whose socket has no per-flow storage.
 */
#ifndef AIRPACE_SCHEME_H
#define AIRPACE_SCHEME_H

#include "sock.h"

/*
 * Defines options of a type, and `options()` to read them.
 *
 * The loader freezes the options before the programs load, so that the verifier can use their values as constants. They
 * are volatile so that the compiler does not assume the zeros of this definition.
 */
#define AP_OPTIONS(type) \
	const volatile struct type tuning SEC(".rodata.tuning"); \
	AP_FN const struct type *options(void) \
	{ \
		const struct type *t = (const struct type *)&tuning; \
		asm volatile("" : "+r"(t)); \
		return t; \
	}

/* Storage attached to sockets. */
#define AP_AT_SOCKETS(map, what) \
	struct { \
		MAP_INT(type, BPF_MAP_TYPE_SK_STORAGE); \
		MAP_INT(map_flags, BPF_F_NO_PREALLOC); \
		MAP_TYPE(key, int); \
		MAP_TYPE(value, what); \
	} map SEC(".maps")

/*
 * Value of snd_cwnd_cnt that marks icsk_ca_priv as the scheme's data instead of BBR's. While the scheme is in use, no
 * other congestion control reads snd_cwnd_cnt. If a send changes nothing, the lookup of the flow's storage would take
 * longer than all other work of the send. The data needed to detect this case is therefore stored in icsk_ca_priv.
 */
#define MARK 0xb15ca000U

/*
 * Controller of a flow: the scheme itself; BBR as its fallback; or, without per-flow storage, a congestion control that
 * needs no storage.
 */
enum who { OWN, FALLBACK, BARE };

/*
 * Without per-flow storage, the kernel's BBR controls the flow, or Reno if BBR is not available. For Reno, the last
 * state that the kernel reported is stored.
 */
AP_FN ap_u32 *bare_state(struct tcp_sock *tp)
{
	return (ap_u32 *)tp->inet_conn.icsk_ca_priv;
}

AP_FN void bare_init(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	tp->snd_cwnd_cnt = 0;
	if (kernel.has_bbr) {
		bbr_init(sk);
		return;
	}
	*bare_state(tp) = TCP_CA_Open;
	/* Reno does not pace: only the window and the application's own limit bound the rate. */
	sk->sk_pacing_rate = sk->sk_max_pacing_rate;
}

/*
 * Reno: slow start, congestion avoidance, and half of the window after a loss.
 *
 * Source: RFC 5681 §3.1; RFC 5681 §3.2
 *
 * Chosen: the window grows if at least half of it was in use, as in RFC 7661 §4.3.
 */
AP_FN void reno_ack(struct tcp_sock *tp, const struct rate_sample *rs)
{
	ap_u32 state = *bare_state(tp), window = tp->snd_cwnd, acked = rs->acked_sacked, count;

	if (state == TCP_CA_CWR || state == TCP_CA_Recovery) {
		tp->snd_cwnd = ap_min(window, ap_max(tp->snd_ssthresh, 2));
		return;
	}
	if (2 * rs->prior_in_flight < window)
		return;
	if (window < tp->snd_ssthresh) {
		tp->snd_cwnd = ap_min(ap_min(window + acked, ap_max(tp->snd_ssthresh, 2)), tp->snd_cwnd_clamp);
		return;
	}
	count = tp->snd_cwnd_cnt + acked;
	if (count >= window) {
		count = 0;
		tp->snd_cwnd = ap_min(window + 1, tp->snd_cwnd_clamp);
	}
	tp->snd_cwnd_cnt = count;
}

AP_FN void bare_ack(struct sock *sk, const struct rate_sample *rs)
{
	if (kernel.has_bbr)
		call_bbr_main(sk, rs);
	else
		reno_ack((struct tcp_sock *)sk, rs);
}

AP_FN ap_u32 bare_min_tso_segs(struct sock *sk)
{
	return kernel.has_bbr ? bbr_min_tso_segs(sk) : 2;
}

/* Number of the transport's completed recoveries, and whether the transport is in recovery. */
struct recoveries {
	ap_u64 over;
	ap_u32 is_in_one;
};

/* Counts a recovery when the transport leaves it for `state`. */
AP_FN void count_recovery(struct recoveries *r, ap_u8 state)
{
	r->over += r->is_in_one && state < TCP_CA_Recovery;
	r->is_in_one = state >= TCP_CA_Recovery;
}

AP_FN void bare_set_state(struct sock *sk, ap_u8 state)
{
	if (kernel.has_bbr)
		bbr_set_state(sk, state);
	else
		*bare_state((struct tcp_sock *)sk) = state;
}

AP_FN void bare_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (kernel.has_bbr)
		bbr_cwnd_event(sk, event);
}

/*
 * The slow-start threshold after a loss. For a scheme or BBR, a loss does not determine the window, so the threshold is
 * the present value.
 */
AP_FN ap_u32 threshold_after_loss(struct sock *sk, enum who who)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (who != OWN && kernel.has_bbr)
		return bbr_ssthresh(sk);
	return who == BARE ? ap_max(tp->snd_cwnd / 2, 2) : tp->snd_ssthresh;
}

/* The window after a loss was found to be spurious. */
AP_FN ap_u32 window_without_loss(struct sock *sk, enum who who)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (who != OWN && kernel.has_bbr)
		return bbr_undo_cwnd(sk);
	return who == BARE ? ap_max(tp->snd_cwnd, tp->prior_cwnd) : tp->snd_cwnd;
}

/*
 * A scheme's programs that depend only on the flow's controller: `who_controls` returns the controller from the flow's
 * storage, or from null.
 */
#define AP_COMMON_PROGRAMS(scheme) \
	SEC("struct_ops/" #scheme "_ssthresh") \
	int scheme##_ssthresh(ap_u64 *ctx) \
	{ \
		struct sock *sk = (struct sock *)ctx[0]; \
		return threshold_after_loss(sk, who_controls(bpf_sk_storage_get(&flows, sk, 0, 0))); \
	} \
	SEC("struct_ops/" #scheme "_undo_cwnd") \
	int scheme##_undo_cwnd(ap_u64 *ctx) \
	{ \
		struct sock *sk = (struct sock *)ctx[0]; \
		return window_without_loss(sk, who_controls(bpf_sk_storage_get(&flows, sk, 0, 0))); \
	} \
	/* Source: Linux net/ipv4/tcp_bbr.c (bbr_sndbuf_expand) */ \
	SEC("struct_ops/" #scheme "_sndbuf_expand") \
	int scheme##_sndbuf_expand(ap_u64 *ctx __attribute__((unused))) \
	{ \
		return 3; \
	}

#endif
