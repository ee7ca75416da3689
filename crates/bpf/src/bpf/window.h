/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The window that a device advertises to a sender that knows nothing of BISCAY: the twin of crates/cc/src/biscay/receiver.rs
 * and echo.rs, which say why each rule is what it is. The kernel's program and the host's tests compile the same file.
 *
 * Source: BISCAY §3.2.4; BISCAY §5.4
 *
 * Error against the Rust twin: a byte or two, where a part of a rate or half of a product rounds the other way.
 */
#ifndef AIRPACE_WINDOW_H
#define AIRPACE_WINDOW_H

#include "biscay.h"
#include "split.h"

/* Round trips that a drain takes. */
#define WINDOW_DRAIN_ROUNDS 2

/* What is known of one download. */
struct window {
	/* The least round-trip time, and the least of the present round and of the last one; AP_NONE before the first. */
	struct ap_window least;
	ap_u64 round_began;
	ap_u64 round_least;
	ap_u64 standing;
	/* The downlink's bandwidth that is in use. */
	ap_u64 held;
	/* There has been a queue on the path. */
	ap_u64 has_begun;
	/* The path is drained until this time, or was last drained until it. */
	ap_u64 drain;
};

AP_FN void window_init(struct window *w)
{
	w->round_least = w->standing = AP_NONE;
}

/* Data arrives that echoes when an ACK left, a round trip ago. */
AP_FN void window_on_echo(struct window *w, const struct ap_tuning *t, ap_u64 now, ap_u64 rtt)
{
	ap_window_update(&w->least, now, rtt, t->rtt_window, 0);
	if (ap_less(now, w->round_began) > rtt) {
		w->round_began = now;
		w->standing = w->round_least == AP_NONE ? rtt : w->round_least;
		w->round_least = AP_NONE;
	}
	w->round_least = ap_min(w->round_least, rtt);
}

/*
 * The window in bytes of packets of `mss` bytes, for this part of the `sampled` bandwidth of the device. AP_NONE: the sender
 * is not limited, as nothing is known of the radio (AP_NONE), or of the path, or the sender has not filled it yet.
 */
AP_FN ap_u64 window_of(struct window *w, const struct ap_tuning *t, ap_u64 now, ap_u64 mss, ap_u64 sampled,
		       const struct split_part *part)
{
	ap_u64 least, carried, period = t->rtt_window / 2;
	int has_queue, may_fall;

	if (!w->least.seen || w->standing == AP_NONE)
		return AP_NONE;
	least = w->least.value[0];
	has_queue = w->standing > least + biscay_queue_threshold(least);
	if (has_queue)
		w->has_begun = 1;
	if (sampled == AP_NONE)
		return AP_NONE;
	sampled = ap_min(sampled, AP_MOST_RATE);
	may_fall = !t->hold || (has_queue && sampled > 0 && now > w->drain + t->lag);
	w->held = may_fall ? sampled : ap_max(w->held, sampled);
	if (t->startup != 0 && !w->has_begun)
		return AP_NONE;
	carried = ap_min(ap_scaled(w->held, part->num, part->den), AP_MOST_RATE);
	if (period && now / period > ap_max(w->least.at[0], w->drain) / period)
		w->drain = now + ap_min(w->standing * WINDOW_DRAIN_ROUNDS, BISCAY_LONGEST_DRAIN);
	if (now < w->drain)
		return ap_max((ap_bytes_in(carried, least) + 1) / 2, BISCAY_LEAST_PACKETS * mss);
	return ap_max(ap_bytes_in(carried, least + t->slack) + t->packets * mss, mss);
}

#endif
