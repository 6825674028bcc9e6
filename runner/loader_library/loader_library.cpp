// The C functions of libheadroom_loader (loader_library.h).
#include "loader_library/loader_library.h"

#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <utility>

#include "c_boundary.hpp"
#include "data/services.hpp"
#include "loader_library/opened_loader.hpp"
#include "mutex.hpp"
#include "program_root.hpp"

namespace fs = std::filesystem;

namespace {

using headroom::Error;
using headroom::ExportedBatch;
using headroom::OpenedLoader;

// Plugins are loaded and sources opened one at a time.
headroom::Mutex control_mutex;

template <class Body>
hr_status guarded(hr_error* error, Body&& body) noexcept {
  return headroom::guard_c(error,
                           "[loader] out of memory: hold fewer batches, or lower batch_size or data.prefetch_size",
                           std::forward<Body>(body));
}

Error refused(const std::string& sentence) { return Error(headroom::Exit::bad_input, "loader", sentence); }

void require_given(const void* pointer, const char* what) {
  if (pointer == nullptr) throw refused(std::string(what) + " is NULL");
}

// The folder above lib/, which this library is in: plugins, libexec/headroom-hdf5 and the experiments are there.
fs::path own_root() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&hr_loader_open), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const fs::path library = fs::canonical(info.dli_fname, error);
  return error ? fs::path() : library.parent_path().parent_path();
}

// Once, before anything of the runner is used.
void start_library() {
  static std::once_flag started;
  std::call_once(started, [] {
    headroom::set_program_root(own_root());
    // The process's standard output is its own. Not registered: another library may have one of that name.
    auto log = std::make_shared<spdlog::logger>("headroom", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    log->set_pattern("headroom: %v");
    spdlog::set_default_logger(std::move(log));
    headroom::register_data_services();
  });
}

headroom::LoaderRequest request_of(const hr_loader_request& given) {
  if (given.struct_size < sizeof(hr_loader_request))
    throw refused("the request says a struct_size of " + std::to_string(given.struct_size) +
                  "; it must be sizeof(hr_loader_request)");
  headroom::LoaderRequest request;
  if (given.experiment != nullptr) request.experiment = given.experiment;
  for (uint64_t i = 0; i < given.key_count; ++i) request.keys.push_back({given.keys[i].key, given.keys[i].value});
  if (given.split != nullptr) request.split = given.split;
  if (given.training >= 0) request.training = given.training != 0;
  request.batch_size = given.batch_size;
  for (const char* const* folder = given.plugin_dirs; folder != nullptr && *folder != nullptr; ++folder)
    request.plugin_dirs.emplace_back(*folder);
  return request;
}

}  // namespace

struct hr_loader {
  explicit hr_loader(const headroom::LoaderRequest& request) : opened(request) {}

  // Threads of the process that opened it, and what their locks guard, are not in a forked child.
  void require_own_process() const {
    if (getpid() == process) return;
    throw refused("this loader was opened in process " + std::to_string(process) +
                  ", and its threads are not in this forked one: open a loader in each process");
  }

  const pid_t process = getpid();
  OpenedLoader opened;
};

struct hr_loader_batch {
  std::shared_ptr<const ExportedBatch> exported;
};

namespace {

OpenedLoader& opened(hr_loader* loader) {
  require_given(loader, "the loader");
  loader->require_own_process();
  return loader->opened;
}

const std::shared_ptr<const ExportedBatch>& exported(const hr_loader_batch* batch) {
  require_given(batch, "the batch");
  return batch->exported;
}

}  // namespace

hr_status hr_loader_open(const hr_loader_request* request, hr_loader** out, hr_error* error) noexcept {
  return guarded(error, [&] {
    require_given(request, "the request");
    require_given(out, "the place for the loader");
    *out = nullptr;
    const headroom::MutexLock alone(control_mutex);
    start_library();
    *out = std::make_unique<hr_loader>(request_of(*request)).release();
  });
}

void hr_loader_close(hr_loader* loader) noexcept {
  if (loader == nullptr || getpid() != loader->process) return;
  delete loader;
}

const char* hr_loader_description(const hr_loader* loader) noexcept {
  return loader == nullptr ? "" : loader->opened.description().c_str();
}

hr_status hr_loader_seek(hr_loader* loader, uint64_t epoch, uint64_t position, hr_error* error) noexcept {
  return guarded(error, [&] { opened(loader).seek(epoch, position); });
}

hr_status hr_loader_next(hr_loader* loader, uint32_t wait_ms, int32_t* outcome, hr_loader_batch** out,
                         hr_error* error) noexcept {
  return guarded(error, [&] {
    require_given(outcome, "the place for the outcome");
    require_given(out, "the place for the batch");
    *out = nullptr;
    auto batch = std::make_unique<hr_loader_batch>();
    switch (opened(loader).next(std::chrono::milliseconds(wait_ms), batch->exported)) {
      case OpenedLoader::Outcome::batch:
        *out = batch.release();
        *outcome = HR_LOADER_BATCH;
        break;
      case OpenedLoader::Outcome::epoch_end:
        *outcome = HR_LOADER_EPOCH_END;
        break;
      case OpenedLoader::Outcome::waiting:
        *outcome = HR_LOADER_WAITING;
    }
  });
}

hr_status hr_loader_where(const hr_loader* loader, hr_loader_place* out, hr_error* error) noexcept {
  return guarded(error, [&] {
    require_given(loader, "the loader");
    require_given(out, "the place for the answer");
    loader->require_own_process();
    const OpenedLoader& of = loader->opened;
    headroom::sdk::store(out, {sizeof(hr_loader_place), 0, of.epoch(), of.position(), of.held(), of.skipped()});
  });
}

hr_loader_batch_info hr_loader_batch_look(const hr_loader_batch* batch) noexcept {
  hr_loader_batch_info info{};
  info.struct_size = sizeof info;
  if (batch == nullptr) return info;
  const headroom::Batch& of = batch->exported->batch();
  info.fields = static_cast<uint32_t>(of.fields.size());
  info.epoch = of.epoch;
  info.first = of.first;
  info.count = of.count();
  info.index = of.index.data();
  return info;
}

hr_status hr_loader_tensor(const hr_loader_batch* batch, uint32_t field, DLManagedTensorVersioned** out,
                           hr_error* error) noexcept {
  return guarded(error, [&] {
    require_given(out, "the place for the tensor");
    *out = headroom::export_field(exported(batch), field);
  });
}

hr_status hr_loader_tensor_unversioned(const hr_loader_batch* batch, uint32_t field, DLManagedTensor** out,
                                       hr_error* error) noexcept {
  return guarded(error, [&] {
    require_given(out, "the place for the tensor");
    *out = headroom::export_field_unversioned(exported(batch), field);
  });
}

void hr_loader_drop_tensor(DLManagedTensorVersioned* tensor) noexcept {
  if (tensor != nullptr) tensor->deleter(tensor);
}

void hr_loader_drop_unversioned(DLManagedTensor* tensor) noexcept {
  if (tensor != nullptr) tensor->deleter(tensor);
}

void hr_loader_release(hr_loader_batch* batch) noexcept { delete batch; }
