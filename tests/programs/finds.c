// Ways in which programs look for a device: finds FOLDER RULE. FOLDER is writable; RULE is a path that a rule of the user's makes
// a device of the context binder. Prints "ok WAY" or "FAILED WAY" for each; a driver of the kernel's passes all but RULE, those
// names that are Waydroid's, and as root the writing of a feature. Facts: the manual page of each call; contract OPN-12, FS-01,
// FS-06.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/android/binder.h>
#include <linux/android/binderfs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <poll.h>
#include <unistd.h>

#ifdef __x86_64__
#define OLD_STAT 1
#else
#define OLD_STAT 0
#endif

static const char *binder = "/dev/binder", *binderfs = "/dev/binderfs", *folder, *rule;

static void way(const char *name, int works)
{
	printf(works ? "ok %s\n" : "FAILED %s (%s)\n", name, strerror(errno));
	fflush(stdout);
	errno = 0;
}

static int works(int fd)
{
	struct binder_version version = {0};
	return fd >= 0 && ioctl(fd, BINDER_VERSION, &version) == 0 && version.protocol_version == 8;
}

// Opens, uses and closes it.
static int opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600), found = works(fd);
	if (fd >= 0)
		close(fd);
	return found;
}

// Whether a path is a device of the context of fd, whose manager it is.
static int same_context(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	int same = works(fd) && ioctl(fd, BINDER_SET_CONTEXT_MGR, 0) == -1 && errno == EBUSY;
	if (fd >= 0)
		close(fd);
	return same;
}

static int is_device(int result, const struct stat *found)
{
	return result == 0 && S_ISCHR(found->st_mode);
}

static int lists(const char *path, const char *name)
{
	DIR *open_folder = opendir(path);
	struct dirent *entry;
	int found = 0;
	while (open_folder && (entry = readdir(open_folder)))
		found |= strcmp(entry->d_name, name) == 0 && entry->d_type == DT_CHR;
	if (open_folder)
		closedir(open_folder);
	return found;
}

static int is_real(const char *path, const char *wanted)
{
	char *found = realpath(path, NULL);
	int is = found && strcmp(found, wanted) == 0;
	free(found);
	return is;
}

// Whether realpath fails with an errno, into room for the longest path and into its own.
static int has_no_real(const char *path, int wanted)
{
	struct {
		char room[PATH_MAX], after[4096];
	} given = {.after = "untouched"};
	int failed = !realpath(path, NULL) && errno == wanted;
	errno = 0;
	return failed && !realpath(path, given.room) && errno == wanted && strcmp(given.after, "untouched") == 0;
}

// A path below the folder of binderfs, of so many letters.
static const char *of_letters(size_t count)
{
	static char path[8192];
	snprintf(path, sizeof path, "%s/", binderfs);
	memset(path + strlen(path), 'x', count), path[strlen(binderfs) + 1 + count] = 0;
	return path;
}

static int runs(const char *command)
{
	return system(command) == 0;
}

static int adds(int control, const char *name)
{
	struct binderfs_device device = {0};
	strcpy(device.name, name);
	return ioctl(control, BINDER_CTL_ADD, &device);
}

static const char *in_folder(const char *name)
{
	static char path[4096];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void looks(void)
{
	struct stat found;
	way("stat", is_device(stat(binder, &found), &found));
	way("lstat", is_device(lstat(binder, &found), &found));
	struct statx extended;
	way("statx", statx(AT_FDCWD, binder, 0, STATX_TYPE, &extended) == 0 && S_ISCHR(extended.stx_mode));
	way("access", access(binder, R_OK | W_OK) == 0);
	way("faccessat", faccessat(AT_FDCWD, binder, R_OK | W_OK, AT_EACCESS) == 0);
	way("stat of the folder", stat(binderfs, &found) == 0 && S_ISDIR(found.st_mode));
	way("opendir and readdir", lists(binderfs, "binder") && lists(binderfs, "vndbinder"));
	way("a name that is not there", access("/dev/binderfs/nobody", F_OK) == -1 && errno == ENOENT);
	way("[ -e ]", runs("[ -e /dev/binder ] && [ -c /dev/binderfs/hwbinder ] && ! [ -e /dev/binder1 ]"));
	way("ls -l", runs("ls -l /dev/binder /dev/binderfs >/dev/null"));
	if (runs("command -v python3 >/dev/null"))
		way("os.path", runs("python3 -c 'import os, stat, sys; p = \"/dev/binder\"; sys.exit(not (os.path.exists(p) and "
							"os.path.realpath(p) == p and stat.S_ISCHR(os.stat(p).st_mode) and \"binder\" in os.listdir(\"/dev/binderfs\")))'"));
	way("realpath", is_real(binder, binder) && is_real("/dev/binderfs/../binder", binder));
	way("realpath of a long name", has_no_real(of_letters(300), ENAMETOOLONG));
	way("realpath of a longer path", has_no_real(of_letters(5000), ENAMETOOLONG));
	way("realpath below a device", has_no_real("/dev/binderfs/binder/x", ENOTDIR));
	way("realpath of what is not there", has_no_real("/dev/binderfs/nobody", ENOENT));
	way("/dev/../dev/binder", opens("/dev/../dev/binder", O_RDWR) && access("/dev/../dev/binder", F_OK) == 0);
}

static void links(void)
{
	struct stat found;
	char target[64] = "";
	way("symbolic link", symlink(binder, in_folder("link")) == 0 && opens(in_folder("link"), O_RDWR) &&
							 is_device(stat(in_folder("link"), &found), &found) && is_real(in_folder("link"), binder));
	way("lstat of a link", lstat(in_folder("link"), &found) == 0 && S_ISLNK(found.st_mode) &&
							   readlink(in_folder("link"), target, sizeof target) == 11);
	way("link to the folder", symlink(binderfs, in_folder("fs")) == 0 && opens(in_folder("fs/binder"), O_RDWR) &&
								  access(in_folder("fs/hwbinder"), F_OK) == 0 && lists(in_folder("fs"), "binder"));
	int above = open("/dev", O_RDONLY | O_DIRECTORY), there = open(binderfs, O_RDONLY | O_DIRECTORY);
	int one = openat(above, "binder", O_RDWR), other = openat(there, "binder", O_RDWR);
	way("openat in /dev", works(one));
	way("openat in the folder", works(other));
	way("fstatat in both", is_device(fstatat(above, "binder", &found, 0), &found) &&
							   is_device(fstatat(there, "binder", &found, AT_SYMLINK_NOFOLLOW), &found));
	// That of programs built before version 2.33 of the C library, which took the number of the structure's version.
	int (*old)(int, int, const char *, struct stat *, int) = dlsym(RTLD_DEFAULT, "__fxstatat");
	if (old && sizeof(long) == 8)
		way("__fxstatat", is_device(old(OLD_STAT, above, "binder", &found, 0), &found) &&
							  is_device(old(OLD_STAT, one, "", &found, AT_EMPTY_PATH), &found));
	close(one), close(other), close(above), close(there);
	way("relative path", chdir("/dev") == 0 && opens("binder", O_RDWR) && access("./binderfs/binder", F_OK) == 0);
	way("chdir to the folder", chdir(binderfs) == 0 && opens("binder", O_RDWR) && access("hwbinder", F_OK) == 0);
	(void)!chdir("/");
}

// Closes fd, which must be a plain file's.
static int is_plain(int fd)
{
	struct stat found;
	struct binder_version version;
	int is = fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && ioctl(fd, BINDER_VERSION, &version) == -1 && errno == ENOTTY;
	close(fd);
	return is;
}

// A stream's number names no device once the stream is closed.
static int closes(void)
{
	FILE *stream = fopen(binder, "r+");
	int number = stream ? fileno(stream) : -1;
	if (number < 0 || fclose(stream))
		return 0;
	int fd = open(in_folder("plain"), O_RDWR | O_CREAT, 0600);
	return fd == number && is_plain(fd);
}

// A stream that is opened anew keeps its number.
static void reopens(void)
{
	const char *plain = in_folder("reopened");
	FILE *stream = fopen(plain, "w+");
	int number = fileno(stream);
	way("freopen of a file to a device", freopen(binder, "r+", stream) && fileno(stream) == number && works(number));
	way("freopen of a device to itself", freopen(NULL, "r", stream) && fileno(stream) == number && works(number) &&
											 (fcntl(number, F_GETFL) & O_ACCMODE) == O_RDONLY);
	way("freopen of a device to a file", freopen(in_folder("reopened"), "r", stream) && is_plain(dup(fileno(stream))));
	way("freopen over a link", freopen(in_folder("link"), "w", stream) && works(fileno(stream)));
	way("freopen to what is not there", !freopen("/dev/binderfs/features/none", "r", stream) && errno == ENOENT &&
											fcntl(number, F_GETFD) == -1);
}

static void descriptors(void)
{
	struct stat found;
	char path[64], target[64] = "";
	int fd = open(binder, O_RDWR | O_CLOEXEC), reads = open(binder, O_RDONLY);
	way("O_RDONLY", works(reads));
	way("F_GETFL", (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR && (fcntl(reads, F_GETFL) & O_ACCMODE) == O_RDONLY);
	int copy = dup(reads);
	way("F_GETFL of a copy", (fcntl(copy, F_GETFL) & O_ACCMODE) == O_RDONLY);
	way("fstat", is_device(fstat(fd, &found), &found));
	way("fstat and stat agree", stat(binder, &(struct stat){0}) == 0 && fstat(fd, &found) == 0 && ({
			struct stat by_path;
			stat(binder, &by_path) == 0 && by_path.st_ino == found.st_ino && by_path.st_dev == found.st_dev;
		}));
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	way("/proc/self/fd", readlink(path, target, sizeof target) == 11 && strncmp(target, binder, 11) == 0);
	char *volatile nowhere = NULL;
	way("readlink without room", readlink(path, target, 0) == -1 && errno == EINVAL);
	way("readlink into nothing", readlink(path, nowhere, sizeof target) == -1 && errno == EFAULT);
	way("readlink into little", readlink(path, target, 4) == 4 && strncmp(target, "/dev/binder", 11) == 0);
	way("open of /proc/self/fd", opens(path, O_RDWR));
	close(copy), close(reads);
	FILE *stream = fopen(binder, "r+");
	way("fopen", stream && works(fileno(stream)));
	if (stream)
		fclose(stream);
	way("a plain file after fclose", closes());
	reopens();
	stream = fdopen(fd, "r+");
	way("fdopen", stream && works(fileno(stream)));
}

static int refuses(const char *path, int flags, int wanted)
{
	return open(path, flags, 0600) == -1 && errno == wanted;
}

// Whether all of this leaves errno alone, as system calls that succeed do.
static int keeps_errno(void)
{
	char path[64], target[64];
	struct stat found;
	errno = EXFULL;
	int fd = open(binder, O_RDWR | O_CLOEXEC), good = works(fd) && fstat(fd, &found) == 0 && stat(binder, &found) == 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	good = good && access(binderfs, F_OK) == 0 && readlink(path, target, sizeof target) > 0 && stat(path, &found) == 0;
	int again = open(path, O_RDWR | O_CLOEXEC), copy = dup(again);
	return good && works(copy) && close(copy) == 0 && close(again) == 0 && close(fd) == 0 && errno == EXFULL;
}

static void errors(void)
{
	char target[8];
	way("errno of success", keeps_errno());
	way("O_DIRECTORY", refuses(binder, O_DIRECTORY, ENOTDIR) && !opendir(binder) && errno == ENOTDIR);
	way("chdir to a device", chdir(binder) == -1 && errno == ENOTDIR);
	way("readlink of a device", readlink(binder, target, sizeof target) == -1 && errno == EINVAL);
	way("O_NOFOLLOW", refuses(in_folder("link"), O_NOFOLLOW, ELOOP) && opens(binder, O_RDWR | O_NOFOLLOW));
	way("open of what is not there", refuses("/dev/binder1", O_RDWR, ENOENT) && refuses("/dev/binderfs/features/none", O_RDONLY, ENOENT));
	way("a device is not run", access(binder, X_OK) == -1 && errno == EACCES);
	way("open below a device", refuses("/dev/binderfs/binder/x", O_RDWR, ENOTDIR));
	way("a folder is not written", refuses(binderfs, O_RDWR, EISDIR));
}

static int opens_stream(const char *path, const char *mode)
{
	FILE *stream = fopen(path, mode);
	int found = stream && works(fileno(stream));
	if (stream)
		fclose(stream);
	return found;
}

// Calls that make a file where none is: there is one. What a binderfs has is neither made nor written.
static void creates(void)
{
	static const char *feature = "/dev/binderfs/features/extended_error", *control = "/dev/binderfs/binder-control";
	const char *link = in_folder("link");
	way("O_CREAT over a link", opens(link, O_RDWR | O_CREAT) && refuses(link, O_CREAT | O_EXCL, EEXIST));
	way("fopen over a link", opens_stream(link, "w") && opens_stream(link, "a+") && !fopen(link, "wx") && errno == EEXIST);
	int there = open(binderfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC), made = openat(there, "made", O_RDWR | O_CREAT, 0600);
	way("O_CREAT in the folder", works(made) && opens(in_folder("fs/made2"), O_RDWR | O_CREAT));
	close(made), close(there);
	made = creat(link, 0600);
	way("creat over a link", works(made) && creat(feature, 0600) == -1 && errno == EACCES);
	close(made);
	way("O_EXCL", refuses(binder, O_CREAT | O_EXCL, EEXIST) && refuses(control, O_CREAT | O_EXCL, EEXIST) &&
					  refuses(feature, O_CREAT | O_EXCL, EEXIST));
	way("a feature is not written", refuses(feature, O_WRONLY, EACCES) && refuses(feature, O_TRUNC, EACCES) &&
										!fopen(feature, "a") && errno == EACCES && runs("grep -qx 1 /dev/binderfs/features/extended_error"));
	way("nothing is made in the folder", refuses("/dev/binderfs/features/new", O_RDWR | O_CREAT, EACCES) &&
											 access("/dev/binderfs/features/new", F_OK) == -1);
	int fd = open(feature, O_RDONLY | O_CREAT, 0600);
	way("O_CREAT of what is there", fd >= 0 && opens(binder, O_RDWR | O_CREAT) && refuses(binderfs, O_CREAT, EISDIR));
	close(fd);
	fd = open(control, O_RDWR | O_CREAT | O_TRUNC, 0600);
	way("binder-control to be written", adds(fd, "written") == 0);
	close(fd);
}

// Whether a descriptor of a device is there to be looked at, and for nothing else.
static int is_path_only(int fd)
{
	struct stat found;
	struct binder_version version;
	char path[64];
	int is = is_device(fstat(fd, &found), &found) && (fcntl(fd, F_GETFL) & O_PATH) && read(fd, path, 1) == -1 && errno == EBADF &&
			 ioctl(fd, BINDER_VERSION, &version) == -1 && errno == EBADF;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	is = is && opens(path, O_RDWR);
	close(fd);
	return is;
}

static void paths_only(void)
{
	char path[64];
	int fd = open(binder, O_RDWR | O_CLOEXEC), control = open("/dev/binderfs/binder-control", O_PATH | O_CLOEXEC);
	way("O_PATH", is_path_only(open(binder, O_PATH | O_CLOEXEC)));
	way("O_PATH of a file in the folder", adds(control, "looked-at") == -1 && errno == EBADF && close(control) == 0);
	int there = open(binderfs, O_PATH | O_CLOEXEC), one = openat(there, "binder", O_RDWR | O_CLOEXEC);
	struct stat found;
	way("O_PATH of the folder", works(one) && is_device(fstatat(there, "hwbinder", &found, 0), &found));
	close(one), close(there);
	way("O_PATH of what is not there", refuses("/dev/binderfs/nobody", O_PATH, ENOENT));
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	way("O_PATH of /proc/self/fd", is_path_only(open(path, O_PATH | O_CLOEXEC)));
	close(fd);
}

static void names(void)
{
	int fd = open(binder, O_RDWR | O_CLOEXEC);
	way("context manager", works(fd) && ioctl(fd, BINDER_SET_CONTEXT_MGR, 0) == 0);
	way("anbox-binder", same_context("/dev/anbox-binder") && access("/dev/anbox-binder", F_OK) == 0);
	way("bonder", same_context("/dev/bonder"));
	way("puddlejumper", same_context("/dev/puddlejumper"));
	way("hwpuddlejumper", opens("/dev/hwpuddlejumper", O_RDWR) && !same_context("/dev/hwpuddlejumper"));
	way("a rule of the user's", same_context(rule) && access(rule, R_OK) == 0);
	close(fd);
	int control = open("/dev/binderfs/binder-control", O_RDONLY | O_CLOEXEC);
	way("BINDER_CTL_ADD", adds(control, "extra") == 0 && lists(binderfs, "extra") && opens("/dev/binderfs/extra", O_RDWR));
	way("BINDER_CTL_ADD twice", adds(control, "extra") == -1 && errno == EEXIST);
	way("features", access("/dev/binderfs/features/extended_error", R_OK) == 0 &&
						runs("grep -qx 1 /dev/binderfs/features/oneway_spam_detection"));
}

// A call comes to a thread that waits for a set inside of a set.
static void nested(void)
{
	int fd = open("/dev/binderfs/nested", O_RDWR | O_CLOEXEC), inner = epoll_create1(O_CLOEXEC), outer = epoll_create1(O_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN};
	uint32_t enter = BC_ENTER_LOOPER;
	struct binder_write_read loop = {.write_size = 4, .write_buffer = (uintptr_t)&enter};
	int ready = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED && ioctl(fd, BINDER_SET_CONTEXT_MGR, 0) == 0 &&
				ioctl(fd, BINDER_WRITE_READ, &loop) == 0 && epoll_ctl(inner, EPOLL_CTL_ADD, fd, &event) == 0 &&
				epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event) == 0;
	pid_t child = ready ? fork() : -1;
	if (child == 0) {
		struct {
			uint32_t word;
			struct binder_transaction_data call;
		} __attribute__((packed)) command = {BC_TRANSACTION, {.code = 1, .flags = TF_ONE_WAY}};
		struct binder_write_read call = {.write_size = sizeof command, .write_buffer = (uintptr_t)&command};
		int own = open("/dev/binderfs/nested", O_RDWR | O_CLOEXEC);
		mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE, own, 0);
		usleep(100000);
		_exit(ioctl(own, BINDER_WRITE_READ, &call) != 0);
	}
	way("nested epoll", ready && epoll_wait(outer, &event, 1, 20000) == 1);
	way("poll of an epoll", ready && poll(&(struct pollfd){.fd = outer, .events = POLLIN}, 1, 20000) == 1);
	if (child > 0)
		waitpid(child, NULL, 0);
}

int main(int count, char **words)
{
	if (count != 3)
		return 2;
	folder = words[1], rule = words[2];
	looks();
	links();
	descriptors();
	errors();
	creates();
	paths_only();
	names();
	nested();
	return 0;
}
