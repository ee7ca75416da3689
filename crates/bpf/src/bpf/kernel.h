/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel's types and functions that the programs use. The loader relocates every member to its offset in the
 * running kernel (CO-RE), so only the names and types of members must match the kernel.
 *
 * Source: Linux include/uapi/linux/bpf.h; Linux include/net/tcp.h; Linux include/linux/tcp.h
 */
#ifndef AIRPACE_KERNEL_H
#define AIRPACE_KERNEL_H

#include "intf.h"

typedef unsigned char ap_u8;
typedef unsigned short ap_u16;
typedef long ap_long;

#define SEC(name) __attribute__((section(name), used))
#define CORE __attribute__((preserve_access_index))
#define KFUNC __attribute__((section(".ksyms"), weak))

#define MAP_INT(name, value) int(*name)[value]
#define MAP_TYPE(name, type) typeof(type) *name

enum { BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_SK_STORAGE = 24 };
enum { BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_CLONE = 0x200 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, ap_u64 flags) = (void *)2;
static ap_u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static ap_u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static ap_u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static ap_u32 (*const bpf_get_socket_uid)(void *skb) = (void *)47;
static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value, ap_u64 flags) = (void *)107;
static long (*const bpf_probe_read_kernel)(void *to, ap_u32 bytes, const void *from) = (void *)113;
static void *(*const bpf_skc_to_tcp_sock)(void *sk) = (void *)137;
static long (*const bpf_sk_storage_delete)(void *map, void *sk) = (void *)108;

const volatile struct ap_kernel kernel SEC(".rodata.kernel") = { .sample_argument = 3, .has_bbr = 1 };

/* Relocations that the compiler records for a member (enum bpf_core_relo_kind). */
#define FIELD_BYTE_OFFSET(field) __builtin_preserve_field_info(field, 0)
#define FIELD_EXISTS(field) __builtin_preserve_field_info(field, 2)
#define FIELD_LSHIFT_U64(field) __builtin_preserve_field_info(field, 4)

struct sock_common {
	ap_u16 skc_family;
} CORE;

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	ap_u32 sk_pacing_status;
	int sk_rx_dst_ifindex;
} CORE;

struct inet_connection_sock {
	ap_u64 icsk_ca_priv[13];
	struct {
		ap_u16 rcv_mss;
	} icsk_ack;
} CORE;

struct tcp_options_received {
	ap_u32 rcv_tsval;
	ap_u32 rcv_tsecr;
} CORE;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	ap_u16 tcp_header_len;
	ap_u16 advmss;
	ap_u32 mss_cache;
	ap_u32 write_seq;
	ap_u32 snd_cwnd;
	ap_u32 snd_cwnd_clamp;
	ap_u32 snd_cwnd_cnt;
	ap_u32 snd_ssthresh;
	ap_u32 prior_cwnd;
	ap_u32 packets_out;
	ap_u32 retrans_out;
	ap_u32 sacked_out;
	ap_u32 lost_out;
	ap_u32 srtt_us;
	ap_u32 mdev_us;
	ap_u32 delivered;
	ap_u32 app_limited;
	ap_u64 bytes_sent;
	ap_u64 tcp_clock_cache;
	ap_u32 data_segs_out;
	/* Fields of the receiver. */
	ap_u32 rcv_nxt;
	ap_u32 window_clamp;
	ap_u64 bytes_received;
	struct tcp_options_received rx_opt;
	struct {
		ap_u32 rtt_us;
	} rcv_rtt_est;
	/* exists since Linux 6.7 */
	ap_u8 tcp_usec_ts : 1;
} CORE;

struct rate_sample {
	ap_u64 prior_mstamp;
	ap_u32 prior_delivered;
	int delivered;
	ap_long interval_us;
	ap_long rtt_us;
	int losses;
	ap_u32 acked_sacked;
	ap_u32 prior_in_flight;
	unsigned char is_app_limited;
} CORE;

/* BBR's private state: only the members that are set when BBR takes over from BISCAY. */
struct minmax_sample {
	ap_u32 t;
	ap_u32 v;
};

struct minmax {
	struct minmax_sample s[3];
} CORE;

struct bbr {
	struct minmax bw;
	ap_u32 full_bw_reached : 1;
} CORE;

enum tcp_ca_event { CA_EVENT_TX_START = 0 };

struct tcp_congestion_ops {
	ap_u32 (*ssthresh)(struct sock *sk);
	void (*cong_control)(void);
	void (*set_state)(struct sock *sk, ap_u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	ap_u32 (*min_tso_segs)(struct sock *sk);
	ap_u32 (*undo_cwnd)(struct sock *sk);
	ap_u32 (*sndbuf_expand)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	ap_u32 flags;
	char name[16];
};

enum { TCP_CA_Open = 0, TCP_CA_CWR = 2, TCP_CA_Recovery = 3, TCP_CA_Loss = 4 };
enum { TCP_CONG_NON_RESTRICTED = 1 };
enum { SK_PACING_NONE = 0, SK_PACING_NEEDED = 1 };
enum { AF_INET6 = 10 };

AP_FN const struct rate_sample *sample_of(ap_u64 *ctx)
{
	const struct rate_sample *rs;

	/*
	 * Inline assembly is needed because the compiler would compute the address of the argument, which the verifier
	 * rejects.
	 */
	if (kernel.sample_argument == 3)
		asm volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(rs) : "r"(ctx));
	else
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(rs) : "r"(ctx));
	return rs;
}

/*
 * Functions of the kernel's own BBR; they are absent if BBR is a module that is not loaded. Source: Linux
 * net/ipv4/tcp_bbr.c
 */
extern void bbr_init(struct sock *sk) KFUNC;
extern void bbr_main(struct sock *sk, ap_u32 ack, int flag, const struct rate_sample *rs) KFUNC;
/* signature before Linux 6.10 */
extern void bbr_main___two(struct sock *sk, const struct rate_sample *rs) KFUNC;
extern ap_u32 bbr_sndbuf_expand(struct sock *sk) KFUNC;
extern ap_u32 bbr_undo_cwnd(struct sock *sk) KFUNC;
extern void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event) KFUNC;
extern ap_u32 bbr_ssthresh(struct sock *sk) KFUNC;
extern ap_u32 bbr_min_tso_segs(struct sock *sk) KFUNC;
extern void bbr_set_state(struct sock *sk, ap_u8 new_state) KFUNC;

AP_FN void call_bbr_main(struct sock *sk, const struct rate_sample *rs)
{
	if (kernel.sample_argument == 3)
		bbr_main(sk, 0, 0, rs);
	else
		bbr_main___two(sk, rs);
}

#endif
