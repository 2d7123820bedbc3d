// SPDX-License-Identifier: Apache-2.0
// jump: Ctrl-K: to any container, process, function or tab by a few letters of its name.

// what(): [{kind, name, go()}]
function jumpInit(what) {
	const box = $('jump'), field = $('jump-find'), list = $('jump-list');
	let found = [], at = 0;

	function draw() {
		const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
		found = what().filter((x) => words.every((w) => `${x.kind} ${x.name}`.toLowerCase().includes(w))).slice(0, 12);
		at = Math.min(at, Math.max(found.length - 1, 0));
		list.replaceChildren(...found.map((x, i) => {
			const li = document.createElement('li'), kind = document.createElement('small'), name = document.createElement('span');
			li.setAttribute('role', 'option');
			li.id = 'jump-' + i;
			li.setAttribute('aria-selected', i === at);
			kind.textContent = x.kind;
			name.textContent = drawShorten(x.name, 90);
			li.append(kind, name);
			li.addEventListener('click', () => go(x));
			return li;
		}));
		field.setAttribute('aria-activedescendant', found.length ? 'jump-' + at : '');
	}
	function go(x) {
		box.close();
		x.go();
	}
	field.addEventListener('input', () => {
		at = 0;
		draw();
	});
	field.addEventListener('keydown', (e) => {
		if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
			e.preventDefault();
			at = (at + (e.key === 'ArrowDown' ? 1 : -1) + found.length) % Math.max(found.length, 1);
			draw();
		} else if (e.key === 'Enter') {
			e.preventDefault();
			if (found[at])
				go(found[at]);
		}
	});
	return () => {
		field.value = '';
		at = 0;
		draw();
		box.showModal();
		field.focus();
	};
}
