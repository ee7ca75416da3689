/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What a feeder told last. */
#ifndef AIRPACE_FEED_H
#define AIRPACE_FEED_H

#include "intf.h"

/* Reads it. Returns whether there is anything, and it is not too old. */
AP_FN int read_told(struct ap_feed *feed, ap_u64 now, struct ap_told *out)
{
	volatile struct ap_feed *seen = feed;
	volatile struct ap_told *told;
	ap_u64 before;
	int tries;

	for (tries = 0; tries < 4; tries++) {
		before = seen->sequence;
		told = &seen->told[before & 1];
		out->time = told->time;
		out->bandwidth = told->bandwidth;
		out->burst = told->burst;
		out->share_num = told->share_num;
		out->share_den = told->share_den;
		if (AP_RARE(seen->sequence != before))
			continue;
		/*
		 * A time in the future is of a feeder that has no clock, and is not believed. But `now` is when the kernel
		 * began with an ACK, or to send, and a process may be held up meanwhile.
		 */
		return out->time && out->time <= now + AP_FEED_MAX_AGE && now <= out->time + AP_FEED_MAX_AGE;
	}
	return 0;
}

#endif
