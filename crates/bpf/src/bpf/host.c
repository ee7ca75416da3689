/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The twins as functions of the host: what the tests call. */
#include "biscay.h"

ap_u64 ap_host_biscay_words(void)
{
	return (sizeof(struct biscay) + 7) / 8;
}

void ap_host_biscay_init(struct biscay *b, ap_u64 mss)
{
	biscay_init(b, mss);
}

void ap_host_biscay_sent(struct biscay *b, ap_u64 now, ap_u64 bytes, ap_u32 is_first, ap_u32 app_limited)
{
	biscay_on_sent(b, now, bytes, is_first, app_limited);
}

void ap_host_biscay_ack(struct biscay *b, const struct ap_tuning *t, const struct biscay_ack *a,
			const struct biscay_radio *r)
{
	biscay_on_ack(b, t, a, r);
}

void ap_host_biscay_loss(struct biscay *b, const struct ap_tuning *t, ap_u64 lost, ap_u32 is_silence,
			 const struct biscay_radio *r)
{
	biscay_on_loss(b, t, lost, is_silence, r);
}

void ap_host_biscay_before_send(struct biscay *b, const struct ap_tuning *t, ap_u64 now,
				const struct biscay_radio *r)
{
	biscay_before_send(b, t, now, r);
}

/* State, window in bytes, pacing rate in bit/s, end-to-end bandwidth in bit/s. */
void ap_host_biscay_answer(const struct biscay *b, ap_u64 out[4])
{
	out[0] = b->state;
	out[1] = b->cwnd;
	out[2] = b->pacing;
	out[3] = b->end_to_end;
}

ap_u64 ap_host_bytes_in(ap_u64 rate, ap_u64 span)
{
	return ap_bytes_in(rate, span);
}

ap_u64 ap_host_rate_of(ap_u64 bytes, ap_u64 span)
{
	return ap_rate_of(bytes, span);
}

ap_u64 ap_host_scaled(ap_u64 value, ap_u64 num, ap_u64 den)
{
	return ap_scaled(value, num, den);
}

/* Sizes and offsets of what is shared, for a test. */
void ap_host_layout(ap_u64 out[8])
{
	out[0] = AP_LAYOUT;
	out[1] = sizeof(struct ap_feed);
	out[2] = __builtin_offsetof(struct ap_feed, told);
	out[3] = sizeof(struct ap_told);
	out[4] = sizeof(struct ap_tuning);
	out[5] = __builtin_offsetof(struct ap_tuning, tolerance);
	out[6] = sizeof(struct biscay_ack);
	out[7] = sizeof(struct biscay_radio);
}
