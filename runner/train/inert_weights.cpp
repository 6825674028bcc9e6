#include "train/inert_weights.hpp"

#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <vector>

#include "error.hpp"
#include "memory/descriptor.hpp"
#include "memory/file_memory.hpp"
#include "memory/readable.hpp"
#include "memory/tensor_allocator.hpp"
#include "record/mapped_file.hpp"
#include "record/output_file.hpp"

namespace headroom {

namespace {

constexpr size_t page = 4096;

size_t whole_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

// Not buffers, which a model may change in every step.
bool can_move(const Parameter& parameter) {
  return parameter.inert && parameter.kind == HR_PARAMETER && parameter.pages_of_file == nullptr &&
         parameter.tensor->device().is_cpu() && parameter.tensor->is_contiguous();
}

// A mapping of a file without a name.
class FilePages {
 public:
  // nullptr: the file system cannot map files.
  static std::shared_ptr<FilePages> of(const std::filesystem::path& file, size_t bytes) {
    const Descriptor opened(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    if (!opened) return nullptr;
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened.get(), 0);
    return data == MAP_FAILED ? nullptr : std::make_shared<FilePages>(static_cast<std::byte*>(data), bytes);
  }
  FilePages(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  FilePages(const FilePages&) = delete;
  FilePages& operator=(const FilePages&) = delete;
  ~FilePages() { ::munmap(data_, bytes_); }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  size_t bytes_;
};

// nullptr: no disk takes them.
std::shared_ptr<FilePages> write_to_disk(std::span<Parameter* const> inert) {
  const ScratchFolder folder("weights");
  // Elsewhere what was written may find no room later, when nobody hears of it.
  if (storage_of(folder.path()) != Storage::disk) return nullptr;
  OutputFile file(folder.path() / "inert");
  const std::filesystem::path place = file.take_name();
  const std::vector<std::byte> zeros(page);
  size_t bytes = 0;
  for (const Parameter* parameter : inert) {
    const size_t own = parameter->tensor->nbytes();
    file.write({static_cast<const std::byte*>(parameter->tensor->const_data_ptr()), own});
    file.write(std::span(zeros).first(whole_pages(own) - own));
    bytes += whole_pages(own);
  }
  return FilePages::of(place, bytes);
}

}  // namespace

std::string move_inert_weights_to_disk(std::span<Parameter> parameters, int64_t least_bytes) {
  std::vector<Parameter*> inert;
  int64_t bytes = 0;
  for (Parameter& parameter : parameters) {
    if (!can_move(parameter)) continue;
    inert.push_back(&parameter);
    bytes += static_cast<int64_t>(parameter.tensor->nbytes());
  }
  if (inert.empty() || bytes < least_bytes) return "";
  const std::string what = "memory: " + size_text(bytes) + " of weights that nothing computes with ";
  std::shared_ptr<FilePages> pages;
  try {
    pages = write_to_disk(inert);
  } catch (const Error&) {  // the disk is full or may not be written to
  }
  if (pages == nullptr) return what + "stay in memory: no local disk takes them (TMPDIR, /var/tmp)";
  std::byte* at = pages->data();
  for (Parameter* parameter : inert) {
    at::Tensor& tensor = *parameter->tensor;
    const size_t own = whole_pages(tensor.nbytes());
    tensor.set_data(torch::from_blob(
        at, tensor.sizes(), [pages](void*) {}, tensor.options().requires_grad(false)));
    parameter->pages_of_file = tensor.const_data_ptr();
    at += own;
  }
  purge_tensor_memory(at::kCPU);
  return what + "are kept on the disk";
}

void release_pages(const Parameter& parameter) {
  const auto* const data = static_cast<const std::byte*>(parameter.tensor->const_data_ptr());
  if (parameter.pages_of_file != nullptr && parameter.pages_of_file == data)
    drop_pages({data, parameter.tensor->nbytes()});
}

}  // namespace headroom
