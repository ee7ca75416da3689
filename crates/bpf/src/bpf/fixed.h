/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Arithmetic of the controllers in whole numbers: rates in bit/s, amounts in bytes, times in ns, all unsigned 64-bit.
 *
 * The compiler for BPF has no floating point, no signed 64-bit division and no 128-bit product. So rates and amounts
 * are bounded, and products are taken in parts. The host compiles the same file for the tests.
 *
 * Error against crates/core/src/units.rs: none in ap_bytes_in and ap_rate_of within the bounds; at most 1 in ap_scaled,
 * where a double rounds a tie the other way.
 */
#ifndef AIRPACE_FIXED_H
#define AIRPACE_FIXED_H

typedef unsigned long long ap_u64;
typedef unsigned int ap_u32;

#define AP_FN static inline __attribute__((always_inline, unused))

#define AP_NONE (~0ULL)

#define AP_US 1000ULL
#define AP_MS 1000000ULL
#define AP_SECOND 1000000000ULL

/* A byte is 8 bits, and a bit takes 10^9 ns at 1 bit/s. */
#define AP_BIT_NS_PER_BYTE 8000000000ULL

/* No rate is above this: 17 Gbit/s. Its product with a second in ns fits. */
#define AP_MOST_RATE ((1ULL << 34) - 1)

/* No amount is above this: 2 GiB. Its product with AP_BIT_NS_PER_BYTE fits. */
#define AP_MOST_BYTES ((1ULL << 31) - 1)

/* No time span is above this: 17 minutes. */
#define AP_MOST_SPAN (1ULL << 40)

AP_FN ap_u64 ap_min(ap_u64 a, ap_u64 b)
{
	return a < b ? a : b;
}

AP_FN ap_u64 ap_max(ap_u64 a, ap_u64 b)
{
	return a > b ? a : b;
}

/* a - b, and zero if b is greater. */
AP_FN ap_u64 ap_less(ap_u64 a, ap_u64 b)
{
	return a > b ? a - b : 0;
}

/* What `rate` carries in `span`, rounded down. */
AP_FN ap_u64 ap_bytes_in(ap_u64 rate, ap_u64 span)
{
	ap_u64 seconds, rest, whole;

	rate = ap_min(rate, AP_MOST_RATE);
	span = ap_min(span, AP_MOST_SPAN);
	seconds = span / AP_SECOND;
	rest = span % AP_SECOND;
	whole = rate * seconds;
	return whole / 8 + ((whole % 8) * AP_SECOND + rate * rest) / AP_BIT_NS_PER_BYTE;
}

/* The rate that carries `bytes` in `span`, rounded down; zero if `span` is zero. */
AP_FN ap_u64 ap_rate_of(ap_u64 bytes, ap_u64 span)
{
	if (span == 0)
		return 0;
	return ap_min(ap_min(bytes, AP_MOST_BYTES) * AP_BIT_NS_PER_BYTE / span, AP_MOST_RATE);
}

/* value * num / den, rounded to nearest. value is a rate or an amount; num and den are below 2^28. */
AP_FN ap_u64 ap_scaled(ap_u64 value, ap_u64 num, ap_u64 den)
{
	if (den == 0)
		return 0;
	return (value * num + den / 2) / den;
}

/*
 * The best value of a sliding window by Kathleen Nichols' algorithm: the best one, the best after it, and the best after
 * that. crates/cc/src/filter.rs says more.
 */
struct ap_window {
	ap_u64 at[3];
	ap_u64 value[3];
	ap_u64 seen;
};

AP_FN void ap_window_all(struct ap_window *w, ap_u64 now, ap_u64 value)
{
	w->at[0] = w->at[1] = w->at[2] = now;
	w->value[0] = w->value[1] = w->value[2] = value;
	w->seen = 1;
}

/* The best value, and AP_NONE before the first. */
AP_FN ap_u64 ap_window_best(const struct ap_window *w)
{
	return w->seen ? w->value[0] : AP_NONE;
}

AP_FN int ap_as_good(ap_u64 new_value, ap_u64 old_value, int greatest)
{
	return greatest ? new_value >= old_value : new_value <= old_value;
}

AP_FN void ap_window_update(struct ap_window *w, ap_u64 now, ap_u64 value, ap_u64 length, int greatest)
{
	ap_u64 age;

	if (!w->seen || ap_as_good(value, w->value[0], greatest) || ap_less(now, w->at[2]) > length) {
		ap_window_all(w, now, value);
		return;
	}
	if (ap_as_good(value, w->value[1], greatest)) {
		w->at[1] = w->at[2] = now;
		w->value[1] = w->value[2] = value;
	} else if (ap_as_good(value, w->value[2], greatest)) {
		w->at[2] = now;
		w->value[2] = value;
	}
	age = ap_less(now, w->at[0]);
	if (age > length) {
		/* The best sample has left the window, and the second may have left too. */
		w->at[0] = w->at[1];
		w->value[0] = w->value[1];
		w->at[1] = w->at[2];
		w->value[1] = w->value[2];
		w->at[2] = now;
		w->value[2] = value;
		if (ap_less(now, w->at[0]) > length) {
			w->at[0] = w->at[1];
			w->value[0] = w->value[1];
			w->at[1] = w->at[2];
			w->value[1] = w->value[2];
		}
	} else if (w->at[1] == w->at[0] && age > length / 4) {
		w->at[1] = w->at[2] = now;
		w->value[1] = w->value[2] = value;
	} else if (w->at[2] == w->at[1] && age > length / 2) {
		w->at[2] = now;
		w->value[2] = value;
	}
}

#endif
