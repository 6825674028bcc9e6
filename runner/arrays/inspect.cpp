#include "arrays/inspect.hpp"

#include <algorithm>

#include "arrays/hdf5_child.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

constexpr uint64_t tiny_chunk = 16u << 10;         // bytes
constexpr uint64_t many_chunks = 64;               // of a dataset
constexpr uint64_t chunks_of_window = 4;           // more are worth a word
constexpr uint64_t largest_series_row = 4u << 10;  // bytes; rows of pictures are read one by one

std::string text(uint64_t bytes) { return size_text(static_cast<int64_t>(bytes)); }

void check_chunks(InspectedDataset& dataset, const InspectOptions& options) {
  const SurveyedObject& object = dataset.object;
  dataset.chunks = 1;
  dataset.chunk_bytes = object.element_bytes;
  // `across`: how many chunks a row of the first axis spans.
  uint64_t row_bytes = object.element_bytes, across = 1;
  for (size_t axis = 0; axis < object.chunk.size() && axis < object.shape.size(); ++axis) {
    const uint64_t extent = std::max<uint64_t>(1, object.chunk[axis]);
    const uint64_t cells = object.shape[axis] / extent + (object.shape[axis] % extent != 0 ? 1 : 0);
    dataset.chunks *= cells;
    dataset.chunk_bytes *= extent;
    if (axis > 0) across *= cells;
    if (axis > 0) row_bytes *= object.shape[axis];
  }
  const bool filtered = !object.filters.empty();
  if (filtered && dataset.chunk_bytes > options.chunk_cache_bytes) {
    dataset.warnings.push_back("a chunk of " + text(dataset.chunk_bytes) + " is larger than data.chunk_cache_size (" +
                               text(options.chunk_cache_bytes) +
                               "): every read decodes it anew; raise the size, or convert to smaller chunks");
  }
  // Each chunk costs a read of its own.
  if (!filtered && dataset.chunk_bytes < tiny_chunk && dataset.chunks > many_chunks) {
    dataset.warnings.push_back(std::to_string(dataset.chunks) + " chunks of " + text(dataset.chunk_bytes) +
                               " without compression: `headroom data convert` makes them one contiguous run");
  }
  const uint64_t rows = object.shape.empty() ? 0 : object.shape[0];
  if (rows < options.window_rows || row_bytes > largest_series_row || object.chunk.empty()) return;
  // At worst a window begins in the last row of a chunk.
  const uint64_t touched = ((options.window_rows - 1) / object.chunk[0] + 2) * across;
  if (touched > chunks_of_window) {
    dataset.warnings.push_back("a window of " + std::to_string(options.window_rows) + " rows touches up to " +
                               std::to_string(std::min(touched, dataset.chunks)) + " chunks of " +
                               std::to_string(object.chunk[0]) + " rows: convert with a larger --chunk");
  }
}

void check_filters(InspectedDataset& dataset) {
  for (const StoredFilter& filter : dataset.object.filters) {
    if (filter.available) continue;
    dataset.warnings.push_back("filter " + std::to_string(filter.id) +
                               (filter.name.empty() ? "" : " (" + filter.name + ")") +
                               " is not available: name its plugin's folder in HDF5_PLUGIN_PATH");
  }
}

void plan(const std::string& path, InspectedDataset& dataset) {
  if (!dataset.object.problem.empty()) {
    dataset.problem = dataset.object.problem;
    return;
  }
  try {
    const ArrayPlan found =
        ask_hdf5({.kind = Hdf5Question::Kind::plan, .path = path, .object = dataset.object.name}).plan;
    dataset.lane = lane_name(found.lane);
    dataset.why = found.why_library;
    if (found.lane == Lane::chunk_calls) {
      dataset.why = std::to_string(dataset.chunks) + " chunks are too many for a table (" +
                    std::to_string(most_planned_chunks) + ")";
    }
  } catch (const sdk::Error& problem) {
    dataset.problem = problem.what();
  }
}

}  // namespace

InspectedFile inspect_file(const std::filesystem::path& path, const InspectOptions& options) {
  InspectedFile file;
  file.path = path;
  std::error_code unknown;
  // Without an exception: the survey below says what is wrong with the file.
  file.size_bytes = std::filesystem::file_size(path, unknown);
  if (unknown) file.size_bytes = 0;
  Survey survey;
  try {
    survey = ask_hdf5({.kind = Hdf5Question::Kind::survey, .path = path}).survey;
  } catch (const sdk::Error& problem) {
    file.problem = problem.what();
    return file;
  }
  file.user_block_bytes = survey.user_block_bytes;
  file.cut_off = survey.cut_off;
  for (SurveyedObject& object : survey.objects) {
    // Counted before the names are moved away.
    file.attributes += object.attributes.size();
    // Every file has a root group, so it does not count.
    file.groups += object.is_group && object.name != "/" ? 1 : 0;
    if (object.is_group && !object.attributes.empty())
      file.group_attributes.emplace_back(object.name, std::move(object.attributes));
    if (object.is_group) continue;
    InspectedDataset& dataset = file.datasets.emplace_back();
    dataset.object = std::move(object);
    if (!dataset.object.chunk.empty()) check_chunks(dataset, options);
    check_filters(dataset);
    plan(path, dataset);
  }
  return file;
}

}  // namespace headroom
