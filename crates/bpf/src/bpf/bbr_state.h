/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* State, inputs and constants of BBR's C port. bbr.h contains the rules. */
#ifndef AIRPACE_BBR_STATE_H
#define AIRPACE_BBR_STATE_H

#include "intf.h"

enum ibbr_state { IBBR_STARTUP, IBBR_DRAIN, IBBR_PROBE_BW, IBBR_PROBE_RTT };

/* Gains are in units of 1/IBBR_UNIT; 2.885 is 2 / ln 2. */
#define IBBR_UNIT 1000
#define IBBR_HIGH 2885
/* Linux's values: fraction of the bandwidth that is sent (99 %), window gain in ProbeBW, and gain of a probe. */
#define IBBR_SENT 990
#define IBBR_WINDOW 2000
#define IBBR_PROBE 1250
#define IBBR_PHASES 8
#define IBBR_INITIAL_PACKETS 10
#define IBBR_MIN_PACKETS 4
#define IBBR_BTLBW_ROUNDS 10
#define IBBR_RTPROP_WINDOW (10 * AP_SECOND)
#define IBBR_PROBE_RTT_SPAN (200 * AP_MS)
#define IBBR_SLACK_RTPROPS 4
#define IBBR_EXTRA_ROUNDS 5
#define IBBR_EXTRA_CAP (100 * AP_MS)
#define IBBR_EPOCH_LIMIT ((1ULL << 20) * 1500)
/*
 * Policer detection: minimum and maximum number of rounds of an interval; number of rounds for which the policer's rate
 * is used; maximum difference of two rates that count as equal, bit/s.
 */
#define IBBR_LT_ROUNDS 4
#define IBBR_LT_MAX_ROUNDS 16
#define IBBR_LT_USE_ROUNDS 48
#define IBBR_LT_SAME_RATE 4000

struct ibbr_ack {
	ap_u64 now;
	ap_u64 acked;
	ap_u64 prior_inflight;
	ap_u64 inflight;
	ap_u64 delivered;
	/* `delivered` when the newest acknowledged packet was sent */
	ap_u64 prior_delivered;
	/* round-trip time of the ACK, ns; AP_NONE if the ACK gives no sample */
	ap_u64 rtt;
	ap_u64 smoothed;
	ap_u64 rate;
	ap_u64 app_limited;
	/* Send time of the newest packet. */
	ap_u64 newest_sent;
	/* Number of the transport's completed recoveries. */
	ap_u64 recovered;
};

/* Configuration. */
struct ibbr_tuning {
	/* Window gain in ProbeBW, and fraction of the bandwidth that is sent: units of 1/IBBR_UNIT. */
	ap_u64 window;
	ap_u64 sent;
	/* Time added to RTprop in the window of ProbeBW. */
	ap_u64 slack;
	/* Whether RTprop is the minimum of a sliding window, instead of the minimum since its last renewal. */
	ap_u64 is_sliding;
	ap_u64 finds_policers;
};

/* Bandwidth probes: gain in units of 1/IBBR_UNIT, maximum rate, and whether probes continue while BtlBw grows. */
struct ibbr_probe {
	ap_u64 gain;
	ap_u64 cap;
	ap_u64 while_growing;
};

/*
 * The members that every ACK uses are first, so that they share cache lines: a cache miss takes longer than the
 * arithmetic.
 */
struct ibbr {
	ap_u64 mss;
	ap_u64 state;
	/* the model */
	ap_u64 rounds;
	ap_u64 next_round;
	ap_u64 held_since;
	ap_u64 held_until;
	struct ap_window btlbw;
	/* minimum round-trip time, ns; AP_NONE before the first sample */
	ap_u64 rtprop;
	ap_u64 rtprop_at;
	/* windowed minimum of the round-trip time, used if `is_sliding` */
	struct ap_window least;
	/* ACK aggregation */
	ap_u64 epoch;
	ap_u64 epoch_acked;
	ap_u64 buckets[2];
	ap_u32 bucket;
	ap_u32 bucket_rounds;
	ap_u32 conserving;
	ap_u32 recovery_began;
	/*
	 * Random start phases of the next cycles of ProbeBW, as digits to base IBBR_PHASES - 1, least significant digit
	 * first. The digit is the phase, or the phase minus one if the phase is above zero. `draws` is the number of
	 * digits used.
	 */
	ap_u64 random;
	ap_u64 draws;
	/*
	 * The policer's rate (AP_NONE: no policer was detected). `lt_obeyed` is the number of rounds for which this
	 * rate was used (AP_NONE: it is not in use).
	 */
	ap_u64 lt_rate;
	ap_u64 lt_obeyed;
	struct ibbr_tuning tuning;

	/*
	 * The members from here on are used only while BBR controls the flow. BBR's decision: window in bytes, pacing
	 * rate in bit/s.
	 */
	ap_u64 cwnd;
	ap_u64 pacing;
	ap_u64 phase;
	ap_u64 phase_since;
	/* BtlBw at the start of the last probe */
	ap_u64 probed_from;
	struct ibbr_probe probe;
	ap_u64 is_full;
	/* the window */
	ap_u64 prior_cwnd;
	/* Recovery ends when this many of the transport's recoveries are complete; AP_NONE: not in recovery. */
	ap_u64 recovery_end;
	ap_u64 lost;
	ap_u64 lost_at_last_ack;
	ap_u64 from_idle;
	ap_u64 has_seen_rtt;
	ap_u64 was_idle;
	ap_u64 rtt_probed;
	/* ProbeRTT: end of the hold time; AP_NONE until the window has drained */
	ap_u64 probe_until;
	ap_u64 probe_round_done;
	/* detection of the end of Startup */
	ap_u64 baseline;
	ap_u64 flat_rounds;
	/* policer detection: start of the interval; AP_NONE: no interval is being sampled */
	ap_u64 lt_since;
	ap_u64 lt_delivered;
	ap_u64 lt_lost;
	ap_u64 lt_rounds;
};

#endif
