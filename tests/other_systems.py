"""Other systems, as far as this one can play them: their ``sitecustomize.py`` takes from Python."""

LACKING = {
    "macOS": """
import builtins, io, multiprocessing, os
multiprocessing.set_start_method("spawn")
opened = io.open
def no_proc(path, *rest, **options):
    if str(path).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file or directory", str(path))
    return opened(path, *rest, **options)
builtins.open = io.open = no_proc
for name in ("sched_getaffinity", "RTLD_DEEPBIND"):
    vars(os).pop(name, None)
if hasattr(os, "process_cpu_count"):  # Python's own asks for what is taken away
    os.process_cpu_count = os.cpu_count
""",
    "Windows": """
import builtins, multiprocessing, os, select, signal, sys, types
multiprocessing.set_start_method("spawn")
imported = builtins.__import__
def ours(name, scope=None, *rest, **options):
    # Other packages ask for the system's name.
    if (scope or {}).get("__name__", "").startswith("glassformer"):
        if name in LACKING:
            raise ImportError(name)
        if name == "msvcrt":
            return msvcrt
    return imported(name, scope, *rest, **options)
LACKING = ("resource", "termios", "tty", "fcntl", "pwd", "grp")
builtins.__import__ = ours
msvcrt = types.SimpleNamespace(locking=lambda *_: None, LK_NBLCK=2)
for module, names in (
    (os, "killpg fork sched_getaffinity RTLD_DEEPBIND mkfifo"),
    (signal, "SIGALRM alarm SIGHUP"),
    (sys, "getdlopenflags setdlopenflags"),
):
    for name in names.split():
        vars(module).pop(name, None)
if hasattr(os, "process_cpu_count"):
    os.process_cpu_count = os.cpu_count
def sockets_only(*_):
    raise OSError(10038, "An operation was attempted on something that is not a socket")
select.select = sockets_only
""",
}
