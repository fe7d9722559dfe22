// Programs that lose their driver: orphans serve|call|answer|talk [TIMER]. Each thread uses /dev/binder in its own way until the
// driver refuses; with TIMER, a signal takes it out of every call that lasts a millisecond. Prints "running" once calls are
// answered. Status 0: every thread ended with ECONNRESET. Devices are opened before the first signal, which would take a
// supervised program out of open(2), too.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/android/binder.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define MAP_BYTES (1 << 20)
#define MOST 8
#define ANSWERED 20

static pthread_t threads[MOST];
static atomic_int lives[MOST];
static atomic_int answered;

static void nothing(int signal)
{
	(void)signal;
}

// In the main thread, every millisecond: all others are interrupted.
static void tick(int signal)
{
	(void)signal;
	for (int thread = 0; thread < MOST; thread++)
		if (lives[thread])
			pthread_kill(threads[thread], SIGUSR1);
}

static int opened(void)
{
	int fd = open("/dev/binder", O_RDWR | O_CLOEXEC);
	if (fd >= 0 && mmap(NULL, MAP_BYTES, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return -1;
	return fd;
}

struct command {
	uint32_t word;
	struct binder_transaction_data data;
} __attribute__((packed));

struct returns {
	long count;
	char bytes[256];
};

// One exchange, whatever signals come in between: an errno, or 0.
static int transfer(int fd, void *commands, size_t size, struct returns *returns)
{
	struct binder_write_read argument = {.write_size = size, .write_buffer = (uintptr_t)commands};
	if (returns) {
		argument.read_size = sizeof returns->bytes;
		argument.read_buffer = (uintptr_t)returns->bytes;
	}
	while (ioctl(fd, BINDER_WRITE_READ, &argument) < 0) {
		if (errno != EINTR)
			return errno;
		argument.read_consumed = 0;
	}
	if (returns)
		returns->count = argument.read_consumed;
	return 0;
}

// Finds a return and what follows it.
static int has(const struct returns *returns, uint32_t wanted, struct binder_transaction_data *data)
{
	for (long at = 0; at < returns->count;) {
		uint32_t word;
		memcpy(&word, returns->bytes + at, 4);
		if (word == wanted) {
			memcpy(data, returns->bytes + at + 4, _IOC_SIZE(word) < sizeof *data ? _IOC_SIZE(word) : sizeof *data);
			return 1;
		}
		at += 4 + _IOC_SIZE(word);
	}
	return 0;
}

static int give_back(int fd, binder_uintptr_t buffer)
{
	struct {
		uint32_t word;
		binder_uintptr_t buffer;
	} __attribute__((packed)) command = {BC_FREE_BUFFER, buffer};
	return transfer(fd, &command, sizeof command, NULL);
}

// Calls the manager for ever; with an object each call needs the broker, without one only the first.
static int calls(int fd, int with_object, uint32_t flags)
{
	struct flat_binder_object object = {.hdr.type = BINDER_TYPE_BINDER, .binder = 1, .cookie = 1};
	binder_size_t offset = 0;
	for (;;) {
		struct command command = {.word = BC_TRANSACTION};
		struct binder_transaction_data data;
		struct returns returns;
		command.data.flags = flags;
		command.data.code = 7;
		command.data.data_size = sizeof object;
		command.data.data.ptr.buffer = (uintptr_t)&object;
		command.data.offsets_size = with_object ? sizeof offset : 0;
		command.data.data.ptr.offsets = (uintptr_t)&offset;
		int error = transfer(fd, &command, sizeof command, NULL);
		for (int over = 0; !over && !error;) {
			error = transfer(fd, NULL, 0, &returns);
			if (error)
				break;
			if (has(&returns, BR_REPLY, &data)) {
				answered++;
				over = 1;
				error = give_back(fd, data.data.ptr.buffer);
			} else if (has(&returns, BR_DEAD_REPLY, &data) || has(&returns, BR_FAILED_REPLY, &data)) {
				// Nobody manages the context yet, or no more.
				over = 1;
				usleep(1000);
			} else {
				over = flags & TF_ONE_WAY && has(&returns, BR_TRANSACTION_COMPLETE, &data);
			}
		}
		if (error)
			return error;
	}
}

static int direct(int fd)
{
	return calls(fd, 0, 0);
}

static int with_objects(int fd)
{
	return calls(fd, 1, 0);
}

static int oneway(int fd)
{
	return calls(fd, 0, TF_ONE_WAY);
}

// Reads where nothing ever comes.
static int reads(int fd)
{
	int error = 0;
	struct returns returns;
	while (!error)
		error = transfer(fd, NULL, 0, &returns);
	return error;
}

// Polls where nothing ever comes.
static int polls(int fd)
{
	int error = 0;
	struct returns returns;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (!error || error == EAGAIN) {
		struct pollfd entry = {.fd = fd, .events = POLLIN};
		if (poll(&entry, 1, -1) > 0)
			error = transfer(fd, NULL, 0, &returns);
	}
	return error;
}

static int serves(int fd)
{
	uint32_t enter = BC_ENTER_LOOPER;
	int error = transfer(fd, &enter, sizeof enter, NULL);
	while (!error) {
		struct returns returns;
		struct binder_transaction_data data;
		error = transfer(fd, NULL, 0, &returns);
		if (error || !has(&returns, BR_TRANSACTION, &data))
			continue;
		error = give_back(fd, data.data.ptr.buffer);
		struct command reply = {.word = BC_REPLY};
		if (!error && !(data.flags & TF_ONE_WAY))
			error = transfer(fd, &reply, sizeof reply, NULL);
	}
	return error;
}

struct thread {
	int (*way)(int);
	int fd;
	atomic_int *lives;
};

static void *begin(void *of)
{
	const struct thread *thread = of;
	int error = thread->way(thread->fd);
	*thread->lives = 0;
	return (void *)(intptr_t)error;
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		int (*ways[MOST])(int);
	} roles[] = {{"serve", {serves, serves, reads, polls}},
		{"call", {direct, with_objects, oneway, reads, polls}},
		{"answer", {serves}},
		{"talk", {direct}}};
	int (*const *ways)(int) = NULL;
	for (unsigned role = 0; count > 1 && role < sizeof roles / sizeof *roles; role++)
		if (strcmp(words[1], roles[role].name) == 0)
			ways = roles[role].ways;
	if (!ways)
		return 2;
	struct thread all[MOST];
	int wrong = 0, count_of_threads = 0, none = 0, is_server = ways[0] == serves;
	for (; ways[count_of_threads]; count_of_threads++) {
		// The threads that serve share one.
		int shares = count_of_threads > 0 && ways[count_of_threads] == serves;
		int fd = shares ? all[0].fd : opened();
		all[count_of_threads] = (struct thread){ways[count_of_threads], fd, &lives[count_of_threads]};
		if (fd < 0) {
			perror("opening the device");
			return 1;
		}
	}
	if (is_server && ioctl(all[0].fd, BINDER_SET_CONTEXT_MGR, &none) < 0) {
		perror("managing the context");
		return 1;
	}
	struct sigaction action = {.sa_handler = nothing};
	sigset_t alarms;
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigaction(SIGUSR1, &action, NULL);
	// The alarm is the main thread's.
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	for (int thread = 0; thread < count_of_threads; thread++) {
		lives[thread] = 1;
		if (pthread_create(&threads[thread], NULL, begin, &all[thread]) != 0)
			return 1;
	}
	if (count > 2) {
		struct itimerval every = {{0, 1000}, {0, 1000}};
		action.sa_handler = tick;
		action.sa_flags = SA_RESTART;
		sigaction(SIGALRM, &action, NULL);
		setitimer(ITIMER_REAL, &every, NULL);
		pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	}
	while (!is_server && answered < ANSWERED && lives[0])
		usleep(1000);
	puts("running");
	fflush(stdout);
	for (int thread = 0; thread < count_of_threads; thread++) {
		void *error;
		pthread_join(threads[thread], &error);
		if ((intptr_t)error != ECONNRESET) {
			printf("thread %d: %s\n", thread, strerror((intptr_t)error));
			wrong = 1;
		}
	}
	return wrong;
}
