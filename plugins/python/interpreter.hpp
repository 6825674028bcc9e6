// Python inside this process: started once, never ended. All that holds Python objects goes through here.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <torch/torch.h>
#include <utility>
#include <vector>

#include "headroom/model.hpp"
#include "python_api.hpp"

namespace headroom::python {

// Finds, checks and starts Python, imports torch and the adapter. Later calls only check that the same Python is
// wanted. Error(invalid argument) where there is none that suits. [control]
void start_interpreter(const std::filesystem::path& wanted);

// Holds Python's lock in a scope. A thread may hold it twice. [any]
class Gil {
 public:
  Gil();
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;
  ~Gil() { api().PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// One reference. Takes the lock itself where it ends.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* owned) : object_(owned) {}
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Object(const Object& other);
  Object& operator=(const Object&) = delete;
  ~Object();

  explicit operator bool() const { return object_ != nullptr; }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_ = nullptr;
};

// All of these need the lock. Where Python fails they throw sdk::Error with its exception.
Object none();
Object boolean(bool value);
Object integer(int64_t value);
Object unsigned_integer(uint64_t value);
Object text(std::string_view value);
Object tuple(std::vector<Object> items);
Object texts(const std::vector<std::string>& values);
Object tensor(const at::Tensor& value);  // None where undefined

int64_t to_integer(const Object& object);
double to_number(const Object& object);
std::string to_text(const Object& object);
std::vector<Object> to_items(const Object& tuple);
std::vector<std::string> to_texts(const Object& tuple);
at::Tensor to_tensor(const Object& object);  // undefined for None

// What the adapter's function `name` gives. What it reports instead becomes sdk::Error: out of memory, a mistake of the
// user's files (HR_INVALID_ARGUMENT) or an exception of their code (HR_INTERNAL), whose traceback goes to the log of
// `host`; NULL: nowhere.
Object call_adapter(const sdk::Host* host, const char* name, std::vector<Object> arguments);

// Throws the exception that Python code left behind in this thread, as call_adapter() would; `otherwise` where it left
// none.
[[noreturn]] void throw_python_error(const sdk::Host* host, const std::string& otherwise);

}  // namespace headroom::python
