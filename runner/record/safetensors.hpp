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

// The format's element types and their DLPack types; nullopt where there is no counterpart.
std::optional<DLDataType> dtype_from_safetensors(std::string_view name);
std::optional<std::string_view> dtype_to_safetensors(DLDataType dtype);

// "F64, F32, ..." for error sentences.
std::string safetensors_dtypes();

struct TensorBytes {
  std::string name;
  DLDataType dtype{};
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  bool in_file = false;  // `data` are pages of a file: whoever has read them once releases them (drop_pages)
};

// Writes piece by piece, and releases pages of files tensor by tensor, so that memory use is constant. Syncs at the
// end; does not rename. Error(cannot_write).
void write_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// The same, whole or not at all: writes a temporary file in the same folder and renames it. Devices, pipes and links
// are written to directly. Error(cannot_write).
void write_whole_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors,
                             const std::map<std::string, std::string>& metadata = {});

// A safetensors file, mapped. Spans are valid as long as the object. Error(bad_input) for a malformed file: bad header
// length, overlapping or out-of-range offsets, unknown dtype, duplicate names.
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
