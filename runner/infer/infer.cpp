// The C ABI of libheadroom_infer (include/headroom/infer.h).
#include "headroom/infer.h"

#include <ATen/DLConvertor.h>
#include <algorithm>
#include <dlfcn.h>

#include "c_boundary.hpp"
#include "infer/inference.hpp"
#include "mutex.hpp"
#include "plugins/cuda_libraries.hpp"
#include "plugins/host.hpp"

namespace fs = std::filesystem;

namespace {

using headroom::Error;
using headroom::Exit;
using headroom::Inference;
using headroom::TrainedModel;
using headroom::why_no_cuda;

// Plugins are loaded and models built one at a time: weights are drawn from LibTorch's generator, which the process has
// one of.
headroom::Mutex control_mutex;

// LibTorch's exceptions without the stack that their what() ends with.
template <class Body>
hr_status guarded(hr_error* error, Body&& body) noexcept {
  return headroom::guard_c(error, "[infer] out of memory: run fewer samples at once", [&] {
    try {
      body();
    } catch (const c10::OutOfMemoryError& problem) {
      throw headroom::sdk::Error(HR_OUT_OF_MEMORY, problem.what_without_backtrace());
    } catch (const c10::Error& problem) {
      throw headroom::sdk::Error(HR_INTERNAL, problem.what_without_backtrace());
    }
  });
}

// headroom/ beside this library, as a build folder and an installation have it.
fs::path plugins_beside_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&hr_infer_open), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const fs::path library = fs::canonical(info.dli_fname, error);
  return error ? fs::path() : library.parent_path() / "headroom";
}

std::vector<fs::path> plugin_dirs_of(const hr_infer_settings& settings) {
  std::vector<fs::path> folders;
  for (const char* const* folder = settings.plugin_dirs; folder != nullptr && *folder != nullptr; ++folder)
    folders.emplace_back(*folder);
  if (const fs::path beside = plugins_beside_library(); !beside.empty()) folders.push_back(beside);
  return folders;
}

at::Device device_of(const char* word) {
  const std::string name = word == nullptr ? "cpu" : word;
  const bool is_cuda = name == "cuda" || (name.starts_with("cuda:") && name.size() > 5 && name.size() < 8 &&
                                          name.find_first_not_of("0123456789", 5) == std::string::npos);
  if (name != "cpu" && !is_cuda)
    throw Error(Exit::bad_input, "infer", "the device '" + name + "' is not known: use cpu, cuda or cuda:1");
  if (name == "cpu") return at::kCPU;
  at::Device device(name);
  if (!device.has_index()) device.set_index(0);
  if (const std::string why_not = why_no_cuda(); !why_not.empty())
    throw Error(Exit::bad_input, "infer", "'" + name + "' was asked for, but " + why_not);
  if (device.index() >= torch::cuda::device_count())
    throw Error(Exit::bad_input, "infer", "'" + name + "' was asked for, but this LibTorch sees no such device");
  return device;
}

hr_infer_settings settings_of(const hr_infer_settings* given) {
  if (given == nullptr) return {};
  if (given->struct_size >= sizeof(hr_infer_settings)) return *given;
  throw Error(Exit::bad_input, "infer",
              "the settings say a struct_size of " + std::to_string(given->struct_size) +
                  "; it must be sizeof(hr_infer_settings)");
}

TrainedModel trained_model(const char* path, const hr_infer_settings& settings) {
  std::error_code error;
  if (path == nullptr || !fs::exists(path, error)) {
    throw Error(Exit::bad_input, "infer",
                std::string(path == nullptr ? "NULL" : path) +
                    ": there is no such run's folder, and no such file of `headroom export`");
  }
  if (!fs::is_directory(path, error)) return TrainedModel::of_file(path);
  return TrainedModel::of_run(path, settings.checkpoint == nullptr ? "best" : settings.checkpoint);
}

void require_given(const void* pointer, const char* what) {
  if (pointer == nullptr) throw Error(Exit::bad_input, "infer", std::string(what) + " is NULL");
}

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

struct hr_infer {
  hr_infer(const TrainedModel& trained, const headroom::Library& library, const at::Device& device)
      : inference(trained, library, device), channels(inference.inputs().size()) {
    for (size_t i = 0; i < channels.size(); ++i) inputs.push_back(inference.inputs()[i].native(channels[i]));
    for (const Inference::Output& output : inference.outputs()) outputs.push_back(described(output));
    results.resize(outputs.size());
  }

  hr_infer_output described(const Inference::Output& output) const {
    hr_infer_output native{};
    native.struct_size = sizeof native;
    native.role = output.role;
    native.name = output.name.c_str();
    native.unit = output.field ? nullptr : or_null(output.unit);
    native.field = output.field ? &inputs[*output.field] : nullptr;
    native.given = output.given ? 1 : 0;
    native.dtype = output.dtype;
    native.ndim = static_cast<int32_t>(std::min<size_t>(output.shape.size(), HR_MAX_DIMS));
    std::copy_n(output.shape.begin(), native.ndim, native.shape);
    return native;
  }

  void run(const DLTensor* given) {
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < inputs.size(); ++i) tensors.push_back(tensor_of(given[i], inputs[i].name));
    held = inference.run(tensors);
    for (size_t i = 0; i < held.size(); ++i) {
      results[i] = {};
      if (!held[i].defined()) continue;
      results[i].data = held[i].data_ptr();
      results[i].device = {kDLCPU, 0};
      results[i].ndim = static_cast<int32_t>(held[i].dim());
      results[i].dtype = at::getDLDataType(held[i]);
      results[i].shape = const_cast<int64_t*>(held[i].sizes().data());
      results[i].strides = const_cast<int64_t*>(held[i].strides().data());
    }
  }

  // The caller's memory for the time of a run.
  static at::Tensor tensor_of(const DLTensor& given, const char* name) {
    if (given.data == nullptr) return {};
    if (given.device.device_type != kDLCPU || given.ndim < 1 || given.ndim > HR_MAX_DIMS + 1 || given.shape == nullptr)
      throw Error(Exit::bad_input, "infer", "an input must be an array in host memory whose first axis is the samples");
    try {
      return array_of(given);
    } catch (const c10::Error& problem) {
      throw Error(
          Exit::bad_input, "infer",
          "input '" + std::string(name) + "' is not an array that can be read: " + problem.what_without_backtrace());
    }
  }
  static at::Tensor array_of(const DLTensor& given) {
    const at::IntArrayRef shape(given.shape, static_cast<size_t>(given.ndim));
    const auto type = at::TensorOptions(at::toScalarType(given.dtype));
    for (const int64_t extent : shape) TORCH_CHECK_VALUE(extent >= 0, "an extent is negative");
    void* first = static_cast<std::byte*>(given.data) + given.byte_offset;
    if (given.strides == nullptr) return at::from_blob(first, shape, type);
    const at::IntArrayRef strides(given.strides, shape.size());
    for (const int64_t stride : strides) TORCH_CHECK_VALUE(stride >= 0, "a stride is negative");
    return at::from_blob(first, shape, strides, type);
  }

  Inference inference;
  std::vector<std::vector<hr_channel>> channels;  // of `inputs`
  std::vector<hr_field> inputs;
  std::vector<hr_infer_output> outputs;
  std::vector<at::Tensor> held;  // what `results` are of
  std::vector<DLTensor> results;
};

hr_status hr_infer_open(const char* path, const hr_infer_settings* settings, hr_infer** out, hr_error* error) noexcept {
  return guarded(error, [&] {
    require_given(out, "the place for the model");
    *out = nullptr;
    const hr_infer_settings chosen = settings_of(settings);
    if (chosen.threads > 0) at::set_num_threads(chosen.threads);
    const headroom::MutexLock alone(control_mutex);
    headroom::set_host_torch_tag(headroom::host_torch_tag());
    const TrainedModel trained = trained_model(path, chosen);
    const auto library = headroom::Library::load(headroom::find_plugin(trained.plugin, plugin_dirs_of(chosen)));
    *out = std::make_unique<hr_infer>(trained, library, device_of(chosen.device)).release();
  });
}

void hr_infer_close(hr_infer* model) noexcept {
  const headroom::MutexLock alone(control_mutex);
  delete model;
}

uint32_t hr_infer_input_count(const hr_infer* model) noexcept {
  return model == nullptr ? 0 : static_cast<uint32_t>(model->inputs.size());
}

const hr_field* hr_infer_input(const hr_infer* model, uint32_t i) noexcept {
  return i < hr_infer_input_count(model) ? &model->inputs[i] : nullptr;
}

int32_t hr_infer_needs(const hr_infer* model, uint32_t i) noexcept {
  return i < hr_infer_input_count(model) && model->inference.target() != i ? 1 : 0;
}

uint32_t hr_infer_output_count(const hr_infer* model) noexcept {
  return model == nullptr ? 0 : static_cast<uint32_t>(model->outputs.size());
}

const hr_infer_output* hr_infer_output_at(const hr_infer* model, uint32_t i) noexcept {
  return i < hr_infer_output_count(model) ? &model->outputs[i] : nullptr;
}

hr_status hr_infer_run(hr_infer* model, const DLTensor* inputs, const DLTensor** outputs, hr_error* error) noexcept {
  return guarded(error, [&] {
    require_given(model, "the model");
    require_given(inputs, "the array of inputs");
    require_given(outputs, "the place for the outputs");
    model->run(inputs);
    *outputs = model->results.data();
  });
}
