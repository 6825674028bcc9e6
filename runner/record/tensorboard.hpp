// A TensorBoard event file: TFRecord frames around hand-encoded tensorflow.Event messages. Only scalars.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/output_file.hpp"

namespace headroom {

class TensorBoardFile {
 public:
  // Goes on in the folder's event file when it has one, else starts events.out.tfevents.<seconds>.<host>.<pid>.
  explicit TensorBoardFile(const std::filesystem::path& folder);

  // One event of `step` holding every value; TensorBoard keeps floats.
  void scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values);

  void truncate(uint64_t length);  // 0 leaves the first event, which names the file's version
  LogFile& file() { return file_; }
  const LogFile& file() const { return file_; }

 private:
  LogFile file_;
};

// The frame of one record: length, its checksum, the bytes, their checksum.
std::string tfrecord(const std::string& bytes);

// The checksum of TFRecord files.
uint32_t crc32c(std::string_view bytes);         // Castagnoli: "123456789" -> 0xe3069283
uint32_t masked_crc32c(std::string_view bytes);  // rotated and shifted, as TFRecord stores it

}  // namespace headroom
