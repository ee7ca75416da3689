/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Functions for sockets that all programs use, and the counters of all flows.
 *
 * No function here reads a clock: they use the time that the kernel read when the ACK arrived or when it started to
 * send.
 */
#ifndef AIRPACE_SOCK_H
#define AIRPACE_SOCK_H

#include "kernel.h"

struct ap_totals totals SEC(".data.totals");

/*
 * Pacing rate (bytes per second) below which packets are sent one at a time.
 *
 * Source: Linux net/ipv4/tcp_bbr.c (bbr_min_tso_segs: 1.2 Mbit/s)
 */
#define SLOW_RATE 150000

/* Counters of a flow that were not yet added to the totals, and the flow's last counting interval. */
struct counted {
	/* The end of the interval in which the flow last sent. */
	ap_u64 until;
	ap_u64 interval;
	ap_u32 acks;
	ap_u32 sends;
};

/* Time at which the kernel started to process this ACK or this send. CLOCK_MONOTONIC, in nanoseconds. */
AP_FN ap_u64 now_of(const struct tcp_sock *tp)
{
	return tp->tcp_clock_cache;
}

/* Length of an IP header in bytes. */
AP_FN ap_u64 ip_header(const struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_INET6 ? 40 : 20;
}

/* Length of a full packet with its headers, in bytes. */
AP_FN ap_u64 wire_bytes(const struct sock *sk, const struct tcp_sock *tp)
{
	return (ap_u64)tp->mss_cache + tp->tcp_header_len + ip_header(sk);
}

/* Whether the connection's time stamps count microseconds instead of milliseconds, which can be set per route. */
AP_FN int stamps_are_microseconds(const struct tcp_sock *tp)
{
	ap_u64 word = 0;

	if (!FIELD_EXISTS(tp->tcp_usec_ts))
		return 0;
	bpf_probe_read_kernel(&word, sizeof(word), (const char *)tp + FIELD_BYTE_OFFSET(tp->tcp_usec_ts));
	return (word << FIELD_LSHIFT_U64(tp->tcp_usec_ts)) >> 63;
}

AP_FN ap_u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* The payload's fraction of full packets of `wire` bytes, in units of 2^-16. */
AP_FN ap_u64 payload_part(const struct tcp_sock *tp, ap_u64 wire)
{
	return ((ap_u64)tp->mss_cache << 16) / ap_max(wire, 1);
}

/*
 * Sets the pacing rate. `rate` is the rate of whole packets, in bit/s; the kernel's pacing rate is the rate of payload,
 * in bytes per second. The application's limit (SO_MAX_PACING_RATE) applies and may change at any time, so this
 * function is called at each decision.
 */
AP_FN void pace(struct sock *sk, ap_u64 rate, ap_u64 part)
{
	sk->sk_pacing_rate = ap_min(ap_max(((rate >> 3) * part) >> 16, 1), sk->sk_max_pacing_rate);
}

/*
 * Adds the flow's counters to the totals. All processors share the totals, so this function is not called at every ACK.
 */
AP_FN void tell_totals(struct counted *c)
{
	if (c->acks)
		__sync_fetch_and_add(&totals.acks, c->acks);
	if (c->sends)
		__sync_fetch_and_add(&totals.sends, c->sends);
	c->acks = c->sends = 0;
}

/* Starts a new interval for this flow, and if necessary for all flows. */
static __attribute__((noinline, unused)) int begin_interval(struct counted *c, ap_u64 now)
{
	ap_u64 interval = now / AP_COUNT_EVERY, before = totals.interval;

	if (before < interval && __sync_val_compare_and_swap(&totals.interval, before, interval) == before) {
		totals.active[(interval + 1) & 3] = 0;
		if (before + 1 != interval) {
			totals.active[(interval - 1) & 3] = 0;
			totals.active[interval & 3] = 0;
		}
	}
	if (c->interval != interval) {
		c->interval = interval;
		__sync_fetch_and_add(&totals.active[interval & 3], 1);
	}
	c->until = (interval + 1) * AP_COUNT_EVERY;
	tell_totals(c);
	return 0;
}

/* Records that this flow sends. */
AP_FN void note_flow(struct counted *c, ap_u64 now)
{
	if (AP_RARE(now >= c->until))
		begin_interval(c, now);
}

/* Number of flows that sent in the last interval, including this flow. */
AP_FN ap_u64 count_flows(const struct counted *c)
{
	/*
	 * The maximum over two intervals is used: new flows count at once, and ended flows count for one more interval.
	 */
	return ap_max(ap_max(totals.active[(c->interval - 1) & 3], totals.active[c->interval & 3]), 1);
}

#endif
