/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Included before all C of the static program, which is compiled against glibc's headers and linked with musl. On 64-bit
 * machines, files of any size need no names of their own such as open64, which musl does not have.
 */
#undef _FILE_OFFSET_BITS
#undef _LARGEFILE64_SOURCE
