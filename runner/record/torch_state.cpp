#include "record/torch_state.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "error.hpp"
#include "record/torch_makers.hpp"
#include "record/torch_names.hpp"
#include "record/torch_pickle.hpp"
#include "record/torch_zip.hpp"

namespace headroom {

namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t most_elements = uint64_t{1} << 56;
constexpr uint64_t most_sharing = 8;  // bytes of all tensors to bytes of the file

uint64_t elements_of(const NamedTensor& named) {
  uint64_t count = 1, most = 1;
  for (const int64_t extent : named.tensor->shape) {
    count *= static_cast<uint64_t>(extent);
    if (__builtin_mul_overflow(most, static_cast<uint64_t>(std::max<int64_t>(extent, 1)), &most) ||
        most > most_elements)
      throw BadTorchFile("has a tensor " + shown_name(named.name) + " larger than any memory");
  }
  return count;
}

// Elements of its storage that a tensor reaches to.
uint64_t reach_of(const PickledTensor& tensor) {
  uint64_t last = tensor.offset;
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    uint64_t step = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(tensor.shape[axis] - 1),
                               static_cast<uint64_t>(tensor.stride[axis]), &step) ||
        __builtin_add_overflow(last, step, &last) || last >= UINT64_MAX - 1)
      return UINT64_MAX;
  }
  return last + 1;
}

bool is_contiguous(const PickledTensor& tensor) {
  int64_t step = 1;
  for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.stride[axis] != step) return false;
    step *= tensor.shape[axis];
  }
  return true;
}

std::vector<std::byte> gathered(const PickledTensor& tensor, Bytes storage, uint64_t elements) {
  const std::size_t width = tensor.dtype.bits / 8u, axes = tensor.shape.size();
  std::vector<std::byte> copy(elements * width);
  std::vector<int64_t> at(axes, 0);
  uint64_t from = tensor.offset;
  for (uint64_t i = 0; i < elements; ++i) {
    std::memcpy(copy.data() + i * width, storage.data() + from * width, width);
    for (std::size_t axis = axes; axis-- > 0;) {
      from += static_cast<uint64_t>(tensor.stride[axis]);
      if (++at[axis] < tensor.shape[axis]) break;
      from -= static_cast<uint64_t>(tensor.stride[axis]) * static_cast<uint64_t>(tensor.shape[axis]);
      at[axis] = 0;
    }
  }
  return copy;
}

// The entries of one archive below its folder.
class Archive {
 public:
  explicit Archive(Bytes file) : entries_(read_zip(file)) {
    for (const auto& [name, entry] : entries_) {
      if (name.ends_with("/data.pkl") && name.find('/') == name.size() - 9) folder_ = name.substr(0, name.size() - 8);
    }
    if (folder_.empty()) throw BadTorchFile("is a zip archive, but none of torch.save: it has no data.pkl");
    const auto order = entries_.find(folder_ + "byteorder");
    if (order == entries_.end()) return;
    const Bytes told = order->second.data;
    if (std::string_view(reinterpret_cast<const char*>(told.data()), told.size()) != "little")
      throw BadTorchFile("was written on a big-endian machine; write it again on a little-endian one");
  }

  Bytes read(const std::string& name) {
    const auto entry = entries_.find(folder_ + name);
    if (entry == entries_.end()) throw BadTorchFile("is damaged: its entry " + shown_name(name) + " is not there");
    if (verified_.insert(name).second) entry->second.verify(entry->first);
    return entry->second.data;
  }

 private:
  std::map<std::string, ZipEntry> entries_;
  std::string folder_;
  std::set<std::string> verified_;
};

void require_torch_zip(Bytes file) {
  const auto begins = [&](std::string_view with) {
    return file.size() >= with.size() && std::memcmp(file.data(), with.data(), with.size()) == 0;
  };
  if (begins("PK")) return;
  if (begins("\x80\x02")) {
    throw BadTorchFile(
        "is of PyTorch's format before 1.6; write it anew in Python: torch.save(torch.load(FILE, weights_only=True), "
        "FILE)");
  }
  throw BadTorchFile("is no file of torch.save");
}

}  // namespace

TorchStateFile::TorchStateFile(const std::filesystem::path& path, const std::string& key) : map_(path, "checkpoint") {
  try {
    require_torch_zip(map_.bytes());
    Archive archive(map_.bytes());
    const Pickle pickle = read_pickle(archive.read("data.pkl"));
    uint64_t all_bytes = 0;
    for (const NamedTensor& named : named_tensors(pickle, key)) {
      const PickledTensor& tensor = *named.tensor;
      const Bytes storage = archive.read("data/" + tensor.storage);
      const std::size_t width = tensor.dtype.bits / 8u;
      const uint64_t elements = elements_of(named), there = storage.size() / width;
      if (elements > 0 && reach_of(tensor) > there)
        throw BadTorchFile("is damaged: tensor " + shown_name(named.name) + " reaches beyond its storage");
      if (elements > there || (all_bytes += elements * width) > most_sharing * map_.bytes().size()) {
        throw BadTorchFile("has a tensor " + shown_name(named.name) +
                           " that shows elements again and again; save it with .contiguous()");
      }
      Bytes data = storage.first(0);
      if (elements > 0 && is_contiguous(tensor)) {
        data = storage.subspan(tensor.offset * width, elements * width);
      } else if (elements > 0) {
        data = copies_.emplace_back(gathered(tensor, storage, elements));
      }
      tensors_.push_back({named.name, tensor.dtype, tensor.shape, data});
    }
  } catch (const BadTorchFile& problem) {
    throw Error(Exit::bad_input, "checkpoint", path.string() + " " + problem.what());
  }
}

}  // namespace headroom
