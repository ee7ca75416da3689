/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Selects a congestion control for the connections of the programs in a control group: an outgoing connection gets it
 * before its first packet, an accepted connection when it is established.
 */
#include "sockops.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Name of the congestion control; the loader sets it. */
const volatile char scheme[16] SEC(".rodata.scheme") = "reno";

SEC("sockops")
int choose(struct bpf_sock_ops *ctx)
{
	if (ctx->op == BPF_SOCK_OPS_TCP_CONNECT_CB || ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, (void *)scheme, sizeof(scheme));
	return 1;
}
