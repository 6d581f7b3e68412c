/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_rdonly_cast() of Linux 6.2 by its BTF id, where the probe left room for it
 * (bpf/ring.bpf.h): libbpf, asked for the function by name, would take
 * CAP_SYS_ADMIN on kernels that do not have it.
 */
#include "capture_private.h"
#include "../bpf/cast.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>

static bool is_placeholder(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == 0 && insn->imm == RDONLY_CAST_PLACEHOLDER;
}

/* 0, or -errno (-ENOENT: this kernel has no such function). */
static int find_function(int *ret_id)
{
	struct btf *kernel = btf__load_vmlinux_btf();

	if (!kernel)
		return -errno;
	*ret_id = btf__find_by_name_kind(kernel, "bpf_rdonly_cast", BTF_KIND_FUNC);
	btf__free(kernel);
	return *ret_id < 0 ? *ret_id : 0;
}

static bool has_placeholder(const struct bpf_program *program)
{
	const struct bpf_insn *insns = bpf_program__insns(program);

	for (size_t i = 0; i < bpf_program__insn_cnt(program); i++)
		if (is_placeholder(&insns[i]))
			return true;
	return false;
}

static int fill(struct bpf_program *program, int id)
{
	size_t count = bpf_program__insn_cnt(program);
	struct bpf_insn *insns = calloc(count, sizeof(*insns));
	int error;

	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(program), count * sizeof(*insns));
	for (size_t i = 0; i < count; i++) {
		if (!is_placeholder(&insns[i]))
			continue;
		insns[i].src_reg = BPF_PSEUDO_KFUNC_CALL;
		insns[i].imm = id;
	}
	error = bpf_program__set_insns(program, insns, count);
	free(insns);
	return error;
}

int capture_put_casts(struct bpf_object *object)
{
	struct bpf_program *program;
	int error = 0, id = 0;

	bpf_object__for_each_program (program, object) {
		if (error || !bpf_program__autoload(program) || !has_placeholder(program))
			continue;
		if (!id)
			error = find_function(&id);
		if (!error)
			error = fill(program, id);
	}
	return error;
}
