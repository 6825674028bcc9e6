#include "lists.hpp"

#include "field.hpp"
#include "headroom/sdk/lists.hpp"
#include "headroom/sdk/shape_text.hpp"

namespace hdf5_source {

void refuse_list(const Sequence& sequence, const FieldSettings& field, uint64_t row, uint64_t length) {
  refuse(sequence, field,
         "has a list of " + std::to_string(length) + " values in row " + std::to_string(row) + ", but list_length is " +
             std::to_string(field.list_length) + "; raise it, or set cut_lists = true");
}

std::optional<DLDataType> examine_lists(const sdk::Host& host, const Sequence& sequence, const FieldSettings& field) {
  const std::string object = sequence.object(field.dataset);
  std::optional<sdk::Lists> lists;
  try {
    lists.emplace(host, sdk::Array(host, sequence.file, object));
  } catch (const sdk::Error& problem) {
    if (problem.status() != HR_INVALID_ARGUMENT) throw;
    return std::nullopt;
  }
  const std::vector<uint64_t>& shape = lists->info().shape;
  if (shape.size() != 1)
    refuse(sequence, field, "has shape " + sdk::shape_text(shape) + "; lists are read from one axis");
  const hr_list_lengths found = sdk::list_lengths(host, sequence.file, object);
  const std::string longest = std::to_string(found.longest);
  if (field.list_length == 0) {
    refuse(sequence, field,
           "holds lists of numbers, each of its own length" +
               (found.seen < shape[0] ? " (of the first " + std::to_string(found.seen) + " the longest has " + longest
                                      : " (the longest has " + longest) +
               "); with rows = \"row\" and list_length = " + std::to_string(std::max<uint64_t>(1, found.longest)) +
               " they arrive as so many values each, followed by zeros");
  }
  const DLDataType delivered = delivered_dtype(field, lists->dtype());
  if (shape[0] > 0 && !sdk::same_type(delivered, lists->dtype())) {
    // Says whether the host converts; nothing is written.
    const uint64_t first = 0;
    lists->read({&first, 1}, delivered, nullptr, 0);
  }
  if (found.longest <= field.list_length) return lists->dtype();
  if (!field.cut_lists) refuse_list(sequence, field, found.longest_at, found.longest);
  host.warn(place_of(sequence, field) + ": lists are cut at list_length = " + std::to_string(field.list_length) +
            "; that of row " + std::to_string(found.longest_at) + " has " + longest + " values");
  return lists->dtype();
}

}  // namespace hdf5_source
