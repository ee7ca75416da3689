/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Size of the queue that the flow keeps in the base station: the C port of crates/cc/src/pbe/buffer.rs, which documents the
 * reason of each rule.
 *
 * Source: PBE-CC §7
 */
#ifndef AIRPACE_PBE_BUFFER_H
#define AIRPACE_PBE_BUFFER_H

#include "pbe_state.h"

/* The target queueing delay in ns. `goal` is the option `buffer`. */
AP_FN ap_u64 pbe_buffer_target(const struct pbe_buffer *b, ap_u32 goal)
{
	ap_u64 span = ap_min(b->span, PBE_BUFFER_MAX_SPAN);

	if (goal != AP_PBE_ADAPTIVE)
		return goal * AP_US;
	return ap_min(span * b->rises / (PBE_BUFFER_SPANS * PBE_BUFFER_UNIT / PBE_BUFFER_GAIN), PBE_BUFFER_MAX);
}

AP_FN void pbe_buffer_init(struct pbe_buffer *b, ap_u32 goal)
{
	b->least_rtt = AP_NONE;
	b->target = pbe_buffer_target(b, goal);
}

/* Ends a span, because enough rounds have passed. */
AP_FN void pbe_buffer_span(struct pbe_buffer *b, ap_u32 goal, ap_u64 span)
{
	ap_u64 mean = b->sum / ap_max(b->count, 1), rise;

	b->span = span;
	if (b->before) {
		rise = ap_min(ap_less(mean, b->before), b->before) * PBE_BUFFER_UNIT / b->before;
		b->rises += rise - b->rises / PBE_BUFFER_SPANS;
	}
	b->before = mean;
	b->sum = b->count = b->rounds = 0;
	b->target = pbe_buffer_target(b, goal);
}

/* Ends a round. */
AP_CALL int pbe_buffer_round(struct pbe_buffer *b, ap_u32 goal, ap_u64 rtprop)
{
	ap_u64 span;

	if (!b)
		return 0;
	b->rtprop = rtprop;
	if (b->least_rtt != AP_NONE)
		b->queue = ap_less(b->least_rtt, rtprop);
	b->least_rtt = AP_NONE;
	span = rtprop * ++b->rounds;
	if (span >= PBE_BUFFER_MIN_SPAN)
		pbe_buffer_span(b, goal, span);
	return 0;
}

/* Processes an ACK with the capacity that it reports. */
AP_FN void pbe_buffer_ack(struct pbe_buffer *b, ap_u32 goal, int round_start, ap_u64 capacity, ap_u64 rtt, ap_u64 rtprop)
{
	if (round_start)
		pbe_buffer_round(b, goal, rtprop);
	b->sum += capacity;
	b->count++;
	b->least_rtt = ap_min(b->least_rtt, rtt);
}

/* The rate at which the queue reaches its target, given this capacity; at most a quarter above the capacity. */
AP_FN ap_u64 pbe_buffer_fill(const struct pbe_buffer *b, ap_u64 capacity)
{
	ap_u64 missing = ap_less(b->target, b->queue);

	if (!missing || !b->rtprop)
		return capacity;
	/* The missing queue relative to RTprop, in units of 2^-24. */
	missing = ap_min((missing << 24) / b->rtprop, 1 << 22);
	return capacity + ((capacity * missing + (1 << 23)) >> 24);
}

#endif
