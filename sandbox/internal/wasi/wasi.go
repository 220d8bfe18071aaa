package wasi

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// ModuleName is the module that guests import these functions from.
const ModuleName = "wasi_snapshot_preview1"

// A function answers one host call. It gets the guest's memory and the
// arguments as they stand on the stack, and keeps neither.
type function func(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno

// functions are the calls of preview 1 that return an errno, which is all but
// proc_exit. Of their parameters i is 32 and I is 64 bits wide.
// Source: wasi_snapshot_preview1.witx.
var functions = []struct {
	name   string
	params string
	answer function
}{
	{"args_get", "ii", argsGet},
	{"args_sizes_get", "ii", argsSizesGet},
	{"environ_get", "ii", environGet},
	{"environ_sizes_get", "ii", environSizesGet},
	{"clock_res_get", "ii", clockResGet},
	{"clock_time_get", "iIi", clockTimeGet},
	{"fd_advise", "iIIi", fdAdvise},
	{"fd_allocate", "iII", fdAllocate},
	{"fd_close", "i", fdClose},
	{"fd_datasync", "i", fdDatasync},
	{"fd_fdstat_get", "ii", fdFdstatGet},
	{"fd_fdstat_set_flags", "ii", fdFdstatSetFlags},
	{"fd_fdstat_set_rights", "iII", fdFdstatSetRights},
	{"fd_filestat_get", "ii", fdFilestatGet},
	{"fd_filestat_set_size", "iI", fdFilestatSetSize},
	{"fd_filestat_set_times", "iIIi", fdFilestatSetTimes},
	{"fd_pread", "iiiIi", fdPread},
	{"fd_prestat_get", "ii", fdPrestatGet},
	{"fd_prestat_dir_name", "iii", fdPrestatDirName},
	{"fd_pwrite", "iiiIi", fdPwrite},
	{"fd_read", "iiii", fdRead},
	{"fd_readdir", "iiiIi", fdReaddir},
	{"fd_renumber", "ii", fdRenumber},
	{"fd_seek", "iIii", fdSeek},
	{"fd_sync", "i", fdSync},
	{"fd_tell", "ii", fdTell},
	{"fd_write", "iiii", fdWrite},
	{"path_create_directory", "iii", pathCreateDirectory},
	{"path_filestat_get", "iiiii", pathFilestatGet},
	{"path_filestat_set_times", "iiiiIIi", pathFilestatSetTimes},
	{"path_link", "iiiiiii", pathLink},
	{"path_open", "iiiiiIIii", pathOpen},
	{"path_readlink", "iiiiii", pathReadlink},
	{"path_remove_directory", "iii", pathRemoveDirectory},
	{"path_rename", "iiiiii", pathRename},
	{"path_symlink", "iiiii", pathSymlink},
	{"path_unlink_file", "iii", pathUnlinkFile},
	{"poll_oneoff", "iiii", pollOneoff},
	{"proc_raise", "i", procRaise},
	{"sched_yield", "", schedYield},
	{"random_get", "ii", randomGet},
	{"sock_accept", "iii", noSocket},
	{"sock_recv", "iiiiii", noSocket},
	{"sock_send", "iiiii", noSocket},
	{"sock_shutdown", "ii", noSocket},
}

// Instantiate provides the module [ModuleName] in r, which closes it, and wasi_unstable,
// the version before it. of finds
// the [Process] of the call that runs, and the context of that call, from the context that
// was given to Function.Call; when it finds none (nil), every call answers ENOSYS, and
// proc_exit still exits. The functions may be used by several calls at once.
func Instantiate(ctx context.Context, r wazero.Runtime, of func(context.Context) (context.Context, *Process)) error {
	if of == nil {
		return errors.New("wasi: Instantiate needs a function that finds the process of a call")
	}
	for name, other := range map[string]map[string]function{ModuleName: nil, unstableName: unstable} {
		h := &host{of: of}
		b := r.NewHostModuleBuilder(name)
		for _, f := range functions {
			if answer := other[f.name]; answer != nil {
				f.answer = answer
			}
			b.NewFunctionBuilder().
				WithGoModuleFunction(h.bind(f.answer), types(f.params), []api.ValueType{api.ValueTypeI32}).
				Export(f.name)
		}
		b.NewFunctionBuilder().WithGoFunction(api.GoFunc(h.procExit), types("i"), nil).Export("proc_exit")
		m, err := b.Instantiate(ctx)
		if err != nil {
			return fmt.Errorf("wasi: provide %s: %w", name, err)
		}
		h.absent = m.Memory()
	}
	return nil
}

// A host is what all calls of a runtime share. It does not change.
type host struct {
	of     func(context.Context) (context.Context, *Process)
	absent api.Memory // what a module without a memory has: this one is not nil, but of no use
}

func (h *host) bind(answer function) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		stack[0] = uint64(h.answer(ctx, m, stack, answer))
	}
}

func (h *host) answer(ctx context.Context, m api.Module, stack []uint64, answer function) errno {
	ctx, p := h.of(ctx)
	if p == nil {
		return errNoFunction
	}
	mem := m.Memory()
	if mem == nil || mem == h.absent {
		return errFault
	}
	p.start()
	e := answer(ctx, p, mem, stack)
	p.table.leave(0)
	return e
}

// procExit ends the call and nothing else: the instance can be used again,
// which wazero's own proc_exit, closing it, would not allow.
func (h *host) procExit(ctx context.Context, stack []uint64) {
	if _, p := h.of(ctx); p != nil && p.Exit != nil {
		p.Exit(uint32(stack[0]))
	}
	panic(sys.NewExitError(uint32(stack[0])))
}

func types(params string) []api.ValueType {
	list := make([]api.ValueType, len(params))
	for i := range params {
		list[i] = api.ValueTypeI32
		if params[i] == 'I' {
			list[i] = api.ValueTypeI64
		}
	}
	return list
}
