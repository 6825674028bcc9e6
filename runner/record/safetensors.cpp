#include "record/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "error.hpp"
#include "record/output_file.hpp"

namespace headroom {

namespace {

struct Named {
  std::string_view name;
  DLDataType dtype;
};

constexpr Named dtypes[] = {
    {"F64", {kDLFloat, 64, 1}}, {"F32", {kDLFloat, 32, 1}}, {"F16", {kDLFloat, 16, 1}}, {"BF16", {kDLBfloat, 16, 1}},
    {"I64", {kDLInt, 64, 1}},   {"I32", {kDLInt, 32, 1}},   {"I16", {kDLInt, 16, 1}},   {"I8", {kDLInt, 8, 1}},
    {"U64", {kDLUInt, 64, 1}},  {"U32", {kDLUInt, 32, 1}},  {"U16", {kDLUInt, 16, 1}},  {"U8", {kDLUInt, 8, 1}},
    {"BOOL", {kDLBool, 8, 1}},
};

}  // namespace

std::optional<DLDataType> dtype_from_safetensors(std::string_view name) {
  for (const Named& known : dtypes) {
    if (known.name == name) return known.dtype;
  }
  return std::nullopt;
}

std::optional<std::string_view> dtype_to_safetensors(DLDataType dtype) {
  for (const Named& known : dtypes) {
    if (known.dtype.code == dtype.code && known.dtype.bits == dtype.bits && dtype.lanes == 1) return known.name;
  }
  return std::nullopt;
}

std::string safetensors_dtypes() {
  std::string list;
  for (const Named& known : dtypes) list.append(list.empty() ? "" : ", ").append(known.name);
  return list;
}

namespace {

using nlohmann::json;

constexpr uint64_t longest_header = 100'000'000;  // the format's own limit

// Makes the error sentences of one file.
class Complaint {
 public:
  explicit Complaint(const std::filesystem::path& path) : path_(path) {}
  Error operator()(const std::string& what) const {
    return Error(Exit::bad_input, "safetensors", path_.string() + ": " + what);
  }

 private:
  const std::filesystem::path& path_;
};

// Names come from the file: escaped, and short enough for a sentence.
std::string in_quotes(const std::string& name) {
  constexpr size_t longest = 100;
  std::string text = json(name.substr(0, longest)).dump(-1, ' ', true, json::error_handler_t::replace);
  return name.size() > longest ? text + "..." : text;
}

// JSON parsers keep one of two equal keys; a file that says two things is damaged, so keys are counted while parsing.
json parse_header(std::string_view text, const Complaint& refuse) {
  std::set<std::string> names, keys;
  auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    // The deepest values of the format are the numbers in an entry's lists. More nesting would only cost memory.
    if (depth > 3) throw refuse("the header is nested too deeply");
    if (event != json::parse_event_t::key) return true;
    auto key = parsed.get<std::string>();
    // A key of the header begins a new entry, whose own keys are counted afresh.
    if (depth == 1) keys.clear();
    bool fresh = depth == 1 ? names.insert(key).second : keys.insert(key).second;
    if (!fresh) throw refuse("the header holds the name " + in_quotes(key) + " twice");
    return true;
  };
  try {
    json header = json::parse(text, watch);
    if (header.is_object()) return header;
  } catch (const json::exception&) {
    throw refuse("is not a safetensors file: its header is not JSON");
  }
  throw refuse("is not a safetensors file: its header is not a JSON object");
}

// The format has strings there and nothing else.
std::map<std::string, std::string> read_metadata(const json& entry, const Complaint& refuse) {
  std::map<std::string, std::string> metadata;
  if (!entry.is_object()) throw refuse("__metadata__ is not an object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) throw refuse("__metadata__ holds " + in_quotes(key) + ", which is not a string");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

struct Entry {
  TensorBytes tensor;
  uint64_t begin = 0, end = 0;
};

uint64_t unsigned_number(const json& value, const std::string& name, const char* what, const Complaint& refuse) {
  if (!value.is_number_unsigned()) throw refuse("tensor " + name + ": " + what + " holds something else than sizes");
  return value.get<uint64_t>();
}

// The bytes that a shape asks for; refuses what does not fit 63 bits.
uint64_t shape_bytes(const TensorBytes& tensor, const std::string& name, const Complaint& refuse) {
  uint64_t bytes = tensor.dtype.bits / 8;
  for (int64_t size : tensor.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes) || bytes > INT64_MAX) {
      throw refuse("tensor " + name + ": its shape is larger than any file");
    }
  }
  return bytes;
}

const json& member(const json& value, const char* key, const std::string& name, const Complaint& refuse) {
  auto found = value.find(key);
  if (found == value.end()) throw refuse("tensor " + name + " has no " + key);
  return *found;
}

// `raw_name` is the name as the file has it; sentences get it in quotes.
Entry read_entry(const std::string& raw_name, const json& value, const Complaint& refuse) {
  const std::string name = in_quotes(raw_name);
  if (!value.is_object()) throw refuse("tensor " + name + " is described by something else than an object");
  Entry entry;
  entry.tensor.name = raw_name;

  const json& dtype = member(value, "dtype", name, refuse);
  auto known = dtype.is_string() ? dtype_from_safetensors(dtype.get_ref<const std::string&>()) : std::nullopt;
  if (!known) {
    std::string found = dtype.is_string() ? in_quotes(dtype.get<std::string>()) : "something else than a string";
    throw refuse("tensor " + name + " has the dtype " + found + "; known are " + safetensors_dtypes());
  }
  entry.tensor.dtype = *known;

  const json& shape = member(value, "shape", name, refuse);
  if (!shape.is_array()) throw refuse("tensor " + name + ": shape is not a list");
  for (const json& item : shape) {
    uint64_t size = unsigned_number(item, name, "shape", refuse);
    if (size > INT64_MAX) throw refuse("tensor " + name + ": its shape is larger than any file");
    entry.tensor.shape.push_back(static_cast<int64_t>(size));
  }

  const json& offsets = member(value, "data_offsets", name, refuse);
  if (!offsets.is_array() || offsets.size() != 2) {
    throw refuse("tensor " + name + ": data_offsets is not a list of begin and end");
  }
  entry.begin = unsigned_number(offsets[0], name, "data_offsets", refuse);
  entry.end = unsigned_number(offsets[1], name, "data_offsets", refuse);
  // The shape says how much is read, data_offsets how much there is: they must agree.
  uint64_t bytes = shape_bytes(entry.tensor, name, refuse);
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    throw refuse("tensor " + name + ": its shape asks for " + std::to_string(bytes) + " bytes, data_offsets are " +
                 offsets.dump());
  }
  return entry;
}

// Tensors must follow each other without gap or overlap from the first byte of the data to the last, as the format
// says.
void place(std::vector<Entry>& entries, std::span<const std::byte> data, const Complaint& refuse) {
  // By the end as well: an empty tensor comes before the one that begins at the same byte.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.tensor.name) < std::tie(b.begin, b.end, b.tensor.name);
  });
  uint64_t expected = 0;
  for (Entry& entry : entries) {
    const std::string name = in_quotes(entry.tensor.name);
    if (entry.end > data.size()) {
      throw refuse("is cut off or damaged: tensor " + name + " ends at byte " + std::to_string(entry.end) +
                   " of the data, the file has " + std::to_string(data.size()));
    }
    if (entry.begin != expected) {
      throw refuse("tensor " + name + " begins at byte " + std::to_string(entry.begin) + " of the data, " +
                   (entry.begin < expected ? "inside the one before it" : "leaving a gap after the one before it"));
    }
    expected = entry.end;
    entry.tensor.data = data.subspan(entry.begin, entry.end - entry.begin);
    entry.tensor.in_file = true;
  }
  if (expected != data.size()) {
    throw refuse(std::to_string(data.size() - expected) + " bytes follow the last tensor");
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), map_(path, "safetensors") {
  const Complaint refuse(path_);
  const std::span<const std::byte> bytes = map_.bytes();
  if (bytes.size() < 8) {
    throw refuse("is not a safetensors file: " + std::to_string(bytes.size()) +
                 " bytes, at least 8 are needed for the header's length");
  }
  uint64_t header_length = 0;
  // Copied in this machine's byte order, which is the file's (static_assert below).
  std::memcpy(&header_length, bytes.data(), sizeof header_length);
  if (header_length > longest_header || header_length > bytes.size() - 8) {
    throw refuse("is not a safetensors file, or cut off: it promises a header of " + std::to_string(header_length) +
                 " bytes and has " + std::to_string(bytes.size() - 8));
  }
  std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, header_length);
  json header = parse_header(text, refuse);
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = read_metadata(value, refuse);
    } else {
      entries.push_back(read_entry(name, value, refuse));
    }
  }
  place(entries, bytes.subspan(8 + header_length), refuse);
  for (Entry& entry : entries) tensors_.push_back(std::move(entry.tensor));
}

const TensorBytes* SafetensorsFile::find(const std::string& name) const {
  auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const TensorBytes& t) { return t.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::string_view metadata_key = "__metadata__";

Error misuse(const std::string& name, const std::string& what) {
  return Error(Exit::bug, "safetensors", "tensor '" + name + "' cannot be stored: " + what);
}

// Finds what only a caller's mistake brings about: the file could not be read again.
void check(const TensorBytes& tensor, std::set<std::string>& names) {
  if (tensor.name == metadata_key || !names.insert(tensor.name).second) {
    throw misuse(tensor.name, "the name is taken");
  }
  if (!dtype_to_safetensors(tensor.dtype)) throw misuse(tensor.name, "the format has no such element type");
  uint64_t bytes = tensor.dtype.bits / 8;
  for (int64_t size : tensor.shape) bytes *= static_cast<uint64_t>(size);
  if (bytes != tensor.data.size()) {
    throw misuse(tensor.name, "its shape asks for " + std::to_string(bytes) + " bytes, " +
                                  std::to_string(tensor.data.size()) + " were given");
  }
}

// Wide elements first: with the data at a multiple of 8, every tensor of a file written here is aligned to its
// elements.
std::vector<const TensorBytes*> in_file_order(std::span<const TensorBytes> tensors) {
  std::vector<const TensorBytes*> order;
  for (const TensorBytes& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(),
                   [](const TensorBytes* a, const TensorBytes* b) { return a->dtype.bits > b->dtype.bits; });
  return order;
}

std::string header_text(const std::vector<const TensorBytes*>& order,
                        const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header[metadata_key] = metadata;
  uint64_t offset = 0;
  for (const TensorBytes* tensor : order) {
    header[tensor->name] = {{"dtype", *dtype_to_safetensors(tensor->dtype)},
                            {"shape", tensor->shape},
                            {"data_offsets", {offset, offset + tensor->data.size()}}};
    offset += tensor->data.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(Exit::bug, "safetensors", "a tensor's name or the metadata is not UTF-8");
  }
  // Padded with spaces, as the format allows, so that the data begins at a multiple of 8 bytes.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata) {
  // Checked before the file is opened: a mistake leaves no half-written file.
  std::set<std::string> names;
  for (const TensorBytes& tensor : tensors) check(tensor, names);
  std::vector<const TensorBytes*> order = in_file_order(tensors);
  std::string header = header_text(order, metadata);

  OutputFile file(path);
  uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const TensorBytes* tensor : order) {
    file.write(tensor->data);
    if (tensor->in_file) drop_pages(tensor->data);
  }
  file.finish();
}

void write_whole_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors,
                             const std::map<std::string, std::string>& metadata) {
  if (!may_be_replaced(path)) return write_safetensors(path, tensors, metadata);
  // Beside the file, so that rename() stays within one file system and is atomic.
  std::filesystem::path partial = path;
  partial += ".partial";
  std::error_code error, ignored;
  try {
    write_safetensors(partial, tensors, metadata);
  } catch (const Error&) {
    std::filesystem::remove(partial, ignored);
    throw;
  }
  std::filesystem::rename(partial, path, error);
  if (!error) return sync_folder(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
  std::filesystem::remove(partial, ignored);
  throw Error(Exit::cannot_write, "record", path.string() + " cannot be written: " + error.message());
}

}  // namespace headroom
