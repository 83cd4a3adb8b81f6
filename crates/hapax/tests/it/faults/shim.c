/* Stands between the program and the kernel (LD_PRELOAD), for faults that only the kernel can make.
 *
 * It watches the files under $HAPAX_SHIM_WATCH. After every sync that succeeds it copies the file into
 * $HAPAX_SHIM_KEPT: what stands there is what a power cut would leave. A deleted file goes from there when its folder is
 * synced. A line per sync goes to $HAPAX_SHIM_FLAGS/syncs.
 *
 * A file in $HAPAX_SHIM_FLAGS switches a fault on as long as it is there; it holds a part of the paths it is for:
 *   full   writes fail with ENOSPC
 *   low    statvfs reports no free space (whatever it holds)
 *   eio    syncs fail with EIO, and nothing is kept
 *   deaf   syncs do nothing and report success
 *   hold   syncs wait: for a reader of the pipe `held`, then for a writer of the pipe `go`
 *   late   the same after the sync, before it reports success
 *
 * The wall clock is $HAPAX_SHIM_AHEAD seconds ahead, if that is set: what a server finds that comes back after so long. It jumps by as many
 * seconds as a file `clock` in $HAPAX_SHIM_FLAGS says, as long as that is there.
 *
 * System calls are made directly, so that none of this calls itself. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char *watch, *kept, *flags;
static long ahead;

__attribute__((constructor)) static void start(void) {
    char path[PATH_MAX];
    watch = getenv("HAPAX_SHIM_WATCH");
    kept = getenv("HAPAX_SHIM_KEPT");
    flags = getenv("HAPAX_SHIM_FLAGS");
    if (!watch || !kept || !flags) abort();
    if (getenv("HAPAX_SHIM_AHEAD")) ahead = atol(getenv("HAPAX_SHIM_AHEAD"));
    /* Whoever is started by the program is not watched. */
    unsetenv("LD_PRELOAD");
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", flags, i ? "go" : "held");
        if (mkfifo(path, 0600) != 0 && errno != EEXIST) abort();
    }
}

static int raw_open(const char *path, int how) { return (int)syscall(SYS_openat, AT_FDCWD, path, how, 0600); }
static ssize_t raw_write(int fd, const void *data, size_t size) { return syscall(SYS_write, fd, data, size); }
static ssize_t raw_read(int fd, void *data, size_t size) { return syscall(SYS_read, fd, data, size); }
static void raw_close(int fd) { syscall(SYS_close, fd); }

/* The path of an open file, if it is one that is watched. Before the constructor nothing is. */
static int watched(int fd, char *path) {
    char link[64];
    if (!watch) return 0;
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    errno = before;
    if (length <= 0) return 0;
    path[length] = 0;
    size_t prefix = strlen(watch);
    return strncmp(path, watch, prefix) == 0 && (path[prefix] == '/' || !path[prefix]);
}

static int flagged(const char *flag, const char *path) {
    char name[PATH_MAX], part[256];
    int before = errno;
    snprintf(name, sizeof name, "%s/%s", flags, flag);
    int fd = raw_open(name, O_RDONLY | O_CLOEXEC);
    errno = before;
    if (fd < 0) return 0;
    ssize_t length = raw_read(fd, part, sizeof part - 1);
    raw_close(fd);
    part[length > 0 ? length : 0] = 0;
    return strstr(path, part) != NULL;
}

static void note_sync(const char *path) {
    char name[PATH_MAX], line[PATH_MAX + 1];
    snprintf(name, sizeof name, "%s/syncs", flags);
    int fd = raw_open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC);
    int length = snprintf(line, sizeof line, "%s\n", path);
    if (fd < 0 || raw_write(fd, line, (size_t)length) != length) abort();
    raw_close(fd);
}

static void hold(void) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/held", flags);
    int fd = raw_open(name, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) raw_close(fd);
    snprintf(name, sizeof name, "%s/go", flags);
    fd = raw_open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) raw_close(fd);
}

static void make_folders(char *path) {
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
}

static int is_zero(const char *data, ssize_t size) {
    for (ssize_t at = 0; at < size; at++)
        if (data[at]) return 0;
    return 1;
}

/* A folder was synced: files that are no longer in it will not come back. */
static void forget_deleted(const char *path) {
    char name[PATH_MAX], there[PATH_MAX];
    struct stat about;
    snprintf(name, sizeof name, "%s%s", kept, path + strlen(watch));
    DIR *folder = opendir(name);
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (snprintf(there, sizeof there, "%s/%s", path, entry->d_name) >= (int)sizeof there) abort();
        if (lstat(there, &about) == 0) continue;
        if (snprintf(there, sizeof there, "%s/%s", name, entry->d_name) >= (int)sizeof there) abort();
        unlink(there);
    }
    closedir(folder);
}

/* Copies the file to where a power cut would leave it, in one step. Read through its own descriptor where that is possible:
 * closing another one would let go of the locks that SQLite holds on the file. Holes stay holes. */
static void keep(int fd, const char *path) {
    static __thread char data[64 * 1024];
    char target[PATH_MAX], fresh[PATH_MAX + 32];
    struct stat about;
    if (fstat(fd, &about) != 0) return;
    if (S_ISDIR(about.st_mode)) forget_deleted(path);
    if (!S_ISREG(about.st_mode)) return;
    int readable = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
    int from = readable ? fd : raw_open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0) return; /* it was deleted meanwhile */
    snprintf(target, sizeof target, "%s%s", kept, path + strlen(watch));
    make_folders(target);
    snprintf(fresh, sizeof fresh, "%s.%ld.fresh", target, (long)syscall(SYS_gettid));
    int to = raw_open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    if (to < 0) abort();
    for (off_t at = 0; at < about.st_size;) {
        if (!readable) { /* its own descriptor, whose place may be moved */
            at = (off_t)syscall(SYS_lseek, from, at, SEEK_DATA);
            if (at < 0) break;
        }
        ssize_t size = syscall(SYS_pread64, from, data, sizeof data, at);
        if (size <= 0) break;
        if (!is_zero(data, size) && syscall(SYS_pwrite64, to, data, (size_t)size, at) != size) abort();
        at += size;
    }
    if (syscall(SYS_ftruncate, to, about.st_size) != 0) abort();
    raw_close(to);
    if (!readable) raw_close(from);
    if (syscall(SYS_renameat, AT_FDCWD, fresh, AT_FDCWD, target) != 0) abort();
}

static int sync_file(int fd, long call) {
    char path[PATH_MAX];
    if (!watched(fd, path)) return (int)syscall(call, fd);
    if (flagged("hold", path)) hold();
    note_sync(path);
    if (flagged("eio", path)) {
        errno = EIO;
        return -1;
    }
    if (flagged("deaf", path)) return 0;
    int done = (int)syscall(call, fd);
    if (done == 0) keep(fd, path);
    if (flagged("late", path)) hold();
    errno = 0;
    return done;
}

int fsync(int fd) { return sync_file(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_file(fd, SYS_fdatasync); }

/* Is there no space for this? Then errno says so. */
static int full(int fd) {
    char path[PATH_MAX];
    if (!watched(fd, path) || !flagged("full", path)) return 0;
    errno = ENOSPC;
    return 1;
}

/* Growing needs space, shrinking does not. */
static int full_at(int fd, off_t size) {
    struct stat about;
    return fstat(fd, &about) == 0 && size > about.st_size && full(fd);
}

ssize_t write(int fd, const void *data, size_t size) {
    return full(fd) ? -1 : syscall(SYS_write, fd, data, size);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    return full(fd) ? -1 : syscall(SYS_writev, fd, parts, count);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
    return full(fd) ? -1 : syscall(SYS_pwrite64, fd, data, size, at);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }
int ftruncate64(int fd, off_t size) { return full_at(fd, size) ? -1 : (int)syscall(SYS_ftruncate, fd, size); }
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int fallocate64(int fd, int how, off_t at, off_t size) {
    return full(fd) ? -1 : (int)syscall(SYS_fallocate, fd, how, at, size);
}
int fallocate(int fd, int how, off_t at, off_t size) { return fallocate64(fd, how, at, size); }

static int space(const char *name, const char *path, void *about) {
    int (*real)(const char *, void *) = (int (*)(const char *, void *))dlsym(RTLD_NEXT, name);
    int done = real(path, about);
    if (done == 0 && watch && flagged("low", "")) {
        ((struct statvfs *)about)->f_bavail = 0;
        ((struct statvfs *)about)->f_bfree = 0;
    }
    return done;
}
int statvfs(const char *restrict path, struct statvfs *restrict about) { return space("statvfs", path, about); }
int statvfs64(const char *restrict path, struct statvfs64 *restrict about) { return space("statvfs64", path, about); }

static long jumped(void) {
    char name[PATH_MAX], seconds[32];
    int before = errno;
    if (!flags) return 0;
    snprintf(name, sizeof name, "%s/clock", flags);
    int fd = raw_open(name, O_RDONLY | O_CLOEXEC);
    errno = before;
    if (fd < 0) return 0;
    ssize_t length = raw_read(fd, seconds, sizeof seconds - 1);
    raw_close(fd);
    seconds[length > 0 ? length : 0] = 0;
    return atol(seconds);
}

int clock_gettime(clockid_t which, struct timespec *at) {
    int done = (int)syscall(SYS_clock_gettime, which, at);
    if (done == 0 && which == CLOCK_REALTIME) at->tv_sec += ahead + jumped();
    return done;
}
