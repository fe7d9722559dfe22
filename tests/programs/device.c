// An ordinary client of /dev/binder, which knows nothing of binderperf: device SCENE. Silent with status 0 if all is as the
// kernel's driver would have it. Facts: contract/, by the numbers in the comments.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/android/binder.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAP_BYTES (1 << 20)

#define CHECK(what)                                                                    \
	do {                                                                               \
		if (!(what)) {                                                                 \
			printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, strerror(errno));    \
			fflush(stdout);                                                            \
			_exit(1);                                                                  \
		}                                                                              \
	} while (0)
#define REFUSED(call, error) CHECK((errno = 0, (call) == -1) && errno == (error))

extern char **environ;

static int opened(void)
{
	int fd = open("/dev/binder", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static char *mapped(int fd)
{
	char *map = mmap(NULL, MAP_BYTES, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	CHECK(map != MAP_FAILED);
	return map;
}

static int works(int fd)
{
	struct binder_version version = {0};
	return ioctl(fd, BINDER_VERSION, &version) == 0 && version.protocol_version == 8;
}

static long write_read(int fd, void *commands, size_t size, void *returns, size_t room)
{
	struct binder_write_read argument = {
		.write_size = size, .write_buffer = (uintptr_t)commands, .read_size = room, .read_buffer = (uintptr_t)returns};
	if (ioctl(fd, BINDER_WRITE_READ, &argument) < 0)
		return -1;
	CHECK(argument.write_consumed == size);
	return argument.read_consumed;
}

// Reads until one of these returns comes; copies what follows it.
static uint32_t await(int fd, uint32_t one, uint32_t other, void *payload, size_t size)
{
	for (;;) {
		char returns[256];
		long count = write_read(fd, NULL, 0, returns, sizeof returns);
		if (count < 0 && errno == EINTR)
			continue;
		CHECK(count >= 0);
		for (long at = 0; at < count;) {
			uint32_t word;
			memcpy(&word, returns + at, 4);
			at += 4;
			if (word == one || word == other) {
				memcpy(payload, returns + at, _IOC_SIZE(word) < size ? _IOC_SIZE(word) : size);
				return word;
			}
			at += _IOC_SIZE(word);
		}
	}
}

struct command {
	uint32_t word;
	struct binder_transaction_data data;
} __attribute__((packed));

static struct command transaction(uint32_t word, uint32_t code, const char *text)
{
	struct command command = {.word = word};
	command.data.code = code;
	command.data.data_size = strlen(text) + 1;
	command.data.data.ptr.buffer = (uintptr_t)text;
	return command;
}

static void call(int fd, const char *text, const char *expected)
{
	struct command command = transaction(BC_TRANSACTION, 7, text);
	CHECK(write_read(fd, &command, sizeof command, NULL, 0) == 0);
	struct binder_transaction_data reply;
	uint32_t got = await(fd, BR_REPLY, BR_DEAD_REPLY, &reply, sizeof reply);
	CHECK((got == BR_REPLY) == (expected != NULL));
	if (expected)
		CHECK(strcmp((char *)(uintptr_t)reply.data.ptr.buffer, expected) == 0);
}

static void manage(int fd)
{
	int none = 0;
	uint32_t enter = BC_ENTER_LOOPER;
	CHECK(ioctl(fd, BINDER_SET_CONTEXT_MGR, &none) == 0);
	CHECK(write_read(fd, &enter, sizeof enter, NULL, 0) == 0);
}

static void serve_one(int fd, const char *map)
{
	struct binder_transaction_data call;
	await(fd, BR_TRANSACTION, BR_TRANSACTION, &call, sizeof call);
	const char *text = (char *)(uintptr_t)call.data.ptr.buffer;
	// Every buffer lies in the program's mapping.
	CHECK(text >= map && text + call.data_size <= map + MAP_BYTES);
	CHECK(call.code == 7 && strcmp(text, "question") == 0);
	struct {
		uint32_t word;
		binder_uintptr_t buffer;
	} __attribute__((packed)) given_back = {BC_FREE_BUFFER, call.data.ptr.buffer};
	CHECK(write_read(fd, &given_back, sizeof given_back, NULL, 0) == 0);
	struct command reply = transaction(BC_REPLY, 0, "answer");
	CHECK(write_read(fd, &reply, sizeof reply, NULL, 0) == 0);
	await(fd, BR_TRANSACTION_COMPLETE, BR_TRANSACTION_COMPLETE, &call, sizeof call);
}

static void ended_well(pid_t child)
{
	int status;
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// OPN-02 to OPN-04, OPN-10, IOC-01, IOC-02.
static void bad_input(void)
{
	int fd = opened();
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REFUSED(ioctl(fd, BINDER_VERSION, NULL), EINVAL);
	REFUSED(ioctl(fd, BINDER_SET_MAX_THREADS, NULL), EINVAL);
	REFUSED(ioctl(fd, BINDER_WRITE_READ, (void *)-8L), EFAULT);
	REFUSED(ioctl(fd, BINDER_GET_EXTENDED_ERROR, (void *)8L), EFAULT);
	for (unsigned number = 0; number < 256; number++)
		if (number != 8) // BINDER_THREAD_EXIT has the size of an int, too.
			REFUSED(ioctl(fd, _IOC(_IOC_WRITE, 'b', number, 3), page), EINVAL);
	int64_t idle = 0;
	REFUSED(ioctl(fd, BINDER_SET_IDLE_TIMEOUT, &idle), EINVAL);
	struct binder_write_read argument = {.write_size = UINT64_MAX, .write_buffer = (uintptr_t)(page + 4092)};
	REFUSED(ioctl(fd, BINDER_WRITE_READ, &argument), EINVAL);
	argument = (struct binder_write_read){.write_size = 4, .write_buffer = 8};
	REFUSED(ioctl(fd, BINDER_WRITE_READ, &argument), EFAULT);
	argument = (struct binder_write_read){.write_size = 4, .write_consumed = UINT64_MAX, .write_buffer = 8};
	CHECK(ioctl(fd, BINDER_WRITE_READ, &argument) == 0);
	char byte;
	REFUSED(read(fd, &byte, 1), EINVAL);

	REFUSED((long)mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), EPERM);
	REFUSED((long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL);
	char *map = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(map != MAP_FAILED);
	REFUSED((long)mmap(NULL, MAP_BYTES, PROT_READ, MAP_PRIVATE, fd, 0), EBUSY);
	CHECK(munmap(map, 4096) == 0);
	REFUSED((long)mmap(NULL, MAP_BYTES, PROT_READ, MAP_PRIVATE, fd, 0), EBUSY);
	CHECK(works(fd));
	REFUSED(open("/dev/binder", O_RDWR | O_DIRECTORY), ENOTDIR);
	REFUSED(open("/dev/binder", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
	REFUSED(open("/dev/binderfs/a/b", O_RDWR), ENOENT);
	CHECK(works(creat("/dev/binder", 0600)));
}

// EXT-06: a device is open as long as any of its numbers is.
static void numbers(void)
{
	int fd = opened();
	int copies[] = {dup(fd), fcntl(fd, F_DUPFD_CLOEXEC, 100), dup2(fd, 200), dup3(fd, 201, O_CLOEXEC)};
	CHECK(copies[1] >= 100 && copies[2] == 200 && copies[3] == 201);
	close(fd);
	REFUSED(ioctl(fd, BINDER_VERSION, NULL), EBADF);
	for (int copy = 0; copy < 4; copy++) {
		CHECK(works(copies[copy]));
		CHECK(close(copies[copy]) == 0);
	}
	REFUSED(close(200), EBADF);
	int other = open("/dev/null", O_RDWR);
	fd = opened();
	CHECK(dup2(other, fd) == fd && !works(fd));
	fd = opened();
	CHECK(close_range(fd, fd, 0) == 0);
	REFUSED(ioctl(fd, BINDER_VERSION, NULL), EBADF);
	fd = openat(AT_FDCWD, "/dev/binderfs/other", O_RDWR | O_NONBLOCK);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	int off = 0, on = 1;
	CHECK(ioctl(fd, FIONBIO, &off) == 0 && !(fcntl(fd, F_GETFL) & O_NONBLOCK));
	CHECK(ioctl(fd, FIONBIO, &on) == 0 && fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(fd, F_GETFD) == 0);
	char returns[256];
	write_read(fd, NULL, 0, returns, sizeof returns);
	REFUSED(write_read(fd, NULL, 0, returns, sizeof returns), EAGAIN);
}

static void *reader(void *fd)
{
	char returns[256];
	while (works(*(int *)fd) && write_read(*(int *)fd, NULL, 0, returns, sizeof returns) >= 0)
		;
	return NULL;
}

// OPN-05, OPN-11 (Rust driver): a child may not use its parent's device, and its own is its own.
static void forks(void)
{
	int fd = opened();
	char *map = mapped(fd);
	pid_t child = fork();
	if (child == 0) {
		uint32_t threads = 1;
		CHECK(works(fd));
		REFUSED(ioctl(fd, BINDER_SET_MAX_THREADS, &threads), EINVAL);
		REFUSED((long)mmap(NULL, MAP_BYTES, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL);
		struct pollfd entry = {.fd = fd, .events = POLLIN};
		CHECK(poll(&entry, 1, 0) == 0);
		int own = opened();
		mapped(own);
		CHECK(ioctl(own, BINDER_SET_MAX_THREADS, &threads) == 0);
		CHECK(close(fd) == 0);
		_exit(0);
	}
	ended_well(child);
	// A child that closes its parent's device does not keep it alive: the parent's end is seen.
	int gone[2], byte;
	CHECK(pipe(gone) == 0);
	if ((child = fork()) == 0) {
		int fds[2], own = opened();
		mapped(own);
		manage(own);
		// A thread that uses the device when its process forks is not in the child.
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, reader, &own) == 0);
		usleep(20000);
		CHECK(pipe(fds) == 0);
		if (fork() == 0) {
			uint32_t none = 0;
			alarm(30);
			close(own);
			close(fds[1]);
			CHECK(read(fds[0], &byte, 1) == 0);
			own = opened();
			while (ioctl(own, BINDER_SET_CONTEXT_MGR, &none) != 0)
				CHECK(errno == EBUSY && usleep(1000) == 0);
			CHECK(write(gone[1], "x", 1) == 1);
		}
		_exit(0);
	}
	ended_well(child);
	CHECK(read(gone[0], &byte, 1) == 1);
	child = vfork();
	if (child == 0) {
		close(fd);
		_exit(0);
	}
	ended_well(child);
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addclose(&actions, fd);
	char *words[] = {"true", NULL};
	CHECK(posix_spawnp(&child, "true", &actions, NULL, words, environ) == 0);
	ended_well(child);
	for (int storm = 0; storm < 100; storm++) {
		if ((child = fork()) == 0)
			_exit(works(fd) ? 0 : 1);
		ended_well(child);
	}
	uint32_t threads = 1;
	CHECK(works(fd) && ioctl(fd, BINDER_SET_MAX_THREADS, &threads) == 0);
	REFUSED(munmap(map, 4096), EINVAL);
	REFUSED(munmap(map + 4096, 2 * MAP_BYTES), EINVAL);
	CHECK(munmap(map, MAP_BYTES) == 0);
}

// EXT-07: closing wakes who waits.
static void close_wakes(void)
{
	int fd = opened();
	pthread_t thread;
	mapped(fd);
	CHECK(pthread_create(&thread, NULL, reader, &fd) == 0);
	usleep(100000);
	CHECK(close(fd) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

static void wait_by(const char *how, int fd)
{
	struct pollfd entry = {.fd = fd, .events = POLLIN | POLLOUT};
	struct timespec patience = {.tv_sec = 10};
	if (strcmp(how, "poll") == 0)
		CHECK(poll(&entry, 1, 10000) == 1 && entry.revents == POLLIN && entry.fd == fd);
	if (strcmp(how, "ppoll") == 0)
		CHECK(ppoll(&entry, 1, &patience, NULL) == 1 && entry.revents == POLLIN);
	fd_set read, write;
	FD_ZERO(&read);
	FD_ZERO(&write);
	FD_SET(fd, &read);
	FD_SET(fd, &write);
	if (strcmp(how, "select") == 0)
		CHECK(select(fd + 1, &read, &write, NULL, NULL) == 1 && FD_ISSET(fd, &read) && !FD_ISSET(fd, &write));
	if (strcmp(how, "pselect") == 0)
		CHECK(pselect(fd + 1, &read, &write, NULL, &patience, NULL) == 1 && FD_ISSET(fd, &read));
	if (strcmp(how, "epoll") == 0) {
		int set = epoll_create1(0);
		struct epoll_event event = {.events = EPOLLIN, .data.u64 = 42};
		REFUSED(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL), ENOENT);
		CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
		REFUSED(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), EEXIST);
		event.data.u64 = 43;
		CHECK(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event) == 0);
		CHECK(epoll_wait(set, &event, 1, 10000) == 1 && event.data.u64 == 43);
		CHECK(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL) == 0);
		close(set);
	}
}

// POL-01 to POL-04, TX-01, BUF-01: a service that waits by each means is called by another process.
static void calls(void)
{
	static const char *ways[] = {"poll", "ppoll", "select", "pselect", "epoll", "nothing"};
	int fd = opened();
	char *map = mapped(fd);
	manage(fd);
	for (int way = 0; way < 6; way++) {
		struct pollfd entry = {.fd = fd, .events = POLLIN};
		CHECK(poll(&entry, 1, 0) == 0);
		pid_t child = fork();
		if (child == 0) {
			int own = opened();
			mapped(own);
			call(own, "question", "answer");
			_exit(0);
		}
		wait_by(ways[way], fd);
		serve_one(fd, map);
		ended_well(child);
	}
}

// TX-19, EXT-08: who dies in a call is known to be dead.
static void dies(void)
{
	int ready[2];
	CHECK(pipe(ready) == 0);
	pid_t child = fork();
	if (child == 0) {
		int fd = opened();
		struct binder_transaction_data call;
		mapped(fd);
		manage(fd);
		CHECK(write(ready[1], "x", 1) == 1);
		await(fd, BR_TRANSACTION, BR_TRANSACTION, &call, sizeof call);
		kill(getpid(), SIGKILL);
	}
	char byte;
	CHECK(read(ready[0], &byte, 1) == 1);
	int fd = opened();
	mapped(fd);
	call(fd, "question", NULL);
	CHECK(waitpid(child, NULL, 0) == child);
}

// Sends a descriptor in a call; what came of it, and the errno of a failure.
static uint32_t sent(int fd, int number, uint32_t flags, int *error)
{
	struct binder_fd_object object = {.hdr.type = BINDER_TYPE_FD, .fd = number};
	binder_size_t offset = 0;
	struct command command = transaction(BC_TRANSACTION, 7, "");
	command.data.flags = flags;
	command.data.data_size = sizeof object;
	command.data.data.ptr.buffer = (uintptr_t)&object;
	command.data.offsets_size = sizeof offset;
	command.data.data.ptr.offsets = (uintptr_t)&offset;
	CHECK(write_read(fd, &command, sizeof command, NULL, 0) == 0);
	struct binder_transaction_data reply;
	uint32_t good = flags & TF_ONE_WAY ? BR_TRANSACTION_COMPLETE : BR_REPLY;
	uint32_t got = await(fd, good, BR_FAILED_REPLY, &reply, sizeof reply);
	struct binder_extended_error extended = {0};
	CHECK(ioctl(fd, BINDER_GET_EXTENDED_ERROR, &extended) == 0);
	*error = -extended.param;
	return got;
}

// docs/clients.md: what stands for a device stands for nothing elsewhere, so a call that carries it fails at once.
static void sends(void)
{
	enum { SYNC = 0 };
	int fd = opened();
	char *map = mapped(fd);
	struct flat_binder_object node = {.flags = FLAT_BINDER_FLAG_ACCEPTS_FDS};
	uint32_t enter = BC_ENTER_LOOPER;
	CHECK(ioctl(fd, BINDER_SET_CONTEXT_MGR_EXT, &node) == 0);
	CHECK(write_read(fd, &enter, sizeof enter, NULL, 0) == 0);
	pid_t child = fork();
	if (child == 0) {
		int own = opened(), error, ends[2];
		mapped(own);
		CHECK(pipe(ends) == 0);
		int devices[] = {own, dup(own), opened()};
		for (int device = 0; device < 3; device++) {
			CHECK(sent(own, devices[device], SYNC, &error) == BR_FAILED_REPLY && error == EINVAL);
			CHECK(sent(own, devices[device], TF_ONE_WAY, &error) == BR_FAILED_REPLY && error == EINVAL);
			CHECK(works(devices[device]));
		}
		CHECK(sent(own, ends[1], TF_ONE_WAY, &error) == BR_TRANSACTION_COMPLETE);
		CHECK(sent(own, ends[1], SYNC, &error) == BR_REPLY);
		char bytes[2];
		CHECK(read(ends[0], bytes, 2) == 2 && memcmp(bytes, "xx", 2) == 0);
		_exit(0);
	}
	for (int answered = 0; !answered;) {
		struct binder_transaction_data call;
		await(fd, BR_TRANSACTION, BR_TRANSACTION, &call, sizeof call);
		struct binder_fd_object *object = (struct binder_fd_object *)(uintptr_t)call.data.ptr.buffer;
		CHECK((char *)object >= map && write(object->fd, "x", 1) == 1 && close(object->fd) == 0);
		answered = !(call.flags & TF_ONE_WAY);
		struct command reply = transaction(BC_REPLY, 0, "answer");
		CHECK(!answered || write_read(fd, &reply, sizeof reply, NULL, 0) == 0);
	}
	ended_well(child);
}

struct waiter {
	const char *how;
	int fd;
	int began[2];
};

static void *waiter(void *of)
{
	const struct waiter *waiter = of;
	struct pollfd entry = {.fd = waiter->fd, .events = POLLIN};
	struct timespec patience = {.tv_sec = 20};
	fd_set read;
	FD_ZERO(&read);
	FD_SET(waiter->fd, &read);
	// A new thread's first wait ends at once (POL-02).
	CHECK(works(waiter->fd) && write(waiter->began[1], "x", 1) == 1);
	if (strcmp(waiter->how, "poll") == 0)
		poll(&entry, 1, 20000);
	if (strcmp(waiter->how, "ppoll") == 0)
		ppoll(&entry, 1, &patience, NULL);
	if (strcmp(waiter->how, "select") == 0)
		select(waiter->fd + 1, &read, NULL, NULL, NULL);
	if (strcmp(waiter->how, "pselect") == 0)
		pselect(waiter->fd + 1, &read, NULL, NULL, &patience, NULL);
	if (strcmp(waiter->how, "read") == 0) {
		char returns[256];
		write_read(waiter->fd, NULL, 0, returns, sizeof returns);
		pthread_testcancel();
	}
	return NULL;
}

// A thread may be cancelled while it waits; an ioctl is no cancellation point.
static void cancelled(void)
{
	static const char *ways[] = {"poll", "ppoll", "select", "pselect", "read"};
	int fd = opened();
	char *map = mapped(fd);
	manage(fd);
	for (int way = 0; way < 5; way++) {
		struct waiter waits = {.how = ways[way], .fd = fd};
		pthread_t thread;
		void *result;
		char byte;
		CHECK(pipe(waits.began) == 0 && pthread_create(&thread, NULL, waiter, &waits) == 0);
		CHECK(read(waits.began[0], &byte, 1) == 1);
		usleep(20000);
		CHECK(pthread_cancel(thread) == 0);
		if (way == 4) {
			usleep(20000);
			CHECK(pthread_tryjoin_np(thread, &result) == EBUSY);
			CHECK(close(fd) == 0);
		}
		CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
		CHECK(way == 4 || works(fd));
	}
	// Nothing but the mapping keeps the device, which would go on to manage its context (EXT-06).
	CHECK(munmap(map, MAP_BYTES) == 0);
	fd = opened();
	uint32_t none = 0;
	while (ioctl(fd, BINDER_SET_CONTEXT_MGR, &none) != 0)
		CHECK(errno == EBUSY && usleep(1000) == 0);
}

static void ignored(int signal)
{
	(void)signal;
}

static void *disturber(void *of)
{
	for (;;) {
		usleep(500);
		pthread_kill(*(pthread_t *)of, SIGUSR1);
	}
	return NULL;
}

// WR-06: a thread that signals take out of its calls, and that reads only when it is told to, misses nothing. It repeats a
// call with the same structure (docs/clients.md).
static void signals(void)
{
	enum { CALLS = 400 };
	int fd = opened();
	mapped(fd);
	manage(fd);
	pid_t child = fork();
	if (child == 0) {
		int own = opened();
		mapped(own);
		alarm(30);
		for (int count = 0; count < CALLS; count++)
			call(own, "question", "answer");
		_exit(0);
	}
	struct sigaction action = {.sa_handler = ignored};
	pthread_t self = pthread_self(), thread;
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, disturber, &self) == 0);
	struct command reply = transaction(BC_REPLY, 0, "answer");
	for (int served = 0, completed = 0; completed < CALLS;) {
		struct pollfd entry = {.fd = fd, .events = POLLIN};
		char returns[256];
		int ready = poll(&entry, 1, 10000);
		CHECK(ready == 1 || (ready < 0 && errno == EINTR));
		struct binder_write_read reads = {.read_size = sizeof returns, .read_buffer = (uintptr_t)returns};
		while (ready == 1 && ioctl(fd, BINDER_WRITE_READ, &reads) != 0)
			CHECK(errno == EINTR);
		for (binder_size_t at = 0; at < reads.read_consumed;) {
			uint32_t word;
			memcpy(&word, returns + at, 4);
			completed += word == BR_TRANSACTION_COMPLETE;
			at += 4 + _IOC_SIZE(word);
			if (word != BR_TRANSACTION)
				continue;
			CHECK(++served <= CALLS);
			struct binder_write_read writes = {.write_size = sizeof reply, .write_buffer = (uintptr_t)&reply};
			while (writes.write_consumed < sizeof reply)
				CHECK(ioctl(fd, BINDER_WRITE_READ, &writes) == 0 || errno == EINTR);
		}
	}
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
	ended_well(child);
}

static int waited_for;
static volatile sig_atomic_t asked, answered;

// Asks for devices and for other files.
static void asks(int signal)
{
	int before = errno, fd = open("/dev/binder", O_RDWR | O_CLOEXEC), plain = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	char path[64], name[32];
	struct stat found;
	(void)signal;
	snprintf(path, sizeof path, "/proc/self/fd/%d", waited_for);
	answered = works(fd) && works(waited_for) && stat("/dev/binder", &found) == 0 && S_ISCHR(found.st_mode) &&
			   readlink(path, name, sizeof name) == 11 && read(plain, name, sizeof name) > 0 && access("/dev/binder1", F_OK) == -1;
	close(fd), close(plain);
	asked = 1;
	errno = before;
}

static void *asker(void *of)
{
	usleep(100000);
	pthread_kill(*(pthread_t *)of, SIGUSR1);
	return NULL;
}

// A signal handler that runs while its thread waits for a device finds devices and files as ever.
static void handlers(void)
{
	struct sigaction action = {.sa_handler = asks};
	pthread_t self = pthread_self(), thread;
	char returns[256];
	mapped(waited_for = opened());
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && pthread_create(&thread, NULL, asker, &self) == 0);
	while (!asked)
		CHECK(write_read(waited_for, NULL, 0, returns, sizeof returns) >= 0 || errno == EINTR);
	CHECK(answered);
	CHECK(works(waited_for) && pthread_join(thread, NULL) == 0);
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		void (*play)(void);
	} scenes[] = {{"bad_input", bad_input}, {"numbers", numbers}, {"forks", forks}, {"close_wakes", close_wakes},
		{"calls", calls}, {"dies", dies}, {"sends", sends}, {"cancelled", cancelled}, {"signals", signals}, {"handlers", handlers}};
	alarm(30);
	for (unsigned scene = 0; scene < sizeof scenes / sizeof *scenes; scene++)
		if (count == 2 && strcmp(words[1], scenes[scene].name) == 0) {
			scenes[scene].play();
			return 0;
		}
	printf("no such scene\n");
	return 1;
}
