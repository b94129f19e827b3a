/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* bpf_works.c - whether this process may do here what eBPF capture needs
 *
 * Asks the kernel for one of each: a BPF array to map, a program that is loaded, a uprobe
 * with the program on it.  Exits with 0, or with 77 and the reason on stdout.  It shares no
 * code with the collector: a collector that can not capture must not pass for a kernel that
 * does not let it.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define UPROBE_TYPE "/sys/bus/event_source/devices/uprobe/type"
#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

static void __attribute__((noreturn)) can_not(const char *what, int err)
{
	printf("can not %s: %s\n", what, strerror(err));
	exit(77);
}

/* The number of the uprobe PMU, which the kernel gives out at boot. */
static int uprobe_type(void)
{
	FILE *file = fopen(UPROBE_TYPE, "re");
	int type;

	if (!file)
		can_not("read " UPROBE_TYPE, errno);
	if (fscanf(file, "%d", &type) != 1)
		can_not("understand " UPROBE_TYPE, EINVAL);
	fclose(file);
	return type;
}

static void map_array(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "bpf_works", 4, (__u32)bytes, 1, &opts);

	if (fd < 0)
		can_not("create a BPF array", -fd);
	if (mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		can_not("map a BPF array", errno);
	close(fd);
}

static int load_program(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "bpf_works", "GPL", insns, 2, NULL);

	if (fd < 0)
		can_not("load a BPF program", -fd);
	return fd;
}

/* A uprobe on the first byte of this program's file, which is never run. */
static void attach_uprobe(int program)
{
	const char *path = "/proc/self/exe";
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = (__u32)uprobe_type(),
		.config1 = (__u64)(unsigned long)path,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		can_not("create a uprobe", errno);
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program))
		can_not("attach a BPF program to a uprobe", errno);
	close(fd);
}

int main(void)
{
	if (access(KERNEL_BTF, R_OK))
		can_not("read " KERNEL_BTF, errno);
	map_array();
	attach_uprobe(load_program());
	return 0;
}
