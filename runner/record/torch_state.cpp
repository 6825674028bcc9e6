#include "record/torch_state.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "error.hpp"
#include "record/torch_pickle.hpp"
#include "record/torch_zip.hpp"

namespace headroom {

namespace {

using Kind = Pickle::Kind;
using Node = Pickle::Node;

constexpr std::size_t deepest = 32;  // levels of dictionaries

struct NamedTensor {
  std::string name;             // of nested dictionaries joined by dots; UTF-8
  const PickledTensor* tensor;  // lives with the pickle
};

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return "a truth value";
    case Kind::integer:
      return "a whole number";
    case Kind::real:
      return "a number";
    case Kind::string:
      return "text";
    case Kind::tuple:
      return "a tuple";
    case Kind::list:
      return "a list";
    case Kind::dictionary:
      return "a dictionary";
    case Kind::tensor:
      return "a tensor";
    case Kind::storage:
      return "a storage";
    case Kind::function:
      return "a function";
  }
  return "something else";
}

// The tensors of a dictionary by their joined names.
class Names {
 public:
  Names(const Pickle& pickle, const std::string& key) : pickle_(pickle) {
    const uint32_t chosen = choose(key);
    collect(chosen, "", 0);
    if (found_.empty()) throw BadTorchFile("holds no tensor");
  }
  std::vector<NamedTensor> take() { return std::move(found_); }

 private:
  const std::string& key_at(const Node& dictionary, std::size_t i) const {
    const Node& key = pickle_[dictionary.items[i]];
    if (key.kind != Kind::string)
      throw BadTorchFile(std::string("has ") + kind_name(key.kind) + " as a key where names are needed" + advice());
    return key.text;
  }

  // Follows `key` level by level. A name that has a dot itself cannot be reached.
  uint32_t choose(const std::string& key) {
    uint32_t at = pickle_.root;
    if (pickle_[at].kind != Kind::dictionary)
      throw BadTorchFile(std::string("holds ") + kind_name(pickle_[at].kind) + ", not a dictionary of tensors");
    for (std::size_t begin = 0; begin < key.size();) {
      const std::size_t end = std::min(key.find('.', begin), key.size());
      at = member(at, key.substr(begin, end - begin));
      begin = end + 1;
    }
    return at;
  }
  uint32_t member(uint32_t dictionary, const std::string& name) const {
    const Node& node = pickle_[dictionary];
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const Node& key = pickle_[node.items[i]];
      if (key.kind == Kind::string && key.text == name && pickle_[node.items[i + 1]].kind == Kind::dictionary)
        return node.items[i + 1];
    }
    throw BadTorchFile("has no dictionary " + shown_name(name) + advice());
  }

  void collect(uint32_t dictionary, const std::string& prefix, std::size_t depth) {
    if (depth > deepest) throw BadTorchFile("nests dictionaries too deeply");
    const Node& node = pickle_[dictionary];
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
      // Visits are counted, not tensors: dictionaries that hold others twice double at every level.
      if (++visited_ > most_visited) throw BadTorchFile("holds more than a million tensors");
      const std::string name = prefix + key_at(node, i);
      const Node& value = pickle_[node.items[i + 1]];
      if (value.kind == Kind::dictionary) {
        collect(node.items[i + 1], name + ".", depth + 1);
      } else if (value.kind == Kind::tensor) {
        add(name, &pickle_.tensors[value.tensor]);
      } else {
        throw BadTorchFile("holds " + std::string(kind_name(value.kind)) + " as " + shown_name(name) + advice());
      }
    }
  }
  // The names go on into a safetensors file: they must be UTF-8, and one of them is reserved there.
  void add(const std::string& name, const PickledTensor* tensor) {
    try {
      static_cast<void>(nlohmann::json(name).dump());
    } catch (const nlohmann::json::exception&) {
      throw BadTorchFile("has a name that is not UTF-8: " + shown_name(name));
    }
    if (name == "__metadata__" || !names_.insert(name).second)
      throw BadTorchFile("has the name " + shown_name(name) + " twice or reserved");
    found_.push_back({name, tensor});
  }

  // Which dictionaries could be meant.
  std::string advice() const {
    std::string list;
    const Node& root = pickle_[pickle_.root];
    for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
      const Node& key = pickle_[root.items[i]];
      if (key.kind == Kind::string && pickle_[root.items[i + 1]].kind == Kind::dictionary && list.size() < 200)
        list += (list.empty() ? "" : ", ") + shown_name(key.text);
    }
    return list.empty() ? "; a dictionary of tensors is needed: save the model's state_dict()"
                        : "; choose a dictionary of tensors with --key: there are " + list;
  }

  static constexpr std::size_t most_visited = 1000000;
  const Pickle& pickle_;
  std::vector<NamedTensor> found_;
  std::set<std::string> names_;
  std::size_t visited_ = 0;
};

// In the dictionary's order; `key` as TorchStateFile has it. BadTorchFile naming what is no tensor, and which
// dictionaries could be meant.
std::vector<NamedTensor> named_tensors(const Pickle& pickle, const std::string& key) {
  return Names(pickle, key).take();
}

using Bytes = std::span<const std::byte>;

// Times the widest element, 8 bytes, this still fits 64 bits.
constexpr uint64_t most_elements = uint64_t{1} << 56;
constexpr uint64_t most_sharing = 8;  // bytes of all tensors to bytes of the file

uint64_t elements_of(const NamedTensor& named) {
  // In `most` an empty axis counts as one: the other extents of an empty tensor are bounded too.
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
// UINT64_MAX: beyond any storage. REQUIRES: no extent is 0.
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
    // PyTorch leaves any stride on an axis of one element.
    if (tensor.shape[axis] != 1 && tensor.stride[axis] != step) return false;
    step *= tensor.shape[axis];
  }
  return true;
}

// Walks with the last axis fastest. `at` is an element's index, `from` its place in the storage.
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
    // The folder's name is the writer's choice; data.pkl stands directly in it.
    for (const auto& [name, entry] : entries_) {
      if (name.ends_with("/data.pkl") && name.find('/') == name.size() - 9) folder_ = name.substr(0, name.size() - 8);
    }
    if (folder_.empty()) throw BadTorchFile("is a zip archive, but none of torch.save: it has no data.pkl");
    // Older versions of PyTorch do not write it: their files are read as little-endian.
    const auto order = entries_.find(folder_ + "byteorder");
    if (order == entries_.end()) return;
    const Bytes told = order->second.data;
    if (std::string_view(reinterpret_cast<const char*>(told.data()), told.size()) != "little")
      throw BadTorchFile("was written on a big-endian machine; write it again on a little-endian one");
  }

  Bytes read(const std::string& name) {
    const auto entry = entries_.find(folder_ + name);
    if (entry == entries_.end()) throw BadTorchFile("is damaged: its entry " + shown_name(name) + " is not there");
    // Once for each storage, however many tensors share it.
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
  // A zip archive begins with PK, the pickle stream of the older format with the mark of protocol 2.
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
      // A tensor with strides is copied, so a small file could ask for any amount of memory: repetition is bounded.
      if (elements > there || (all_bytes += elements * width) > most_sharing * map_.bytes().size()) {
        throw BadTorchFile("has a tensor " + shown_name(named.name) +
                           " that shows elements again and again; save it with .contiguous()");
      }
      Bytes data = storage.first(0);
      if (elements > 0 && is_contiguous(tensor)) {
        data = storage.subspan(tensor.offset * width, elements * width);
      } else if (elements > 0) {
        // Growing copies_ moves the vectors and not their bytes: earlier spans stay valid.
        data = copies_.emplace_back(gathered(tensor, storage, elements));
      }
      tensors_.push_back({named.name, tensor.dtype, tensor.shape, data});
    }
  } catch (const BadTorchFile& problem) {
    throw Error(Exit::bad_input, "checkpoint", path.string() + " " + problem.what());
  }
}

}  // namespace headroom
