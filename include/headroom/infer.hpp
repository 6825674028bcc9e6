// libheadroom_infer for C++ (infer.h has the rules): a model that closes itself, and exceptions for errors. Needs no
// LibTorch. Header-only.
//
//   headroom::InferenceModel model("runs/pose/20261121-063011-3fa2");
//   const std::vector<float> emg = ...;                                   // 4 samples
//   model.set("emg", std::span<const float>(emg), 4);
//   model.run();
//   for (const float angle : model.output<float>("prediction")) ...
#pragma once

#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "headroom/infer.h"

namespace headroom {

class InferenceError : public std::runtime_error {
 public:
  InferenceError(hr_status status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  hr_status status() const { return status_; }

 private:
  hr_status status_;
};

// Move-only. One thread, see infer.h.
class InferenceModel {
 public:
  explicit InferenceModel(const std::string& path, const hr_infer_settings* settings = nullptr) {
    call([&](hr_error* error) { return hr_infer_open(path.c_str(), settings, &handle_, error); });
    given_.resize(inputs());
  }
  InferenceModel(InferenceModel&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        given_(std::move(other.given_)),
        results_(std::exchange(other.results_, nullptr)) {}
  InferenceModel& operator=(InferenceModel&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(given_, other.given_);
    std::swap(results_, other.results_);
    return *this;
  }
  ~InferenceModel() { hr_infer_close(handle_); }

  uint32_t inputs() const { return hr_infer_input_count(handle_); }
  const hr_field& input(uint32_t i) const { return *require(hr_infer_input(handle_, i), "input"); }
  bool needs(uint32_t i) const { return hr_infer_needs(handle_, i) != 0; }
  uint32_t outputs() const { return hr_infer_output_count(handle_); }
  const hr_infer_output& output(uint32_t i) const { return *require(hr_infer_output_at(handle_, i), "output"); }

  // The values of an input of the next runs: `samples` samples of the field's shape, row-major. Borrowed until the last
  // of those runs. After an error the input is what it was.
  template <class T>
  void set(std::string_view name, std::span<const T> values, int64_t samples) {
    const uint32_t i = input_called(name);
    const hr_field& field = input(i);
    std::vector<int64_t> shape = {samples};
    shape.insert(shape.end(), field.shape, field.shape + field.ndim);
    int64_t elements = 1;
    for (const int64_t extent : shape) elements *= extent;
    if (!is_type<T>(field.dtype) || samples < 1 || static_cast<std::size_t>(elements) != values.size()) {
      throw InferenceError(HR_INVALID_ARGUMENT, "input '" + std::string(name) + "' needs " + std::to_string(elements) +
                                                    " values of its own type; " + std::to_string(values.size()) +
                                                    " were given");
    }
    given_[i] = {std::move(shape), values.data()};
  }
  void leave_out(std::string_view name) { given_[input_called(name)].data = nullptr; }

  void run() {
    std::vector<DLTensor> inputs(given_.size());
    for (std::size_t i = 0; i < given_.size(); ++i) {
      DLTensor& tensor = inputs[i];
      tensor = {};
      tensor.device = {kDLCPU, 0};
      tensor.dtype = input(static_cast<uint32_t>(i)).dtype;
      tensor.ndim = static_cast<int32_t>(given_[i].shape.size());
      tensor.shape = given_[i].shape.data();
      tensor.data = const_cast<void*>(given_[i].data);
    }
    results_ = nullptr;
    call([&](hr_error* error) { return hr_infer_run(handle_, inputs.data(), &results_, error); });
  }

  // Of the last run, row-major; data NULL: not given. An error where there was none, or it failed.
  const DLTensor& result(uint32_t i) const {
    (void)output(i);
    if (results_ == nullptr) throw InferenceError(HR_INVALID_ARGUMENT, "there is no result: call run() before");
    return results_[i];
  }
  template <class T>
  std::span<const T> output(std::string_view name) const {
    for (uint32_t i = 0; i < outputs(); ++i) {
      if (output(i).name != name) continue;
      const DLTensor& tensor = result(i);
      if (tensor.data == nullptr) return {};
      if (!is_type<T>(tensor.dtype))
        throw InferenceError(HR_INVALID_ARGUMENT, "output '" + std::string(name) + "' holds numbers of another type");
      std::size_t elements = 1;
      for (int32_t axis = 0; axis < tensor.ndim; ++axis) elements *= static_cast<std::size_t>(tensor.shape[axis]);
      return {static_cast<const T*>(tensor.data), elements};
    }
    throw InferenceError(HR_NOT_FOUND, "the model has no output '" + std::string(name) + "'");
  }

 private:
  struct Given {
    std::vector<int64_t> shape;
    const void* data = nullptr;
  };

  template <class T>
  static bool is_type(DLDataType dtype) {
    static_assert(std::is_arithmetic_v<T>, "arrays hold numbers");
    const int code = std::is_same_v<T, bool>       ? kDLBool
                     : std::is_floating_point_v<T> ? kDLFloat
                     : std::is_signed_v<T>         ? kDLInt
                                                   : kDLUInt;
    return dtype.code == code && dtype.bits == 8 * sizeof(T) && dtype.lanes == 1;
  }
  template <class T>
  static T* require(T* found, const char* what) {
    if (found != nullptr) return found;
    throw InferenceError(HR_NOT_FOUND, std::string("the model has no such ") + what);
  }
  uint32_t input_called(std::string_view name) const {
    for (uint32_t i = 0; i < inputs(); ++i)
      if (input(i).name == name) return i;
    throw InferenceError(HR_NOT_FOUND, "the model has no input '" + std::string(name) + "'");
  }
  template <class Body>
  static void call(Body&& body) {
    hr_error error{};
    error.struct_size = sizeof error;
    const hr_status status = body(&error);
    if (status == HR_OK) return;
    throw InferenceError(status, std::string(error.message, strnlen(error.message, sizeof error.message)));
  }

  hr_infer* handle_ = nullptr;
  std::vector<Given> given_;
  const DLTensor* results_ = nullptr;
};

}  // namespace headroom
