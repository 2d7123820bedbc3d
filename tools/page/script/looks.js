// SPDX-License-Identifier: Apache-2.0
// looks: the visible properties of a frame (name, module, origin, inlined) have one number in all profiles of a report; a
// function is (name, module). No DOM here.

const GROUP = 4; // enum fold_origin
const SCRIPT = 7; // the last origin; runtimes follow (schema/base/runtimes.c)

function looksOrigin(flags) {
	return (flags & 7) === SCRIPT ? SCRIPT + (flags >> 5) : flags & 7;
}

function looksInit(profiles) {
	const looks = {n: 0, name: [], module: [], origin: [], inlined: [], file: [], line: [], fn: [],
		fnName: [], fnModule: [], fnLook: []};
	const ids = new Map(), fns = new Map();

	looks.add = (name, module, origin, inlined, file, line) => {
		const key = `${origin}${inlined ? 'i' : ''}\n${name}\n${module}`, fkey = `${name}\n${module}`;
		let id = ids.get(key);
		if (id === undefined) {
			id = looks.n++;
			ids.set(key, id);
			if (!fns.has(fkey)) {
				fns.set(fkey, looks.fnName.push(name) - 1);
				looks.fnModule.push(module);
				looks.fnLook.push(id);
			}
			looks.name.push(name);
			looks.module.push(module);
			looks.origin.push(origin);
			looks.inlined.push(inlined);
			looks.file.push(file);
			looks.line.push(line);
			looks.fn.push(fns.get(fkey));
			return id;
		}
		if (!looks.file[id])
			looks.file[id] = file;
		if (looks.line[id] !== line || looks.file[id] !== file) // a line stays only where all agree on it
			looks.line[id] = 0;
		return id;
	};
	for (const p of profiles) {
		const f = p.frames;
		f.look = new Uint32Array(f.n);
		for (let i = 0; i < f.n; i++) {
			const why = /^\[(idle|waits)\]$/.exec(f.module[i]); // the reason of a wait, in wall time
			if (why)
				[f.name[i], f.module[i], f.file[i]] = [`[${why[1]}: ${f.name[i]}]`, '', ''];
			f.look[i] = looks.add(f.name[i], f.module[i], looksOrigin(f.flags[i]), (f.flags[i] & 16) !== 0, f.file[i], f.line[i]);
		}
	}
	looks.kernel = looks.add('[kernel]', '', 1, false, '', 0);
	looks.runtime = looks.add('[runtime]', '', 5, false, '', 0);
	return looks;
}

// Functions that a language's runtime and the C library run on behalf of a program, rather than the program itself.
function looksIsRuntime(looks, i) {
	if (looks.origin[i] === 2)
		return /^(internal\/)?runtime(\/[^.]*)?\./.test(looks.name[i]);
	return looks.origin[i] === 0 && /^(ld-linux|ld-musl|libc[.-]|libm[.-]|libpthread|librt[.-]|libdl|libstdc\+\+|libgcc_s|libjvm|libpython)/
		.test(looks.module[i]);
}

// Functions between the start of a process or thread and the program's first function: C libraries, the kernel's
// threads, C++ and Java threads, the Go runtime, Python's and Node's own entries. Only at the root of a stack (build.js).
const LOOKS_START = new RegExp('^(?:' + [
	'_+start(?:_c)?', '__libc_start_(?:main|call_main)(?:@.*|_impl)?', 'libc_start_main_stage2', '_*clone3?(?:@.*)?', 'start_thread', 'thread_start', 'start',
	'ret_from_fork(?:_asm)?', 'kthread', 'execute_native_thread_routine', 'std::thread::_State_impl<.*', 'runtime\\.(?:goexit|main|rt0_go|mstart[01]?|_?rt0_.*)(?:\\.abi0)?', '_rt0_.*',
	'std::rt::lang_start(?:_internal)?(?:<.*|::.*)?', 'std::sys::backtrace::__rust_begin_short_backtrace.*',
	'std::sys_common::backtrace::__rust_begin_short_backtrace.*',
	'Py_BytesMain', 'Py_Main', 'pymain_main', 'Py_RunMain', 'pymain_run_(?:python|file|file_obj|command|module|stdin)',
	'_?PyRun_(?:AnyFile|SimpleFile|File|String|SimpleString)(?:Object|Ex|ExFlags|Flags|StringFlags)*', 'pyrun_(?:simple_)?file', 'run_(?:mod|eval_code_obj)', 'pythread_wrapper', 'thread_run',
	'node::Start\\b.*', 'node::NodeMainInstance::Run.*', 'node::SpinEventLoop.*',
	'ThreadJavaMain', 'JavaMain', 'thread_native_entry.*', 'java_start.*', 'Thread::call_run.*', 'JavaThread::(?:run|thread_main_inner).*',
].join('|') + ')$');

// Called only by start-up code, whatever its name: the _start of a stripped file has no name.
const LOOKS_STARTED = /^(?:__libc_start_main(?:@.*|_impl)?|std::rt::lang_start(?:_internal)?(?:<.*|::.*)?|Py_BytesMain|Py_Main|node::Start\b.*|JLI_Launch)$/;

const looksIsStart = (looks, i) => LOOKS_START.test(looks.name[i]);

// A wait, by its reason; an idle one is for new work (tools/waits/waitrules.h).
const looksIsReason = (looks, i) => looks.origin[i] === 6 && /^\[(?:idle|waits): /.test(looks.name[i]);
const looksIsIdle = (looks, i) => looks.origin[i] === 6 && looks.name[i].startsWith('[idle: ');
