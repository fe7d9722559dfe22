/* A node of a process that closes while a call to it is being copied is never freed: its count of strong references is -1.
   gcc -static -pthread node-left-behind.c -o node && ./node /dev/binder, a device without a context manager; as root.
   The call's data lie in a page that is not there yet (userfaultfd); the node's owner closes before the page comes. */
#include <fcntl.h>
#include <linux/android/binder.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int uffd, to_owner[2];
static char *page;

static void *bring_page(void *unused) {
	struct uffd_msg fault;
	read(uffd, &fault, sizeof(fault)); /* the driver copies the data of the call now */
	close(to_owner[1]); /* the owner ends */
	sleep(1);
	ioctl(uffd, UFFDIO_ZEROPAGE, &(struct uffdio_zeropage){ { (unsigned long)page, 4096 }, 0, 0 });
	return unused;
}

int main(int argc, char **argv) {
	char *device = argv[argc - 1], line[256], is_dead = 0;
	pthread_t thread;
	alarm(20);
	pipe(to_owner);
	if (!fork()) { /* owns the context manager's node */
		int fd = open(device, O_RDWR), none = 0;
		mmap(0, 1 << 16, PROT_READ, MAP_PRIVATE, fd, 0);
		ioctl(fd, BINDER_SET_CONTEXT_MGR, &none);
		close(to_owner[1]);
		return read(to_owner[0], line, 1);
	}
	sleep(1);
	int fd = open(device, O_RDWR);
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	ioctl(uffd, UFFDIO_API, &(struct uffdio_api){ UFFD_API });
	page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ioctl(uffd, UFFDIO_REGISTER, &(struct uffdio_register){ { (unsigned long)page, 4096 }, UFFDIO_REGISTER_MODE_MISSING });
	pthread_create(&thread, 0, bring_page, 0);
	struct binder_transaction_data call = { .code = 1, .data_size = 8, .data.ptr.buffer = (unsigned long)page };
	char out[4 + sizeof(call)];
	memcpy(memcpy(out, &(__u32){ BC_TRANSACTION }, 4) + 4, &call, sizeof(call));
	struct binder_write_read x = { sizeof(out), 0, (unsigned long)out, sizeof(line), 0, (unsigned long)line };
	int result = ioctl(fd, BINDER_WRITE_READ, &x);
	printf("the call: %d, BR_%d\n", result, _IOC_NR(*(__u32 *)(line + 4))); /* BR_5 is DEAD_REPLY */
	close(fd), wait(0), sleep(1); /* nobody has the device open now */
	FILE *state = fopen("/sys/kernel/debug/binder/state", "r");
	while (state && fgets(line, sizeof(line), state))
		if ((is_dead |= !strncmp(line, "dead nodes:", 11)))
			printf("%s", line); /* tr 1 is this reader's own reference */
}
