// SPDX-License-Identifier: Apache-2.0
// looks: what a person sees of a frame (name, module, origin, inlined) has one number in all profiles of a report; a
// function is (name, module). No DOM here.

const GROUP = 4; // enum fold_origin

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
		for (let i = 0; i < f.n; i++)
			f.look[i] = looks.add(f.name[i], f.module[i], f.flags[i] & 7, (f.flags[i] & 16) !== 0, f.file[i], f.line[i]);
	}
	looks.kernel = looks.add('[kernel]', '', 1, false, '', 0);
	looks.runtime = looks.add('[runtime]', '', 5, false, '', 0);
	return looks;
}

// What a language's runtime and the C library do on behalf of a program, rather than the program itself.
function looksIsRuntime(looks, i) {
	if (looks.origin[i] === 2)
		return /^(internal\/)?runtime(\/[^.]*)?\./.test(looks.name[i]);
	return looks.origin[i] === 0 && /^(ld-linux|ld-musl|libc[.-]|libm[.-]|libpthread|librt[.-]|libdl|libstdc\+\+|libgcc_s|libjvm|libpython)/
		.test(looks.module[i]);
}
