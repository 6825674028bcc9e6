#include "interpreter.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

#include "installation.hpp"
#include "python_sources.hpp"

namespace headroom::python {

namespace {

constexpr int kFileInput = 257;  // Py_file_input

using Wrap = PyObject* (*)(const at::TensorBase&);

struct Interpreter {
  Api api;
  PyObject* adapter = nullptr;  // the module
  Wrap wrap = nullptr;
  std::filesystem::path program;
  bool is_out_of_memory = false;  // torch was not imported for want of it
};

std::mutex start_mutex;
Interpreter* running = nullptr;  // never ended

// `library`: NULL where Python is the program itself.
Api functions_of(void* library, const std::string& name) {
  Api found;
  const auto find = [&](const char* symbol) {
    void* address = dlsym(library != nullptr ? library : RTLD_DEFAULT, symbol);
    if (address == nullptr) sdk::invalid(name + " lacks " + symbol + ": Python 3.8 or later is needed");
    return address;
  };
#define HEADROOM_PYTHON_FIND(result, function, parameters) \
  found.function = reinterpret_cast<result(*) parameters>(find(#function));
  HEADROOM_PYTHON_FUNCTIONS(HEADROOM_PYTHON_FIND)
#undef HEADROOM_PYTHON_FIND
  found.none = static_cast<PyObject*>(find("_Py_NoneStruct"));
  found.memory_error = *static_cast<PyObject**>(find("PyExc_MemoryError"));
  return found;
}

void* load_library(const Installation& python) {
  std::string problems;
  for (const std::string& library : python.libraries) {
    // Global: extension modules take Python's symbols from there.
    if (void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL)) return handle;
    problems += std::string(problems.empty() ? "" : "; ") + dlerror();
  }
  sdk::invalid("libpython of " + python.program.string() + " cannot be loaded: " + problems);
}

// So that Python finds the virtual environment of its program.
void name_program(void* library, const std::filesystem::path& program) {
  static std::wstring kept;  // Python keeps the pointer
  kept = program.wstring();
  if (void* address = dlsym(library, "Py_SetProgramName"))
    reinterpret_cast<void (*)(const wchar_t*)>(address)(kept.c_str());
}

// Runs source at its module's top level. Needs the lock.
Object run_source(const char* source, const char* module_name, const Object& paths) {
  const Api& py = running->api;
  PyObject* module = py.PyImport_AddModule(module_name);  // borrowed
  PyObject* scope = py.PyModule_GetDict(module);
  py.PyDict_SetItemString(scope, "__builtins__", py.PyEval_GetBuiltins());
  if (paths) py.PyDict_SetItemString(scope, "headroom_paths", paths.get());
  const Object code(py.Py_CompileString(source, module_name, kFileInput));
  if (!code) return {};
  const Object result(py.PyEval_EvalCode(code.get(), scope, scope));
  if (!result) return {};
  py.Py_IncRef(module);
  return Object(module);
}

// What the program's own start would have: its search path, and a standard output that belongs to results.
constexpr const char* kPrepare = R"py(
import sys
for _path in headroom_paths:
    if _path not in sys.path:
        sys.path.append(_path)
sys.stdout = sys.stderr
if not getattr(sys, "argv", None):
    sys.argv = [""]
try:
    import torch
except Exception as _error:
    while _error is not None:
        if getattr(_error, "errno", None) == 12 or any(
            _words in str(_error) for _words in ("annot allocate memory", "failed to map segment")
        ):
            raise MemoryError
        _error = _error.__cause__ or _error.__context__
    raise
)py";

std::string error_text() {
  const Api& py = running->api;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  py.PyErr_Fetch(&type, &value, &trace);
  py.PyErr_NormalizeException(&type, &value, &trace);
  const Object owned_type(type), owned_value(value), owned_trace(trace);
  const Object message(value != nullptr ? py.PyObject_Str(value) : nullptr);
  return message ? to_text(message) : "no reason";
}

[[noreturn]] void throw_too_little_memory() {
  throw sdk::Error(HR_OUT_OF_MEMORY, "there is too little memory to import torch in Python");
}

// Of the exception that is raised.
void throw_where_memory_was_short() {
  running->is_out_of_memory = running->api.PyErr_ExceptionMatches(running->api.memory_error) != 0;
  if (running->is_out_of_memory) throw_too_little_memory();
}

// Some libraries of Python's torch crash where memory ends amid their start, which takes 97 MiB with Python 3.11. What
// is asked for is less, so that nobody is refused whose Python needs less.
void require_memory_of_import() {
  constexpr std::size_t least_bytes = std::size_t{80} << 20;
  void* volatile all = std::malloc(least_bytes);  // volatile, or the pair is left out
  std::free(all);
  if (all == nullptr) throw_too_little_memory();
}

void import_torch(const Installation& python) {
  if (!run_source(kPrepare, "_headroom_prepare", texts(python.search_path))) {
    throw_where_memory_was_short();
    sdk::invalid("torch of " + python.program.string() + " cannot be imported: " + error_text() +
                 "; activate the environment of the model, or set model.options.python to its folder");
  }
  const std::string library = (python.torch_folder / "lib" / "libtorch_python.so").string();
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr) {
    running->wrap = reinterpret_cast<Wrap>(dlsym(handle, "_Z16THPVariable_WrapRKN2at10TensorBaseE"));
  }
  if (running->wrap == nullptr)
    sdk::invalid(library + " does not wrap tensors as torch " TORCH_VERSION " does: install that version");
  Object adapter = run_source(kAdapterSource, "_headroom_adapter", {});
  if (!adapter) {
    throw_where_memory_was_short();
    throw sdk::Error(HR_INTERNAL, "the adapter does not load: " + error_text());
  }
  running->adapter = adapter.release();
}

}  // namespace

const Api& api() { return running->api; }

void start_interpreter(const std::filesystem::path& wanted) {
  const std::scoped_lock lock(start_mutex);
  if (running != nullptr && running->adapter != nullptr) {
    const std::filesystem::path& program = running->program;
    if (wanted.empty() || wanted == program || wanted == program.parent_path().parent_path()) return;
    sdk::invalid("this process runs " + running->program.string() +
                 " already, and has room for one Python: another model.options.python takes a run of its own");
  }
  // A part of torch cannot be imported a second time.
  if (running != nullptr && running->is_out_of_memory) throw_too_little_memory();
  if (running != nullptr) sdk::invalid("Python failed to start in this process before");
  const Installation python = find_installation(wanted);
  require_same_torch(python);
  const auto is_running = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  const bool is_program = is_running != nullptr && is_running() != 0;
  if (!is_program) require_memory_of_import();
  auto* starting = new Interpreter;
  starting->program = python.program;
  void* library = is_program ? nullptr : load_library(python);
  starting->api = functions_of(library, python.program.string());
  running = starting;
  if (!is_program) {
    name_program(library, python.program);
    // A module that is built in the order of a set of names is the same in every process.
    setenv("PYTHONHASHSEED", "0", /*overwrite:*/ 0);
    starting->api.Py_InitializeEx(/*signal handlers:*/ 0);
    starting->api.PyEval_SaveThread();  // no thread holds the lock but in a Gil
  }
  const Gil gil;
  import_torch(python);
}

Gil::Gil() {
  // A thread's own state of Python lives as long as the thread: made once, not at every call.
  thread_local const bool kept = [] {
    api().PyGILState_Ensure();
    api().PyEval_SaveThread();
    return true;
  }();
  (void)kept;
  state_ = api().PyGILState_Ensure();
}

Object::Object(const Object& other) : object_(other.object_) {
  if (object_ == nullptr) return;
  const Gil gil;
  api().Py_IncRef(object_);
}

Object::~Object() {
  if (object_ == nullptr) return;
  const Gil gil;
  api().Py_DecRef(object_);
}

namespace {

Object made(PyObject* object) {
  if (object == nullptr) throw sdk::Error(HR_OUT_OF_MEMORY, "Python has no memory left: " + error_text());
  return Object(object);
}

}  // namespace

Object none() {
  api().Py_IncRef(api().none);
  return Object(api().none);
}
Object boolean(bool value) { return made(api().PyBool_FromLong(value ? 1 : 0)); }
Object integer(int64_t value) { return made(api().PyLong_FromLongLong(value)); }
Object unsigned_integer(uint64_t value) { return made(api().PyLong_FromUnsignedLongLong(value)); }
Object text(std::string_view value) {
  return made(api().PyUnicode_DecodeUTF8(value.data(), static_cast<std::ptrdiff_t>(value.size()), "surrogateescape"));
}

Object tuple(std::vector<Object> items) {
  Object result = made(api().PyTuple_New(static_cast<std::ptrdiff_t>(items.size())));
  for (std::size_t i = 0; i < items.size(); ++i)
    api().PyTuple_SetItem(result.get(), static_cast<std::ptrdiff_t>(i), items[i].release());
  return result;
}

Object texts(const std::vector<std::string>& values) {
  std::vector<Object> items;
  for (const std::string& value : values) items.push_back(text(value));
  return tuple(std::move(items));
}

Object tensor(const at::Tensor& value) {
  if (!value.defined()) return none();
  return made(running->wrap(value));
}

int64_t to_integer(const Object& object) { return api().PyLong_AsLongLong(object.get()); }
double to_number(const Object& object) { return api().PyFloat_AsDouble(object.get()); }

std::string to_text(const Object& object) {
  std::ptrdiff_t bytes = 0;
  const char* data = api().PyUnicode_AsUTF8AndSize(object.get(), &bytes);
  if (data == nullptr) return "text that is not UTF-8 (" + error_text() + ")";
  return {data, static_cast<std::size_t>(bytes)};
}

std::vector<Object> to_items(const Object& tuple) {
  std::vector<Object> items;
  const std::ptrdiff_t count = api().PyTuple_Size(tuple.get());
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    PyObject* item = api().PyTuple_GetItem(tuple.get(), i);  // borrowed
    api().Py_IncRef(item);
    items.emplace_back(item);
  }
  return items;
}

std::vector<std::string> to_texts(const Object& tuple) {
  std::vector<std::string> values;
  for (const Object& item : to_items(tuple)) values.push_back(to_text(item));
  return values;
}

at::Tensor to_tensor(const Object& object) {
  if (object.get() == api().none) return {};
  const Object address(api().PyObject_GetAttrString(object.get(), "_cdata"));
  if (!address) throw sdk::Error(HR_INTERNAL, "this is no tensor: " + error_text());
  auto* implementation = static_cast<c10::TensorImpl*>(api().PyLong_AsVoidPtr(address.get()));
  return at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(implementation));
}

namespace {

Object function(const char* name) {
  Object found(api().PyObject_GetAttrString(running->adapter, name));
  if (!found) throw sdk::Error(HR_INTERNAL, std::string("the adapter has no ") + name);
  return found;
}

// Of (kind, sentence, traceback, value).
Object value_of(const sdk::Host* host, const Object& answer) {
  std::vector<Object> parts = to_items(answer);
  const std::string kind = to_text(parts.at(0));
  if (kind.empty()) return std::move(parts.at(3));
  const std::string sentence = to_text(parts.at(1)), trace = to_text(parts.at(2));
  if (kind == "memory") throw sdk::Error(HR_OUT_OF_MEMORY, sentence);
  if (kind == "input") throw sdk::Error(HR_INVALID_ARGUMENT, sentence);
  if (host != nullptr) host->warn(trace);
  throw sdk::Error(HR_INTERNAL, sentence);
}

}  // namespace

Object call_adapter(const sdk::Host* host, const char* name, std::vector<Object> arguments) {
  const Object what = function(name), given = tuple(std::move(arguments));
  const Object answer(api().PyObject_CallObject(what.get(), given.get()));
  // The adapter catches what the user's code throws.
  if (!answer) throw_python_error(host, "the adapter failed");
  return value_of(host, answer);
}

void throw_python_error(const sdk::Host* host, const std::string& otherwise) {
  const Api& py = api();
  if (py.PyErr_Occurred() == nullptr) throw sdk::Error(HR_INTERNAL, otherwise);
  Object value;
  {
    PyObject *type = nullptr, *object = nullptr, *trace = nullptr;
    py.PyErr_Fetch(&type, &object, &trace);
    py.PyErr_NormalizeException(&type, &object, &trace);
    const Object owned_type(type), owned_trace(trace);
    value = Object(object);
    if (trace != nullptr) py.PyException_SetTraceback(object, trace);
  }
  std::vector<Object> arguments;
  arguments.push_back(std::move(value));
  const Object what = function("explain"), given = tuple(std::move(arguments));
  const Object answer(py.PyObject_CallObject(what.get(), given.get()));
  if (!answer) throw sdk::Error(HR_INTERNAL, otherwise + ": " + error_text());
  value_of(host, answer);
  throw sdk::Error(HR_INTERNAL, otherwise);
}

}  // namespace headroom::python
