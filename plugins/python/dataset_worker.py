"""A process that reads samples of the user's Dataset into memory that the host reads (worker_process.hpp).

Descriptor 3 is the host's socket: a packet is a message, its parts are divided by NUL, and each question gets one
answer: "ok" and its parts, or what went wrong ("input", "code", "memory"), a sentence and a traceback. Descriptor 4 is
the memory that samples are written to. The socket ends when the host does."""

import ctypes
import gc
import json
import mmap
import random
import signal
import socket
import struct
from collections.abc import Mapping

_question = struct.Struct("<QQQ")  # of a sample: split, index, seed
_buffer_formats = {
    "?": "bool", "e": "float16", "f": "float32", "d": "float64", "b": "int8", "B": "uint8", "h": "int16", "H": "uint16",
    "i": "int32", "I": "uint32", "l": f"int{8 * struct.calcsize('l')}", "L": f"uint{8 * struct.calcsize('L')}",
    "q": "int64", "Q": "uint64",
}  # fmt: skip
_dtypes = set(_buffer_formats.values()) | {"bfloat16"}
_most_characters = 16000  # of a part of an answer: a packet has its limits


class SampleError(Exception):
    """A sample that does not suit; others may."""


# ---- values ----------------------------------------------------------------------------------------------------------


def _of_numbers(value):
    """(dtype, shape, bytes) of numbers in lists. TypeError where there is something else among them."""
    shape, leaves = [], [value]
    while leaves and isinstance(leaves[0], (list, tuple)):
        shape.append(len(leaves[0]))
        if any(not isinstance(part, (list, tuple)) or len(part) != shape[-1] for part in leaves):
            raise TypeError("lists of different lengths")
        leaves = [leaf for part in leaves for leaf in part]
    kinds = {type(leaf) for leaf in leaves}
    if not kinds <= {bool, int, float}:
        raise TypeError(f"a {(kinds - {bool, int, float}).pop().__name__}")
    if kinds == {bool}:
        return "bool", shape, struct.pack(f"{len(leaves)}?", *leaves)
    if float in kinds:
        return "float64", shape, struct.pack(f"={len(leaves)}d", *leaves)
    return "int64", shape, struct.pack(f"={len(leaves)}q", *leaves)


def _of_tensor(value):
    value = value.detach().cpu().contiguous()
    dtype = str(value.dtype).partition(".")[2]
    return dtype, list(value.shape), ctypes.string_at(value.data_ptr(), value.numel() * value.element_size())


def _of_array(numpy, value):
    value = numpy.asarray(value)
    if value.dtype.kind not in "biuf" or value.dtype.name not in _dtypes:
        raise TypeError(f"an array of {value.dtype}")
    value = value.astype(value.dtype.newbyteorder("="), copy=False)
    return value.dtype.name, list(value.shape), value.tobytes()


def _array(value):
    """(dtype, shape, bytes in C order) of what stands for one field of a sample. TypeError."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        found = _of_tensor(value)
    elif isinstance(value, (bool, int, float, list, tuple)) and not hasattr(value, "dtype"):
        try:
            found = _of_numbers(value)
        except TypeError:  # arrays in a list, say
            if numpy is None or not isinstance(value, (list, tuple)) or not all(hasattr(v, "shape") for v in value):
                raise
            found = _of_array(numpy, [numpy.asarray(v) for v in value])
    elif numpy is not None and any(hasattr(value, name) for name in ("__array_interface__", "__array__")):
        found = _of_array(numpy, value)
    elif isinstance(value, (str, type(None), Mapping)):
        raise TypeError("None" if value is None else f"a {type(value).__name__}")
    else:
        try:
            view = memoryview(value)
            found = _buffer_formats[view.format.lstrip("@=")], list(view.shape), view.tobytes()
        except (TypeError, KeyError):
            raise TypeError(f"a {type(value).__name__}") from None
    if found[0] not in _dtypes:
        raise TypeError(f"an array of {found[0]}")
    return found


def _named(sample, names):
    """[(name, value)] of a sample."""
    if isinstance(sample, Mapping):
        missing = [name for name in names if name not in sample]
        if missing:
            raise SampleError(f"it has no '{missing[0]}', which data.options.names lists; it has "
                              f"{', '.join(map(str, sample))}")
        return [(name, sample[name]) for name in names or sample]
    if isinstance(sample, (tuple, list)):
        labels = list(names or getattr(sample, "_fields", ())) or [f"field{i}" for i in range(len(sample))]
        if len(labels) != len(sample):
            raise SampleError(f"it has {len(sample)} items, and data.options.names gives {len(labels)} names")
        return list(zip(labels, sample))
    if len(names) > 1:
        raise SampleError(f"it is a {type(sample).__name__}, and data.options.names gives {len(names)} names")
    return [(names[0] if names else "field0", sample)]


def _arrays(sample, names):
    """[(name, dtype, shape, bytes)] of a sample."""
    found = []
    for name, value in _named(sample, names):
        try:
            found.append((str(name), *_array(value)))
        except TypeError as problem:
            raise SampleError(
                f"its field '{name}' is {problem}: a field is an array, a tensor or a number; leave it out of what "
                "__getitem__ gives, or list those to take in data.options.names"
            ) from None
    return found


def _described(dtype, shape):
    return f"{dtype} [{', '.join(map(str, shape))}]"


# ---- random numbers --------------------------------------------------------------------------------------------------


def _generators():
    return "numpy" in sys.modules, hasattr(sys.modules.get("torch"), "default_generator")


def _seed(key):
    """Whatever a sample draws follows from its key. torch.manual_seed would take longer than many samples."""
    random.seed(key)
    has_numpy, has_torch = _generators()
    if has_numpy:
        sys.modules["numpy"].random.seed(key & 0xFFFFFFFF)
    if has_torch:
        sys.modules["torch"].default_generator.manual_seed(key)


# ---- the dataset -----------------------------------------------------------------------------------------------------


class Reader:
    def __init__(self):
        self.folder, self.datasets, self.fields, self.memory = "", [], [], None

    def load(self, path, name, names, *splits):
        """The lengths of the splits, and the user's own files that are loaded by now."""
        self.names = json.loads(names)
        file, self.folder = _import_file(path, "data.options.file")
        make = getattr(file, name, None)
        if not callable(make):
            classes = [n for n, c in vars(file).items() if inspect.isclass(c) and hasattr(c, "__getitem__")]
            raise InputError(
                f'data.options.class is "{name}", which is no class or function of {os.path.basename(path)}; its classes '
                f"with __getitem__ are {', '.join(sorted(classes)) or 'none'}"
            )
        for option, split in zip(("args", "val_args", "test_args"), splits):
            arguments = json.loads(split)
            _require_suit(make, name, arguments, f"data.options.{option}")
            self.datasets.append(self.build(make, name, arguments))
        own = {os.path.realpath(sys.modules[m].__file__) for m in _own_modules if m in sys.modules}
        lengths = [str(len(dataset)) for dataset in self.datasets]
        return [*lengths, *sorted(own)]

    @staticmethod
    def build(make, name, arguments):
        _seed(0)
        dataset = make(**arguments)
        for wanted in ("__len__", "__getitem__"):
            if not hasattr(type(dataset), wanted):
                raise InputError(
                    f"{name}(...) gives a {type(dataset).__name__} without {wanted}: a dataset has a length, and gives its "
                    "samples by index (an iterable dataset has neither)"
                )
        return dataset

    def sample(self, split, index, seed):
        """[(name, dtype, shape, bytes)]"""
        while True:
            before = _generators()
            _seed(seed)
            sample = self.datasets[split][index]
            if before == _generators():
                return _arrays(sample, self.names)
            # It has imported another generator just now, which had no seed.

    def describe(self):
        """name, dtype, shape of each field, of the first sample; and a remark or ""."""
        first, remark = None, ""
        for split, dataset in enumerate(self.datasets):
            if len(dataset) == 0:
                raise InputError("the dataset has no samples: its len() is 0")
            for index in sorted({0, len(dataset) - 1}):
                try:
                    arrays = self.sample(split, index, 0)
                    if first is None:
                        first, self.fields = arrays, [(name, dtype, shape, 0) for name, dtype, shape, _ in arrays]
                        if self.sample(split, index, 0) != first:
                            remark = (
                                f"sample {index} differs when it is read again with the same seed, so no run can be repeated: "
                                "draw with random, numpy.random or torch, not with a generator that seeds itself"
                            )
                    self.require_fields(arrays)
                except SampleError as problem:
                    raise InputError(f"sample {index} does not suit: {problem}") from None
        rows = [part for name, dtype, shape, _ in self.fields for part in (name, dtype, ",".join(map(str, shape)))]
        return [remark, *rows]

    def map(self, bytes_, *rows):
        """Fields as describe() gave them, each with its offset into the memory."""
        parts = [rows[i : i + 4] for i in range(0, len(rows), 4)]
        self.fields = [(n, d, [int(x) for x in s.split(",") if x], int(offset)) for n, d, s, offset in parts]
        self.memory = mmap.mmap(4, int(bytes_))
        gc.collect()
        gc.freeze()
        return []

    def require_fields(self, arrays):
        """In the order of the fields."""
        found = {name: (name, dtype, shape, data) for name, dtype, shape, data in arrays}
        ordered = []
        for name, dtype, shape, _ in self.fields:
            if name not in found:
                raise SampleError(f"it has no field '{name}', which sample 0 has")
            if found[name][1:3] != (dtype, shape):
                raise SampleError(
                    f"its field '{name}' is {_described(*found[name][1:3])}, and {_described(dtype, shape)} in sample 0: all "
                    "samples have one shape and type; crop, pad or convert them in __getitem__"
                )
            ordered.append(found[name])
        if len(found) != len(self.fields):
            more = next(name for name in found if name not in {field[0] for field in self.fields})
            raise SampleError(f"it has a field '{more}', which sample 0 has not")
        return ordered

    def read(self, split, index, seed):
        arrays = self.require_fields(self.sample(split, index, seed))
        for (_, _, _, data), (_, _, _, offset) in zip(arrays, self.fields):
            self.memory[offset : offset + len(data)] = data
        return []


def _answer(reader, message):
    if len(message) == _question.size + 1 and message[:1] == b"r":
        return reader.read(*_question.unpack_from(message, 1))
    what, *parts = message.decode("utf-8", "surrogateescape").split("\0")
    return {"load": reader.load, "describe": reader.describe, "map": reader.map}[what](*parts)


def _packet(parts):
    text = "\0".join(part[:_most_characters].replace("\0", " ") for part in parts)
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _explain(error, folder):
    if any(isinstance(one, MemoryError) for one in _chain(error)):
        parts = ["memory", _place(error, folder) + "out of memory", ""]
    elif isinstance(error, (InputError, SampleError)):
        parts = ["input", str(error), ""]
    else:
        text = str(error).strip() or "no message"
        parts = ["code", f"{_place(error, folder)}{type(error).__name__}: {text}", _traceback_text(error)[-_most_characters:]]
    return parts


def _end_with(host):
    """Dies with the host, also in the middle of a sample, and before the host where memory runs out."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        pass
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
    if os.getppid() != host:
        os._exit(0)


def main():
    _end_with(int(sys.argv[-1]))
    for inherited in (3, 4):  # not by programs that the user's code starts
        os.set_inheritable(inherited, False)
    if sys.path and sys.path[0] == "":
        sys.path.pop(0)
    sys.argv = [""]
    host, reader = socket.socket(fileno=3), Reader()
    while True:
        message = host.recv(1 << 20)
        if not message:
            break
        try:
            parts = ["ok", *_answer(reader, message)]
        except BaseException as error:  # SystemExit too: what the user's file raises is told
            parts = _explain(error, reader.folder or _latest_folder)
            traceback.clear_frames(error.__traceback__)
        host.send(_packet(parts))
        parts = None
    sys.stdout.flush()
    os._exit(0)


main()
