/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The controller of a BISCAY flow in FALLBACK: the kernel's own BBR if programs can call the kernel's BBR, otherwise
 * bbr.h. The loader sets `kernel.has_bbr` before the programs load, so that the verifier checks only the selected
 * controller.
 */
#ifndef AIRPACE_FALLBACK_H
#define AIRPACE_FALLBACK_H

#include "scheme.h"
#include "bbr.h"

/* Writes the known bandwidth into the state of the kernel's BBR (icsk_ca_priv) when BBR takes over. */
AP_FN void tell_kernel_bbr(struct tcp_sock *tp, ap_u64 btlbw, ap_u64 wire)
{
	char *priv = (char *)tp->inet_conn.icsk_ca_priv;
	struct bbr *bbr = 0;
	ap_u64 packets;
	ap_u32 shift;

	/* Source: Linux net/ipv4/tcp_bbr.c (BW_SCALE: packets per microsecond, times 2^24) */
	packets = (btlbw << 21) / (wire * 1000000);
	*(ap_u32 *)(priv + FIELD_BYTE_OFFSET(bbr->bw) + 4) = packets;
	*(ap_u32 *)(priv + FIELD_BYTE_OFFSET(bbr->bw) + 12) = packets;
	*(ap_u32 *)(priv + FIELD_BYTE_OFFSET(bbr->bw) + 20) = packets;
	shift = 63 - FIELD_LSHIFT_U64(bbr->full_bw_reached);
	*(ap_u32 *)(priv + FIELD_BYTE_OFFSET(bbr->full_bw_reached)) |= 1U << (shift & 31);
}

/* Applies the decision of bbr.h in the kernel. */
AP_FN void apply_own_bbr(struct sock *sk, struct tcp_sock *tp, const struct ibbr *b, ap_u64 wire)
{
	tp->snd_cwnd = ap_min(ap_max(b->cwnd / wire, 1), tp->snd_cwnd_clamp);
	pace(sk, ap_max(b->pacing, ibbr_least_rate(b)), payload_part(tp, wire));
}

/* Initializes the fallback of a new flow. */
AP_FN void fallback_init(struct sock *sk, struct ibbr *b, ap_u64 wire)
{
	if (kernel.has_bbr) {
		bbr_init(sk);
		return;
	}
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	ibbr_init(b, wire);
	pace(sk, b->pacing, payload_part((struct tcp_sock *)sk, wire));
}

/*
 * Lets BBR take over with the known path values: bandwidth, whether this bandwidth filled the path, and round-trip
 * time.
 */
AP_FN void fallback_enter(struct sock *sk, struct ibbr *b, ap_u64 btlbw, ap_u64 rtt, int is_full, ap_u64 wire)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (kernel.has_bbr) {
		bbr_init(sk);
		if (btlbw && is_full)
			tell_kernel_bbr(tp, btlbw, wire);
		return;
	}
	b->random = bpf_get_prandom_u32() % (IBBR_PHASES - 1);
	ibbr_take_over(b, now_of(tp), btlbw, rtt, tp->snd_cwnd * wire, btlbw && is_full);
}

/* Processes an ACK while BBR controls the flow; `a` is null if the ACK acknowledged nothing new. */
AP_FN void fallback_ack(struct sock *sk, struct ibbr *b, const struct rate_sample *rs, const struct ibbr_ack *a,
			ap_u64 recovered, ap_u64 wire)
{
	if (kernel.has_bbr) {
		call_bbr_main(sk, rs);
		return;
	}
	b->mss = wire;
	if (rs->losses > 0)
		ibbr_on_loss(b, (ap_u64)(ap_u32)rs->losses * wire, 0, recovered);
	if (a) {
		b->random = bpf_get_prandom_u32() % (IBBR_PHASES - 1);
		ibbr_on_ack(b, a);
	}
	apply_own_bbr(sk, (struct tcp_sock *)sk, b, wire);
}

AP_FN ap_u32 fallback_min_tso_segs(struct sock *sk)
{
	if (kernel.has_bbr)
		return bbr_min_tso_segs(sk);
	return sk->sk_pacing_rate < SLOW_RATE ? 1 : 2;
}

AP_FN void fallback_set_state(struct sock *sk, struct ibbr *b, ap_u8 state, ap_u64 recovered, ap_u64 wire)
{
	if (kernel.has_bbr) {
		bbr_set_state(sk, state);
	} else if (state == TCP_CA_Loss) {
		ibbr_on_loss(b, 0, 1, recovered);
		apply_own_bbr(sk, (struct tcp_sock *)sk, b, wire);
	}
}

AP_FN void fallback_cwnd_event(struct sock *sk, struct ibbr *b, enum tcp_ca_event event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (kernel.has_bbr)
		bbr_cwnd_event(sk, event);
	else if (event == CA_EVENT_TX_START)
		ibbr_on_sent(b, now_of(tp), 1, tp->app_limited != 0);
}

#endif
