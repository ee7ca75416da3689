/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What user space and the programs in the kernel share: the mapped arrays. Both sides compile this file; the Rust side
 * has the same layouts in feed.rs and twin.rs, and a test compares sizes and offsets.
 */
#ifndef AIRPACE_INTF_H
#define AIRPACE_INTF_H

#include "fixed.h"

/* No loader writes into programs of another layout. */
#define AP_LAYOUT 1

/* A radio's bandwidth that is older than this is not used: FALLBACK at once. */
#define AP_FEED_MAX_AGE (100 * AP_MS)

/* Flows count as active if they sent bytes in the last interval of this length. */
#define AP_COUNT_EVERY (100 * AP_MS)

/* What the feeder tells at one time. */
struct ap_told {
	/* CLOCK_MONOTONIC at the time of writing; zero: never written. */
	ap_u64 time;
	/* Bandwidth of the device's uplink in bit/s; AP_NONE if unknown. */
	ap_u64 bandwidth;
	/* The rate of the most that was granted in a frame of 10 ms, in bit/s; zero if unknown. */
	ap_u64 burst;
	/* Each flow's part of it is share_num / share_den, both below 2^24. share_num = 0: the programs count flows. */
	ap_u32 share_num;
	ap_u32 share_den;
};

/*
 * Entry 0 of the mapped array `feed`. What is valid lies in told[sequence % 2]. The writer fills the other one and then
 * adds one to the sequence, so that a writer that is interrupted, or dies, leaves what was valid before. A reader that
 * finds another sequence afterwards reads again.
 */
struct ap_feed {
	ap_u64 sequence;
	ap_u64 reserved;
	struct ap_told told[2];
};

/* Options. Entry 0 of the array `tuning`; the meanings and defaults are those of crates/cc/src/biscay.rs. */
struct ap_tuning {
	/* ns */
	ap_u64 slack;
	ap_u64 lag;
	ap_u64 stale_after;
	ap_u64 rtt_window;
	/* Packets in the window beyond those of the slack. */
	ap_u32 packets;
	ap_u32 bunching;
	ap_u32 hold;
	/* 0: first, 1: full, 2: bursts */
	ap_u32 startup;
	/* Percent. */
	ap_u32 pacing_startup;
	ap_u32 pacing;
	ap_u32 margin;
	ap_u32 tolerance;
};

#endif
