## SPDX-License-Identifier: LGPL-2.1-or-later
##
##   X.bpf.c --clang--> X.bpf.to    one for each source
##           --bpftool gen object--> memtrack.bpf.o
##           --bpftool gen skeleton--> memtrack.skel.h
##
## "gen object" is a linker: programs lie in as many files as they need, maps in one.  It
## also drops DWARF and keeps BTF, so no strip is needed.

## maps.bpf.c first: the linker of libbpf 1.1 puts a map that is declared before the object
## that defines it at the wrong offset ("relo failed to find map").
bpf_sources =			\
	%D%/maps.bpf.c		\
	%D%/capture.bpf.c	\
	%D%/life.bpf.c

bpf_headers =			\
	%D%/maps.bpf.h		\
	%D%/peak.bpf.h		\
	%D%/pressure.bpf.h	\
	%D%/vmlinux.h

EXTRA_DIST += $(bpf_sources) $(bpf_headers)

if ENABLE_BPF
bpf_units = $(bpf_sources:.c=.to)

## Silent rules, as automake makes them for its own.
bpf_v_cc   = $(bpf_v_cc_@AM_V@)
bpf_v_cc_  = $(bpf_v_cc_@AM_DEFAULT_V@)
bpf_v_cc_0 = @echo "  BPFCC   " $@;
bpf_v_cc_1 =
bpf_v_ld   = $(bpf_v_ld_@AM_V@)
bpf_v_ld_  = $(bpf_v_ld_@AM_DEFAULT_V@)
bpf_v_ld_0 = @echo "  BPFLD   " $@;
bpf_v_ld_1 =

## clang runs in the source directory.  File names in BTF are then relative to it, and clang
## finds the lines that it copies there for the verifier to quote; from a build directory it
## would write that directory's path, or no lines at all.
BPF_COMPILE = cd $(top_srcdir) && $(BPF_CC) -target bpf -mcpu=v3 -iquote .	\
	$(BPF_CPPFLAGS) -Wall -Wextra -Wno-unused-parameter $(MT_WERROR)	\
	-ffile-compilation-dir=. $(BPF_CFLAGS)

%D%/%.bpf.to: %D%/%.bpf.c %D%/local.mk
	@$(MKDIR_P) $(@D)
	$(bpf_v_cc)$(BPF_COMPILE) -MMD -MP -MT $@ -MF $(abs_top_builddir)/$(@:.to=.d) \
		-c -o $(abs_top_builddir)/$@ %D%/$*.bpf.c

## local.mk: a new order is a new object.
%D%/memtrack.bpf.o: $(bpf_units) %D%/local.mk
	$(bpf_v_ld)$(BPFTOOL) gen object $@ $(bpf_units)

%D%/memtrack.skel.h: %D%/memtrack.bpf.o
	$(AM_V_GEN)$(BPFTOOL) gen skeleton %D%/memtrack.bpf.o name memtrack_bpf >$@.tmp && \
		mv -f $@.tmp $@

## What the units include, written by -MMD above.
-include $(bpf_units:.to=.d)

CLEANFILES += $(bpf_units) $(bpf_units:.to=.d)	\
	%D%/memtrack.bpf.o %D%/memtrack.skel.h %D%/memtrack.skel.h.tmp
endif
