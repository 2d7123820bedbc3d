# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Threads that wait in known Python code, for CPython 2.7 and 3.6 to 3.15. Prints one line of JSON when all of them wait there: of
each its thread id, and its frames as Python itself says them (sys._current_frames), innermost first: [function, file, line],
the function qualified where the version has that. Then waits for the end of its standard input.

    pystand.py [many N]      N further threads at one place
"""
import functools
import json
import os
import re
import sys
import tempfile
import threading
import time

try:
    import ctypes
except ImportError:
    ctypes = None

lock = threading.Lock()
lock.acquire()
tids = {}  # kind -> (thread id of Python, of the kernel)


def native_id():
    if hasattr(threading, "get_native_id"):
        return threading.get_native_id()
    return int(os.path.basename(os.readlink("/proc/thread-self")))


def stand(*_):
    lock.acquire()
    return 0


class Box(object):
    def method(self):
        lock.acquire()

    @staticmethod
    def static():
        stand()

    def closure(self):
        def inner():
            self.method()
        return inner


def by_sorted():
    sorted([2, 1], key=stand)


def by_regex():
    re.sub("x", lambda m: stand(), "axb")


def by_map():
    list(map(lambda x: stand(x), [1]))


def numbers():
    yield 1
    stand()
    yield 2


def by_generator():
    for _ in numbers():
        pass


def by_expression():
    sum(stand(x) for x in [1])


def by_partial():
    functools.partial(stand, 1)()


def by_class_body():
    class Late(object):
        stand()


def decorated(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs)
    return wrapper


@decorated
def by_decorator():
    Box().closure()()


def deep(n):
    if n:
        return deep(n - 1)
    return stand()


def by_recursion():
    deep(60)


def by_mixed_recursion(n=20):
    if n:
        return sorted([2, 1], key=lambda x: by_mixed_recursion(n - 1))
    return stand()


def by_sleep():
    time.sleep(100000)


def by_finalizer():
    class Falls(object):
        def __del__(self):
            stand()
    Falls()


def by_import():
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "slowly_imported.py"), "w") as f:
        f.write("\n\nimport __main__\n__main__.stand()\n")
    sys.path.insert(0, folder)
    import slowly_imported  # noqa: F401


def by_long_lines():
    stand(
        1,



        2)


def by_native():
    """C code of another library that calls back."""
    less = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(stand)
    ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, 4, less)


NEW = u"""
class Größe:
    def länge(self):
        def 世界():
            def \U00020000x():
                stand()
            \U00020000x()
        世界()

def by_names():
    Größe().länge()

async def innermost():
    stand()

async def middle():
    await innermost()
    return 1

async def outer():
    return [await middle() for _ in range(2)]

def by_coroutine():
    outer().send(None)

async def ticks():
    yield 1
    stand()
    yield 2

async def over_ticks():
    async for _ in ticks():
        pass

def by_async_generator():
    over_ticks().send(None)
"""

kinds = [Box().method, Box.static, by_sorted, by_regex, by_map, by_generator, by_expression, by_partial, by_class_body, by_decorator,
         by_recursion, by_mixed_recursion, by_sleep, by_finalizer, by_import, by_long_lines]
if ctypes:
    kinds.append(by_native)
if sys.version_info >= (3, 6):
    scope = dict(stand=stand)
    exec(compile(NEW, u"/srv/wörk/世界.py", "exec"), scope)
    kinds += [scope["by_names"], scope["by_coroutine"], scope["by_async_generator"]]


def run(kind):
    tids[kind] = (threading.current_thread().ident, native_id())
    kind()


def is_asleep(tid):
    with open("/proc/self/task/%d/stat" % tid) as f:
        return f.read().rpartition(")")[2].split()[0] == "S"


def frames_of(frame):
    told = []
    while frame:
        code = frame.f_code
        told.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return told


def standing():
    """What all say twice, asleep, within their kinds."""
    tops = sys._current_frames()
    told = {}
    for kind, (ident, tid) in list(tids.items()):
        if not is_asleep(tid):
            return None
        told[tid] = frames_of(tops[ident])
    return told


def wait_until_all_stand(count):
    before = None
    while True:
        told = standing() if len(tids) == count else None
        if told and told == before:
            return told
        before = told
        time.sleep(0.05)


def main():
    many = int(sys.argv[2]) if sys.argv[1:2] == ["many"] else 0
    todo = kinds + [functools.partial(stand, i) for i in range(many)]
    for kind in todo:
        thread = threading.Thread(target=run, args=(kind,))
        thread.daemon = True
        thread.start()
    told = wait_until_all_stand(len(todo))
    me = native_id()
    told[me] = frames_of(sys._getframe())
    told[me][0][2] = sys._getframe().f_lineno + 3
    print(json.dumps({"pid": os.getpid(), "main": me, "version": "%d.%d" % sys.version_info[:2], "threads": told}))
    sys.stdout.flush()
    os.read(0, 1)
    os._exit(0)


main()
