/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* State and constants of MORC's C port. morc.h contains the rules. */
#ifndef AIRPACE_MORC_STATE_H
#define AIRPACE_MORC_STATE_H

#include "pcc.h"

enum morc_phase { MORC_STARTING, MORC_ADJUSTING, MORC_DRAINING };

/*
 * Most of these constants have the same names, with the prefix MORC_, in ahead.rs, look.rs, losses.rs, rival.rs and
 * target.rs.
 */
#define MORC_FIRST_PACKETS 10
#define MORC_MIN_PACKETS 5
#define MORC_SLOW_PACKETS 4
#define MORC_MAX_UNKNOWN 2
#define MORC_BLIND_RTT AP_MS
#define MORC_MIN_RTT (AP_MS / 10)
#define MORC_MIN_LOOK (10 * AP_MS)
#define MORC_MIN_EMPTIED (2 * AP_MS)
#define MORC_MAX_DRAIN AP_SECOND
#define MORC_DRAIN_ROUNDS 20
#define MORC_RIVAL_DRAINS 4
#define MORC_RTT_MIN (10 * AP_SECOND)
#define MORC_RTT_MIN_BESIDE_RIVAL (60 * AP_SECOND)
#define MORC_OVERFLOW_PACKETS 3
#define MORC_MEAN_OF 16
#define MORC_MAX_BOOST 12
#define MORC_SURE 3
#define MORC_ENOUGH (2 * MORC_SURE)
#define MORC_CUT_ROUNDS 16
#define MORC_MIN_TARGET (15 * AP_MS)
#define MORC_MAX_TARGET (80 * AP_MS)
#define MORC_MIN_FULL (5 * AP_MS)
/* Maximum estimate of the buffer's size, as a delay: a buffer of this size is longer than any target requires. */
#define MORC_MAX_FULL (8 * AP_SECOND)
/* Minimum rate (bit/s) in the computation of a packet's send time. */
#define MORC_MIN_RATE 1000
/* log2 of the reference rate, 10 Mbit/s, times 2^24 */
#define MORC_LOG2_REFERENCE 390128936
#define MORC_MAX_INTERVAL (60 * AP_SECOND)
/* Unit of gains: 2^-28. */
#define MORC_GAIN (1ULL << 28)
/* Unit of the window while the flow competes with a rival: 1/256 byte. */
#define MORC_PART 256

struct morc_ack {
	ap_u64 now;
	/* bytes */
	ap_u64 acked;
	/* AP_NONE if the ACK gives no sample */
	ap_u64 rtt;
	ap_u64 smoothed;
	ap_u64 variation;
	/* The minimum round-trip time of the connection. */
	ap_u64 least;
	/* Delivery rate in bit/s; AP_NONE if the ACK gives no sample. */
	ap_u64 rate;
	/* The newest acknowledged packet, and the time when it was sent. */
	ap_u64 newest;
	ap_u64 newest_sent;
	/* Whether the application had no more data to send when one of the packets was sent. */
	ap_u64 app_limited;
};

/*
 * The members that every ACK uses are first, so that they share cache lines: a cache miss takes longer than the
 * arithmetic.
 */
struct morc {
	/* The decision: window in bytes, pacing rate in bit/s. */
	ap_u64 cwnd;
	ap_u64 pacing;
	ap_u64 phase;

	/* State of the path and of the monitor intervals' sender. */
	ap_u64 mss;
	ap_u64 rtt;
	ap_u64 rtt_min;
	ap_u64 variation;
	ap_u32 is_known;
	ap_u32 realign;
	ap_u64 last_sent;
	ap_u64 last_bytes;
	ap_u64 last_limited;

	/* evaluation of ACKs; AP_NONE before the first ACK */
	ap_u64 now;
	ap_u64 emptied;
	ap_u64 last_look;
	ap_u64 look_due;
	ap_u64 heard;
	ap_u64 queue_sum;
	ap_u64 samples;
	ap_u64 silent;
	/* minimum round-trip time, ns; AP_NONE before the first sample */
	ap_u64 least;
	ap_u64 queue;
	ap_u64 crest;
	ap_u64 target;
	struct ap_window rtts;
	ap_u64 rtts_length;
	/* competing with a rival: window in units of 1/MORC_PART of a byte, AP_NONE without a rival */
	ap_u64 rival;
	ap_u64 failed;
	ap_u64 overflowed;
	struct ap_morc_tuning tuning;
	struct pcc intervals;

	/*
	 * The members from here on are used only once per interval or evaluation. Slow start: start_rate is zero before
	 * the first interval.
	 */
	ap_u64 start_rate;
	ap_u64 start_unknown;
	ap_u64 start_short;
	/* state of a drain */
	ap_u64 until;
	ap_u64 since;
	ap_u64 drain_from;
	ap_u64 drain_least;
	/* evaluations */
	ap_u64 heard_before;
	ap_u64 span_before;
	ap_u64 was_silent;
	/* State of the target. `dry` is in thousandths; `full` is AP_NONE if no buffer has overflowed. */
	ap_u64 dry;
	ap_u64 full;
	ap_u64 last_cut;
	struct ap_window best;
	ap_u64 resumed;
	ap_u64 received;
	ap_u64 base;
	ap_u64 rate;
	ap_u64 boost;
	ap_u64 arrived;
	ap_u64 is_limited;
	ap_u64 mean_loss;
	/* Number of reports received, up to MORC_MEAN_OF. */
	ap_u64 mean_of;
};

#endif
