/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Integer arithmetic of the controllers: rates in bit/s, amounts in bytes, times in ns, all unsigned 64-bit.
 *
 * The compiler for BPF has no floating point, no signed 64-bit division and no 128-bit product. Rates and amounts are
 * therefore bounded, and products are computed in parts. The host compiles this file for the tests.
 *
 * Differences from crates/core/src/units.rs: none in ap_bytes_in and ap_rate_of within the bounds; at most 1 in
 * ap_scaled, if floating-point arithmetic rounds a tie in the other direction.
 */
#ifndef AIRPACE_FIXED_H
#define AIRPACE_FIXED_H

typedef unsigned long long ap_u64;
typedef unsigned int ap_u32;

#define AP_FN static inline __attribute__((always_inline, unused))

/*
 * Branch hints: AP_USUAL for conditions that hold for nearly every ACK, AP_RARE for conditions that almost never hold. The
 * compiler then lays out the usual path in sequence, without jumps. Between two ACKs the processor's branch predictor loses
 * its state, and each misprediction costs as much as a division.
 */
#define AP_USUAL(x) __builtin_expect(!!(x), 1)
#define AP_RARE(x) __builtin_expect(!!(x), 0)

/*
 * Attribute of a function that the kernel's verifier checks once instead of at each call. The verifier assumes that
 * pointer arguments of such a function may be null.
 *
 * Functions that run at every ACK do not have this attribute: a call takes about 40 ns on machines whose returns are
 * protected against speculation.
 */
#ifdef __bpf__
#define AP_CALL __attribute__((noinline))
#else
#define AP_CALL static __attribute__((unused))
#endif

#define AP_NONE (~0ULL)

#define AP_US 1000ULL
#define AP_MS 1000000ULL
#define AP_SECOND 1000000000ULL

/* A byte is 8 bits, and a bit takes 10^9 ns at 1 bit/s. */
#define AP_BIT_NS_PER_BYTE 8000000000ULL

/* Maximum rate: 17 Gbit/s. The product of this rate and a second in ns fits into 64 bits. */
#define AP_MAX_RATE ((1ULL << 34) - 1)

/* Maximum amount: 2 GiB. The product of this amount and AP_BIT_NS_PER_BYTE fits into 64 bits. */
#define AP_MAX_BYTES ((1ULL << 31) - 1)

/* Maximum time span: 2^40 ns, about 18 minutes. */
#define AP_MAX_SPAN (1ULL << 40)

AP_FN ap_u64 ap_min(ap_u64 a, ap_u64 b)
{
	return a < b ? a : b;
}

AP_FN ap_u64 ap_max(ap_u64 a, ap_u64 b)
{
	return a > b ? a : b;
}

/* The minimum of a and `most`, optimized for values of a that are almost never above `most`. */
AP_FN ap_u64 ap_at_most(ap_u64 a, ap_u64 most)
{
	if (AP_RARE(a > most))
		a = most;
	return a;
}

/* a - b, or zero if b is greater. */
AP_FN ap_u64 ap_less(ap_u64 a, ap_u64 b)
{
	return a > b ? a - b : 0;
}

/*
 * x / AP_BIT_NS_PER_BYTE, rounded down, by multiplications: a division takes as long as all other arithmetic of an ACK.
 *
 * 8 * 10^9 is 2^12 * 5^9, and 2305843009 is 2^52 / 5^9 rounded down. Truncation makes the estimate at most 1.76 too
 * small, so that one correction is enough. The correction uses a borrow instead of a branch, because a branch predictor
 * cannot predict whether it is needed.
 */
AP_FN ap_u64 ap_over_bit_ns(ap_u64 x)
{
	ap_u64 part = x >> 12, estimate = ((part >> 20) * 2305843009ULL) >> 32;

	return estimate + ((1953124 - (part - estimate * 1953125)) >> 63);
}

/*
 * x / 7812500, rounded down, computed as in ap_over_bit_ns: 7812500 is 2^2 * 5^9. For x of 2^54 or more, a division is
 * used.
 */
AP_FN ap_u64 ap_over_7812500(ap_u64 x)
{
	ap_u64 part = x >> 2, estimate;

	if (AP_RARE(part >= 1ULL << 52))
		return part / 1953125;
	estimate = ((part >> 20) * 2305843009ULL) >> 32;
	return estimate + ((1953124 - (part - estimate * 1953125)) >> 63);
}

/*
 * x / 100, rounded down, for x below 2^44, by multiplications. 2748779069 is 2^38 / 100 rounded down, so the estimate is at
 * most 71 too small. For a remainder below 43,699, the division by 100 is a multiplication by 5243 / 2^19.
 */
AP_FN ap_u64 ap_over_100(ap_u64 x)
{
	ap_u64 estimate = ((x >> 12) * 2748779069ULL) >> 26;

	return estimate + (((x - estimate * 100) * 5243) >> 19);
}

/* Bytes that `rate` carries in a `span` of a second or more, rounded down. */
AP_CALL ap_u64 ap_bytes_in_long(ap_u64 rate, ap_u64 span)
{
	ap_u64 seconds, rest, whole;

	span = ap_min(span, AP_MAX_SPAN);
	seconds = span / AP_SECOND;
	rest = span % AP_SECOND;
	whole = rate * seconds;
	return whole / 8 + ((whole % 8) * AP_SECOND + rate * rest) / AP_BIT_NS_PER_BYTE;
}

/* Bytes that `rate` carries in `span`, rounded down. */
AP_FN ap_u64 ap_bytes_in(ap_u64 rate, ap_u64 span)
{
	rate = ap_at_most(rate, AP_MAX_RATE);
	return AP_USUAL(span < AP_SECOND) ? ap_over_bit_ns(rate * span) : ap_bytes_in_long(rate, span);
}

/* The rate that carries `bytes` in `span`, rounded down; zero if `span` is zero. */
AP_FN ap_u64 ap_rate_of(ap_u64 bytes, ap_u64 span)
{
	if (AP_RARE(span == 0))
		return 0;
	return ap_at_most(ap_at_most(bytes, AP_MAX_BYTES) * AP_BIT_NS_PER_BYTE / span, AP_MAX_RATE);
}

/* value * num / den, rounded to nearest. value is a rate or an amount; num and den are below 2^28. */
AP_FN ap_u64 ap_scaled(ap_u64 value, ap_u64 num, ap_u64 den)
{
	if (den == 0)
		return 0;
	return (value * num + den / 2) / den;
}

/*
 * The logarithm to base 2 of `x`, at least 1, times 2^24: the position of the highest bit, followed by one bit of the
 * fraction for each squaring of the remaining factor. The code has no branches, so that the verifier sees one path. The
 * error is below 2^-23.
 */
AP_FN ap_u64 ap_log2(ap_u64 x)
{
	ap_u64 log = 0, rest = ap_min(ap_max(x, 1), (1ULL << 62) - 1), bits = rest, shift;
	int i;

	for (i = 5; i >= 0; i--) {
		/* 2^i if `bits` has more than 2^i bits, otherwise zero. */
		shift = (((1ULL << (1U << i)) - 1 - bits) >> 63) << i;
		log += shift;
		bits >>= shift;
	}
	/* The remaining factor of x, which is in [1, 2), with 31 fractional bits. */
	rest = (rest << (62 - (log & 63))) >> 31;
	for (i = 0; i < 24; i++) {
		rest = (rest * rest) >> 31;
		shift = (rest >> 32) & 1;
		log = log << 1 | shift;
		rest >>= shift;
	}
	return log;
}

/*
 * The best value of a sliding window by Kathleen Nichols' algorithm: the best value, the best value after it, and the best
 * value after the second. crates/cc/src/filter.rs documents the algorithm.
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

/* The best value; AP_NONE before the first sample. */
AP_FN ap_u64 ap_window_best(const struct ap_window *w)
{
	return w->seen ? w->value[0] : AP_NONE;
}

AP_FN int ap_as_good(ap_u64 new_value, ap_u64 old_value, int greatest)
{
	return greatest ? new_value >= old_value : new_value <= old_value;
}

AP_CALL int ap_window_change(struct ap_window *w, ap_u64 now, ap_u64 value, ap_u64 length, int greatest)
{
	ap_u64 age;

	if (!w)
		return 0;
	if (!w->seen || ap_as_good(value, w->value[0], greatest) || ap_less(now, w->at[2]) > length) {
		ap_window_all(w, now, value);
		return 0;
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
		/* The best sample has left the window, and the second sample may have left it too. */
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
	return 0;
}

/*
 * Whether a value that is worse than all three stored values leaves the filter unchanged, because none of the stored
 * values is too old or a copy of another stored value.
 */
AP_FN int ap_window_stays(const struct ap_window *w, ap_u64 now, ap_u64 length)
{
	ap_u64 age = ap_less(now, w->at[0]);

	if (AP_USUAL(age <= length / 4))
		return 1;
	return age <= length && w->at[1] != w->at[0] && (age <= length / 2 || w->at[2] != w->at[1]);
}

/* Adds a value. Most values do not change the filter, and this check costs less than a function call. */
AP_FN void ap_window_update(struct ap_window *w, ap_u64 now, ap_u64 value, ap_u64 length, int greatest)
{
	if (AP_USUAL(w->seen && !ap_as_good(value, w->value[2], greatest) && ap_window_stays(w, now, length)))
		return;
	ap_window_change(w, now, value, length, greatest);
}

#endif
