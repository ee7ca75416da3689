/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The window that a device advertises to a sender without BISCAY: the C port of crates/cc/src/biscay/receiver.rs and
 * echo.rs, which document the reason of each rule. The kernel's program and the host's tests compile this file.
 *
 * Source: BISCAY §3.2.4; BISCAY §5.4
 *
 * Difference from the Rust controller: one or two bytes, if a fraction of a rate or half of a product is rounded in the
 * other direction.
 */
#ifndef AIRPACE_WINDOW_H
#define AIRPACE_WINDOW_H

#include "biscay.h"
#include "split.h"

/* Duration of a drain in round trips. */
#define WINDOW_DRAIN_ROUNDS 2

/* State of one download. */
struct window {
	/*
	 * Minimum round-trip time. The next members are the start of the current round, the minimum of the current
	 * round, and the minimum of the last round (AP_NONE before the first round).
	 */
	struct ap_window least;
	ap_u64 round_began;
	ap_u64 round_least;
	ap_u64 standing;
	/* The downlink bandwidth in use, bit/s. */
	ap_u64 held;
	/* Flag: a queue has been observed on the path. */
	ap_u64 has_begun;
	/* End of the current drain or of the last drain. */
	ap_u64 drain;
};

AP_FN void window_init(struct window *w)
{
	w->round_least = w->standing = AP_NONE;
}

/* Processes data that echoes the timestamp of an ACK, which left one round trip ago. */
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
 * The window in bytes, for packets of `mss` bytes and this part of the device's `sampled` bandwidth. AP_NONE: the
 * sender is not limited, because the bandwidth is AP_NONE (unknown), the round-trip time is unknown, or the sender has
 * not filled the path yet.
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
	sampled = ap_min(sampled, AP_MAX_RATE);
	may_fall = !t->hold || (has_queue && sampled > 0 && now > w->drain + t->lag);
	w->held = may_fall ? sampled : ap_max(w->held, sampled);
	if (t->startup != 0 && !w->has_begun)
		return AP_NONE;
	carried = ap_min(ap_scaled(w->held, part->num, part->den), AP_MAX_RATE);
	if (period && now / period > ap_max(w->least.at[0], w->drain) / period)
		w->drain = now + ap_min(w->standing * WINDOW_DRAIN_ROUNDS, BISCAY_MAX_DRAIN);
	if (now < w->drain)
		return ap_max((ap_bytes_in(carried, least) + 1) / 2, BISCAY_MIN_PACKETS * mss);
	return ap_max(ap_bytes_in(carried, least + t->slack) + t->packets * mss, mss);
}

#endif
