/* The embedded Binder driver as a library: devices for programs on a kernel without Binder.
 *
 * A program that is linked with this library (pkg-config binderperf) opens "/dev/binder" and its like as ever: open(2), ioctl(2),
 * mmap(2), poll(2), close(2) and the others of the C library do for these devices what the kernel would. The functions here
 * open a device without a path. The program `binderperf` must be along $PATH, or be named by $BINDERPERF_BROKER: the
 * processes of a context meet in a broker, which it becomes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BINDERPERF_H
#define BINDERPERF_H

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the device NAME ("binder", "hwbinder" or any other), as open("/dev/binderfs/NAME", flags) does; "binder" is also
 * /dev/binder. Programs of one user that open the same name share its context. Of the flags (see open(2)) O_CLOEXEC and O_NONBLOCK count. Returns a descriptor, to be
 * closed by close(2); -1 with errno: EINVAL, no name of a device; EIO, the driver cannot be reached, which standard error
 * explains; EMFILE, ENFILE. */
int binderperf_open(const char *name, int flags);

/* The same in a directory: only programs that name this directory share its contexts. It is made if it is missing. */
int binderperf_open_in(const char *directory, const char *name, int flags);

/* 1 if the descriptor is a device of this driver, else 0. */
int binderperf_is_device(int fd);

/* Version of the library, such as "0.2.0". */
const char *binderperf_version(void);

#ifdef __cplusplus
}
#endif

#endif
