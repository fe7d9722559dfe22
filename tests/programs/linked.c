// A program that is linked with libbinderperf: linked DIRECTORY. Silent with status 0 if all is as binderperf.h says.
#include <binderperf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/android/binder.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(what)                                                           \
	do {                                                                      \
		if (!(what)) {                                                        \
			printf("%d: %s (%s)\n", __LINE__, #what, strerror(errno));        \
			return 1;                                                         \
		}                                                                     \
	} while (0)
#define REFUSED(call, error) CHECK((errno = 0, (call) == -1) && errno == (error))

int main(int count, char **words)
{
	CHECK(count == 2 && strchr(binderperf_version(), '.'));
	REFUSED(binderperf_open(NULL, O_RDWR), EINVAL);
	REFUSED(binderperf_open_in(NULL, "binder", O_RDWR), EINVAL);
	REFUSED(binderperf_open("a/b", O_RDWR), EINVAL);
	REFUSED(binderperf_open("", O_RDWR), EINVAL);
	int fds[2];
	for (int which = 0; which < 2; which++) {
		struct binder_version version = {0};
		fds[which] = binderperf_open_in(words[1], "anything", O_RDWR | O_CLOEXEC | O_NONBLOCK);
		CHECK(fds[which] >= 0 && binderperf_is_device(fds[which]) == 1);
		CHECK(fcntl(fds[which], F_GETFD) == FD_CLOEXEC);
		CHECK(ioctl(fds[which], BINDER_VERSION, &version) == 0 && version.protocol_version == 8);
		CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fds[which], 0) != MAP_FAILED);
	}
	// Both are in one context, which has one manager.
	CHECK(ioctl(fds[0], BINDER_SET_CONTEXT_MGR, 0) == 0);
	REFUSED(ioctl(fds[1], BINDER_SET_CONTEXT_MGR, 0), EBUSY);
	// Opened anew by its number, a device is the same context's.
	char path[4096];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fds[0]);
	int again = open(path, O_RDWR);
	REFUSED(ioctl(again, BINDER_SET_CONTEXT_MGR, 0), EBUSY);
	CHECK(close(again) == 0);
	// Without the file that is looked at in its place it is a file all the same.
	struct stat found;
	snprintf(path, sizeof path, "%s/binderfs/anything", words[1]);
	CHECK(fstat(fds[0], &found) == 0 && unlink(path) == 0 && fstat(fds[0], &found) == 0);
	CHECK(binderperf_is_device(0) == 0 && binderperf_is_device(-1) == 0);
	CHECK(close(fds[0]) == 0 && binderperf_is_device(fds[0]) == 0);
	return 0;
}
