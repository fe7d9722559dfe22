/* A thread calls twice; both calls fail, and it reads only then. Linux's drivers give one BR_FAILED_REPLY (BR_17 in the last line): the C
   driver logs "Unexpected reply error", and the thread waits for the other call for ever. The embedded driver gives two.
   gcc -pthread FILE && ./a.out /dev/binderfs/DEVICE, a device without a context manager */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/android/binder.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define S(k, p, t) for (int on = my_turn(k, p, t); on; on = 0, *turn = *turn > (k) ? *turn : (k) + 1)
#define P(p, s) (memcpy(w + n, p, s), n += (s))
#define C(c, x, s) (P(&(__u32){ c }, 4), P(&(__u64){ x }, s))
#define D(t, o) (dn = (dn + 7) & ~7, of[on_++] = dn, memcpy(d + dn, &o, sizeof(t)), dn += sizeof(t))
#define O(t, f, b, c) D(struct flat_binder_object, ((struct flat_binder_object){ { t }, f, { b }, c }))
#define R(k, c, x) printf("p%d.t%d step %d: %d %s\n", proc, me, k, ioctl(fd, c, x), strerror(errno))
static volatile int *turn, *pids; static char *dev, *m; static int fd, proc; static size_t l; static pthread_t threads[3];
static __u64 held[99]; static int nh; static __thread int me, n, dn, on_; static __thread __u64 of[9];
static __thread char w[4096], d[1 << 17], b[4096];
static int my_turn(int k, int p, int t) { if (proc != p || me != t) { return 0; } while (*turn < k) { usleep(1000); } usleep(50000); struct binder_version v; if (fd) { ioctl(fd, BINDER_VERSION, &v); } return 1; }
static void F(int i) { C(BC_FREE_BUFFER, held[i], 8); memmove(held + i, held + i + 1, 8 * (98 - i)); nh -= i < nh; }
static void X(__u32 c, int h, int code, int flags, int cut, int skew, int clip, long sg) {
	static __thread char keep[1 << 17]; static __thread __u64 ko[9]; memcpy(keep, d, dn); memcpy(ko, of, sizeof(of)); ko[on_ ? on_ - 1 : 8] += skew;
	struct binder_transaction_data_sg t = { { { h }, 0, code, flags, 0, 0, dn - cut, 8 * on_ - clip, { { (__u64)keep, (__u64)ko } } }, sg };
	C(c, 0, 0); P(&t, sg < 0 ? sizeof(t.transaction_data) : sizeof(t)); dn = on_ = 0; }
static void go(int k, int room, int wait) {
	char r[65536]; struct binder_write_read x = { n, 0, (__u64)w, room, 0, (__u64)r }; if (wait) *turn = k + 1;
	fcntl(fd, F_SETFL, O_RDWR | (wait ? 0 : O_NONBLOCK)); errno = 0; ioctl(fd, BINDER_WRITE_READ, &x); n = 0;
	printf("p%d.t%d step %d: %s, took %d:", proc, me, k, strerror(errno), (int)x.write_consumed);
	for (char *p = r; p < r + x.read_consumed; p += 4 + _IOC_SIZE(*(__u32 *)p)) { __u32 c = *(__u32 *)p; printf(" BR_%d", _IOC_NR(c));
		if (_IOC_NR(c) == 2 || _IOC_NR(c) == 3) held[nh++] = ((struct binder_transaction_data *)(p + 4))->data.ptr.buffer; }
	puts(""); fflush(stdout); }
static void on_signal(int s) { (void)s; } static void *play(void *t) { me = (long)t;
	S(0, 0, 0) { fd = open(dev, O_RDWR | O_CLOEXEC); m = mmap(0, l = 65536, PROT_READ, MAP_PRIVATE, fd, 0); }
	S(1, 1, 0) { fd = open(dev, O_RDWR | O_CLOEXEC); m = mmap(0, l = 65536, PROT_READ, MAP_PRIVATE, fd, 0); }
	S(2, 0, 0) { __u32 x = 0; R(2, BINDER_SET_CONTEXT_MGR, &x); P(&(__u32){ BC_ENTER_LOOPER }, 4); go(2, 0, 0); }
	S(3, 1, 0) { X(BC_TRANSACTION, 0, 1, 0x0, 0, 0, 0, -1); go(3, 0, 0); } S(4, 0, 0) { go(4, 256, 0); }
	S(5, 0, 0) { O(BINDER_TYPE_FD, 0, 9999, 0); X(BC_REPLY, 0, 2, 0x0, 0, 0, 0, -1); go(5, 256, 0); }
	S(6, 1, 0) { X(BC_TRANSACTION, 0, 3, 0x0, 0, 0, 0, -1); go(6, 0, 0); } S(7, 0, 0) { go(7, 256, 0); }
	S(8, 0, 0) { O(BINDER_TYPE_FD, 0, 9999, 0); X(BC_REPLY, 0, 4, 0x0, 0, 0, 0, -1); go(8, 0, 0); } S(9, 1, 0) { go(9, 256, 0); }
	return 0; }
int main(int argc, char **argv) {
	turn = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); pids = turn + 8; dev = argv[argc - 1];
	for (proc = 0; proc < 2; proc++) if (!fork()) { pids[proc] = getpid(); signal(SIGUSR1, on_signal); setlinebuf(stdout);
		for (long t = 0; t < 3; t++) { pthread_create(threads + t, 0, play, (void *)t); }
		while (*turn < 10) { usleep(1000); } sleep(1); _exit(0); }
	while (wait(0) > 0) { } return 0; }
