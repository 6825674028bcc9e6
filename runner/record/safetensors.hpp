// The safetensors file format: 8-byte little-endian header length, JSON header, raw little-endian tensors.
// https://github.com/huggingface/safetensors (format description in its README).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/dlpack.h"
#include "record/mapped_file.hpp"

namespace headroom {

// The element types of the format by their DLPack types; nullopt where the other side has no such type.
std::optional<DLDataType> dtype_from_safetensors(std::string_view name);
std::optional<std::string_view> dtype_to_safetensors(DLDataType dtype);

// "F64, F32, ..." for error sentences.
std::string safetensors_dtypes();

struct TensorBytes {
  std::string name;
  DLDataType dtype{};
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

// Writes in pieces, so that memory stays flat; fsync at the end, no rename. Error(cannot_write).
void write_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// The same, whole or not at all: beside `path` first, in its place when it is done. Devices, pipes and links are
// written to. Error(cannot_write).
void write_whole_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors,
                             const std::map<std::string, std::string>& metadata = {});

// A mapped file. Spans live as long as the object. Error(bad_input) for anything malformed: bad header length,
// overlapping or out-of-range offsets, unknown dtype, duplicate names.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  const std::vector<TensorBytes>& tensors() const { return tensors_; }
  const TensorBytes* find(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  MappedFile map_;
  std::vector<TensorBytes> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace headroom
