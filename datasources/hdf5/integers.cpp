#include "integers.hpp"

#include <algorithm>
#include <limits>

#include "headroom/sdk/shape_text.hpp"

namespace hdf5_source {

std::vector<int64_t> read_integers(const sdk::Array& array, uint64_t begin, uint64_t count) {
  std::vector<int64_t> values(count);
  if (count == 0) return values;
  const DLDataType stored = array.info().dtype;
  if (stored.code != kDLUInt || stored.bits < 64) {
    const hr_array_target target = sdk::target(values.data());
    array.read_rows(begin, count, {&target, 1});
    return values;
  }
  std::vector<uint64_t> wide(count);
  const hr_array_target target = sdk::target(wide.data());
  array.read_rows(begin, count, {&target, 1});
  const uint64_t most = std::numeric_limits<int64_t>::max();
  std::ranges::transform(wide, values.begin(), [&](uint64_t one) { return static_cast<int64_t>(std::min(one, most)); });
  return values;
}

bool is_integers(const sdk::ArrayInfo& info) {
  const auto code = info.dtype.code;
  return info.shape.size() == 1 && info.dtype.bits != 0 && (code == kDLInt || code == kDLUInt || code == kDLBool);
}

sdk::Array open_integers(const sdk::Host& host, const std::filesystem::path& file, const std::string& object,
                         const std::string& option) {
  try {
    sdk::Array array(host, file, object);
    if (is_integers(array.info())) return array;
    const std::string held = array.info().shape.size() != 1 ? "has shape " + sdk::shape_text(array.info().shape)
                                                            : std::string("does not hold integers");
    throw sdk::Error(HR_DATA_CORRUPT,
                     option + ": " + place_of(file, object) + " " + held + "; one axis of integers is needed");
  } catch (const sdk::Error& problem) {
    if (problem.status() != HR_INVALID_ARGUMENT && problem.status() != HR_NOT_FOUND) throw;
    throw sdk::Error(HR_DATA_CORRUPT, option + ": " + problem.what());
  }
}

std::string place_of(const std::filesystem::path& file, const std::string& object) {
  return "'" + object + "' of " + file.string();
}

}  // namespace hdf5_source
